package main

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

var (
	projects = schema.GroupVersionResource{Group: "resourcemanager.miloapis.com", Version: "v1alpha1", Resource: "projects"}
	planes   = schema.GroupVersionResource{Group: "infrastructure.miloapis.com", Version: "v1alpha1", Resource: "projectcontrolplanes"}
)

// fleet is an operator over projects: it finds them by a watch in the host, and answers the questions in their
// ConfigMaps with an informer in each.
type fleet struct {
	host *rest.Config
	// What is watched, the condition that has to be true, and whether control planes have addresses of their own.
	found     schema.GroupVersionResource
	condition string
	addresses bool

	mutex   sync.Mutex
	engaged map[string]context.CancelFunc
}

// external finds projects as an operator outside of the platform does.
func external(host *rest.Config) *fleet {
	return &fleet{host: host, found: projects, condition: "Ready", engaged: map[string]context.CancelFunc{}}
}

// internal finds their control planes, as an operator of the platform itself does.
func internal(host *rest.Config) *fleet {
	return &fleet{host: host, found: planes, condition: "ControlPlaneReady", addresses: true, engaged: map[string]context.CancelFunc{}}
}

// config is that of a project's control plane, as Milo's provider makes it.
func (f *fleet) config(project string) (*rest.Config, error) {
	config := rest.CopyConfig(f.host)
	address, err := url.Parse(config.Host)
	if err != nil {
		return nil, err
	}
	if f.addresses {
		// In a cluster, DNS leads such addresses to the server, whose certificate is for another name.
		server := address.Host
		config.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, server)
		}
		config.ServerName = address.Hostname()
		address.Path = ""
		address.Host = fmt.Sprintf("milo-apiserver.project-%s.svc.cluster.local:6443", project)
	} else {
		address.Path = fmt.Sprintf("/apis/resourcemanager.miloapis.com/v1alpha1/projects/%s/control-plane", project)
	}
	config.Host = address.String()
	return config, nil
}

// run follows the projects until the context ends.
func (f *fleet) run(ctx context.Context) error {
	client, err := dynamic.NewForConfig(f.host)
	if err != nil {
		return err
	}
	informer := dynamicinformer.NewDynamicSharedInformerFactory(client, 0).ForResource(f.found).Informer()
	look := func(object any) { f.look(ctx, object.(*unstructured.Unstructured)) }
	_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    look,
		UpdateFunc: func(_, object any) { look(object) },
		DeleteFunc: func(object any) {
			if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object); err == nil {
				f.disengage(key)
			}
		},
	})
	if err != nil {
		return err
	}
	go informer.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return ctx.Err()
	}
	return nil
}

func (f *fleet) look(ctx context.Context, project *unstructured.Unstructured) {
	if !meta.IsStatusConditionTrue(conditions(project), f.condition) {
		f.disengage(project.GetName())
		return
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if _, known := f.engaged[project.GetName()]; known {
		return
	}
	inside, cancel := context.WithCancel(ctx)
	if err := f.work(inside, project.GetName()); err != nil {
		fmt.Println("cannot work in", project.GetName(), err)
		cancel()
		return
	}
	f.engaged[project.GetName()] = cancel
}

func (f *fleet) disengage(project string) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if cancel, known := f.engaged[project]; known {
		cancel()
		delete(f.engaged, project)
	}
}

func (f *fleet) isEngaged(project string) bool {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	_, known := f.engaged[project]
	return known
}

// work answers the questions of a project with the project's name.
func (f *fleet) work(ctx context.Context, project string) error {
	config, err := f.config(project)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	answer := func(object any) {
		asked := object.(*corev1.ConfigMap)
		if _, ok := asked.Data["question"]; !ok || asked.Data["answer"] == project {
			return
		}
		answered := asked.DeepCopy()
		answered.Data["answer"] = project
		// A conflict means that a newer event follows.
		_, _ = client.CoreV1().ConfigMaps(asked.Namespace).Update(ctx, answered, metav1.UpdateOptions{})
	}
	_, err = factory.Core().V1().ConfigMaps().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    answer,
		UpdateFunc: func(_, object any) { answer(object) },
	})
	if err != nil {
		return err
	}
	factory.Start(ctx.Done())
	return nil
}

// conditions are those in the status of an object.
func conditions(object *unstructured.Unstructured) []metav1.Condition {
	found, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	var typed struct {
		Conditions []metav1.Condition `json:"conditions"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(map[string]any{"conditions": found}, &typed); err != nil {
		return nil
	}
	return typed.Conditions
}
