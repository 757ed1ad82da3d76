//! Node selectors: `nodeSelectorTerms` with expressions on labels and fields.

use k1s_object::{At, names};

use super::{errors::invalid_each, text::qualified_name};

/// A node selector. `any_value`: label values are not checked, because stored ones were invalid.
pub(crate) fn node_selector(at: At<'_, '_>, any_value: bool) {
    let terms = at.get("nodeSelectorTerms");
    if terms.is_empty() {
        return terms.required("must have at least one node selector term");
    }
    for term in terms.items() {
        node_selector_term(term, any_value);
    }
}

/// One term of a node selector.
pub(crate) fn node_selector_term(term: At<'_, '_>, any_value: bool) {
    for expression in term.get("matchExpressions").items() {
        label_expression(expression, any_value);
    }
    for expression in term.get("matchFields").items() {
        field_expression(expression);
    }
}

/// A requirement on the labels of a node.
pub(crate) fn label_expression(expression: At<'_, '_>, any_value: bool) {
    let (operator, values) = (expression.get("operator"), expression.get("values"));
    match operator.text() {
        "In" | "NotIn" => {
            if values.is_empty() {
                values.required("must be specified when `operator` is 'In' or 'NotIn'");
            }
        }
        "Exists" | "DoesNotExist" => {
            if !values.is_empty() {
                values.forbidden("may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
            }
        }
        "Gt" | "Lt" => {
            if values.len() != 1 {
                values.required("must be specified single value when `operator` is 'Lt' or 'Gt'");
            }
        }
        _ => operator.invalid_text("not a valid selector operator"),
    }
    qualified_name(expression.get("key"));
    for value in values.items().filter(|_| !any_value) {
        invalid_each(value, names::is_valid_label_value(value.text()));
    }
}

fn field_expression(expression: At<'_, '_>) {
    let (operator, values, key) =
        (expression.get("operator"), expression.get("values"), expression.get("key"));
    match operator.text() {
        "In" | "NotIn" => {
            if values.len() != 1 {
                values.required(
                    "must be only one value when `operator` is 'In' or 'NotIn' for node field selector",
                );
            }
        }
        _ => operator.invalid_text("not a valid selector operator"),
    }
    if key.text() == "metadata.name" {
        for value in values.items() {
            invalid_each(value, names::is_dns1123_subdomain(value.text()));
        }
    } else {
        key.invalid_text("not a valid field selector key");
    }
}
