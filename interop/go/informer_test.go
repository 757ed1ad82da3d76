package interop

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/features"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

// notificationsOf sends a line for each notification of an informer, except for the default objects of a namespace.
func notificationsOf(t *testing.T, informer cache.SharedIndexInformer) <-chan string {
	t.Helper()
	notified := make(chan string, 1000)
	name := func(object any) string {
		key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object)
		if err != nil {
			return err.Error()
		}
		_, name, _ := cache.SplitMetaNamespaceKey(key)
		return name
	}
	tell := func(what string, object any) {
		if name := name(object); name != "kube-root-ca.crt" {
			notified <- what + " " + name
		}
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { tell("add", object) },
		UpdateFunc: func(_, object any) { tell("update", object) },
		DeleteFunc: func(object any) { tell("delete", object) },
	})
	must(t, err)
	return notified
}

func synced(t *testing.T, informer cache.SharedIndexInformer) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	expect(t, "the cache is synced", cache.WaitForCacheSync(ctx.Done(), informer.HasSynced), true)
}

// roundTrip is a function as a transport.
type roundTrip func(*http.Request) (*http.Response, error)

func (call roundTrip) RoundTrip(request *http.Request) (*http.Response, error) { return call(request) }

func TestAnInformerFillsItsCacheFromAWatchAlone(t *testing.T) {
	expect(t, "client-go's WatchListClient", features.FeatureGates().Enabled(features.WatchListClient), true)
	name, config := namespace(t), config(t, runtime.ContentTypeProtobuf)
	var lists, watches atomic.Int32
	config.Wrap(func(inner http.RoundTripper) http.RoundTripper {
		return roundTrip(func(request *http.Request) (*http.Response, error) {
			if request.URL.Query().Get("sendInitialEvents") == "true" {
				watches.Add(1)
			} else if request.URL.Query().Get("watch") == "" {
				lists.Add(1)
			}
			return inner.RoundTrip(request)
		})
	})
	factory := informers.NewSharedInformerFactoryWithOptions(newClient(t, config), 0, informers.WithNamespace(name))
	informer := factory.Core().V1().ServiceAccounts().Informer()
	factory.Start(t.Context().Done())
	synced(t, informer)
	expect(t, "watches with initial events", watches.Load(), 1)
	expect(t, "lists", lists.Load(), 0)
}

func TestASharedInformerSyncsAndSeesEveryChange(t *testing.T) {
	inEachFormat(t, func(t *testing.T, contentType string) {
		ctx, client, name := t.Context(), typed(t, contentType), namespace(t)
		maps := client.CoreV1().ConfigMaps(name)
		_, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "before"}}, metav1.CreateOptions{})
		must(t, err)
		factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(name))
		informer := factory.Core().V1().ConfigMaps()
		notified := notificationsOf(t, informer.Informer())
		factory.Start(ctx.Done())
		synced(t, informer.Informer())
		_, err = informer.Lister().ConfigMaps(name).Get("before")
		must(t, err)
		expect(t, "notified", next(t, "the existing object", notified), "add before")
		made, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "after"}}, metav1.CreateOptions{})
		must(t, err)
		expect(t, "notified", next(t, "an addition", notified), "add after")
		made.Data = map[string]string{"a": "b"}
		_, err = maps.Update(ctx, made, metav1.UpdateOptions{})
		must(t, err)
		expect(t, "notified", next(t, "an update", notified), "update after")
		must(t, maps.Delete(ctx, "after", metav1.DeleteOptions{}))
		expect(t, "notified", next(t, "a deletion", notified), "delete after")
	})
}

func TestADynamicInformerSyncsAndSeesEveryChange(t *testing.T) {
	serveWidgets(t)
	ctx, client, name := t.Context(), untyped(t), namespace(t)
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, 0, name, nil)
	informer := factory.ForResource(widgets).Informer()
	notified := notificationsOf(t, informer)
	factory.Start(ctx.Done())
	synced(t, informer)
	made, err := client.Resource(widgets).Namespace(name).Create(ctx, widget("gear", 3), metav1.CreateOptions{})
	must(t, err)
	expect(t, "notified", next(t, "an addition", notified), "add gear")
	must(t, unstructured.SetNestedField(made.Object, int64(4), "spec", "size"))
	made, err = client.Resource(widgets).Namespace(name).Update(ctx, made, metav1.UpdateOptions{})
	must(t, err)
	expect(t, "the generation", made.GetGeneration(), 2)
	expect(t, "notified", next(t, "an update", notified), "update gear")
	_, err = client.Resource(widgets).Namespace(name).Patch(ctx, "gear", types.MergePatchType, []byte(`{"status":{"phase":"Turning"}}`), metav1.PatchOptions{}, "status")
	must(t, err)
	expect(t, "notified", next(t, "a status", notified), "update gear")
	must(t, client.Resource(widgets).Namespace(name).Delete(ctx, "gear", metav1.DeleteOptions{}))
	expect(t, "notified", next(t, "a deletion", notified), "delete gear")
}

func TestAnInformerOfManyObjectsHoldsThemAll(t *testing.T) {
	ctx, client, name := t.Context(), typed(t, runtime.ContentTypeProtobuf), namespace(t)
	const many = 1200
	for i := range many {
		_, err := client.CoreV1().ConfigMaps(name).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("item-%d", i)}}, metav1.CreateOptions{})
		must(t, err)
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 50*time.Millisecond, informers.WithNamespace(name),
		informers.WithTweakListOptions(func(options *metav1.ListOptions) { options.FieldSelector = "metadata.name!=item-0" }))
	lister, informer := factory.Core().V1().ConfigMaps().Lister(), factory.Core().V1().ConfigMaps().Informer()
	factory.Start(ctx.Done())
	synced(t, informer)
	found, err := lister.List(labels.Everything())
	must(t, err)
	expect(t, "those with their names", count(found, "item-"), many-1)
}
