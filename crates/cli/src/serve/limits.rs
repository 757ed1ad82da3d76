//! The flags about how much clients may use at a time. Other limits are options of an embedded server.

use clap::Args;
use k1s::server::ServerOptions;

/// Limits on connections and requests.
#[derive(Debug, Clone, Args)]
// The group that clap makes of a struct has its name, and those of one command must differ.
#[group(skip)]
#[command(next_help_heading = "Limits")]
pub(crate) struct Flags {
    /// The requests that one tenant may have in flight, without watches that have started, shared out by priority and
    /// fairness: the sum of this and --max-mutating-requests-inflight, as for kube-apiserver. Others wait, or get 429. The
    /// server keeps 100 more for other tenants. [default: 400]
    #[arg(long, value_name = "NUMBER")]
    max_requests_inflight: Option<u32>,
    /// Added to --max-requests-inflight. [default: 0]
    #[arg(long, value_name = "NUMBER")]
    max_mutating_requests_inflight: Option<u32>,
    /// The requests in flight, and watches, on one HTTP/2 connection. 0 is the default. [default: 1000]
    #[arg(long, value_name = "NUMBER", default_value_t = 0, hide_default_value = true)]
    http2_max_streams_per_connection: u32,
    /// The connections of all clients. Beyond it, an idle one of the address that has the most is closed, or else the new one.
    /// Each needs an open file: the limit of these is raised to its hard limit. [default: 4096]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    max_connections: Option<u32>,
    /// The connections of one address. All clients may be behind one proxy. [default: as many as of all]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    max_connections_per_address: Option<u32>,
}

fn number(value: u32) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}

impl Flags {
    /// Sets the options of a server.
    ///
    /// # Errors
    /// If no request would be served.
    pub(super) fn set(&self, server: &mut ServerOptions) -> Result<(), super::Error> {
        let parts = [self.max_requests_inflight, self.max_mutating_requests_inflight];
        if parts.iter().any(Option::is_some) {
            let sum = parts.into_iter().flatten().map(number).fold(0, usize::saturating_add);
            if sum == 0 {
                return Err(super::Error::Flags(
                    "--max-requests-inflight and --max-mutating-requests-inflight: their sum must be positive".into(),
                ));
            }
            server.max_in_flight = sum;
        }
        if self.http2_max_streams_per_connection > 0 {
            server.connections.max_streams = self.http2_max_streams_per_connection;
        }
        if let Some(most) = self.max_connections {
            server.connections.max = number(most);
        }
        if let Some(most) = self.max_connections_per_address {
            server.connections.max_per_peer = number(most);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(clap::Parser)]
    struct Command {
        #[command(flatten)]
        flags: Flags,
    }

    fn options(flags: &[&str]) -> Result<ServerOptions, String> {
        let command =
            Command::try_parse_from(["serve"].iter().chain(flags)).map_err(|why| why.to_string())?;
        let mut options = ServerOptions::default();
        command.flags.set(&mut options).map_err(|why| why.to_string())?;
        Ok(options)
    }

    #[test]
    fn flags_set_the_limits_of_the_server() {
        let (given, default) = (|flags: &[&str]| options(flags).unwrap(), ServerOptions::default());
        let none = given(&[]);
        assert_eq!(none.max_in_flight, default.max_in_flight);
        assert_eq!(none.connections.max, default.connections.max);
        let both = given(&["--max-requests-inflight=300", "--max-mutating-requests-inflight=150"]);
        assert_eq!(both.max_in_flight, 450);
        assert_eq!(given(&["--max-mutating-requests-inflight=7"]).max_in_flight, 7);
        assert_eq!(given(&["--http2-max-streams-per-connection=250"]).connections.max_streams, 250);
        let zero = given(&["--http2-max-streams-per-connection=0"]);
        assert_eq!(zero.connections.max_streams, default.connections.max_streams);
        let few = given(&["--max-connections=20", "--max-connections-per-address=5"]).connections;
        assert_eq!((few.max, few.max_per_peer), (20, 5));
    }

    #[test]
    fn a_server_that_would_serve_nobody_is_refused() {
        for flags in [
            &["--max-requests-inflight=0"][..],
            &["--max-requests-inflight=0", "--max-mutating-requests-inflight=0"],
            &["--max-requests-inflight=-1"],
            &["--max-connections=0"],
            &["--max-connections-per-address=0"],
        ] {
            assert!(options(flags).is_err(), "{flags:?}");
        }
    }
}
