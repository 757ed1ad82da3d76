//! `PriorityLevelConfiguration`.

use super::{must_be_fixed, prepare_status, validate_status};
use crate::{
    bootstrap,
    rules::{
        Rules,
        helpers::{
            equality::unchanged,
            json::{default, default_zero, pointer, structure},
        },
    },
};
use k1s_object::field::At;
use serde_json::Value;

const MAX_QUEUES: i64 = 10_000_000;

/// Maximum entropy in bits that shuffle sharding may take from a hash.
const MAX_HASH_BITS: f64 = 60.0;

pub(super) static RULES: Rules =
    Rules { defaults, prepare_status, validate, validate_update, validate_status, ..Rules::WITH_STATUS };

fn defaults(level: &mut Value) {
    let Some(spec) = structure(level, "spec") else { return };
    if let Some(exempt) = pointer(spec, "exempt") {
        default(exempt, "nominalConcurrencyShares", 0);
        default(exempt, "lendablePercent", 0);
    }
    if let Some(limited) = pointer(spec, "limited") {
        default(limited, "nominalConcurrencyShares", 30);
        default(limited, "lendablePercent", 0);
        if let Some(queuing) = pointer(limited, "limitResponse").and_then(|answer| pointer(answer, "queuing"))
        {
            default_zero(queuing, "handSize", 8);
            default_zero(queuing, "queues", 64);
            default_zero(queuing, "queueLengthLimit", 50);
        }
    }
}

fn validate(level: At<'_, '_>) {
    validate_fields(level);
    validate_declaratively(level.get("spec"), None);
}

fn validate_update(level: At<'_, '_>, old: At<'_, '_>) {
    validate_fields(level);
    validate_declaratively(level.get("spec"), Some(old.get("spec")));
}

fn validate_fields(level: At<'_, '_>) {
    const PRESERVE_ZERO: &str = "flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares";
    let metadata = level.get("metadata");
    let annotations = metadata.get("annotations");
    if annotations.key(PRESERVE_ZERO).is_set() {
        annotations.forbidden(format!("annotation '{PRESERVE_ZERO}' is forbidden"));
    }
    let name = metadata.get("name").text();
    let spec = level.get("spec");
    let kind = spec.get("type");
    if (name == "exempt") != (kind.text() == "Exempt") {
        kind.invalid_text("must be 'Exempt' if and only if `name` is 'exempt'");
    }
    match kind.text() {
        "Exempt" => shares(spec.get("exempt")),
        "Limited" if spec.get("limited").is_set() => limited(spec.get("limited")),
        "Limited" | "" => {}
        _ => kind.not_supported(&["Exempt", "Limited"]),
    }
    let but = if name == "exempt" { "exempt" } else { "" };
    must_be_fixed(level, bootstrap::mandatory_priority_level(name), but);
    validate_status(level, level);
}

fn shares(at: At<'_, '_>) {
    let shares = at.get("nominalConcurrencyShares");
    if shares.number() < 0 {
        shares.invalid("must be a non-negative integer");
    }
    lendable(at);
}

fn lendable(at: At<'_, '_>) {
    let lendable = at.get("lendablePercent");
    if !(0..=100).contains(&lendable.number()) {
        lendable.invalid("must be between 0 and 100, inclusive");
    }
}

fn limited(at: At<'_, '_>) {
    let shares = at.get("nominalConcurrencyShares");
    if shares.number() < 0 {
        shares.invalid("must be a non-negative integer");
    }
    let answer = at.get("limitResponse");
    match answer.get("type").text() {
        "Reject" | "" => {}
        "Queue" => {
            if answer.get("queuing").is_set() {
                queuing(answer.get("queuing"));
            }
        }
        _ => answer.get("type").not_supported(&["Queue", "Reject"]),
    }
    lendable(at);
    let borrowing = at.get("borrowingLimitPercent");
    if borrowing.number() < 0 {
        borrowing.invalid("if specified, must be a non-negative integer");
    }
}

fn queuing(at: At<'_, '_>) {
    let (length, queues, hand) = (at.get("queueLengthLimit"), at.get("queues"), at.get("handSize"));
    if length.number() <= 0 {
        length.invalid_as(length.number(), "must be positive");
    }
    if queues.number() <= 0 {
        queues.invalid_as(queues.number(), "must be positive");
    } else if queues.number() > MAX_QUEUES {
        queues.invalid(format!("must not be greater than {MAX_QUEUES}"));
    }
    let (deck, cards) = (queues.number(), hand.number());
    if cards <= 0 {
        hand.invalid_as(cards, "must be positive");
    } else if cards > deck {
        hand.invalid(format!("should not be greater than queues ({deck})"));
    } else if bits(deck, cards) > MAX_HASH_BITS {
        hand.invalid(format!(
            "required entropy bits of deckSize {deck} and handSize {cards} should not be greater than {MAX_HASH_BITS}"
        ));
    }
}

fn bits(deck: i64, hand: i64) -> f64 {
    let number = |value: i64| i32::try_from(value).map_or(f64::MAX, f64::from);
    (number(deck).log2() * number(hand)).ceil()
}

/// Reported last, and skipped for unchanged fields.
fn validate_declaratively(spec: At<'_, '_>, old: Option<At<'_, '_>>) {
    let kept = |names: &[&'static str]| {
        old.is_some_and(|old| names.iter().all(|name| unchanged(spec.get(name), old.get(name))))
    };
    let kind = spec.get("type");
    if !kept(&["type", "exempt"]) && kind.text() != "Exempt" && spec.get("exempt").is_set() {
        spec.get("exempt").forbidden("");
    }
    if !kept(&["type", "limited"]) {
        match (kind.text() == "Limited", spec.get("limited").is_set()) {
            (true, false) => spec.get("limited").required(""),
            (false, true) => spec.get("limited").forbidden(""),
            _ => {}
        }
    }
    if !kept(&["type"]) && kind.is_empty() {
        kind.required("");
    }
    if kept(&["limited"]) || !spec.get("limited").is_set() {
        return;
    }
    let answer = spec.get("limited").get("limitResponse");
    match (answer.get("type").text() == "Queue", answer.get("queuing").is_set()) {
        (true, false) => answer.get("queuing").required(""),
        (false, true) => answer.get("queuing").forbidden(""),
        _ => {}
    }
    if answer.get("type").is_empty() {
        answer.get("type").required("");
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::rules::helpers::testing::*;

    fn level(name: &str, spec: &Value) -> Value {
        json!({"metadata": {"name": name}, "spec": spec})
    }

    #[test]
    fn a_level_is_limited_or_exempt() {
        assert_eq!(on_create(&RULES, level("a", &json!({}))), ["spec.type: Required value"]);
        assert_eq!(
            on_create(&RULES, level("a", &json!({"type": "Exempt", "limited": {}}))),
            [
                "spec.type: Invalid value: \"Exempt\": must be 'Exempt' if and only if `name` is 'exempt'",
                "spec.limited: Forbidden",
                "spec.limited.limitResponse.type: Required value",
            ]
        );
        let deep = json!({"type": "Limited", "limited": {"limitResponse": {"type": "Queue", "queuing": {"handSize": 12, "queues": 64}}}});
        assert_eq!(
            on_create(&RULES, level("a", &deep)),
            [
                "spec.limited.limitResponse.queuing.handSize: Invalid value: 12: required entropy bits of deckSize 64 and handSize 12 should not be greater than 60"
            ]
        );
    }
}
