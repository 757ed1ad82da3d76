// An aggregated API server on net/http alone, and what kubectl does with it.
//
//	aggregated KUBECTL ADDRESS
//
// The server under test runs with --service-address aggregated/tides=ADDRESS.
package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"time"
)

const group = "tides.example.com"

type object = map[string]any

// seen is what the last request for a resource said about its sender.
var seen atomic.Value

func tide(name string) object {
	return object{"apiVersion": group + "/v1", "kind": "Tide",
		"metadata": object{"name": name, "namespace": "default", "labels": object{"sea": "north"}},
		"spec":     object{"level": 3}}
}

func write(w http.ResponseWriter, code int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(value)
}

func failed(w http.ResponseWriter, code int, reason, message string) {
	write(w, code, object{"kind": "Status", "apiVersion": "v1", "metadata": object{}, "status": "Failure",
		"reason": reason, "message": message, "code": code})
}

func table(items ...object) object {
	rows := []object{}
	for _, item := range items {
		meta := item["metadata"].(object)
		rows = append(rows, object{"cells": []any{meta["name"], 3},
			"object": object{"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": meta}})
	}
	return object{"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": object{"resourceVersion": "7"},
		"columnDefinitions": []object{
			{"name": "Name", "type": "string", "format": "name", "description": "", "priority": 0},
			{"name": "Level", "type": "integer", "format": "", "description": "", "priority": 0}},
		"rows": rows}
}

// description is the document of version 3 about tides, with a schema that no parser of version 2 accepts.
func description() object {
	name := "com.example.tides.v1.Tide"
	reference := object{"$ref": "#/components/schemas/" + name}
	text := func(description string) object { return object{"type": "string", "description": description} }
	kind := object{"group": group, "version": "v1", "kind": "Tide"}
	content := object{"application/json": object{"schema": reference}}
	get := object{"responses": object{"200": object{"description": "OK", "content": content}}, "x-kubernetes-group-version-kind": kind}
	return object{"openapi": "3.0.0", "info": object{"title": "tides", "version": "v1"},
		"paths": object{"/apis/" + group + "/v1/namespaces/{namespace}/tides/{name}": object{"get": get}},
		"components": object{"schemas": object{name: object{
			"type": "object", "description": "A tide of a sea.",
			"x-kubernetes-group-version-kind": []object{kind},
			"properties": object{
				"apiVersion": text("The version."), "kind": text("The kind."),
				"spec": object{"type": "object", "description": "What is measured.", "properties": object{
					"level":  object{"type": "integer", "format": "int32", "description": "How high it is."},
					"charts": object{"type": "file", "description": "Of another version."}}}}}}}}
}

func serve(w http.ResponseWriter, r *http.Request) {
	if r.TLS.PeerCertificates[0].Subject.CommonName != "front-proxy-client" {
		failed(w, 401, "Unauthorized", "Unauthorized")
		return
	}
	root := "/apis/" + group + "/v1"
	wantsTable := strings.Contains(r.Header.Get("Accept"), "as=Table")
	switch {
	case r.URL.Path == root:
		write(w, 200, object{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group + "/v1", "resources": []object{
			{"name": "tides", "singularName": "tide", "namespaced": true, "kind": "Tide", "shortNames": []string{"td"},
				"verbs": []string{"get", "list", "watch"}}}})
	case r.URL.Path == "/openapi/v3":
		write(w, 200, object{"paths": object{"apis/" + group + "/v1": object{"serverRelativeURL": "/openapi/v3/apis/" + group + "/v1?hash=ABBA"}}})
	case r.URL.Path == "/openapi/v3/apis/"+group+"/v1":
		write(w, 200, description())
	case r.URL.Path == root+"/tides" || r.URL.Path == root+"/namespaces/default/tides":
		seen.Store(r.Header.Get("X-Remote-User") + " " + strings.Join(r.Header["X-Remote-Group"], ","))
		switch {
		case r.URL.Query().Get("watch") == "true":
			w.Header().Set("Content-Type", "application/json")
			for range 2 {
				event := object{"type": "MODIFIED", "object": tide("high")}
				if wantsTable {
					event["object"] = table(tide("high"))
				}
				_ = json.NewEncoder(w).Encode(event)
				w.(http.Flusher).Flush()
			}
			<-r.Context().Done()
		case wantsTable:
			write(w, 200, table(tide("high"), tide("low")))
		default:
			write(w, 200, object{"kind": "TideList", "apiVersion": group + "/v1", "metadata": object{"resourceVersion": "7"},
				"items": []object{tide("high"), tide("low")}})
		}
	case r.URL.Path == root+"/namespaces/default/tides/high":
		if wantsTable {
			write(w, 200, table(tide("high")))
		} else {
			write(w, 200, tide("high"))
		}
	case strings.HasPrefix(r.URL.Path, root+"/namespaces/") && strings.HasSuffix(r.URL.Path, "/tides"):
		write(w, 200, object{"kind": "TideList", "apiVersion": group + "/v1", "metadata": object{}, "items": []object{}})
	default:
		failed(w, 404, "NotFound", "the server could not find the requested resource")
	}
}

// certificate is signed by itself: it is its own authority.
func certificate() (tls.Certificate, string) {
	key := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	now := time.Now()
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "tides"},
		DNSNames: []string{"tides.aggregated.svc"}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true}
	der := must(x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key))
	bundle := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, base64.StdEncoding.EncodeToString(bundle)
}

// proxies are the authorities of front proxies, as servers written with k8s.io/apiserver find them.
func proxies() *x509.CertPool {
	out, ok := run("", "get", "configmap", "-n", "kube-system", "extension-apiserver-authentication",
		"-o", "jsonpath={.data.requestheader-client-ca-file}")
	pool := x509.NewCertPool()
	if !ok || !pool.AppendCertsFromPEM([]byte(out)) {
		fmt.Println("FAIL  aggregated: there are no authorities of front proxies:", out)
		os.Exit(1)
	}
	return pool
}

func listen(address string, certificate tls.Certificate, clients *x509.CertPool) *http.Server {
	listener := must(net.Listen("tcp", address))
	server := &http.Server{Handler: http.HandlerFunc(serve), TLSConfig: &tls.Config{
		Certificates: []tls.Certificate{certificate}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients}}
	go func() { _ = server.ServeTLS(listener, "", "") }()
	return server
}

func must[T any](value T, err error) T {
	if err != nil {
		fmt.Println("FAIL ", err)
		os.Exit(1)
	}
	return value
}

var kubectl string

// run returns what kubectl prints, and whether it succeeds.
func run(input string, arguments ...string) (string, bool) {
	command := exec.Command(kubectl, arguments...)
	command.Stdin = strings.NewReader(input)
	output, err := command.CombinedOutput()
	return string(output), err == nil
}

func expect(out string, parts ...string) error {
	for _, part := range parts {
		if !strings.Contains(out, part) {
			return fmt.Errorf("%q is not in:\n%s", part, out)
		}
	}
	return nil
}

func succeeds(parts []string, arguments ...string) error {
	out, ok := run("", arguments...)
	if !ok {
		return fmt.Errorf("kubectl %s: %s", strings.Join(arguments, " "), out)
	}
	return expect(out, parts...)
}

func fails(parts []string, arguments ...string) error {
	out, ok := run("", arguments...)
	if ok {
		return fmt.Errorf("kubectl %s succeeded: %s", strings.Join(arguments, " "), out)
	}
	return expect(out, parts...)
}

func main() {
	kubectl = os.Args[1]
	address := os.Args[2]
	own, bundle := certificate()
	clients := proxies()
	server := listen(address, own, clients)
	service := "apiVersion: apiregistration.k8s.io/v1\nkind: APIService\nmetadata: {name: v1." + group + "}\nspec:\n" +
		"  group: " + group + "\n  version: v1\n  groupPriorityMinimum: 1000\n  versionPriority: 15\n" +
		"  caBundle: " + bundle + "\n  service: {namespace: aggregated, name: tides}\n"
	name := "apiservice/v1." + group
	checks := []struct {
		what  string
		check func() error
	}{
		{"an APIService becomes available", func() error {
			if out, ok := run(service, "apply", "-f", "-"); !ok {
				return fmt.Errorf("%s", out)
			}
			if err := succeeds(nil, "wait", "--for=condition=Available", "--timeout=30s", name); err != nil {
				return err
			}
			return succeeds([]string{"aggregated/tides", "True"}, "get", name)
		}},
		{"api-resources and api-versions list it", func() error {
			if err := succeeds([]string{"tides", "td", group + "/v1", "true", "Tide"}, "api-resources", "--api-group="+group); err != nil {
				return err
			}
			return succeeds([]string{group + "/v1", "apps/v1"}, "api-versions")
		}},
		{"get prints its tables, by short names as well", func() error {
			if err := succeeds([]string{"NAME", "LEVEL", "high", "low"}, "get", "td"); err != nil {
				return err
			}
			if user := fmt.Sprint(seen.Load()); !strings.HasPrefix(user, "admin ") || !strings.Contains(user, "system:masters") {
				return fmt.Errorf("the user was %q", user)
			}
			return nil
		}},
		{"get, describe and jsonpath show an object", func() error {
			if err := succeeds([]string{"level: 3", "sea: north"}, "get", "tide", "high", "-o", "yaml"); err != nil {
				return err
			}
			if err := succeeds([]string{"Name:", "high", "Level:", "3"}, "describe", "tide", "high"); err != nil {
				return err
			}
			return succeeds([]string{"high low"}, "get", "tides", "-o", "jsonpath={.items[*].metadata.name}")
		}},
		{"explain knows its fields, from either version of OpenAPI", func() error {
			for _, output := range []string{"plaintext", "plaintext-openapiv2"} {
				what := []string{"How high it is", "integer"}
				if err := succeeds(what, "explain", "tide.spec.level", "--output="+output); err != nil {
					return err
				}
				// One schema that cannot be read does not hide those of others.
				if err := succeeds([]string{"replicas"}, "explain", "deployment.spec", "--output="+output); err != nil {
					return err
				}
			}
			return succeeds([]string{`"com.example.tides.v1.Tide"`, "A tide of a sea."}, "get", "--raw", "/openapi/v2")
		}},
		{"watches are streams", func() error {
			out, _ := run("", "get", "tides", "--watch-only", "--request-timeout=3s")
			if strings.Count(out, "high") != 2 {
				return fmt.Errorf("not two events: %s", out)
			}
			return nil
		}},
		{"what it does not serve is an error of its own", func() error {
			return fails([]string{"NotFound"}, "get", "tide", "none")
		}},
		{"a user without rights is refused before it is asked", func() error {
			return fails([]string{"Forbidden", "bob", "tides"}, "get", "tides", "--as=bob")
		}},
		{"it goes away, and other resources stay", func() error {
			_ = server.Close()
			if err := succeeds(nil, "wait", "--for=condition=Available=false", "--timeout=60s", name); err != nil {
				return err
			}
			if err := succeeds([]string{"FailedDiscoveryCheck"}, "get", name); err != nil {
				return err
			}
			if err := fails([]string{"the server is currently unable to handle the request"}, "get", "--raw", "/apis/"+group+"/v1/tides"); err != nil {
				// kubectl shows the words of the aggregator for raw requests.
				if other := fails([]string{"service unavailable"}, "get", "--raw", "/apis/"+group+"/v1/tides"); other != nil {
					return err
				}
			}
			if err := succeeds([]string{"default"}, "get", "namespaces"); err != nil {
				return err
			}
			// kubectl leaves out what discovery calls stale.
			out, _ := run("", "api-resources")
			if strings.Contains(out, group) {
				return fmt.Errorf("%s is still there:\n%s", group, out)
			}
			if err := expect(out, "configmaps", "deployments"); err != nil {
				return err
			}
			// What it has published stays.
			if err := succeeds([]string{"A tide of a sea."}, "get", "--raw", "/openapi/v2"); err != nil {
				return err
			}
			return succeeds([]string{"replicas"}, "explain", "deployment.spec")
		}},
		{"a namespace waits for it, and says so", func() error {
			if err := succeeds(nil, "create", "namespace", "seaside"); err != nil {
				return err
			}
			if err := succeeds(nil, "create", "configmap", "sand", "-n", "seaside"); err != nil {
				return err
			}
			if err := succeeds(nil, "delete", "namespace", "seaside", "--wait=false"); err != nil {
				return err
			}
			condition := "--for=condition=NamespaceDeletionDiscoveryFailure"
			if err := succeeds(nil, "wait", condition, "--timeout=60s", "namespace/seaside"); err != nil {
				return err
			}
			says := "Discovery failed for some groups, 1 failing: unable to retrieve the complete list of server APIs: " +
				group + "/v1: stale GroupVersion discovery: " + group + "/v1"
			if err := succeeds([]string{says}, "get", "namespace", "seaside", "-o", "jsonpath={.status.conditions[*].message}"); err != nil {
				return err
			}
			// What is known is deleted meanwhile.
			return succeeds([]string{"No resources found"}, "get", "configmaps", "-n", "seaside")
		}},
		{"it comes back", func() error {
			listen(address, own, clients)
			if err := succeeds(nil, "wait", "--for=condition=Available", "--timeout=90s", name); err != nil {
				return err
			}
			if err := succeeds(nil, "wait", "--for=delete", "--timeout=90s", "namespace/seaside"); err != nil {
				return err
			}
			return succeeds([]string{"high"}, "get", "tides")
		}},
		{"its APIService is deleted, and its group is gone", func() error {
			if err := succeeds(nil, "delete", name); err != nil {
				return err
			}
			// kubectl remembers for a while that there were tides.
			return fails([]string{"the server could not find the requested resource"}, "get", "--raw", "/apis/"+group+"/v1/tides")
		}},
	}
	wrong := 0
	for _, one := range checks {
		if err := one.check(); err != nil {
			wrong++
			fmt.Printf("FAIL  aggregated: %s\n%v\n", one.what, err)
			continue
		}
		fmt.Printf("ok    aggregated: %s\n", one.what)
	}
	if wrong > 0 {
		os.Exit(1)
	}
}
