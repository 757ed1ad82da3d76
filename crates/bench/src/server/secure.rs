//! What security costs: the same requests with and without it, in turns.

use std::{path::PathBuf, time::Duration};

use http::Method;
use serde_json::json;
use tempfile::TempDir;

use super::{
    Measured, Notes, OBJECTS, Run,
    child::{Child, Kept, READER},
    client::{Client, Content, Target},
    objects::name,
    work,
};
use crate::{
    Failure,
    report::{Unit, quantile},
};

/// The namespace that the reader may read, in each of the two servers.
const NAMESPACE: &str = "default";
const ROLES: u64 = 1000;
const BINDINGS: u64 = 10_000;
/// Everything is recorded, at all stages.
const POLICY: &str = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n";

/// Two servers that differ in one thing.
struct Pair {
    without: Child,
    with: Child,
}

/// The rates of one of them, and its processor time per request.
#[derive(Default)]
struct Rates {
    get: Vec<f64>,
    create: Vec<f64>,
    get_cpu: Vec<f64>,
}

impl Run<'_> {
    /// Requests by a user with roles, with an audit log at level Metadata and without one.
    pub(super) async fn audit(&self, notes: &mut Notes<'_>) -> Result<(), Failure> {
        let folder = TempDir::with_prefix_in("k1s-audit-", &self.folder)?;
        let policy = folder.path().join("policy.yaml");
        std::fs::write(&policy, POLICY)?;
        let flag = |name: &str, path: PathBuf| format!("--audit-{name}={}", path.display());
        let flags = [flag("policy-file", policy), flag("log-path", folder.path().join("audit.log"))];
        let pair = Pair {
            without: Child::start(self.env, &self.program, Kept::Memory, false, &self.folder).await?,
            with: Child::start_with(self.env, &self.program, Kept::Memory, false, &self.folder, &flags)
                .await?,
        };
        let (mut without, mut with) = (Rates::default(), Rates::default());
        for child in [&pair.without, &pair.with] {
            self.fill(&child.target).await?;
        }
        for turn in 0..self.sizes.times.min(9) as u64 {
            self.measure(&pair.without, turn, &mut without).await?;
            self.measure(&pair.with, turn, &mut with).await?;
        }
        let per_second = |rates: &mut [f64]| quantile(rates, 0.5);
        for (what, without, with) in
            [("get", &mut without.get, &mut with.get), ("create", &mut without.create, &mut with.create)]
        {
            let before = per_second(without);
            notes.add(&format!("secure.{what}.c32-no-audit"), before, Unit::PerSecond, None);
            let expected = Some(0.9 * before);
            notes.add(&format!("secure.{what}.c32-audit"), per_second(with), Unit::PerSecond, expected);
        }
        for (what, rates) in [("no-audit", &mut without.get_cpu), ("audit", &mut with.get_cpu)] {
            let name = format!("secure.get.c32-{what}-cpu");
            notes.add(&name, per_second(rates) * 1e6, Unit::Microseconds, None);
        }
        Ok(())
    }

    /// Objects, and the roles of many users, of whom one is the reader.
    async fn fill(&self, target: &Target) -> Result<(), Failure> {
        let patience = Duration::from_secs(300);
        work::create(self.env, target, 32, NAMESPACE, OBJECTS, patience).await?;
        let group = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}");
        let path = format!("{group}/roles");
        let role = move |number: u64| {
            let resource = if number % 10 == 9 { "configmaps" } else { "secrets" };
            let role = json!({"metadata": {"name": format!("role-{number}")},
                "rules": [{"apiGroups": [""], "resources": [resource], "verbs": ["get", "create"]}]});
            (Method::POST, path.clone(), Content::json(role.to_string()))
        };
        work::spread(self.env, target, 32, ROLES, patience, role).await?;
        let path = format!("{group}/rolebindings");
        let binding = move |number: u64| {
            let binding = json!({"metadata": {"name": format!("binding-{number:06}")},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": format!("role-{}", number % ROLES)},
                "subjects": [{"kind": "User", "name": format!("user-{}", number / 10)}]});
            (Method::POST, path.clone(), Content::json(binding.to_string()))
        };
        work::spread(self.env, target, 32, BINDINGS, patience, binding).await?;
        // The first request of the reader needs the initial roles.
        let mut reader = Client::connect(self.env, &as_reader(target)).await?;
        let one = format!("{}/{}", work::config_maps(NAMESPACE), name("cm", 0));
        reader.exchange(Method::GET, &one, Content::none(), |_| {}).await.map(drop)
    }

    async fn measure(&self, child: &Child, turn: u64, rates: &mut Rates) -> Result<(), Failure> {
        let (reader, limit) = (as_reader(&child.target), self.sizes.limit);
        let server = Measured::child(child);
        let cpu = server.cpu()?;
        let got = work::by_name(self.env, &reader, Method::GET, NAMESPACE, OBJECTS, u64::MAX, limit).await?;
        rates.get_cpu.push((server.cpu()? - cpu) / got.count as f64);
        rates.get.push(got.per_second());
        let path = work::config_maps(NAMESPACE);
        let create = move |number: u64| {
            let object = json!({"metadata": {"name": format!("turn-{turn}-{number}")}, "data": {"k": "v"}});
            (Method::POST, path.clone(), Content::json(object.to_string()))
        };
        let created = work::spread(self.env, &reader, 32, OBJECTS, limit, create).await?;
        rates.create.push(created.per_second());
        Ok(())
    }
}

fn as_reader(target: &Target) -> Target {
    Target { token: READER.to_owned(), ..target.clone() }
}
