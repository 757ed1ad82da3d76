//! The pages of Go's `/debug/pprof/` that exist in Rust: CPU profiles, work in flight, the command line.
//!
//! | path | |
//! |---|---|
//! | `/debug/pprof/` | an index |
//! | `/debug/pprof/goroutine` | as text: tasks, work in flight with its age, queues, informers |
//! | `/debug/pprof/profile?seconds=30` | a CPU profile of the whole process for `go tool pprof`, with the feature `pprof` |
//! | `/debug/pprof/cmdline` | the program and its arguments, with a NUL between them |
//!
//! The pages may reveal secrets, at least the names of objects: serve them on loopback.

#[cfg(all(feature = "pprof", unix))]
mod cpu;
#[cfg(all(feature = "pprof", unix))]
mod encode;

use std::{fmt, sync::Arc, time::Duration};

use http::StatusCode;
use k1s_env::Env;
use tokio_util::sync::CancellationToken;

/// The common prefix of all pages.
pub(crate) const ROOT: &str = "/debug/pprof";

/// Default duration of a profile in seconds, as in Go.
const DEFAULT_SECONDS: u64 = 30;

/// The response for a path.
pub(crate) struct Page {
    pub(crate) status: StatusCode,
    pub(crate) content_type: &'static str,
    /// The file name for downloads.
    pub(crate) file: Option<&'static str>,
    pub(crate) body: Vec<u8>,
}

impl Page {
    fn text(status: StatusCode, body: impl Into<Vec<u8>>) -> Page {
        Page { status, content_type: "text/plain; charset=utf-8", file: None, body: body.into() }
    }
}

/// The pages below `/debug/pprof`. Cheap to clone.
#[derive(Clone)]
pub(crate) struct DebugPages {
    env: Env,
    /// Describes the work in flight.
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

    /// The page with a name below the root; the index has an empty name.
    pub(crate) async fn answer(&self, name: &str, query: &str) -> Page {
        match name {
            "" => Page { content_type: "text/html; charset=utf-8", ..Page::text(StatusCode::OK, index()) },
            "goroutine" => Page::text(StatusCode::OK, (self.state)()),
            "cmdline" => Page::text(StatusCode::OK, command_line()),
            "profile" => self.profile(seconds(query)).await,
            "allocs" | "block" | "heap" | "mutex" | "symbol" | "threadcreate" | "trace" => Page::text(
                StatusCode::NOT_FOUND,
                format!("{ROOT}/{name} exists in Go only; {ROOT}/ lists the pages\n"),
            ),
            _ => Page::text(StatusCode::NOT_FOUND, "Unknown profile\n"),
        }
    }

    #[cfg(all(feature = "pprof", unix))]
    async fn profile(&self, duration: Duration) -> Page {
        match cpu::profile(&self.env, duration, &self.stop).await {
            Ok(body) => Page {
                status: StatusCode::OK,
                content_type: "application/octet-stream",
                file: Some("profile"),
                body,
            },
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

/// `None` if CPU profiles are supported; otherwise why not.
pub(crate) fn missing() -> Option<&'static str> {
    if cfg!(all(feature = "pprof", unix)) { None } else { Some(no_profiles()) }
}

fn no_profiles() -> &'static str {
    if cfg!(unix) {
        "this program was built without CPU profiles; build it with the feature `pprof` of k1s, or of k1s-runtime"
    } else {
        "CPU profiles are not supported on this operating system"
    }
}

/// The parameter `seconds` if it is a positive number, as in Go; else the default.
fn seconds(query: &str) -> Duration {
    let asked = form_urlencoded::parse(query.as_bytes()).find(|(key, _)| key == "seconds");
    let asked = asked.and_then(|(_, value)| value.parse::<u64>().ok()).filter(|seconds| *seconds > 0);
    // At most a day, far below an overflow of the clock.
    Duration::from_secs(asked.unwrap_or(DEFAULT_SECONDS).min(24 * 3600))
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
         <li><a href=\"{ROOT}/cmdline\">cmdline</a>: the command line of the program</li>\n\
         </ul>\n</body></html>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_parsed_as_in_go() {
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
