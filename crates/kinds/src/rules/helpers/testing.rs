//! Runs rules as the server does, and returns the errors as strings.

use k1s_object::Check;
use serde_json::Value;

use crate::rules::Rules;

fn texts(check: &Check<'_>) -> Vec<String> {
    check.take().iter().map(ToString::to_string).collect()
}

/// The object as it is stored on create.
pub(crate) fn created(rules: &Rules, mut object: Value) -> Value {
    (rules.defaults)(&mut object);
    (rules.prepare_create)(&mut object);
    object
}

/// The errors on create, after defaults and preparation.
pub(crate) fn on_create(rules: &Rules, object: Value) -> Vec<String> {
    let object = created(rules, object);
    let check = Check::new();
    (rules.validate)(check.root(&object));
    texts(&check)
}

/// The errors on update, after defaults and preparation.
pub(crate) fn on_update(rules: &Rules, mut old: Value, mut object: Value) -> Vec<String> {
    (rules.defaults)(&mut object);
    (rules.defaults)(&mut old);
    (rules.prepare_update)(&mut object, &old);
    let (check, before) = (Check::new(), Check::new());
    (rules.validate_update)(check.root(&object), before.root(&old));
    texts(&check)
}

/// The errors on update of `/status`, after defaults and preparation.
pub(crate) fn on_status(rules: &Rules, mut object: Value, old: &Value) -> Vec<String> {
    (rules.defaults)(&mut object);
    (rules.prepare_status)(&mut object, old);
    let (check, before) = (Check::new(), Check::new());
    (rules.validate_status)(check.root(&object), before.root(old));
    texts(&check)
}

/// The warnings on create, after defaults.
pub(crate) fn warnings(rules: &Rules, mut object: Value) -> Vec<String> {
    (rules.defaults)(&mut object);
    let mut out = Vec::new();
    (rules.warnings)(&object, None, &mut out);
    out
}
