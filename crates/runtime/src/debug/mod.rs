//! What Go serves at `/debug/pprof/`, as far as Rust has it: where the time goes, what is in flight, how the program was started.
//!
//! | path | |
//! |---|---|
//! | `/debug/pprof/` | what there is |
//! | `/debug/pprof/goroutine` | as text: tasks, work in flight with its age, queues, informers |
//! | `/debug/pprof/profile?seconds=30` | a CPU profile of the whole process for `go tool pprof`, with the feature `pprof` |
//! | `/debug/pprof/cmdline` | the program and its arguments, with a NUL between them |
//!
//! All of it may tell secrets, names of objects at least: serve it at loopback.

#[cfg(all(feature = "pprof", unix))]
mod cpu;
#[cfg(all(feature = "pprof", unix))]
mod encode;

use std::{fmt, sync::Arc, time::Duration};

use http::StatusCode;
use k1s_env::Env;
use tokio_util::sync::CancellationToken;

/// The path that everything is below.
pub(crate) const ROOT: &str = "/debug/pprof";

/// How long a profile takes if nothing is said, as in Go.
const SECONDS: u64 = 30;

/// What a path answers.
pub(crate) struct Page {
    pub(crate) status: StatusCode,
    pub(crate) kind: &'static str,
    /// What a browser calls the file.
    pub(crate) file: Option<&'static str>,
    pub(crate) body: Vec<u8>,
}

impl Page {
    fn text(status: StatusCode, body: impl Into<Vec<u8>>) -> Page {
        Page { status, kind: "text/plain; charset=utf-8", file: None, body: body.into() }
    }
}

/// The pages below `/debug/pprof`. Clones are the same.
#[derive(Clone)]
pub(crate) struct DebugPages {
    env: Env,
    /// Describes what is in flight.
    state: Arc<dyn Fn() -> String + Send + Sync>,
    /// Ends profiles early.
    stop: CancellationToken,
}

impl fmt::Debug for DebugPages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DebugPages")
    }
}

impl DebugPages {
    pub(crate) fn new(
        env: &Env,
        state: impl Fn() -> String + Send + Sync + 'static,
        stop: CancellationToken,
    ) -> DebugPages {
        DebugPages { env: env.clone(), state: Arc::new(state), stop }
    }

    /// The page of a name below the root; the index has none.
    pub(crate) async fn answer(&self, name: &str, query: &str) -> Page {
        match name {
            "" => Page { kind: "text/html; charset=utf-8", ..Page::text(StatusCode::OK, index()) },
            "goroutine" => Page::text(StatusCode::OK, (self.state)()),
            "cmdline" => Page::text(StatusCode::OK, command_line()),
            "profile" => self.profile(seconds(query)).await,
            "allocs" | "block" | "heap" | "mutex" | "symbol" | "threadcreate" | "trace" => Page::text(
                StatusCode::NOT_FOUND,
                format!("{ROOT}/{name} is something of Go's; {ROOT}/ lists what there is here\n"),
            ),
            _ => Page::text(StatusCode::NOT_FOUND, "Unknown profile\n"),
        }
    }

    #[cfg(all(feature = "pprof", unix))]
    async fn profile(&self, duration: Duration) -> Page {
        match cpu::profile(&self.env, duration, &self.stop).await {
            Ok(body) => {
                Page { status: StatusCode::OK, kind: "application/octet-stream", file: Some("profile"), body }
            }
            Err(error) => Page::text(
                StatusCode::INTERNAL_SERVER_ERROR,
                format!("Could not enable CPU profiling: {error}\n"),
            ),
        }
    }

    #[cfg(not(all(feature = "pprof", unix)))]
    async fn profile(&self, _: Duration) -> Page {
        let _ = (&self.env, &self.stop);
        Page::text(StatusCode::NOT_IMPLEMENTED, format!("{}\n", no_profiles()))
    }
}

/// Whether CPU profiles can be made; else what to do about it.
pub(crate) fn missing() -> Option<&'static str> {
    if cfg!(all(feature = "pprof", unix)) { None } else { Some(no_profiles()) }
}

fn no_profiles() -> &'static str {
    if cfg!(unix) {
        "this program was built without CPU profiles; build it with the feature `pprof` of k1s, or of k1s-runtime"
    } else {
        "there are no CPU profiles on this operating system"
    }
}

/// `seconds`, if that is a number above zero, as Go reads it.
fn seconds(query: &str) -> Duration {
    let asked = form_urlencoded::parse(query.as_bytes()).find(|(key, _)| key == "seconds");
    let asked = asked.and_then(|(_, value)| value.parse::<u64>().ok()).filter(|seconds| *seconds > 0);
    // A day is longer than anybody waits, and far from where clocks overflow.
    Duration::from_secs(asked.unwrap_or(SECONDS).min(24 * 3600))
}

fn command_line() -> Vec<u8> {
    let arguments: Vec<String> =
        std::env::args_os().map(|argument| argument.to_string_lossy().into_owned()).collect();
    arguments.join("\0").into_bytes()
}

fn index() -> String {
    let profile = missing().unwrap_or(
        "a CPU profile of the whole process: <code>go tool pprof http://HOST:PORT/debug/pprof/profile?seconds=30</code>",
    );
    format!(
        "<!DOCTYPE html>\n<html><head><title>{ROOT}/</title></head><body>\n<h1>{ROOT}/</h1>\n<ul>\n\
         <li><a href=\"{ROOT}/goroutine?debug=1\">goroutine</a>: tasks, work in flight, queues, informers</li>\n\
         <li><a href=\"{ROOT}/profile\">profile</a>: {profile}</li>\n\
         <li><a href=\"{ROOT}/cmdline\">cmdline</a>: how the program was started</li>\n\
         </ul>\n</body></html>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_read_as_go_reads_them() {
        for (query, expected) in [
            ("", 30),
            ("seconds=5", 5),
            ("seconds=0", 30),
            ("seconds=-3", 30),
            ("seconds=x", 30),
            ("a=b&seconds=2", 2),
        ] {
            assert_eq!(seconds(query), Duration::from_secs(expected), "{query}");
        }
    }
}
