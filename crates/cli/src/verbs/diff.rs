//! `diff`: what an apply would change.

use std::{fs, io, process::Command};

use clap::Args;
use http::Method;
use k1s::env::Env;
use serde_json::Value;

use crate::{
    Commands,
    api::{Error, JSON, Path, YAML_APPLY},
    files::FileArgs,
    objects::{Wanted, of_file},
    print::hide_managed_fields,
    session::{Access, Session, Target},
    verbs::Scratch,
};

/// Options of `diff`.
#[derive(Debug, Clone, Args)]
pub struct DiffArgs {
    #[command(flatten)]
    files: FileArgs,
    /// Fails on fields that other managers own.
    #[arg(long)]
    server_side: bool,
    /// With --server-side: takes over fields that other managers own.
    #[arg(long, requires = "server_side")]
    force_conflicts: bool,
    /// The manager that owns the applied fields.
    #[arg(long, value_name = "NAME")]
    field_manager: Option<String>,
    /// Shows metadata.managedFields as well.
    #[arg(long)]
    show_managed_fields: bool,
    #[command(flatten)]
    target: Target,
}

/// The exit code of a diff that failed; 1 is for differences.
const FAILED: u8 = 2;

pub(crate) async fn run(program: &Commands, args: &DiffArgs) -> Result<(), Error> {
    let differs = compare(program, args).await;
    match differs {
        Ok(false) => Ok(()),
        Ok(true) => Err(Error::Exit(1)),
        Err(error) => {
            crate::say::note(&error.to_string());
            Err(Error::Exit(FAILED))
        }
    }
}

async fn compare(program: &Commands, args: &DiffArgs) -> Result<bool, Error> {
    if args.files.is_empty() {
        return Err(Error::failed("must specify one of -f and -k"));
    }
    let items = args.files.load()?;
    // A dry run changes nothing, so no controllers are needed.
    let session = Session::open(program, &args.target, Access::Read).await?;
    let states = async {
        let resources = session.resources().await?;
        let mut states = Vec::new();
        for item in items {
            let source = item.source.clone();
            let wanted = of_file(&session, &resources, item)?;
            states.push(
                states_of(program, &session, args, &wanted)
                    .await
                    .map_err(|error| error.when("applying", &source))?,
            );
        }
        Ok::<_, Error>(states)
    };
    let states = states.await;
    let env = session.env.clone();
    session.close().await?;
    shown(program, &env, &states?)
}

struct States {
    name: String,
    live: Option<Value>,
    merged: Value,
}

async fn states_of(
    program: &Commands,
    session: &Session,
    args: &DiffArgs,
    wanted: &Wanted,
) -> Result<States, Error> {
    let Some(item) = &wanted.file else { return Err(Error::failed("no file")) };
    let mut live = match session.api.get(Path::new(wanted.path()), JSON).await {
        Ok(object) => Some(object),
        Err(error) if error.is_not_found() => None,
        Err(error) => return Err(error),
    };
    let mut object = item.object.clone();
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("managedFields");
    }
    let force = !args.server_side || args.force_conflicts;
    let path = Path::new(wanted.path())
        .with("fieldManager", args.field_manager.as_deref().unwrap_or(program.name))
        .with("force", if force { "true" } else { "" })
        .with("dryRun", "All");
    let body = Some((YAML_APPLY, object.to_string().into_bytes()));
    let mut merged = session.api.send(Method::PATCH, path, JSON, body).await?;
    if !args.show_managed_fields {
        hide_managed_fields(&mut merged);
        if let Some(live) = &mut live {
            hide_managed_fields(live);
        }
    }
    if merged["kind"] == "Secret" {
        mask(live.as_mut(), &mut merged);
    }
    let group = wanted.resource.api_version().replace('/', ".");
    let name = format!(
        "{group}.{}.{}.{}",
        wanted.resource.kind,
        wanted.namespace,
        wanted.name.as_deref().unwrap_or_default()
    );
    Ok(States { name, live, merged })
}

/// Secrets are not shown, only whether they differ.
fn mask(mut live: Option<&mut Value>, merged: &mut Value) {
    let keys: Vec<String> = merged["data"]
        .as_object()
        .into_iter()
        .chain(live.as_deref().and_then(|live| live["data"].as_object()))
        .flatten()
        .map(|(key, _)| key.clone())
        .collect();
    for key in keys {
        let before = live.as_deref().map(|live| live["data"][&key].clone()).unwrap_or_default();
        let differs = before != merged["data"][&key];
        if !merged["data"][&key].is_null() {
            merged["data"][&key] = (if differs && !before.is_null() { "*** (after)" } else { "***" }).into();
        }
        if let Some(live) = live.as_deref_mut().filter(|_| !before.is_null()) {
            live["data"][&key] = (if differs { "*** (before)" } else { "***" }).into();
        }
    }
}

/// Runs `diff` on two folders of files.
fn shown(program: &Commands, env: &Env, states: &[States]) -> Result<bool, Error> {
    let failed = |error: io::Error| Error::failed(format!("files to compare: {error}"));
    let scratch = Scratch::new(program.name, env).map_err(failed)?;
    write(scratch.path(), states).map_err(failed)?;
    call(scratch.path())
}

fn write(root: &std::path::Path, states: &[States]) -> io::Result<()> {
    for part in ["LIVE", "MERGED"] {
        fs::create_dir_all(root.join(part))?;
    }
    for state in states {
        let name = state.name.replace(['/', ':'], "-");
        if let Some(live) = &state.live {
            fs::write(root.join("LIVE").join(&name), k1s_object::to_yaml(live))?;
        }
        fs::write(root.join("MERGED").join(&name), k1s_object::to_yaml(&state.merged))?;
    }
    Ok(())
}

fn call(root: &std::path::Path) -> Result<bool, Error> {
    let given = std::env::var("KUBECTL_EXTERNAL_DIFF").ok().filter(|given| !given.trim().is_empty());
    let words = given.unwrap_or_else(|| "diff -u -N".to_owned());
    let mut words = words.split_whitespace();
    let name = words.next().unwrap_or("diff");
    let status = Command::new(name)
        .args(words)
        .args([root.join("LIVE"), root.join("MERGED")])
        .status()
        .map_err(|error| {
            Error::failed(format!(
                "cannot run {name:?}: {error}; set KUBECTL_EXTERNAL_DIFF to a program that compares folders"
            ))
        })?;
    match status.code() {
        Some(0) => Ok(false),
        Some(1) => Ok(true),
        _ => Err(Error::failed(format!("{name} failed: {status}"))),
    }
}
