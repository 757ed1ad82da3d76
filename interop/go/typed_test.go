package interop

import (
	"context"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/util/retry"
)

func deployment(name string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	replicas := int32(2)
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{
					Name: "server", Image: "nginx:1.27",
					Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")}},
				}}},
			},
		},
	}
}

// inEachFormat runs a test with every wire format of built-in kinds.
func inEachFormat(t *testing.T, test func(t *testing.T, contentType string)) {
	for name, contentType := range formats {
		t.Run(name, func(t *testing.T) { test(t, contentType) })
	}
}

func TestATypedClientCreatesReadsUpdatesPatchesAndDeletes(t *testing.T) {
	inEachFormat(t, func(t *testing.T, contentType string) {
		ctx, client := t.Context(), typed(t, contentType).AppsV1().Deployments(namespace(t))
		made, err := client.Create(ctx, deployment("web"), metav1.CreateOptions{})
		must(t, err)
		expect(t, "the strategy's default", made.Spec.Strategy.Type, appsv1.RollingUpdateDeploymentStrategyType)
		expect(t, "the generation", made.Generation, 1)
		read, err := client.Get(ctx, "web", metav1.GetOptions{})
		must(t, err)
		expect(t, "the uid", read.UID, made.UID)
		read.Spec.Template.Spec.Containers[0].Image = "nginx:1.28"
		changed, err := client.Update(ctx, read, metav1.UpdateOptions{})
		must(t, err)
		expect(t, "the generation", changed.Generation, 2)
		_, err = client.Update(ctx, made, metav1.UpdateOptions{})
		expect(t, "an old version is a conflict", errors.IsConflict(err), true)
		patched, err := client.Patch(ctx, "web", types.StrategicMergePatchType,
			[]byte(`{"spec":{"template":{"spec":{"containers":[{"name":"more","image":"busybox"}]}}}}`), metav1.PatchOptions{})
		must(t, err)
		expect(t, "the containers", len(patched.Spec.Template.Spec.Containers), 2)
		list, err := client.List(ctx, metav1.ListOptions{LabelSelector: "app=web"})
		must(t, err)
		expect(t, "the list", len(list.Items), 1)
		must(t, client.Delete(ctx, "web", metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(made.UID))}))
		soon(t, "the deployment is gone", func(context.Context) bool {
			_, err := client.Get(ctx, "web", metav1.GetOptions{})
			return errors.IsNotFound(err)
		})
	})
}

func TestErrorsAreOfTheKindThatClientsAskFor(t *testing.T) {
	inEachFormat(t, func(t *testing.T, contentType string) {
		ctx, client := t.Context(), typed(t, contentType).CoreV1().ConfigMaps(namespace(t))
		_, err := client.Get(ctx, "none", metav1.GetOptions{})
		expect(t, "not found", errors.IsNotFound(err), true)
		one := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "one"}}
		made, err := client.Create(ctx, one, metav1.CreateOptions{})
		must(t, err)
		_, err = client.Create(ctx, one, metav1.CreateOptions{})
		expect(t, "already exists", errors.IsAlreadyExists(err), true)
		_, err = client.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "Bad_Name"}}, metav1.CreateOptions{})
		expect(t, "invalid", errors.IsInvalid(err), true)
		made.ResourceVersion = "1"
		_, err = client.Update(ctx, made, metav1.UpdateOptions{})
		expect(t, "conflict", errors.IsConflict(err), true)
		err = client.Delete(ctx, "one", metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions("another")})
		expect(t, "a precondition is a conflict", errors.IsConflict(err), true)
	})
}

func TestOptionsOfAWriteReachTheServer(t *testing.T) {
	ctx, client := t.Context(), typed(t, runtime.ContentTypeJSON).CoreV1().ConfigMaps(namespace(t))
	dry := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "dry"}}
	made, err := client.Create(ctx, dry, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	must(t, err)
	expect(t, "a dry run has a uid", made.UID != "", true)
	_, err = client.Get(ctx, "dry", metav1.GetOptions{})
	expect(t, "a dry run leaves nothing", errors.IsNotFound(err), true)
	made, err = client.Create(ctx, dry, metav1.CreateOptions{FieldManager: "interop", FieldValidation: metav1.FieldValidationStrict})
	must(t, err)
	_, err = client.Patch(ctx, made.Name, types.MergePatchType, []byte(`{"nonsense":1}`), metav1.PatchOptions{FieldValidation: metav1.FieldValidationStrict})
	expect(t, "an unknown field is refused", errors.IsBadRequest(err) || errors.IsInvalid(err), true)
	_, err = client.Patch(ctx, made.Name, types.JSONPatchType, []byte(`[{"op":"add","path":"/data","value":{"a":"b"}}]`), metav1.PatchOptions{})
	must(t, err)
}

func TestAListComesInPages(t *testing.T) {
	inEachFormat(t, func(t *testing.T, contentType string) {
		ctx, client := t.Context(), typed(t, contentType).CoreV1().ConfigMaps(namespace(t))
		for i := range 7 {
			_, err := client.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("page-%d", i)}}, metav1.CreateOptions{})
			must(t, err)
		}
		names := map[string]bool{}
		options := metav1.ListOptions{Limit: 3}
		for {
			list, err := client.List(ctx, options)
			must(t, err)
			expect(t, "at most three", len(list.Items) <= 3, true)
			for _, item := range list.Items {
				names[item.Name] = true
			}
			if options.Continue = list.Continue; options.Continue == "" {
				break
			}
		}
		expect(t, "all of them once", len(names) >= 7, true)
	})
}

func TestAWatchFromAListSeesEveryChangeInOrder(t *testing.T) {
	inEachFormat(t, func(t *testing.T, contentType string) {
		ctx, client := t.Context(), typed(t, contentType).CoreV1().ConfigMaps(namespace(t))
		list, err := client.List(ctx, metav1.ListOptions{})
		must(t, err)
		made, err := client.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "seen"}}, metav1.CreateOptions{})
		must(t, err)
		made.Data = map[string]string{"a": "b"}
		_, err = client.Update(ctx, made, metav1.UpdateOptions{})
		must(t, err)
		must(t, client.Delete(ctx, "seen", metav1.DeleteOptions{}))
		watcher, err := client.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion, FieldSelector: "metadata.name=seen"})
		must(t, err)
		defer watcher.Stop()
		for _, kind := range []watch.EventType{watch.Added, watch.Modified, watch.Deleted} {
			expect(t, "the event", next(t, string(kind), watcher.ResultChan()).Type, kind)
		}
	})
}

func TestStatusScaleAndEvictionAreSubresources(t *testing.T) {
	inEachFormat(t, func(t *testing.T, contentType string) {
		ctx, client, name := t.Context(), typed(t, contentType), namespace(t)
		made, err := client.AppsV1().Deployments(name).Create(ctx, deployment("web"), metav1.CreateOptions{})
		must(t, err)
		made.Status.ReadyReplicas, made.Status.Replicas = 1, 1
		made.Spec.Paused = true
		made, err = client.AppsV1().Deployments(name).UpdateStatus(ctx, made, metav1.UpdateOptions{})
		must(t, err)
		expect(t, "the status is written", made.Status.ReadyReplicas, 1)
		expect(t, "the spec is not", made.Spec.Paused, false)
		scale, err := client.AppsV1().Deployments(name).GetScale(ctx, "web", metav1.GetOptions{})
		must(t, err)
		expect(t, "the scale", scale.Spec.Replicas, 2)
		_, err = client.AppsV1().Deployments(name).UpdateScale(ctx, "web", &autoscalingv1.Scale{
			ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: name}, Spec: autoscalingv1.ScaleSpec{Replicas: 5},
		}, metav1.UpdateOptions{})
		must(t, err)
		made, err = client.AppsV1().Deployments(name).Get(ctx, "web", metav1.GetOptions{})
		must(t, err)
		expect(t, "the replicas", *made.Spec.Replicas, 5)
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "idle"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "busybox"}}}}
		_, err = client.CoreV1().Pods(name).Create(ctx, pod, metav1.CreateOptions{})
		must(t, err)
		must(t, client.PolicyV1().Evictions(name).Evict(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: "idle", Namespace: name}}))
		soon(t, "the pod is gone", func(context.Context) bool {
			_, err := client.CoreV1().Pods(name).Get(ctx, "idle", metav1.GetOptions{})
			return errors.IsNotFound(err)
		})
	})
}

func TestACollectionIsDeletedBySelector(t *testing.T) {
	ctx, client := t.Context(), typed(t, runtime.ContentTypeProtobuf).CoreV1().Secrets(namespace(t))
	for _, name := range []string{"a", "b", "keep"} {
		_, err := client.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"keep": fmt.Sprint(name == "keep")}},
			Data:       map[string][]byte{"bytes": {0, 255, 10}},
		}, metav1.CreateOptions{})
		must(t, err)
	}
	must(t, client.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "keep=false"}))
	list, err := client.List(ctx, metav1.ListOptions{})
	must(t, err)
	expect(t, "what is left", len(list.Items), 1)
	expect(t, "its bytes", string(list.Items[0].Data["bytes"]), "\x00\xff\n")
}

func TestWhatIsOwnedIsCollectedOrLeftAlone(t *testing.T) {
	for _, policy := range []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan} {
		t.Run(string(policy), func(t *testing.T) {
			ctx, client := t.Context(), typed(t, runtime.ContentTypeProtobuf).CoreV1().ConfigMaps(namespace(t))
			owner, err := client.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owner"}}, metav1.CreateOptions{})
			must(t, err)
			block := true
			reference := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID, BlockOwnerDeletion: &block}
			owned := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owned", OwnerReferences: []metav1.OwnerReference{reference}}}
			_, err = client.Create(ctx, owned, metav1.CreateOptions{})
			must(t, err)
			must(t, client.Delete(ctx, "owner", metav1.DeleteOptions{PropagationPolicy: &policy}))
			gone := func(name string) bool {
				_, err := client.Get(ctx, name, metav1.GetOptions{})
				return errors.IsNotFound(err)
			}
			soon(t, "the owner is gone", func(context.Context) bool { return gone("owner") })
			if policy != metav1.DeletePropagationOrphan {
				soon(t, "the owned is gone", func(context.Context) bool { return gone("owned") })
				return
			}
			left, err := client.Get(ctx, "owned", metav1.GetOptions{})
			must(t, err)
			expect(t, "its owners", len(left.OwnerReferences), 0)
		})
	}
}

func TestRetryOnConflictCounts(t *testing.T) {
	ctx, client := t.Context(), typed(t, runtime.ContentTypeJSON).CoreV1().ConfigMaps(namespace(t))
	_, err := client.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "count"}}, metav1.CreateOptions{})
	must(t, err)
	const writers, each = 4, 5
	done := make(chan error)
	for range writers {
		go func() {
			for range each {
				err := retry.OnError(retry.DefaultBackoff, errors.IsConflict, func() error { return increment(ctx, client) })
				for errors.IsConflict(err) {
					err = increment(ctx, client)
				}
				if err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for range writers {
		must(t, next(t, "a writer's end", done))
	}
	made, err := client.Get(ctx, "count", metav1.GetOptions{})
	must(t, err)
	expect(t, "the count", made.Annotations["count"], fmt.Sprint(writers*each))
}

func TestAServiceAccountGetsATokenAndMayUseIt(t *testing.T) {
	ctx, name := t.Context(), namespace(t)
	client := typed(t, runtime.ContentTypeProtobuf).CoreV1().ServiceAccounts(name)
	_, err := client.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "robot"}}, metav1.CreateOptions{})
	must(t, err)
	request, err := client.CreateToken(ctx, "robot", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	must(t, err)
	robot := config(t, runtime.ContentTypeJSON)
	robot.BearerToken, robot.BearerTokenFile = request.Status.Token, ""
	review, err := newClient(t, robot).AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	must(t, err)
	expect(t, "the user", review.Status.UserInfo.Username, "system:serviceaccount:"+name+":robot")
}
