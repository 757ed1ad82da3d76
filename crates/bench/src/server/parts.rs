//! The parts of the measurements that every server goes through.

use std::time::Duration;

use http::Method;

use super::{
    CRDS, GROUP, Measured, Notes, OBJECTS, PAGE, Run, SETTLE, WATCHERS,
    child::Child,
    client::{Client, Content, Target},
    inside, objects,
    process::Process,
    work::{self, Watchers},
};
use crate::{
    Failure,
    report::{Unit, quantile},
};

impl Run<'_> {
    /// A namespace of this name, unique to the run: a peer may have been measured before.
    pub(super) async fn namespace(&self, client: &mut Client, name: &str) -> Result<String, Failure> {
        let namespace = format!("bench-{name}-{}", self.env.name_suffix());
        work::make_namespace(client, &namespace).await?;
        Ok(namespace)
    }

    pub(super) async fn objects(&self, server: Measured<'_>, notes: &mut Notes<'_>) -> Result<(), Failure> {
        let (env, limit, target) = (self.env, self.sizes.limit, server.target);
        let keeper = server.process.filter(|_| server.keeps_objects);
        let mut client = Client::connect(env, target).await?;
        let [one, fill, more] = [
            self.namespace(&mut client, "one").await?,
            self.namespace(&mut client, "fill").await?,
            self.namespace(&mut client, "more").await?,
        ];
        self.env.sleep(SETTLE).await;
        let empty = keeper.map(Process::resident_bytes).transpose()?.unwrap_or_default();
        // All of them are created whatever time it takes: they are what is listed.
        let patience = Duration::from_secs(300);
        let cpu = server.cpu()?;
        let filled = work::create(env, target, 32, &fill, OBJECTS, patience).await?;
        notes.rate("create.c32", filled, notes.in_memory(10_000.0));
        notes.cpu("create.c32", server, cpu, filled.count)?;
        self.env.sleep(SETTLE).await;
        let stored = keeper.map(Process::resident_bytes).transpose()?.unwrap_or_default();

        let path = work::config_maps(&fill);
        let (seconds, bytes) =
            work::list(env, &mut client, self.sizes.times, &path, OBJECTS as usize).await?;
        notes.add("list.10k", seconds * 1e3, Unit::Milliseconds, notes.in_memory(30.0));
        notes.add("list.10k-speed", bytes as f64 / 1e6 / seconds, Unit::MegabytesPerSecond, None);
        self.env.sleep(SETTLE).await;
        if let Some(keeper) = keeper {
            let listed = keeper.resident_bytes()?;
            let times = |after: u64| after.saturating_sub(empty) as f64 / bytes as f64;
            notes.add("rss.objects", times(stored), Unit::TimesTheJson, Some(2.0));
            notes.add("rss.objects-listed", times(listed), Unit::TimesTheJson, Some(2.0));
        }
        let paged = work::pages(env, &mut client, self.sizes.times, &path, PAGE, OBJECTS as usize).await?;
        notes.add("list.10k-pages", paged * 1e3, Unit::Milliseconds, None);
        let selected = format!("{path}?{}", work::SELECTOR);
        let (seconds, _) =
            work::list(env, &mut client, self.sizes.times, &selected, OBJECTS as usize / 100).await?;
        notes.add("list.10k-selector", seconds * 1e3, Unit::Milliseconds, None);

        let cpu = server.cpu()?;
        let got = work::by_name(env, target, Method::GET, &fill, OBJECTS, u64::MAX, limit).await?;
        notes.rate("get.c32", got, None);
        notes.cpu("get.c32", server, cpu, got.count)?;

        notes.rate("create.c1", work::create(env, target, 1, &one, u64::MAX, limit).await?, None);
        // From here on the cache is there and follows, as it does wherever a controller runs.
        let cpu = server.cpu()?;
        let created = work::create(env, target, 32, &more, u64::MAX, limit).await?;
        notes.rate("create.c32-cached", created, notes.in_memory(10_000.0));
        notes.cpu("create.c32-cached", server, cpu, created.count)?;
        let deleted = work::by_name(env, target, Method::DELETE, &fill, OBJECTS, OBJECTS, patience).await?;
        notes.rate("delete.c32", deleted, None);
        Ok(())
    }

    /// Merge patches of the status, of the same objects over and over.
    pub(super) async fn status(&self, server: Measured<'_>, notes: &mut Notes<'_>) -> Result<(), Failure> {
        const CLIENTS: u64 = 32;
        let target = server.target;
        let mut client = Client::connect(self.env, target).await?;
        let namespace = self.namespace(&mut client, "status").await?;
        let group = format!("{}.{GROUP}", self.env.name_suffix());
        work::define(self.env, &mut client, &group, "Widget").await?;
        let widgets = format!("/apis/{group}/v1/namespaces/{namespace}/widgets");
        let deployments = format!("/apis/apps/v1/namespaces/{namespace}/deployments");
        for number in 0..CLIENTS {
            let name = objects::name("o", number);
            let widget = objects::widget(&group, "Widget", &name);
            client.call(Method::POST, &widgets, Content::json(widget)).await?;
            client.call(Method::POST, &deployments, Content::json(objects::deployment(&name))).await?;
        }
        for (what, path) in [("status.custom.c32", widgets), ("status.deployment.c32", deployments)] {
            let cpu = server.cpu()?;
            let done =
                work::spread(self.env, target, CLIENTS as usize, u64::MAX, self.sizes.limit, move |number| {
                    let path = format!("{path}/{}/status", objects::name("o", number % CLIENTS));
                    (Method::PATCH, path, work::status(number / CLIENTS))
                })
                .await?;
            notes.rate(what, done, None);
            notes.cpu(what, server, cpu, done.count)?;
        }
        let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.{group}");
        client.call(Method::DELETE, &path, Content::none()).await?;
        Ok(())
    }

    /// Server-side apply of Deployments: new ones, the same ones again, and with one field changed.
    pub(super) async fn apply(&self, server: Measured<'_>, notes: &mut Notes<'_>) -> Result<(), Failure> {
        const CLIENTS: usize = 32;
        const DEPLOYMENTS: u64 = 256;
        let (env, limit, target) = (self.env, self.sizes.limit, server.target);
        let mut client = Client::connect(env, target).await?;
        let namespace = self.namespace(&mut client, "apply").await?;
        let applied = move |name: &str, replicas: u64| work::apply(&namespace, name, replicas);
        for number in 0..DEPLOYMENTS {
            let (method, url, content) = applied(&objects::name("d", number), 3);
            client.call(method, &url, content).await?;
        }
        // The name of what is applied, and its replicas, by the number of the request.
        type Choice = fn(u64) -> (String, u64);
        let create: Choice = |number| (objects::name("new", number), 3);
        let no_op: Choice = |number| (objects::name("d", number % DEPLOYMENTS), 3);
        let one_field: Choice =
            |number| (objects::name("d", number % DEPLOYMENTS), 4 + number / DEPLOYMENTS % 100);
        for (what, choice) in
            [("apply.create.c32", create), ("apply.no-op.c32", no_op), ("apply.one-field.c32", one_field)]
        {
            let applied = applied.clone();
            let cpu = server.cpu()?;
            let done = work::spread(env, target, CLIENTS, u64::MAX, limit, move |number| {
                let (name, replicas) = choice(number);
                applied(&name, replicas)
            })
            .await?;
            notes.rate(what, done, None);
            notes.cpu(what, server, cpu, done.count)?;
        }
        Ok(())
    }

    /// The memory of Deployments that two managers have applied, beside their JSON with the managers.
    pub(super) async fn applied_memory(
        &self,
        process: &Process,
        target: &Target,
        notes: &mut Notes<'_>,
    ) -> Result<(), Failure> {
        let mut client = Client::connect(self.env, target).await?;
        let namespace = self.namespace(&mut client, "applied").await?;
        self.env.sleep(SETTLE).await;
        let empty = process.resident_bytes()?;
        let patience = Duration::from_secs(300);
        let (first, second) = (namespace.clone(), namespace.clone());
        let first = move |number| work::apply(&first, &objects::name("d", number), 3);
        work::spread(self.env, target, 32, OBJECTS, patience, first).await?;
        let second = move |number| work::apply_annotation(&second, &objects::name("d", number));
        work::spread(self.env, target, 32, OBJECTS, patience, second).await?;
        self.env.sleep(SETTLE).await;
        let grown = process.resident_bytes()?.saturating_sub(empty);
        let path = format!("/apis/apps/v1/namespaces/{namespace}/deployments");
        let list = client.call(Method::GET, &path, Content::none()).await?;
        notes.add("rss.applied", grown as f64 / list.len() as f64, Unit::TimesTheJson, notes.in_memory(2.0));
        Ok(())
    }

    pub(super) async fn watch(&self, server: Measured<'_>, notes: &mut Notes<'_>) -> Result<(), Failure> {
        let target = server.target;
        let mut client = Client::connect(self.env, target).await?;
        let namespace = self.namespace(&mut client, "watch").await?;
        let path = work::config_maps(&namespace);
        let body = objects::ConfigMaps::new().get("watched", 1);
        client.call(Method::POST, &path, Content::json(body)).await?;
        // A peer may put objects of its own into a namespace: only ours is watched.
        let selected = format!("{path}?labelSelector=app%3Dbench");
        let before = server.process.map(Process::resident_bytes).transpose()?;
        let watchers = Watchers::open(self.env, target, &selected, WATCHERS).await?;
        if let (Some(process), Some(before)) = (server.process, before) {
            self.env.sleep(SETTLE).await;
            let grown = process.resident_bytes()?.saturating_sub(before) as f64 / 1e3 / WATCHERS as f64;
            notes.add("rss.watcher", grown, Unit::Kilobytes, None);
        }
        let object = format!("{path}/watched");
        let cpu = server.cpu()?;
        let out = work::fan_out(self.env, target, &watchers, &object, self.sizes.writes).await?;
        notes.add("watch.w1000", out.per_second, Unit::PerSecond, None);
        // One write after the other, and then many: twice as many writes.
        notes.cpu("watch.w1000", server, cpu, 2 * self.sizes.writes * WATCHERS)?;
        notes.add("watch.w1000-p50", out.p50 * 1e3, Unit::Milliseconds, None);
        notes.add("watch.w1000-p99", out.p99 * 1e3, Unit::Milliseconds, None);
        Ok(())
    }

    pub(super) async fn definitions(&self, child: &Child, notes: &mut Notes<'_>) -> Result<(), Failure> {
        let mut client = Client::connect(self.env, &child.target).await?;
        // The first is also the first use of all that definitions need.
        work::define(self.env, &mut client, GROUP, "First").await?;
        self.env.sleep(SETTLE).await;
        let before = child.process.resident_bytes()?;
        let began = self.env.now();
        for number in 0..CRDS {
            work::define(self.env, &mut client, GROUP, &format!("Widget{number}")).await?;
        }
        let seconds = (self.env.now() - began).as_secs_f64();
        notes.add("crd.served", seconds * 1e3 / CRDS as f64, Unit::Milliseconds, None);
        self.env.sleep(SETTLE).await;
        let per_crd = |after: u64| after.saturating_sub(before) as f64 / 1e3 / CRDS as f64;
        notes.add("rss.crd", per_crd(child.process.resident_bytes()?), Unit::Kilobytes, Some(100.0));
        for number in 0..CRDS {
            let path = format!("/apis/{GROUP}/v1/{}", objects::plural(&format!("Widget{number}")));
            client.call(Method::GET, &path, Content::none()).await?;
        }
        self.env.sleep(SETTLE).await;
        notes.add("rss.crd-listed", per_crd(child.process.resident_bytes()?), Unit::Kilobytes, Some(100.0));
        Ok(())
    }

    pub(super) async fn tenants(&self, child: &Child, notes: &mut Notes<'_>) -> Result<(), Failure> {
        let mut client = Client::connect(self.env, &child.target).await?;
        let tenant = |name: &str| Content::json(format!("{{\"metadata\":{{\"name\":\"{name}\"}}}}"));
        client.call(Method::POST, "/k1s/v1/tenants", tenant("first")).await?;
        self.env.sleep(SETTLE).await;
        let before = child.process.resident_bytes()?;
        let began = self.env.now();
        for number in 0..self.sizes.tenants {
            let name = objects::name("tenant", number);
            client.call(Method::POST, "/k1s/v1/tenants", tenant(&name)).await?;
        }
        let seconds = (self.env.now() - began).as_secs_f64();
        notes.add("tenant.made", seconds * 1e3 / self.sizes.tenants as f64, Unit::Milliseconds, None);
        self.env.sleep(SETTLE).await;
        let grown =
            child.process.resident_bytes()?.saturating_sub(before) as f64 / 1e3 / self.sizes.tenants as f64;
        notes.add("rss.tenant", grown, Unit::Kilobytes, Some(100.0));
        Ok(())
    }

    /// HTTP/2 over TLS, all clients on one connection: as client-go does it.
    pub(super) async fn https(&self, target: &Target, notes: &mut Notes<'_>) -> Result<(), Failure> {
        let (env, limit) = (self.env, self.sizes.limit);
        let mut client = Client::connect(env, target).await?;
        let namespace = self.namespace(&mut client, "https").await?;
        let created = work::create(env, target, 32, &namespace, OBJECTS, Duration::from_secs(300)).await?;
        notes.rate("https.create.c32", created, None);
        let path = work::config_maps(&namespace);
        let (seconds, bytes) =
            work::list(env, &mut client, self.sizes.times, &path, OBJECTS as usize).await?;
        notes.add("https.list.10k", seconds * 1e3, Unit::Milliseconds, None);
        notes.add("https.list.10k-speed", bytes as f64 / 1e6 / seconds, Unit::MegabytesPerSecond, None);
        let got = work::by_name(env, target, Method::GET, &namespace, OBJECTS, u64::MAX, limit).await?;
        notes.rate("https.get.c32", got, None);
        Ok(())
    }

    /// Reads by a user with the rights of roles, beside those by an administrator, who needs none.
    pub(super) async fn roles(&self, notes: &mut Notes<'_>) -> Result<(), Failure> {
        let mut admin = inside::Inside::start(self.env).await?;
        admin.create(OBJECTS).await?;
        admin.grant(1000, 10_000).await?;
        let mut user = admin.as_user(k1s_server::User::new("user-7", &["devs", "qa"]));
        // In turns, and once before: the second one would find warmer caches.
        user.get(OBJECTS, OBJECTS).await?;
        let (mut without, mut with) = (Vec::new(), Vec::new());
        for _ in 0..self.sizes.times.min(9) {
            without.push(admin.get(OBJECTS, OBJECTS).await?.per_second());
            with.push(user.get(OBJECTS, OBJECTS).await?.per_second());
        }
        let without = quantile(&mut without, 0.5);
        notes.add("inside.get.c1-no-rbac", without, Unit::PerSecond, None);
        notes.add("inside.get.c1-rbac-10k", quantile(&mut with, 0.5), Unit::PerSecond, Some(0.95 * without));
        Ok(())
    }

    pub(super) async fn inside(&self, notes: &mut Notes<'_>) -> Result<(), Failure> {
        let mut inside = inside::Inside::start(self.env).await?;
        notes.rate("inside.create.c1", inside.create(OBJECTS).await?, None);
        notes.rate("inside.get.c1", inside.get(OBJECTS, 5 * OBJECTS).await?, None);
        notes.add("inside.list.10k", inside.list(self.sizes.times).await? * 1e3, Unit::Milliseconds, None);
        Ok(())
    }
}
