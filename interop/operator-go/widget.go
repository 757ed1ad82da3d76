package main

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

// Widget is the custom resource of this operator; k1s-bench has the same in Rust.
type Widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              WidgetSpec    `json:"spec"`
	Status            *WidgetStatus `json:"status,omitempty"`
}

type WidgetSpec struct {
	Size     int64             `json:"size"`
	Image    string            `json:"image"`
	Hosts    []string          `json:"hosts"`
	Settings map[string]string `json:"settings"`
}

type WidgetStatus struct {
	Observed int64 `json:"observed"`
}

type WidgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Widget `json:"items"`
}

// As controller-gen would write it.

func (in *Widget) DeepCopyInto(out *Widget) {
	*out = *in
	in.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	if in.Spec.Hosts != nil {
		out.Spec.Hosts = make([]string, len(in.Spec.Hosts))
		copy(out.Spec.Hosts, in.Spec.Hosts)
	}
	if in.Spec.Settings != nil {
		out.Spec.Settings = make(map[string]string, len(in.Spec.Settings))
		for key, value := range in.Spec.Settings {
			out.Spec.Settings[key] = value
		}
	}
	if in.Status != nil {
		out.Status = new(WidgetStatus)
		*out.Status = *in.Status
	}
}

func (in *Widget) DeepCopyObject() runtime.Object {
	out := new(Widget)
	in.DeepCopyInto(out)
	return out
}

func (in *WidgetList) DeepCopyObject() runtime.Object {
	out := new(WidgetList)
	*out = *in
	in.ListMeta.DeepCopyInto(&out.ListMeta)
	if in.Items != nil {
		out.Items = make([]Widget, len(in.Items))
		for i := range in.Items {
			in.Items[i].DeepCopyInto(&out.Items[i])
		}
	}
	return out
}

// schemeWith has the built-in kinds, and widgets in a group.
func schemeWith(group string) *runtime.Scheme {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		fail(err)
	}
	version := schema.GroupVersion{Group: group, Version: "v1"}
	scheme.AddKnownTypes(version, &Widget{}, &WidgetList{})
	metav1.AddToGroupVersion(scheme, version)
	return scheme
}
