//! The verb `apply` of clients.

use super::Applicable;
use crate::{
    Object, TypedObject,
    client::{ApplyOptions, Client, Error, KindClient, PatchType, Verb},
};

impl Client {
    /// Server-side apply, as the client's [field owner](Client::with_field_owner): sets these fields, makes the manager
    /// their owner, and removes what it had applied before and does not apply now. Creates the object if there is none.
    ///
    /// Takes an object of the kind, of which [`Applicable`] says what is applied, or an
    /// [`ApplyConfiguration`](super::ApplyConfiguration) with some of its fields.
    ///
    /// # Errors
    /// If another manager owns a field and wants another value (see [`Error::apply_conflicts`]), or the server rejects it.
    pub async fn apply<K: TypedObject>(
        &self,
        configuration: &(impl Applicable<K> + ?Sized),
    ) -> Result<K, Error> {
        self.typed().apply(configuration).await
    }

    /// Server-side apply. The options may be just the name of the field manager.
    ///
    /// # Errors
    /// As [`apply`](Client::apply); forced, it has no conflicts with other managers.
    pub async fn apply_with<K: TypedObject>(
        &self,
        configuration: &(impl Applicable<K> + ?Sized),
        options: impl Into<ApplyOptions>,
    ) -> Result<K, Error> {
        self.typed().apply_with(configuration, options).await
    }
}

impl<K: Object> KindClient<K> {
    /// [`Client::apply`] for this kind.
    ///
    /// # Errors
    /// As there.
    pub async fn apply(&self, configuration: &(impl Applicable<K> + ?Sized)) -> Result<K, Error> {
        self.apply_with(configuration, ApplyOptions::default()).await
    }

    /// [`Client::apply_with`] for this kind.
    ///
    /// # Errors
    /// As there.
    pub async fn apply_with(
        &self,
        configuration: &(impl Applicable<K> + ?Sized),
        options: impl Into<ApplyOptions>,
    ) -> Result<K, Error> {
        self.send_apply(configuration, options.into(), None).await
    }

    pub(in crate::client) async fn send_apply(
        &self,
        configuration: &(impl Applicable<K> + ?Sized),
        options: ApplyOptions,
        subresource: Option<&str>,
    ) -> Result<K, Error> {
        let configuration = configuration.configuration(subresource);
        let key = configuration.key();
        let body = configuration.body(self.resource());
        let body = body.map_err(|message| self.refuse(Verb::Apply, &key, subresource, &message))?;
        self.send_patch_body(&key, (PatchType::Apply, body.into()), options.into(), subresource).await
    }
}
