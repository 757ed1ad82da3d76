// Prints, as one JSON document, what Kubernetes' published Go packages say about the types of the served
// API groups: fields, encodings, patch tags and the markers that OpenAPI is made from.
//
// Usage: go run . kinds.json
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"os"
	"reflect"
	"sort"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/kubernetes/scheme"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

// Type is a struct.
type Type struct {
	Package string  `json:"package"`
	Name    string  `json:"name"`
	Go      string  `json:"go"`
	Atomic  bool    `json:"atomic"`
	Doc     string  `json:"doc"`
	Fields  []Field `json:"fields"`
}

// Field is a field of a struct; those of inlined structs are among the outer struct's.
type Field struct {
	Name       string   `json:"name"`
	DeclaredIn string   `json:"declaredIn"`
	Go         string   `json:"go"`
	Shape      Shape    `json:"shape"`
	Pointer    bool     `json:"pointer"`
	Omit       string   `json:"omit"`
	Required   bool     `json:"required"`
	Proto      *Proto   `json:"proto"`
	Merge      []string `json:"merge"`
	MergeKey   string   `json:"mergeKey"`
	Topology   string   `json:"topology"`
	Keys       []string `json:"keys"`
	Default    string   `json:"default"`
	Doc        string   `json:"doc"`
	Values     []string `json:"values"`
}

// Shape is what a value is made of.
type Shape struct {
	Of     string `json:"of"`
	Go     string `json:"go,omitempty"`
	Max    uint64 `json:"max,omitempty"`
	Struct string `json:"struct,omitempty"`
	Item   *Shape `json:"item,omitempty"`
}

// Proto is a field's protobuf tag.
type Proto struct {
	Number  int    `json:"number"`
	Wire    string `json:"wire"`
	Wrapped bool   `json:"wrapped"`
	Within  []int  `json:"within"`
}

var (
	sources = newSources()
	types   = map[string]*Type{}
	special = map[reflect.Type]string{
		reflect.TypeOf(metav1.Time{}):                                  "Time",
		reflect.TypeOf(metav1.MicroTime{}):                             "MicroTime",
		reflect.TypeOf(metav1.Duration{}):                              "Duration",
		reflect.TypeOf(resource.Quantity{}):                            "Quantity",
		reflect.TypeOf(intstr.IntOrString{}):                           "IntOrString",
		reflect.TypeOf(runtime.RawExtension{}):                         "RawExtension",
		reflect.TypeOf(metav1.FieldsV1{}):                              "FieldsV1",
		reflect.TypeOf(apiextensionsv1.JSON{}):                         "Json",
		reflect.TypeOf(apiextensionsv1.JSONSchemaPropsOrBool{}):        "SchemaOrBool",
		reflect.TypeOf(apiextensionsv1.JSONSchemaPropsOrArray{}):       "SchemaOrArray",
		reflect.TypeOf(apiextensionsv1.JSONSchemaPropsOrStringArray{}): "SchemaOrStringArray",
	}
)

// Bodies that belong to no served group.
var bodies = []any{
	metav1.APIGroup{}, metav1.APIGroupList{}, metav1.APIResourceList{}, metav1.APIVersions{}, metav1.DeleteOptions{},
	metav1.LabelSelector{}, metav1.List{}, metav1.ListMeta{}, metav1.ObjectMeta{}, metav1.PartialObjectMetadata{},
	metav1.PartialObjectMetadataList{}, metav1.Status{}, metav1.Table{}, metav1.TypeMeta{}, metav1.WatchEvent{},
	version.Info{},
}

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		log.Fatal("usage: go run . kinds.json")
	}
	text, err := os.ReadFile(os.Args[1])
	check(err)
	var groups []struct{ Group, Version, Package string }
	check(json.Unmarshal(text, &groups))
	check(apiextensionsv1.AddToScheme(scheme.Scheme))
	check(apiregistrationv1.AddToScheme(scheme.Scheme))
	for _, group := range groups {
		known := scheme.Scheme.KnownTypes(schema.GroupVersion{Group: group.Group, Version: group.Version})
		if len(known) == 0 {
			log.Fatalf("%s/%s has no types", group.Group, group.Version)
		}
		for _, t := range known {
			if t.PkgPath() == group.Package {
				walk(t)
			}
		}
	}
	for _, body := range bodies {
		walk(reflect.TypeOf(body))
	}
	all := make([]*Type, 0, len(types))
	for _, t := range types {
		all = append(all, t)
	}
	sort.Slice(all, func(i, j int) bool { return all[i].Name < all[j].Name })
	patch := reflect.TypeOf(metav1.Patch{})
	specials := map[string]string{name(patch): sources.load(patch.PkgPath()).typeDocs[patch.Name()]}
	for t := range special {
		specials[name(t)] = sources.load(t.PkgPath()).typeDocs[t.Name()]
	}
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetIndent("", " ")
	check(encoder.Encode(map[string]any{"types": all, "specials": specials}))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// name is a type's name in OpenAPI: the host's labels are reversed.
func name(t reflect.Type) string {
	host, rest, _ := strings.Cut(t.PkgPath(), "/")
	labels := strings.Split(host, ".")
	for i, j := 0, len(labels)-1; i < j; i, j = i+1, j-1 {
		labels[i], labels[j] = labels[j], labels[i]
	}
	return strings.Join(labels, ".") + "." + strings.ReplaceAll(rest, "/", ".") + "." + t.Name()
}

func walk(t reflect.Type) string {
	key := name(t)
	if types[key] != nil {
		return key
	}
	found := &Type{Package: t.PkgPath(), Name: key, Go: t.String()}
	types[key] = found
	found.Atomic = sources.markers(t).last("structType") == "atomic"
	found.Doc = sources.load(t.PkgPath()).typeDocs[t.Name()]
	found.Fields = fields(t, "", nil, false)
	sort.SliceStable(found.Fields, func(i, j int) bool { return found.Fields[i].Name < found.Fields[j].Name })
	for i := 1; i < len(found.Fields); i++ {
		if found.Fields[i].Name == found.Fields[i-1].Name {
			log.Fatalf("%s has two fields %s", key, found.Fields[i].Name)
		}
	}
	return key
}

func fields(t reflect.Type, declaredIn string, within []int, noProto bool) []Field {
	found := []Field{}
	for i := 0; i < t.NumField(); i++ {
		field := t.Field(i)
		jsonName, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if jsonName == "-" || !field.IsExported() {
			continue
		}
		proto := parseProto(field)
		if jsonName == "" {
			if !field.Anonymous || field.Type.Kind() != reflect.Struct {
				log.Fatalf("%s.%s has no JSON name", t, field.Name)
			}
			inner, without := within, noProto
			if proto == nil {
				without = true
			} else {
				inner = append(append([]int{}, within...), proto.Number)
			}
			found = append(found, fields(field.Type, field.Type.Name(), inner, without)...)
			continue
		}
		if proto != nil {
			proto.Within = append([]int{}, within...)
		}
		if noProto {
			proto = nil
		}
		found = append(found, describe(t, field, jsonName, options, declaredIn, proto))
	}
	return found
}

func describe(t reflect.Type, field reflect.StructField, jsonName, options, declaredIn string, proto *Proto) Field {
	goType := field.Type
	pointer := goType.Kind() == reflect.Pointer
	if pointer {
		goType = goType.Elem()
	}
	comments := sources.field(t, field.Name)
	result := Field{
		Name: jsonName, DeclaredIn: declaredIn, Go: goType.String(), Shape: shape(goType), Pointer: pointer,
		Omit: "Never", Proto: proto, Merge: []string{}, MergeKey: field.Tag.Get("patchMergeKey"),
		Topology: "Default", Keys: []string{}, Default: sources.defaultOf(t, comments), Values: []string{},
	}
	enum := sources.enumOf(goType)
	for _, value := range enum {
		result.Values = append(result.Values, value.value)
	}
	raw := sources.load(t.PkgPath()).fieldDocs[t.Name()][field.Name]
	// As upstream: only the values of the field itself are described, not those of items.
	if goType.Kind() == reflect.String {
		raw = append(append([]string{}, raw...), enum.lines()...)
	}
	result.Doc = description(raw)
	for _, option := range strings.Split(options, ",") {
		switch option {
		case "omitempty":
			if result.Omit == "Never" {
				result.Omit = "Empty"
			}
		case "omitzero":
			result.Omit = "Zero"
		case "":
		default:
			log.Fatalf("%s.%s: unknown JSON option %s", t, field.Name, option)
		}
	}
	if strategy := field.Tag.Get("patchStrategy"); strategy != "" {
		result.Merge = strings.Split(strategy, ",")
	}
	switch {
	case comments.has("optional"):
	case comments.has("required"):
		result.Required = true
	default:
		result.Required = !strings.Contains(","+options+",", ",omitempty,")
	}
	switch comments.last("listType") {
	case "atomic":
		result.Topology = "Atomic"
	case "set":
		result.Topology = "Set"
	case "map":
		result.Topology = "Map"
		result.Keys = comments["listMapKey"]
	}
	for _, marker := range []string{"mapType", "structType"} {
		switch comments.last(marker) {
		case "atomic":
			result.Topology = "Atomic"
		case "granular":
			result.Topology = "Granular"
		}
	}
	return result
}

func parseProto(field reflect.StructField) *Proto {
	tag := field.Tag.Get("protobuf")
	if tag == "" || tag == "-" {
		return nil
	}
	parts := strings.Split(tag, ",")
	number, err := strconv.Atoi(parts[1])
	check(err)
	// The rest of the tag is written by hand and not always right: the Go type decides.
	_, message := reflect.New(field.Type).Interface().(interface{ MarshalTo([]byte) (int, error) })
	wrapped := message && field.Type.Kind() == reflect.Slice
	return &Proto{Number: number, Wire: wire(field.Type), Wrapped: wrapped, Within: []int{}}
}

// wire is the wire type of one value; a wrapped list is a message.
func wire(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice:
		return wire(t.Elem())
	case reflect.Bool, reflect.Int32, reflect.Int64, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "Varint"
	case reflect.Float64:
		return "Fixed64"
	}
	return "Bytes"
}

func shape(t reflect.Type) Shape {
	if of, ok := special[t]; ok {
		if strings.HasPrefix(of, "SchemaOr") {
			return Shape{Of: of, Struct: walk(reflect.TypeOf(apiextensionsv1.JSONSchemaProps{}))}
		}
		return Shape{Of: of}
	}
	switch t.Kind() {
	case reflect.Bool:
		return Shape{Of: "Bool"}
	case reflect.Int32:
		return Shape{Of: "Int32"}
	case reflect.Int64, reflect.Int:
		return Shape{Of: "Int64"}
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return Shape{Of: "Uint", Go: t.String(), Max: ^uint64(0) >> (64 - t.Bits())}
	case reflect.Float64:
		return Shape{Of: "Float64"}
	case reflect.String:
		return Shape{Of: "String", Go: t.String()}
	case reflect.Pointer:
		return shape(t.Elem())
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return Shape{Of: "Bytes"}
		}
		item := shape(t.Elem())
		return Shape{Of: "List", Item: &item}
	case reflect.Map:
		if t.Key().Kind() != reflect.String {
			log.Fatalf("%s has keys that are no strings", t)
		}
		item := shape(t.Elem())
		return Shape{Of: "Map", Item: &item}
	case reflect.Struct:
		return Shape{Of: "Struct", Struct: walk(t)}
	case reflect.Interface:
		return Shape{Of: "Json"}
	}
	panic(fmt.Sprintf("unknown kind of type: %s", t))
}
