// Common uses of client-go. The tests need KUBECONFIG to name a control plane.
package interop

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// timeout is how long a test waits for a condition.
const timeout = 30 * time.Second

var (
	widgets     = schema.GroupVersionResource{Group: "go.interop.k1s.dev", Version: "v1", Resource: "widgets"}
	definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
)

const widgetDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.go.interop.k1s.dev}
spec:
  group: go.interop.k1s.dev
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList, shortNames: [gwd]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: {type: integer, default: 1}
              colour: {type: string}
              parts:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name]
                items: {type: object, required: [name], properties: {name: {type: string}, weight: {type: integer}}}
          status: {type: object, properties: {phase: {type: string}}}
`

// Every wire format that client-go supports for built-in kinds.
var formats = map[string]string{
	"JSON":     runtime.ContentTypeJSON,
	"protobuf": runtime.ContentTypeProtobuf,
}

func config(t *testing.T, contentType string) *rest.Config {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	must(t, err)
	config.ContentType = contentType
	if contentType == runtime.ContentTypeProtobuf {
		config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	}
	config.QPS, config.Burst = -1, 0
	return config
}

func typed(t *testing.T, contentType string) *kubernetes.Clientset {
	t.Helper()
	client, err := kubernetes.NewForConfig(config(t, contentType))
	must(t, err)
	return client
}

func untyped(t *testing.T) *dynamic.DynamicClient {
	t.Helper()
	client, err := dynamic.NewForConfig(config(t, runtime.ContentTypeJSON))
	must(t, err)
	return client
}

// namespace creates a namespace for the test.
func namespace(t *testing.T) string {
	t.Helper()
	made, err := typed(t, runtime.ContentTypeJSON).CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "go-"},
	}, metav1.CreateOptions{})
	must(t, err)
	return made.Name
}

// serveWidgets creates the custom resource of these tests, and waits until it is served.
func serveWidgets(t *testing.T) {
	t.Helper()
	crd := &unstructured.Unstructured{}
	must(t, yaml.NewYAMLOrJSONDecoder(strings.NewReader(widgetDefinition), 4096).Decode(crd))
	_, err := untyped(t).Resource(definitions).Create(t.Context(), crd, metav1.CreateOptions{})
	if err != nil && !strings.Contains(err.Error(), "already exists") {
		t.Fatal(err)
	}
	soon(t, "the custom resource is established", func(ctx context.Context) bool {
		crd, err := untyped(t).Resource(definitions).Get(ctx, crd.GetName(), metav1.GetOptions{})
		must(t, err)
		conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
		return strings.Contains(fmt.Sprint(conditions), "type:Established") && strings.Contains(fmt.Sprint(conditions), "InitialNamesAccepted")
	})
}

func widget(name string, size int64) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "go.interop.k1s.dev/v1",
		"kind":       "Widget",
		"metadata":   map[string]any{"name": name},
		"spec":       map[string]any{"size": size},
	}}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func expect[T comparable](t *testing.T, what string, actual, expected T) {
	t.Helper()
	if actual != expected {
		t.Fatalf("%s: expected %v, not %v", what, expected, actual)
	}
}

func soon(t *testing.T, what string, condition func(context.Context) bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, timeout, true, func(ctx context.Context) (bool, error) {
		return condition(ctx), nil
	})
	if err != nil {
		t.Fatalf("not within %v: %s", timeout, what)
	}
}

// next receives a value within the timeout.
func next[T any](t *testing.T, what string, from <-chan T) T {
	t.Helper()
	select {
	case value, open := <-from:
		if !open {
			t.Fatalf("closed before %s", what)
		}
		return value
	case <-time.After(timeout):
		t.Fatalf("not within %v: %s", timeout, what)
		panic("unreachable")
	}
}
