//! The types of `k8s.io/api/resource/v1`. Written by `cargo xtask gen`: do not edit.

use super::{F, M};
use crate::table::{Field, Merge, Omit, Proto, Shape, Topology, Type, Wire};

pub(crate) static ALLOCATED_DEVICE_STATUS: Type = Type { name: "io.k8s.api.resource.v1.AllocatedDeviceStatus", go: "v1.AllocatedDeviceStatus", atomic: false, fields: &[
    Field { name: "conditions", go: "[]v1.Condition", shape: Shape::List(&Shape::Struct(&super::meta_v1::CONDITION)), omit: Omit::Never, proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Map(&["type"]), ..F },
    Field { name: "data", go: "runtime.RawExtension", shape: Shape::RawExtension, pointer: true, proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "device", required: true, omit: Omit::Never, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "driver", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "networkData", go: "v1.NetworkDeviceData", shape: Shape::Struct(&NETWORK_DEVICE_DATA), pointer: true, proto: Some(Proto { number: 6, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "pool", required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "shareID", pointer: true, proto: Some(Proto { number: 7, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static ALLOCATION_RESULT: Type = Type { name: "io.k8s.api.resource.v1.AllocationResult", go: "v1.AllocationResult", atomic: false, fields: &[
    Field { name: "allocationTimestamp", go: "v1.Time", shape: Shape::Time, pointer: true, proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "devices", go: "v1.DeviceAllocationResult", shape: Shape::Struct(&DEVICE_ALLOCATION_RESULT), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "nodeSelector", go: "v1.NodeSelector", shape: Shape::Struct(&super::core_v1::NODE_SELECTOR), pointer: true, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static CEL_DEVICE_SELECTOR: Type = Type { name: "io.k8s.api.resource.v1.CELDeviceSelector", go: "v1.CELDeviceSelector", atomic: false, fields: &[
    Field { name: "expression", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static CAPACITY_REQUEST_POLICY: Type = Type { name: "io.k8s.api.resource.v1.CapacityRequestPolicy", go: "v1.CapacityRequestPolicy", atomic: false, fields: &[
    Field { name: "default", go: "resource.Quantity", shape: Shape::Quantity, pointer: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "validRange", go: "v1.CapacityRequestPolicyRange", shape: Shape::Struct(&CAPACITY_REQUEST_POLICY_RANGE), pointer: true, proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "validValues", go: "[]resource.Quantity", shape: Shape::List(&Shape::Quantity), proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
] };

pub(crate) static CAPACITY_REQUEST_POLICY_RANGE: Type = Type { name: "io.k8s.api.resource.v1.CapacityRequestPolicyRange", go: "v1.CapacityRequestPolicyRange", atomic: false, fields: &[
    Field { name: "max", go: "resource.Quantity", shape: Shape::Quantity, pointer: true, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "min", go: "resource.Quantity", shape: Shape::Quantity, pointer: true, required: true, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "step", go: "resource.Quantity", shape: Shape::Quantity, pointer: true, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static CAPACITY_REQUIREMENTS: Type = Type { name: "io.k8s.api.resource.v1.CapacityRequirements", go: "v1.CapacityRequirements", atomic: false, fields: &[
    Field { name: "requests", go: "map[v1.QualifiedName]resource.Quantity", shape: Shape::Map(&Shape::Quantity), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static COUNTER: Type = Type { name: "io.k8s.api.resource.v1.Counter", go: "v1.Counter", atomic: false, fields: &[
    Field { name: "value", go: "resource.Quantity", shape: Shape::Quantity, required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static COUNTER_SET: Type = Type { name: "io.k8s.api.resource.v1.CounterSet", go: "v1.CounterSet", atomic: false, fields: &[
    Field { name: "counters", go: "map[string]v1.Counter", shape: Shape::Map(&Shape::Struct(&COUNTER)), required: true, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "name", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static DEVICE: Type = Type { name: "io.k8s.api.resource.v1.Device", go: "v1.Device", atomic: false, fields: &[
    Field { name: "allNodes", go: "bool", shape: Shape::Bool, pointer: true, proto: Some(Proto { number: 7, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "allowMultipleAllocations", go: "bool", shape: Shape::Bool, pointer: true, proto: Some(Proto { number: 12, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "attributes", go: "map[v1.QualifiedName]v1.DeviceAttribute", shape: Shape::Map(&Shape::Struct(&DEVICE_ATTRIBUTE)), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "bindingConditions", go: "[]string", shape: Shape::List(&Shape::String("string")), proto: Some(Proto { number: 10, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "bindingFailureConditions", go: "[]string", shape: Shape::List(&Shape::String("string")), proto: Some(Proto { number: 11, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "bindsToNode", go: "bool", shape: Shape::Bool, pointer: true, proto: Some(Proto { number: 9, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "capacity", go: "map[v1.QualifiedName]v1.DeviceCapacity", shape: Shape::Map(&Shape::Struct(&DEVICE_CAPACITY)), proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "consumesCounters", go: "[]v1.DeviceCounterConsumption", shape: Shape::List(&Shape::Struct(&DEVICE_COUNTER_CONSUMPTION)), proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "name", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "nodeAllocatableResources", go: "map[v1.ResourceName]v1.NodeAllocatableResource", shape: Shape::Map(&Shape::Struct(&NODE_ALLOCATABLE_RESOURCE)), proto: Some(Proto { number: 14, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "nodeName", pointer: true, proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "nodeSelector", go: "v1.NodeSelector", shape: Shape::Struct(&super::core_v1::NODE_SELECTOR), pointer: true, proto: Some(Proto { number: 6, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "taints", go: "[]v1.DeviceTaint", shape: Shape::List(&Shape::Struct(&DEVICE_TAINT)), proto: Some(Proto { number: 8, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
] };

pub(crate) static DEVICE_ALLOCATION_CONFIGURATION: Type = Type { name: "io.k8s.api.resource.v1.DeviceAllocationConfiguration", go: "v1.DeviceAllocationConfiguration", atomic: false, fields: &[
    Field { name: "opaque", declared_in: "DeviceConfiguration", go: "v1.OpaqueDeviceConfiguration", shape: Shape::Struct(&OPAQUE_DEVICE_CONFIGURATION), pointer: true, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[3], wrapped: false }), ..F },
    Field { name: "requests", go: "[]string", shape: Shape::List(&Shape::String("string")), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "source", go: "v1.AllocationConfigSource", shape: Shape::String("v1.AllocationConfigSource"), required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), values: &["FromClaim", "FromClass"], ..F },
] };

pub(crate) static DEVICE_ALLOCATION_RESULT: Type = Type { name: "io.k8s.api.resource.v1.DeviceAllocationResult", go: "v1.DeviceAllocationResult", atomic: false, fields: &[
    Field { name: "config", go: "[]v1.DeviceAllocationConfiguration", shape: Shape::List(&Shape::Struct(&DEVICE_ALLOCATION_CONFIGURATION)), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "results", go: "[]v1.DeviceRequestAllocationResult", shape: Shape::List(&Shape::Struct(&DEVICE_REQUEST_ALLOCATION_RESULT)), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
] };

pub(crate) static DEVICE_ATTRIBUTE: Type = Type { name: "io.k8s.api.resource.v1.DeviceAttribute", go: "v1.DeviceAttribute", atomic: false, fields: &[
    Field { name: "bool", go: "bool", shape: Shape::Bool, pointer: true, proto: Some(Proto { number: 3, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "bools", go: "[]bool", shape: Shape::List(&Shape::Bool), proto: Some(Proto { number: 7, wire: Wire::Varint, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "int", go: "int64", shape: Shape::Int64, pointer: true, proto: Some(Proto { number: 2, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "ints", go: "[]int64", shape: Shape::List(&Shape::Int64), proto: Some(Proto { number: 6, wire: Wire::Varint, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "string", pointer: true, proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "strings", go: "[]string", shape: Shape::List(&Shape::String("string")), proto: Some(Proto { number: 8, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "version", pointer: true, proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "versions", go: "[]string", shape: Shape::List(&Shape::String("string")), proto: Some(Proto { number: 9, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
] };

pub(crate) static DEVICE_CAPACITY: Type = Type { name: "io.k8s.api.resource.v1.DeviceCapacity", go: "v1.DeviceCapacity", atomic: false, fields: &[
    Field { name: "requestPolicy", go: "v1.CapacityRequestPolicy", shape: Shape::Struct(&CAPACITY_REQUEST_POLICY), pointer: true, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "value", go: "resource.Quantity", shape: Shape::Quantity, required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static DEVICE_CLAIM: Type = Type { name: "io.k8s.api.resource.v1.DeviceClaim", go: "v1.DeviceClaim", atomic: false, fields: &[
    Field { name: "config", go: "[]v1.DeviceClaimConfiguration", shape: Shape::List(&Shape::Struct(&DEVICE_CLAIM_CONFIGURATION)), proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "constraints", go: "[]v1.DeviceConstraint", shape: Shape::List(&Shape::Struct(&DEVICE_CONSTRAINT)), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "requests", go: "[]v1.DeviceRequest", shape: Shape::List(&Shape::Struct(&DEVICE_REQUEST)), omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
] };

pub(crate) static DEVICE_CLAIM_CONFIGURATION: Type = Type { name: "io.k8s.api.resource.v1.DeviceClaimConfiguration", go: "v1.DeviceClaimConfiguration", atomic: false, fields: &[
    Field { name: "opaque", declared_in: "DeviceConfiguration", go: "v1.OpaqueDeviceConfiguration", shape: Shape::Struct(&OPAQUE_DEVICE_CONFIGURATION), pointer: true, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[2], wrapped: false }), ..F },
    Field { name: "requests", go: "[]string", shape: Shape::List(&Shape::String("string")), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
] };

pub(crate) static DEVICE_CLASS: Type = Type { name: "io.k8s.api.resource.v1.DeviceClass", go: "v1.DeviceClass", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ObjectMeta", shape: Shape::Struct(&super::meta_v1::OBJECT_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "spec", go: "v1.DeviceClassSpec", shape: Shape::Struct(&DEVICE_CLASS_SPEC), omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static DEVICE_CLASS_CONFIGURATION: Type = Type { name: "io.k8s.api.resource.v1.DeviceClassConfiguration", go: "v1.DeviceClassConfiguration", atomic: false, fields: &[
    Field { name: "opaque", declared_in: "DeviceConfiguration", go: "v1.OpaqueDeviceConfiguration", shape: Shape::Struct(&OPAQUE_DEVICE_CONFIGURATION), pointer: true, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[1], wrapped: false }), ..F },
] };

pub(crate) static DEVICE_CLASS_LIST: Type = Type { name: "io.k8s.api.resource.v1.DeviceClassList", go: "v1.DeviceClassList", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "items", go: "[]v1.DeviceClass", shape: Shape::List(&Shape::Struct(&DEVICE_CLASS)), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ListMeta", shape: Shape::Struct(&super::meta_v1::LIST_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static DEVICE_CLASS_SPEC: Type = Type { name: "io.k8s.api.resource.v1.DeviceClassSpec", go: "v1.DeviceClassSpec", atomic: false, fields: &[
    Field { name: "config", go: "[]v1.DeviceClassConfiguration", shape: Shape::List(&Shape::Struct(&DEVICE_CLASS_CONFIGURATION)), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "extendedResourceName", pointer: true, proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "selectors", go: "[]v1.DeviceSelector", shape: Shape::List(&Shape::Struct(&DEVICE_SELECTOR)), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
] };

pub(crate) static DEVICE_CONSTRAINT: Type = Type { name: "io.k8s.api.resource.v1.DeviceConstraint", go: "v1.DeviceConstraint", atomic: false, fields: &[
    Field { name: "distinctAttribute", go: "v1.FullyQualifiedName", shape: Shape::String("v1.FullyQualifiedName"), pointer: true, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "matchAttribute", go: "v1.FullyQualifiedName", shape: Shape::String("v1.FullyQualifiedName"), pointer: true, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "requests", go: "[]string", shape: Shape::List(&Shape::String("string")), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
] };

pub(crate) static DEVICE_COUNTER_CONSUMPTION: Type = Type { name: "io.k8s.api.resource.v1.DeviceCounterConsumption", go: "v1.DeviceCounterConsumption", atomic: false, fields: &[
    Field { name: "compatibilityGroups", go: "[]string", shape: Shape::List(&Shape::String("string")), proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "counterSet", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "counters", go: "map[string]v1.Counter", shape: Shape::Map(&Shape::Struct(&COUNTER)), required: true, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static DEVICE_DERIVED_ATTRIBUTE: Type = Type { name: "io.k8s.api.resource.v1.DeviceDerivedAttribute", go: "v1.DeviceDerivedAttribute", atomic: false, fields: &[
    Field { name: "expression", required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "name", go: "v1.FullyQualifiedName", shape: Shape::String("v1.FullyQualifiedName"), required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static DEVICE_REQUEST: Type = Type { name: "io.k8s.api.resource.v1.DeviceRequest", go: "v1.DeviceRequest", atomic: false, fields: &[
    Field { name: "exactly", go: "v1.ExactDeviceRequest", shape: Shape::Struct(&EXACT_DEVICE_REQUEST), pointer: true, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "firstAvailable", go: "[]v1.DeviceSubRequest", shape: Shape::List(&Shape::Struct(&DEVICE_SUB_REQUEST)), proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "name", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static DEVICE_REQUEST_ALLOCATION_RESULT: Type = Type { name: "io.k8s.api.resource.v1.DeviceRequestAllocationResult", go: "v1.DeviceRequestAllocationResult", atomic: false, fields: &[
    Field { name: "adminAccess", go: "bool", shape: Shape::Bool, pointer: true, proto: Some(Proto { number: 5, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "bindingConditions", go: "[]string", shape: Shape::List(&Shape::String("string")), proto: Some(Proto { number: 7, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "bindingFailureConditions", go: "[]string", shape: Shape::List(&Shape::String("string")), proto: Some(Proto { number: 8, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "consumedCapacity", go: "map[v1.QualifiedName]resource.Quantity", shape: Shape::Map(&Shape::Quantity), proto: Some(Proto { number: 10, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "device", required: true, omit: Omit::Never, proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "driver", required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "pool", required: true, omit: Omit::Never, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "request", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "shareID", go: "types.UID", shape: Shape::String("types.UID"), pointer: true, proto: Some(Proto { number: 9, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "skipNodeOperations", go: "[]v1.SkipNodeOperation", shape: Shape::List(&Shape::String("v1.SkipNodeOperation")), proto: Some(Proto { number: 11, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Set, values: &["*", "NodePrepareResources", "NodeUnprepareResources"], ..F },
    Field { name: "tolerations", go: "[]v1.DeviceToleration", shape: Shape::List(&Shape::Struct(&DEVICE_TOLERATION)), proto: Some(Proto { number: 6, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
] };

pub(crate) static DEVICE_SELECTOR: Type = Type { name: "io.k8s.api.resource.v1.DeviceSelector", go: "v1.DeviceSelector", atomic: false, fields: &[
    Field { name: "cel", go: "v1.CELDeviceSelector", shape: Shape::Struct(&CEL_DEVICE_SELECTOR), pointer: true, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static DEVICE_SUB_REQUEST: Type = Type { name: "io.k8s.api.resource.v1.DeviceSubRequest", go: "v1.DeviceSubRequest", atomic: false, fields: &[
    Field { name: "allocationMode", go: "v1.DeviceAllocationMode", shape: Shape::String("v1.DeviceAllocationMode"), proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "capacity", go: "v1.CapacityRequirements", shape: Shape::Struct(&CAPACITY_REQUIREMENTS), pointer: true, proto: Some(Proto { number: 7, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "count", go: "int64", shape: Shape::Int64, proto: Some(Proto { number: 5, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "derivedAttributes", go: "[]v1.DeviceDerivedAttribute", shape: Shape::List(&Shape::Struct(&DEVICE_DERIVED_ATTRIBUTE)), proto: Some(Proto { number: 8, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "deviceClassName", required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "name", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "selectors", go: "[]v1.DeviceSelector", shape: Shape::List(&Shape::Struct(&DEVICE_SELECTOR)), proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "tolerations", go: "[]v1.DeviceToleration", shape: Shape::List(&Shape::Struct(&DEVICE_TOLERATION)), proto: Some(Proto { number: 6, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
] };

pub(crate) static DEVICE_TAINT: Type = Type { name: "io.k8s.api.resource.v1.DeviceTaint", go: "v1.DeviceTaint", atomic: false, fields: &[
    Field { name: "effect", go: "v1.DeviceTaintEffect", shape: Shape::String("v1.DeviceTaintEffect"), required: true, omit: Omit::Never, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), values: &["NoExecute", "NoSchedule", "None"], ..F },
    Field { name: "key", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "timeAdded", go: "v1.Time", shape: Shape::Time, pointer: true, proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "value", proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static DEVICE_TAINT_RULE: Type = Type { name: "io.k8s.api.resource.v1.DeviceTaintRule", go: "v1.DeviceTaintRule", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ObjectMeta", shape: Shape::Struct(&super::meta_v1::OBJECT_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "spec", go: "v1.DeviceTaintRuleSpec", shape: Shape::Struct(&DEVICE_TAINT_RULE_SPEC), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "status", go: "v1.DeviceTaintRuleStatus", shape: Shape::Struct(&DEVICE_TAINT_RULE_STATUS), proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static DEVICE_TAINT_RULE_LIST: Type = Type { name: "io.k8s.api.resource.v1.DeviceTaintRuleList", go: "v1.DeviceTaintRuleList", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "items", go: "[]v1.DeviceTaintRule", shape: Shape::List(&Shape::Struct(&DEVICE_TAINT_RULE)), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ListMeta", shape: Shape::Struct(&super::meta_v1::LIST_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static DEVICE_TAINT_RULE_SPEC: Type = Type { name: "io.k8s.api.resource.v1.DeviceTaintRuleSpec", go: "v1.DeviceTaintRuleSpec", atomic: false, fields: &[
    Field { name: "deviceSelector", go: "v1.DeviceTaintSelector", shape: Shape::Struct(&DEVICE_TAINT_SELECTOR), pointer: true, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "taint", go: "v1.DeviceTaint", shape: Shape::Struct(&DEVICE_TAINT), required: true, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static DEVICE_TAINT_RULE_STATUS: Type = Type { name: "io.k8s.api.resource.v1.DeviceTaintRuleStatus", go: "v1.DeviceTaintRuleStatus", atomic: false, fields: &[
    Field { name: "conditions", go: "[]v1.Condition", shape: Shape::List(&Shape::Struct(&super::meta_v1::CONDITION)), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), merge: Merge { merge: true, key: "type", ..M }, topology: Topology::Map(&["type"]), ..F },
] };

pub(crate) static DEVICE_TAINT_SELECTOR: Type = Type { name: "io.k8s.api.resource.v1.DeviceTaintSelector", go: "v1.DeviceTaintSelector", atomic: false, fields: &[
    Field { name: "device", pointer: true, proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "driver", pointer: true, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "pool", pointer: true, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static DEVICE_TOLERATION: Type = Type { name: "io.k8s.api.resource.v1.DeviceToleration", go: "v1.DeviceToleration", atomic: false, fields: &[
    Field { name: "effect", go: "v1.DeviceTaintEffect", shape: Shape::String("v1.DeviceTaintEffect"), proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), values: &["NoExecute", "NoSchedule", "None"], ..F },
    Field { name: "key", proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "operator", go: "v1.DeviceTolerationOperator", shape: Shape::String("v1.DeviceTolerationOperator"), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), default: "\"Equal\"", values: &["Equal", "Exists"], ..F },
    Field { name: "tolerationSeconds", go: "int64", shape: Shape::Int64, pointer: true, proto: Some(Proto { number: 5, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "value", proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static EXACT_DEVICE_REQUEST: Type = Type { name: "io.k8s.api.resource.v1.ExactDeviceRequest", go: "v1.ExactDeviceRequest", atomic: false, fields: &[
    Field { name: "adminAccess", go: "bool", shape: Shape::Bool, pointer: true, proto: Some(Proto { number: 5, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "allocationMode", go: "v1.DeviceAllocationMode", shape: Shape::String("v1.DeviceAllocationMode"), proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "capacity", go: "v1.CapacityRequirements", shape: Shape::Struct(&CAPACITY_REQUIREMENTS), pointer: true, proto: Some(Proto { number: 7, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "count", go: "int64", shape: Shape::Int64, proto: Some(Proto { number: 4, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "derivedAttributes", go: "[]v1.DeviceDerivedAttribute", shape: Shape::List(&Shape::Struct(&DEVICE_DERIVED_ATTRIBUTE)), proto: Some(Proto { number: 8, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "deviceClassName", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "selectors", go: "[]v1.DeviceSelector", shape: Shape::List(&Shape::Struct(&DEVICE_SELECTOR)), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "tolerations", go: "[]v1.DeviceToleration", shape: Shape::List(&Shape::Struct(&DEVICE_TOLERATION)), proto: Some(Proto { number: 6, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
] };

pub(crate) static NETWORK_DEVICE_DATA: Type = Type { name: "io.k8s.api.resource.v1.NetworkDeviceData", go: "v1.NetworkDeviceData", atomic: false, fields: &[
    Field { name: "hardwareAddress", proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "interfaceName", proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "ips", go: "[]string", shape: Shape::List(&Shape::String("string")), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
] };

pub(crate) static NODE_ALLOCATABLE_MAPPING: Type = Type { name: "io.k8s.api.resource.v1.NodeAllocatableMapping", go: "v1.NodeAllocatableMapping", atomic: false, fields: &[
    Field { name: "capacityKey", go: "v1.QualifiedName", shape: Shape::String("v1.QualifiedName"), pointer: true, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "capacityMultiplier", go: "resource.Quantity", shape: Shape::Quantity, pointer: true, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "deviceMultiplier", go: "resource.Quantity", shape: Shape::Quantity, pointer: true, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static NODE_ALLOCATABLE_OVERHEAD: Type = Type { name: "io.k8s.api.resource.v1.NodeAllocatableOverhead", go: "v1.NodeAllocatableOverhead", atomic: false, fields: &[
    Field { name: "perContainer", go: "resource.Quantity", shape: Shape::Quantity, pointer: true, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "perPod", go: "resource.Quantity", shape: Shape::Quantity, pointer: true, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static NODE_ALLOCATABLE_RESOURCE: Type = Type { name: "io.k8s.api.resource.v1.NodeAllocatableResource", go: "v1.NodeAllocatableResource", atomic: false, fields: &[
    Field { name: "mapping", go: "v1.NodeAllocatableMapping", shape: Shape::Struct(&NODE_ALLOCATABLE_MAPPING), pointer: true, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "overhead", go: "v1.NodeAllocatableOverhead", shape: Shape::Struct(&NODE_ALLOCATABLE_OVERHEAD), pointer: true, proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static OPAQUE_DEVICE_CONFIGURATION: Type = Type { name: "io.k8s.api.resource.v1.OpaqueDeviceConfiguration", go: "v1.OpaqueDeviceConfiguration", atomic: false, fields: &[
    Field { name: "driver", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "parameters", go: "runtime.RawExtension", shape: Shape::RawExtension, required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static RESOURCE_CLAIM: Type = Type { name: "io.k8s.api.resource.v1.ResourceClaim", go: "v1.ResourceClaim", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ObjectMeta", shape: Shape::Struct(&super::meta_v1::OBJECT_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "spec", go: "v1.ResourceClaimSpec", shape: Shape::Struct(&RESOURCE_CLAIM_SPEC), omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "status", go: "v1.ResourceClaimStatus", shape: Shape::Struct(&RESOURCE_CLAIM_STATUS), proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static RESOURCE_CLAIM_CONSUMER_REFERENCE: Type = Type { name: "io.k8s.api.resource.v1.ResourceClaimConsumerReference", go: "v1.ResourceClaimConsumerReference", atomic: false, fields: &[
    Field { name: "apiGroup", proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "name", required: true, omit: Omit::Never, proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "resource", required: true, omit: Omit::Never, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "uid", go: "types.UID", shape: Shape::String("types.UID"), required: true, omit: Omit::Never, proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static RESOURCE_CLAIM_LIST: Type = Type { name: "io.k8s.api.resource.v1.ResourceClaimList", go: "v1.ResourceClaimList", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "items", go: "[]v1.ResourceClaim", shape: Shape::List(&Shape::Struct(&RESOURCE_CLAIM)), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ListMeta", shape: Shape::Struct(&super::meta_v1::LIST_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static RESOURCE_CLAIM_SPEC: Type = Type { name: "io.k8s.api.resource.v1.ResourceClaimSpec", go: "v1.ResourceClaimSpec", atomic: false, fields: &[
    Field { name: "devices", go: "v1.DeviceClaim", shape: Shape::Struct(&DEVICE_CLAIM), omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static RESOURCE_CLAIM_STATUS: Type = Type { name: "io.k8s.api.resource.v1.ResourceClaimStatus", go: "v1.ResourceClaimStatus", atomic: false, fields: &[
    Field { name: "allocation", go: "v1.AllocationResult", shape: Shape::Struct(&ALLOCATION_RESULT), pointer: true, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "devices", go: "[]v1.AllocatedDeviceStatus", shape: Shape::List(&Shape::Struct(&ALLOCATED_DEVICE_STATUS)), proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Map(&["driver", "device", "pool", "shareID"]), ..F },
    Field { name: "reservedFor", go: "[]v1.ResourceClaimConsumerReference", shape: Shape::List(&Shape::Struct(&RESOURCE_CLAIM_CONSUMER_REFERENCE)), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), merge: Merge { merge: true, key: "uid", ..M }, topology: Topology::Map(&["uid"]), ..F },
] };

pub(crate) static RESOURCE_CLAIM_TEMPLATE: Type = Type { name: "io.k8s.api.resource.v1.ResourceClaimTemplate", go: "v1.ResourceClaimTemplate", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ObjectMeta", shape: Shape::Struct(&super::meta_v1::OBJECT_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "spec", go: "v1.ResourceClaimTemplateSpec", shape: Shape::Struct(&RESOURCE_CLAIM_TEMPLATE_SPEC), omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static RESOURCE_CLAIM_TEMPLATE_LIST: Type = Type { name: "io.k8s.api.resource.v1.ResourceClaimTemplateList", go: "v1.ResourceClaimTemplateList", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "items", go: "[]v1.ResourceClaimTemplate", shape: Shape::List(&Shape::Struct(&RESOURCE_CLAIM_TEMPLATE)), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ListMeta", shape: Shape::Struct(&super::meta_v1::LIST_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static RESOURCE_CLAIM_TEMPLATE_SPEC: Type = Type { name: "io.k8s.api.resource.v1.ResourceClaimTemplateSpec", go: "v1.ResourceClaimTemplateSpec", atomic: false, fields: &[
    Field { name: "metadata", go: "v1.ObjectMeta", shape: Shape::Struct(&super::meta_v1::OBJECT_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "spec", go: "v1.ResourceClaimSpec", shape: Shape::Struct(&RESOURCE_CLAIM_SPEC), omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static RESOURCE_POOL: Type = Type { name: "io.k8s.api.resource.v1.ResourcePool", go: "v1.ResourcePool", atomic: false, fields: &[
    Field { name: "generation", go: "int64", shape: Shape::Int64, required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "name", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "resourceSliceCount", go: "int64", shape: Shape::Int64, required: true, omit: Omit::Never, proto: Some(Proto { number: 3, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
] };

pub(crate) static RESOURCE_SLICE: Type = Type { name: "io.k8s.api.resource.v1.ResourceSlice", go: "v1.ResourceSlice", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ObjectMeta", shape: Shape::Struct(&super::meta_v1::OBJECT_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "spec", go: "v1.ResourceSliceSpec", shape: Shape::Struct(&RESOURCE_SLICE_SPEC), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static RESOURCE_SLICE_LIST: Type = Type { name: "io.k8s.api.resource.v1.ResourceSliceList", go: "v1.ResourceSliceList", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "items", go: "[]v1.ResourceSlice", shape: Shape::List(&Shape::Struct(&RESOURCE_SLICE)), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ListMeta", shape: Shape::Struct(&super::meta_v1::LIST_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static RESOURCE_SLICE_SPEC: Type = Type { name: "io.k8s.api.resource.v1.ResourceSliceSpec", go: "v1.ResourceSliceSpec", atomic: false, fields: &[
    Field { name: "allNodes", go: "bool", shape: Shape::Bool, pointer: true, proto: Some(Proto { number: 5, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "devices", go: "[]v1.Device", shape: Shape::List(&Shape::Struct(&DEVICE)), proto: Some(Proto { number: 6, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "driver", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "nodeName", pointer: true, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "nodeSelector", go: "v1.NodeSelector", shape: Shape::Struct(&super::core_v1::NODE_SELECTOR), pointer: true, proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "partitionTypeAttribute", go: "v1.FullyQualifiedName", shape: Shape::String("v1.FullyQualifiedName"), pointer: true, proto: Some(Proto { number: 9, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "perDeviceNodeSelection", go: "bool", shape: Shape::Bool, pointer: true, proto: Some(Proto { number: 7, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "pool", go: "v1.ResourcePool", shape: Shape::Struct(&RESOURCE_POOL), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "sharedCounters", go: "[]v1.CounterSet", shape: Shape::List(&Shape::Struct(&COUNTER_SET)), proto: Some(Proto { number: 8, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "skipNodeOperations", go: "[]v1.SkipNodeOperation", shape: Shape::List(&Shape::String("v1.SkipNodeOperation")), proto: Some(Proto { number: 10, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Set, values: &["*", "NodePrepareResources", "NodeUnprepareResources"], ..F },
] };
