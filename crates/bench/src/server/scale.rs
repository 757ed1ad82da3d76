//! Costs that must not depend on the number of objects: the same requests to a server in this process as it is filled.
//!
//! The server is a Service in this process: sockets would add the same time to all sizes, and hide what grows.

use bytes::Bytes;
use http::Method;
use k1s_env::Env;

use super::{
    Notes, SETTLE,
    inside::Inside,
    objects::{self, name},
    work::{config_maps, next_token},
};
use crate::{
    Failure,
    report::{Unit, quantile},
    store::short,
};

/// Requests of each kind at each size; the time is their median.
const TIMES: usize = 301;
/// Requests before them that are not counted.
const WARM_UP: usize = 20;
const NAMESPACES: u64 = 8;
/// A page of all namespaces, and of one. The smallest size has two pages of each, and more.
const PAGES: (u64, u64) = (500, 50);
/// Objects of a small namespace beside the others.
const SMALL: u64 = 10;
/// Tasks that fill the server.
const WRITERS: u64 = 4;
/// The name of a measurement, and its microseconds at each size so far.
type Costs = Vec<(&'static str, Vec<f64>)>;

pub(super) async fn run(env: &Env, sizes: &[u64], notes: &mut Notes<'_>) -> Result<(), Failure> {
    let mut scale = Scale { env: env.clone(), server: Inside::start(env).await?, costs: Vec::new() };
    for namespace in (0..NAMESPACES).map(namespace).chain(["small".to_owned()]) {
        let body = objects::namespace(&namespace);
        scale.server.call(Method::POST, "/api/v1/namespaces".to_owned(), body.into()).await?;
    }
    scale.fill("small", SMALL).await?;
    let mut filled = 0;
    for size in sizes {
        let began = env.now();
        scale.fill_all(filled, *size).await?;
        filled = *size;
        let took = (env.now() - began).as_secs_f64();
        crate::report::progress(&format!("memory: {size} objects after {took:.1} s more …"));
        env.sleep(SETTLE).await;
        scale.measure(*size).await?;
    }
    for (what, times) in &scale.costs {
        for (size, time) in sizes.iter().zip(times) {
            notes.add(&format!("scale.{what}.{}", short(*size)), *time, Unit::Microseconds, None);
        }
        if let [smallest, .., largest] = times[..] {
            let cost = largest / smallest;
            notes.add(&format!("scale.{what}-cost"), cost, Unit::TimesTheSmallest, most_cost(sizes));
        }
    }
    Ok(())
}

/// What a request may cost with the most objects, in times of the fewest: what finding a key in a search tree does, whose
/// levels grow with the logarithm. A request that looks at every object would take a hundred times as long and more.
fn most_cost(sizes: &[u64]) -> Option<f64> {
    let (fewest, most) = (sizes.first()?, sizes.last()?);
    Some((*most as f64).ln() / (*fewest as f64).ln())
}

fn namespace(number: u64) -> String {
    format!("scale-{number}")
}

/// A small `ConfigMap`, some 200 bytes when it is stored.
fn config_map(name: &str) -> Bytes {
    format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}","labels":{{"app":"bench"}}}},"data":{{"on":"yes"}}}}"#
    )
    .into()
}

struct Scale {
    env: Env,
    server: Inside,
    costs: Costs,
}

impl Scale {
    async fn fill(&mut self, namespace: &str, count: u64) -> Result<(), Failure> {
        for number in 0..count {
            let body = config_map(&name("cm", number));
            self.server.call(Method::POST, config_maps(namespace), body).await?;
        }
        Ok(())
    }

    /// Creates objects `from` to `to`, in turns in all namespaces.
    async fn fill_all(&self, from: u64, to: u64) -> Result<(), Failure> {
        let paths: Vec<String> = (0..NAMESPACES).map(|number| config_maps(&namespace(number))).collect();
        let mut tasks = Vec::new();
        for writer in 0..WRITERS {
            let (mut server, paths) = (self.server.clone(), paths.clone());
            tasks.push(self.env.spawn("writer", async move {
                for number in (from + writer..to).step_by(WRITERS as usize) {
                    let path = paths[(number % NAMESPACES) as usize].clone();
                    server.call(Method::POST, path, config_map(&name("cm", number))).await?;
                }
                Ok::<(), Failure>(())
            }));
        }
        for task in tasks {
            task.await??;
        }
        Ok(())
    }

    /// Everything, with this many objects.
    async fn measure(&mut self, size: u64) -> Result<(), Failure> {
        const ALL: &str = "/api/v1/configmaps";
        let one = config_maps(&namespace(3));
        for (what, path, limit, count) in
            [("page.first", ALL, PAGES.0, size), ("page.namespace-first", &one, PAGES.1, size / NAMESPACES)]
        {
            let page = format!("{path}?limit={limit}");
            self.time(what, |_| (Method::GET, page.clone(), Bytes::new())).await?;
            // A page of half of the objects ends in the middle.
            let half = self.server.first_bytes(format!("{path}?limit={}", count / 2)).await?;
            let token = next_token(&half).ok_or_else(|| Failure(format!("{path} has no second half")))?;
            let page = format!("{page}&continue={token}");
            let what = if path == ALL { "page.middle" } else { "page.namespace-middle" };
            self.time(what, |_| (Method::GET, page.clone(), Bytes::new())).await?;
        }
        let page = format!("{ALL}?limit={}&labelSelector=app%3Dbench", PAGES.0);
        self.time("page.selector", |_| (Method::GET, page.clone(), Bytes::new())).await?;
        let small = config_maps("small");
        self.time("list.small-namespace", |_| (Method::GET, small.clone(), Bytes::new())).await?;
        self.watch_start(ALL).await?;

        let get = |number: u64| {
            // Objects all over the collection.
            let number = number.wrapping_mul(7919) % size;
            let path = config_maps(&namespace(number % NAMESPACES));
            (Method::GET, format!("{path}/{}", name("cm", number)), Bytes::new())
        };
        self.time("get", get).await?;
        self.time("create", |number| (Method::POST, one.clone(), config_map(&name("new", number)))).await?;
        let delete = |number| (Method::DELETE, format!("{one}/{}", name("new", number)), Bytes::new());
        self.time("delete", delete).await?;
        for (what, path) in
            [("discovery.apis", "/apis"), ("discovery.v1", "/api/v1"), ("metrics", "/metrics")]
        {
            self.time(what, |_| (Method::GET, path.to_owned(), Bytes::new())).await?;
        }
        Ok(())
    }

    /// Sends requests one after the other, and keeps the median of their times.
    async fn time(
        &mut self,
        what: &'static str,
        request: impl Fn(u64) -> (Method, String, Bytes),
    ) -> Result<(), Failure> {
        let mut times = Vec::new();
        for number in 0..(WARM_UP + TIMES) as u64 {
            let (method, path, body) = request(number);
            let began = self.env.now();
            self.server.call(method, path, body).await?;
            times.push((self.env.now() - began).as_secs_f64() * 1e6);
        }
        self.keep(what, &mut times[WARM_UP..]);
        Ok(())
    }

    /// The time until a watch from the newest resourceVersion on has its headers.
    async fn watch_start(&mut self, path: &str) -> Result<(), Failure> {
        let head = self.server.first_bytes(format!("{path}?limit=1")).await?;
        let head = String::from_utf8_lossy(&head).into_owned();
        let revision = head.split_once(r#""resourceVersion":""#).and_then(|(_, rest)| rest.split_once('"'));
        let (revision, _) = revision.ok_or_else(|| Failure(format!("{path} has no resourceVersion")))?;
        let watch = format!("{path}?watch=1&resourceVersion={revision}");
        let mut times = Vec::new();
        for _ in 0..WARM_UP + TIMES {
            let began = self.env.now();
            let response = self.server.send(Method::GET, watch.clone(), Bytes::new()).await?;
            times.push((self.env.now() - began).as_secs_f64() * 1e6);
            if !response.status().is_success() {
                return Err(Failure(format!("{watch}: {}", response.status())));
            }
        }
        self.keep("watch.start", &mut times[WARM_UP..]);
        Ok(())
    }

    fn keep(&mut self, what: &'static str, times: &mut [f64]) {
        let median = quantile(times, 0.5);
        match self.costs.iter_mut().find(|(known, _)| *known == what) {
            Some((_, costs)) => costs.push(median),
            None => self.costs.push((what, vec![median])),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_million_objects_may_cost_twice_as_much_as_a_thousand() {
        let most = most_cost(&[1000, 10_000, 1_000_000]).unwrap();
        assert!((most - 2.0).abs() < 1e-9, "{most}");
    }
}
