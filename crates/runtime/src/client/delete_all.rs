//! Deleting many objects at once.

use std::collections::HashSet;

use bytes::Bytes;
use http::Method;
use kube::discovery::Scope;

use super::{
    Call, DeleteAllOfOptions, Error, KindClient, ListOptions, Verb, Written, decode,
    kind_client::checked,
    options::Query,
    transport::{JSON, METADATA_LIST, Outgoing},
};
use crate::{Object, ObjectKey, kind::static_scope};

impl<K: Object> KindClient<K> {
    /// Deletes all matching objects. For a namespaced kind, those of one namespace.
    ///
    /// # Errors
    /// If the server rejects the request.
    pub async fn delete_all_of(&self, options: impl Into<DeleteAllOfOptions>) -> Result<(), Error> {
        let DeleteAllOfOptions { list, mut delete } = options.into();
        let verb = Verb::DeleteAllOf;
        let namespace = self.namespace(verb, list.namespace.as_deref(), None).await?;
        let mut call = Call::new(verb, self.resource(), namespace);
        if namespace.is_none() && static_scope::<K>() == Some(Scope::Namespaced) {
            return Err(Error::invalid(call.target(), "the kind is namespaced: a namespace is needed"));
        }
        delete.dry_run |= self.client.settings.dry_run;
        call.dry_run = delete.dry_run;
        let encoded = serde_json::to_vec(&delete);
        let encoded = encoded.map_err(|source| Error::Encode { target: Box::new(call.target()), source })?;
        let body = Bytes::from(encoded);
        call.body = Some(&body);
        let mut query = Query::of(self.kind.path(checked(&call, namespace)?));
        list.query(&mut query);
        let outgoing = Outgoing {
            method: Method::DELETE,
            uri: query.into_uri(),
            accept: METADATA_LIST,
            content_type: JSON,
            body: body.clone(),
        };
        let answer = self.client.call(&call, &outgoing).await?;
        if self.client.settings.cache.is_some() && !delete.dry_run {
            self.observe_deleted(&call, &answer, list.clone()).await?;
        }
        Ok(())
    }

    /// Updates the cache. The response does not say which objects are gone and which wait for finalizers, so the
    /// remaining ones are read again.
    async fn observe_deleted(&self, call: &Call<'_>, answer: &Bytes, list: ListOptions) -> Result<(), Error> {
        let concerned = decode::raw_list(call, answer)?.items;
        if concerned.is_empty() {
            return Ok(());
        }
        let mut query = Query::of(self.kind.path(call.namespace));
        ListOptions { limit: None, continue_token: None, ..list }.query(&mut query);
        let mut look = Call::new(Verb::List, self.resource(), call.namespace);
        let left = self.client.call(&look, &Outgoing::get(query.into_uri(), METADATA_LIST)).await?;
        let mut uids = HashSet::new();
        for item in decode::raw_list(&look, &left)?.items {
            uids.extend(decode::head(&look, &item)?.metadata.uid);
        }
        look.verb = Verb::Get;
        for item in concerned {
            let meta = decode::head(&look, &item)?.metadata;
            let key = ObjectKey::new(meta.namespace.as_deref(), meta.name.as_deref().unwrap_or_default());
            let mut look = look;
            look.namespace = key.namespace();
            look.name = Some(key.name());
            let state = match meta.uid.as_ref().is_some_and(|uid| uids.contains(uid)) {
                true => {
                    let get = Outgoing::get(self.path(&look, true)?, JSON);
                    super::ignore_not_found(self.client.call(&look, &get).await)?
                }
                false => None,
            };
            self.observe(false, || match state {
                Some(object) => Written::Stored(object),
                None => Written::Deleted { key: key.clone(), uid: meta.uid.clone() },
            });
        }
        Ok(())
    }
}
