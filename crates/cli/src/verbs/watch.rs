//! `get -w` and `watch`: objects as they change.
//!
//! On a server this is a watch. A folder without a server is opened again and again, and compared: to keep it open would keep
//! everybody else from changing it.

use std::{collections::BTreeMap, time::Duration};

use futures_util::StreamExt as _;
use http::Method;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};

use crate::{
    Commands,
    api::{Error, JSON, Path, TABLE},
    objects::{Wanted, list, typed},
    print::{
        Output, hide_managed_fields,
        table::{Aligned, TableOptions, header, row},
    },
    say,
    session::{Access, Session},
    verbs::get::GetArgs,
};

/// How often a folder is looked at.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

pub(crate) async fn run(program: &Commands, args: &GetArgs, output: &Output) -> Result<(), Error> {
    let session = Session::open(program, &args.target, Access::Read).await?;
    let resources = session.resources().await?;
    let wanted = args.objects.resolve(&session, &resources)?;
    let one = match wanted.as_slice() {
        [one] => one.clone(),
        _ => return Err(Error::failed("you may only specify a single resource type")),
    };
    let mut shown = Shown::new(args, output, &one);
    if !session.is_folder() {
        return follow(&session, args, &one, &mut shown).await;
    }
    let mut session = Some(session);
    let mut first = !args.watch_only;
    let mut known: BTreeMap<(String, String), Value> = BTreeMap::new();
    let mut begun = false;
    loop {
        let open = match session.take() {
            Some(open) => open,
            None => Session::open(program, &args.target, Access::Read).await?,
        };
        if !open.is_folder() {
            // A server has it open now.
            return follow(&open, args, &one, &mut shown).await;
        }
        let env = open.env.clone();
        let read = read(&open, args, &one, shown.table).await;
        open.close().await?;
        let (shape, entries) = read?;
        shown.compare(&shape, &mut known, entries, begun || first)?;
        (first, begun) = (true, true);
        env.sleep(LOOK_AGAIN).await;
    }
}

type Key = (String, String);

/// The objects, or rows of a table, as they are now.
async fn read(
    session: &Session,
    args: &GetArgs,
    one: &Wanted,
    table: bool,
) -> Result<(Value, BTreeMap<Key, Value>), Error> {
    let (path, accept) = (args.path(one), if table { TABLE } else { JSON });
    let answer = match one.name {
        Some(_) => session.api.get(path, accept).await,
        None => list(&session.api, &path, accept, if table { "rows" } else { "items" }).await,
    };
    let mut answer = match answer {
        Ok(answer) => answer,
        Err(error) if error.is_not_found() && one.name.is_some() => {
            return Ok((Value::Null, BTreeMap::new()));
        }
        Err(error) => return Err(error),
    };
    let entries = match (table, &one.name) {
        (true, _) => match answer["rows"].take() {
            Value::Array(rows) => rows,
            _ => Vec::new(),
        },
        (false, Some(_)) => vec![answer.clone()],
        (false, None) => typed(answer.clone()),
    };
    let key = |entry: &Value| {
        let object = if table { &entry["object"] } else { entry };
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
        (text("namespace"), text("name"))
    };
    Ok((answer, entries.into_iter().map(|entry| (key(&entry), entry)).collect()))
}

/// Lists, then watches until the server or the user ends it.
async fn follow(session: &Session, args: &GetArgs, one: &Wanted, shown: &mut Shown<'_>) -> Result<(), Error> {
    let accept = if shown.table { TABLE } else { JSON };
    let (shape, entries) = match &one.name {
        None => read(session, args, one, shown.table).await?,
        Some(_) => {
            // A named object that does not exist is an error, as without a watch.
            session.api.get(args.path(one), JSON).await?;
            read(session, args, one, shown.table).await?
        }
    };
    let mut revision = shape["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned();
    if !args.watch_only {
        for entry in entries.values() {
            shown.show(&shape, entry, "ADDED")?;
        }
        shown.flush();
    }
    let named = one.name.as_ref().map(|name| format!("metadata.name={name}"));
    let fields =
        [args.objects.field_selector.clone(), named].into_iter().flatten().collect::<Vec<_>>().join(",");
    loop {
        let namespace = (!args.objects.all_namespaces).then_some(one.namespace.as_str());
        let path = Path::new(one.resource.collection(namespace))
            .with("labelSelector", args.objects.selector.as_deref().unwrap_or_default())
            .with("fieldSelector", &fields);
        let mut shape = Value::Null;
        changes(session, path, accept, &mut revision, |events| {
            for (kind, mut object) in events {
                if !shown.table {
                    shown.show(&Value::Null, &object, &kind)?;
                    continue;
                }
                let rows = object["rows"].take();
                if object["columnDefinitions"].as_array().is_some_and(|columns| !columns.is_empty()) {
                    shape = object;
                }
                for row in rows.as_array().into_iter().flatten() {
                    shown.show(&shape, row, &kind)?;
                }
            }
            shown.flush();
            Ok(())
        })
        .await?;
        // Servers end watches after some minutes.
        session.env.sleep(LOOK_AGAIN).await;
    }
}

/// One watch of a collection from a revision on, until its connection ends. `show` gets the types and objects, or tables, of
/// events that arrived together; `revision` is then that of the last one, where the next watch continues.
pub(crate) async fn changes(
    session: &Session,
    path: Path,
    accept: &str,
    revision: &mut String,
    mut show: impl FnMut(Vec<(String, Value)>) -> Result<(), Error>,
) -> Result<(), Error> {
    let path =
        path.with("watch", "true").with("allowWatchBookmarks", "true").with("resourceVersion", revision);
    let response = session.api.open(Method::GET, path, accept, None).await?;
    let mut body = response.into_body().into_data_stream();
    let mut buffer: Vec<u8> = Vec::new();
    while let Some(Ok(chunk)) = body.next().await {
        buffer.extend_from_slice(&chunk);
        let mut events = Vec::new();
        while let Some(end) = buffer.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = buffer.drain(..=end).collect();
            let mut event: Value = serde_json::from_slice(&line)
                .map_err(|error| Error::failed(format!("the watch's answer is not JSON: {error}")))?;
            let kind = event["type"].as_str().unwrap_or_default().to_owned();
            let object = event["object"].take();
            if kind == "ERROR" {
                show(events)?;
                return Err(Error::Refused { status: object });
            }
            // That of a table is in its rows.
            let rows = object["rows"].as_array().into_iter().flatten();
            let newest = rows.rev().find_map(|row| version(&row["object"])).or_else(|| version(&object));
            *revision = newest.unwrap_or_else(|| std::mem::take(revision));
            if kind != "BOOKMARK" {
                events.push((kind, object));
            }
        }
        show(events)?;
    }
    Ok(())
}

fn version(object: &Value) -> Option<String> {
    let version = object["metadata"]["resourceVersion"].as_str()?;
    (!version.is_empty()).then(|| version.to_owned())
}

/// What was printed so far.
struct Shown<'a> {
    output: &'a Output,
    options: TableOptions,
    lines: Aligned,
    headed: bool,
    managed: bool,
    table: bool,
}

impl<'a> Shown<'a> {
    fn new(args: &GetArgs, output: &'a Output, one: &Wanted) -> Shown<'a> {
        Shown {
            output,
            options: args.table_options(output, one, false),
            lines: Aligned::default(),
            headed: args.show.no_headers,
            managed: args.show.show_managed_fields,
            table: output.is_table(),
        }
    }

    fn show(&mut self, shape: &Value, entry: &Value, event: &str) -> Result<(), Error> {
        if self.table {
            if !self.headed {
                self.headed = true;
                self.lines.row(header(shape, &self.options));
            }
            self.options.event = Some(event.to_owned());
            self.lines.row(row(shape, entry, &self.options));
            return Ok(());
        }
        let mut object = entry.clone();
        if !self.managed {
            hide_managed_fields(&mut object);
        }
        if self.options.show_event {
            object = json!({"type": event, "object": object});
        }
        if matches!(self.output, Output::Yaml) && self.headed {
            say::print("---\n");
        }
        self.headed = true;
        say::print(&self.output.object(&object, None)?);
        Ok(())
    }

    fn flush(&mut self) {
        let text = self.lines.flush();
        if !text.is_empty() {
            say::print(&text);
        }
    }

    /// Shows what is new, changed or gone.
    fn compare(
        &mut self,
        shape: &Value,
        known: &mut BTreeMap<Key, Value>,
        now: BTreeMap<Key, Value>,
        show: bool,
    ) -> Result<(), Error> {
        let identity = |entry: &Value, table: bool| {
            let object = if table { &entry["object"] } else { entry };
            object["metadata"]["resourceVersion"].clone()
        };
        for (key, entry) in &now {
            let event = match known.get(key) {
                Some(before) if identity(before, self.table) == identity(entry, self.table) => continue,
                Some(_) => "MODIFIED",
                None => "ADDED",
            };
            if show {
                self.show(shape, entry, event)?;
            }
        }
        for (key, entry) in known.iter().filter(|(key, _)| !now.contains_key(*key)) {
            let _ = key;
            if show {
                self.show(shape, entry, "DELETED")?;
            }
        }
        *known = now;
        self.flush();
        Ok(())
    }
}
