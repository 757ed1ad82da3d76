//! A well-behaved client beside attackers: the latency of its requests and the server's peak memory; the same without
//! attackers, and with `--peer` for another API server.
//!
//! Attackers and client share this machine's processors with the server, so part of the latency is theirs. The point is
//! whether the server goes on serving, and whether its memory is bounded.

mod attack;

use std::{path::PathBuf, time::Duration};

use clap::Args;
use http::Method;
use k1s_env::Env;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::{
    Failure,
    report::{self, Beside, Measurement, Unit, quantile},
    server::{
        child::{self, Child, Kept, NOBODY},
        client::{Client, Content, Target},
        objects::{ConfigMaps, name},
        work,
    },
};
use attack::{Attack, Battle};

#[derive(Args)]
pub(crate) struct Options {
    /// A line of JSON per measurement instead of a table
    #[arg(long)]
    json: bool,
    /// A shorter run
    #[arg(long)]
    quick: bool,
    /// The number of attackers; each runs one of the attacks
    #[arg(long, default_value_t = 8)]
    attackers: usize,
    /// Only these attacks
    #[arg(long, value_delimiter = ',', value_enum)]
    attacks: Vec<Attack>,
    /// Another API server to attack: http://host:port or https://host:port
    #[arg(long, value_name = "URL", requires = "token")]
    peer: Option<String>,
    /// A bearer token of the peer that may do everything
    #[arg(long)]
    token: Option<String>,
    /// The program to measure, instead of the k1s of this build
    #[arg(long, value_name = "FILE")]
    k1s: Option<PathBuf>,
    /// The folder for the server's files
    #[arg(long, default_value = "target")]
    folder: PathBuf,
}

/// The client's timeout; a request that reaches it counts as having taken this long.
const GIVEN_UP: Duration = Duration::from_secs(10);
/// How long attackers run before the client begins.
const HEAD_START: Duration = Duration::from_secs(2);

pub(crate) async fn run(options: Options) -> Result<(), Failure> {
    let env = Env::system();
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?;
    let program = match &options.k1s {
        Some(program) => program.clone(),
        None => child::program()?,
    };
    std::fs::create_dir_all(&options.folder)?;
    let folder = options.folder.canonicalize()?;
    let limit = Duration::from_secs(if options.quick { 5 } else { 30 });
    let attacks = match options.attacks.as_slice() {
        [] => Attack::ALL.to_vec(),
        some => some.to_vec(),
    };
    let chosen: Vec<Attack> = attacks.iter().copied().cycle().take(options.attackers).collect();
    let mut all = Vec::new();
    for (when, attacks) in [("calm", &[][..]), ("attacked", &chosen)] {
        report::progress(&format!("k1s: {when} …"));
        let mut child = Child::start(&env, &program, Kept::Memory, false, &folder).await?;
        let nobody = Target { token: NOBODY.to_owned(), ..child.target.clone() };
        let battle = Battle { env: env.clone(), admin: child.target.clone(), nobody, small: options.quick };
        let outcome = measure(&battle, attacks, limit).await;
        if child.process.ended()?.is_some() {
            return Err(Failure(format!("k1s did not survive: {attacks:?}")));
        }
        note(&mut all, "k1s", when, outcome?, Some(child.process.peak_bytes()?));
    }
    if let (Some(url), Some(token)) = (&options.peer, &options.token) {
        let target = Target::parse(url, token).await?;
        for (when, attacks) in [("calm", &[][..]), ("attacked", &chosen)] {
            report::progress(&format!("peer: {when} …"));
            let (admin, nobody) = (target.clone(), target.clone());
            let battle = Battle { env: env.clone(), admin, nobody, small: options.quick };
            note(&mut all, "peer", when, measure(&battle, attacks, limit).await?, None);
        }
    }
    report::show(&all, Beside::peer("peer"), options.json);
    Ok(())
}

fn note(all: &mut Vec<Measurement>, subject: &str, when: &str, seen: Seen, peak: Option<u64>) {
    let mut add = |what: &str, value: f64, unit: Unit| {
        all.push(Measurement::new(format!("{subject}.{when}.{what}"), value, unit));
    };
    let mut times = seen.times;
    add("requests", times.len() as f64 / seen.seconds, Unit::PerSecond);
    for (what, part) in [("p50", 0.5), ("p99", 0.99), ("slowest", 1.0)] {
        add(what, quantile(&mut times, part) * 1e3, Unit::Milliseconds);
    }
    add("refused", seen.refused as f64 / times.len().max(1) as f64 * 100.0, Unit::Percent);
    if let Some(peak) = peak {
        add("memory-peak", peak as f64 / 1e6, Unit::Megabytes);
    }
}

/// The client's measurements.
struct Seen {
    /// Latencies in seconds.
    times: Vec<f64>,
    seconds: f64,
    /// Requests that failed or were not answered.
    refused: u64,
}

async fn measure(battle: &Battle, attacks: &[Attack], limit: Duration) -> Result<Seen, Failure> {
    let env = &battle.env;
    let mut client = Client::connect(env, &battle.admin).await?;
    let namespace = format!("hostile-{}", env.name_suffix());
    work::make_namespace(&mut client, &namespace).await?;
    battle.prepare(&mut client, &namespace, attacks).await?;
    let attackers: Vec<_> = attacks
        .iter()
        .map(|attack| {
            let (battle, attack, namespace) = (battle.clone(), *attack, namespace.clone());
            env.spawn("attacker", async move { battle.attack(attack, &namespace).await })
        })
        .collect();
    if !attackers.is_empty() {
        env.sleep(HEAD_START).await;
    }
    let seen = behave(env, &battle.admin, &namespace, limit).await;
    for attacker in &attackers {
        attacker.abort();
    }
    Ok(seen)
}

/// Creates objects, reads them and lists a few, one request after the other.
async fn behave(env: &Env, target: &Target, namespace: &str, limit: Duration) -> Seen {
    let (path, bodies) = (work::config_maps(namespace), ConfigMaps::new());
    let mut seen = Seen { times: Vec::new(), seconds: 0.0, refused: 0 };
    let mut client: Option<Client> = None;
    let began = env.now();
    let mut number = 0_u64;
    while env.now() - began < limit {
        let object = name("cm", number / 4);
        let (method, path, content) = match number % 4 {
            0 => (Method::POST, path.clone(), Content::json(bodies.get(&object, number))),
            1 => (Method::GET, format!("{path}/{object}"), Content::none()),
            2 => (Method::GET, format!("{path}?limit=10"), Content::none()),
            _ => (Method::GET, "/healthz".to_owned(), Content::none()),
        };
        number += 1;
        let started = env.now();
        let call = async {
            let mut open = match client.take() {
                Some(open) => open,
                None => Client::connect(env, target).await?,
            };
            open.call(method, &path, content).await?;
            Ok::<Client, Failure>(open)
        };
        match env.timeout(GIVEN_UP, call).await {
            Ok(Ok(open)) => client = Some(open),
            Ok(Err(_)) | Err(_) => seen.refused += 1,
        }
        seen.times.push((env.now() - started).as_secs_f64());
    }
    seen.seconds = (env.now() - began).as_secs_f64();
    seen
}
