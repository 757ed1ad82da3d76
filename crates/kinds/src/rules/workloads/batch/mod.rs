//! Job and CronJob.

pub(crate) mod defaults;

use serde_json::Value;

use super::{
    super::{FieldLabelError, Rules, SelectableField, drop_status},
    json::number,
};

/// The rules of Job.
pub(super) static JOB: Rules = Rules {
    defaults: defaults::job,
    prepare_create: job_create,
    orphans_by_default: true,
    fields: &[SelectableField {
        path: "status.successful",
        read: |job| number(job, "/status/succeeded").to_string(),
    }],
    field_error: FieldLabelError::Quoted("Job"),
    ..Rules::WITH_STATUS
};

/// The rules of CronJob.
pub(super) static CRON_JOB: Rules = Rules { defaults: defaults::cron_job, ..Rules::WITH_STATUS };

fn job_create(job: &mut Value) {
    drop_status(job);
    defaults::generate_selector(job);
    defaults::labels_from_template(job);
}
