//! Protobuf against the output of Go's serializers (`data/gen`), and properties of decoding and encoding.

use k1s_kinds::{
    codec, find_kind, printers, protobuf,
    table::{SchemaOther, Shape, Type},
    type_by_name,
};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

fn lookup(api_version: &str, kind: &str) -> Option<&'static Type> {
    if kind == "Status" {
        return type_by_name("io.k8s.apimachinery.pkg.apis.meta.v1.Status");
    }
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    find_kind(group, version, kind)
        .map(|kind| kind.ty)
        .or_else(|| find_kind(group, version, kind.strip_suffix("List")?)?.list_ty)
}

macro_rules! data {
    ($($name:literal),*) => {
        [$(($name, include_str!(concat!("data/", $name, ".json")), include_bytes!(concat!("data/", $name, ".pb")).as_slice())),*]
    };
}

fn pairs() -> [(&'static str, &'static str, &'static [u8]); 12] {
    data![
        "pod",
        "pod-empty",
        "pod-list",
        "secret",
        "service",
        "deployment",
        "lease",
        "role-empty",
        "controller-revision",
        "token-review",
        "status",
        "crd"
    ]
}

#[test]
fn both_encodings_of_go_are_read_and_written() {
    for (name, json, bytes) in pairs() {
        let json: Value = serde_json::from_str(json).unwrap();
        let (api_version, kind) = (json["apiVersion"].as_str().unwrap(), json["kind"].as_str().unwrap());
        let ty = lookup(api_version, kind).unwrap();

        let mut read = protobuf::decode(bytes, lookup).unwrap();
        codec::finish(ty, &mut read);
        assert_eq!(read, json, "{name}");
        assert_eq!(protobuf::encode(ty, &json, api_version, kind), bytes, "{name}");

        let (mut again, mut strict) = (json.clone(), Vec::new());
        codec::decode(ty, &mut again, Some(&mut strict)).unwrap();
        codec::finish(ty, &mut again);
        assert_eq!((again, strict), (json, vec![]), "{name}");
    }
}

#[test]
fn a_watch_is_framed_as_go_frames_it() {
    let pod = include_bytes!("data/pod.pb");
    let frames = [protobuf::watch_frame("ADDED", pod), protobuf::watch_frame("DELETED", pod)].concat();
    assert_eq!(frames, include_bytes!("data/watch.frames"));
}

#[test]
fn bytes_that_are_not_an_object_are_refused() {
    let error = |bytes: &[u8]| protobuf::decode(bytes, lookup).unwrap_err().to_string();
    assert_eq!(error(b""), "empty data");
    assert_eq!(
        error(b"{}"),
        "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
    );
    assert_eq!(error(b"k8s\0"), "empty body");
    assert_eq!(error(b"k8s\0\x0a\x07\x0a\x02v1\x12\x01X"), r#"no kind "X" is registered for version "v1""#);
    assert_eq!(error(b"k8s\0\x12\xff"), "unexpected EOF");
    assert_eq!(error(b"k8s\0\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), "proto: integer overflow");
    let pod = [b"k8s\0\x0a\x09\x0a\x02v1\x12\x03Pod\x12\x02".as_slice(), b"\x08\x01"].concat();
    assert_eq!(error(&pod), "proto: wrong wireType = 0 for field metadata");
}

#[test]
fn unknown_fields_are_skipped_and_packed_numbers_are_read() {
    // Field 63 as a varint, as a group with one, and as fixed32; then supplementalGroups, packed.
    let message = b"\xf8\x03\x05\xfb\x03\x08\x01\xfc\x03\xfd\x03\0\0\0\0\x12\x06\x72\x04\x22\x02\x01\x02";
    let mut bytes = b"k8s\0\x0a\x09\x0a\x02v1\x12\x03Pod\x12".to_vec();
    bytes.push(message.len() as u8);
    bytes.extend(message);
    let pod = protobuf::decode(&bytes, lookup).unwrap();
    let want = json!({"apiVersion": "v1", "kind": "Pod", "spec": {"securityContext": {"supplementalGroups": [1, 2]}}});
    assert_eq!(pod, want);
}

#[test]
fn messages_too_deep_are_refused() {
    let mut schema = Vec::new();
    for _ in 0..400 {
        // JSONSchemaProps.not
        let mut outer = vec![0xda, 0x01];
        let mut length = schema.len();
        while length > 0x7f {
            outer.push(length as u8 & 0x7f | 0x80);
            length >>= 7;
        }
        outer.push(length as u8);
        outer.extend(&schema);
        schema = outer;
    }
    let mut envelope = b"k8s\0\x12".to_vec();
    envelope.extend([(schema.len() & 0x7f | 0x80) as u8, (schema.len() >> 7) as u8]);
    envelope.extend(schema);
    let props = type_by_name("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps");
    assert!(props.is_some());
    assert_eq!(protobuf::decode(&envelope, |_, _| props), Err(protobuf::ProtoError::TooDeep));
}

/// Arbitrary JSON, with some names and strings that have a meaning.
fn any_json() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        "[a-z]{0,3}",
        Just("1.5Gi".to_owned()),
        Just("2024-01-02T03:04:05.1+01:00".to_owned()),
        Just("YR==".to_owned()),
        "[-+.0-9a-zA-Z:éT=]{0,30}",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        text.prop_map(Value::from),
    ];
    let name = prop_oneof![
        Just("metadata"),
        Just("spec"),
        Just("containers"),
        Just("resources"),
        Just("limits"),
        Just("data"),
        Just("creationTimestamp"),
        Just("labels"),
        Just("versions"),
        Just("schema"),
        Just("openAPIV3Schema"),
        Just("items"),
        Just("properties"),
        Just("ports"),
        Just("targetPort"),
        Just("name"),
        Just("other"),
    ];
    leaf.prop_recursive(6, 60, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((name.clone(), inner), 0..6).prop_map(|entries| Value::Object(
                entries.into_iter().map(|(k, v)| (k.to_owned(), v)).collect()
            )),
        ]
    })
}

/// A complete document of a type, generated from bytes.
struct Sample<I>(I);

impl<I: Iterator<Item = u8>> Sample<I> {
    fn byte(&mut self) -> u8 {
        self.0.next().unwrap_or(0)
    }

    fn object(&mut self, ty: &'static Type, depth: usize) -> Value {
        let mut map = Map::new();
        for field in ty.fields {
            let proto = field.proto.is_some();
            if proto
                && self.byte() % 3 == 1
                && let Some(value) = self.value(&field.shape, depth)
            {
                map.insert(field.name.to_owned(), value);
            }
        }
        Value::Object(map)
    }

    fn value(&mut self, shape: &'static Shape, depth: usize) -> Option<Value> {
        let pick = self.byte();
        Some(match shape {
            Shape::Bool => json!(pick.is_multiple_of(2)),
            Shape::Int32 => json!(i32::from(pick as i8) * 9_999_999),
            Shape::Int64 => json!(i64::from(pick as i8) * 99_999_999_999_999),
            Shape::Uint(_, most) => json!(u64::from(pick).min(*most)),
            Shape::Float64 => json!(f64::from(pick) + 0.25),
            Shape::String(_) => json!(["", "a", "ünï"][usize::from(pick % 3)]),
            Shape::Bytes => json!(["", "YQ==", "AP8="][usize::from(pick % 3)]),
            Shape::Time => json!(["2024-01-02T03:04:05Z", "1969-12-31T23:59:59Z"][usize::from(pick % 2)]),
            Shape::MicroTime => json!("2024-01-02T03:04:05.000001Z"),
            Shape::Duration => json!("1h0m5s"),
            Shape::Quantity => json!(["0", "1500m", "1Gi", "1e3", "-5"][usize::from(pick % 5)]),
            Shape::IntOrString => {
                [json!(0), json!(-7), json!(""), json!("50%")][usize::from(pick % 4)].clone()
            }
            Shape::RawExtension | Shape::FieldsV1 => json!({"any": [1, null]}),
            Shape::Json => json!([pick, "x"]),
            _ if depth == 0 => return None,
            Shape::SchemaOr(_, SchemaOther::Bool) if pick.is_multiple_of(2) => json!(pick.is_multiple_of(4)),
            Shape::SchemaOr(_, SchemaOther::StringArray) if pick.is_multiple_of(2) => json!(["a"]),
            Shape::SchemaOr(ty, SchemaOther::Array) if pick.is_multiple_of(2) => {
                json!([self.object(ty, depth - 1)])
            }
            Shape::SchemaOr(ty, _) | Shape::Struct(ty) => self.object(ty, depth - 1),
            Shape::List(shape) => {
                Value::Array((0..=pick % 2).filter_map(|_| self.value(shape, depth - 1)).collect())
            }
            Shape::Map(shape) => {
                let entries =
                    (0..=pick % 2).filter_map(|at| Some((at.to_string(), self.value(shape, depth - 1)?)));
                Value::Object(entries.collect())
            }
        })
    }
}

const KINDS: [(&str, &str); 8] = [
    ("v1", "Pod"),
    ("v1", "Service"),
    ("v1", "Secret"),
    ("apps/v1", "Deployment"),
    ("coordination.k8s.io/v1", "Lease"),
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
    ("v1", "Event"),
    ("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy"),
];

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn decoding_any_json_ends_and_is_idempotent(doc in any_json(), kind in 0..KINDS.len()) {
        let ty = lookup(KINDS[kind].0, KINDS[kind].1).unwrap();
        let mut once = doc;
        let mut strict = Vec::new();
        if codec::decode(ty, &mut once, Some(&mut strict)).is_ok() {
            let (mut twice, mut unknown) = (once.clone(), Vec::new());
            prop_assert_eq!(codec::decode(ty, &mut twice, Some(&mut unknown)), Ok(()));
            prop_assert_eq!(&twice, &once);
            prop_assert!(unknown.is_empty());
            codec::finish(ty, &mut twice);
            let mut thrice = twice.clone();
            codec::finish(ty, &mut thrice);
            prop_assert_eq!(twice, thrice);
        }
    }

    #[test]
    fn converting_and_printing_any_json_ends(doc in any_json()) {
        for kind in k1s_kinds::kinds() {
            let mut converted = doc.clone();
            if codec::from_unstructured(kind.ty, &mut converted, Some(&mut Vec::new())).is_ok() {
                let mut twice = converted.clone();
                prop_assert_eq!(codec::from_unstructured(kind.ty, &mut twice, None), Ok(()));
                prop_assert_eq!(&twice, &converted);
            }
            let cells = printers::row(kind.group, kind.kind, &doc, jiff::Timestamp::UNIX_EPOCH);
            prop_assert!(cells.len() >= printers::columns(kind.group, kind.kind).len());
        }
    }

    #[test]
    fn any_bytes_are_an_object_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        for (api_version, kind) in KINDS {
            let ty = lookup(api_version, kind);
            let mut whole = b"k8s\0\x12".to_vec();
            whole.extend([(bytes.len() & 0x7f | 0x80) as u8, (bytes.len() >> 7) as u8]);
            whole.extend(&bytes);
            let _ = protobuf::decode(&whole, |_, _| ty);
            let _ = protobuf::decode(&bytes, |_, _| ty);
        }
    }

    #[test]
    fn a_damaged_object_is_an_object_or_an_error(pair in 0..12usize, at in any::<prop::sample::Index>(), byte: u8) {
        let mut bytes = pairs()[pair].2.to_vec();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        let _ = protobuf::decode(&bytes, lookup);
        let _ = protobuf::decode(&bytes[..at], lookup);
    }

    #[test]
    fn a_finished_object_comes_back(source in prop::collection::vec(any::<u8>(), 0..600), kind in 0..KINDS.len()) {
        let (api_version, kind) = KINDS[kind];
        let ty = lookup(api_version, kind).unwrap();
        let mut doc = Sample(source.into_iter()).object(ty, 8);
        doc["apiVersion"] = json!(api_version);
        doc["kind"] = json!(kind);
        codec::finish(ty, &mut doc);
        let mut back = protobuf::decode(&protobuf::encode(ty, &doc, api_version, kind), lookup).unwrap();
        codec::finish(ty, &mut back);
        prop_assert_eq!(&back, &doc);
        let mut json = doc.clone();
        prop_assert_eq!(codec::decode(ty, &mut json, None), Ok(()));
        codec::finish(ty, &mut json);
        prop_assert_eq!(json, doc);
    }
}
