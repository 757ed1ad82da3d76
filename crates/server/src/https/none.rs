//! The client of a server that is built without TLS: there is none.

use std::{convert::Infallible, time::Duration};

use k1s_env::Env;

use super::Answer;

/// Cannot be made.
pub(crate) struct HttpsClient(Infallible);

impl HttpsClient {
    pub(crate) fn new(_: &Env, _: &str) -> Result<HttpsClient, String> {
        Err("this server is built without TLS".into())
    }

    pub(crate) async fn get(&self, _: &str, _: Option<&str>, _: Duration) -> Result<Answer, String> {
        match self.0 {}
    }
}
