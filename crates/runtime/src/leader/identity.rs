//! The identity of a candidate.

use k1s_env::Env;

/// The name of this machine; `localhost` if it cannot be determined.
#[must_use]
pub fn hostname() -> String {
    node_name().filter(|name| !name.is_empty()).unwrap_or_else(|| "localhost".to_owned())
}

#[cfg(unix)]
fn node_name() -> Option<String> {
    rustix::system::uname().nodename().to_str().ok().map(str::to_owned)
}

#[cfg(not(unix))]
fn node_name() -> Option<String> {
    std::env::var("COMPUTERNAME").ok()
}

/// `host_uuid`, different at each call.
#[must_use]
pub fn unique_identity(env: &Env) -> String {
    format!("{}_{}", hostname(), env.uuid())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_is_the_host_and_something_unique() {
        let env = Env::system();
        let (one, other) = (unique_identity(&env), unique_identity(&env));
        assert_ne!(one, other);
        assert!(one.starts_with(&format!("{}_", hostname())), "{one}");
    }
}
