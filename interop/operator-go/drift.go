package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// corrector is the field manager of a controller that keeps objects as they are in a repository.
const corrector = "drift-corrector"

// desired is a Deployment as it is in the repository.
func desired(home, name string) *unstructured.Unstructured {
	labels := map[string]any{"app": name}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1",
		"kind":       "Deployment",
		"metadata":   map[string]any{"namespace": home, "name": name, "labels": labels},
		"spec": map[string]any{
			"selector": map[string]any{"matchLabels": labels},
			"template": map[string]any{
				"metadata": map[string]any{"labels": labels},
				"spec":     map[string]any{"containers": []any{map[string]any{"name": "server", "image": "nginx:1"}}},
			},
		},
	}}
}

func correct(ctx context.Context, live client.Client, home, name string, options ...client.PatchOption) (*unstructured.Unstructured, error) {
	object := desired(home, name)
	options = append(options, client.FieldOwner(corrector), client.ForceOwnership)
	return object, live.Patch(ctx, object, client.Apply, options...)
}

// drifted compares the stored object with what a forced apply would make of it.
func drifted(ctx context.Context, live client.Client, home, name string) (bool, error) {
	stored := desired(home, name)
	if err := live.Get(ctx, client.ObjectKeyFromObject(stored), stored); err != nil {
		return false, err
	}
	corrected, err := correct(ctx, live, home, name, client.DryRunAll)
	if err != nil {
		return false, err
	}
	compared := func(object *unstructured.Unstructured) map[string]any {
		return map[string]any{"labels": object.GetLabels(), "annotations": object.GetAnnotations(), "spec": object.Object["spec"]}
	}
	return !reflect.DeepEqual(compared(stored), compared(corrected)), nil
}

// expectDrift returns an error unless the object has drifted as expected.
func expectDrift(ctx context.Context, live client.Client, home, name string, expected bool) error {
	actual, err := drifted(ctx, live, home, name)
	if err != nil {
		return err
	}
	return same("drift of "+name, actual, expected)
}

// server returns image and environment of the first container.
func server(object *unstructured.Unstructured) string {
	containers, _, _ := unstructured.NestedSlice(object.Object, "spec", "template", "spec", "containers")
	container, _ := containers[0].(map[string]any)
	return fmt.Sprintf("%v, environment %v", container["image"], container["env"])
}

// edit changes a Deployment as a person would do it with kubectl edit.
func edit(ctx context.Context, live client.Client, home, name string) error {
	object := desired(home, name)
	if err := live.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		return err
	}
	object.SetLabels(map[string]string{"app": name, "edited": "yes"})
	container := map[string]any{
		"name":  "server",
		"image": "nginx:2",
		"env":   []any{map[string]any{"name": "DEBUG", "value": "1"}},
	}
	if err := unstructured.SetNestedSlice(object.Object, []any{container}, "spec", "template", "spec", "containers"); err != nil {
		return err
	}
	return live.Update(ctx, object, client.FieldOwner("kubectl-edit"))
}

func correctsDrift(ctx context.Context, live client.Client, home string) error {
	const name = "drifting"
	made, err := correct(ctx, live, home, name)
	if err != nil {
		return err
	}
	version := made.GetResourceVersion()
	if err := expectDrift(ctx, live, home, name, false); err != nil {
		return err
	}
	made, err = correct(ctx, live, home, name)
	if err != nil {
		return err
	}
	if err := same("the version without drift", made.GetResourceVersion(), version); err != nil {
		return err
	}
	if err := edit(ctx, live, home, name); err != nil {
		return err
	}
	if err := expectDrift(ctx, live, home, name, true); err != nil {
		return err
	}
	made, err = correct(ctx, live, home, name)
	if err != nil {
		return err
	}
	if err := same("the corrected container", server(made), "nginx:1, environment [map[name:DEBUG value:1]]"); err != nil {
		return err
	}
	if err := same("the label of another manager", made.GetLabels()["edited"], "yes"); err != nil {
		return err
	}
	return expectDrift(ctx, live, home, name, false)
}

func takesFieldsOver(ctx context.Context, live client.Client, home string) error {
	const name = "taken"
	// An object of kubectl apply, with a label that is not in the repository.
	object := desired(home, name)
	object.SetLabels(map[string]string{"app": name, "old": "yes"})
	object.SetAnnotations(map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "{}"})
	if err := live.Create(ctx, object, client.FieldOwner("kubectl-client-side-apply")); err != nil {
		return err
	}
	if err := edit(ctx, live, home, name); err != nil {
		return err
	}
	if err := live.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		return err
	}
	entries, err := takenOver(object.GetManagedFields(), "kubectl-client-side-apply", "kubectl-edit")
	if err != nil {
		return err
	}
	if err := setManagedFields(ctx, live, object, entries); err != nil {
		return err
	}
	if line, _, _ := strings.Cut(owners(object), " {"); line != corrector+" Apply" || len(object.GetManagedFields()) != 1 {
		return fmt.Errorf("the owners: expected only %s Apply, not %s", corrector, owners(object))
	}
	made, err := correct(ctx, live, home, name)
	if err != nil {
		return err
	}
	if err := same("the labels", shown(made.GetLabels()), `{"app":"taken"}`); err != nil {
		return err
	}
	if err := same("the annotations", len(made.GetAnnotations()), 0); err != nil {
		return err
	}
	if err := same("the container", server(made), "nginx:1, environment <nil>"); err != nil {
		return err
	}
	if err := expectDrift(ctx, live, home, name, false); err != nil {
		return err
	}
	// Without its manager, a field stays until another manager owns it.
	if err := edit(ctx, live, home, name); err != nil {
		return err
	}
	if err := live.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		return err
	}
	entries = slices.DeleteFunc(object.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool { return entry.Manager == "kubectl-edit" })
	if err := setManagedFields(ctx, live, object, entries); err != nil {
		return err
	}
	if text := owners(object); strings.Contains(text, "kubectl-edit") {
		return fmt.Errorf("the owners: expected none called kubectl-edit in\n%s", text)
	}
	made, err = correct(ctx, live, home, name)
	if err != nil {
		return err
	}
	return same("the labels", shown(made.GetLabels()), `{"app":"taken","edited":"yes"}`)
}

// takenOver merges the entries of some managers into one of the corrector.
func takenOver(entries []metav1.ManagedFieldsEntry, managers ...string) ([]metav1.ManagedFieldsEntry, error) {
	owned, kept := fieldpath.NewSet(), []metav1.ManagedFieldsEntry{}
	var taken *metav1.ManagedFieldsEntry
	for _, entry := range entries {
		if entry.Subresource != "" || entry.Manager != corrector && !slices.Contains(managers, entry.Manager) {
			kept = append(kept, entry)
			continue
		}
		fields := fieldpath.NewSet()
		if err := fields.FromJSON(bytes.NewReader(entry.FieldsV1.GetRawBytes())); err != nil {
			return nil, err
		}
		owned = owned.Union(fields)
		taken = entry.DeepCopy()
	}
	if taken == nil {
		return nil, fmt.Errorf("the owners: expected one of %v, not %v", managers, entries)
	}
	text, err := owned.ToJSON()
	if err != nil {
		return nil, err
	}
	taken.Manager, taken.Operation, taken.FieldsV1 = corrector, metav1.ManagedFieldsOperationApply, metav1.NewFieldsV1(string(text))
	return append(kept, *taken), nil
}

// setManagedFields replaces the managed fields of an object with a JSON patch, unless the object has changed.
func setManagedFields(ctx context.Context, live client.Client, object *unstructured.Unstructured, entries []metav1.ManagedFieldsEntry) error {
	patch, err := json.Marshal([]map[string]any{
		{"op": "replace", "path": "/metadata/managedFields", "value": entries},
		{"op": "replace", "path": "/metadata/resourceVersion", "value": object.GetResourceVersion()},
	})
	if err != nil {
		return err
	}
	return live.Patch(ctx, object, client.RawPatch(types.JSONPatchType, patch), client.FieldOwner(corrector))
}
