//! `batch`.

mod cron_job;
mod job;
#[cfg(test)]
mod tests;

pub use self::job::DELETE_WARNING as JOB_DELETE_WARNING;
use crate::rules::Rules;

/// The rules of a kind of this group.
pub(super) fn rules(kind: &str) -> Option<&'static Rules> {
    Some(match kind {
        "CronJob" => &cron_job::RULES,
        "Job" => &job::RULES,
        _ => return None,
    })
}
