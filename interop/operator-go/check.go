package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/recorder"
)

const (
	checkGroup = "operator.interop.k1s.dev"
	finalizer  = checkGroup + "/finalizer"
	lease      = "operator-go"
	definition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.operator.interop.k1s.dev}
spec:
  group: operator.interop.k1s.dev
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, x-kubernetes-preserve-unknown-fields: true}
          status: {type: object, properties: {observed: {type: integer}}}
`
)

// widgets keeps a ConfigMap for each widget, reports the observed size in the status, and cleans up.
type widgets struct {
	client.Client
	reader    client.Reader
	recorder  recorder.EventRecorder
	conflicts atomic.Int32
}

func (w *widgets) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var widget Widget
	if err := w.Get(ctx, request.NamespacedName, &widget); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	report := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: widget.Namespace, Name: widget.Name + "-report"}}
	if !widget.DeletionTimestamp.IsZero() {
		if err := w.Delete(ctx, report); client.IgnoreNotFound(err) != nil {
			return ctrl.Result{}, err
		}
		controllerutil.RemoveFinalizer(&widget, finalizer)
		return ctrl.Result{}, client.IgnoreNotFound(w.Update(ctx, &widget))
	}
	if controllerutil.AddFinalizer(&widget, finalizer) {
		if err := w.Update(ctx, &widget); err != nil {
			return ctrl.Result{}, err
		}
	}
	result, err := controllerutil.CreateOrUpdate(ctx, w.Client, report, func() error {
		report.Data = map[string]string{"size": fmt.Sprint(widget.Spec.Size)}
		return controllerutil.SetControllerReference(&widget, report, w.Scheme())
	})
	if err != nil {
		return ctrl.Result{}, err
	}
	if result == controllerutil.OperationResultCreated {
		w.recorder.Eventf(&widget, report, corev1.EventTypeNormal, "Reported", "Reporting", "its size is in %s", report.Name)
	}
	if widget.Status != nil && widget.Status.Observed == widget.Spec.Size {
		return ctrl.Result{}, nil
	}
	// The first attempt uses a stale version.
	stale := widget.ResourceVersion
	if err := w.Patch(ctx, &widget, client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"metadata":{"annotations":{"seen":"%d"}}}`, widget.Spec.Size))); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, retry.RetryOnConflict(retry.DefaultRetry, func() error {
		var fresh Widget
		if err := w.reader.Get(ctx, request.NamespacedName, &fresh); err != nil {
			return err
		}
		if stale != "" {
			fresh.ResourceVersion, stale = stale, ""
		}
		fresh.Status = &WidgetStatus{Observed: fresh.Spec.Size}
		err := w.Status().Update(ctx, &fresh)
		if apierrors.IsConflict(err) {
			w.conflicts.Add(1)
		}
		return err
	})
}

// checks run one after the other; each prints one line.
type checks struct {
	client client.Client
	failed bool
}

func (c *checks) that(what string, holds func(ctx context.Context) (bool, error)) {
	var last error
	err := wait.PollUntilContextTimeout(context.Background(), 10*time.Millisecond, 20*time.Second, true, func(ctx context.Context) (bool, error) {
		done, err := holds(ctx)
		// The end of the time says nothing; the error before it does.
		if ctx.Err() == nil {
			last = err
		}
		return done && err == nil, nil
	})
	if err == nil {
		c.passed(what)
		return
	}
	c.missed(what, last)
}

// once is for steps that cannot be repeated; they return what was expected and what was seen instead.
func (c *checks) once(what string, steps func(ctx context.Context) error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := steps(ctx); err != nil {
		c.missed(what, err)
		return
	}
	c.passed(what)
}

func (c *checks) passed(what string) { fmt.Println("ok    controller-runtime:", what) }

func (c *checks) missed(what string, why error) {
	c.failed = true
	fmt.Println("FAIL  controller-runtime:", what)
	if why != nil {
		fmt.Println("     ", why)
	}
}

func check() error {
	config, err := config()
	if err != nil {
		return err
	}
	scheme := schemeWith(checkGroup)
	live, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	home := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "operator-"}}
	if err := live.Create(ctx, home); err != nil {
		return err
	}
	crd := &unstructured.Unstructured{}
	if err := yaml.NewYAMLOrJSONDecoder(strings.NewReader(definition), 4096).Decode(crd); err != nil {
		return err
	}
	if err := live.Create(ctx, crd); client.IgnoreAlreadyExists(err) != nil {
		return err
	}
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                        scheme,
		Metrics:                       metricsserver.Options{BindAddress: "0"},
		LeaderElection:                true,
		LeaderElectionID:              lease,
		LeaderElectionNamespace:       home.Name,
		LeaderElectionReleaseOnCancel: true,
	})
	if err != nil {
		return err
	}
	reconciler := &widgets{Client: manager.GetClient(), reader: manager.GetAPIReader(), recorder: manager.GetEventRecorder("operator-go")}
	checks := &checks{client: live}
	// The kind must be served before the manager starts, or the manager exits.
	checks.that("a custom resource is served", func(ctx context.Context) (bool, error) {
		return true, live.List(ctx, &WidgetList{}, client.InNamespace(home.Name))
	})
	err = ctrl.NewControllerManagedBy(manager).For(&Widget{}).Owns(&corev1.ConfigMap{}).Complete(reconciler)
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(ctx) }()
	run(checks, reconciler, manager.Elected(), home.Name)
	stop()
	select {
	case err = <-ended:
	case <-time.After(30 * time.Second):
		err = errors.New("the manager does not stop")
	}
	checks.that("the manager stops cleanly", func(context.Context) (bool, error) { return true, err })
	checks.that("its lease is released", func(ctx context.Context) (bool, error) {
		var held coordinationv1.Lease
		err := live.Get(ctx, client.ObjectKey{Namespace: home.Name, Name: lease}, &held)
		return ptr.Deref(held.Spec.HolderIdentity, "") == "", err
	})
	// After the end of the manager, which would write to the same widgets.
	applies(checks, config, scheme, home.Name)
	converts(checks, home.Name)
	admits(checks, config, scheme, home.Name)
	if checks.failed {
		return errors.New("some checks failed")
	}
	return nil
}

func run(checks *checks, reconciler *widgets, elected <-chan struct{}, home string) {
	live := checks.client
	key := client.ObjectKey{Namespace: home, Name: "first"}
	reportKey := client.ObjectKey{Namespace: home, Name: "first-report"}
	checks.that("a manager becomes the leader", func(ctx context.Context) (bool, error) {
		select {
		case <-elected:
		case <-ctx.Done():
			return false, ctx.Err()
		}
		var held coordinationv1.Lease
		err := live.Get(ctx, client.ObjectKey{Namespace: home, Name: lease}, &held)
		return ptr.Deref(held.Spec.HolderIdentity, "") != "", err
	})
	widget := &Widget{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: key.Name}, Spec: WidgetSpec{Size: 3}}
	if err := live.Create(context.Background(), widget); err != nil {
		fail(err)
	}
	var first corev1.ConfigMap
	checks.that("a reconcile creates an owned object", func(ctx context.Context) (bool, error) {
		err := live.Get(ctx, reportKey, &first)
		return metav1.IsControlledBy(&first, widget) && first.Data["size"] == "3", err
	})
	observed := func(size int64) func(ctx context.Context) (bool, error) {
		return func(ctx context.Context) (bool, error) {
			var widget Widget
			err := live.Get(ctx, key, &widget)
			return widget.Status != nil && widget.Status.Observed == size, err
		}
	}
	checks.that("a status is updated", observed(3))
	checks.that("a conflict is reported, and the second attempt succeeds", func(context.Context) (bool, error) {
		return reconciler.conflicts.Load() > 0, nil
	})
	checks.that("an event is recorded", func(ctx context.Context) (bool, error) {
		var events eventsv1.EventList
		err := live.List(ctx, &events, client.InNamespace(home))
		for _, event := range events.Items {
			if event.Regarding.Name == key.Name && event.Reason == "Reported" {
				return true, err
			}
		}
		return false, err
	})
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"size":5}}`))
	if err := live.Patch(context.Background(), widget, patch); err != nil {
		fail(err)
	}
	checks.that("a change is reconciled", func(ctx context.Context) (bool, error) {
		var report corev1.ConfigMap
		if err := live.Get(ctx, reportKey, &report); err != nil || report.Data["size"] != "5" {
			return false, err
		}
		return observed(5)(ctx)
	})
	if err := live.Delete(context.Background(), &first); err != nil {
		fail(err)
	}
	checks.that("a deleted owned object is created again", func(ctx context.Context) (bool, error) {
		var report corev1.ConfigMap
		err := live.Get(ctx, reportKey, &report)
		return report.UID != first.UID, err
	})
	if err := live.Delete(context.Background(), widget); err != nil {
		fail(err)
	}
	checks.that("a finalizer runs before the deletion", func(ctx context.Context) (bool, error) {
		err := live.Get(ctx, key, &Widget{})
		if !apierrors.IsNotFound(err) {
			return false, err
		}
		err = live.Get(ctx, reportKey, &corev1.ConfigMap{})
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
}
