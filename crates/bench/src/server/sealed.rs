//! What encryption at rest costs: the same work on two servers, in turns, of which one encrypts the objects.
//!
//! Both work with `ConfigMaps`, which the configuration names in the place of Secrets: the work is that of the other parts. GETs
//! read the store, so each decrypts an object; lists read the watch cache, which holds plain values.

use std::{fs, time::Duration};

use http::Method;
use tempfile::TempDir;

use super::{
    Measured, Notes, OBJECTS, Run,
    child::{Child, Kept},
    client::Client,
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

impl Run<'_> {
    pub(super) async fn encryption(&self, kept: Kept, notes: &mut Notes<'_>) -> Result<(), Failure> {
        let plain = self.child(kept, false).await?;
        let folder = TempDir::with_prefix_in("k1s-encryption-", &self.folder)?;
        let file = folder.path().join("encryption.yaml");
        fs::write(&file, CONFIGURATION)?;
        let encrypted = [format!("--encryption-provider-config={}", file.display())];
        let sealed =
            Child::start_with(self.env, &self.program, kept, false, &self.folder, &encrypted).await?;
        let mut servers = Vec::new();
        for child in [&plain, &sealed] {
            let mut client = Client::connect(self.env, &child.target).await?;
            let fill = self.namespace(&mut client, "fill").await?;
            let more = self.namespace(&mut client, "more").await?;
            let patience = Duration::from_secs(300);
            work::create(self.env, &child.target, 32, &fill, OBJECTS, patience).await?;
            servers.push((Measured::child(child), client, fill, more, [Vec::new(), Vec::new(), Vec::new()]));
        }
        let rounds = self.sizes.times.min(7);
        for round in 0..rounds {
            for (server, client, fill, more, seen) in &mut servers {
                // Names that no round before has taken.
                let space = format!("{more}-{round}");
                work::make_namespace(client, &space).await?;
                let (env, target, limit) = (self.env, server.target, self.sizes.limit / 2);
                let created = work::create(env, target, 32, &space, u64::MAX, limit).await?;
                seen[CREATE].push(created.per_second());
                let got = work::by_name(env, target, Method::GET, fill, OBJECTS, u64::MAX, limit).await?;
                seen[GET].push(got.per_second());
                let path = work::config_maps(fill);
                let (seconds, _) = work::list(env, client, 3, &path, OBJECTS as usize).await?;
                seen[LIST].push(1.0 / seconds);
            }
        }
        let [(.., plain), (.., sealed)] = &mut servers[..] else { return Ok(()) };
        for (name, place) in [("create.c32", CREATE), ("get.c32", GET), ("list.10k", LIST)] {
            let without = quantile(&mut plain[place], 0.5);
            let with = quantile(&mut sealed[place], 0.5);
            notes.add(&format!("secure.{name}-plain"), without, Unit::PerSecond, None);
            notes.add(&format!("secure.{name}-encrypted"), with, Unit::PerSecond, Some(EXPECTED * without));
        }
        Ok(())
    }
}
