//! Calls with a client's interceptors and settings applied.

use bytes::Bytes;
use kube::client::Body;

use super::{Call, Client, Error, PatchOptions, WriteOptions, transport::Outgoing};

impl Client {
    pub(super) fn write_options(&self, mut options: WriteOptions) -> WriteOptions {
        let settings = &self.settings;
        options.dry_run |= settings.dry_run;
        options.field_manager = options.field_manager.or_else(|| settings.field_manager.clone());
        options.field_validation = options.field_validation.or(settings.field_validation);
        options
    }

    pub(super) fn patch_options(&self, mut options: PatchOptions) -> PatchOptions {
        let settings = &self.settings;
        options.dry_run |= settings.dry_run;
        options.field_manager = options.field_manager.or_else(|| settings.field_manager.clone());
        options.field_validation = options.field_validation.or(settings.field_validation);
        options
    }

    /// Sends a request and returns the response body.
    pub(super) async fn call(&self, call: &Call<'_>, outgoing: &Outgoing) -> Result<Bytes, Error> {
        self.before(call).await?;
        let answer = self.shared.transport.exchange(call, outgoing).await;
        self.after(call, answer.as_ref()).await?;
        answer
    }

    /// Sends a request and returns the response as a stream.
    pub(super) async fn open(&self, call: &Call<'_>, outgoing: &Outgoing) -> Result<Body, Error> {
        self.before(call).await?;
        let body = self.shared.transport.open(call, outgoing).await;
        let empty = Bytes::new();
        self.after(call, body.as_ref().map(|_| &empty)).await?;
        body
    }

    pub(super) async fn before(&self, call: &Call<'_>) -> Result<(), Error> {
        for interceptor in &self.settings.interceptors {
            interceptor.before(call).await?;
        }
        Ok(())
    }

    pub(super) async fn after(&self, call: &Call<'_>, outcome: Result<&Bytes, &Error>) -> Result<(), Error> {
        for interceptor in self.settings.interceptors.iter().rev() {
            interceptor.after(call, outcome).await?;
        }
        Ok(())
    }
}
