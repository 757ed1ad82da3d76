//! The descriptions of types and fields, from the comments of Kubernetes' published packages (Apache-2.0, The Kubernetes
//! Authors): the same that kube-apiserver serves.

use std::{collections::BTreeMap, io::Read as _};

use flate2::read::DeflateDecoder;
use serde_json::{Map, Value};

use crate::generated::DESCRIPTIONS;

/// Descriptions, decompressed a package at a time when a type of it is described. They live as long as the document that is
/// built: together they are larger than everything else that an idle server holds of `OpenAPI`.
#[derive(Debug, Default)]
pub(super) struct Descriptions(BTreeMap<String, Map<String, Value>>);

impl Descriptions {
    /// The descriptions of the fields of a type, by name; that of the type itself has an empty name.
    pub(super) fn of(&mut self, ty: &str) -> Option<&Map<String, Value>> {
        let (package, name) = ty.rsplit_once('.')?;
        let mut parts = package.rsplit('.');
        let (version, group) = (parts.next()?, parts.next()?);
        let module = format!("{group}_{version}");
        let texts = self.0.entry(module).or_insert_with_key(|module| read(module));
        texts.get(name)?.as_object()
    }
}

fn read(module: &str) -> Map<String, Value> {
    let Some((_, bytes)) = DESCRIPTIONS.iter().find(|(name, _)| *name == module) else { return Map::new() };
    let mut text = String::new();
    // Reading from memory fails only for damaged data; a test reads all of it.
    let read = DeflateDecoder::new(*bytes).read_to_string(&mut text);
    read.ok().and_then(|_| serde_json::from_str(&text).ok()).unwrap_or_default()
}
