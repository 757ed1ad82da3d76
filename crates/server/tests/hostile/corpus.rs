//! Bodies at the size limit, one of each kind that once took minutes or gigabytes.

use serde_json::{Value, json};

use crate::applies;

/// Maximum size of a body.
pub(crate) const LIMIT: usize = 3 << 20;

/// A request that must be answered.
pub(crate) struct Hostile {
    pub(crate) name: &'static str,
    pub(crate) method: &'static str,
    pub(crate) path: &'static str,
    pub(crate) content_type: &'static str,
    pub(crate) body: String,
    /// The expected status code.
    pub(crate) code: u16,
    /// A text that the response contains.
    pub(crate) says: &'static str,
}

const JSON: &str = "application/json";
const YAML: &str = "application/yaml";
const JSON_PATCH: &str = "application/json-patch+json";
const MERGE_PATCH: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";

const PODS: &str = "/api/v1/namespaces/default/pods";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const WIDGETS: &str = "/apis/example.com/v1/namespaces/default/widgets";

/// As many comma-separated items as fit into a body with `rest` other bytes, up to `most`.
pub(crate) fn many(most: usize, rest: usize, item: impl Fn(usize) -> String) -> String {
    let mut out = String::new();
    for i in 0..most {
        let item = item(i);
        if out.len() + item.len() + 1 + rest > LIMIT {
            break;
        }
        if i > 0 {
            out.push(',');
        }
        out.push_str(&item);
    }
    out
}

fn post(
    name: &'static str,
    path: &'static str,
    body: impl Into<String>,
    code: u16,
    says: &'static str,
) -> Hostile {
    Hostile { name, method: "POST", path, content_type: JSON, body: body.into(), code, says }
}

fn patch(
    name: &'static str,
    path: &'static str,
    content_type: &'static str,
    body: impl Into<String>,
    code: u16,
    says: &'static str,
) -> Hostile {
    Hostile { name, method: "PATCH", path, content_type, body: body.into(), code, says }
}

/// A definition of `plural.example.com` whose spec has this schema.
pub(crate) fn definition(plural: &str, kind: &str, spec: &str) -> String {
    let schema = format!(r#"{{"openAPIV3Schema":{{"type":"object","properties":{{"spec":{spec}}}}}}}"#);
    versions(plural, kind, &format!(r#"[{{"name":"v1","served":true,"storage":true,"schema":{schema}}}]"#))
}

fn versions(plural: &str, kind: &str, versions: &str) -> String {
    format!(
        r#"{{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{{"name":"{plural}.example.com"}},"spec":{{"group":"example.com","scope":"Namespaced","names":{{"plural":"{plural}","kind":"{kind}"}},"versions":{versions}}}}}"#
    )
}

fn widget(spec: &str) -> String {
    format!(r#"{{"apiVersion":"example.com/v1","kind":"Widget","metadata":{{"name":"w"}},"spec":{spec}}}"#)
}

/// The definitions and objects that the corpus needs.
pub(crate) fn prepared() -> Vec<(&'static str, String)> {
    let values = many(100_000, 200_000, |i| format!("\"v{i}\""));
    let alternatives = many(10_000, 200_000, |i| format!(r#"{{"required":["a{i}"]}}"#));
    let spec = json!({"type": "object", "properties": {
        "numbers": {"type": "array", "items": {"type": "integer"}},
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "keyed": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
            "items": {"type": "object", "required": ["k"], "properties": {"k": {"type": "string"}}}},
        "map": {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "integer"}}},
        "defaulted": {"type": "array", "items": {"type": "object", "properties": {
            "text": {"type": "string", "default": "x".repeat(100_000)}}}},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
    }});
    let config_map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "wide"},
        "data": (0..20_000).map(|i| (format!("k{i}"), Value::from("v"))).collect::<serde_json::Map<_, _>>()});
    let revision = json!({"apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": {"name": "long"},
        "revision": 1, "data": {"list": vec![0; 500_000]}});
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "svc"},
        "spec": {"ports": [{"name": "a", "port": 1}]}});
    vec![
        (DEFINITIONS, definition("widgets", "Widget", &spec.to_string())),
        (
            DEFINITIONS,
            definition(
                "enums",
                "Enum",
                &format!(r#"{{"type":"array","items":{{"type":"string","enum":[{values}]}}}}"#),
            ),
        ),
        (
            DEFINITIONS,
            definition(
                "choices",
                "Choice",
                &format!(
                    r#"{{"type":"array","items":{{"type":"object","x-kubernetes-preserve-unknown-fields":true,"anyOf":[{alternatives}]}}}}"#
                ),
            ),
        ),
        (MAPS, config_map.to_string()),
        ("/apis/apps/v1/namespaces/default/controllerrevisions", revision.to_string()),
        ("/api/v1/namespaces/default/services", service.to_string()),
    ]
}

/// A part of the corpus, which a process plays.
pub(crate) fn part(number: usize) -> Vec<Hostile> {
    let themes: &[fn() -> Vec<Hostile>] = match number {
        0 => &[errors, owners_and_pods, definitions],
        2 => &[applies::all],
        _ => &[custom_resources, documents, patches, lists],
    };
    themes.iter().flat_map(|theme| theme()).collect()
}

fn errors() -> Vec<Hostile> {
    let requirements = many(900_000, 400, |_| "{}".to_owned());
    let review = format!(
        r#"{{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview","spec":{{"resourceAttributes":{{"verb":"get","resource":"pods","labelSelector":{{"requirements":[{requirements}]}}}}}}}}"#
    );
    let labels = many(400_000, 400, |i| format!(r#""!{i}":"-""#));
    let labelled = format!(r#"{{"metadata":{{"name":"a","labels":{{{labels}}}}}}}"#);
    let long = many(20_000, 1_200_000, |i| format!(r#""!{i}":"-""#));
    let value = "x".repeat(1_000_000);
    let large = format!(
        r#"{{"metadata":{{"name":"a","annotations":{{{long},"!!":"{value}"}},"finalizers":["{value}"]}}}}"#
    );
    vec![
        post(
            "bad requirements of a review",
            "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
            review,
            422,
            "more errors",
        ),
        post("bad labels", MAPS, labelled, 422, "more errors"),
        post("bad annotations and a long finalizer", MAPS, large, 422, "more errors"),
    ]
}

fn owners_and_pods() -> Vec<Hostile> {
    let owner = |i: usize, controller: &str| {
        format!(r#"{{"apiVersion":"v1","kind":"Pod","name":"p{i}","uid":"u{i}"{controller}}}"#)
    };
    let map = |owners: &str, name: &str| {
        format!(r#"{{"metadata":{{"name":"{name}","ownerReferences":[{owners}]}}}}"#)
    };
    let plain = many(10_000, 200, |i| owner(i, ""));
    let controllers = many(40_000, 200, |i| owner(i, r#","controller":true"#));
    let twice = many(60_000, 200, |i| owner(i % 2, ""));
    let pod =
        |containers: &str| format!(r#"{{"metadata":{{"name":"p"}},"spec":{{"containers":[{containers}]}}}}"#);
    let with_ports = many(4_000, 200, |i| {
        format!(
            r#"{{"name":"c{i}","image":"i","ports":[{{"containerPort":80}},{{"containerPort":81,"hostPort":81}}]}}"#
        )
    });
    let small = many(200_000, 200, |i| format!(r#"{{"name":"c{i}"}}"#));
    let wrong = many(100_000, 200, |_| r#"{"name":"!","ports":[{}]}"#.to_owned());
    let one = many(100_000, 200, |i| format!(r#"{{"containerPort":80,"hostPort":{}}}"#, i % 65_535 + 1));
    let one = format!(r#"{{"name":"c","image":"i","ports":[{one}]}}"#);
    let paths = many(60_000, 500, |i| format!(r#"{{"key":"k","path":"a/{i}"}}"#));
    let volumes = format!(
        r#"{{"metadata":{{"name":"v"}},"spec":{{"containers":[{{"name":"c","image":"i"}}],"volumes":[{{"name":"v","configMap":{{"name":"m","items":[{paths}]}}}}]}}}}"#
    );
    let tolerations = many(100_000, 400, |i| format!(r#"{{"key":"k{i}","operator":"Exists"}}"#));
    let tolerations = format!(
        r#"{{"metadata":{{"name":"t"}},"spec":{{"containers":[{{"name":"c","image":"i"}}],"tolerations":[{tolerations}]}}}}"#
    );
    let digits = "9".repeat(2_900_000);
    let quantity = format!(
        r#"{{"metadata":{{"name":"q"}},"spec":{{"containers":[{{"name":"c","image":"i","resources":{{"limits":{{"cpu":"{digits}"}}}}}}]}}}}"#
    );
    vec![
        post("owners that all differ", MAPS, map(&plain, "owned"), 201, "owned"),
        post("owners that are all the controller", MAPS, map(&controllers, "a"), 422, "Only one reference"),
        post("owners that repeat", MAPS, map(&twice, "repeated"), 201, "repeated"),
        post("containers with the same ports", PODS, pod(&with_ports), 0, ""),
        post("as many containers as fit", PODS, pod(&small), 0, ""),
        post("containers that are all wrong", PODS, pod(&wrong), 422, "more errors"),
        post("ports of one container", PODS, pod(&one), 0, ""),
        post("paths of a volume", PODS, volumes, 0, ""),
        post("tolerations", PODS, tolerations, 0, ""),
        post("a quantity of millions of digits", PODS, quantity, 0, ""),
    ]
}

fn definitions() -> Vec<Hostile> {
    let property =
        |i: usize, pattern: &str| format!(r#""p{i}":{{"type":"string","pattern":"{pattern}{i}"}}"#);
    let object = |properties: &str| format!(r#"{{"type":"object","properties":{{{properties}}}}}"#);
    let large = many(200, 400, |i| property(i, "^(([a-z0-9]{1,100}){5}[A-Z]{500}){3}$"));
    let small = many(100_000, 400, |i| property(i, "[a-z]{999}"));
    let nested = format!(r#"{{"type":"string","pattern":"{}{}"}}"#, "(".repeat(500_000), ")".repeat(500_000));
    let version = |i: usize| {
        format!(
            r#"{{"name":"v{i}","served":true,"storage":{},"deprecated":true,"schema":{{"openAPIV3Schema":{{"type":"object","description":"{i}"}}}}}}"#,
            i == 0
        )
    };
    let all_versions = many(100_000, 400, version);
    let name = "n".repeat(1_000_000);
    let children = many(30_000, 1_100_000, |i| format!(r#""p{i}":{{"type":"string"}}"#));
    let long_name = format!(r#"{{"type":"object","properties":{{"{name}":{}}}}}"#, object(&children));
    let wrong = many(300_000, 400, |i| format!(r#""p{i}":{{}}"#));
    let defaults = many(30_000, 1000, |i| format!(r#""d{i}":{{"type":"string","default":"x"}}"#));
    let embedded = format!(
        r#"{{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true,"properties":{{"metadata":{}}}}}"#,
        object(&defaults)
    );
    let keys = many(200_000, 400, |i| format!("\"k{i}\""));
    let map_keys = format!(
        r#"{{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":[{keys}],"items":{{"type":"object"}}}}"#
    );
    let short = many(200_000, 600, |i| format!("\"s{i}\""));
    let short_names = definition("shorts", "Short", r#"{"type":"string"}"#)
        .replace(r#""kind":"Short"}"#, &format!(r#""kind":"Short","shortNames":[{short}]}}"#));
    vec![
        post("large patterns", DEFINITIONS, definition("larges", "Large", &object(&large)), 422, "too large"),
        post("many patterns", DEFINITIONS, definition("smalls", "Small", &object(&small)), 422, "together"),
        post("a pattern of parentheses", DEFINITIONS, definition("parens", "Paren", &nested), 422, "pattern"),
        post(
            "versions",
            DEFINITIONS,
            versions("versions", "Version", &format!("[{all_versions}]")),
            422,
            "Too many",
        ),
        post("a long name of a property", DEFINITIONS, definition("longs", "Long", &long_name), 0, ""),
        post(
            "properties without a type",
            DEFINITIONS,
            definition("wrongs", "Wrong", &object(&wrong)),
            422,
            "more errors",
        ),
        post(
            "defaults in embedded metadata",
            DEFINITIONS,
            definition("embeddeds", "Embedded", &embedded),
            0,
            "",
        ),
        post(
            "keys of a list",
            DEFINITIONS,
            definition("keys", "Key", &map_keys),
            422,
            "entries must all be names",
        ),
        post("short names", DEFINITIONS, short_names, 0, ""),
    ]
}

fn custom_resources() -> Vec<Hostile> {
    let texts = |most: usize| many(most, 300, |_| "\"\"".to_owned());
    let long = "n".repeat(1_000_000);
    let below = many(400_000, 1_100_000, |_| "\"\"".to_owned());
    let set = many(500_000, 300, |i| format!("\"{}\"", i / 2));
    let keyed = many(300_000, 300, |i| format!(r#"{{"k":"{}"}}"#, i / 2));
    let unknown = many(300_000, 300, |i| format!(r#""u{i}":1"#));
    let empty = many(900_000, 300, |_| "{}".to_owned());
    let other = |kind: &str, spec: &str| {
        format!(
            r#"{{"apiVersion":"example.com/v1","kind":"{kind}","metadata":{{"name":"w"}},"spec":{spec}}}"#
        )
    };
    let enums = "/apis/example.com/v1/namespaces/default/enums";
    let choices = "/apis/example.com/v1/namespaces/default/choices";
    let misfits = many(500_000, 300, |i| format!("\"x{i}\""));
    vec![
        post(
            "values of the wrong type",
            WIDGETS,
            widget(&format!(r#"{{"numbers":[{}]}}"#, texts(900_000))),
            422,
            "more errors",
        ),
        post(
            "values of the wrong type below a long name",
            WIDGETS,
            widget(&format!(r#"{{"map":{{"{long}":[{below}]}}}}"#)),
            422,
            "more errors",
        ),
        post("a set with duplicates", WIDGETS, widget(&format!(r#"{{"set":[{set}]}}"#)), 422, "more errors"),
        post(
            "a map list with duplicates",
            WIDGETS,
            widget(&format!(r#"{{"keyed":[{keyed}]}}"#)),
            422,
            "more errors",
        ),
        post("values beside an enum", enums, other("Enum", &format!("[{misfits}]")), 422, "and 99900 more"),
        post(
            "values beside all alternatives",
            choices,
            other("Choice", &format!("[{empty}]")),
            422,
            "steps are needed",
        ),
        post(
            "copies of a large default",
            WIDGETS,
            widget(&format!(r#"{{"defaulted":[{empty}]}}"#)),
            400,
            "defaults",
        ),
        Hostile {
            path: "/apis/example.com/v1/namespaces/default/widgets?fieldValidation=Strict",
            ..post("unknown fields", WIDGETS, widget(&format!("{{{unknown}}}")), 400, "more errors")
        },
    ]
}

fn documents() -> Vec<Hostile> {
    let yaml = |name: &'static str, body: String, says: &'static str| Hostile {
        content_type: YAML,
        ..post(name, MAPS, body, 400, says)
    };
    let head = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";
    let long = "x".repeat(1_000_000);
    let aliases = format!("{head}text: &a {long}\nlist:\n{}", "- *a\n".repeat(100_000));
    let anchors: String = (0..110).map(|i| format!("[&a{i} ")).collect();
    let anchored = format!("{head}list: {anchors}{long}{}\n", "]".repeat(110));
    let laughs: String =
        (1..30).map(|i| format!("l{i}: &l{i} [{}]\n", vec![format!("*l{}", i - 1); 9].join(","))).collect();
    let duplicates = many(300_000, 300, |_| r#""k":"v""#.to_owned());
    let unknown = many(300_000, 300, |i| format!(r#""u{i}":1"#));
    vec![
        yaml("aliases of a long text", aliases, "excessive aliasing"),
        yaml("anchors within anchors", anchored, "excessive aliasing"),
        yaml("laughs", format!("{head}l0: &l0 x\n{laughs}"), "excessive aliasing"),
        yaml("brackets", format!("{head}data: {}", "[".repeat(2_900_000)), "max depth"),
        yaml(
            "a wide flow below many",
            format!("{head}data: {}{}", "[".repeat(100), "a,".repeat(1_000_000)),
            "",
        ),
        yaml("dashes", format!("{head}data:\n  {}", "- ".repeat(1_400_000)), "max depth"),
        post("nested lists", MAPS, "[".repeat(LIMIT), 400, "exceeded max depth of 120"),
        post("nested objects", MAPS, "{\"a\":".repeat(LIMIT / 5), 400, "exceeded max depth of 120"),
        post(
            "repeated keys",
            MAPS,
            format!(r#"{{"metadata":{{"name":"dup"}},"data":{{{duplicates}}}}}"#),
            201,
            "dup",
        ),
        Hostile {
            path: "/api/v1/namespaces/default/configmaps?fieldValidation=Strict",
            ..post(
                "unknown fields of a kind",
                MAPS,
                format!(r#"{{"metadata":{{"name":"u"}},{unknown}}}"#),
                400,
                "strict decoding error",
            )
        },
        post(
            "a number of millions of digits",
            MAPS,
            format!(r#"{{"immutable":{}}}"#, "9".repeat(2_900_000)),
            400,
            "",
        ),
    ]
}

fn patches() -> Vec<Hostile> {
    let long = "/apis/apps/v1/namespaces/default/controllerrevisions/long";
    let wide = "/api/v1/namespaces/default/configmaps/wide";
    let service = "/api/v1/namespaces/default/services/svc";
    let list = |item: &dyn Fn(usize) -> String| format!("[{}]", many(10_000, 10, item));
    let front = list(&|_| r#"{"op":"add","path":"/data/list/0","value":1}"#.to_owned());
    let remove = list(&|_| r#"{"op":"remove","path":"/data/list/0"}"#.to_owned());
    let copies = list(&|_| r#"{"op":"copy","from":"/data/list","path":"/data/other"}"#.to_owned());
    let moves = list(&|i| match i % 2 {
        0 => r#"{"op":"move","from":"/data/list","path":"/revision"}"#.to_owned(),
        _ => r#"{"op":"move","from":"/revision","path":"/data/list"}"#.to_owned(),
    });
    let keys = list(&|i| format!(r#"{{"op":"remove","path":"/data/k{i}"}}"#));
    let odd = list(&|i| format!(r#"{{"op":"replace","path":"/data/k{i}","value":"w","extra":1}}"#));
    let nulls = many(200_000, 100, |i| format!(r#""k{i}":null"#));
    let directives = many(60_000, 100, |i| format!(r#""k{i}":{{"$patch":"delete"}}"#));
    let ports = many(60_000, 200, |i| format!(r#"{{"port":{},"name":"p{i}"}}"#, i + 1));
    let unordered = format!(r#"{{"spec":{{"$setElementOrder/ports":[],"ports":[{ports}]}}}}"#);
    vec![
        patch("items added to the front", long, JSON_PATCH, front, 422, ""),
        patch("items removed from the front", long, JSON_PATCH, remove, 422, ""),
        patch("copies", long, JSON_PATCH, copies, 422, ""),
        patch("moves", long, JSON_PATCH, moves, 0, ""),
        patch("keys removed", wide, JSON_PATCH, keys, 422, ""),
        patch("stray members of operations", wide, JSON_PATCH, odd, 0, "wide"),
        patch("nulls", wide, MERGE_PATCH, format!(r#"{{"data":{{{nulls}}}}}"#), 0, ""),
        patch("directives", wide, STRATEGIC, format!(r#"{{"data":{{{directives}}}}}"#), 0, ""),
        patch("a list in no order", service, STRATEGIC, unordered, 0, ""),
    ]
}

fn lists() -> Vec<Hostile> {
    let ports = many(60_000, 300, |i| format!(r#"{{"port":{},"name":"p{i}"}}"#, i % 65_535 + 1));
    let service =
        format!(r#"{{"metadata":{{"name":"wide"}},"spec":{{"type":"NodePort","ports":[{ports}]}}}}"#);
    let groups = many(180_000, 1_600_000, |i| format!("\"g{i}\""));
    let resources = many(180_000, 1_600_000, |i| format!("\"r{i}\""));
    let webhook = format!(
        r#"{{"metadata":{{"name":"w"}},"webhooks":[{{"name":"a.example.com","sideEffects":"None","admissionReviewVersions":["v1"],"clientConfig":{{"url":"https://a"}},"rules":[{{"apiGroups":[{groups}],"apiVersions":["*"],"operations":["*"],"resources":[{resources}]}}]}}]}}"#
    );
    let taints = many(60_000, 300, |i| format!(r#"{{"key":"k{i}","effect":"NoSchedule"}}"#));
    let node = format!(r#"{{"metadata":{{"name":"n"}},"spec":{{"taints":[{taints}]}}}}"#);
    let drivers =
        many(60_000, 300, |i| format!(r#"{{"name":"d{i}","nodeID":"n","topologyKeys":["a","b"]}}"#));
    let csi = format!(r#"{{"metadata":{{"name":"n"}},"spec":{{"drivers":[{drivers}]}}}}"#);
    let terms = many(100_000, 300, |_| r#"{"matchLabelExpressions":[]}"#.to_owned());
    let class = format!(r#"{{"metadata":{{"name":"c"}},"provisioner":"p","allowedTopologies":[{terms}]}}"#);
    let rules =
        many(60_000, 300, |i| format!(r#"{{"apiGroups":[""],"resources":["r{i}"],"verbs":["get"]}}"#));
    let role = format!(
        r#"{{"metadata":{{"name":"r","labels":{{"rbac.authorization.k8s.io/aggregate-to-view":"true"}}}},"rules":[{rules}]}}"#
    );
    let blocks =
        many(60_000, 300, |i| format!(r#"{{"ipBlock":{{"cidr":"10.{}.{}.0/24"}}}}"#, i / 256 % 256, i % 256));
    let network = format!(
        r#"{{"metadata":{{"name":"n"}},"spec":{{"podSelector":{{}},"ingress":[{{"from":[{blocks}]}}]}}}}"#
    );
    let schedule = format!(
        r#"{{"metadata":{{"name":"c"}},"spec":{{"schedule":"{}","jobTemplate":{{"spec":{{"template":{{"spec":{{"restartPolicy":"Never","containers":[{{"name":"c","image":"i"}}]}}}}}}}}}}}}"#,
        "1,".repeat(1_400_000)
    );
    vec![
        post("ports of a service", "/api/v1/namespaces/default/services", service, 500, "range is full"),
        post(
            "groups times resources",
            "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
            webhook,
            0,
            "",
        ),
        post("taints", "/api/v1/nodes", node, 0, ""),
        post("drivers", "/apis/storage.k8s.io/v1/csinodes", csi, 0, ""),
        post("topologies", "/apis/storage.k8s.io/v1/storageclasses", class, 422, "more errors"),
        post("rules of a role", "/apis/rbac.authorization.k8s.io/v1/clusterroles", role, 0, ""),
        post(
            "blocks of addresses",
            "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies",
            network,
            0,
            "",
        ),
        post("a long schedule", "/apis/batch/v1/namespaces/default/cronjobs", schedule, 0, ""),
    ]
}
