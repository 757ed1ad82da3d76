//! `PriorityClass`.

use k1s_object::field::At;
use serde_json::Value;

use crate::{
    bootstrap::SYSTEM_PRIORITY_CLASSES,
    rules::{
        Rules,
        helpers::{equality::unchanged, json::default, metadata::set_generation},
    },
};

/// Maximum priority of a user-defined class.
const HIGHEST_USER_PRIORITY: i64 = 1_000_000_000;

pub(super) static RULES: Rules = Rules {
    defaults: default_class,
    prepare_create: first_generation,
    validate: create,
    validate_update: update,
    ..Rules::PLAIN
};

fn default_class(class: &mut Value) {
    default(class, "preemptionPolicy", "PreemptLowerPriority");
}

/// The generation is always 1: the relevant fields are immutable.
fn first_generation(class: &mut Value) {
    set_generation(class, 1);
}

fn create(class: At<'_, '_>) {
    let name = class.get("metadata").get("name");
    let value = class.get("value");
    if name.text().starts_with("system-") {
        if let Some(why) =
            not_of_the_system(name.text(), value.number(), class.get("globalDefault").is_true())
        {
            name.forbidden(format!(
                "priority class names with 'system-' prefix are reserved for system use only. error: {why}"
            ));
        }
    } else if value.number() > HIGHEST_USER_PRIORITY {
        value.forbidden(format!(
            "maximum allowed value of a user defined priority is {HIGHEST_USER_PRIORITY}"
        ));
    }
    let policy = class.get("preemptionPolicy");
    match policy.str() {
        None | Some("PreemptLowerPriority" | "Never") => {}
        Some("") => policy.required(""),
        Some(_) => policy.not_supported(&["PreemptLowerPriority", "Never"]),
    }
}

fn not_of_the_system(name: &str, value: i64, global_default: bool) -> Option<String> {
    match SYSTEM_PRIORITY_CLASSES.iter().find(|(known, _)| *known == name) {
        None => Some(format!("{name} is not a known system priority class")),
        Some((_, known)) if *known != value => Some(format!("value of {name} PriorityClass must be {known}")),
        Some(_) if global_default => Some(format!("globalDefault of {name} PriorityClass must be false")),
        Some(_) => None,
    }
}

fn update(class: At<'_, '_>, old: At<'_, '_>) {
    if class.get("value").number() != old.get("value").number() {
        class.get("value").forbidden("may not be changed in an update.");
    }
    if !unchanged(class.get("preemptionPolicy"), old.get("preemptionPolicy")) {
        class.get("preemptionPolicy").invalid("field is immutable");
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::rules::helpers::testing::*;

    #[test]
    fn a_class_preempts_and_stays() {
        let mut class = json!({"value": 1000});
        default_class(&mut class);
        first_generation(&mut class);
        assert_eq!(class["preemptionPolicy"], "PreemptLowerPriority");
        assert_eq!(class["metadata"]["generation"], 1);
        let new = json!({"value": 7, "preemptionPolicy": "Never"});
        assert_eq!(
            on_update(&RULES, class, new),
            [
                "value: Forbidden: may not be changed in an update.",
                "preemptionPolicy: Invalid value: \"Never\": field is immutable",
            ]
        );
    }

    #[test]
    fn the_highest_priorities_are_for_the_system() {
        let user = json!({"metadata": {"name": "a"}, "value": 1_000_000_001});
        assert_eq!(
            on_create(&RULES, user),
            ["value: Forbidden: maximum allowed value of a user defined priority is 1000000000"]
        );
        let own = json!({"metadata": {"name": "system-mine"}, "value": 1});
        assert_eq!(
            on_create(&RULES, own),
            [
                "metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for system use only. error: system-mine is not a known system priority class"
            ]
        );
    }
}
