//! `events`: what controllers report.

use std::{collections::BTreeMap, time::Duration};

use clap::Args;
use k1s_object::time::Time;
use serde_json::{Value, json};

use crate::{
    Commands,
    api::{Error, JSON, Path},
    objects::{list, typed},
    print::{Output, hide_managed_fields, table::Aligned},
    say,
    session::{Access, Session, Target},
    verbs::watch::changes,
};

/// How often a folder is looked at.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// Options of `events`.
#[derive(Debug, Clone, Args)]
pub struct EventsArgs {
    /// Only about this object: TYPE/NAME.
    #[arg(long = "for", value_name = "TYPE/NAME")]
    for_: Option<String>,
    /// Only these types: Normal, Warning.
    #[arg(long, value_name = "TYPE", value_delimiter = ',')]
    types: Vec<String>,
    /// In all namespaces.
    #[arg(short = 'A', long)]
    all_namespaces: bool,
    /// Shows those that there are, and then new ones and those that happen again, until it is interrupted.
    #[arg(short, long)]
    watch: bool,
    /// Without the line of names.
    #[arg(long)]
    no_headers: bool,
    /// Output format: json, yaml, name, jsonpath=…, custom-columns=….
    #[arg(short, long, value_name = "FORMAT")]
    output: Option<String>,
    #[command(flatten)]
    target: Target,
}

pub(crate) async fn run(program: &Commands, args: &EventsArgs) -> Result<(), Error> {
    let output = Output::parse(args.output.as_deref(), !args.no_headers)?;
    let is_known = |type_: &String| ["Normal", "Warning"].iter().any(|one| one.eq_ignore_ascii_case(type_));
    if !args.types.iter().all(is_known) {
        return Err(Error::failed("valid --types are Normal or Warning"));
    }
    if args.watch {
        return watch(program, args, &output).await;
    }
    let session = Session::open(program, &args.target, Access::Read).await?;
    let events = async {
        let (path, fields) = selected(&session, args).await?;
        about(&session, path, &fields, &args.types).await
    };
    let events = events.await;
    let namespace = session.namespace.clone();
    let now = now(&session);
    session.close().await?;
    let (events, _) = events?;
    if !output.is_table() {
        let mut list =
            json!({"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""}, "items": events});
        hide_managed_fields(&mut list);
        say::print(&output.object(&list, None)?);
        return Ok(());
    }
    if events.is_empty() {
        say::note(&if args.all_namespaces {
            "No events found.".to_owned()
        } else {
            format!("No events found in {namespace} namespace.")
        });
        return Ok(());
    }
    let mut table = Table::new(args);
    events.iter().for_each(|event| table.add(event, now));
    say::table(&table.lines.flush(), !args.no_headers);
    Ok(())
}

/// Shows events as they come. One that has the same revision as before is not new.
async fn watch(program: &Commands, args: &EventsArgs, output: &Output) -> Result<(), Error> {
    let mut known: BTreeMap<String, String> = BTreeMap::new();
    let mut table = Table::new(args);
    let text = |event: &Value, field: &str| event["metadata"][field].as_str().unwrap_or_default().to_owned();
    let mut show = |event: &Value, now: Time| {
        if output.is_table() {
            table.add(event, now);
            say::print(&table.lines.flush());
            return Ok(());
        }
        let mut event = event.clone();
        hide_managed_fields(&mut event);
        say::print(&output.object(&event, None)?);
        Ok(())
    };
    loop {
        let session = Session::open(program, &args.target, Access::Read).await?;
        let env = session.env.clone();
        let (path, fields) = selected(&session, args).await?;
        let (events, mut revision) = about(&session, path.clone(), &fields, &args.types).await?;
        let mut current = BTreeMap::new();
        for event in &events {
            let (uid, version) = (text(event, "uid"), text(event, "resourceVersion"));
            if known.get(&uid) != Some(&version) {
                show(event, now(&session))?;
            }
            current.insert(uid, version);
        }
        known = current;
        while !session.is_folder() {
            let path = Path::new(path.clone()).with("fieldSelector", &fields);
            let changes = changes(&session, path, JSON, &mut revision, |changes| {
                for (kind, event) in changes {
                    // They end by themselves after an hour.
                    if kind != "DELETED" && is_of_type(&event, &args.types) {
                        known.insert(text(&event, "uid"), text(&event, "resourceVersion"));
                        show(&event, now(&session))?;
                    }
                }
                Ok(())
            });
            match changes.await {
                // The history from there on is gone: list again.
                Err(error) if error.is_expired() => break,
                ended => ended?,
            }
            // Servers end watches after some minutes.
            env.sleep(LOOK_AGAIN).await;
        }
        session.close().await?;
        env.sleep(LOOK_AGAIN).await;
    }
}

pub(crate) fn now(session: &Session) -> Time {
    let since = session.env.wall().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Time::from_unix(i64::try_from(since.as_secs()).unwrap_or(i64::MAX), since.subsec_nanos())
}

/// The path and the field selector of what was asked for.
async fn selected(session: &Session, args: &EventsArgs) -> Result<(String, String), Error> {
    let mut fields = Vec::new();
    if let Some(object) = &args.for_ {
        let resources = session.resources().await?;
        let (kind, name) = object
            .split_once('/')
            .ok_or_else(|| Error::failed(format!("--for {object}: it must be in TYPE/NAME form")))?;
        let resource = resources.named(kind)?;
        fields.push(format!("involvedObject.kind={}", resource.kind));
        fields.push(format!("involvedObject.apiVersion={}", resource.api_version()));
        fields.push(format!("involvedObject.name={name}"));
    }
    let path = if args.all_namespaces {
        "/api/v1/events".to_owned()
    } else {
        format!("/api/v1/namespaces/{}/events", session.namespace)
    };
    Ok((path, fields.join(",")))
}

fn is_of_type(event: &Value, types: &[String]) -> bool {
    let is = |type_: &String| event["type"].as_str().is_some_and(|one| one.eq_ignore_ascii_case(type_));
    types.is_empty() || types.iter().any(is)
}

/// Events, the oldest first, and the revision of the list.
async fn about(
    session: &Session,
    path: String,
    fields: &str,
    types: &[String],
) -> Result<(Vec<Value>, String), Error> {
    let path = Path::new(path).with("fieldSelector", fields);
    let list = list(&session.api, &path, JSON, "items").await?;
    let revision = list["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned();
    let mut events = typed(list);
    events.retain(|event| is_of_type(event, types));
    events.sort_by_key(|event| last(event).map(|time| (time.unix(), time.nanos())));
    Ok((events, revision))
}

/// The events of an object, for `describe`.
pub(crate) async fn of_object(session: &Session, object: &Value) -> Result<Vec<Value>, Error> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let metadata = &object["metadata"];
    let namespace = metadata["namespace"].as_str().unwrap_or("default");
    let fields = format!(
        "involvedObject.name={},involvedObject.uid={}",
        text(&metadata["name"]),
        text(&metadata["uid"])
    );
    let (events, _) = about(session, format!("/api/v1/namespaces/{namespace}/events"), &fields, &[]).await?;
    Ok(events)
}

fn time(value: &Value) -> Option<Time> {
    let text = value.as_str()?;
    Time::parse_micro(text).or_else(|_| Time::parse(text)).ok()
}

/// When it was last seen.
fn last(event: &Value) -> Option<Time> {
    time(&event["series"]["lastObservedTime"])
        .or_else(|| time(&event["lastTimestamp"]))
        .or_else(|| time(&event["eventTime"]))
        .or_else(|| time(&event["metadata"]["creationTimestamp"]))
}

/// `5m`, or `5m (x3 over 10m)`.
pub(crate) fn seen(event: &Value, now: Time) -> String {
    let ago =
        |time: Option<Time>| time.map_or_else(|| "<unknown>".to_owned(), |time| time.elapsed_at(now).human());
    let count = event["series"]["count"].as_i64().or_else(|| event["count"].as_i64()).unwrap_or(1);
    if count <= 1 {
        return ago(last(event));
    }
    let first = time(&event["firstTimestamp"]).or_else(|| time(&event["eventTime"]));
    format!("{} (x{count} over {})", ago(last(event)), ago(first))
}

/// The rows of events; the first one is preceded by the names of the columns.
struct Table {
    lines: Aligned,
    namespaces: bool,
    headed: bool,
}

impl Table {
    fn new(args: &EventsArgs) -> Table {
        Table { lines: Aligned::default(), namespaces: args.all_namespaces, headed: args.no_headers }
    }

    fn add(&mut self, event: &Value, now: Time) {
        if !self.headed {
            self.headed = true;
            let names = ["LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"].map(str::to_owned).to_vec();
            self.row(names, "NAMESPACE".to_owned());
        }
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let object = &event["involvedObject"];
        let cells = vec![
            seen(event, now),
            text(&event["type"]),
            text(&event["reason"]),
            format!("{}/{}", text(&object["kind"]), text(&object["name"])),
            text(&event["message"]).trim().to_owned(),
        ];
        self.row(cells, text(&event["metadata"]["namespace"]));
    }

    fn row(&mut self, mut cells: Vec<String>, namespace: String) {
        if self.namespaces {
            cells.insert(0, namespace);
        }
        self.lines.row(cells);
    }
}
