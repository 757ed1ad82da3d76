//! `events`: what controllers report.

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
};

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
    let session = Session::open(program, &args.target, Access::Read).await?;
    let events = events_of(&session, args).await;
    let namespace = session.namespace.clone();
    let now = now(&session);
    session.close().await?;
    let events = events?;
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
    say::table(&table(&events, args.all_namespaces, args.no_headers, now), !args.no_headers);
    Ok(())
}

pub(crate) fn now(session: &Session) -> Time {
    let since = session.env.wall().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Time::from_unix(i64::try_from(since.as_secs()).unwrap_or(i64::MAX), since.subsec_nanos())
}

async fn events_of(session: &Session, args: &EventsArgs) -> Result<Vec<Value>, Error> {
    let mut fields = Vec::new();
    if let Some(object) = &args.for_ {
        let resources = session.resources().await?;
        let (kind, name) = object
            .split_once('/')
            .ok_or_else(|| Error::failed(format!("--for {object}: write it as TYPE/NAME")))?;
        let resource = resources.named(kind)?;
        fields.push(format!("involvedObject.kind={}", resource.kind));
        fields.push(format!("involvedObject.name={name}"));
    }
    let path = if args.all_namespaces {
        "/api/v1/events".to_owned()
    } else {
        format!("/api/v1/namespaces/{}/events", session.namespace)
    };
    about(session, path, &fields.join(","), &args.types).await
}

/// Events, the oldest first.
async fn about(session: &Session, path: String, fields: &str, types: &[String]) -> Result<Vec<Value>, Error> {
    let path = Path::new(path).with("fieldSelector", fields);
    let mut events = typed(list(&session.api, &path, JSON, "items").await?);
    let wanted = |event: &Value| {
        types.is_empty()
            || types
                .iter()
                .any(|type_| event["type"].as_str().is_some_and(|one| one.eq_ignore_ascii_case(type_)))
    };
    events.retain(wanted);
    events.sort_by_key(|event| last(event).map(|time| (time.unix(), time.nanos())));
    Ok(events)
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
    about(session, format!("/api/v1/namespaces/{namespace}/events"), &fields, &[]).await
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

fn table(events: &[Value], namespaces: bool, no_headers: bool, now: Time) -> String {
    let mut lines = Aligned::default();
    let row = |mut cells: Vec<String>, namespace: String| {
        if namespaces {
            cells.insert(0, namespace);
        }
        cells
    };
    if !no_headers {
        let names = ["LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"].map(str::to_owned).to_vec();
        lines.row(row(names, "NAMESPACE".to_owned()));
    }
    for event in events {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let object = &event["involvedObject"];
        let cells = vec![
            seen(event, now),
            text(&event["type"]),
            text(&event["reason"]),
            format!("{}/{}", text(&object["kind"]), text(&object["name"])),
            text(&event["message"]).trim().to_owned(),
        ];
        lines.row(row(cells, text(&event["metadata"]["namespace"])));
    }
    lines.flush()
}
