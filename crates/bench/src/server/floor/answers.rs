//! The answers of k1s that the floor answers with: a file each.

use std::{collections::BTreeMap, path::Path, time::Duration};

use bytes::Bytes;
use http::Method;
use k1s_env::Env;

use crate::{
    Failure,
    server::{
        client::{Client, Content, Target},
        objects::{self, ConfigMaps, name},
        work,
    },
};

/// Answers by what was asked for.
#[derive(Default)]
pub(crate) struct Answers(BTreeMap<String, Bytes>);

pub(super) const GET: &str = "get";
pub(super) const CREATED: &str = "created";
pub(super) const PATCHED: &str = "patched";
pub(super) const DELETED: &str = "deleted";
pub(super) const LIST: &str = "list";
pub(super) const SELECTED: &str = "selected";
/// The first event of a watch.
pub(super) const ADDED: &str = "added";
/// The event of a patch.
pub(super) const MODIFIED: &str = "modified";

/// An object that was created by an apply, and one of which an apply changed a field.
pub(super) const APPLIED: &str = "applied";
pub(super) const APPLIED_FIELD: &str = "applied-field";

/// Objects whose status was patched: a custom resource, and a Deployment.
pub(super) const STATUS_CUSTOM: &str = "status-custom";
pub(super) const STATUS_DEPLOYMENT: &str = "status-deployment";

/// The page that a continue token stands for; the first has none.
pub(super) fn page(token: &str) -> String {
    format!("page.{token}")
}

/// Maximum time to fill the server whose answers are recorded.
const PATIENCE: Duration = Duration::from_secs(300);

impl Answers {
    /// Asks a server for everything that the measurements ask for.
    pub(crate) async fn record(
        env: &Env,
        target: &Target,
        objects: u64,
        page_size: usize,
    ) -> Result<Answers, Failure> {
        let mut answers = Answers::default();
        let mut client = Client::connect(env, target).await?;
        let namespace = "recorded";
        work::make_namespace(&mut client, namespace).await?;
        work::create(env, target, 32, namespace, objects, PATIENCE).await?;
        let path = work::config_maps(namespace);
        answers.keep(LIST, &mut client, Method::GET, &path, Content::none()).await?;
        let selected = format!("{path}?{}", work::SELECTOR);
        answers.keep(SELECTED, &mut client, Method::GET, &selected, Content::none()).await?;
        let mut token = String::new();
        loop {
            let this = format!("{path}?limit={page_size}&continue={token}");
            let answer =
                answers.keep(&page(&token), &mut client, Method::GET, &this, Content::none()).await?;
            match work::next_token(&answer) {
                Some(next) => token = next,
                None => break,
            }
        }
        let object = format!("{path}/{}", name("cm", 7));
        answers.keep(GET, &mut client, Method::GET, &object, Content::none()).await?;

        let namespace = "watched";
        work::make_namespace(&mut client, namespace).await?;
        let path = work::config_maps(namespace);
        let body = Content::json(ConfigMaps::new().get("watched", 1));
        let created = answers.keep(CREATED, &mut client, Method::POST, &path, body).await?;
        // Watches that end by themselves: of the object as it is, and of what came after its creation.
        let watch = format!("{path}?labelSelector=app%3Dbench&watch=1&timeoutSeconds=1");
        answers.keep(ADDED, &mut client, Method::GET, &watch, Content::none()).await?;
        let object = format!("{path}/watched");
        answers.keep(PATCHED, &mut client, Method::PATCH, &object, work::patch(1)).await?;
        let created: serde_json::Value = serde_json::from_slice(&created)?;
        let revision = created["metadata"]["resourceVersion"].as_str().unwrap_or_default();
        let watch = format!("{watch}&resourceVersion={revision}");
        answers.keep(MODIFIED, &mut client, Method::GET, &watch, Content::none()).await?;
        for event in [ADDED, MODIFIED] {
            let lines = answers.find(event)?.iter().filter(|byte| **byte == b'\n').count();
            if lines != 1 {
                return Err(Failure(format!("{watch}: {lines} events instead of one")));
            }
        }
        answers.keep(DELETED, &mut client, Method::DELETE, &object, Content::none()).await?;
        for (answer, replicas) in [(APPLIED, 3), (APPLIED_FIELD, 4)] {
            let (method, path, content) = work::apply("watched", &name("d", 7), replicas);
            answers.keep(answer, &mut client, method, &path, content).await?;
        }
        let (group, object) = ("floor.bench.k1s.dev", name("o", 7));
        work::define(env, &mut client, group, "Widget").await?;
        let widgets = format!("/apis/{group}/v1/namespaces/watched/widgets");
        let deployments = "/apis/apps/v1/namespaces/watched/deployments".to_owned();
        for (answer, path, body) in [
            (STATUS_CUSTOM, widgets, objects::widget(group, "Widget", &object)),
            (STATUS_DEPLOYMENT, deployments, objects::deployment(&object)),
        ] {
            client.call(Method::POST, &path, Content::json(body)).await?;
            let path = format!("{path}/{object}/status");
            answers.keep(answer, &mut client, Method::PATCH, &path, work::status(0)).await?;
        }
        Ok(answers)
    }

    /// Sends a request, and keeps the answer under a name.
    async fn keep(
        &mut self,
        name: &str,
        client: &mut Client,
        method: Method,
        path: &str,
        content: Content,
    ) -> Result<Bytes, Failure> {
        let answer = Bytes::from(client.call(method, path, content).await?);
        self.0.insert(name.to_owned(), answer.clone());
        Ok(answer)
    }

    /// The answer of this name.
    pub(super) fn find(&self, name: &str) -> Result<Bytes, Failure> {
        self.0.get(name).cloned().ok_or_else(|| Failure(format!("there is no answer for {name:?}")))
    }

    /// The pages, by continue token.
    pub(super) fn pages(&self) -> BTreeMap<String, Bytes> {
        let token =
            |(name, body): (&String, &Bytes)| Some((name.strip_prefix("page.")?.to_owned(), body.clone()));
        self.0.iter().filter_map(token).collect()
    }

    /// Writes them to an empty folder.
    pub(crate) fn write(&self, folder: &Path) -> Result<(), Failure> {
        for (name, body) in &self.0 {
            std::fs::write(folder.join(name), body)?;
        }
        Ok(())
    }

    /// Reads what [`write`](Self::write) wrote.
    pub(super) fn read(folder: &Path) -> Result<Answers, Failure> {
        let mut answers = Answers::default();
        for file in std::fs::read_dir(folder)? {
            let file = file?;
            let body = std::fs::read(file.path())?;
            answers.0.insert(file.file_name().to_string_lossy().into_owned(), body.into());
        }
        Ok(answers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let answers = [("get", "{}"), ("page.", "first"), ("page.abc_-9", "second")];
        let answers = answers.map(|(name, body)| (name.to_owned(), Bytes::from_static(body.as_bytes())));
        let folder = tempfile::tempdir().unwrap();
        Answers(answers.clone().into()).write(folder.path()).unwrap();
        let read = Answers::read(folder.path()).unwrap();
        assert_eq!(read.0, answers.into());
        let pages: Vec<_> = read.pages().into_iter().collect();
        assert_eq!(pages, [(String::new(), "first".into()), ("abc_-9".to_owned(), "second".into())]);
        assert!(read.find("list").is_err());
    }
}
