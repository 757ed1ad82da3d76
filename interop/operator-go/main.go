// An operator with Go's unmodified controller-runtime: `check` tests it against a control plane, and `bench`,
// `cache` and `queue` are measured by k1s-bench. KUBECONFIG names the control plane.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

func main() {
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	if len(os.Args) < 2 {
		fail(fmt.Errorf("usage: check, bench, cache or queue"))
	}
	flags := flag.NewFlagSet(os.Args[1], flag.ExitOnError)
	workers := flags.Int("workers", 1, "maximum concurrent reconciles")
	objects := flags.Int("objects", 1000, "number of objects")
	kind := flags.String("kind", "deployment", "the kind to cache: deployment or configmap")
	_ = flags.Parse(os.Args[2:])
	var err error
	switch os.Args[1] {
	case "check":
		err = check()
	case "bench":
		err = bench(*workers, *objects)
	case "cache":
		err = measureCache(*kind, *objects)
	case "queue":
		measureQueue(*objects)
	default:
		err = fmt.Errorf("unknown command %s: use check, bench, cache or queue", os.Args[1])
	}
	if err != nil {
		fail(err)
	}
}

// config loads KUBECONFIG, without a client-side rate limit.
func config() (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = -1, 0
	return config, nil
}

// say prints a line of JSON.
func say(what map[string]float64) {
	line, err := json.Marshal(what)
	if err != nil {
		fail(err)
	}
	fmt.Println(string(line))
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "operator-go:", err)
	os.Exit(1)
}
