//! `wait`: until a condition, a field, or the end of objects.

use std::time::Duration;

use clap::Args;
use futures_util::StreamExt as _;
use http::Method;
use http_body_util::BodyExt as _;
use k1s::env::Instant;
use k1s_object::jsonpath::{JsonPath, print};
use serde_json::Value;

use crate::{
    Commands,
    api::{Error, JSON, Path},
    objects::{ObjectArgs, Wanted},
    print::{DryRun, PrintArgs, columns::relaxed},
    progress::noticed,
    session::{Access, Session, Target},
    verbs::duration,
};

/// Options of `wait`.
#[derive(Debug, Clone, Args)]
pub struct WaitArgs {
    #[command(flatten)]
    objects: ObjectArgs,
    /// All objects of the types.
    #[arg(long)]
    all: bool,
    /// condition=NAME[=VALUE], jsonpath='{PATH}'[=VALUE], create or delete.
    #[arg(long = "for", value_name = "WHAT")]
    for_: String,
    /// How long to wait for each object; 0 looks once, a negative one (-1s) waits for a week.
    #[arg(long, value_name = "DURATION", default_value = "30s", allow_hyphen_values = true)]
    timeout: String,
    #[command(flatten)]
    print: PrintArgs,
    #[command(flatten)]
    target: Target,
}

const A_WEEK: Duration = Duration::from_secs(7 * 24 * 3600);
/// How often it is looked for something that cannot be watched.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

#[derive(Debug)]
enum For {
    Create,
    Delete,
    Condition { name: String, value: String },
    JsonPath { path: JsonPath, value: Option<String> },
}

impl For {
    fn parse(text: &str) -> Result<For, Error> {
        match text.split_once('=') {
            None if text.eq_ignore_ascii_case("delete") => Ok(For::Delete),
            None if text.eq_ignore_ascii_case("create") => Ok(For::Create),
            Some(("condition", condition)) => {
                let (name, value) = condition.split_once('=').unwrap_or((condition, "true"));
                Ok(For::Condition { name: name.to_lowercase(), value: value.to_lowercase() })
            }
            Some(("jsonpath", rest)) => {
                // The path ends with its brace; a value may contain anything.
                let (path, value) = match rest.rfind('}') {
                    Some(end) => rest.split_at(end + 1),
                    None => rest.split_once('=').map_or((rest, ""), |(path, _)| rest.split_at(path.len())),
                };
                let value = value.strip_prefix('=').map(|value| value.trim_matches(['"', '\'']).to_owned());
                if value.as_deref() == Some("") {
                    return Err(Error::failed(
                        "jsonpath wait has to have a value after the equals sign, like --for=jsonpath='{.status.phase}'=Running",
                    ));
                }
                Ok(For::JsonPath { path: relaxed(path)?, value })
            }
            _ => Err(Error::failed(format!(
                "unrecognized condition: {text:?}; use condition=NAME, jsonpath='{{PATH}}'=VALUE, create or delete"
            ))),
        }
    }

    fn is_met(&self, object: Option<&Value>) -> bool {
        let Some(object) = object else { return matches!(self, For::Delete) };
        match self {
            For::Create => true,
            For::Delete => false,
            For::Condition { name, value } => {
                let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
                let text = |condition: &Value, field: &str| {
                    condition[field].as_str().unwrap_or_default().to_lowercase()
                };
                let generation = object["metadata"]["generation"].as_i64();
                conditions.into_iter().any(|condition| {
                    // A condition of an older generation says nothing about this one.
                    let observed = condition["observedGeneration"]
                        .as_i64()
                        .or_else(|| object["status"]["observedGeneration"].as_i64());
                    let current = generation.zip(observed).is_none_or(|(now, seen)| seen >= now);
                    current && text(condition, "type") == *name && text(condition, "status") == *value
                })
            }
            For::JsonPath { path, value } => {
                let found: Vec<String> = path
                    .find(object)
                    .unwrap_or_default()
                    .iter()
                    .flatten()
                    .map(|value| print(value))
                    .collect();
                match (found.as_slice(), value) {
                    ([one], Some(value)) => one == value,
                    ([_], None) => true,
                    _ => false,
                }
            }
        }
    }
}

pub(crate) async fn run(program: &Commands, args: &WaitArgs) -> Result<(), Error> {
    let until = For::parse(&args.for_)?;
    let patience = match args.timeout.strip_prefix('-') {
        Some(_) => A_WEEK,
        None => duration(&args.timeout).map_err(Error::failed)?,
    };
    let session = Session::open(program, &args.target, Access::Write).await?;
    let done = wait(program, &session, args, &until, patience).await;
    session.close().await?;
    done
}

async fn wait(
    program: &Commands,
    session: &Session,
    args: &WaitArgs,
    until: &For,
    patience: Duration,
) -> Result<(), Error> {
    let printer = args.print.printer(DryRun::None)?;
    // Nobody else writes in this folder: once its controllers are idle, nothing changes any more.
    session.settle(program).await?;
    let resources = session.resources().await?;
    let wanted = args.objects.resolve(session, &resources)?;
    let by_name = wanted.iter().all(|one| one.name.is_some());
    let mut wanted = wanted;
    if !by_name {
        let (found, errors) = args.objects.fetch(&session.api, &wanted).await;
        Error::all(errors)?;
        if found.is_empty() {
            if matches!(until, For::Delete) {
                return Ok(());
            }
            return Err(Error::failed("no matching resources found"));
        }
        wanted = found.into_iter().map(|(one, _)| one).collect();
    }
    let mut errors = Vec::new();
    for one in wanted {
        let end = session.env.now() + patience;
        let what =
            || format!("waiting for {}/{}", one.resource.plural, one.name.as_deref().unwrap_or_default());
        match noticed(&session.env, what, met(session, &one, until, end)).await {
            Ok(Some(object)) => printer.print(&object, "condition met")?,
            // It was to end, and was not there in the first place.
            Ok(None) => {}
            Err(error) => errors.push(error),
        }
    }
    Error::all(errors)
}

/// Waits for one object, and returns it as it is then, or was last.
async fn met(session: &Session, one: &Wanted, until: &For, end: Instant) -> Result<Option<Value>, Error> {
    let name = one.name.as_deref().unwrap_or_default();
    let late =
        || Error::failed(format!("timed out waiting for the condition on {}/{name}", one.resource.plural));
    let mut last: Option<Value> = None;
    loop {
        let object = match session.api.get(Path::new(one.path()), JSON).await {
            Ok(object) => Some(object),
            Err(error) if error.is_not_found() => match until {
                For::Create => None,
                For::Delete => return Ok(last),
                _ => return Err(error),
            },
            Err(error) => return Err(error),
        };
        if let (Some(object), Some(before), For::Delete) = (&object, &last, until)
            && object["metadata"]["uid"] != before["metadata"]["uid"]
        {
            // Another object of the same name: the first one is gone.
            return Ok(last);
        }
        if until.is_met(object.as_ref()) {
            return Ok(object);
        }
        let now = session.env.now();
        if now >= end || session.is_folder() {
            return Err(late());
        }
        match object {
            Some(object) => {
                let change = change(session, one, &object);
                let _ = session.env.timeout(end - now, change).await;
                last = Some(object);
            }
            None => session.env.sleep(LOOK_AGAIN.min(end - now)).await,
        }
    }
}

/// Completes when the object has changed, or the watch has ended.
async fn change(session: &Session, one: &Wanted, object: &Value) {
    let name = one.name.as_deref().unwrap_or_default();
    let path = Path::new(one.resource.collection(Some(&one.namespace)))
        .with("watch", "true")
        .with("fieldSelector", &format!("metadata.name={name}"))
        .with("resourceVersion", object["metadata"]["resourceVersion"].as_str().unwrap_or_default());
    match session.api.open(Method::GET, path, JSON, None).await {
        Ok(response) => drop(response.into_body().into_data_stream().next().await),
        Err(_) => session.env.sleep(LOOK_AGAIN).await,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn conditions_and_fields_are_met() {
        let object = json!({"metadata": {"generation": 2}, "status": {"phase": "Running", "conditions": [
            {"type": "Ready", "status": "True"}, {"type": "Old", "status": "True", "observedGeneration": 1}]}});
        let is_met = |text: &str| For::parse(text).unwrap().is_met(Some(&object));
        assert!(
            is_met("condition=ready") && is_met("condition=Ready=True") && !is_met("condition=Ready=False")
        );
        assert!(!is_met("condition=Old"), "of an older generation");
        assert!(
            is_met("jsonpath={.status.phase}=Running")
                && is_met("jsonpath='.status.phase'".replace('\'', "").as_str())
        );
        assert!(!is_met("jsonpath={.status.phase}=Pending") && !is_met("jsonpath={.status.nope}"));
        assert!(is_met("create") && !is_met("delete"));
        assert!(For::parse("delete").unwrap().is_met(None) && !For::parse("create").unwrap().is_met(None));
        assert!(For::parse("something").is_err() && For::parse("jsonpath={.a}=").is_err());
    }
}
