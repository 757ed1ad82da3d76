//! Type-erased informers, as the cache holds them.

use std::{any::Any, sync::Arc, time::Duration};

use k1s_env::Task;
use kube::api::ApiResource;
use serde_json::Value;

use super::{CacheError, Informer, Problem, objects::Incoming, reflector, wire};
use crate::{Object, ObjectKey};

#[async_trait::async_trait]
pub(super) trait AnyInformer: Send + Sync + 'static {
    fn any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
    fn resource(&self) -> &ApiResource;
    fn name(&self) -> String;
    /// Records an object that the server stored for this client.
    fn wrote(&self, raw: &[u8]);
    /// Records that the server deleted this object for this client.
    fn removed(&self, key: &ObjectKey, uid: &str);
    fn has_synced(&self) -> bool;
    async fn synced(&self);
    /// Waits until it can be read, or fails with the reason why it cannot.
    async fn readable(&self) -> Result<(), CacheError>;
    fn problem(&self) -> Option<Problem>;
    /// Number of objects.
    fn objects(&self) -> usize;
    /// Whether writes of this client have not come back as events yet.
    fn has_pending_writes(&self) -> bool;
    fn unused_for(&self, idle: Duration) -> bool;
    fn stop(&self) -> Vec<Task<()>>;
    /// Lists the objects on the server, and waits until all of them were delivered to the handlers.
    async fn catch_up(&self) -> Result<(), Problem>;
}

#[async_trait::async_trait]
impl<K: Object> AnyInformer for Informer<K> {
    fn any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }

    fn resource(&self) -> &ApiResource {
        self.codec.kind.resource()
    }

    fn name(&self) -> String {
        self.codec.kind.to_string()
    }

    fn wrote(&self, raw: &[u8]) {
        let Ok(head) = wire::head(raw) else { return };
        let key = head.key();
        let Some(part) = self.part_of(&key) else { return };
        // The event may have arrived before the response.
        if part.objects.read().revision() >= head.revision() {
            return;
        }
        let visible = selected(&self.options.labels, &self.options.fields, &key, raw);
        // An object that cannot be decoded is reported when its event comes.
        let Ok((kept, object)) = self.codec.take(raw) else { return };
        let (revision, uid) = (head.revision(), head.uid.into_owned());
        part.objects.write().wrote(Incoming { key, revision, uid, kept, object }, visible);
    }

    fn removed(&self, key: &ObjectKey, uid: &str) {
        if let Some(part) = self.part_of(key) {
            part.objects.write().removed(key, uid);
        }
    }

    fn has_synced(&self) -> bool {
        Informer::has_synced(self)
    }

    async fn synced(&self) {
        Informer::synced(self).await;
    }

    async fn readable(&self) -> Result<(), CacheError> {
        Informer::readable(self).await
    }

    fn problem(&self) -> Option<Problem> {
        Informer::problem(self)
    }

    fn objects(&self) -> usize {
        self.len()
    }

    fn has_pending_writes(&self) -> bool {
        self.parts().iter().any(|part| part.objects.read().has_pending_writes())
    }

    fn unused_for(&self, idle: Duration) -> bool {
        Informer::unused_for(self, idle)
    }

    fn stop(&self) -> Vec<Task<()>> {
        self.stop.cancel();
        self.forget_panics(|_| true);
        std::mem::take(&mut *self.tasks.lock())
    }

    async fn catch_up(&self) -> Result<(), Problem> {
        reflector::catch_up(self).await
    }
}

/// Whether an object matches the selectors of an informer.
fn selected(
    labels: &Option<k1s_object::selector::LabelSelector>,
    fields: &Option<k1s_object::selector::FieldSelector>,
    key: &ObjectKey,
    raw: &[u8],
) -> bool {
    if labels.is_none() && fields.is_none() {
        return true;
    }
    let Ok(object) = serde_json::from_slice::<Value>(raw) else { return false };
    labels.as_ref().is_none_or(|labels| labels.matches_labels(object.pointer("/metadata/labels")))
        && fields.as_ref().is_none_or(|fields| {
            fields.matches(|field| match field {
                "metadata.name" => Some(key.name()),
                "metadata.namespace" => Some(key.namespace().unwrap_or_default()),
                // A selectable field's name is its path; a missing field is empty.
                other => {
                    let pointer = format!("/{}", other.replace('.', "/"));
                    Some(object.pointer(&pointer).and_then(Value::as_str).unwrap_or_default())
                }
            })
        })
}
