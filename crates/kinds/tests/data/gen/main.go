// Writes objects in both of Kubernetes' encodings, as the real serializers do, into the directory above:
//
//	go run .
//
// NAME.json is what the JSON serializer prints, NAME.pb what the protobuf serializer writes for the same object,
// watch.frames a stream of two watch events.
package main

import (
	"bytes"
	"os"
	"path/filepath"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"
)

func ptr[T any](v T) *T { return &v }

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	s := scheme.Scheme
	check(apiextensionsv1.AddToScheme(s))
	asJSON := json.NewSerializerWithOptions(json.DefaultMetaFactory, s, s, json.SerializerOptions{Pretty: true})
	asProto := protobuf.NewSerializer(s, s)
	encode := func(object runtime.Object, serializer runtime.Serializer) []byte {
		kinds, _, err := s.ObjectKinds(object)
		check(err)
		object.GetObjectKind().SetGroupVersionKind(kinds[0])
		var out bytes.Buffer
		check(serializer.Encode(object, &out))
		return out.Bytes()
	}
	write := func(name string, object runtime.Object) {
		check(os.WriteFile(filepath.Join("..", name+".json"), encode(object, asJSON), 0o644))
		check(os.WriteFile(filepath.Join("..", name+".pb"), encode(object, asProto), 0o644))
	}

	at := time.Date(2026, 2, 3, 4, 5, 6, 789_123_456, time.UTC)
	container := corev1.Container{
		Name:  "web",
		Image: "nginx",
		Ports: []corev1.ContainerPort{{ContainerPort: 80, Protocol: corev1.ProtocolTCP}},
		Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{
			"cpu":    resource.MustParse("1500m"),
			"memory": resource.MustParse("1Gi"),
		}},
		LivenessProbe: &corev1.Probe{
			ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromString("http")}},
		},
		SecurityContext: &corev1.SecurityContext{RunAsUser: ptr(int64(0)), Privileged: ptr(false)},
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "web", Namespace: "default", CreationTimestamp: metav1.NewTime(at), Generation: 3,
			Labels:      map[string]string{"b": "2", "a": "1", "empty": ""},
			Annotations: map[string]string{"ünï": "çödé"},
			ManagedFields: []metav1.ManagedFieldsEntry{{
				Manager: "m", Operation: metav1.ManagedFieldsOperationApply, Time: ptr(metav1.NewTime(at)),
				FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{}}`),
			}},
			OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web", Controller: ptr(true)}},
		},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{container, {Name: "empty"}},
			Volumes: []corev1.Volume{
				{Name: "a", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
				{Name: "b", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
					SecretName: "s", DefaultMode: ptr(int32(0o644)),
				}}},
			},
			TerminationGracePeriodSeconds: ptr(int64(0)),
			SecurityContext:               &corev1.PodSecurityContext{SupplementalGroups: []int64{0, 1, -1, 1 << 40}},
		},
		Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: "Ready", Status: "False"}}},
	}
	write("pod", pod)
	write("pod-empty", &corev1.Pod{})
	write("pod-list", &corev1.PodList{
		ListMeta: metav1.ListMeta{ResourceVersion: "7", RemainingItemCount: ptr(int64(0))},
		Items:    []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "one"}}, {ObjectMeta: metav1.ObjectMeta{Name: "two"}}},
	})
	write("secret", &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "s"},
		Data:       map[string][]byte{"k": {0, 1, 0xff}, "none": {}},
		Immutable:  ptr(false),
	})
	write("service", &corev1.Service{Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{
		{Port: 80, TargetPort: intstr.FromInt32(-1)}, {Port: 81, TargetPort: intstr.FromString("")},
		{Port: 82},
	}}})
	write("deployment", &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "d"},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr(int32(0)),
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}},
			Strategy: appsv1.DeploymentStrategy{RollingUpdate: &appsv1.RollingUpdateDeployment{
				MaxSurge: ptr(intstr.FromString("25%")), MaxUnavailable: ptr(intstr.FromInt32(0)),
			}},
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{container}}},
		},
	})
	write("lease", &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{RenewTime: ptr(metav1.NewMicroTime(at))}})
	write("role-empty", &rbacv1.Role{})
	write("controller-revision", &appsv1.ControllerRevision{Data: runtime.RawExtension{Raw: []byte(`{"a":[1,null]}`)}})
	write("token-review", &authenticationv1.TokenReview{Status: authenticationv1.TokenReviewStatus{
		User: authenticationv1.UserInfo{Extra: map[string]authenticationv1.ExtraValue{"k": {"a", ""}}},
	}})
	write("status", &metav1.Status{
		Status: "Failure", Message: "nope", Reason: "NotFound", Code: 404,
		Details: &metav1.StatusDetails{Name: "x", Kind: "pods", Causes: []metav1.StatusCause{{Field: "f"}}},
	})
	write("crd", &apiextensionsv1.CustomResourceDefinition{
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "example.com", Scope: "Namespaced",
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "ws", Kind: "W"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1",
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type:    "object",
					Minimum: ptr(0.5),
					Maximum: ptr(3.0),
					Default: &apiextensionsv1.JSON{Raw: []byte(`{"a":1}`)},
					Enum:    []apiextensionsv1.JSON{{Raw: []byte(`"x"`)}, {Raw: []byte(`false`)}},
					Properties: map[string]apiextensionsv1.JSONSchemaProps{
						"map":  {AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true, Schema: &apiextensionsv1.JSONSchemaProps{Type: "string"}}},
						"open": {AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true}},
						"shut": {AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{}},
						"list": {Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &apiextensionsv1.JSONSchemaProps{Type: "integer"}}},
						"pair": {Items: &apiextensionsv1.JSONSchemaPropsOrArray{JSONSchemas: []apiextensionsv1.JSONSchemaProps{{Type: "integer"}, {}}}},
						"deps": {Dependencies: apiextensionsv1.JSONSchemaDependencies{
							"a": {Property: []string{"b"}}, "c": {Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}},
						}},
					},
				}},
			}},
		},
	})

	var stream bytes.Buffer
	framed := protobuf.LengthDelimitedFramer.NewFrameWriter(&stream)
	raw := protobuf.NewRawSerializer(s, s)
	for _, kind := range []string{"ADDED", "DELETED"} {
		event := &metav1.WatchEvent{Type: kind, Object: runtime.RawExtension{Raw: encode(pod, asProto)}}
		check(raw.Encode(event, framed))
	}
	check(os.WriteFile(filepath.Join("..", "watch.frames"), stream.Bytes(), 0o644))
}
