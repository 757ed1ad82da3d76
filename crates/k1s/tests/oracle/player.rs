//! Replays one scenario against a control plane in this process, in simulated time.

use std::{io, pin::pin, time::Duration};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use k1s::{
    Runtime,
    env::{Env, VirtualClock},
    server::{ApiServer, Body, ServerOptions, Tokens},
};
use serde::Serialize as _;
use serde_json::{
    Map, Value, json,
    ser::{Formatter, Serializer},
};
use tower::ServiceExt as _;

use crate::{
    normal::{self, Placeholders},
    recording::{Scenario, Step},
};

/// The users of the recordings.
const TOKENS: &str = "admin-token,admin,admin,\"system:masters\"\nalice-token,alice,alice,\"devs\"\n";

/// The namespace that a scenario runs in.
const NAMESPACE: &str = "o-qwertzuiop";

/// How long a watch waits for its next event.
const SILENCE: Duration = Duration::from_secs(10);

/// Pause between two attempts of a repeated request.
const PAUSE: Duration = Duration::from_millis(50);

/// Timeout of a step, in simulated time.
const STEP_TIMEOUT: Duration = Duration::from_secs(600);

/// A step whose answer is not the recorded one.
#[derive(Debug)]
pub(crate) struct Difference {
    /// The number of the step and its request.
    pub(crate) step: String,
    pub(crate) wanted: String,
    pub(crate) got: String,
}

/// An answer, before it is normalized.
struct Answer {
    status: u16,
    headers: http::HeaderMap,
    body: Value,
}

/// Plays a scenario on a new control plane, and returns the differences from the recording.
///
/// Fields named in `left_out` are not compared.
pub(crate) async fn play(scenario: &Scenario, left_out: &[&str]) -> Vec<Difference> {
    let (env, clock) = Env::simulated(1);
    let mut options = ServerOptions::default();
    options.tokens = Tokens::parse(TOKENS).unwrap();
    options.advertise_address = Some(([127, 0, 0, 1], 6443).into());
    let runtime = Runtime::builder().env(env).server_options(options).start().await.unwrap();
    let mut player = Player {
        server: runtime.server().clone(),
        clock,
        variables: Map::from_iter([("ns".to_owned(), NAMESPACE.into())]),
        placeholders: Placeholders::new(NAMESPACE),
    };
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
    let made = player.call("POST", "/api/v1/namespaces", &Map::new(), Some(&namespace)).await;
    assert_eq!(made.status, 201, "{}", made.body);
    let mut differences = Vec::new();
    for (number, step) in scenario.steps.iter().enumerate() {
        let mut got = player.step(step).await;
        if step.unchecked {
            continue;
        }
        let mut wanted = step.expect.clone();
        // A property of the connection, which does not exist in process.
        normal::remove(&mut wanted, &["headers", "Transfer-Encoding"]);
        normal::settle(&mut wanted, left_out);
        normal::settle(&mut got, left_out);
        let (wanted, got) = (normal::sorted_text(&wanted), normal::sorted_text(&got));
        if wanted != got {
            let request =
                step.request.clone().or_else(|| step.watch.as_ref().map(|path| format!("WATCH {path}")));
            let step = format!("{} {}", number + 1, request.unwrap_or_default());
            differences.push(Difference { step, wanted, got });
        }
    }
    let clock = player.clock.clone();
    drive(&clock, runtime.stop()).await.unwrap();
    differences
}

/// Awaits a future while advancing the clock.
async fn drive<T>(clock: &VirtualClock, work: impl Future<Output = T>) -> T {
    let mut work = pin!(work);
    let begun = clock.now();
    loop {
        tokio::select! {
            biased;
            done = &mut work => return done,
            () = clock.settle() => {
                assert!(clock.now() - begun < STEP_TIMEOUT, "no answer after {STEP_TIMEOUT:?}");
                assert!(clock.advance_to_next(), "no answer, and nothing left to wait for");
            }
        }
    }
}

struct Player {
    server: ApiServer,
    clock: VirtualClock,
    variables: Map<String, Value>,
    placeholders: Placeholders,
}

impl Player {
    /// The normalized answer of a step.
    async fn step(&mut self, step: &Step) -> Value {
        let headers: Map<String, Value> =
            step.headers.iter().map(|(name, value)| (name.clone(), self.fill(value))).collect();
        let mut got = Map::new();
        let answer = match (&step.request, &step.watch) {
            (Some(request), _) => {
                let request = self.fill_text(request);
                let (method, path) = request.split_once(' ').unwrap();
                let body = step.body.as_ref().map(|body| self.fill(body));
                let mut answer = self.call(method, path, &headers, body.as_ref()).await;
                if let Some(until) = &step.retry {
                    let until: Map<String, Value> =
                        until.iter().map(|(path, value)| (path.clone(), self.fill(value))).collect();
                    let end = self.clock.now() + Duration::from_secs_f64(step.within.unwrap_or(10.0));
                    while !is_reached(&answer, &until) && self.clock.now() < end {
                        self.clock.advance_and_settle(PAUSE).await;
                        answer = self.call(method, path, &headers, body.as_ref()).await;
                    }
                }
                answer
            }
            (None, Some(watch)) => {
                let watch = self.fill_text(watch);
                self.watch(&watch, &headers, step.events).await
            }
            (None, None) => panic!("a step without a request: {step:?}"),
        };
        got.insert("status".into(), answer.status.into());
        let mut kept = Map::new();
        for name in &step.keep {
            // Headers with the same name are joined.
            let values: Vec<&str> =
                answer.headers.get_all(name).iter().map(|value| value.to_str().unwrap()).collect();
            if !values.is_empty() {
                kept.insert(name.clone(), self.placeholders.text(&values.join(", ")).into());
            }
        }
        if !kept.is_empty() {
            got.insert("headers".into(), kept.into());
        }
        for (name, path) in &step.save {
            let path = self.fill(path);
            let value = dig(&answer.body, path.as_str().unwrap()).cloned().unwrap_or_default();
            self.variables.insert(name.clone(), value);
        }
        let mut body = self.placeholders.value(&answer.body);
        for path in &step.ignore {
            let path: Vec<&str> = path.split('.').collect();
            normal::remove(&mut body, &path);
        }
        got.insert("body".into(), if step.body_is == "any" { Value::Null } else { body });
        got.into()
    }

    fn fill(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => self.fill_text(text).into(),
            Value::Array(items) => items.iter().map(|item| self.fill(item)).collect(),
            Value::Object(fields) => {
                fields.iter().map(|(key, value)| (self.fill_text(key), self.fill(value))).collect()
            }
            other => other.clone(),
        }
    }

    /// Substitutes `{variables}` in a text.
    fn fill_text(&self, text: &str) -> String {
        let mut filled = text.to_owned();
        for (name, value) in &self.variables {
            filled = filled.replace(&format!("{{{name}}}"), &plain(value));
        }
        filled
    }

    fn request(
        &self,
        method: &str,
        path: &str,
        headers: &Map<String, Value>,
        body: Option<&Value>,
    ) -> http::Request<Full<Bytes>> {
        let mut fields = http::HeaderMap::new();
        fields.insert("accept", "application/json".parse().unwrap());
        fields.insert("user-agent", "oracle".parse().unwrap());
        fields.insert("authorization", "Bearer admin-token".parse().unwrap());
        let body = match body {
            None | Some(Value::Null) => Bytes::new(),
            Some(body) => {
                fields.insert("content-type", "application/json".parse().unwrap());
                match body {
                    Value::String(text) => Bytes::from(text.clone()),
                    other => Bytes::from(as_sent(other)),
                }
            }
        };
        for (name, value) in headers {
            let name: http::HeaderName = name.parse().unwrap();
            match value {
                Value::Null => fields.remove(name),
                value => fields.insert(name, plain(value).parse().unwrap()),
            };
        }
        // The recorded client sent these two unescaped, which hyper rejects (docs/compatibility.md).
        let path = path.replace('<', "%3C").replace('>', "%3E");
        let mut request = http::Request::builder().method(method).uri(path).body(Full::new(body)).unwrap();
        *request.headers_mut() = fields;
        request
    }

    async fn send(&self, request: http::Request<Full<Bytes>>) -> http::Response<Body> {
        drive(&self.clock, self.server.clone().oneshot(request)).await.unwrap()
    }

    async fn call(
        &self,
        method: &str,
        path: &str,
        headers: &Map<String, Value>,
        body: Option<&Value>,
    ) -> Answer {
        let response = self.send(self.request(method, path, headers, body)).await;
        let (head, body) = response.into_parts();
        let body = drive(&self.clock, body.collect()).await.unwrap().to_bytes();
        Answer { status: head.status.as_u16(), headers: head.headers, body: parse(&body) }
    }

    /// Reads events of a watch until there are enough, it ends, or none arrives for ten seconds.
    async fn watch(&self, path: &str, headers: &Map<String, Value>, events: usize) -> Answer {
        let path = match (path.contains("watch="), path.contains('?')) {
            (true, _) => path.to_owned(),
            (false, true) => format!("{path}&watch=true"),
            (false, false) => format!("{path}?watch=true"),
        };
        let response = self.send(self.request("GET", &path, headers, None)).await;
        let (head, mut body) = response.into_parts();
        if head.status != 200 {
            let body = drive(&self.clock, body.collect()).await.unwrap().to_bytes();
            return Answer { status: head.status.as_u16(), headers: head.headers, body: parse(&body) };
        }
        let (mut found, mut text) = (Vec::new(), Vec::new());
        while found.len() < events {
            let Some(frame) = self.within(SILENCE, body.frame()).await.flatten() else { break };
            text.extend_from_slice(&frame.unwrap().into_data().unwrap());
            while found.len() < events
                && let Some(end) = text.iter().position(|byte| *byte == b'\n')
            {
                let line: Vec<u8> = text.drain(..=end).collect();
                let event: Value = serde_json::from_slice(&line).unwrap();
                let is_mark =
                    event["type"] == "BOOKMARK" && !event.to_string().contains("initial-events-end");
                if !is_mark {
                    found.push(event);
                }
            }
        }
        Answer { status: 200, headers: head.headers, body: found.into() }
    }

    /// Awaits a future with a timeout.
    async fn within<T>(&self, longest: Duration, work: impl Future<Output = T>) -> Option<T> {
        let mut work = pin!(work);
        let end = self.clock.now() + longest;
        loop {
            tokio::select! {
                biased;
                done = &mut work => return Some(done),
                () = self.clock.settle() => {
                    if self.clock.now() >= end {
                        return None;
                    }
                    let left = end - self.clock.now();
                    let next = self.clock.next_deadline().map_or(left, |next| next - self.clock.now());
                    self.clock.advance(next.min(left));
                }
            }
        }
    }
}

/// JSON with the spacing of the recorder's client: some answers quote the body.
struct Spaced;

impl Formatter for Spaced {
    fn begin_array_value<W: ?Sized + io::Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_key<W: ?Sized + io::Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }

    fn write_string_fragment<W: ?Sized + io::Write>(&mut self, writer: &mut W, text: &str) -> io::Result<()> {
        for letter in text.chars() {
            if letter.is_ascii() {
                write!(writer, "{letter}")?;
            } else {
                for unit in letter.encode_utf16(&mut [0; 2]) {
                    write!(writer, "\\u{unit:04x}")?;
                }
            }
        }
        Ok(())
    }
}

fn as_sent(value: &Value) -> Vec<u8> {
    let mut text = Vec::new();
    value.serialize(&mut Serializer::with_formatter(&mut text, Spaced)).unwrap();
    text
}

fn parse(body: &[u8]) -> Value {
    if body.is_empty() {
        return Value::Null;
    }
    serde_json::from_slice(body).unwrap_or_else(|_| json!({"text": String::from_utf8_lossy(body)}))
}

/// Whether an answer has the values that a step waits for.
fn is_reached(answer: &Answer, until: &Map<String, Value>) -> bool {
    until.iter().all(|(path, wanted)| match path.as_str() {
        "status" => wanted.as_u64() == Some(answer.status.into()),
        path => dig(&answer.body, path).is_some_and(|found| plain(found) == plain(wanted)),
    })
}

/// The value at a path like `items.0.metadata.name`.
fn dig<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(value, |value, part| match value {
        Value::Array(items) => items.get(part.parse::<usize>().ok()?),
        Value::Object(fields) => fields.get(part),
        _ => None,
    })
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
