//! Configurations at the size limit, which several managers apply to the same objects.

use crate::corpus::{Hostile, LIMIT, many};

const MAP: [&str; 4] = [
    "/api/v1/namespaces/default/configmaps/applied?fieldManager=a",
    "/api/v1/namespaces/default/configmaps/applied?fieldManager=b",
    "/api/v1/namespaces/default/configmaps/applied?fieldManager=c",
    "/api/v1/namespaces/default/configmaps/applied?fieldManager=c&force=true",
];
const WIDGET: [&str; 3] = [
    "/apis/example.com/v1/namespaces/default/widgets/applied?fieldManager=a",
    "/apis/example.com/v1/namespaces/default/widgets/applied?fieldManager=b",
    "/apis/example.com/v1/namespaces/default/widgets/applied?fieldManager=b&force=true",
];
const MOST: usize = 150_000;

fn apply(name: &'static str, path: &'static str, body: String, code: u16, says: &'static str) -> Hostile {
    Hostile { name, method: "PATCH", path, content_type: "application/apply-patch+yaml", body, code, says }
}

fn map(data: &str) -> String {
    format!(r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"applied"}},"data":{{{data}}}}}"#)
}

fn keys(from: usize, value: &str) -> String {
    many(MOST, LIMIT / 3, |i| format!(r#""k{}":"{value}""#, from + i))
}

fn widget(spec: &str) -> String {
    format!(
        r#"{{"apiVersion":"example.com/v1","kind":"Widget","metadata":{{"name":"applied"}},"spec":{{{spec}}}}}"#
    )
}

fn items(place: impl Fn(usize) -> usize) -> String {
    format!(r#""keyed":[{}]"#, many(100_000, 1000, |i| format!(r#"{{"k":"i{}"}}"#, place(i))))
}

fn set(place: impl Fn(usize) -> usize) -> String {
    format!(r#""set":[{}]"#, many(100_000, 1000, |i| format!(r#""s{}""#, place(i))))
}

/// In order: each finds what those before it have left.
pub(crate) fn all() -> Vec<Hostile> {
    let conflicts = "Apply failed with ";
    vec![
        apply("a map of many keys", MAP[0], map(&keys(0, "v")), 201, ""),
        apply("the same again", MAP[0], map(&keys(0, "v")), 200, ""),
        apply("the same by another manager", MAP[1], map(&keys(0, "v")), 200, ""),
        apply("half of them shared", MAP[0], map(&keys(MOST / 2, "v")), 200, ""),
        apply("conflicts about all of them", MAP[2], map(&keys(0, "w")), 409, conflicts),
        apply("all of them taken by force", MAP[3], map(&keys(0, "w")), 200, ""),
        apply("nothing any more", MAP[3], map(""), 200, ""),
        apply("a list of many keys", WIDGET[0], widget(&items(|i| i)), 201, ""),
        apply("the same list by another manager", WIDGET[1], widget(&items(|i| i)), 200, ""),
        apply("the same list in another order", WIDGET[1], widget(&items(|i| 99_999 - i)), 200, ""),
        apply(
            "a list of few keys",
            WIDGET[0],
            widget(&items(|i| i / 50_000 * 50_000 + i % 10)),
            500,
            "duplicate",
        ),
        apply("a set of many values", WIDGET[0], widget(&set(|i| i)), 200, ""),
        apply("another set", WIDGET[2], widget(&set(|i| i + 50_000)), 200, ""),
        apply("an empty set", WIDGET[0], widget(r#""set":[]"#), 200, ""),
        apply("a free map", WIDGET[1], widget(&format!(r#""free":{{{}}}"#, keys(0, "v"))), 200, ""),
        // As in kube-apiserver: a map that loses all of its fields is null.
        apply("no free map", WIDGET[1], widget(""), 422, "must be of type object"),
    ]
}
