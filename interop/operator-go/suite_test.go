package main

import (
	"context"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

var cluster *rest.Config

// The control plane is that of KUBECONFIG: a k1s serve, started before the tests. Nothing is downloaded.
func TestMain(m *testing.M) {
	environment := &envtest.Environment{
		UseExistingCluster: ptr.To(true),
		CRDInstallOptions:  envtest.CRDInstallOptions{Paths: []string{"config/crd"}, ErrorIfPathMissing: true},
	}
	var err error
	if cluster, err = environment.Start(); err != nil {
		panic(err)
	}
	code := m.Run()
	if err := environment.Stop(); err != nil {
		panic(err)
	}
	os.Exit(code)
}

// report keeps a ConfigMap with the image of each widget.
type report struct{ client.Client }

func (r report) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var widget Widget
	if err := r.Get(ctx, request.NamespacedName, &widget); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	image := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: widget.Namespace, Name: widget.Name}}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, image, func() error {
		image.Data = map[string]string{"image": widget.Spec.Image}
		return controllerutil.SetControllerReference(&widget, image, r.Scheme())
	})
	return ctrl.Result{}, err
}

func TestAWidgetHasAReportUntilItIsDeleted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	manager, err := ctrl.NewManager(cluster, ctrl.Options{
		Scheme:  schemeWith("envtest.interop.k1s.dev"),
		Metrics: metricsserver.Options{BindAddress: "0"},
	})
	if err != nil {
		t.Fatal(err)
	}
	err = ctrl.NewControllerManagedBy(manager).For(&Widget{}).Owns(&corev1.ConfigMap{}).Complete(report{manager.GetClient()})
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = manager.Start(ctx) }()

	live := client.WithFieldOwner(manager.GetClient(), "test")
	home := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "envtest-"}}
	if err := live.Create(ctx, home); err != nil {
		t.Fatal(err)
	}
	widget := &Widget{
		ObjectMeta: metav1.ObjectMeta{Namespace: home.Name, Name: "first"},
		Spec:       WidgetSpec{Size: 1, Image: "nginx:1"},
	}
	if err := live.Create(ctx, widget); err != nil {
		t.Fatal(err)
	}
	reader := manager.GetAPIReader()
	eventually(t, "the report", func(ctx context.Context) (bool, error) {
		var found corev1.ConfigMap
		err := reader.Get(ctx, client.ObjectKeyFromObject(widget), &found)
		return err == nil && found.Data["image"] == "nginx:1", client.IgnoreNotFound(err)
	})

	// Other than with envtest's own control plane, what a deleted object owned is deleted, too, and namespaces end.
	if err := live.Delete(ctx, widget); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the report is collected", func(ctx context.Context) (bool, error) {
		err := reader.Get(ctx, client.ObjectKeyFromObject(widget), &corev1.ConfigMap{})
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
	if err := live.Delete(ctx, home); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the namespace is gone", func(ctx context.Context) (bool, error) {
		err := reader.Get(ctx, client.ObjectKeyFromObject(home), &corev1.Namespace{})
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
}

func eventually(t *testing.T, what string, done wait.ConditionWithContextFunc) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, 30*time.Second, true, done); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}
