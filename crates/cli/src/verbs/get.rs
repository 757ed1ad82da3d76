//! `get`: tables and objects, once or as they change.

use clap::Args;
use serde_json::{Value, json};

use crate::{
    Commands,
    api::{Error, JSON, Path, TABLE},
    objects::{ObjectArgs, Wanted, list, typed},
    print::{
        Output, hide_managed_fields,
        sort::sort_by,
        table::{Aligned, TableOptions, header, row},
    },
    say,
    session::{Access, Session, Target},
    verbs::watch,
};

/// Options of `get`.
#[derive(Debug, Clone, Args)]
pub struct GetArgs {
    #[command(flatten)]
    pub(crate) objects: ObjectArgs,
    #[command(flatten)]
    pub(crate) show: ShowArgs,
    /// Watches for changes after listing.
    #[arg(short = 'w', long)]
    pub(crate) watch: bool,
    /// Watches for changes without listing first.
    #[arg(long)]
    pub(crate) watch_only: bool,
    /// Shows the type of each event of a watch.
    #[arg(long)]
    pub(crate) output_watch_events: bool,
    /// Is silent about objects that do not exist, with exit code 0.
    #[arg(long)]
    pub(crate) ignore_not_found: bool,
    /// The subresource to get: status, scale.
    #[arg(long, value_name = "NAME")]
    pub(crate) subresource: Option<String>,
    /// Prints what the server has at this path, as it is.
    #[arg(long, value_name = "PATH", conflicts_with_all = ["what", "filenames"])]
    pub(crate) raw: Option<String>,
    #[command(flatten)]
    pub(crate) target: Target,
}

/// How objects are shown.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ShowArgs {
    /// Output format: wide, json, yaml, name, jsonpath=…, jsonpath-as-json=…, jsonpath-file=…, custom-columns=….
    #[arg(short, long, value_name = "FORMAT")]
    pub(crate) output: Option<String>,
    /// Without the line of names above a table.
    #[arg(long)]
    pub(crate) no_headers: bool,
    /// Adds a column with all labels.
    #[arg(long)]
    pub(crate) show_labels: bool,
    /// Adds a column for each of these labels.
    #[arg(short = 'L', long, value_name = "LABEL", value_delimiter = ',')]
    pub(crate) label_columns: Vec<String>,
    /// Prints names with their types.
    #[arg(long)]
    pub(crate) show_kind: bool,
    /// Sorts by a field: `.metadata.creationTimestamp`.
    #[arg(long, value_name = "PATH")]
    pub(crate) sort_by: Option<String>,
    /// Shows metadata.managedFields as well.
    #[arg(long)]
    pub(crate) show_managed_fields: bool,
}

pub(crate) async fn run(program: &Commands, args: &GetArgs) -> Result<(), Error> {
    let output = Output::parse(args.show.output.as_deref(), !args.show.no_headers)?;
    if args.watch || args.watch_only {
        return watch::run(program, args, &output).await;
    }
    let session = Session::open(program, &args.target, Access::Read).await?;
    let done = once(&session, args, &output).await;
    session.close().await?;
    done
}

async fn once(session: &Session, args: &GetArgs, output: &Output) -> Result<(), Error> {
    if let Some(path) = &args.raw {
        if !path.starts_with('/') {
            return Err(Error::failed(format!(
                "--raw must be a valid URL path: parse {path:?}: invalid URI for request"
            )));
        }
        say::print(&session.api.text(Path::new(path.as_str())).await?);
        return Ok(());
    }
    let resources = session.resources().await?;
    let wanted = args.objects.resolve(session, &resources)?;
    let errors = if output.is_table() {
        tables(session, args, output, &wanted).await?
    } else {
        objects(session, args, output, &wanted).await?
    };
    Error::all(errors)
}

impl GetArgs {
    /// The path of named objects, or of a list.
    pub(crate) fn path(&self, one: &Wanted) -> Path {
        match (&one.name, &self.subresource) {
            (Some(_), Some(subresource)) => Path::new(format!("{}/{subresource}", one.path())),
            (Some(_), None) => Path::new(one.path()),
            (None, _) => self.objects.list_path(one),
        }
    }

    pub(crate) fn table_options(&self, output: &Output, one: &Wanted, several: bool) -> TableOptions {
        TableOptions {
            wide: matches!(output, Output::Table { wide: true }),
            headers: !self.show.no_headers,
            namespace: self.objects.all_namespaces && one.resource.namespaced,
            kind: (several || self.show.show_kind).then(|| one.resource.group_kind()),
            show_labels: self.show.show_labels,
            label_columns: self.show.label_columns.clone(),
            event: None,
            show_event: self.output_watch_events,
        }
    }

    fn keep(&self, error: Error, errors: &mut Vec<Error>) {
        if !(self.ignore_not_found && error.is_not_found()) {
            errors.push(error);
        }
    }
}

async fn tables(
    session: &Session,
    args: &GetArgs,
    output: &Output,
    wanted: &[Wanted],
) -> Result<Vec<Error>, Error> {
    let mut errors = Vec::new();
    let several = wanted.iter().any(|one| one.resource != wanted[0].resource);
    let include = if args.show.sort_by.is_some() { "Object" } else { "" };
    // Consecutive objects of a resource share a table.
    let mut printed = false;
    let mut rest = wanted;
    while let Some(first) = rest.first() {
        let count = rest.iter().take_while(|one| one.resource == first.resource).count();
        let (block, more) = rest.split_at(count);
        rest = more;
        let (mut shape, mut rows) = (Value::Null, Vec::new());
        for one in block {
            let path = args.path(one).with("includeObject", include);
            let answer = match one.name {
                Some(_) => session.api.get(path, TABLE).await,
                None => list(&session.api, &path, TABLE, "rows").await,
            };
            match answer {
                Ok(mut table) => {
                    if let Value::Array(more) = table["rows"].take() {
                        rows.extend(more);
                    }
                    shape = table;
                }
                Err(error) => args.keep(error, &mut errors),
            }
        }
        if rows.is_empty() {
            continue;
        }
        if let Some(path) = &args.show.sort_by {
            sort_by(&mut rows, path, |row| &row["object"])?;
        }
        let options = args.table_options(output, first, several);
        let mut lines = Aligned::default();
        if options.headers {
            lines.row(header(&shape, &options));
        }
        for one in &rows {
            lines.row(row(&shape, one, &options));
        }
        if printed && options.headers {
            say::line("");
        }
        say::table(&lines.flush(), options.headers);
        printed = true;
    }
    if !printed && errors.is_empty() && !args.ignore_not_found {
        if wanted.iter().all(|one| one.resource.namespaced) && !args.objects.all_namespaces {
            say::note(&format!("No resources found in {} namespace.", session.namespace));
        } else {
            say::note("No resources found");
        }
    }
    Ok(errors)
}

async fn objects(
    session: &Session,
    args: &GetArgs,
    output: &Output,
    wanted: &[Wanted],
) -> Result<Vec<Error>, Error> {
    let (mut found, mut errors) = (Vec::new(), Vec::new());
    for one in wanted {
        let answer = match one.name {
            Some(_) => session.api.get(args.path(one), JSON).await.map(|object| vec![object]),
            None => list(&session.api, &args.path(one), JSON, "items").await.map(typed),
        };
        match answer {
            Ok(objects) => found.extend(objects),
            Err(error) => args.keep(error, &mut errors),
        }
    }
    if let Some(path) = &args.show.sort_by {
        sort_by(&mut found, path, |object| object)?;
    }
    let single = matches!(wanted, [Wanted { name: Some(_), .. }]);
    let mut whole = match found.len() {
        1 if single => found.remove(0),
        // Nothing was found, and that is an error, or of no interest.
        0 if wanted.iter().all(|one| one.name.is_some()) => return Ok(errors),
        _ => json!({"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""}, "items": found}),
    };
    if !args.show.show_managed_fields {
        hide_managed_fields(&mut whole);
    }
    say::print(&output.object(&whole, None)?);
    Ok(errors)
}
