//! `delete`

use std::time::Duration;

use clap::Args;
use http::Method;
use serde_json::{Map, Value, json};

use crate::{
    Commands,
    api::{Error, JSON, Path},
    objects::{ObjectArgs, Wanted},
    print::{DryRun, PrintArgs},
    progress::{Progress, noticed},
    say,
    session::{Access, Session, Target},
    verbs::duration,
};

/// Options of `delete`.
#[derive(Debug, Clone, Args)]
pub struct DeleteArgs {
    #[command(flatten)]
    objects: ObjectArgs,
    /// All objects of the types.
    #[arg(long)]
    all: bool,
    /// What happens to dependents.
    #[arg(long, value_enum, num_args = 0..=1, require_equals = true, default_value = "background", default_missing_value = "background")]
    cascade: Cascade,
    /// Seconds until the object is removed by force, for kinds that have a grace period.
    #[arg(long, value_name = "SECONDS")]
    grace_period: Option<i64>,
    /// Removes at once: --grace-period=0.
    #[arg(long)]
    force: bool,
    /// Removes within a second: --grace-period=1.
    #[arg(long, conflicts_with_all = ["grace_period", "force"])]
    now: bool,
    /// Waits until the objects are gone.
    #[arg(long, num_args = 0..=1, require_equals = true, default_value = "true", default_missing_value = "true", action = clap::ArgAction::Set)]
    wait: bool,
    /// How long to wait for each object; 0 for a week.
    #[arg(long, value_name = "DURATION", default_value = "0", value_parser = duration)]
    timeout: Duration,
    /// Is silent about objects that do not exist. With --all and selectors, always.
    #[arg(long)]
    ignore_not_found: bool,
    /// Only shows what would be done.
    #[arg(long, value_enum, num_args = 0..=1, require_equals = true, default_value = "none", default_missing_value = "client")]
    dry_run: DryRun,
    /// `-o name`: prints only names.
    #[command(flatten)]
    print: PrintArgs,
    #[command(flatten)]
    target: Target,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Cascade {
    /// They are deleted after the object.
    Background,
    /// They are deleted before the object.
    Foreground,
    /// They are kept.
    Orphan,
}

/// The longest wait, if no timeout is given.
const A_WEEK: Duration = Duration::from_secs(7 * 24 * 3600);
const LOOK_AGAIN: Duration = Duration::from_millis(100);

pub(crate) async fn run(program: &Commands, args: &DeleteArgs) -> Result<(), Error> {
    if args.print.output.as_deref().is_some_and(|output| output != "name") {
        return Err(Error::failed("unexpected -o output mode: only '-o name' is supported"));
    }
    let selects = args.all || args.objects.selector.is_some() || args.objects.field_selector.is_some();
    if args.objects.files.is_empty() {
        let named = args.objects.what.len() > 1 || args.objects.what.iter().any(|what| what.contains('/'));
        if args.all && named {
            return Err(Error::failed("name cannot be provided when a selector is specified"));
        }
        if !args.objects.what.is_empty() && !named && !selects {
            return Err(Error::failed(
                "resource(s) were provided, but no name was specified; use --all or -l",
            ));
        }
    }
    let session = Session::open(program, &args.target, Access::Write).await?;
    let done = delete(program, &session, args, selects).await;
    session.finish(program, done).await
}

async fn delete(
    program: &Commands,
    session: &Session,
    args: &DeleteArgs,
    selects: bool,
) -> Result<(), Error> {
    let resources = session.resources().await?;
    let wanted = args.objects.resolve(session, &resources)?;
    // Only lists have to be read first.
    let (lists, named): (Vec<Wanted>, Vec<Wanted>) = wanted.into_iter().partition(|one| one.name.is_none());
    let (found, mut errors) = args.objects.fetch(&session.api, &lists).await;
    let mut all: Vec<Wanted> = named;
    all.extend(found.into_iter().map(|(one, _)| one));
    if all.is_empty() && errors.is_empty() {
        say::line("No resources found");
        return Ok(());
    }
    let mut deleted: Vec<(Wanted, String)> = Vec::new();
    let mut progress = Progress::new(&session.env, all.len());
    for one in all {
        match one_object(session, args, &one).await {
            Ok(uid) => {
                told(args, &one);
                deleted.push((one, uid));
            }
            Err(error) if error.is_not_found() && (args.ignore_not_found || selects) => {}
            Err(error) => errors.push(match &one.file {
                Some(item) => error.when("deleting", &item.source),
                None => error,
            }),
        }
        progress.step("deleted");
    }
    if args.wait && args.dry_run == DryRun::None {
        // In a folder, what controllers do about it is done before, or never.
        session.settle(program).await?;
        let mut progress = Progress::new(&session.env, deleted.len());
        for (one, uid) in &deleted {
            let name = one.name.as_deref().unwrap_or_default();
            let what = || format!("waiting until {}/{name} is gone", one.resource.plural);
            if let Err(error) = noticed(&session.env, what, gone(session, args, one, uid)).await {
                errors.push(error);
            }
            progress.step("gone");
        }
    }
    Error::all(errors)
}

/// Deletes an object, and returns its uid if it may still be there.
async fn one_object(session: &Session, args: &DeleteArgs, one: &Wanted) -> Result<String, Error> {
    if args.dry_run == DryRun::Client {
        session.api.get(Path::new(one.path()), JSON).await?;
        return Ok(String::new());
    }
    let policy = match args.cascade {
        Cascade::Background => "Background",
        Cascade::Foreground => "Foreground",
        Cascade::Orphan => "Orphan",
    };
    let mut options = Map::new();
    options.insert("propagationPolicy".into(), policy.into());
    let grace = if args.force {
        Some(0)
    } else if args.now {
        Some(1)
    } else {
        args.grace_period
    };
    if let Some(grace) = grace {
        options.insert("gracePeriodSeconds".into(), grace.into());
    }
    if args.dry_run == DryRun::Server {
        options.insert("dryRun".into(), json!(["All"]));
    }
    let body = Value::Object(options).to_string().into_bytes();
    let answer = session.api.send(Method::DELETE, Path::new(one.path()), JSON, Some((JSON, body))).await?;
    // A Status has the uid in its details; an object that is still there, in its metadata.
    let uid = answer["details"]["uid"].as_str().or_else(|| answer["metadata"]["uid"].as_str());
    Ok(uid.unwrap_or_default().to_owned())
}

fn told(args: &DeleteArgs, one: &Wanted) {
    let (kind, name) = (one.resource.group_kind(), one.name.as_deref().unwrap_or_default());
    if args.print.output.is_some() {
        say::line(&format!("{kind}/{name}"));
        return;
    }
    let operation = if args.force { "force deleted" } else { "deleted" };
    let place =
        if one.resource.namespaced { format!(" from {} namespace", one.namespace) } else { String::new() };
    say::line(&format!("{kind} {name:?} {operation}{place}{}", args.dry_run.suffix()));
}

/// Waits until an object, or at least the one with this uid, is gone.
async fn gone(session: &Session, args: &DeleteArgs, one: &Wanted, uid: &str) -> Result<(), Error> {
    let patience = if args.timeout.is_zero() { A_WEEK } else { args.timeout };
    let (started, mut said) = (session.env.now(), false);
    loop {
        let object = match session.api.get(Path::new(one.path()), JSON).await {
            Ok(object) => object,
            Err(error) if error.is_not_found() => return Ok(()),
            Err(error) => return Err(error),
        };
        if !uid.is_empty() && object["metadata"]["uid"] != uid {
            return Ok(());
        }
        let name = format!("{}/{}", one.resource.plural, one.name.as_deref().unwrap_or_default());
        let finalizers: Vec<&str> = object["metadata"]["finalizers"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let waiting = format!("{name} is not gone yet; its finalizers: {}", finalizers.join(", "));
        if session.is_folder() {
            say::note(&format!("{waiting}; nobody in this folder removes them"));
            return Ok(());
        }
        let waited = session.env.now() - started;
        if waited > patience {
            return Err(Error::failed(format!("timed out waiting for the condition on {name}")));
        }
        if waited > Duration::from_secs(3) && !said && !finalizers.is_empty() {
            said = true;
            say::note(&waiting);
        }
        session.env.sleep(LOOK_AGAIN).await;
    }
}
