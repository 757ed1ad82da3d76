package interop

import (
	"context"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/openapi3"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
)

func newClient(t *testing.T, config *rest.Config) *kubernetes.Clientset {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	must(t, err)
	return client
}

// increment counts in an annotation, and fails with a conflict after a concurrent write.
func increment(ctx context.Context, client typedcorev1.ConfigMapInterface) error {
	made, err := client.Get(ctx, "count", metav1.GetOptions{})
	if err != nil {
		return err
	}
	count, _ := strconv.Atoi(made.Annotations["count"])
	made.Annotations = map[string]string{"count": strconv.Itoa(count + 1)}
	_, err = client.Update(ctx, made, metav1.UpdateOptions{})
	return err
}

func count(found []*corev1.ConfigMap, prefix string) int {
	number := 0
	for _, item := range found {
		if strings.HasPrefix(item.Name, prefix) {
			number++
		}
	}
	return number
}

func TestDiscoveryAndTheRESTMapperKnowBuiltInAndCustomKinds(t *testing.T) {
	serveWidgets(t)
	client := typed(t, runtime.ContentTypeJSON).Discovery()
	version, err := client.ServerVersion()
	must(t, err)
	expect(t, "the major version", version.Major, "1")
	_, resources, err := client.ServerGroupsAndResources()
	must(t, err)
	expect(t, "there are many groups", len(resources) > 15, true)
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client))
	mapping, err := mapper.RESTMapping(schema.GroupKind{Group: "apps", Kind: "Deployment"})
	must(t, err)
	expect(t, "the resource", mapping.Resource.Resource, "deployments")
	mapping, err = mapper.RESTMapping(schema.GroupKind{Group: widgets.Group, Kind: "Widget"})
	must(t, err)
	expect(t, "the resource", mapping.Resource, widgets)
	expect(t, "the scope", string(mapping.Scope.Name()), "namespace")
	short := restmapper.NewShortcutExpander(mapper, memory.NewMemCacheClient(client), func(string) {})
	expanded, err := short.ResourceFor(schema.GroupVersionResource{Resource: "gwd"})
	must(t, err)
	expect(t, "the short name", expanded, widgets)
}

func TestOpenAPIDescribesBuiltInAndCustomKinds(t *testing.T) {
	serveWidgets(t)
	client := typed(t, runtime.ContentTypeJSON).Discovery()
	second, err := client.OpenAPISchema()
	must(t, err)
	expect(t, "version 2 has definitions", len(second.GetDefinitions().GetAdditionalProperties()) > 100, true)
	root := openapi3.NewRoot(client.OpenAPIV3())
	for _, version := range []schema.GroupVersion{{Version: "v1"}, {Group: "apps", Version: "v1"}, widgets.GroupVersion()} {
		spec, err := root.GVSpec(version)
		must(t, err)
		expect(t, version.String()+" has schemas", len(spec.Components.Schemas) > 0, true)
	}
}

func TestTheMetadataClientReadsOnlyMetadata(t *testing.T) {
	serveWidgets(t)
	ctx, name := t.Context(), namespace(t)
	_, err := untyped(t).Resource(widgets).Namespace(name).Create(ctx, widget("gear", 3), metav1.CreateOptions{})
	must(t, err)
	for format, contentType := range formats {
		client, err := metadata.NewForConfig(config(t, contentType))
		must(t, err)
		read, err := client.Resource(widgets).Namespace(name).Get(ctx, "gear", metav1.GetOptions{})
		must(t, err)
		expect(t, format+": the name", read.Name, "gear")
		list, err := client.Resource(corev1.SchemeGroupVersion.WithResource("namespaces")).List(ctx, metav1.ListOptions{})
		must(t, err)
		expect(t, format+": there are namespaces", len(list.Items) > 0, true)
	}
}

func TestALeaderIsElectedAndFollowedByAnother(t *testing.T) {
	client, name := typed(t, runtime.ContentTypeProtobuf), namespace(t)
	var leaders atomic.Int32
	led := make(chan string, 2)
	campaign := func(ctx context.Context, identity string) {
		lock := &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Name: "leader", Namespace: name},
			Client:     client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
		}
		leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
			Lock: lock, ReleaseOnCancel: true,
			LeaseDuration: 3 * time.Second, RenewDeadline: 2 * time.Second, RetryPeriod: 100 * time.Millisecond,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(ctx context.Context) {
					if leaders.Add(1) != 1 {
						t.Error("two leaders at once")
					}
					led <- identity
					<-ctx.Done()
				},
				OnStoppedLeading: func() {},
			},
		})
	}
	first, step := context.WithCancel(t.Context())
	go campaign(first, "first")
	expect(t, "the leader", next(t, "a leader", led), "first")
	go campaign(t.Context(), "second")
	lease, err := client.CoordinationV1().Leases(name).Get(t.Context(), "leader", metav1.GetOptions{})
	must(t, err)
	expect(t, "the holder", *lease.Spec.HolderIdentity, "first")
	leaders.Store(0)
	step()
	expect(t, "the next leader", next(t, "another leader", led), "second")
}

func TestARecorderWritesEvents(t *testing.T) {
	ctx, client, name := t.Context(), typed(t, runtime.ContentTypeProtobuf), namespace(t)
	made, err := client.CoreV1().ConfigMaps(name).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "one"}}, metav1.CreateOptions{})
	must(t, err)
	made.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: client.CoreV1().Events(name)})
	defer broadcaster.Shutdown()
	recorder := broadcaster.NewRecorder(scheme(t), corev1.EventSource{Component: "interop"})
	for range 3 {
		recorder.Event(made, corev1.EventTypeNormal, "Noticed", "it was seen")
	}
	soon(t, "one event that counts to three", func(ctx context.Context) bool {
		list, err := client.CoreV1().Events(name).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=one,reason=Noticed"})
		must(t, err)
		return len(list.Items) == 1 && list.Items[0].Count == 3
	})
}

func scheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	must(t, corev1.AddToScheme(scheme))
	return scheme
}
