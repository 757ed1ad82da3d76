//! Upstream's cases of policies (`apiserver/pkg/audit/policy`, `apiserver/pkg/apis/audit/validation`).

use super::*;
use crate::request::Verb;

/// The rules of upstream's checker test, by name.
const RULES: [(&str, &str); 16] = [
    ("default", "level: Metadata"),
    ("create", "{level: Request, verbs: [create]}"),
    ("tims", r#"{level: Metadata, users: ["tim@k8s.io"]}"#),
    ("humans", "{level: Metadata, userGroups: [humans]}"),
    ("serviceAccounts", r#"{level: Request, userGroups: ["system:serviceaccounts"]}"#),
    ("getPods", "{level: RequestResponse, verbs: [get], resources: [{resources: [pods]}]}"),
    ("getPodLogs", "{level: Request, verbs: [get], resources: [{resources: [pods/log]}]}"),
    ("getPodWildcardMatching", r#"{level: Request, verbs: [get], resources: [{resources: ["*"]}]}"#),
    (
        "getPodResourceWildcardMatching",
        r#"{level: Request, verbs: [get], resources: [{resources: ["*/log"]}]}"#,
    ),
    (
        "getPodSubResourceWildcardMatching",
        r#"{level: Request, verbs: [get], resources: [{resources: ["pods/*"]}]}"#,
    ),
    (
        "getClusterRoles",
        r#"{level: RequestResponse, verbs: [get], namespaces: [""],
           resources: [{group: rbac.authorization.k8s.io, resources: [clusterroles]}]}"#,
    ),
    (
        "getGroupWildCardMatchingWithSubresourceWildcardMatching",
        r#"{level: RequestResponse, verbs: [update], resources: [{group: "*", resources: ["*/status"]}]}"#,
    ),
    ("getLogs", r#"{level: RequestResponse, verbs: [get], nonResourceURLs: ["/logs*"]}"#),
    ("getMetrics", "{level: Request, verbs: [get], nonResourceURLs: [/metrics]}"),
    (
        "clusterRoleEdit",
        "{level: Request, resources: [{group: rbac.authorization.k8s.io, resources: [clusterroles], resourceNames: [edit]}]}",
    ),
    ("omit RequestReceived", "{level: Request, omitStages: [RequestReceived]}"),
];
const ONLY_PANIC: (&str, &str) = (
    "only audit panic",
    "{level: Request, omitStages: [RequestReceived, ResponseStarted, ResponseComplete]}",
);

fn rule(name: &str) -> &'static str {
    let all = RULES.iter().chain([&ONLY_PANIC]);
    all.into_iter().find(|(known, _)| *known == name).unwrap_or_else(|| panic!("no rule {name}")).1
}

fn policy(header: &str, rules: &[&str]) -> Result<AuditPolicy, AuditPolicyError> {
    let mut text = format!("apiVersion: audit.k8s.io/v1\nkind: Policy\n{header}\nrules:\n");
    for rule in rules {
        text.push_str(&format!("- {}\n", rule.replace('\n', " ")));
    }
    AuditPolicy::parse(&text)
}

/// The requests of upstream's checker test, by name.
fn request(name: &str) -> (Option<User>, Attributes<'static>) {
    let tim = User::new("tim@k8s.io", &["humans", "developers"]);
    let resource = |verb, group, resource, subresource, namespace, name| {
        Attributes::new(verb, Target::Resource { group, resource, subresource, namespace, name })
    };
    let rbac = "rbac.authorization.k8s.io";
    match name {
        "namespaced" => (Some(tim), resource(Verb::Get, "", "pods", "", "default", "busybox")),
        "cluster" => (Some(tim), resource(Verb::Get, rbac, "clusterroles", "", "", "edit")),
        "nonResource" => (Some(tim), Attributes::new(Verb::Get, Target::Path("/logs/kubelet.log"))),
        "subresource" => (Some(tim), resource(Verb::Get, "", "pods", "log", "default", "busybox")),
        "Unauthorized" => (None, resource(Verb::Get, "", "pods", "", "default", "busybox")),
        "ClusterRoleUpdate" => {
            (Some(tim), resource(Verb::Update, rbac, "clusterroles", "status", "", "somerole"))
        }
        other => panic!("no request {other}"),
    }
}

fn stages(names: &[Stage]) -> Stages {
    names.iter().fold(Stages::default(), |all, stage| all.with(*stage))
}

fn check(header: &str, asked: &str, names: &[&str], level: Level, omitted: &[Stage]) {
    let rules: Vec<&str> = names.iter().map(|name| rule(name)).collect();
    let (user, attributes) = request(asked);
    let verdict = policy(header, &rules).unwrap().evaluate(user.as_ref(), &attributes);
    let expected = Verdict { level, omit_stages: stages(omitted), omit_managed_fields: false };
    assert_eq!(verdict, expected, "{asked} by {names:?}");
}

const LEVELS: [(&str, Level, &[&str]); 42] = {
    use Level::{Metadata, None, Request, RequestResponse};
    [
        ("namespaced", Metadata, &["default"]),
        ("namespaced", None, &["create"]),
        ("namespaced", Metadata, &["tims"]),
        ("namespaced", Metadata, &["humans"]),
        ("namespaced", None, &["serviceAccounts"]),
        ("namespaced", RequestResponse, &["getPods"]),
        ("namespaced", None, &["getClusterRoles"]),
        ("namespaced", None, &["getLogs"]),
        ("namespaced", None, &["getMetrics"]),
        ("namespaced", Metadata, &["getMetrics", "serviceAccounts", "default"]),
        ("namespaced", RequestResponse, &["getMetrics", "getPods", "default"]),
        ("namespaced", RequestResponse, &["getPodLogs", "getPods"]),
        ("cluster", Metadata, &["default"]),
        ("cluster", None, &["create"]),
        ("cluster", Metadata, &["tims"]),
        ("cluster", Metadata, &["humans"]),
        ("cluster", None, &["serviceAccounts"]),
        ("cluster", None, &["getPods"]),
        ("cluster", RequestResponse, &["getClusterRoles"]),
        ("cluster", Request, &["clusterRoleEdit", "getClusterRoles"]),
        ("cluster", None, &["getLogs"]),
        ("cluster", None, &["getMetrics"]),
        ("cluster", Metadata, &["getMetrics", "serviceAccounts", "default"]),
        ("cluster", RequestResponse, &["getMetrics", "getClusterRoles", "default"]),
        ("cluster", None, &["getPodLogs", "getPods"]),
        ("nonResource", Metadata, &["default"]),
        ("nonResource", None, &["create"]),
        ("nonResource", Metadata, &["tims"]),
        ("nonResource", Metadata, &["humans"]),
        ("nonResource", None, &["serviceAccounts"]),
        ("nonResource", None, &["getPods"]),
        ("nonResource", None, &["getClusterRoles"]),
        ("nonResource", RequestResponse, &["getLogs"]),
        ("nonResource", None, &["getMetrics"]),
        ("nonResource", Metadata, &["getMetrics", "serviceAccounts", "default"]),
        ("nonResource", RequestResponse, &["getLogs", "getClusterRoles", "default"]),
        ("nonResource", None, &["getPodLogs", "getPods"]),
        ("subresource", Request, &["getPodLogs", "getPods"]),
        ("subresource", Request, &["getPodWildcardMatching"]),
        ("subresource", Request, &["getPodResourceWildcardMatching"]),
        ("subresource", Request, &["getPodSubResourceWildcardMatching"]),
        ("ClusterRoleUpdate", RequestResponse, &["getGroupWildCardMatchingWithSubresourceWildcardMatching"]),
    ]
};
const WITHOUT_USER: [(&str, Level, &[&str]); 4] = [
    ("Unauthorized", Level::None, &["tims"]),
    ("Unauthorized", Level::Metadata, &["tims", "default"]),
    ("Unauthorized", Level::None, &["humans"]),
    ("Unauthorized", Level::Metadata, &["humans", "default"]),
];

#[test]
fn the_first_rule_that_matches_decides() {
    for (asked, level, names) in LEVELS.into_iter().chain(WITHOUT_USER) {
        check("", asked, names, level, &[]);
        let header = "omitStages: [RequestReceived, ResponseStarted]";
        check(header, asked, names, level, &[Stage::RequestReceived, Stage::ResponseStarted]);
    }
}

#[test]
fn omitted_stages_are_those_of_the_policy_and_of_the_rule() {
    use Stage::{RequestReceived, ResponseComplete, ResponseStarted};
    let both = "omitStages: [RequestReceived, ResponseStarted]";
    for asked in ["namespaced", "cluster", "nonResource"] {
        let (without, panic) =
            (["omit RequestReceived", "getPods", "default"], ["only audit panic", "getPods", "default"]);
        check("", asked, &without, Level::Request, &[RequestReceived]);
        check("", asked, &panic, Level::Request, &[RequestReceived, ResponseStarted, ResponseComplete]);
        check(both, asked, &without, Level::Request, &[RequestReceived, ResponseStarted]);
        check(both, asked, &panic, Level::Request, &[RequestReceived, ResponseStarted, ResponseComplete]);
    }
    let order = ["default", "omit RequestReceived", "getPods"];
    check(both, "nonResource", &order, Level::Metadata, &[RequestReceived, ResponseStarted]);
}

#[test]
fn a_rule_overrides_whether_managed_fields_are_omitted() {
    let cases = [
        ("false", "", false),
        ("true", "", true),
        ("true", ", omitManagedFields: false", false),
        ("false", ", omitManagedFields: true", true),
        ("true", ", omitManagedFields: true", true),
        ("false", ", omitManagedFields: false", false),
    ];
    let (user, attributes) = request("namespaced");
    for (of_policy, of_rule, expected) in cases {
        let header = format!("omitManagedFields: {of_policy}");
        let rule = format!("{{level: RequestResponse, verbs: [get]{of_rule}}}");
        let matched = policy(&header, &[&rule]).unwrap().evaluate(user.as_ref(), &attributes);
        assert_eq!(matched.omit_managed_fields, expected, "{of_policy} {of_rule}");
        let other = policy(&header, &["{level: Metadata, verbs: [watch]}"]).unwrap();
        let unmatched = other.evaluate(user.as_ref(), &attributes);
        assert_eq!((unmatched.level, unmatched.omit_managed_fields), (Level::None, of_policy == "true"));
    }
}

const EXAMPLE: &str = r#"
rules:
  - level: None
    nonResourceURLs:
      - /healthz*
      - /version
  - level: RequestResponse
    users: ["tim"]
    userGroups: ["testers", "developers"]
    verbs: ["patch", "delete", "create"]
    resources:
      - group: ""
      - group: "rbac.authorization.k8s.io"
        resources: ["clusterroles", "clusterrolebindings"]
    namespaces: ["default", "kube-system"]
  - level: Metadata
"#;

#[test]
fn policies_are_read_from_yaml() {
    let texts = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let parsed =
        AuditPolicy::parse(&format!("apiVersion: audit.k8s.io/v1\nkind: Policy\n{EXAMPLE}")).unwrap();
    let rbac = GroupResources {
        group: "rbac.authorization.k8s.io".into(),
        resources: texts(&["clusterroles", "clusterrolebindings"]),
        names: Vec::new(),
    };
    let expected = [
        Rule { paths: texts(&["/healthz*", "/version"]), ..Rule::default() },
        Rule {
            level: Level::RequestResponse,
            users: texts(&["tim"]),
            groups: texts(&["testers", "developers"]),
            verbs: texts(&["patch", "delete", "create"]),
            resources: vec![GroupResources::default(), rbac],
            namespaces: texts(&["default", "kube-system"]),
            ..Rule::default()
        },
        Rule { level: Level::Metadata, ..Rule::default() },
    ];
    assert_eq!(parsed.rules, expected);
    assert_eq!(parsed.omit_stages, Stages::default());
}

#[test]
fn unknown_fields_are_ignored() {
    let rule =
        r#"{level: None, resources: [{group: coordination.k8s.io, resources: [leases], verbs: [watch]}]}"#;
    assert_eq!(policy("", &[rule]).unwrap().rules.len(), 1);
}

const VALID: [&str; 5] = [
    "level: Metadata",
    r#"{level: None, userGroups: ["system:serviceaccounts", "system:nodes"]}"#,
    "{level: RequestResponse, verbs: [get], namespaces: [kube-system],
      resources: [{group: rbac.authorization.k8s.io, resources: [roles, rolebindings]}]}",
    r#"{level: Metadata, userGroups: [developers], nonResourceURLs: ["/logs*", "/healthz*", "/metrics", "*"]}"#,
    "{level: Metadata, omitStages: [RequestReceived]}",
];

/// Invalid rules and their errors.
const INVALID: [(&str, &str); 12] = [
    ("{}", "rules[0].level: Required value"),
    (
        "{verbs: [get], resources: [{resources: [secrets]}], namespaces: [kube-system]}",
        "rules[0].level: Required value",
    ),
    (
        "level: FooBar",
        r#"rules[0].level: Unsupported value: "FooBar": supported values: "None", "Metadata", "Request", "RequestResponse""#,
    ),
    (
        r#"{level: Metadata, namespaces: [default], nonResourceURLs: ["/logs*"]}"#,
        r#"rules[0].nonResourceURLs: Invalid value: ["/logs*"]: rules cannot apply to both regular resources and non-resource URLs"#,
    ),
    (
        r#"{level: Metadata, resources: [{resources: [secrets]}], nonResourceURLs: ["/logs*"]}"#,
        r#"rules[0].nonResourceURLs: Invalid value: ["/logs*"]: rules cannot apply to both regular resources and non-resource URLs"#,
    ),
    (
        "{level: Metadata, resources: [{group: rbac.authorization.k8s.io/v1beta1, resources: [roles]}]}",
        "rules[0].resources[0].group: Invalid value: \"rbac.authorization.k8s.io/v1beta1\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
    ),
    (
        r#"{level: Metadata, nonResourceURLs: [logs, "/healthz*"]}"#,
        "rules[0].nonResourceURLs[0]: Invalid value: \"logs\": non-resource URL rules must begin with a '/' character",
    ),
    (
        r#"{level: Metadata, nonResourceURLs: ["", "/healthz*"]}"#,
        "rules[0].nonResourceURLs[0]: Invalid value: \"\": non-resource URL rules must begin with a '/' character",
    ),
    (
        r#"{level: Metadata, nonResourceURLs: ["/logs/*/*", /metrics]}"#,
        "rules[0].nonResourceURLs[0]: Invalid value: \"/logs/*/*\": non-resource URL wildcards '*' must be the final character of the rule",
    ),
    (
        r#"{level: Metadata, nonResourceURLs: ["/logs/*.log", /metrics]}"#,
        "rules[0].nonResourceURLs[0]: Invalid value: \"/logs/*.log\": non-resource URL wildcards '*' must be the final character of the rule",
    ),
    (
        "{level: Metadata, verbs: [get], resources: [{resourceNames: [leader]}], namespaces: [kube-system]}",
        r#"rules[0].resources[0].resourceNames: Invalid value: ["leader"]: using resourceNames requires at least one resource"#,
    ),
    (
        "{level: Metadata, omitStages: [foo]}",
        r#"rules[0].omitStages[0]: Invalid value: "foo": allowed stages are RequestReceived,ResponseStarted,ResponseComplete,Panic"#,
    ),
];

#[test]
fn valid_policies_are_accepted() {
    for rule in VALID {
        assert_eq!(policy("", &[rule]).map_err(|error| error.to_string()).unwrap().rules.len(), 1);
    }
    let all = policy("omitStages: [RequestReceived]", &VALID).unwrap();
    assert_eq!((all.rules.len(), all.omit_stages), (VALID.len(), stages(&[Stage::RequestReceived])));
}

#[test]
fn errors_name_the_field_and_the_value() {
    let refusal = |header: &str, rules: &[&str]| policy(header, rules).unwrap_err().to_string();
    for (rule, expected) in INVALID {
        assert_eq!(refusal("", &[rule]), expected);
    }
    let mut rules = VALID.to_vec();
    rules.push("{}");
    assert_eq!(refusal("", &rules), "rules[5].level: Required value");
    assert_eq!(
        refusal("omitStages: [foo]", &["level: Metadata"]),
        r#"omitStages[0]: Invalid value: "foo": allowed stages are RequestReceived,ResponseStarted,ResponseComplete,Panic"#
    );
    assert_eq!(
        refusal("", &["{level: Metadata, users: tim}", "{level: 3}"]),
        r#"[rules[0].users: Invalid value: "tim": must be a list of strings, rules[1].level: Invalid value: 3: must be a string]"#
    );
}

#[test]
fn other_documents_are_refused() {
    let refusal = |text: &str| AuditPolicy::parse(text).unwrap_err().to_string();
    for text in [EXAMPLE, "", "apiVersion: audit.k8s.io/v2\nkind: Policy\nrules: [{level: None}]"] {
        assert!(refusal(text).starts_with("unknown group version field"), "{text}");
    }
    assert_eq!(refusal("apiVersion: audit.k8s.io/v1\nkind: Policy"), "loaded illegal policy with 0 rules");
    assert!(refusal("a: [").starts_with("failed decoding: yaml: "));
}
