//! `PodTemplate`.

use serde_json::Value;

use crate::rules::{Rules, core::pod, helpers::equality::same_workload_field};

pub(super) static RULES: Rules = Rules {
    defaults: pod::defaults::pod_template,
    validate: |object| pod::spec::template(object.get("template")),
    validate_update: |new, _| pod::spec::template(new.get("template")),
    warnings,
    generation: true,
    delete_answers_object: true,
    ..Rules::PLAIN
};

fn warnings(new: &Value, old: Option<&Value>, out: &mut Vec<String>) {
    if old.is_none_or(|old| !same_workload_field(new, old, "template")) {
        pod::warnings::template("template", new.get("template"), out);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::RULES;
    use crate::rules::helpers::testing::{created, on_create};

    fn with_errors(object: Value) -> (Value, Vec<String>) {
        (created(&RULES, object.clone()), on_create(&RULES, object))
    }

    #[test]
    fn a_pod_template_is_checked_like_a_pod() {
        let (object, errors) = with_errors(json!({"template": {"spec": {"containers": [{"name": "c"}]}}}));
        assert_eq!(object["template"]["spec"]["restartPolicy"], "Always");
        assert_eq!(errors, ["template.spec.containers[0].image: Required value"]);
    }
}
