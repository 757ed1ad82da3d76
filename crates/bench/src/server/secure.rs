//! What security costs: the same requests with and without it, in turns. A peer has it or not; it does the same work.

use std::{path::PathBuf, time::Duration};

use http::Method;
use serde_json::json;
use tempfile::TempDir;

use super::{
    Measured, Notes, OBJECTS, Run,
    child::{Child, Kept, READER},
    client::{Client, Content, Target},
    floor::Floor,
    objects::name,
    work,
};
use crate::{
    Failure,
    report::{Unit, quantile},
};

/// Expected requests per second with roles, of those without.
const EXPECTED_OF_ROLES: f64 = 0.95;

/// Expected requests per second with an audit log, of those without.
const EXPECTED_OF_AUDIT: f64 = 0.9;

const ROLES: u64 = 1000;
const BINDINGS: u64 = 10_000;
/// Whoever needs no roles.
const WITHOUT: &str = "no-rbac";
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

/// What a user does, whose rights are those of roles or who needs none.
struct Asker<'a> {
    what: &'static str,
    target: &'a Target,
    get: Vec<f64>,
    create: Vec<f64>,
    list: Vec<f64>,
    get_cpu: Vec<f64>,
    create_cpu: Vec<f64>,
}

/// The rates of a server, and its processor time per request.
#[derive(Default)]
struct Rates {
    get: Vec<f64>,
    create: Vec<f64>,
    get_cpu: Vec<f64>,
    create_cpu: Vec<f64>,
}

impl<'a> Subject<'a> {
    fn child(child: &'a Child) -> Subject<'a> {
        let reader = Target { token: READER.to_owned(), ..child.target.clone() };
        let (namespace, rates) = ("default".to_owned(), Rates::default());
        Subject { server: Measured::child(child), reader, namespace, rates }
    }
}

impl Run<'_> {
    /// What roles cost the floor.
    pub(super) async fn roles_of_floor(&self, floor: &Floor, notes: &mut Notes<'_>) -> Result<(), Failure> {
        let reader = Target { token: READER.to_owned(), ..floor.target.clone() };
        self.roles_of(Measured::floor(floor), reader, None, notes).await
    }

    /// Requests by a user with the rights of roles, over HTTP, beside those by an administrator, who needs none.
    pub(super) async fn roles_over_http(&self, kept: Kept, notes: &mut Notes<'_>) -> Result<(), Failure> {
        let child = self.child(kept, self.secure_tls).await?;
        let reader = Target { token: READER.to_owned(), ..child.target.clone() };
        self.roles_of(Measured::child(&child), reader, Some(EXPECTED_OF_ROLES), notes).await
    }

    /// The same of any server. `expected`: the share that roles should leave.
    pub(super) async fn roles_of(
        &self,
        server: Measured<'_>,
        reader: Target,
        expected: Option<f64>,
        notes: &mut Notes<'_>,
    ) -> Result<(), Failure> {
        let mut client = Client::connect(self.env, server.target).await?;
        let namespace = self.namespace(&mut client, "roles").await?;
        let subject = Subject { server, reader, namespace, rates: Rates::default() };
        self.fill(&subject).await?;
        let asker = |what, target| Asker {
            what,
            target,
            get: Vec::new(),
            create: Vec::new(),
            list: Vec::new(),
            get_cpu: Vec::new(),
            create_cpu: Vec::new(),
        };
        let mut askers = [asker(WITHOUT, server.target), asker("rbac-10k", &subject.reader)];
        for turn in 0..self.turns() {
            for asker in &mut askers {
                self.ask(&subject, asker, turn).await?;
            }
            // Whoever comes later finds more objects: that is each of them in turn.
            askers.reverse();
        }
        if askers[0].what != WITHOUT {
            askers.reverse();
        }
        let [without, with] = &mut askers;
        let rates: [(&str, &mut [f64], &mut [f64]); 3] = [
            ("get", &mut without.get, &mut with.get),
            ("create", &mut without.create, &mut with.create),
            ("list.10", &mut without.list, &mut with.list),
        ];
        for (name, before, after) in rates {
            let rate = quantile(before, 0.5);
            notes.add(&format!("secure.{name}.c32-{}", without.what), rate, Unit::PerSecond, None);
            let expected = expected.map(|share| share * rate);
            let rate = quantile(after, 0.5);
            notes.add(&format!("secure.{name}.c32-{}", with.what), rate, Unit::PerSecond, expected);
        }
        if server.process.is_some() {
            let [without, with] = &mut askers;
            for (what, before, after) in [
                ("secure.get.c32", &mut without.get_cpu, &mut with.get_cpu),
                ("secure.create.c32", &mut without.create_cpu, &mut with.create_cpu),
            ] {
                notes.cpu_of_both(what, (without.what, before), (with.what, after));
            }
        }
        // A peer's other measurements are without them.
        for resource in ["rolebindings", "roles"] {
            let path = format!("{}/{resource}", rbac(&subject.namespace));
            client.call(Method::DELETE, &path, Content::none()).await?;
        }
        Ok(())
    }

    /// Reads, creates and lists as one of the users.
    async fn ask(&self, subject: &Subject<'_>, asker: &mut Asker<'_>, turn: u64) -> Result<(), Failure> {
        let (server, namespace) = (subject.server, &subject.namespace);
        let (env, limit, target) = (self.env, self.sizes.limit / 2, asker.target);
        let cpu = server.cpu()?;
        let got = work::by_name(env, target, Method::GET, namespace, OBJECTS, u64::MAX, limit).await?;
        asker.get_cpu.push((server.cpu()? - cpu) / got.count as f64);
        asker.get.push(got.per_second());
        let cpu = server.cpu()?;
        let created = work::spread(env, target, 32, OBJECTS, limit, new_objects(namespace, asker.what, turn));
        let created = created.await?;
        asker.create_cpu.push((server.cpu()? - cpu) / created.count as f64);
        asker.create.push(created.per_second());
        let path = format!("{}?limit=10", work::config_maps(namespace));
        let list = move |_| (Method::GET, path.clone(), Content::none());
        asker.list.push(work::spread(env, target, 32, u64::MAX, limit, list).await?.per_second());
        Ok(())
    }

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
        let subjects = (Subject::child(&without), Subject::child(&with));
        self.audit_of_both(subjects, Some(EXPECTED_OF_AUDIT), notes).await
    }

    /// What an audit log costs the floor.
    pub(super) async fn audit_of_floor(
        &self,
        floors: [&Floor; 2],
        notes: &mut Notes<'_>,
    ) -> Result<(), Failure> {
        let [without, with] = floors.map(|floor| {
            let (namespace, rates) = ("default".to_owned(), Rates::default());
            Subject { server: Measured::floor(floor), reader: floor.target.clone(), namespace, rates }
        });
        self.audit_of_both((without, with), None, notes).await
    }

    /// The same requests of a server without an audit log, and of one with it. `expected`: the share that it should leave.
    async fn audit_of_both(
        &self,
        (mut without, mut with): (Subject<'_>, Subject<'_>),
        expected: Option<f64>,
        notes: &mut Notes<'_>,
    ) -> Result<(), Failure> {
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
            let expected = expected.map(|share| share * before);
            notes.add(&format!("secure.{what}.c32-audit"), per_second(with), Unit::PerSecond, expected);
        }
        for (what, before, after) in [
            ("secure.get.c32", &mut without.get_cpu, &mut with.get_cpu),
            ("secure.create.c32", &mut without.create_cpu, &mut with.create_cpu),
        ] {
            notes.cpu_of_both(what, ("no-audit", before), ("audit", after));
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

    pub(super) fn turns(&self) -> u64 {
        self.sizes.times.min(9) as u64
    }

    /// Objects, and the roles of many users, of whom one is the reader.
    async fn fill(&self, Subject { server, reader, namespace, .. }: &Subject<'_>) -> Result<(), Failure> {
        if !server.keeps_objects {
            return Ok(());
        }
        let (target, patience) = (server.target, Duration::from_secs(300));
        work::create(self.env, target, 32, namespace, OBJECTS, patience).await?;
        let group = rbac(namespace);
        let path = format!("{group}/roles");
        let role = move |number: u64| {
            let resource = if number % 10 == 9 { "configmaps" } else { "secrets" };
            let role = json!({"metadata": {"name": format!("role-{number}")},
                "rules": [{"apiGroups": [""], "resources": [resource], "verbs": ["get", "create", "list"]}]});
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
        let (create, cpu) = (new_objects(namespace, "turn", turn), server.cpu()?);
        let created = work::spread(self.env, reader, 32, OBJECTS, limit, create).await?;
        rates.create_cpu.push((server.cpu()? - cpu) / created.count as f64);
        rates.create.push(created.per_second());
        Ok(())
    }
}

/// Where the roles of a namespace are.
fn rbac(namespace: &str) -> String {
    format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}")
}

/// Small `ConfigMaps` with names that no other turn takes.
fn new_objects(namespace: &str, what: &str, turn: u64) -> impl Fn(u64) -> work::Job + Send + Sync + 'static {
    let (path, what) = (work::config_maps(namespace), what.to_owned());
    move |number| {
        let object =
            json!({"metadata": {"name": format!("{what}-{turn}-{number}")}, "data": {"k": "v"}}).to_string();
        (Method::POST, path.clone(), Content::json(object))
    }
}
