//! What security costs: the same requests with and without it, in turns. A peer has it or not; it does the same work.

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

const ROLES: u64 = 1000;
const BINDINGS: u64 = 10_000;
/// Everything is recorded, at all stages.
const POLICY: &str = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n";

/// A server, and who asks it about what.
struct Subject<'a> {
    server: Measured<'a>,
    /// The user whose rights are those of roles.
    reader: Target,
    /// The namespace that the reader may read.
    namespace: String,
    rates: Rates,
}

/// The rates of a server, and its processor time per request.
#[derive(Default)]
struct Rates {
    get: Vec<f64>,
    create: Vec<f64>,
    get_cpu: Vec<f64>,
}

impl<'a> Subject<'a> {
    fn child(child: &'a Child) -> Subject<'a> {
        let reader = Target { token: READER.to_owned(), ..child.target.clone() };
        let (namespace, rates) = ("default".to_owned(), Rates::default());
        Subject { server: Measured::child(child), reader, namespace, rates }
    }
}

impl Run<'_> {
    /// Requests by a user with roles, with an audit log at level Metadata and without one.
    pub(super) async fn audit(&self, notes: &mut Notes<'_>) -> Result<(), Failure> {
        let folder = TempDir::with_prefix_in("k1s-audit-", &self.folder)?;
        let policy = folder.path().join("policy.yaml");
        std::fs::write(&policy, POLICY)?;
        let flag = |name: &str, path: PathBuf| format!("--audit-{name}={}", path.display());
        let flags = [flag("policy-file", policy), flag("log-path", folder.path().join("audit.log"))];
        let (env, tls) = (self.env, self.secure_tls);
        let without = Child::start(env, &self.program, Kept::Memory, tls, &self.folder).await?;
        let with = Child::start_with(env, &self.program, Kept::Memory, tls, &self.folder, &flags).await?;
        let (mut without, mut with) = (Subject::child(&without), Subject::child(&with));
        for subject in [&without, &with] {
            self.fill(subject).await?;
        }
        for turn in 0..self.turns() {
            self.measure(&mut without, turn).await?;
            self.measure(&mut with, turn).await?;
        }
        let per_second = |rates: &mut [f64]| quantile(rates, 0.5);
        let (without, with) = (&mut without.rates, &mut with.rates);
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

    /// The same requests of a server that has an audit log, or has none.
    pub(super) async fn audit_of(
        &self,
        target: &Target,
        reader: Target,
        has_log: bool,
        notes: &mut Notes<'_>,
    ) -> Result<(), Failure> {
        let mut client = Client::connect(self.env, target).await?;
        let namespace = self.namespace(&mut client, "audit").await?;
        let server = Measured::peer(target);
        let mut subject = Subject { server, reader, namespace, rates: Rates::default() };
        self.fill(&subject).await?;
        for turn in 0..self.turns() {
            self.measure(&mut subject, turn).await?;
        }
        let what = if has_log { "audit" } else { "no-audit" };
        let Rates { mut get, mut create, .. } = subject.rates;
        for (name, rates) in [("get", &mut get), ("create", &mut create)] {
            let rate = quantile(rates, 0.5);
            notes.add(&format!("secure.{name}.c32-{what}"), rate, Unit::PerSecond, None);
        }
        Ok(())
    }

    fn turns(&self) -> u64 {
        self.sizes.times.min(9) as u64
    }

    /// Objects, and the roles of many users, of whom one is the reader.
    async fn fill(&self, Subject { server, reader, namespace, .. }: &Subject<'_>) -> Result<(), Failure> {
        let (target, patience) = (server.target, Duration::from_secs(300));
        work::create(self.env, target, 32, namespace, OBJECTS, patience).await?;
        let group = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}");
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
                "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": format!("user-{}", number / 10)}]});
            (Method::POST, path.clone(), Content::json(binding.to_string()))
        };
        work::spread(self.env, target, 32, BINDINGS, patience, binding).await?;
        // The first request of the reader needs the initial roles.
        let mut reader = Client::connect(self.env, reader).await?;
        let one = format!("{}/{}", work::config_maps(namespace), name("cm", 0));
        reader.exchange(Method::GET, &one, Content::none(), |_| {}).await.map(drop)
    }

    async fn measure(&self, subject: &mut Subject<'_>, turn: u64) -> Result<(), Failure> {
        let Subject { server, reader, namespace, rates } = subject;
        let (limit, cpu) = (self.sizes.limit, server.cpu()?);
        let got = work::by_name(self.env, reader, Method::GET, namespace, OBJECTS, u64::MAX, limit).await?;
        rates.get_cpu.push((server.cpu()? - cpu) / got.count as f64);
        rates.get.push(got.per_second());
        let path = work::config_maps(namespace);
        let create = move |number: u64| {
            let object = json!({"metadata": {"name": format!("turn-{turn}-{number}")}, "data": {"k": "v"}});
            (Method::POST, path.clone(), Content::json(object.to_string()))
        };
        let created = work::spread(self.env, reader, 32, OBJECTS, limit, create).await?;
        rates.create.push(created.per_second());
        Ok(())
    }
}
