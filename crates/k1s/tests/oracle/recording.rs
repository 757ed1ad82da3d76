//! The format of a recording, and its parser.

use std::{fs, io::Read as _, path::Path};

use flate2::read::GzDecoder;
use serde::Deserialize;
use serde_json::{Map, Value};

/// One area: scenarios that were recorded with a kube-apiserver, each in its own namespace.
#[derive(Debug, Deserialize)]
pub(crate) struct Recording {
    pub(crate) scenarios: Vec<Scenario>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Scenario {
    pub(crate) name: String,
    pub(crate) steps: Vec<Step>,
}

/// A request or a watch, and kube-apiserver's answer to it.
#[derive(Debug, Deserialize)]
pub(crate) struct Step {
    /// `METHOD /path`.
    #[serde(rename = "do")]
    pub(crate) request: Option<String>,
    /// The path of a watch.
    pub(crate) watch: Option<String>,
    /// Number of events a watch reads, not counting bookmarks.
    #[serde(default = "one")]
    pub(crate) events: usize,
    /// Additional headers; `null` removes one that is sent by default.
    #[serde(default)]
    pub(crate) headers: Map<String, Value>,
    /// JSON, or a text that is sent unchanged.
    pub(crate) body: Option<Value>,
    /// Variables for later steps, with the fields of the answer they are taken from.
    #[serde(default)]
    pub(crate) save: Map<String, Value>,
    /// Headers of the answer that are compared.
    #[serde(default)]
    pub(crate) keep: Vec<String>,
    /// Fields of the answer that are not compared.
    #[serde(default)]
    pub(crate) ignore: Vec<String>,
    /// The request is repeated until the answer has these values.
    pub(crate) retry: Option<Map<String, Value>>,
    /// Maximum number of seconds it is repeated.
    pub(crate) within: Option<f64>,
    /// `any`: the body is not compared.
    #[serde(default)]
    pub(crate) body_is: String,
    /// The answer is not compared.
    #[serde(default)]
    pub(crate) unchecked: bool,
    /// The recorded answer: `status`, `headers`, `body`.
    #[serde(default)]
    pub(crate) expect: Value,
}

fn one() -> usize {
    1
}

impl Recording {
    pub(crate) fn read(folder: &Path, area: &str) -> Recording {
        let path = folder.join(format!("{area}.json.gz"));
        let packed = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let mut text = String::new();
        GzDecoder::new(packed.as_slice()).read_to_string(&mut text).unwrap();
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }
}
