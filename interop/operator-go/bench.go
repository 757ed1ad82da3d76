package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"sort"
	"strings"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

const (
	benchGroup = "runtime.bench.k1s.dev"
	namespace  = "default"
	timed      = "timed"
	patience   = 5 * time.Minute
)

// What a reconcile does.
const (
	noop = iota
	read
	status
)

var modes = map[string]int32{"noop": noop, "read": read, "status": status}

// operator counts its reconciles, and signals when the expected number is reached.
type operator struct {
	client  client.Client
	mode    atomic.Int32
	count   atomic.Int64
	target  atomic.Int64
	fresh   atomic.Int64
	reached chan time.Time
	timed   chan time.Time
}

func (o *operator) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	if request.Name == timed {
		select {
		case o.timed <- time.Now():
		default:
		}
	}
	if mode := o.mode.Load(); mode != noop {
		var widget Widget
		if err := o.client.Get(ctx, request.NamespacedName, &widget); err != nil {
			return ctrl.Result{}, err
		}
		if mode == status {
			patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"status":{"observed":%d}}`, o.fresh.Add(1)))
			if err := o.client.Status().Patch(ctx, &widget, patch); err != nil {
				return ctrl.Result{}, err
			}
		}
	}
	if o.count.Add(1) == o.target.Load() {
		o.reached <- time.Now()
	}
	return ctrl.Result{}, nil
}

func (o *operator) expect(more int64) {
	o.target.Store(o.count.Load() + more)
}

func (o *operator) wait() (time.Time, error) {
	select {
	case at := <-o.reached:
		return at, nil
	case <-time.After(patience):
		return time.Time{}, fmt.Errorf("no progress after %d reconciles", o.count.Load())
	}
}

// bench executes the commands of k1s-bench, line by line; crates/bench/src/runtime/operator.rs describes
// them.
func bench(workers, objects int) error {
	config, err := config()
	if err != nil {
		return err
	}
	began := time.Now()
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:  schemeWith(benchGroup),
		Metrics: metricsserver.Options{BindAddress: "0"},
	})
	if err != nil {
		return err
	}
	events := make(chan event.GenericEvent, 1024)
	operator := &operator{client: manager.GetClient(), reached: make(chan time.Time, 1), timed: make(chan time.Time, 1)}
	operator.expect(int64(objects) + 1)
	err = ctrl.NewControllerManagedBy(manager).
		// Otherwise each status update would trigger another reconcile.
		For(&Widget{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WatchesRawSource(source.Channel(events, &handler.EnqueueRequestForObject{})).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(operator)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(ctx) }()
	if !manager.GetCache().WaitForCacheSync(ctx) {
		return fmt.Errorf("the cache did not sync")
	}
	informer, err := manager.GetCache().GetInformer(ctx, &Widget{})
	if err != nil {
		return err
	}
	for !informer.HasSynced() {
		time.Sleep(time.Millisecond)
	}
	synced := time.Since(began).Seconds()
	at, err := operator.wait()
	if err != nil {
		return err
	}
	say(map[string]float64{"synced": synced, "first": at.Sub(began).Seconds()})

	widgets := make([]*Widget, objects)
	for number := range widgets {
		widgets[number] = &Widget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("widget-%06d", number)}}
	}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) == 0 || words[0] == "end" {
			break
		}
		var number int
		if _, err := fmt.Sscan(words[len(words)-1], &number); err != nil {
			return fmt.Errorf("%q: %w", lines.Text(), err)
		}
		switch words[0] {
		case "requeue":
			operator.mode.Store(modes[words[1]])
			operator.expect(int64(number))
			began := time.Now()
			for _, widget := range widgets[:number] {
				events <- event.GenericEvent{Object: widget}
			}
			at, err := operator.wait()
			if err != nil {
				return err
			}
			operator.mode.Store(noop)
			say(map[string]float64{"seconds": at.Sub(began).Seconds()})
		case "expect":
			operator.expect(int64(number))
			say(map[string]float64{})
			if _, err := operator.wait(); err != nil {
				return err
			}
			say(map[string]float64{})
		case "time":
			delays := make([]float64, 0, number)
			for range number {
				began := time.Now()
				patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"size":%d}}`, operator.fresh.Add(1)))
				object := &Widget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: timed}}
				if len(operator.timed) > 0 {
					<-operator.timed
				}
				if err := manager.GetClient().Patch(ctx, object, patch); err != nil {
					return err
				}
				at := <-operator.timed
				delays = append(delays, at.Sub(began).Seconds())
			}
			sort.Float64s(delays)
			say(map[string]float64{"p50": delays[len(delays)/2], "p99": delays[len(delays)*99/100]})
		default:
			return fmt.Errorf("unknown command %q", lines.Text())
		}
	}
	stop()
	return <-ended
}
