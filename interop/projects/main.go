// An operator over the projects of a k1s server, with client-go alone: an informer per project, through the project's
// control-plane path, found by a watch of Projects, as Milo's provider does it. KUBECONFIG names the host.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
)

var (
	definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	gadgets     = schema.GroupVersionResource{Group: "projects.interop.k1s.dev", Version: "v1", Resource: "gadgets"}
)

func main() {
	klog.SetLogger(logr.Discard())
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	config.QPS = -1
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	checks := &checks{ctx: ctx, config: config, host: dynamic.NewForConfigOrDie(config)}
	checks.all()
	if checks.failed {
		os.Exit(1)
	}
}

// checks run one after the other; each prints one line.
type checks struct {
	ctx    context.Context
	config *rest.Config
	host   dynamic.Interface
	failed bool
}

// that repeats a check until it holds.
func (c *checks) that(what string, holds func() error) {
	var last error
	err := wait.PollUntilContextTimeout(c.ctx, 10*time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) {
		last = holds()
		return last == nil, nil
	})
	if err == nil {
		fmt.Println("ok    projects:", what)
		return
	}
	fmt.Println("FAIL  projects:", what+":", last)
	c.failed = true
}

func (c *checks) create(name string) error {
	project := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "resourcemanager.miloapis.com/v1alpha1", "kind": "Project",
		"metadata": map[string]any{"name": name},
		"spec":     map[string]any{"ownerRef": map[string]any{"kind": "Organization", "name": "acme"}},
	}}
	_, err := c.host.Resource(projects).Create(c.ctx, project, metav1.CreateOptions{})
	return err
}

func (c *checks) annotate(name, annotation, value string) error {
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%s}}}`, annotation, value)
	_, err := c.host.Resource(projects).Patch(c.ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// condition expects the status and reason of a condition.
func (c *checks) condition(of schema.GroupVersionResource, name, kind, status, reason string) error {
	object, err := c.host.Resource(of).Get(c.ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	found := meta.FindStatusCondition(conditions(object), kind)
	if found == nil || string(found.Status) != status || found.Reason != reason {
		return fmt.Errorf("%s is %+v", kind, found)
	}
	if found.ObservedGeneration != object.GetGeneration() {
		return fmt.Errorf("%s was observed at generation %d of %d", kind, found.ObservedGeneration, object.GetGeneration())
	}
	return nil
}

func (c *checks) inside(fleet *fleet, project string) *kubernetes.Clientset {
	config, err := fleet.config(project)
	if err != nil {
		panic(err)
	}
	return kubernetes.NewForConfigOrDie(config)
}

// ask creates a ConfigMap with a question; it is no error if it exists.
func (c *checks) ask(fleet *fleet, project, name string) error {
	asked := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"question": "where"}}
	_, err := c.inside(fleet, project).CoreV1().ConfigMaps("default").Create(c.ctx, asked, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// answered expects the answer of the operator.
func (c *checks) answered(fleet *fleet, project, name string) error {
	found, err := c.inside(fleet, project).CoreV1().ConfigMaps("default").Get(c.ctx, name, metav1.GetOptions{})
	if err == nil && found.Data["answer"] != project {
		err = fmt.Errorf("the answer in %s is %q", project, found.Data["answer"])
	}
	return err
}

// gone deletes a project and expects it to be gone.
func (c *checks) gone(name string) error {
	err := c.host.Resource(projects).Delete(c.ctx, name, metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err == nil {
		err = fmt.Errorf("%s is still there", name)
	}
	return err
}

func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *checks) all() {
	outside, within := external(c.config), internal(c.config)
	if err := first(outside.run(c.ctx), within.run(c.ctx)); err != nil {
		fmt.Println("FAIL  projects: the operators do not start:", err)
		c.failed = true
		return
	}
	c.life(outside, within)
	c.documents(outside)
	c.templates(outside)
	c.suspension(outside)
	c.refusals(outside)
	c.many(outside)
}

func (c *checks) life(outside, within *fleet) {
	for _, name := range []string{"go-a", "go-b"} {
		if err := c.create(name); err != nil {
			fmt.Println("FAIL  projects: create", name, err)
			c.failed = true
		}
		c.that(name+" becomes ready, and so does its control plane", func() error {
			return first(c.condition(projects, name, "Ready", "True", "Ready"), c.condition(planes, name, "ControlPlaneReady", "True", "Ready"))
		})
		c.that("the operator works in "+name+" through its path", func() error {
			return first(c.ask(outside, name, "where"), c.answered(outside, name, "where"))
		})
		c.that("an operator that finds control planes works in "+name+" by its address", func() error {
			if !within.isEngaged(name) {
				return fmt.Errorf("not engaged")
			}
			return first(c.ask(within, name, "where-within"), c.answered(within, name, "where-within"), c.answered(outside, name, "where-within"))
		})
	}
	c.that("projects do not see each other, nor does the host see them", func() error {
		if err := c.ask(outside, "go-a", "only-a"); err != nil {
			return err
		}
		_, other := c.inside(outside, "go-b").CoreV1().ConfigMaps("default").Get(c.ctx, "only-a", metav1.GetOptions{})
		_, host := kubernetes.NewForConfigOrDie(c.config).CoreV1().ConfigMaps("default").Get(c.ctx, "only-a", metav1.GetOptions{})
		if !apierrors.IsNotFound(other) || !apierrors.IsNotFound(host) {
			return fmt.Errorf("go-b: %v, host: %v", other, host)
		}
		return nil
	})
	c.that("a deleted project is disengaged, and its path is gone", func() error {
		if err := c.gone("go-b"); err != nil {
			return err
		}
		if outside.isEngaged("go-b") || within.isEngaged("go-b") {
			return fmt.Errorf("still engaged")
		}
		_, err := c.inside(outside, "go-b").CoreV1().ConfigMaps("default").List(c.ctx, metav1.ListOptions{})
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("its path answers %v", err)
		}
		_, err = c.host.Resource(planes).Get(c.ctx, "go-b", metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("its ProjectControlPlane: %v", err)
		}
		return nil
	})
	if err := c.create("go-b"); err != nil {
		fmt.Println("FAIL  projects: create go-b again", err)
		c.failed = true
	}
	c.that("a new project of the same name is empty, and worked in", func() error {
		_, err := c.inside(outside, "go-b").CoreV1().ConfigMaps("default").Get(c.ctx, "where", metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("the old object: %v", err)
		}
		return first(c.ask(outside, "go-b", "again"), c.answered(outside, "go-b", "again"))
	})
}

func (c *checks) documents(outside *fleet) {
	c.that("a project's path has discovery, OpenAPI and health of its own", func() error {
		client := c.inside(outside, "go-a")
		groups, resources, err := client.Discovery().ServerGroupsAndResources()
		if err != nil {
			return err
		}
		if len(resources) < 10 || slices.ContainsFunc(groups, func(group *metav1.APIGroup) bool { return group.Name == projects.Group }) {
			return fmt.Errorf("%d groups, %d versions", len(groups), len(resources))
		}
		paths, err := client.Discovery().OpenAPIV3().Paths()
		if err != nil {
			return err
		}
		if _, err := paths["api/v1"].Schema("application/json"); err != nil {
			return err
		}
		if _, err := client.Discovery().ServerVersion(); err != nil {
			return err
		}
		text, err := client.RESTClient().Get().AbsPath("/readyz").DoRaw(c.ctx)
		if err == nil && string(text) != "ok" {
			err = fmt.Errorf("/readyz: %s", text)
		}
		return err
	})
	c.that("a list of projects has the columns Ready and Age", func() error {
		client := kubernetes.NewForConfigOrDie(c.config)
		raw, err := client.RESTClient().Get().AbsPath("/apis", projects.Group, projects.Version, "projects").
			SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").DoRaw(c.ctx)
		if err != nil {
			return err
		}
		var table metav1.Table
		if err := json.Unmarshal(raw, &table); err != nil {
			return err
		}
		var names []string
		for _, column := range table.ColumnDefinitions {
			names = append(names, column.Name)
		}
		if !slices.Equal(names, []string{"Name", "Ready", "Reason", "Age"}) {
			return fmt.Errorf("%v", names)
		}
		return nil
	})
}

func (c *checks) templates(outside *fleet) {
	definition := func(fields map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
			"metadata": map[string]any{"name": "gadgets.projects.interop.k1s.dev", "labels": map[string]any{"projects.k1s.dev/template": "default"}},
			"spec": map[string]any{
				"group": gadgets.Group, "scope": "Namespaced",
				"names": map[string]any{"kind": "Gadget", "listKind": "GadgetList", "plural": "gadgets", "singular": "gadget"},
				"versions": []any{map[string]any{
					"name": "v1", "served": true, "storage": true,
					"schema": map[string]any{"openAPIV3Schema": map[string]any{
						"type":       "object",
						"properties": map[string]any{"spec": map[string]any{"type": "object", "properties": fields}},
					}},
				}},
			},
		}}
	}
	field := map[string]any{"type": "string"}
	apply := func(fields map[string]any) error {
		_, err := c.host.Resource(definitions).Apply(c.ctx, "gadgets.projects.interop.k1s.dev", definition(fields), metav1.ApplyOptions{FieldManager: "interop", Force: true})
		return err
	}
	config, err := outside.config("go-a")
	if err != nil {
		panic(err)
	}
	inside := dynamic.NewForConfigOrDie(config).Resource(gadgets).Namespace("default")
	written := func(name, key string) error {
		gadget := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "projects.interop.k1s.dev/v1", "kind": "Gadget",
			"metadata": map[string]any{"name": name}, "spec": map[string]any{key: "x"},
		}}
		created, err := inside.Create(c.ctx, gadget, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		if _, kept, _ := unstructured.NestedString(created.Object, "spec", key); !kept {
			_ = inside.Delete(c.ctx, name, metav1.DeleteOptions{})
			return fmt.Errorf("%s was pruned", key)
		}
		return nil
	}
	c.that("a definition of the template reaches a project that exists", func() error {
		return first(apply(map[string]any{"a": field}), written("one", "a"))
	})
	c.that("and so does its change", func() error {
		return first(apply(map[string]any{"a": field, "b": field}), written("two", "b"))
	})
}

func (c *checks) suspension(outside *fleet) {
	const suspend = "projects.k1s.dev/suspend"
	c.that("a suspended project is disengaged and answers 403", func() error {
		if err := c.annotate("go-a", suspend, `"true"`); err != nil {
			return err
		}
		if err := c.condition(projects, "go-a", "Ready", "False", "Suspended"); err != nil {
			return err
		}
		_, err := c.inside(outside, "go-a").CoreV1().ConfigMaps("default").List(c.ctx, metav1.ListOptions{})
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "suspended") || outside.isEngaged("go-a") {
			return fmt.Errorf("engaged: %v, %v", outside.isEngaged("go-a"), err)
		}
		return nil
	})
	c.that("and works on when it is resumed", func() error {
		return first(c.annotate("go-a", suspend, "null"), c.ask(outside, "go-a", "resumed"), c.answered(outside, "go-a", "resumed"))
	})
}

func (c *checks) refusals(outside *fleet) {
	c.that("a project that does not exist answers 404 with its name", func() error {
		_, err := c.inside(outside, "nowhere").CoreV1().ConfigMaps("default").List(c.ctx, metav1.ListOptions{})
		status, ok := err.(apierrors.APIStatus)
		if !ok || status.Status().Code != 404 || status.Status().Details.Kind != "projects" || status.Status().Details.Name != "nowhere" {
			return fmt.Errorf("%v", err)
		}
		return nil
	})
	if err := c.create("default"); err != nil {
		fmt.Println("FAIL  projects: create default", err)
		c.failed = true
	}
	c.that("a project cannot have the name of the host", func() error {
		return c.condition(projects, "default", "Ready", "False", "ProjectNameConflict")
	})
	c.that("and is deleted without it", func() error { return c.gone("default") })
	c.that("the host is still there", func() error {
		_, err := kubernetes.NewForConfigOrDie(c.config).CoreV1().Namespaces().Get(c.ctx, "default", metav1.GetOptions{})
		return err
	})
}

func (c *checks) many(outside *fleet) {
	var names []string
	for number := range 20 {
		names = append(names, fmt.Sprintf("go-many-%d", number))
		if err := c.create(names[number]); err != nil {
			fmt.Println("FAIL  projects: create", names[number], err)
			c.failed = true
		}
	}
	c.that("twenty projects at once are worked in", func() error {
		for _, name := range names {
			if err := first(c.ask(outside, name, "where"), c.answered(outside, name, "where")); err != nil {
				return err
			}
		}
		return nil
	})
	c.that("and deleted", func() error {
		var last error
		for _, name := range append(names, "go-a", "go-b") {
			if err := c.gone(name); err != nil {
				last = err
			}
		}
		return last
	})
	c.that("no tenant is left", func() error {
		raw, err := kubernetes.NewForConfigOrDie(c.config).RESTClient().Get().AbsPath("/k1s/v1/tenants").DoRaw(c.ctx)
		if err == nil && strings.Contains(string(raw), `"go-`) {
			err = fmt.Errorf("%s", raw)
		}
		return err
	})
}
