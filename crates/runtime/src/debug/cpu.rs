//! CPU profiles: signals that interrupt the process as it uses processor time, and where they found it.

use std::time::Duration;

use k1s_env::Env;
use tokio_util::sync::CancellationToken;

use super::encode;

/// How often a second of processor time is looked at, as in Go.
const HERTZ: i32 = 100;

/// Why there is no profile.
#[derive(Debug, thiserror::Error)]
pub(super) enum ProfileError {
    /// One at a time: signals and timer are the process's.
    #[error("cpu profiling already in use")]
    InUse,
    #[error("{0}")]
    Profiler(#[from] pprof::Error),
    #[error("{0}")]
    Compress(#[from] std::io::Error),
    #[error("{0}")]
    Task(#[from] k1s_env::TaskError),
}

/// Looks at the process for a while, or until it is stopped; the profile as `go tool pprof` reads it.
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
        // Unwinding from inside of these can block for ever, as they hold locks that unwinding needs: they are not looked at.
        builder.blocklist(&["libc", "libgcc", "pthread", "vdso"])
    };
    let guard = builder.build().map_err(|error| match error {
        pprof::Error::Running => ProfileError::InUse,
        other => ProfileError::Profiler(other),
    })?;
    // A client that leaves drops this, and with it the guard.
    stop.run_until_cancelled(env.sleep(duration)).await;
    // Names have to be found for addresses, which takes its time.
    env.spawn_blocking("cpu profile", move || {
        let report = guard.report().build()?;
        drop(guard);
        Ok(encode::gzip(&encode::profile(&report))?)
    })
    .await?
}
