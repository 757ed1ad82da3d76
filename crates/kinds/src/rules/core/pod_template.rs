//! `PodTemplate`.

use serde_json::Value;

use crate::rules::{Rules, core::pod, helpers::json::same_field};

/// The rules of `PodTemplate`.
pub(super) static RULES: Rules = Rules {
    defaults: pod::defaults::pod_template,
    validate: |object| pod::spec::template(object.get("template")),
    validate_update: |new, _| pod::spec::template(new.get("template")),
    warnings: warnings,
    generation: true,
    delete_answers_object: true,
    ..Rules::PLAIN
};

fn warnings(new: &Value, old: Option<&Value>, out: &mut Vec<String>) {
    if old.is_none_or(|old| !same_field(new, old, "template")) {
        pod::warnings::template("template", new.get("template"), out);
    }
}
