//! `patch`, `label`, `annotate` and `scale`: small changes of objects.

use clap::Args;
use http::Method;
use k1s_object::patch::{self as patches, PatchError};
use serde_json::{Map, Value, json};

use crate::{
    Commands,
    api::{Error, JSON, Path},
    files::FileArgs,
    objects::{ObjectArgs, Wanted},
    print::{DryRun, PrintArgs, Printer},
    progress::Progress,
    say,
    session::{Access, Session, Target, read},
};

const MERGE: &str = "application/merge-patch+json";

/// What the commands here have in common.
#[derive(Debug, Clone, Args)]
pub(crate) struct Common {
    /// The manager that owns the changed fields.
    #[arg(long, value_name = "NAME")]
    field_manager: Option<String>,
    /// Only shows what would be done.
    #[arg(long, value_enum, num_args = 0..=1, require_equals = true, default_value = "none", default_missing_value = "client")]
    dry_run: DryRun,
    #[command(flatten)]
    print: PrintArgs,
    #[command(flatten)]
    target: Target,
}

/// Options of `patch`.
#[derive(Debug, Clone, Args)]
pub struct PatchArgs {
    /// `TYPE NAME` or `TYPE/NAME`.
    #[arg(value_name = "TYPE|TYPE/NAME")]
    what: Vec<String>,
    #[command(flatten)]
    files: FileArgs,
    /// The patch, as JSON or YAML.
    #[arg(short, long, required_unless_present = "patch_file")]
    patch: Option<String>,
    /// A file with the patch.
    #[arg(long, value_name = "FILE", conflicts_with = "patch")]
    patch_file: Option<String>,
    /// The kind of patch.
    #[arg(long = "type", value_enum, default_value = "strategic")]
    type_: PatchType,
    /// The subresource to patch: status, scale.
    #[arg(long, value_name = "NAME")]
    subresource: Option<String>,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum PatchType {
    /// JSON Patch: a list of operations.
    Json,
    /// JSON merge patch.
    Merge,
    /// Merge patch that knows lists of the built-in kinds.
    Strategic,
}

/// Options of `label` and `annotate`.
#[derive(Debug, Clone, Args)]
pub struct LabelArgs {
    /// `TYPE NAME` or `TYPE/NAME`, then `KEY=VALUE` to set and `KEY-` to remove.
    #[arg(value_name = "TYPE|TYPE/NAME|KEY=VALUE|KEY-")]
    words: Vec<String>,
    #[command(flatten)]
    files: FileArgs,
    /// Only objects with these labels.
    #[arg(short = 'l', long, value_name = "LABELS")]
    selector: Option<String>,
    /// In all namespaces.
    #[arg(short = 'A', long)]
    all_namespaces: bool,
    /// All objects of the types.
    #[arg(long)]
    all: bool,
    /// Changes values that are there.
    #[arg(long)]
    overwrite: bool,
    /// Shows the values instead.
    #[arg(long)]
    list: bool,
    #[command(flatten)]
    common: Common,
}

/// Options of `scale`.
#[derive(Debug, Clone, Args)]
pub struct ScaleArgs {
    #[command(flatten)]
    objects: ObjectArgs,
    /// All objects of the types.
    #[arg(long)]
    all: bool,
    /// The new number of replicas.
    #[arg(long, value_name = "NUMBER")]
    replicas: i32,
    /// Scales only from this number.
    #[arg(long, value_name = "NUMBER")]
    current_replicas: Option<i64>,
    #[command(flatten)]
    common: Common,
}

/// A session of a command that writes, and what it has opened it for.
struct Change<'a> {
    common: &'a Common,
    session: Session,
    printer: Printer,
    manager: String,
}

impl<'a> Change<'a> {
    async fn open(program: &Commands, common: &'a Common, verb: &str) -> Result<Change<'a>, Error> {
        let printer = common.print.printer(common.dry_run)?;
        let session = Session::open(program, &common.target, Access::Write).await?;
        let default = format!("{}-{verb}", program.name);
        let manager = common.field_manager.clone().unwrap_or(default);
        Ok(Change { common, session, printer, manager })
    }

    async fn close(self, program: &Commands, done: Result<(), Error>) -> Result<(), Error> {
        self.session.finish(program, done).await
    }

    /// Sends a patch. A dry run in the client only reads.
    async fn send(&self, path: String, media: &str, patch: &Value) -> Result<Value, Error> {
        let path = Path::new(path)
            .with("fieldManager", &self.manager)
            .with("dryRun", self.common.dry_run.parameter());
        self.session.api.send(Method::PATCH, path, JSON, Some((media, patch.to_string().into_bytes()))).await
    }

    /// The objects that a command is about; without any, an error.
    async fn objects(&self, objects: &ObjectArgs) -> Result<(Vec<(Wanted, Value)>, Vec<Error>), Error> {
        let resources = self.session.resources().await?;
        let wanted = objects.resolve(&self.session, &resources)?;
        let (found, errors) = objects.fetch(&self.session.api, &wanted).await;
        if found.is_empty() && errors.is_empty() {
            say::note("No resources found");
        }
        Ok((found, errors))
    }
}

pub(crate) async fn patch(program: &Commands, args: &PatchArgs) -> Result<(), Error> {
    let text = match (&args.patch, &args.patch_file) {
        (Some(text), _) => text.clone(),
        (None, Some(file)) => read(file)?,
        (None, None) => return Err(Error::failed("must specify -p or --patch-file to patch")),
    };
    let patch = k1s_object::yaml::decode(text.as_bytes())
        .map_err(|error| Error::failed(format!("unable to parse {text:?}: {error}")))?
        .value;
    let change = Change::open(program, &args.common, "patch").await?;
    let done = patch_all(&change, args, &patch).await;
    change.close(program, done).await
}

async fn patch_all(change: &Change<'_>, args: &PatchArgs, patch: &Value) -> Result<(), Error> {
    let objects = ObjectArgs { what: args.what.clone(), files: args.files.clone(), ..ObjectArgs::default() };
    if objects.files.is_empty()
        && objects.what.len() < 2
        && !objects.what.iter().any(|what| what.contains('/'))
    {
        return Err(Error::failed("resource(s) were provided, but no name was specified"));
    }
    let (found, mut errors) = change.objects(&objects).await?;
    let media = match args.type_ {
        PatchType::Json => "application/json-patch+json",
        PatchType::Merge => MERGE,
        PatchType::Strategic => "application/strategic-merge-patch+json",
    };
    let mut progress = Progress::new(&change.session.env, found.len());
    for (one, before) in found {
        progress.step("patched");
        let path = match &args.subresource {
            Some(subresource) => format!("{}/{subresource}", one.path()),
            None => one.path(),
        };
        if args.common.dry_run == DryRun::Client {
            let before = match &args.subresource {
                Some(_) => change.session.api.get(Path::new(path), JSON).await,
                None => Ok(before),
            };
            match before.and_then(|before| Ok((patched(args.type_, &before, patch)?, before))) {
                Ok((after, before)) => {
                    change.printer.print(&after, if after == before { UNCHANGED } else { "patched" })?;
                }
                Err(error) => errors.push(error),
            }
            continue;
        }
        match change.send(path, media, patch).await {
            Ok(after) => {
                let version = |object: &Value| object["metadata"]["resourceVersion"].clone();
                let unchanged = version(&before) == version(&after) && args.common.dry_run == DryRun::None;
                change.printer.print(&after, if unchanged { UNCHANGED } else { "patched" })?;
            }
            Err(error) => errors.push(error),
        }
    }
    Error::all(errors)
}

const UNCHANGED: &str = "patched (no change)";

/// An object with a patch, without the server: what `--dry-run=client` shows.
fn patched(type_: PatchType, before: &Value, patch: &Value) -> Result<Value, Error> {
    let failed = |error: PatchError| Error::failed(error.to_string());
    let mut after = before.clone();
    match type_ {
        PatchType::Json => {
            let patch = patches::json::parse(patch.to_string().as_bytes(), false).map_err(failed)?;
            patch.apply(&mut after).map_err(failed)?;
        }
        PatchType::Merge => {
            patches::merge::check(patch, false).map_err(failed)?;
            patches::merge::apply(&mut after, patch.clone());
        }
        PatchType::Strategic => {
            let text = |field: &str| before[field].as_str().unwrap_or_default();
            let (version, kind) = (text("apiVersion"), text("kind"));
            let (group, version) = version.split_once('/').unwrap_or(("", version));
            let Some(known) = k1s_kinds::body(group, version, kind) else {
                return Err(Error::failed(format!(
                    "strategic merge patch is not supported for {group}/{version}, Kind={kind} locally, try --type merge"
                )));
            };
            let schema = k1s_kinds::patch::PatchType::of(known);
            patches::strategic::apply(&mut after, patch.clone(), schema).map_err(failed)?;
        }
    }
    Ok(after)
}

/// Labels or annotations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Field {
    Labels,
    Annotations,
}

impl Field {
    fn name(self) -> &'static str {
        match self {
            Field::Labels => "labels",
            Field::Annotations => "annotations",
        }
    }
}

pub(crate) async fn label(program: &Commands, args: &LabelArgs, field: Field) -> Result<(), Error> {
    let verb = if field == Field::Labels { "label" } else { "annotate" };
    let is_change = |word: &&String| word.contains('=') || word.ends_with('-');
    let (changes, what): (Vec<&String>, Vec<&String>) = args.words.iter().partition(is_change);
    let what: Vec<String> = what.into_iter().cloned().collect();
    let mut set = Map::new();
    let mut removed = Vec::new();
    for change in changes {
        match change.split_once('=') {
            Some((key, value)) => drop(set.insert(key.to_owned(), value.into())),
            None => removed.push(change.trim_end_matches('-').to_owned()),
        }
    }
    if let Some(both) = removed.iter().find(|key| set.contains_key(*key)) {
        return Err(Error::failed(format!(
            "can not both modify and remove {} in the same command: {both}",
            field.name()
        )));
    }
    if set.is_empty() && removed.is_empty() && !args.list {
        return Err(Error::failed(format!("at least one {verb} update is required: KEY=VALUE or KEY-")));
    }
    let named = what.len() > 1 || what.iter().any(|word| word.contains('/'));
    if !named && args.selector.is_none() && !args.all && args.files.is_empty() && !args.list {
        return Err(Error::failed(
            "one or more resources must be specified as <resource> <name> or <resource>/<name>",
        ));
    }
    let objects = ObjectArgs {
        what,
        files: args.files.clone(),
        selector: args.selector.clone(),
        field_selector: None,
        all_namespaces: args.all_namespaces,
    };
    let change = Change::open(program, &args.common, verb).await?;
    let done = label_all(&change, args, &objects, field, &Update { set, removed }).await;
    change.close(program, done).await
}

struct Update {
    set: Map<String, Value>,
    removed: Vec<String>,
}

async fn label_all(
    change: &Change<'_>,
    args: &LabelArgs,
    objects: &ObjectArgs,
    field: Field,
    update: &Update,
) -> Result<(), Error> {
    let (found, mut errors) = change.objects(objects).await?;
    let mut progress = Progress::new(&change.session.env, found.len());
    for (one, before) in found {
        progress.step("changed");
        let current = &before["metadata"][field.name()];
        if args.list {
            let mut indent = "";
            if !objects.is_of_one() {
                indent = " ";
                let (kind, group) = (&one.resource.kind, &one.resource.group);
                let name = one.name.as_deref().unwrap_or_default();
                say::line(&format!("Listing {} for {kind}.{group}/{name}:", field.name()));
            }
            for (key, value) in current.as_object().into_iter().flatten() {
                say::line(&format!("{indent}{key}={}", value.as_str().unwrap_or_default()));
            }
            continue;
        }
        if !args.overwrite
            && let Some((key, value)) = update
                .set
                .iter()
                .find_map(|(key, value)| Some((key, current[key].as_str().filter(|now| *value != **now)?)))
        {
            let taken = format!("'{key}' already has a value ({value})");
            errors.push(Error::failed(match field {
                Field::Labels => format!("{taken}, and --overwrite is false"),
                Field::Annotations => {
                    format!("--overwrite is false but found the following declared annotation(s): {taken}")
                }
            }));
            continue;
        }
        let mut values = update.set.clone();
        for key in &update.removed {
            if current[key].is_null() && field == Field::Labels {
                say::line(&format!("label {key:?} not found."));
            }
            values.insert(key.clone(), Value::Null);
        }
        let changes = values.iter().any(|(key, value)| current[key] != *value);
        let patch = json!({"metadata": {field.name(): values}});
        let after = if args.common.dry_run == DryRun::Client {
            let mut after = before.clone();
            patches::merge::apply(&mut after, patch);
            Ok(after)
        } else {
            change.send(one.path(), MERGE, &patch).await
        };
        let operation = match field {
            Field::Annotations => "annotated",
            Field::Labels if !changes => "not labeled",
            Field::Labels if update.set.is_empty() && !args.overwrite => "unlabeled",
            Field::Labels => "labeled",
        };
        match after {
            Ok(after) => change.printer.print(&after, operation)?,
            Err(error) => errors.push(error),
        }
    }
    Error::all(errors)
}

pub(crate) async fn scale(program: &Commands, args: &ScaleArgs) -> Result<(), Error> {
    if args.replicas < 0 {
        return Err(Error::failed(
            "The --replicas=COUNT flag is required, and COUNT must be greater than or equal to 0",
        ));
    }
    let change = Change::open(program, &args.common, "scale").await?;
    let done = scale_all(&change, args).await;
    change.close(program, done).await
}

async fn scale_all(change: &Change<'_>, args: &ScaleArgs) -> Result<(), Error> {
    let what = &args.objects.what;
    let named =
        what.len() > 1 || what.iter().any(|what| what.contains('/')) || !args.objects.files.is_empty();
    if !named && !args.all && args.objects.selector.is_none() {
        return Err(Error::failed("resource(s) were provided, but no name was specified; use --all or -l"));
    }
    let (found, mut errors) = change.objects(&args.objects).await?;
    let mut progress = Progress::new(&change.session.env, found.len());
    for (one, object) in found {
        progress.step("scaled");
        let path = format!("{}/scale", one.path());
        let mut patch = json!({"spec": {"replicas": args.replicas}});
        let scaled = async {
            if let Some(expected) = args.current_replicas {
                let scale = change.session.api.get(Path::new(path.clone()), JSON).await?;
                let now = scale["spec"]["replicas"].as_i64().unwrap_or_default();
                if now != expected {
                    return Err(Error::failed(format!("Expected replicas to be {expected}, was {now}")));
                }
                patch["metadata"] = json!({"resourceVersion": scale["metadata"]["resourceVersion"]});
            }
            if args.common.dry_run == DryRun::Client {
                return Ok(());
            }
            change.send(path, MERGE, &patch).await.map(drop)
        };
        match scaled.await {
            Ok(()) => change.printer.print(&object, "scaled")?,
            Err(error) => errors.push(error),
        }
    }
    Error::all(errors)
}
