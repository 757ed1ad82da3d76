package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// applies checks server-side apply as controllers use it.
func applies(checks *checks, config *rest.Config, scheme *runtime.Scheme, home string) {
	live := checks.client
	checks.once("a patch of type Apply creates, conflicts and is forced", func(ctx context.Context) error {
		return appliesPatches(ctx, live, home)
	})
	checks.once("apply configurations are applied", func(ctx context.Context) error {
		return appliesConfigurations(ctx, live, home)
	})
	checks.once("a status is applied", func(ctx context.Context) error { return appliesStatuses(ctx, live, home) })
	sharesAnObject(checks, config, scheme, home)
	checks.once("drift is detected by a dry run and corrected", func(ctx context.Context) error {
		return correctsDrift(ctx, live, home)
	})
	checks.once("fields of other managers are taken over or released", func(ctx context.Context) error {
		return takesFieldsOver(ctx, live, home)
	})
}

// same returns an error unless both are equal.
func same[T comparable](what string, actual, expected T) error {
	if actual == expected {
		return nil
	}
	return fmt.Errorf("%s: expected %v, not %v", what, expected, actual)
}

// shown is a map as text, with sorted keys.
func shown(object map[string]string) string {
	text, err := json.Marshal(object)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// owners shows the managed fields of an object, sorted by manager: `one Apply {"f:data":…}`.
func owners(object client.Object) string {
	lines := []string{}
	for _, entry := range object.GetManagedFields() {
		fields := fieldpath.NewSet()
		if err := fields.FromJSON(bytes.NewReader(entry.FieldsV1.GetRawBytes())); err != nil {
			return err.Error()
		}
		text, err := fields.ToJSON()
		if err != nil {
			return err.Error()
		}
		line := fmt.Sprintf("%s %s %s", entry.Manager, entry.Operation, text)
		if entry.Subresource != "" {
			line = fmt.Sprintf("%s %s %s %s", entry.Manager, entry.Operation, entry.Subresource, text)
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// conflicts returns an error unless err is a conflict of field managers whose message has the part.
func conflicts(err error, part string) error {
	if apierrors.IsConflict(err) && apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict) && strings.Contains(err.Error(), part) {
		return nil
	}
	return fmt.Errorf("expected a conflict with %s, not %v", part, err)
}

func appliesPatches(ctx context.Context, live client.Client, home string) error {
	with := func(data map[string]string) *corev1.ConfigMap {
		return &corev1.ConfigMap{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
			ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: "patched"},
			Data:       data,
		}
	}
	made := with(map[string]string{"a": "1", "b": "1"})
	if err := live.Patch(ctx, made, client.Apply, client.FieldOwner("one")); err != nil {
		return err
	}
	if err := same("the owners", owners(made), `one Apply {"f:data":{"f:a":{},"f:b":{}}}`); err != nil {
		return err
	}
	other := map[string]string{"a": "2"}
	err := live.Patch(ctx, with(other), client.Apply, client.FieldOwner("two"))
	if err := conflicts(err, `conflict with "one": .data.a`); err != nil {
		return err
	}
	made = with(other)
	if err := live.Patch(ctx, made, client.Apply, client.FieldOwner("two"), client.ForceOwnership); err != nil {
		return err
	}
	if err := same("the data", shown(made.Data), `{"a":"2","b":"1"}`); err != nil {
		return err
	}
	return same("the owners", owners(made), "one Apply {\"f:data\":{\"f:b\":{}}}\ntwo Apply {\"f:data\":{\"f:a\":{}}}")
}

func appliesConfigurations(ctx context.Context, live client.Client, home string) error {
	with := func(data map[string]string) *applycorev1.ConfigMapApplyConfiguration {
		return applycorev1.ConfigMap("configured", home).WithData(data)
	}
	first := with(map[string]string{"a": "1", "b": "1"})
	if err := live.Apply(ctx, first, client.FieldOwner("one")); err != nil {
		return err
	}
	if first.UID == nil {
		return fmt.Errorf("the answer: expected a uid in the configuration, not %v", first)
	}
	err := live.Apply(ctx, with(map[string]string{"a": "2"}), client.FieldOwner("two"))
	if err := conflicts(err, `conflict with "one": .data.a`); err != nil {
		return err
	}
	if err := live.Apply(ctx, with(map[string]string{"a": "2"}), client.FieldOwner("two"), client.ForceOwnership); err != nil {
		return err
	}
	if err := live.Apply(ctx, with(map[string]string{"c": "1"}), client.FieldOwner("one")); err != nil {
		return err
	}
	var made corev1.ConfigMap
	if err := live.Get(ctx, client.ObjectKey{Namespace: home, Name: "configured"}, &made); err != nil {
		return err
	}
	if err := same("the data", shown(made.Data), `{"a":"2","c":"1"}`); err != nil {
		return err
	}
	return same("the owners", owners(&made), "one Apply {\"f:data\":{\"f:c\":{}}}\ntwo Apply {\"f:data\":{\"f:a\":{}}}")
}

// widgetWith returns a widget with only one field.
func widgetWith(home, name, field string, value map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": checkGroup + "/v1",
		"kind":       "Widget",
		"metadata":   map[string]any{"namespace": home, "name": name},
		field:        value,
	}}
}

func appliesStatuses(ctx context.Context, live client.Client, home string) error {
	size := client.ApplyConfigurationFromUnstructured(widgetWith(home, "applied", "spec", map[string]any{"size": int64(1)}))
	if err := live.Apply(ctx, size, client.FieldOwner("one")); err != nil {
		return err
	}
	observed := func(size int64) *unstructured.Unstructured {
		return widgetWith(home, "applied", "status", map[string]any{"observed": size})
	}
	if err := live.Status().Patch(ctx, observed(1), client.Apply, client.FieldOwner("one")); err != nil {
		return err
	}
	second := func() runtime.ApplyConfiguration { return client.ApplyConfigurationFromUnstructured(observed(2)) }
	err := live.Status().Apply(ctx, second(), client.FieldOwner("two"))
	if err := conflicts(err, `conflict with "one" with subresource "status": .status.observed`); err != nil {
		return err
	}
	if err := live.Status().Apply(ctx, second(), client.FieldOwner("two"), client.ForceOwnership); err != nil {
		return err
	}
	made := widgetWith(home, "applied", "spec", nil)
	if err := live.Get(ctx, client.ObjectKeyFromObject(made), made); err != nil {
		return err
	}
	status, _, _ := unstructured.NestedInt64(made.Object, "status", "observed")
	if err := same("the status", status, 2); err != nil {
		return err
	}
	return same("the owners", owners(made), "one Apply {\"f:spec\":{\"f:size\":{}}}\ntwo Apply status {\"f:status\":{\"f:observed\":{}}}")
}

// sharesAnObject runs two controllers that each apply a field of one ConfigMap, while another client updates it.
func sharesAnObject(checks *checks, config *rest.Config, scheme *runtime.Scheme, home string) {
	const rounds = 20
	live, key := checks.client, client.ObjectKey{Namespace: home, Name: "shared"}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	var failure atomic.Value
	checks.once("two controllers of one object start", func(startup context.Context) error {
		manager, err := ctrl.NewManager(config, ctrl.Options{
			Scheme:  scheme,
			Metrics: metricsserver.Options{BindAddress: "0"},
			Cache:   cache.Options{DefaultNamespaces: map[string]cache.Config{home: {}}},
		})
		if err != nil {
			return err
		}
		for _, side := range []string{"left", "right"} {
			reconciler := reconcile.Func(func(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
				var widget Widget
				if err := manager.GetClient().Get(ctx, request.NamespacedName, &widget); err != nil || widget.Name != key.Name {
					return ctrl.Result{}, client.IgnoreNotFound(err)
				}
				wanted := applycorev1.ConfigMap(key.Name, home).WithData(map[string]string{side: fmt.Sprint(widget.Spec.Size)})
				err := manager.GetClient().Apply(ctx, wanted, client.FieldOwner(side))
				// The last one may be interrupted by the end.
				if err != nil && !errors.Is(err, context.Canceled) {
					failure.Store(fmt.Errorf("%s: %w", side, err))
				}
				return ctrl.Result{}, err
			})
			if err := ctrl.NewControllerManagedBy(manager).Named(side).For(&Widget{}).Complete(reconciler); err != nil {
				return err
			}
		}
		go func() { ended <- manager.Start(ctx) }()
		return live.Create(startup, &Widget{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: key.Name}, Spec: WidgetSpec{Size: 0}})
	})
	checks.that("both apply their field", func(ctx context.Context) (bool, error) {
		var made corev1.ConfigMap
		err := live.Get(ctx, key, &made)
		return len(made.Data) == 2, err
	})
	checks.once("another client updates the object meanwhile", func(ctx context.Context) error {
		for round := 1; round <= rounds; round++ {
			patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"size":%d}}`, round))
			if err := live.Patch(ctx, &Widget{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: key.Name}}, patch); err != nil {
				return err
			}
			err := retry.OnError(retry.DefaultBackoff, apierrors.IsConflict, func() error {
				var made corev1.ConfigMap
				if err := live.Get(ctx, key, &made); err != nil {
					return err
				}
				made.Annotations = map[string]string{"round": fmt.Sprint(round)}
				return live.Update(ctx, &made, client.FieldOwner("updater"))
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	checks.that("the fields of all three are there, and each owns its own", func(ctx context.Context) (bool, error) {
		var made corev1.ConfigMap
		if err := live.Get(ctx, key, &made); err != nil {
			return false, err
		}
		expected := "left Apply {\"f:data\":{\"f:left\":{}}}\nright Apply {\"f:data\":{\"f:right\":{}}}\n" +
			"updater Update {\"f:metadata\":{\"f:annotations\":{\".\":{},\"f:round\":{}}}}"
		if err := same("the owners", owners(&made), expected); err != nil {
			return false, err
		}
		fields := maps.Clone(made.Data)
		maps.Copy(fields, made.Annotations)
		return true, same("the fields", shown(fields), fmt.Sprintf(`{"left":"%d","right":"%d","round":"%d"}`, rounds, rounds, rounds))
	})
	stop()
	checks.once("no apply of either failed", func(ctx context.Context) error {
		select {
		case err := <-ended:
			if err != nil {
				return err
			}
		case <-ctx.Done():
			return fmt.Errorf("the manager does not stop")
		}
		if failed, ok := failure.Load().(error); ok {
			return failed
		}
		return nil
	})
}
