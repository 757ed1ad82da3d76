//! Conditions of a status.

use std::{fmt, time::SystemTime};

use k8s_openapi::{
    apimachinery::pkg::apis::meta::v1::{Condition, Time},
    jiff::Timestamp,
};

/// The status of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ConditionStatus {
    /// The condition holds.
    True,
    /// The condition does not hold.
    False,
    /// Not known.
    Unknown,
}

impl ConditionStatus {
    /// The value in the API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            ConditionStatus::True => "True",
            ConditionStatus::False => "False",
            ConditionStatus::Unknown => "Unknown",
        }
    }
}

impl From<bool> for ConditionStatus {
    fn from(holds: bool) -> ConditionStatus {
        if holds { ConditionStatus::True } else { ConditionStatus::False }
    }
}

impl fmt::Display for ConditionStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A condition to set; its transition time is determined by [`set_status_condition`].
///
/// ```
/// # use k1s_runtime::util::{NewCondition, set_status_condition};
/// # let env = k1s_env::Env::system();
/// # let mut conditions = Vec::new();
/// let ready = NewCondition::new("Ready", true, "ReconciliationSucceeded").observed_generation(Some(3));
/// set_status_condition(&mut conditions, ready, env.wall());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewCondition {
    /// `Ready`
    pub type_: String,
    /// Whether it holds.
    pub status: ConditionStatus,
    /// Why, as one machine-readable word: `ReconciliationSucceeded`.
    pub reason: String,
    /// Why, for humans.
    pub message: String,
    /// The generation of the object that the condition was observed at.
    pub observed_generation: Option<i64>,
}

impl NewCondition {
    /// A condition without a message.
    pub fn new(
        type_: impl Into<String>,
        status: impl Into<ConditionStatus>,
        reason: impl Into<String>,
    ) -> NewCondition {
        NewCondition {
            type_: type_.into(),
            status: status.into(),
            reason: reason.into(),
            message: String::new(),
            observed_generation: None,
        }
    }

    /// Why, for humans.
    #[must_use]
    pub fn message(mut self, message: impl Into<String>) -> NewCondition {
        self.message = message.into();
        self
    }

    /// The generation of the object that the condition was observed at: `object.metadata.generation`.
    #[must_use]
    pub fn observed_generation(mut self, generation: Option<i64>) -> NewCondition {
        self.observed_generation = generation;
        self
    }
}

/// Sets a condition, and returns whether anything has changed. `lastTransitionTime` becomes `now`
/// ([`Env::wall`](k1s_env::Env::wall)) only if the condition is new or its status changes.
pub fn set_status_condition(conditions: &mut Vec<Condition>, new: NewCondition, now: SystemTime) -> bool {
    let NewCondition { type_, status, reason, message, observed_generation } = new;
    let status = status.as_str();
    let Some(known) = conditions.iter_mut().find(|known| known.type_ == type_) else {
        let last_transition_time = seconds(now);
        conditions.push(Condition {
            last_transition_time,
            message,
            observed_generation,
            reason,
            status: status.into(),
            type_,
        });
        return true;
    };
    let mut changed = false;
    if known.status != status {
        known.status = status.into();
        known.last_transition_time = seconds(now);
        changed = true;
    }
    changed |= replace(&mut known.reason, reason);
    changed |= replace(&mut known.message, message);
    changed |= replace(&mut known.observed_generation, observed_generation);
    changed
}

fn replace<T: PartialEq>(old: &mut T, new: T) -> bool {
    let differs = *old != new;
    *old = new;
    differs
}

/// The API stores whole seconds. With fractions, an object would differ from itself after a round trip.
fn seconds(now: SystemTime) -> Time {
    let since = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let seconds = i64::try_from(since.as_secs()).unwrap_or(i64::MAX);
    Time(Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX))
}

/// The condition of this type.
#[must_use]
pub fn find_status_condition<'c>(conditions: &'c [Condition], type_: &str) -> Option<&'c Condition> {
    conditions.iter().find(|known| known.type_ == type_)
}

/// Removes the condition of this type. Returns whether it existed.
pub fn remove_status_condition(conditions: &mut Vec<Condition>, type_: &str) -> bool {
    let before = conditions.len();
    conditions.retain(|known| known.type_ != type_);
    conditions.len() != before
}

/// Whether the condition is present and true.
#[must_use]
pub fn is_status_condition_true(conditions: &[Condition], type_: &str) -> bool {
    is_status_condition_present_and_equal(conditions, type_, ConditionStatus::True)
}

/// Whether the condition is present and false.
#[must_use]
pub fn is_status_condition_false(conditions: &[Condition], type_: &str) -> bool {
    is_status_condition_present_and_equal(conditions, type_, ConditionStatus::False)
}

/// Whether the condition is present with this status.
#[must_use]
pub fn is_status_condition_present_and_equal(
    conditions: &[Condition],
    type_: &str,
    status: ConditionStatus,
) -> bool {
    find_status_condition(conditions, type_).is_some_and(|known| known.status == status.as_str())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_millis(seconds * 1000 + 700)
    }

    fn since(conditions: &[Condition], type_: &str) -> Option<i64> {
        find_status_condition(conditions, type_).map(|known| known.last_transition_time.0.as_second())
    }

    #[test]
    fn the_transition_time_moves_only_with_the_status() {
        let mut all = Vec::new();
        let ready = NewCondition::new("Ready", false, "Starting").message("wait");
        assert!(set_status_condition(&mut all, ready.clone(), at(10)));
        assert_eq!(all[0].last_transition_time.0.subsec_nanosecond(), 0);
        assert!(!set_status_condition(&mut all, ready.clone(), at(20)), "nothing differs");
        assert!(set_status_condition(&mut all, ready.clone().message("wait more"), at(30)));
        assert!(set_status_condition(&mut all, ready.observed_generation(Some(2)), at(40)));
        assert_eq!(since(&all, "Ready"), Some(10));
        assert!(set_status_condition(&mut all, NewCondition::new("Ready", true, "Done"), at(50)));
        assert_eq!(since(&all, "Ready"), Some(50));
        assert_eq!(all.len(), 1);
        assert_eq!((all[0].reason.as_str(), all[0].message.as_str()), ("Done", ""));
    }

    #[test]
    fn conditions_are_found_and_removed_by_type() {
        let mut all = Vec::new();
        set_status_condition(&mut all, NewCondition::new("A", true, "X"), at(1));
        set_status_condition(&mut all, NewCondition::new("B", ConditionStatus::Unknown, "X"), at(1));
        assert!(is_status_condition_true(&all, "A") && !is_status_condition_false(&all, "A"));
        assert!(!is_status_condition_true(&all, "B") && !is_status_condition_false(&all, "B"));
        assert!(is_status_condition_present_and_equal(&all, "B", ConditionStatus::Unknown));
        assert!(!is_status_condition_false(&all, "C"), "a missing condition is not false");
        assert!(remove_status_condition(&mut all, "A"));
        assert!(!remove_status_condition(&mut all, "A"));
        assert_eq!(since(&all, "A"), None);
        assert_eq!(since(&all, "B"), Some(1));
    }
}
