//! A manager's client that checks read-your-writes: a read never shows less than what was written through it.

use std::{collections::HashMap, sync::Arc};

use k1s_runtime::{
    Client, Object, ObjectKey,
    client::{DeleteOptions, Deleted, Error, ListOptions, Patch},
    util::{self, Mutation},
};
use kube::ResourceExt as _;
use parking_lot::Mutex;

pub(crate) struct Own {
    client: Client,
    written: Mutex<HashMap<(String, ObjectKey), Written>>,
    complaints: Complaints,
}

/// The violations found, reported at the end of the test.
pub(crate) type Complaints = Arc<Mutex<Vec<String>>>;

#[derive(Debug, Clone)]
struct Written {
    uid: String,
    revision: u64,
    /// It was reported as deleted.
    gone: bool,
}

fn revision<K: Object>(object: &K) -> u64 {
    object.resource_version().unwrap().parse().unwrap()
}

fn id<K: Object<DynamicType: Default>>(key: &ObjectKey) -> (String, ObjectKey) {
    (K::kind(&K::DynamicType::default()).into_owned(), key.clone())
}

impl Own {
    pub(crate) fn new(client: Client, complaints: &Complaints) -> Arc<Own> {
        Arc::new(Own { client, written: Mutex::default(), complaints: complaints.clone() })
    }

    pub(crate) fn complain(&self, text: String) {
        self.complaints.lock().push(text);
    }

    // Reads.

    pub(crate) async fn get<K: Object<DynamicType: Default>>(
        &self,
        key: &ObjectKey,
    ) -> Result<Option<Arc<K>>, Error> {
        let written = self.written.lock().get(&id::<K>(key)).cloned();
        let got = self.client.get_opt::<K>(key).await?;
        if let Some(written) = written {
            self.check(key, &written, got.as_deref());
            if got.is_none() && !written.gone {
                self.check_gone::<K>(key, &written).await;
            }
        }
        Ok(got)
    }

    pub(crate) async fn list<K: Object<DynamicType: Default>>(
        &self,
        options: ListOptions,
    ) -> Result<Vec<Arc<K>>, Error> {
        let written = self.written.lock().clone();
        let got = self.client.list::<K>(options).await?;
        for object in &got {
            let key = ObjectKey::of(&**object);
            if let Some(written) = written.get(&id::<K>(&key)) {
                self.check(&key, written, Some(&**object));
            }
        }
        Ok(got)
    }

    fn check<K: Object<DynamicType: Default>>(&self, key: &ObjectKey, written: &Written, got: Option<&K>) {
        let Some(got) = got else { return };
        let kind = K::kind(&K::DynamicType::default()).into_owned();
        let (uid, shown) = (got.uid().unwrap(), revision(got));
        if written.gone && uid == written.uid {
            self.complain(format!("{kind} {key} ({uid}) was deleted by us, and is read at {shown}"));
        }
        if !written.gone && shown < written.revision {
            self.complain(format!(
                "{kind} {key} was written at {}, and is read at {shown}",
                written.revision
            ));
        }
    }

    /// An object that was written and is not read must have been deleted.
    async fn check_gone<K: Object<DynamicType: Default>>(&self, key: &ObjectKey, written: &Written) {
        let Ok(there) = self.client.live().get_opt::<K>(key).await else { return };
        if there.is_some_and(|there| there.uid().unwrap() == written.uid) {
            let kind = K::kind(&K::DynamicType::default()).into_owned();
            self.complain(format!("{kind} {key} was written at {}, and is not read", written.revision));
        }
    }

    // Writes.

    async fn wrote<K: Object<DynamicType: Default>>(&self, stored: &K) -> Result<(), Error> {
        let key = ObjectKey::of(stored);
        let now = Written { uid: stored.uid().unwrap(), revision: revision(stored), gone: false };
        self.note::<K>(&key, now.clone());
        // The very next reads show it, both by name and in a list.
        self.get::<K>(&key).await?;
        let all = self.list::<K>(ListOptions::in_namespace(key.namespace().unwrap())).await?;
        if !all.iter().any(|one| ObjectKey::of(&**one) == key) {
            self.check_gone::<K>(&key, &now).await;
        }
        Ok(())
    }

    fn note<K: Object<DynamicType: Default>>(&self, key: &ObjectKey, now: Written) {
        let mut written = self.written.lock();
        let known = written.entry(id::<K>(key)).or_insert_with(|| now.clone());
        if now.revision >= known.revision || (now.gone && now.uid == known.uid) {
            *known = now;
        }
    }

    pub(crate) async fn update<K: Object<DynamicType: Default>>(&self, object: &K) -> Result<K, Error> {
        let stored = self.client.update(object).await?;
        // Removing the last finalizer deletes the object.
        if stored.meta().deletion_timestamp.is_none() || !stored.finalizers().is_empty() {
            self.wrote(&stored).await?;
        }
        Ok(stored)
    }

    pub(crate) async fn update_status<K: Object<DynamicType: Default>>(
        &self,
        object: &K,
    ) -> Result<K, Error> {
        let stored = self.client.status::<K>().update(object).await?;
        self.wrote(&stored).await?;
        Ok(stored)
    }

    pub(crate) async fn patch<K: Object<DynamicType: Default>>(
        &self,
        object: &K,
        patch: Patch,
    ) -> Result<K, Error> {
        let stored = self.client.patch(object, patch).await?;
        self.wrote(&stored).await?;
        Ok(stored)
    }

    pub(crate) async fn create_or_update<K: Object<DynamicType: Default>, M: Mutation>(
        &self,
        skeleton: K,
        mutate: impl FnOnce(&mut K) -> M,
    ) -> Result<K, Error> {
        let (stored, _) = util::create_or_update(&self.client, skeleton, mutate).await?;
        self.wrote(&stored).await?;
        Ok(stored)
    }

    pub(crate) async fn delete<K: Object<DynamicType: Default>>(
        &self,
        object: &K,
        options: DeleteOptions,
    ) -> Result<(), Error> {
        let key = ObjectKey::of(object);
        match self.client.delete_with(object, options).await? {
            Deleted::Gone { .. } => {
                let now = Written { uid: object.uid().unwrap(), revision: revision(object), gone: true };
                self.note::<K>(&key, now);
                self.get::<K>(&key).await?;
            }
            Deleted::Deleting(stored) => self.wrote(&*stored).await?,
        }
        Ok(())
    }
}
