//! `status.typeChecking` of a `ValidatingAdmissionPolicy`.

use k1s_cel::DeclType;
use serde_json::{Value, json};

use super::{items, pairs};
use crate::expressions::TypeCheck;

/// A kind that the expressions of a policy are checked against.
#[derive(Debug)]
pub struct CheckedKind {
    /// `apps/v1, Kind=Deployment`
    pub name: String,
    /// The type of its objects; `None` if expressions cannot see into them.
    pub decl: Option<DeclType>,
}

/// Groups, versions and resources whose kinds a policy is checked against, per rule: those that a rule names. Wildcards are not
/// followed.
pub fn rules_to_check(spec: &Value) -> Vec<Vec<[String; 3]>> {
    let rules =
        spec.get("matchConstraints").into_iter().flat_map(|matching| items(matching, "resourceRules"));
    rules.map(of_rule).collect()
}

fn of_rule(rule: &Value) -> Vec<[String; 3]> {
    let sorted = |list: &str| {
        let mut texts: Vec<&str> = items(rule, list).filter_map(Value::as_str).collect();
        texts.sort_unstable();
        texts
    };
    let (groups, versions) = (sorted("apiGroups"), sorted("apiVersions"));
    if groups.iter().chain(&versions).any(|text| text.contains('*')) {
        return Vec::new();
    }
    let resources = sorted("resources");
    let mut found = Vec::new();
    for group in &groups {
        for version in &versions {
            let plain = resources.iter().filter(|resource| !resource.contains(['*', '/']));
            found.extend(plain.map(|resource| [group, version, resource].map(|text| (*text).to_owned())));
        }
    }
    found
}

/// The warnings about the expressions of a policy: `expressionWarnings` of its status. `params`: the type of its parameters, if it
/// is known.
pub fn expression_warnings(spec: &Value, kinds: &[CheckedKind], params: Option<&DeclType>) -> Vec<Value> {
    let has_params = spec.get("paramKind").is_some_and(Value::is_object);
    let check = |kind: &CheckedKind| {
        let variables = pairs(spec, "variables", ["name", "expression"]);
        TypeCheck::new(kind.decl.as_ref(), has_params.then_some(params), variables)
    };
    let checks: Vec<(&str, TypeCheck)> = kinds.iter().map(|kind| (&*kind.name, check(kind))).collect();
    let mut warnings = Vec::new();
    for (at, validation) in items(spec, "validations").enumerate() {
        for field in ["expression", "messageExpression"] {
            let text = validation.get(field).and_then(Value::as_str).unwrap_or_default();
            if text.is_empty() && field == "messageExpression" {
                continue;
            }
            let found = |(kind, check): &(&str, TypeCheck)| Some(format!("{kind}: {}\n", check.check(text)?));
            let found: Vec<String> = checks.iter().filter_map(found).collect();
            if !found.is_empty() {
                let place = format!("spec.validations[{at}].{field}");
                warnings.push(json!({"fieldRef": place, "warning": found.join("\n")}));
            }
        }
    }
    warnings
}

#[cfg(test)]
#[expect(
    clippy::needless_pass_by_value,
    clippy::type_complexity,
    reason = "tables of values that are made for them"
)]
mod tests {
    //! The cases of upstream's `TestTypeCheck` and `TestExtractTypeNames`.

    use super::*;
    use crate::expressions::decl_type;

    /// The places and warnings about a policy whose rules name one kind, with this schema.
    fn check(schema: Option<Value>, spec: &Value) -> Vec<(String, String)> {
        let name = "apps/v1, Kind=Deployment".to_owned();
        let kind = |schema: &Value| CheckedKind { name: name.clone(), decl: decl_type(schema, "Deployment") };
        let kinds: Vec<CheckedKind> = schema.iter().map(kind).collect();
        let params = schema.as_ref().and_then(|schema| decl_type(schema, "Params"));
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let warnings = expression_warnings(spec, &kinds, params.as_ref());
        warnings.iter().map(|one| (text(&one["fieldRef"]), text(&one["warning"]))).collect()
    }

    fn object(properties: Value) -> Option<Value> {
        Some(json!({"type": "object", "properties": properties}))
    }

    fn spec(validations: &[&str]) -> Value {
        let validations: Vec<Value> = validations.iter().map(|text| json!({"expression": text})).collect();
        json!({ "validations": validations })
    }

    #[test]
    fn what_does_not_fit_the_schema_is_a_warning() {
        const FIRST: &str = "spec.validations[0].expression";
        let (text, number) = (json!({"type": "string"}), json!({"type": "integer", "format": "int64"}));
        let foo = |schema: &Value| object(json!({"foo": schema}));
        let with = |mut spec: Value, field: &str, value: Value| {
            spec[field] = value;
            spec
        };
        let params =
            |text: &str| with(spec(&[text]), "paramKind", json!({"apiVersion": "v1", "kind": "Config"}));
        let message = json!({"validations": [{"expression": "object.foo == 'bar'", "messageExpression": "object.foo + 114514"}]});
        let variable = |name: &str, text: &str, used: &str| {
            with(spec(&[used]), "variables", json!([{"name": name, "expression": text}]))
        };
        let holds_any = json!({
            "spec": {"type": "object", "properties": {"text": text}},
            "status": {"type": "object", "properties": {"any": {"type": "object", "additionalProperties": true}}},
        });
        let cases: Vec<(&str, Option<Value>, Value, &[(&str, &str)])> = vec![
            ("empty", foo(&text), json!({}), &[]),
            ("unresolved schema", None, spec(&["object.foo == 'bar'"]), &[]),
            ("passed check", foo(&text), spec(&["object.foo == 'bar'"]), &[]),
            (
                "undefined field",
                object(json!({"bar": text})),
                spec(&["object.foo == 'bar'"]),
                &[(FIRST, "undefined field 'foo'")],
            ),
            (
                "field type mismatch",
                foo(&number),
                spec(&["object.foo == 'bar'"]),
                &[(FIRST, "found no matching overload")],
            ),
            ("params", foo(&text), params("object.foo == params.bar"), &[(FIRST, "undefined field 'bar'")]),
            ("params with untyped schema", Some(json!({})), params("params != null"), &[]),
            (
                "multiple expressions",
                foo(&text),
                spec(&["object.foo == 'bar'", "object.bar == 'foo'"]),
                &[("spec.validations[1].expression", "undefined field 'bar'")],
            ),
            (
                "message expressions",
                foo(&text),
                message,
                &[("spec.validations[0].messageExpression", "found no matching overload")],
            ),
            (
                "authorizer",
                foo(&text),
                spec(&["authorizer.group('').resource('endpoints').check('create').allowed()"]),
                &[],
            ),
            (
                "authorizer invalid",
                foo(&text),
                spec(&["authorizer.allowed()"]),
                &[(
                    FIRST,
                    "found no matching overload for 'allowed' applied to 'kubernetes.authorization.Authorizer",
                )],
            ),
            ("additionalProperties: true", object(holds_any), spec(&["has(object.spec.text)"]), &[]),
            ("schema without type", Some(json!({})), spec(&["true"]), &[]),
            ("variables valid", foo(&number), variable("works", "true", "variables.works"), &[]),
            (
                "variables missing field",
                foo(&number),
                variable("works", "true", "variables.nonExisting"),
                &[(FIRST, "undefined field 'nonExisting'")],
            ),
            (
                "variables field wrong type",
                foo(&number),
                variable("name", "'something'", "variables.name == object.foo"),
                &[(FIRST, "found no matching overload for '_==_' applied to '(string, int)'")],
            ),
            (
                "error in variables, not reported",
                foo(&number),
                variable("name", "object.foo == 'str'", "variables.name == object.foo"),
                &[],
            ),
        ];
        for (name, schema, spec, expected) in cases {
            let found = check(schema, &spec);
            assert_eq!(found.len(), expected.len(), "{name}: {found:?}");
            for ((place, warning), (wanted_place, wanted)) in found.iter().zip(expected) {
                assert_eq!(place, wanted_place, "{name}");
                assert!(warning.contains(wanted), "{name}: {warning}");
            }
        }
    }

    #[test]
    fn only_what_a_rule_names_is_checked() {
        let rule = |groups: Value, versions: Value, resources: Value| {
            json!({"matchConstraints": {"resourceRules":
                [{"apiGroups": groups, "apiVersions": versions, "resources": resources}]}})
        };
        let one = [["apps", "v1", "deployments"].map(str::to_owned)];
        let none: [[String; 3]; 0] = [];
        assert!(rules_to_check(&json!({})).is_empty());
        for (spec, expected) in [
            (rule(json!(["apps"]), json!(["v1"]), json!(["deployments"])), &one[..]),
            (rule(json!(["apps"]), json!(["v1"]), json!(["*"])), &none[..]),
            (rule(json!(["apps"]), json!(["v1"]), json!(["pods/*"])), &none[..]),
            (rule(json!(["apps"]), json!(["*"]), json!(["deployments"])), &none[..]),
            (rule(json!(["apps"]), json!(["v1"]), json!(["pods/log", "deployments"])), &one[..]),
        ] {
            assert_eq!(rules_to_check(&spec).concat(), expected, "{spec}");
        }
    }

    #[test]
    fn published_types_of_built_in_kinds_are_checked() {
        let pod = json!({"$ref": "#/components/schemas/io.k8s.api.core.v1.Pod"});
        let wrong = |text: &str| {
            let kinds = [CheckedKind { name: "/v1, Kind=Pod".into(), decl: decl_type(&pod, "Pod") }];
            expression_warnings(&spec(&[text]), &kinds, None).pop().map(|one| one["warning"].to_string())
        };
        for fine in [
            "object.spec.containers.all(c, c.image.startsWith('a'))",
            "object.metadata.creationTimestamp < timestamp('2030-01-01T00:00:00Z')",
            "object.spec.containers.exists(c, c.ports.exists(p, p.hostPort > 3))",
            "object.metadata.labels['a'] == 'b' && oldObject.metadata.name == object.metadata.name",
            "object.spec.containers.all(c, c.livenessProbe.httpGet.port == 80)",
        ] {
            assert_eq!(wrong(fine), None, "{fine}");
        }
        assert_eq!(
            wrong("object.spec.replicas > 1").unwrap_or_default(),
            r#""/v1, Kind=Pod: ERROR: <input>:1:12: undefined field 'replicas'\n | object.spec.replicas > 1\n | ...........^\n""#
        );
        assert!(wrong("object.spec.containers == 1").is_some());
    }
}
