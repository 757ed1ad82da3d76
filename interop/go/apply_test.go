package interop

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	applyappsv1 "k8s.io/client-go/applyconfigurations/apps/v1"
	applyautoscalingv1 "k8s.io/client-go/applyconfigurations/autoscaling/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/metadata"
)

// managed shows managed fields without times, one manager after the other: `one Apply v1 {"f:data":…}`.
func managed(t *testing.T, entries []metav1.ManagedFieldsEntry) string {
	t.Helper()
	shown := make([]string, 0, len(entries))
	for _, entry := range entries {
		words := []string{entry.Manager, string(entry.Operation), entry.APIVersion}
		if entry.Subresource != "" {
			words = append(words, entry.Subresource)
		}
		fields := "no fields"
		if entry.FieldsV1 != nil {
			// Decoded and encoded again, for the order of the keys.
			var decoded any
			must(t, json.Unmarshal(entry.FieldsV1.GetRawBytes(), &decoded))
			encoded, err := json.Marshal(decoded)
			must(t, err)
			fields = string(encoded)
		}
		if entry.FieldsType != "FieldsV1" {
			fields = entry.FieldsType + " " + fields
		}
		shown = append(shown, strings.Join(append(words, fields), " "))
	}
	return strings.Join(shown, "\n")
}

// conflict checks that an error is a conflict of field managers, and returns its sorted causes: `.data.a conflict with "one"`.
func conflict(t *testing.T, err error) string {
	t.Helper()
	if !errors.IsConflict(err) || !errors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict) {
		t.Fatalf("expected a conflict of field managers, not %v", err)
	}
	causes := []string{}
	for _, cause := range err.(errors.APIStatus).Status().Details.Causes {
		causes = append(causes, cause.Field+" "+cause.Message)
	}
	slices.Sort(causes)
	return strings.Join(causes, "\n")
}

func as(manager string) metav1.ApplyOptions { return metav1.ApplyOptions{FieldManager: manager} }

func forced(manager string) metav1.ApplyOptions {
	return metav1.ApplyOptions{FieldManager: manager, Force: true}
}

func TestApplyCreatesChangesAndRemovesFields(t *testing.T) {
	inEachFormat(t, func(t *testing.T, contentType string) {
		ctx, name := t.Context(), namespace(t)
		client := typed(t, contentType).CoreV1().ConfigMaps(name)
		wanted := applycorev1.ConfigMap("applied", name).WithLabels(map[string]string{"x": "y"}).WithData(map[string]string{"a": "1", "b": "2"})
		dry := as("one")
		dry.DryRun = []string{metav1.DryRunAll}
		made, err := client.Apply(ctx, wanted, dry)
		must(t, err)
		expect(t, "what a dry run would create", made.Data["a"], "1")
		_, err = client.Get(ctx, "applied", metav1.GetOptions{})
		expect(t, "a dry run leaves nothing", errors.IsNotFound(err), true)
		made, err = client.Apply(ctx, wanted, as("one"))
		must(t, err)
		expect(t, "the managers", managed(t, made.ManagedFields), `one Apply v1 {"f:data":{"f:a":{},"f:b":{}},"f:metadata":{"f:labels":{"f:x":{}}}}`)
		expect(t, "the entry has a time", made.ManagedFields[0].Time.IsZero(), false)
		again, err := client.Apply(ctx, wanted, as("one"))
		must(t, err)
		expect(t, "the version after the same apply", again.ResourceVersion, made.ResourceVersion)
		changed, err := client.Apply(ctx, applycorev1.ConfigMap("applied", name).WithData(map[string]string{"a": "3"}), as("one"))
		must(t, err)
		expect(t, "the fields that are left", len(changed.Labels)+len(changed.Data), 1)
		expect(t, "the changed field", changed.Data["a"], "3")
		stale := applycorev1.ConfigMap("applied", name).WithResourceVersion(made.ResourceVersion).WithData(map[string]string{"a": "4"})
		_, err = client.Apply(ctx, stale, as("one"))
		expect(t, "an old version is a conflict", errors.IsConflict(err), true)
		expect(t, "of versions, not of managers", errors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict), false)
		_, err = client.Apply(ctx, wanted, metav1.ApplyOptions{})
		expect(t, "an apply without a manager is invalid", errors.IsInvalid(err), true)
	})
}

func TestConflictsOfApplyNameManagersAndFields(t *testing.T) {
	inEachFormat(t, func(t *testing.T, contentType string) {
		ctx, name := t.Context(), namespace(t)
		client := typed(t, contentType).CoreV1().ConfigMaps(name)
		with := func(data map[string]string) *applycorev1.ConfigMapApplyConfiguration {
			return applycorev1.ConfigMap("shared", name).WithData(data)
		}
		made, err := client.Apply(ctx, with(map[string]string{"a": "1", "b": "1"}), as("one"))
		must(t, err)
		_, err = client.Apply(ctx, with(map[string]string{"a": "2"}), as("two"))
		expect(t, "the causes", conflict(t, err), `.data.a conflict with "one"`)
		made.Data["b"] = "3"
		_, err = client.Update(ctx, made, metav1.UpdateOptions{FieldManager: "three"})
		must(t, err)
		_, err = client.Apply(ctx, with(map[string]string{"a": "2", "b": "2"}), as("two"))
		expect(t, "the causes", conflict(t, err), ".data.a conflict with \"one\"\n.data.b conflict with \"three\" using v1")
		made, err = client.Apply(ctx, with(map[string]string{"a": "2", "b": "3", "c": "2"}), forced("two"))
		must(t, err)
		expect(t, "a forced field", made.Data["a"], "2")
		expect(t, "the managers", managed(t, made.ManagedFields),
			"two Apply v1 {\"f:data\":{\"f:a\":{},\"f:b\":{},\"f:c\":{}}}\nthree Update v1 {\"f:data\":{\"f:b\":{}}}")
		made, err = client.Apply(ctx, with(map[string]string{"c": "2"}), as("two"))
		must(t, err)
		expect(t, "the field of another manager stays", made.Data["b"], "3")
		_, found := made.Data["a"]
		expect(t, "the field without a manager is gone", found, false)
	})
}

func TestApplyMergesContainersByName(t *testing.T) {
	inEachFormat(t, func(t *testing.T, contentType string) {
		ctx, name := t.Context(), namespace(t)
		client := typed(t, contentType).AppsV1().Deployments(name)
		labels := map[string]string{"app": "web"}
		with := func(containers ...*applycorev1.ContainerApplyConfiguration) *applyappsv1.DeploymentApplyConfiguration {
			return applyappsv1.Deployment("web", name).WithSpec(applyappsv1.DeploymentSpec().
				WithSelector(applymetav1.LabelSelector().WithMatchLabels(labels)).
				WithTemplate(applycorev1.PodTemplateSpec().WithLabels(labels).WithSpec(applycorev1.PodSpec().WithContainers(containers...))))
		}
		container := applycorev1.Container
		_, err := client.Apply(ctx, with(container().WithName("server").WithImage("nginx:1")), as("one"))
		must(t, err)
		made, err := client.Apply(ctx, with(container().WithName("helper").WithImage("busybox:1")), as("two"))
		must(t, err)
		expect(t, "the containers", len(made.Spec.Template.Spec.Containers), 2)
		made, err = client.Apply(ctx, with(container().WithName("server").WithEnv(applycorev1.EnvVar().WithName("MODE").WithValue("fast"))), as("two"))
		must(t, err)
		expect(t, "the containers", len(made.Spec.Template.Spec.Containers), 1)
		server := made.Spec.Template.Spec.Containers[0]
		expect(t, "the image of one manager", server.Image, "nginx:1")
		expect(t, "the variables of the other", len(server.Env), 1)
	})
}

func TestStatusAndScaleAreApplied(t *testing.T) {
	inEachFormat(t, func(t *testing.T, contentType string) {
		ctx, name := t.Context(), namespace(t)
		client := typed(t, contentType).AppsV1().Deployments(name)
		labels := map[string]string{"app": "web"}
		wanted := func() *applyappsv1.DeploymentApplyConfiguration {
			return applyappsv1.Deployment("web", name).WithSpec(applyappsv1.DeploymentSpec().
				WithSelector(applymetav1.LabelSelector().WithMatchLabels(labels)).
				WithTemplate(applycorev1.PodTemplateSpec().WithLabels(labels).WithSpec(applycorev1.PodSpec().
					WithContainers(applycorev1.Container().WithName("server").WithImage("nginx:1")))))
		}
		full := wanted()
		full.Spec.WithReplicas(2)
		_, err := client.Apply(ctx, full, as("owner"))
		must(t, err)
		scale := applyautoscalingv1.Scale().WithName("web").WithNamespace(name).WithSpec(applyautoscalingv1.ScaleSpec().WithReplicas(5))
		_, err = client.ApplyScale(ctx, "web", scale, as("scaler"))
		expect(t, "the causes", conflict(t, err), `.spec.replicas conflict with "owner"`)
		scaled, err := client.ApplyScale(ctx, "web", scale, forced("scaler"))
		must(t, err)
		expect(t, "the scale", scaled.Spec.Replicas, 5)
		made, err := client.Apply(ctx, wanted(), as("owner"))
		must(t, err)
		expect(t, "the replicas, handed over", *made.Spec.Replicas, 5)
		condition := func(kind appsv1.DeploymentConditionType) *applyappsv1.DeploymentApplyConfiguration {
			return applyappsv1.Deployment("web", name).WithStatus(applyappsv1.DeploymentStatus().WithConditions(
				applyappsv1.DeploymentCondition().WithType(kind).WithStatus(corev1.ConditionTrue)))
		}
		_, err = client.ApplyStatus(ctx, condition(appsv1.DeploymentAvailable), as("available"))
		must(t, err)
		made, err = client.ApplyStatus(ctx, condition(appsv1.DeploymentProgressing), as("progressing"))
		must(t, err)
		expect(t, "the conditions of both managers", len(made.Status.Conditions), 2)
		expect(t, "the generation", made.Generation, 2)
		for _, line := range []string{
			`scaler Apply apps/v1 scale {"f:spec":{"f:replicas":{}}}`,
			`available Apply apps/v1 status {"f:status":{"f:conditions":{"k:{\"type\":\"Available\"}":{".":{},"f:status":{},"f:type":{}}}}}`,
		} {
			if shown := managed(t, made.ManagedFields); !strings.Contains(shown, line) {
				t.Fatalf("the managers: expected %s in:\n%s", line, shown)
			}
		}
		extracted, err := applyappsv1.ExtractDeploymentStatus(made, "available")
		must(t, err)
		expect(t, "the extracted conditions", len(extracted.Status.Conditions), 1)
	})
}

func TestAnExtractedConfigurationHoldsTheFieldsOfOneManager(t *testing.T) {
	inEachFormat(t, func(t *testing.T, contentType string) {
		ctx, name := t.Context(), namespace(t)
		client := typed(t, contentType).CoreV1().ConfigMaps(name)
		_, err := client.Apply(ctx, applycorev1.ConfigMap("shared", name).WithData(map[string]string{"a": "1", "b": "1"}), as("one"))
		must(t, err)
		made, err := client.Apply(ctx, applycorev1.ConfigMap("shared", name).WithData(map[string]string{"c": "2"}), as("two"))
		must(t, err)
		extracted, err := applycorev1.ExtractConfigMap(made, "one")
		must(t, err)
		encoded, err := json.Marshal(extracted.Data)
		must(t, err)
		expect(t, "the data of one manager", string(encoded), `{"a":"1","b":"1"}`)
		delete(extracted.Data, "a")
		extracted.WithData(map[string]string{"b": "3"})
		made, err = client.Apply(ctx, extracted, as("one"))
		must(t, err)
		encoded, err = json.Marshal(made.Data)
		must(t, err)
		expect(t, "the data after the extracted configuration was changed", string(encoded), `{"b":"3","c":"2"}`)
		none, err := applycorev1.ExtractConfigMap(made, "nobody")
		must(t, err)
		expect(t, "the data of nobody", len(none.Data), 0)
	})
}

func TestTheDynamicClientAppliesACustomResource(t *testing.T) {
	serveWidgets(t)
	ctx, name := t.Context(), namespace(t)
	client := untyped(t).Resource(widgets).Namespace(name)
	with := func(field string, value any) *unstructured.Unstructured {
		made := widget("gear", 0)
		made.Object[field] = value
		return made
	}
	part := func(name string, weight int64) any { return map[string]any{"name": name, "weight": weight} }
	spec := map[string]any{"colour": "red", "parts": []any{part("tooth", 3)}}
	made, err := client.Apply(ctx, "gear", with("spec", spec), as("one"))
	must(t, err)
	expect(t, "the managers, without the default", managed(t, made.GetManagedFields()),
		`one Apply go.interop.k1s.dev/v1 {"f:spec":{"f:colour":{},"f:parts":{"k:{\"name\":\"tooth\"}":{".":{},"f:name":{},"f:weight":{}}}}}`)
	size, _, _ := unstructured.NestedInt64(made.Object, "spec", "size")
	expect(t, "the default", size, 1)
	spec = map[string]any{"colour": "blue", "parts": []any{part("axle", 5)}}
	_, err = client.Apply(ctx, "gear", with("spec", spec), as("two"))
	expect(t, "the causes", conflict(t, err), `.spec.colour conflict with "one"`)
	made, err = client.Apply(ctx, "gear", with("spec", spec), forced("two"))
	must(t, err)
	parts, _, _ := unstructured.NestedSlice(made.Object, "spec", "parts")
	expect(t, "the parts of both managers", len(parts), 2)
	colour, _, _ := unstructured.NestedString(made.Object, "spec", "colour")
	expect(t, "the forced colour", colour, "blue")
	status := with("status", map[string]any{"phase": "Turning"})
	made, err = client.ApplyStatus(ctx, "gear", status, as("turner"))
	must(t, err)
	phase, _, _ := unstructured.NestedString(made.Object, "status", "phase")
	expect(t, "the phase", phase, "Turning")
	size, _, _ = unstructured.NestedInt64(made.Object, "spec", "size")
	expect(t, "the size, which is not in the status", size, 1)
	line := `turner Apply go.interop.k1s.dev/v1 status {"f:status":{"f:phase":{}}}`
	if shown := managed(t, made.GetManagedFields()); !strings.Contains(shown, line) {
		t.Fatalf("the managers: expected %s in:\n%s", line, shown)
	}
}

func TestManagedFieldsAreSeenByWatchesInformersAndTheMetadataClient(t *testing.T) {
	inEachFormat(t, func(t *testing.T, contentType string) {
		ctx, client, name := t.Context(), typed(t, contentType), namespace(t)
		maps := client.CoreV1().ConfigMaps(name)
		with := func(value string) *applycorev1.ConfigMapApplyConfiguration {
			return applycorev1.ConfigMap("seen", name).WithData(map[string]string{"a": value})
		}
		expected := `one Apply v1 {"f:data":{"f:a":{}}}`
		made, err := maps.Apply(ctx, with("1"), as("one"))
		must(t, err)
		watcher, err := maps.Watch(ctx, metav1.ListOptions{ResourceVersion: made.ResourceVersion, FieldSelector: "metadata.name=seen"})
		must(t, err)
		defer watcher.Stop()
		factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(name))
		informer := factory.Core().V1().ConfigMaps()
		informer.Informer()
		factory.Start(ctx.Done())
		synced(t, informer.Informer())
		// The second apply changes nothing, so the watch does not see it.
		for _, value := range []string{"1", "2"} {
			made, err = maps.Apply(ctx, with(value), as("one"))
			must(t, err)
		}
		event := next(t, "the event of an apply", watcher.ResultChan())
		expect(t, "the event", event.Type, watch.Modified)
		seen := event.Object.(*corev1.ConfigMap)
		expect(t, "the watched version", seen.ResourceVersion, made.ResourceVersion)
		expect(t, "the watched managers", managed(t, seen.ManagedFields), expected)
		soon(t, "the informer sees the apply", func(context.Context) bool {
			cached, err := informer.Lister().ConfigMaps(name).Get("seen")
			must(t, err)
			expect(t, "the cached managers", managed(t, cached.ManagedFields), expected)
			return cached.ResourceVersion == made.ResourceVersion
		})
		metadatas, err := metadata.NewForConfig(config(t, contentType))
		must(t, err)
		partial, err := metadatas.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace(name).Get(ctx, "seen", metav1.GetOptions{})
		must(t, err)
		expect(t, "the managers in the metadata", managed(t, partial.ManagedFields), expected)
	})
}

func TestManagedFieldsAreResetWithAnEmptyList(t *testing.T) {
	inEachFormat(t, func(t *testing.T, contentType string) {
		ctx, name := t.Context(), namespace(t)
		client := typed(t, contentType).CoreV1().ConfigMaps(name)
		applied := func() *corev1.ConfigMap {
			made, err := client.Apply(ctx, applycorev1.ConfigMap("reset", name).WithData(map[string]string{"a": "1"}), as("one"))
			must(t, err)
			return made
		}
		made := applied()
		made.ManagedFields = nil
		made, err := client.Update(ctx, made, metav1.UpdateOptions{FieldManager: "two"})
		must(t, err)
		expect(t, "the managers after an update without managed fields", managed(t, made.ManagedFields), `one Apply v1 {"f:data":{"f:a":{}}}`)
		made, err = client.Patch(ctx, "reset", types.JSONPatchType, []byte(`[{"op":"replace","path":"/metadata/managedFields","value":[]}]`), metav1.PatchOptions{})
		must(t, err)
		expect(t, "the managers after a JSON patch with []", managed(t, made.ManagedFields), "")
		made.Data["b"] = "2"
		made, err = client.Update(ctx, made, metav1.UpdateOptions{FieldManager: "two"})
		must(t, err)
		expect(t, "the managers after an update of an object without managers", managed(t, made.ManagedFields), "")
		before := "before-first-apply Update v1 {\"f:data\":{\".\":{},\"f:a\":{},\"f:b\":{}}}"
		made = applied()
		for _, line := range []string{before, `one Apply v1 {"f:data":{"f:a":{}}}`} {
			if shown := managed(t, made.ManagedFields); !strings.Contains(shown, line) {
				t.Fatalf("the managers after the first apply: expected %s in:\n%s", line, shown)
			}
		}
		// An empty list is left out of typed objects; a list with an empty entry is the same.
		made.ManagedFields = []metav1.ManagedFieldsEntry{{}}
		made, err = client.Update(ctx, made, metav1.UpdateOptions{FieldManager: "two"})
		must(t, err)
		expect(t, "the managers after an update with an empty entry", managed(t, made.ManagedFields), "")
	})
}

func TestUpdatesAreManagedByNameOrUserAgent(t *testing.T) {
	inEachFormat(t, func(t *testing.T, contentType string) {
		ctx, name, config := t.Context(), namespace(t), config(t, contentType)
		config.UserAgent = "robot/v1.2 (linux) interop"
		client := newClient(t, config).CoreV1().ConfigMaps(name)
		made, err := client.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "one"}, Data: map[string]string{"a": "1"}}, metav1.CreateOptions{})
		must(t, err)
		made.Data["b"] = "2"
		made, err = client.Update(ctx, made, metav1.UpdateOptions{FieldManager: "updater"})
		must(t, err)
		_, err = client.Patch(ctx, "one", types.MergePatchType, []byte(`{"metadata":{"labels":{"x":"y"}}}`), metav1.PatchOptions{FieldManager: "patcher"})
		must(t, err)
		made, err = client.Patch(ctx, "one", types.MergePatchType, []byte(`{"data":{"b":"2"}}`), metav1.PatchOptions{FieldManager: "idle"})
		must(t, err)
		shown := managed(t, made.ManagedFields)
		lines := []string{
			`robot Update v1 {"f:data":{".":{},"f:a":{}}}`,
			`updater Update v1 {"f:data":{"f:b":{}}}`,
			`patcher Update v1 {"f:metadata":{"f:labels":{".":{},"f:x":{}}}}`,
		}
		for _, line := range lines {
			if !strings.Contains(shown, line) {
				t.Fatalf("the managers: expected %s in:\n%s", line, shown)
			}
		}
		expect(t, "the number of managers", len(made.ManagedFields), len(lines))
	})
}

func TestConcurrentAppliesOfANewObjectAllSucceed(t *testing.T) {
	ctx, name := t.Context(), namespace(t)
	client := typed(t, runtime.ContentTypeProtobuf).CoreV1().ConfigMaps(name)
	const rounds, managers = 10, 6
	for round := range rounds {
		object := fmt.Sprintf("new-%d", round)
		done := make(chan error)
		for i := range managers {
			manager := fmt.Sprintf("manager-%d", i)
			wanted := applycorev1.ConfigMap(object, name).WithData(map[string]string{manager: "here"})
			go func() {
				_, err := client.Apply(ctx, wanted, as(manager))
				if err != nil {
					err = fmt.Errorf("%s, %s: expected no error, not %w", object, manager, err)
				}
				done <- err
			}()
		}
		// All of them end before the first error is shown.
		failures := []error{}
		for range managers {
			failures = append(failures, next(t, "an apply's end", done))
		}
		for _, err := range failures {
			must(t, err)
		}
		made, err := client.Get(ctx, object, metav1.GetOptions{})
		must(t, err)
		expect(t, "the fields of all managers", len(made.Data), managers)
		expect(t, "the managers", len(made.ManagedFields), managers)
	}
}
