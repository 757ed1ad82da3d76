//! CPU profiles, sampled by signals that interrupt the process as it uses processor time.

use std::time::Duration;

use k1s_env::Env;
use tokio_util::sync::CancellationToken;

use super::encode;

/// Samples per second of processor time, as in Go.
const HERTZ: i32 = 100;

/// Why a profile failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum ProfileError {
    /// The signal and the timer are process-wide, so there can be one profile at a time.
    #[error("cpu profiling already in use")]
    InUse,
    #[error("{0}")]
    Profiler(#[from] pprof::Error),
    #[error("{0}")]
    Compress(#[from] std::io::Error),
    #[error("{0}")]
    Task(#[from] k1s_env::TaskError),
}

/// Profiles the process for a time, or until `stop`. Returns the profile in the format of `go tool pprof`.
pub(super) async fn profile(
    env: &Env,
    duration: Duration,
    stop: &CancellationToken,
) -> Result<Vec<u8>, ProfileError> {
    let builder = pprof::ProfilerGuardBuilder::default().frequency(HERTZ);
    #[cfg(any(
        target_arch = "x86_64",
        target_arch = "aarch64",
        target_arch = "riscv64",
        target_arch = "loongarch64"
    ))]
    let builder = {
        // Unwinding inside of these can deadlock, as they hold locks that unwinding needs.
        builder.blocklist(&["libc", "libgcc", "pthread", "vdso"])
    };
    let guard = builder.build().map_err(|error| match error {
        pprof::Error::Running => ProfileError::InUse,
        other => ProfileError::Profiler(other),
    })?;
    // If the client disconnects, this future is dropped, and with it the guard.
    stop.run_until_cancelled(env.sleep(duration)).await;
    // Symbolization is slow.
    env.spawn_blocking("cpu profile", move || {
        let report = guard.report().build()?;
        drop(guard);
        Ok(encode::gzip(&encode::profile(&report))?)
    })
    .await?
}
