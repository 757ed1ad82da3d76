package main

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// measureCache prints how long a cache takes to sync, and its memory after a garbage collection.
func measureCache(kind string, objects int) error {
	var object client.Object = &appsv1.Deployment{}
	if kind == "configmap" {
		object = &corev1.ConfigMap{}
	}
	config, err := config()
	if err != nil {
		return err
	}
	informers, err := cache.New(config, cache.Options{})
	if err != nil {
		return err
	}
	ctx := context.Background()
	go func() {
		if err := informers.Start(ctx); err != nil {
			fail(err)
		}
	}()
	before := resident()
	began := time.Now()
	informer, err := informers.GetInformer(ctx, object)
	if err != nil {
		return err
	}
	for !informer.HasSynced() {
		time.Sleep(time.Millisecond)
	}
	seconds := time.Since(began).Seconds()
	debug.FreeOSMemory()
	debug.FreeOSMemory()
	say(map[string]float64{"seconds": seconds, "bytes": float64(resident()-before) / float64(objects)})
	return nil
}

// resident is the resident memory of this process, in bytes.
func resident() int64 {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		fail(err)
	}
	for line := range strings.Lines(string(text)) {
		var kilobytes int64
		if _, err := fmt.Sscanf(line, "VmRSS: %d kB", &kilobytes); err == nil {
			return kilobytes << 10
		}
	}
	return 0
}

// measureQueue prints the operations per second of a controller's work queue with this many keys.
func measureQueue(objects int) {
	keys := make([]reconcile.Request, objects)
	for number := range keys {
		keys[number] = reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: fmt.Sprintf("widget-%07d", number)}}
	}
	said := map[string]float64{}
	queue := priorityqueue.New[reconcile.Request]("bench")
	rate := func(what string, work func()) {
		began := time.Now()
		work()
		said[what] = float64(objects) / time.Since(began).Seconds()
	}
	add := func() {
		for _, key := range keys {
			queue.Add(key)
		}
		// Adds are asynchronous, so wait until they are visible.
		for queue.Len() < objects {
			time.Sleep(time.Millisecond)
		}
	}
	rate("add", add)
	rate("merge", add)
	rate("take", func() {
		for range keys {
			key, _, _ := queue.GetWithPriority()
			queue.Done(key)
		}
	})
	queue.ShutDown()
	say(said)
}
