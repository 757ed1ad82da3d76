package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// Admission webhooks of controller-runtime, here, which the control plane calls over HTTPS. Their configurations come without an
// authority, which is patched into them later, as cert-manager's injector does it.

const hooks = `
apiVersion: admissionregistration.k8s.io/v1
kind: %[1]sWebhookConfiguration
metadata: {name: interop-operator}
webhooks:
- name: %[2]s.interop.k1s.dev
  clientConfig: {url: "https://%[3]s/%[2]s"}
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Fail
  objectSelector: {matchLabels: {interop: admission}}
  rules: [{operations: [CREATE, UPDATE], apiGroups: [""], apiVersions: [v1], resources: [configmaps]}]
`

// review serves the webhooks on a port of their own.
func review() (address string, authority []byte, err error) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return "", nil, err
	}
	decoder := admission.NewDecoder(scheme)
	mutate := admission.HandlerFunc(func(_ context.Context, request admission.Request) admission.Response {
		object := &corev1.ConfigMap{}
		if err := decoder.Decode(request, object); err != nil {
			return admission.Errored(http.StatusBadRequest, err)
		}
		object.Labels["mutated-by"] = "controller-runtime"
		if object.Data == nil {
			object.Data = map[string]string{"defaulted": string(request.Operation)}
		}
		patched, err := json.Marshal(object)
		if err != nil {
			return admission.Errored(http.StatusInternalServerError, err)
		}
		return admission.PatchResponseFromRaw(request.Object.Raw, patched)
	})
	validate := admission.HandlerFunc(func(_ context.Context, request admission.Request) admission.Response {
		object := &corev1.ConfigMap{}
		if err := decoder.Decode(request, object); err != nil {
			return admission.Errored(http.StatusBadRequest, err)
		}
		if object.Labels["mutated-by"] == "" {
			return admission.Denied("not mutated before")
		}
		if object.Data["forbidden"] != "" {
			return admission.Denied("data.forbidden is " + object.Data["forbidden"])
		}
		return admission.Allowed("").WithWarnings("reviewed " + object.Name)
	})
	chain, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		return "", nil, err
	}
	pair, err := tls.X509KeyPair(chain, key)
	if err != nil {
		return "", nil, err
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}})
	if err != nil {
		return "", nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("/mutating", &admission.Webhook{Handler: mutate})
	mux.Handle("/validating", &admission.Webhook{Handler: validate})
	// Calls that do not trust it are part of the checks.
	server := &http.Server{Handler: mux, ErrorLog: log.New(io.Discard, "", 0)}
	go func() { _ = server.Serve(listener) }()
	return listener.Addr().String(), chain, nil
}

// warnings keeps what a client is warned of.
type warnings struct {
	sync.Mutex
	texts []string
}

func (w *warnings) HandleWarningHeader(_ int, _ string, text string) {
	w.Lock()
	defer w.Unlock()
	w.texts = append(w.texts, text)
}

func (w *warnings) String() string {
	w.Lock()
	defer w.Unlock()
	return strings.Join(w.texts, ", ")
}

// admits checks webhooks of controller-runtime.
func admits(checks *checks, config *rest.Config, scheme *runtime.Scheme, home string) {
	ctx := context.Background()
	address, authority, err := review()
	if err != nil {
		fail(err)
	}
	heard := &warnings{}
	config = rest.CopyConfig(config)
	config.WarningHandler = heard
	live, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		fail(err)
	}
	kinds := []string{"Mutating", "Validating"}
	configuration := func(kind string) *unstructured.Unstructured {
		object := &unstructured.Unstructured{}
		text := fmt.Sprintf(hooks, kind, strings.ToLower(kind), address)
		if err := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096).Decode(object); err != nil {
			fail(err)
		}
		return object
	}
	object := func(name string, data map[string]string) *corev1.ConfigMap {
		meta := metav1.ObjectMeta{Name: name, Namespace: home, Labels: map[string]string{"interop": "admission"}}
		return &corev1.ConfigMap{ObjectMeta: meta, Data: data}
	}
	for _, kind := range kinds {
		// Those of an earlier run have another address.
		_ = live.Delete(ctx, configuration(kind))
		defer func() { _ = live.Delete(ctx, configuration(kind)) }()
	}
	checks.that("webhooks without their authority are not trusted", func(ctx context.Context) (bool, error) {
		for _, kind := range kinds {
			if err := live.Create(ctx, configuration(kind)); client.IgnoreAlreadyExists(err) != nil {
				return false, err
			}
		}
		err := live.Create(ctx, object("too-early", nil))
		if err == nil {
			return false, live.Delete(ctx, object("too-early", nil))
		}
		if !strings.Contains(err.Error(), "failed calling webhook") || !strings.Contains(err.Error(), "certificate") {
			return false, err
		}
		return true, nil
	})
	checks.that("an authority that is injected later is used", func(ctx context.Context) (bool, error) {
		bundle := base64.StdEncoding.EncodeToString(authority)
		patch := fmt.Sprintf(`[{"op":"add","path":"/webhooks/0/clientConfig/caBundle","value":%q}]`, bundle)
		for _, kind := range kinds {
			if err := live.Patch(ctx, configuration(kind), client.RawPatch("application/json-patch+json", []byte(patch))); err != nil {
				return false, err
			}
		}
		return true, client.IgnoreAlreadyExists(live.Create(ctx, object("a", nil)))
	})
	checks.once("the object is mutated, then validated, and the client is warned", func(ctx context.Context) error {
		found := object("a", nil)
		if err := live.Get(ctx, client.ObjectKeyFromObject(found), found); err != nil {
			return err
		}
		if found.Labels["mutated-by"] != "controller-runtime" || found.Data["defaulted"] != "CREATE" {
			return fmt.Errorf("found %v with %v", found.Labels, found.Data)
		}
		if !strings.Contains(heard.String(), "reviewed a") {
			return fmt.Errorf("the warnings are %s", heard)
		}
		return nil
	})
	checks.once("a refusal names the webhook and its reason", func(ctx context.Context) error {
		err := live.Create(ctx, object("b", map[string]string{"forbidden": "fruit"}))
		expected := `admission webhook "validating.interop.k1s.dev" denied the request: data.forbidden is fruit`
		if err == nil || err.Error() != expected {
			return fmt.Errorf("the error is %v", err)
		}
		return nil
	})
	checks.once("kubectl shows the warnings and refusals of webhooks", func(ctx context.Context) error {
		kubectl := func(data string) (string, error) {
			text := fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"k","namespace":%q,"labels":{"interop":"admission"}},"data":{%s}}`, home, data)
			command := exec.CommandContext(ctx, cmp.Or(os.Getenv("KUBECTL"), "kubectl"), "create", "-f", "-")
			command.Stdin = strings.NewReader(text)
			var stderr bytes.Buffer
			command.Stderr = &stderr
			err := command.Run()
			return stderr.String(), err
		}
		told, err := kubectl(`"forbidden":"fruit"`)
		if err == nil || !strings.Contains(told, `admission webhook "validating.interop.k1s.dev" denied the request: data.forbidden is fruit`) {
			return fmt.Errorf("kubectl says %s (%v)", told, err)
		}
		told, err = kubectl("")
		if err != nil || !strings.Contains(told, "Warning: reviewed k") {
			return fmt.Errorf("kubectl says %s (%v)", told, err)
		}
		return nil
	})
}
