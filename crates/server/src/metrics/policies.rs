//! What policies and match conditions decide, and how long rules in CEL take: the names, labels and buckets are kube-apiserver's.

use std::{collections::BTreeMap, fmt::Write as _, time::Duration};

use parking_lot::Mutex;

use super::{MAX_SERIES, escape};
use crate::hooks::Operation;

const CHECK_BOUNDS: [f64; 5] = [0.000_000_5, 0.001, 0.01, 0.1, 1.0];
const CONDITION_BOUNDS: [f64; 7] = [0.001, 0.005, 0.01, 0.025, 0.1, 0.2, 0.25];
const RULE_BOUNDS: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// A histogram with these upper bounds, in seconds.
struct Histogram<const N: usize> {
    counts: [u64; N],
    more: u64,
    seconds: f64,
}

impl<const N: usize> Default for Histogram<N> {
    fn default() -> Self {
        Histogram { counts: [0; N], more: 0, seconds: 0.0 }
    }
}

impl<const N: usize> Histogram<N> {
    fn observe(&mut self, bounds: &[f64; N], took: Duration) {
        let seconds = took.as_secs_f64();
        let bucket = bounds.iter().position(|bound| seconds <= *bound);
        *bucket.and_then(|bucket| self.counts.get_mut(bucket)).unwrap_or(&mut self.more) += 1;
        self.seconds += seconds;
    }

    fn total(&self) -> u64 {
        self.counts.iter().sum::<u64>() + self.more
    }

    fn write(&self, out: &mut String, bounds: &[f64; N], name: &str, labels: &str) {
        let comma = if labels.is_empty() { "" } else { "," };
        let mut sum = 0;
        for (bound, count) in bounds.iter().zip(&self.counts) {
            sum += count;
            let _ = writeln!(out, "{name}_bucket{{{labels}{comma}le=\"{bound}\"}} {sum}");
        }
        let total = self.total();
        let _ = writeln!(out, "{name}_bucket{{{labels}{comma}le=\"+Inf\"}} {total}");
        let braces = if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
        let _ = writeln!(out, "{name}_sum{braces} {}\n{name}_count{braces} {total}", self.seconds);
    }
}

/// A decision of a policy: policy, binding, type of the error, and what was done about it; nothing for mutating policies.
type Check = (String, String, &'static str, &'static str);

/// Match conditions: the name of their object, its kind, the step, and the operation.
type ConditionsOf = (String, &'static str, &'static str, Operation);

#[derive(Default)]
struct Conditions {
    took: Histogram<7>,
    errors: u64,
    excluded: u64,
}

/// How match conditions turned out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Held {
    Yes,
    No,
    Failed,
}

/// Counters of policies, of match conditions, and of the rules of definitions.
#[derive(Default)]
pub(crate) struct PolicyMetrics {
    validating: Mutex<BTreeMap<Check, Histogram<5>>>,
    mutating: Mutex<BTreeMap<Check, Histogram<5>>>,
    conditions: Mutex<BTreeMap<ConditionsOf, Conditions>>,
    rules: Mutex<Histogram<11>>,
}

/// The type of an error, as kube-apiserver finds it from the message.
pub(crate) fn error_type(message: &str) -> &'static str {
    if message.starts_with("compilation") {
        return "compile_error";
    }
    match message.starts_with("validation failed due to running out of cost budget") {
        true => "out_of_budget",
        false => "invalid_error",
    }
}

fn check(
    checks: &Mutex<BTreeMap<Check, Histogram<5>>>,
    [policy, binding]: [&str; 2],
    error: &'static str,
    action: &'static str,
    took: Duration,
) {
    let mut checks = checks.lock();
    let mut key = (policy.to_owned(), binding.to_owned(), error, action);
    if checks.len() >= MAX_SERIES && !checks.contains_key(&key) {
        (key.0, key.1) = Default::default();
    }
    checks.entry(key).or_default().observe(&CHECK_BOUNDS, took);
}

impl PolicyMetrics {
    /// Counts what was done about a validation that does not hold: `deny`, `warn` or `audit`.
    pub(crate) fn validation(&self, names: [&str; 2], message: &str, action: &'static str, took: Duration) {
        check(&self.validating, names, error_type(message), action, took);
    }

    /// Counts a run of a mutation of a policy; `error`: why it failed.
    pub(crate) fn mutation(&self, names: [&str; 2], error: Option<&str>, took: Duration) {
        check(&self.mutating, names, error.map_or("no_error", error_type), "", took);
    }

    /// Counts an evaluation of match conditions. `kind`: `webhook` or `policy`.
    pub(crate) fn conditions(
        &self,
        name: &str,
        [kind, step]: [&'static str; 2],
        operation: Operation,
        held: Held,
        took: Duration,
    ) {
        let mut all = self.conditions.lock();
        let mut key = (name.to_owned(), kind, step, operation);
        if all.len() >= MAX_SERIES && !all.contains_key(&key) {
            key.0.clear();
        }
        let conditions = all.entry(key).or_default();
        conditions.took.observe(&CONDITION_BOUNDS, took);
        match held {
            Held::Yes => {}
            Held::No => conditions.excluded += 1,
            Held::Failed => conditions.errors += 1,
        }
    }

    /// Measures the evaluation of the rules of a custom resource, which had some if it took any time.
    pub(crate) fn rules(&self, took: Option<Duration>) {
        if let Some(took) = took {
            self.rules.lock().observe(&RULE_BOUNDS, took);
        }
    }

    pub(super) fn write(&self, out: &mut String) {
        let head = |out: &mut String, name: &str, kind: &str, help: &str| {
            let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
        };
        for (checks, prefix, help) in [
            (
                &self.validating,
                "apiserver_validating_admission_policy",
                "validations of policies that do not hold, by what was done",
            ),
            (&self.mutating, "apiserver_mutating_admission_policy", "mutations of policies"),
        ] {
            let checks = checks.lock();
            let labels = |(policy, binding, error, action): &Check| {
                let mut labels = format!(
                    "error_type=\"{error}\",policy=\"{}\",policy_binding=\"{}\"",
                    escape(policy),
                    escape(binding)
                );
                if !action.is_empty() {
                    labels = format!("enforcement_action=\"{action}\",{labels}");
                }
                labels
            };
            let name = format!("{prefix}_check_total");
            head(out, &name, "counter", &format!("Number of {help}."));
            for (key, took) in &*checks {
                let _ = writeln!(out, "{name}{{{}}} {}", labels(key), took.total());
            }
            let name = format!("{prefix}_check_duration_seconds");
            head(out, &name, "histogram", &format!("Duration of {help}."));
            for (key, took) in &*checks {
                took.write(out, &CHECK_BOUNDS, &name, &labels(key));
            }
        }
        let conditions = self.conditions.lock();
        let labels = |(name, kind, step, operation): &ConditionsOf| {
            format!("kind=\"{kind}\",name=\"{}\",operation=\"{operation}\",type=\"{step}\"", escape(name))
        };
        let name = "apiserver_admission_match_condition_evaluation_seconds";
        head(out, name, "histogram", "How long match conditions took.");
        for (key, one) in &*conditions {
            one.took.write(out, &CONDITION_BOUNDS, name, &labels(key));
        }
        type Count = fn(&Conditions) -> u64;
        let counts: [(&str, &str, Count); 2] = [
            ("evaluation_errors_total", "Match conditions that could not be evaluated.", |one| one.errors),
            ("exclusions_total", "Requests that match conditions have excluded.", |one| one.excluded),
        ];
        for (suffix, help, count) in counts {
            let name = format!("apiserver_admission_match_condition_{suffix}");
            head(out, &name, "counter", help);
            for (key, one) in conditions.iter().filter(|(_, one)| count(one) > 0) {
                let _ = writeln!(out, "{name}{{{}}} {}", labels(key), count(one));
            }
        }
        let name = "apiserver_cel_evaluation_duration_seconds";
        head(out, name, "histogram", "How long the rules of a custom resource took.");
        self.rules.lock().write(out, &RULE_BOUNDS, name, "");
    }
}
