//! When a request is old enough to be deleted.

use jiff::{SignedDuration, Timestamp};
use kube::api::DynamicObject;
use serde_json::Value;

use super::{certificate, conditions};

/// How long requests are kept after they were issued, denied or have failed.
const DONE: SignedDuration = SignedDuration::from_hours(1);
/// How long requests are kept that nobody has handled, or that were approved and not signed.
const PENDING: SignedDuration = SignedDuration::from_hours(24);

/// After this time a request is to be deleted; `end` is when a certificate expires.
pub(super) fn due(request: &DynamicObject, end: impl Fn(&str) -> Option<Timestamp>) -> Option<Timestamp> {
    let conditions = conditions(request);
    let after = |at: Timestamp, time: SignedDuration| at.checked_add(time).ok();
    if conditions.is_empty() {
        return after(request.metadata.creation_timestamp.as_ref()?.0, PENDING);
    }
    let certificate = certificate(request);
    let times = conditions.iter().filter_map(|condition| {
        let updated = |condition: &Value| condition["lastUpdateTime"].as_str()?.parse::<Timestamp>().ok();
        let kept = match condition["type"].as_str()? {
            "Denied" | "Failed" => DONE,
            "Approved" if certificate.is_empty() => PENDING,
            "Approved" => {
                let issued = updated(condition).and_then(|at| after(at, DONE));
                return [issued, end(certificate)].into_iter().flatten().min();
            }
            _ => return None,
        };
        after(updated(condition)?, kept)
    });
    times.min()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn request(status: &Value) -> DynamicObject {
        serde_json::from_value(json!({"metadata": {"name": "a", "creationTimestamp": "2026-01-01T00:00:00Z"},
            "status": status}))
        .unwrap()
    }

    /// Cases of upstream's cleaner: what is deleted after how many minutes.
    #[test]
    fn requests_are_kept_as_long_as_by_kubernetes() {
        let condition = |kind: &str| json!([{"type": kind, "lastUpdateTime": "2026-01-01T00:00:00Z"}]);
        let cases = [
            (json!({}), Some(24 * 60)),
            (json!({"conditions": condition("Approved")}), Some(24 * 60)),
            (json!({"conditions": condition("Approved"), "certificate": "eA=="}), Some(60)),
            (json!({"conditions": condition("Approved"), "certificate": "soon"}), Some(10)),
            (json!({"conditions": condition("Denied")}), Some(60)),
            (json!({"conditions": condition("Failed")}), Some(60)),
            (json!({"conditions": [{"type": "Denied"}]}), None),
            (json!({"conditions": condition("Other")}), None),
        ];
        let begin: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let end = |certificate: &str| (certificate == "soon").then(|| begin + SignedDuration::from_mins(10));
        for (status, minutes) in cases {
            let due = due(&request(&status), end).map(|due| due.duration_since(begin).as_mins());
            assert_eq!(due, minutes, "{status}");
        }
    }
}
