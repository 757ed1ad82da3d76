//! The types of `k8s.io/api/networking/v1`. Written by `cargo xtask gen`: do not edit.

use super::{F, M};
use crate::table::{Field, Merge, Omit, Proto, Shape, Topology, Type, Wire};

pub(crate) static HTTP_INGRESS_PATH: Type = Type { name: "io.k8s.api.networking.v1.HTTPIngressPath", go: "v1.HTTPIngressPath", atomic: false, fields: &[
    Field { name: "backend", go: "v1.IngressBackend", shape: Shape::Struct(&INGRESS_BACKEND), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "path", proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "pathType", go: "v1.PathType", shape: Shape::String("v1.PathType"), pointer: true, required: true, omit: Omit::Never, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static HTTP_INGRESS_RULE_VALUE: Type = Type { name: "io.k8s.api.networking.v1.HTTPIngressRuleValue", go: "v1.HTTPIngressRuleValue", atomic: false, fields: &[
    Field { name: "paths", go: "[]v1.HTTPIngressPath", shape: Shape::List(&Shape::Struct(&HTTP_INGRESS_PATH)), required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
] };

pub(crate) static IP_ADDRESS: Type = Type { name: "io.k8s.api.networking.v1.IPAddress", go: "v1.IPAddress", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ObjectMeta", shape: Shape::Struct(&super::meta_v1::OBJECT_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "spec", go: "v1.IPAddressSpec", shape: Shape::Struct(&IP_ADDRESS_SPEC), required: true, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static IP_ADDRESS_LIST: Type = Type { name: "io.k8s.api.networking.v1.IPAddressList", go: "v1.IPAddressList", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "items", go: "[]v1.IPAddress", shape: Shape::List(&Shape::Struct(&IP_ADDRESS)), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ListMeta", shape: Shape::Struct(&super::meta_v1::LIST_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static IP_ADDRESS_SPEC: Type = Type { name: "io.k8s.api.networking.v1.IPAddressSpec", go: "v1.IPAddressSpec", atomic: false, fields: &[
    Field { name: "parentRef", go: "v1.ParentReference", shape: Shape::Struct(&PARENT_REFERENCE), pointer: true, required: true, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static IP_BLOCK: Type = Type { name: "io.k8s.api.networking.v1.IPBlock", go: "v1.IPBlock", atomic: false, fields: &[
    Field { name: "cidr", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "except", go: "[]string", shape: Shape::List(&Shape::String("string")), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
] };

pub(crate) static INGRESS: Type = Type { name: "io.k8s.api.networking.v1.Ingress", go: "v1.Ingress", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ObjectMeta", shape: Shape::Struct(&super::meta_v1::OBJECT_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "spec", go: "v1.IngressSpec", shape: Shape::Struct(&INGRESS_SPEC), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "status", go: "v1.IngressStatus", shape: Shape::Struct(&INGRESS_STATUS), proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static INGRESS_BACKEND: Type = Type { name: "io.k8s.api.networking.v1.IngressBackend", go: "v1.IngressBackend", atomic: false, fields: &[
    Field { name: "resource", go: "v1.TypedLocalObjectReference", shape: Shape::Struct(&super::core_v1::TYPED_LOCAL_OBJECT_REFERENCE), pointer: true, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "service", go: "v1.IngressServiceBackend", shape: Shape::Struct(&INGRESS_SERVICE_BACKEND), pointer: true, proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static INGRESS_CLASS: Type = Type { name: "io.k8s.api.networking.v1.IngressClass", go: "v1.IngressClass", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ObjectMeta", shape: Shape::Struct(&super::meta_v1::OBJECT_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "spec", go: "v1.IngressClassSpec", shape: Shape::Struct(&INGRESS_CLASS_SPEC), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static INGRESS_CLASS_LIST: Type = Type { name: "io.k8s.api.networking.v1.IngressClassList", go: "v1.IngressClassList", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "items", go: "[]v1.IngressClass", shape: Shape::List(&Shape::Struct(&INGRESS_CLASS)), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ListMeta", shape: Shape::Struct(&super::meta_v1::LIST_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static INGRESS_CLASS_PARAMETERS_REFERENCE: Type = Type { name: "io.k8s.api.networking.v1.IngressClassParametersReference", go: "v1.IngressClassParametersReference", atomic: false, fields: &[
    Field { name: "apiGroup", pointer: true, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "kind", required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "name", required: true, omit: Omit::Never, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "namespace", pointer: true, proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "scope", pointer: true, omit: Omit::Never, proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static INGRESS_CLASS_SPEC: Type = Type { name: "io.k8s.api.networking.v1.IngressClassSpec", go: "v1.IngressClassSpec", atomic: false, fields: &[
    Field { name: "controller", proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "parameters", go: "v1.IngressClassParametersReference", shape: Shape::Struct(&INGRESS_CLASS_PARAMETERS_REFERENCE), pointer: true, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static INGRESS_LIST: Type = Type { name: "io.k8s.api.networking.v1.IngressList", go: "v1.IngressList", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "items", go: "[]v1.Ingress", shape: Shape::List(&Shape::Struct(&INGRESS)), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ListMeta", shape: Shape::Struct(&super::meta_v1::LIST_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static INGRESS_LOAD_BALANCER_INGRESS: Type = Type { name: "io.k8s.api.networking.v1.IngressLoadBalancerIngress", go: "v1.IngressLoadBalancerIngress", atomic: false, fields: &[
    Field { name: "hostname", proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "ip", proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "ports", go: "[]v1.IngressPortStatus", shape: Shape::List(&Shape::Struct(&INGRESS_PORT_STATUS)), proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
] };

pub(crate) static INGRESS_LOAD_BALANCER_STATUS: Type = Type { name: "io.k8s.api.networking.v1.IngressLoadBalancerStatus", go: "v1.IngressLoadBalancerStatus", atomic: false, fields: &[
    Field { name: "ingress", go: "[]v1.IngressLoadBalancerIngress", shape: Shape::List(&Shape::Struct(&INGRESS_LOAD_BALANCER_INGRESS)), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
] };

pub(crate) static INGRESS_PORT_STATUS: Type = Type { name: "io.k8s.api.networking.v1.IngressPortStatus", go: "v1.IngressPortStatus", atomic: false, fields: &[
    Field { name: "error", pointer: true, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "port", go: "int32", shape: Shape::Int32, required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "protocol", go: "v1.Protocol", shape: Shape::String("v1.Protocol"), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), values: &["SCTP", "TCP", "UDP"], ..F },
] };

pub(crate) static INGRESS_RULE: Type = Type { name: "io.k8s.api.networking.v1.IngressRule", go: "v1.IngressRule", atomic: false, fields: &[
    Field { name: "host", proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "http", declared_in: "IngressRuleValue", go: "v1.HTTPIngressRuleValue", shape: Shape::Struct(&HTTP_INGRESS_RULE_VALUE), pointer: true, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[2], wrapped: false }), ..F },
] };

pub(crate) static INGRESS_SERVICE_BACKEND: Type = Type { name: "io.k8s.api.networking.v1.IngressServiceBackend", go: "v1.IngressServiceBackend", atomic: false, fields: &[
    Field { name: "name", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "port", go: "v1.ServiceBackendPort", shape: Shape::Struct(&SERVICE_BACKEND_PORT), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static INGRESS_SPEC: Type = Type { name: "io.k8s.api.networking.v1.IngressSpec", go: "v1.IngressSpec", atomic: false, fields: &[
    Field { name: "defaultBackend", go: "v1.IngressBackend", shape: Shape::Struct(&INGRESS_BACKEND), pointer: true, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "ingressClassName", pointer: true, proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "rules", go: "[]v1.IngressRule", shape: Shape::List(&Shape::Struct(&INGRESS_RULE)), proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "tls", go: "[]v1.IngressTLS", shape: Shape::List(&Shape::Struct(&INGRESS_TLS)), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
] };

pub(crate) static INGRESS_STATUS: Type = Type { name: "io.k8s.api.networking.v1.IngressStatus", go: "v1.IngressStatus", atomic: false, fields: &[
    Field { name: "loadBalancer", go: "v1.IngressLoadBalancerStatus", shape: Shape::Struct(&INGRESS_LOAD_BALANCER_STATUS), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static INGRESS_TLS: Type = Type { name: "io.k8s.api.networking.v1.IngressTLS", go: "v1.IngressTLS", atomic: false, fields: &[
    Field { name: "hosts", go: "[]string", shape: Shape::List(&Shape::String("string")), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "secretName", proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static NETWORK_POLICY: Type = Type { name: "io.k8s.api.networking.v1.NetworkPolicy", go: "v1.NetworkPolicy", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ObjectMeta", shape: Shape::Struct(&super::meta_v1::OBJECT_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "spec", go: "v1.NetworkPolicySpec", shape: Shape::Struct(&NETWORK_POLICY_SPEC), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static NETWORK_POLICY_EGRESS_RULE: Type = Type { name: "io.k8s.api.networking.v1.NetworkPolicyEgressRule", go: "v1.NetworkPolicyEgressRule", atomic: false, fields: &[
    Field { name: "ports", go: "[]v1.NetworkPolicyPort", shape: Shape::List(&Shape::Struct(&NETWORK_POLICY_PORT)), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "to", go: "[]v1.NetworkPolicyPeer", shape: Shape::List(&Shape::Struct(&NETWORK_POLICY_PEER)), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
] };

pub(crate) static NETWORK_POLICY_INGRESS_RULE: Type = Type { name: "io.k8s.api.networking.v1.NetworkPolicyIngressRule", go: "v1.NetworkPolicyIngressRule", atomic: false, fields: &[
    Field { name: "from", go: "[]v1.NetworkPolicyPeer", shape: Shape::List(&Shape::Struct(&NETWORK_POLICY_PEER)), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "ports", go: "[]v1.NetworkPolicyPort", shape: Shape::List(&Shape::Struct(&NETWORK_POLICY_PORT)), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
] };

pub(crate) static NETWORK_POLICY_LIST: Type = Type { name: "io.k8s.api.networking.v1.NetworkPolicyList", go: "v1.NetworkPolicyList", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "items", go: "[]v1.NetworkPolicy", shape: Shape::List(&Shape::Struct(&NETWORK_POLICY)), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ListMeta", shape: Shape::Struct(&super::meta_v1::LIST_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static NETWORK_POLICY_PEER: Type = Type { name: "io.k8s.api.networking.v1.NetworkPolicyPeer", go: "v1.NetworkPolicyPeer", atomic: false, fields: &[
    Field { name: "ipBlock", go: "v1.IPBlock", shape: Shape::Struct(&IP_BLOCK), pointer: true, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "namespaceSelector", go: "v1.LabelSelector", shape: Shape::Struct(&super::meta_v1::LABEL_SELECTOR), pointer: true, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "podSelector", go: "v1.LabelSelector", shape: Shape::Struct(&super::meta_v1::LABEL_SELECTOR), pointer: true, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static NETWORK_POLICY_PORT: Type = Type { name: "io.k8s.api.networking.v1.NetworkPolicyPort", go: "v1.NetworkPolicyPort", atomic: false, fields: &[
    Field { name: "endPort", go: "int32", shape: Shape::Int32, pointer: true, proto: Some(Proto { number: 3, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "port", go: "intstr.IntOrString", shape: Shape::IntOrString, pointer: true, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "protocol", go: "v1.Protocol", shape: Shape::String("v1.Protocol"), pointer: true, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), values: &["SCTP", "TCP", "UDP"], ..F },
] };

pub(crate) static NETWORK_POLICY_SPEC: Type = Type { name: "io.k8s.api.networking.v1.NetworkPolicySpec", go: "v1.NetworkPolicySpec", atomic: false, fields: &[
    Field { name: "egress", go: "[]v1.NetworkPolicyEgressRule", shape: Shape::List(&Shape::Struct(&NETWORK_POLICY_EGRESS_RULE)), proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "ingress", go: "[]v1.NetworkPolicyIngressRule", shape: Shape::List(&Shape::Struct(&NETWORK_POLICY_INGRESS_RULE)), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "podSelector", go: "v1.LabelSelector", shape: Shape::Struct(&super::meta_v1::LABEL_SELECTOR), omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "policyTypes", go: "[]v1.PolicyType", shape: Shape::List(&Shape::String("v1.PolicyType")), proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, values: &["Egress", "Ingress"], ..F },
] };

pub(crate) static PARENT_REFERENCE: Type = Type { name: "io.k8s.api.networking.v1.ParentReference", go: "v1.ParentReference", atomic: false, fields: &[
    Field { name: "group", proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "name", required: true, proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "namespace", proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "resource", required: true, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static SERVICE_BACKEND_PORT: Type = Type { name: "io.k8s.api.networking.v1.ServiceBackendPort", go: "v1.ServiceBackendPort", atomic: true, fields: &[
    Field { name: "name", proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "number", go: "int32", shape: Shape::Int32, proto: Some(Proto { number: 2, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
] };

pub(crate) static SERVICE_CIDR: Type = Type { name: "io.k8s.api.networking.v1.ServiceCIDR", go: "v1.ServiceCIDR", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ObjectMeta", shape: Shape::Struct(&super::meta_v1::OBJECT_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "spec", go: "v1.ServiceCIDRSpec", shape: Shape::Struct(&SERVICE_CIDR_SPEC), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "status", go: "v1.ServiceCIDRStatus", shape: Shape::Struct(&SERVICE_CIDR_STATUS), proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static SERVICE_CIDR_LIST: Type = Type { name: "io.k8s.api.networking.v1.ServiceCIDRList", go: "v1.ServiceCIDRList", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "items", go: "[]v1.ServiceCIDR", shape: Shape::List(&Shape::Struct(&SERVICE_CIDR)), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ListMeta", shape: Shape::Struct(&super::meta_v1::LIST_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static SERVICE_CIDR_SPEC: Type = Type { name: "io.k8s.api.networking.v1.ServiceCIDRSpec", go: "v1.ServiceCIDRSpec", atomic: false, fields: &[
    Field { name: "cidrs", go: "[]string", shape: Shape::List(&Shape::String("string")), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
] };

pub(crate) static SERVICE_CIDR_STATUS: Type = Type { name: "io.k8s.api.networking.v1.ServiceCIDRStatus", go: "v1.ServiceCIDRStatus", atomic: false, fields: &[
    Field { name: "conditions", go: "[]v1.Condition", shape: Shape::List(&Shape::Struct(&super::meta_v1::CONDITION)), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), merge: Merge { merge: true, key: "type", ..M }, topology: Topology::Map(&["type"]), ..F },
] };
