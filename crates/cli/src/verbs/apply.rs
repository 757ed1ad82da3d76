//! `apply`: objects of files, with server-side apply.

use std::{collections::BTreeSet, time::Duration};

use clap::Args;
use http::Method;
use k1s_object::selector::LabelSelector;
use serde_json::Value;

use crate::{
    Commands,
    api::{Api, Error, JSON, Path, Resource, YAML_APPLY, discovery::Resources},
    files::{FileArgs, Item},
    objects::{Wanted, list, of_file, typed},
    print::{DryRun, PrintArgs, Printer},
    progress::Progress,
    say,
    session::{Access, Session, Target},
    verbs::same,
};

/// Options of `apply`.
#[derive(Debug, Clone, Default, Args)]
pub struct ApplyArgs {
    #[command(flatten)]
    files: FileArgs,
    /// Fails on fields that other managers own, instead of taking them over.
    #[arg(long)]
    server_side: bool,
    /// With --server-side: takes over fields that other managers own.
    #[arg(long, requires = "server_side")]
    force_conflicts: bool,
    /// The manager that owns the applied fields. The program's name by default.
    #[arg(long, value_name = "NAME")]
    field_manager: Option<String>,
    /// Deletes objects with these labels that were applied earlier by this manager, and are not in the files.
    #[arg(long, requires = "selector")]
    prune: bool,
    /// With --prune: the kinds that may be deleted, as `apps/v1/Deployment`; can be repeated. By default common kinds of
    /// workloads and configuration, and those in the files.
    #[arg(long, value_name = "KIND", requires = "prune")]
    prune_allowlist: Vec<String>,
    /// Only objects of the files with these labels.
    #[arg(short = 'l', long, value_name = "LABELS")]
    selector: Option<String>,
    /// Only shows what would be done.
    #[arg(long, value_enum, num_args = 0..=1, require_equals = true, default_value = "none", default_missing_value = "client")]
    dry_run: DryRun,
    /// Reports unknown and duplicate fields: strict, warn or ignore.
    #[arg(long, value_name = "MODE", default_value = "strict")]
    validate: String,
    #[command(flatten)]
    print: PrintArgs,
    #[command(flatten)]
    target: Target,
}

/// How long a definition may take until its kind is served.
const SERVED: Duration = Duration::from_secs(30);
const LOOK_AGAIN: Duration = Duration::from_millis(20);

pub(crate) async fn run(program: &Commands, args: &ApplyArgs) -> Result<(), Error> {
    let printer = args.print.printer(args.dry_run)?;
    if args.files.is_empty() {
        return Err(Error::failed("must specify one of -f and -k"));
    }
    if args.server_side && args.dry_run == DryRun::Client {
        return Err(Error::failed(
            "--dry-run=client doesn't work with --server-side (did you mean --dry-run=server instead?)",
        ));
    }
    let mut items = args.files.load()?;
    if let Some(selector) = &args.selector {
        let parsed = LabelSelector::parse(selector).map_err(Error::failed)?;
        items.retain(|item| parsed.matches_labels(Some(&item.object["metadata"]["labels"])));
    }
    if items.is_empty() {
        return Err(Error::failed("no objects passed to apply"));
    }
    let session = Session::open(program, &args.target, Access::Write).await?;
    let done = Apply { program, args, session: &session, printer }.all(items).await;
    session.finish(program, done).await
}

/// How the query parameter is called that `--validate` is sent with.
pub(crate) fn field_validation(mode: &str) -> Result<&'static str, Error> {
    match mode {
        "" | "strict" | "true" => Ok("Strict"),
        "warn" => Ok("Warn"),
        "ignore" | "false" => Ok("Ignore"),
        _ => Err(Error::failed(format!("invalid - validate option {mode:?}; use strict, warn or ignore"))),
    }
}

/// Applies objects as `apply` without options does.
pub(crate) async fn apply_items(
    program: &Commands,
    session: &Session,
    items: Vec<Item>,
    printer: Printer,
) -> Result<(), Error> {
    Apply { program, args: &ApplyArgs::default(), session, printer }.all(items).await
}

struct Apply<'a> {
    program: &'a Commands,
    args: &'a ApplyArgs,
    session: &'a Session,
    printer: Printer,
}

/// What an apply did to an object.
struct Applied {
    object: Value,
    operation: &'static str,
}

impl Apply<'_> {
    async fn all(&self, items: Vec<Item>) -> Result<(), Error> {
        let mut resources = self.session.resources().await?;
        if self.args.prune && !self.args.prune_allowlist.is_empty() {
            // Before anything is applied: a mistake in a name is none of the objects.
            self.prunable(&resources, &[])?;
        }
        let (mut errors, mut unknown) = (Vec::new(), Vec::new());
        // Kinds that were defined by earlier objects: they are served soon.
        let mut defined = BTreeSet::new();
        let mut applied: Vec<(Resource, Value)> = Vec::new();
        let mut progress = Progress::new(&self.session.env, items.len());
        for item in items {
            let kind = kind_of(&item.object);
            if resources.of_kind(&kind.0, &kind.1).is_none() && defined.contains(&kind) {
                resources = self.until_served(&kind).await?;
            }
            let wanted = match of_file(self.session, &resources, item) {
                Ok(wanted) => wanted,
                Err(error) => {
                    unknown.push(error);
                    continue;
                }
            };
            match self.one(&wanted).await {
                Ok(done) => {
                    defined.extend(kinds_of_definition(&done.object));
                    self.printer.print(&done.object, done.operation)?;
                    applied.push((wanted.resource, done.object));
                }
                Err(error) => errors.push(conflict(error)),
            }
            progress.step("applied");
        }
        // kubectl tells of kinds that do not exist first.
        unknown.extend(errors);
        if self.args.prune && unknown.is_empty() {
            self.prune(&resources, &applied).await?;
        }
        Error::all(unknown)
    }

    /// Waits until the server has a kind that was just defined.
    async fn until_served(&self, kind: &(String, String)) -> Result<Resources, Error> {
        let started = self.session.env.now();
        loop {
            let resources = self.session.resources().await?;
            if resources.of_kind(&kind.0, &kind.1).is_some() || self.session.env.now() - started > SERVED {
                return Ok(resources);
            }
            self.session.env.sleep(LOOK_AGAIN).await;
        }
    }

    async fn one(&self, wanted: &Wanted) -> Result<Applied, Error> {
        let api = &self.session.api;
        let Some(item) = &wanted.file else { return Err(Error::failed("no file")) };
        if wanted.name.is_none() {
            let name = item.object["metadata"]["generateName"].as_str().unwrap_or_default();
            return Err(Error::failed(format!("from {name}: cannot use generate name with apply")));
        }
        let before = match api.get(Path::new(wanted.path()), JSON).await {
            Ok(object) => Some(object),
            Err(error) if error.is_not_found() => None,
            Err(error) => return Err(error),
        };
        let mut object = item.object.clone();
        if let Some(metadata) = object["metadata"].as_object_mut() {
            // A file that was exported from a server has them, and no server accepts them.
            metadata.remove("managedFields");
        }
        let after = if self.args.dry_run == DryRun::Client {
            let mut after = before.clone().unwrap_or(Value::Null);
            k1s_object::patch::merge::apply(&mut after, object);
            after
        } else {
            let doing = if before.is_none() { "creating" } else { "applying" };
            self.patch(api, wanted, &object).await.map_err(|error| error.when(doing, &item.source))?
        };
        let operation = match before {
            _ if self.args.server_side => "serverside-applied",
            None => "created",
            Some(before) if same(&before, &after) => "unchanged",
            Some(_) => "configured",
        };
        Ok(Applied { object: after, operation })
    }

    async fn patch(&self, api: &Api, wanted: &Wanted, object: &Value) -> Result<Value, Error> {
        let force = !self.args.server_side || self.args.force_conflicts;
        let path = Path::new(wanted.path())
            .with("fieldManager", self.args.field_manager.as_deref().unwrap_or(self.program.name))
            .with("force", if force { "true" } else { "" })
            .with("fieldValidation", field_validation(&self.args.validate)?)
            .with("dryRun", self.args.dry_run.parameter());
        let body = object.to_string().into_bytes();
        api.send(Method::PATCH, path, JSON, Some((YAML_APPLY, body))).await
    }

    /// Deletes what this manager has applied, has the labels, and was not in the files.
    async fn prune(&self, resources: &Resources, applied: &[(Resource, Value)]) -> Result<(), Error> {
        let manager = self.args.field_manager.as_deref().unwrap_or(self.program.name);
        let text =
            |object: &Value, field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
        let kept: BTreeSet<String> = applied.iter().map(|(_, object)| text(object, "uid")).collect();
        let mut namespaces: BTreeSet<String> = applied
            .iter()
            .map(|(_, object)| text(object, "namespace"))
            .filter(|name| !name.is_empty())
            .collect();
        if namespaces.is_empty() {
            namespaces.insert(self.session.namespace.clone());
        }
        let mut progress = Progress::counting(&self.session.env);
        for resource in self.prunable(resources, applied)? {
            let places: Vec<Option<&str>> = if resource.namespaced {
                namespaces.iter().map(|one| Some(one.as_str())).collect()
            } else {
                vec![None]
            };
            for namespace in places {
                let path = Path::new(resource.collection(namespace))
                    .with("labelSelector", self.args.selector.as_deref().unwrap_or_default());
                for object in typed(list(&self.session.api.quiet(), &path, JSON, "items").await?) {
                    if kept.contains(&text(&object, "uid")) || !applied_by(&object, manager) {
                        continue;
                    }
                    if self.args.dry_run == DryRun::None {
                        let path = resource.path(&text(&object, "namespace"), &text(&object, "name"));
                        let body = serde_json::json!({"preconditions": {"uid": text(&object, "uid")}, "propagationPolicy": "Background"});
                        let body = body.to_string().into_bytes();
                        self.session
                            .api
                            .send(Method::DELETE, Path::new(path), JSON, Some((JSON, body)))
                            .await?;
                    }
                    self.printer.print(&object, "pruned")?;
                    progress.step("pruned");
                }
            }
        }
        Ok(())
    }

    fn prunable(&self, resources: &Resources, applied: &[(Resource, Value)]) -> Result<Vec<Resource>, Error> {
        const DEFAULT: [&str; 15] = [
            "v1/ConfigMap",
            "v1/Endpoints",
            "v1/Namespace",
            "v1/PersistentVolumeClaim",
            "v1/PersistentVolume",
            "v1/Pod",
            "v1/ReplicationController",
            "v1/Secret",
            "v1/Service",
            "batch/v1/Job",
            "batch/v1/CronJob",
            "networking.k8s.io/v1/Ingress",
            "apps/v1/DaemonSet",
            "apps/v1/Deployment",
            "apps/v1/StatefulSet",
        ];
        let mut kinds: Vec<Resource> = Vec::new();
        let given = !self.args.prune_allowlist.is_empty();
        let default = DEFAULT.iter().map(|kind| (*kind).to_owned());
        let names: Vec<String> = if given { self.args.prune_allowlist.clone() } else { default.collect() };
        for name in names {
            let Some((version, kind)) = name.rsplit_once('/') else {
                return Err(Error::failed(format!(
                    "invalid GroupVersionKind format: {name}, please follow <group/version/kind>"
                )));
            };
            let version = version.strip_prefix("core/").unwrap_or(version);
            match resources.of_kind(version, kind) {
                Some(resource) => kinds.push(resource.clone()),
                None if given => {
                    return Err(Error::failed(format!(
                        "no matches for kind {kind:?} in version {version:?}"
                    )));
                }
                None => {}
            }
        }
        if !given {
            for (resource, _) in applied {
                if !kinds.contains(resource) {
                    kinds.push(resource.clone());
                }
            }
        }
        Ok(kinds)
    }
}

/// `apiVersion` and `kind`
fn kind_of(object: &Value) -> (String, String) {
    let text = |field: &str| object[field].as_str().unwrap_or_default().to_owned();
    (text("apiVersion"), text("kind"))
}

/// The kinds that a custom resource definition defines.
fn kinds_of_definition(object: &Value) -> Vec<(String, String)> {
    if object["kind"] != "CustomResourceDefinition" {
        return Vec::new();
    }
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (group, kind) = (text(&object["spec"]["group"]), text(&object["spec"]["names"]["kind"]));
    let versions = object["spec"]["versions"].as_array().into_iter().flatten();
    versions.map(|version| (format!("{group}/{}", text(&version["name"])), kind.clone())).collect()
}

/// Whether a field manager has applied this object.
fn applied_by(object: &Value, manager: &str) -> bool {
    let entries = object["metadata"]["managedFields"].as_array().into_iter().flatten();
    entries.into_iter().any(|entry| entry["manager"] == manager && entry["operation"] == "Apply")
}

/// Says what to do about a conflict.
fn conflict(error: Error) -> Error {
    if !error.is_conflict() {
        return error;
    }
    let Error::Refused { status } = &error else { return error };
    let causes = status["details"]["causes"].as_array().map(Vec::as_slice).unwrap_or_default();
    if !causes.iter().any(|cause| cause["reason"] == "FieldManagerConflict") {
        return error;
    }
    let message = status["message"].as_str().unwrap_or_default();
    say::note(
        "To take these fields over, use --force-conflicts; to leave them to their managers, remove them from the file.",
    );
    Error::failed(message)
}
