//! What encryption at rest costs: the same work on two servers, in turns, of which one encrypts the objects.
//!
//! Both work with `ConfigMaps`, which the configuration names in the place of Secrets: the work is that of the other parts. GETs
//! read the store, so each decrypts an object; lists read the watch cache, which holds plain values. A peer does the same work,
//! with or without encryption.

use std::{fs, time::Duration};

use http::Method;
use tempfile::TempDir;

use super::{
    Measured, Notes, OBJECTS, Run,
    child::{Child, Kept},
    client::{Client, Target},
    floor::Floor,
    work,
};
use crate::{
    Failure,
    report::{Unit, quantile},
};

/// Expected requests per second, of those without encryption.
const EXPECTED: f64 = 0.9;

const CONFIGURATION: &str = "kind: EncryptionConfiguration
apiVersion: apiserver.config.k8s.io/v1
resources:
- resources: [configmaps]
  providers:
  - aesgcm: {keys: [{name: key1, secret: MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=}]}
";

/// What is done in turns.
const CREATE: usize = 0;
const GET: usize = 1;
const LIST: usize = 2;
const NAMES: [(&str, usize); 3] = [("create.c32", CREATE), ("get.c32", GET), ("list.10k", LIST)];

/// A server, and what was done in each round.
struct Subject<'a> {
    server: Measured<'a>,
    client: Client,
    fill: String,
    more: String,
    seen: [Vec<f64>; 3],
    /// The CPU time of each create and of each GET, in seconds.
    cpu: [Vec<f64>; 2],
}

impl Run<'_> {
    pub(super) async fn encryption(&self, kept: Kept, notes: &mut Notes<'_>) -> Result<(), Failure> {
        let plain = self.child(kept, self.secure_tls).await?;
        let folder = TempDir::with_prefix_in("k1s-encryption-", &self.folder)?;
        let file = folder.path().join("encryption.yaml");
        fs::write(&file, CONFIGURATION)?;
        let encrypted = [format!("--encryption-provider-config={}", file.display())];
        let (program, tls) = (&self.program, self.secure_tls);
        let sealed = Child::start_with(self.env, program, kept, tls, &self.folder, &encrypted).await?;
        self.encryption_of_both([Measured::child(&plain), Measured::child(&sealed)], Some(EXPECTED), notes)
            .await
    }

    /// What encryption costs the floor.
    pub(super) async fn encryption_of_floor(
        &self,
        floors: [&Floor; 2],
        notes: &mut Notes<'_>,
    ) -> Result<(), Failure> {
        self.encryption_of_both(floors.map(Measured::floor), None, notes).await
    }

    /// The same work on a server without encryption, and on one with it. `expected`: the share that it should leave.
    async fn encryption_of_both(
        &self,
        [plain, sealed]: [Measured<'_>; 2],
        expected: Option<f64>,
        notes: &mut Notes<'_>,
    ) -> Result<(), Failure> {
        let (mut plain, mut sealed) = (self.filled(plain).await?, self.filled(sealed).await?);
        for round in 0..self.rounds() {
            self.round(&mut plain, round).await?;
            self.round(&mut sealed, round).await?;
        }
        for (name, place) in NAMES {
            let without = quantile(&mut plain.seen[place], 0.5);
            let with = quantile(&mut sealed.seen[place], 0.5);
            notes.add(&format!("secure.{name}-plain"), without, Unit::PerSecond, None);
            let expected = expected.map(|share| share * without);
            notes.add(&format!("secure.{name}-encrypted"), with, Unit::PerSecond, expected);
        }
        for (place, what) in [CREATE, GET].into_iter().enumerate() {
            let (name, _) = NAMES[what];
            let (without, with) = (&mut plain.cpu[place][..], &mut sealed.cpu[place][..]);
            notes.cpu_of_both(&format!("secure.{name}"), ("plain", without), ("encrypted", with));
        }
        Ok(())
    }

    /// The same work of a server that encrypts, or does not.
    pub(super) async fn encryption_of(
        &self,
        target: &Target,
        encrypts: bool,
        notes: &mut Notes<'_>,
    ) -> Result<(), Failure> {
        let mut subject = self.filled(Measured::peer(target)).await?;
        for round in 0..self.rounds() {
            self.round(&mut subject, round).await?;
        }
        let what = if encrypts { "encrypted" } else { "plain" };
        for (name, place) in NAMES {
            let rate = quantile(&mut subject.seen[place], 0.5);
            notes.add(&format!("secure.{name}-{what}"), rate, Unit::PerSecond, None);
        }
        Ok(())
    }

    fn rounds(&self) -> usize {
        self.sizes.times.min(7)
    }

    async fn filled<'a>(&self, server: Measured<'a>) -> Result<Subject<'a>, Failure> {
        let mut client = Client::connect(self.env, server.target).await?;
        let fill = self.namespace(&mut client, "fill").await?;
        let more = self.namespace(&mut client, "more").await?;
        let patience = Duration::from_secs(300);
        if server.keeps_objects {
            work::create(self.env, server.target, 32, &fill, OBJECTS, patience).await?;
        }
        Ok(Subject { server, client, fill, more, seen: Default::default(), cpu: Default::default() })
    }

    async fn round(&self, subject: &mut Subject<'_>, round: usize) -> Result<(), Failure> {
        let Subject { server, client, fill, more, seen, cpu } = subject;
        // Names that no round before has taken.
        let space = format!("{more}-{round}");
        work::make_namespace(client, &space).await?;
        let (env, target, limit) = (self.env, server.target, self.sizes.limit / 2);
        let used = server.cpu()?;
        let created = work::create(env, target, 32, &space, u64::MAX, limit).await?;
        cpu[CREATE].push((server.cpu()? - used) / created.count as f64);
        seen[CREATE].push(created.per_second());
        let used = server.cpu()?;
        let got = work::by_name(env, target, Method::GET, fill, OBJECTS, u64::MAX, limit).await?;
        cpu[GET].push((server.cpu()? - used) / got.count as f64);
        seen[GET].push(got.per_second());
        let path = work::config_maps(fill);
        let (seconds, _) = work::list(env, client, 3, &path, OBJECTS as usize).await?;
        seen[LIST].push(1.0 / seconds);
        Ok(())
    }
}
