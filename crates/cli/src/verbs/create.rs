//! `create`: objects of files, and some kinds from the command line.

mod generate;
mod ingress;
mod rbac;

use std::{fs, path::Path as FilePath};

use clap::{Args, Subcommand};
use http::Method;
use serde_json::{Map, Value, json};

use crate::{
    Commands,
    api::{Error, JSON, Path},
    files::{FileArgs, Item},
    objects::{Wanted, of_file},
    print::{DryRun, PrintArgs},
    progress::Progress,
    session::{Access, Session, Target},
    verbs::apply::field_validation,
};

use self::generate::Generated;

/// Options of `create`.
#[derive(Debug, Clone, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct CreateArgs {
    #[command(subcommand)]
    kind: Option<Kind>,
    #[command(flatten)]
    files: FileArgs,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, Clone, Args)]
struct Common {
    /// The manager that owns the fields.
    #[arg(long, value_name = "NAME")]
    field_manager: Option<String>,
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

#[derive(Debug, Clone, Subcommand)]
enum Kind {
    /// A namespace.
    #[command(visible_alias = "ns")]
    Namespace {
        /// Its name.
        name: String,
        #[command(flatten)]
        common: Box<Common>,
    },
    /// A `ConfigMap` from texts and files.
    #[command(name = "configmap", visible_alias = "cm")]
    ConfigMap {
        /// Its name.
        name: String,
        #[command(flatten)]
        data: Data,
        #[command(flatten)]
        common: Box<Common>,
    },
    /// A `Secret` from texts and files.
    Secret {
        #[command(subcommand)]
        kind: SecretKind,
    },
    /// A `ServiceAccount`.
    #[command(name = "serviceaccount", visible_alias = "sa")]
    ServiceAccount {
        /// Its name.
        name: String,
        #[command(flatten)]
        common: Box<Common>,
    },
    #[command(flatten)]
    Generated(Box<Generated>),
}

#[derive(Debug, Clone, Subcommand)]
enum SecretKind {
    /// A Secret of any data.
    Generic {
        /// Its name.
        name: String,
        /// Its type.
        #[arg(long = "type", value_name = "TYPE")]
        type_: Option<String>,
        #[command(flatten)]
        data: Data,
        #[command(flatten)]
        common: Box<Common>,
    },
}

#[derive(Debug, Clone, Args)]
struct Data {
    /// A key and its value; can be repeated.
    #[arg(long, value_name = "KEY=VALUE")]
    from_literal: Vec<String>,
    /// A file, under its name or the given key, or a folder of files; can be repeated.
    #[arg(long, value_name = "[KEY=]FILE")]
    from_file: Vec<String>,
}

impl Data {
    /// Keys with their contents.
    fn load(&self) -> Result<Vec<(String, Vec<u8>)>, Error> {
        let mut data = Vec::new();
        let mut add = |key: &str, value: Vec<u8>| {
            if data.iter().any(|(known, _)| known == key) {
                return Err(Error::failed(format!(
                    "cannot add key {key:?}, another key by that name already exists"
                )));
            }
            data.push((key.to_owned(), value));
            Ok(())
        };
        for literal in &self.from_literal {
            let Some((key, value)) = literal.split_once('=') else {
                return Err(Error::failed(format!("invalid literal source {literal:?}, expected key=value")));
            };
            // Quotes that a shell has left.
            let value = match value.as_bytes() {
                [first @ (b'"' | b'\''), .., last] if first == last => &value[1..value.len() - 1],
                _ => value,
            };
            add(key, value.as_bytes().to_vec())?;
        }
        for file in &self.from_file {
            let (key, path) = match file.split_once('=') {
                Some((key, path)) => (Some(key), path),
                None => (None, file.as_str()),
            };
            let failed = |error: std::io::Error| Error::failed(format!("{path}: {error}"));
            let path_ = FilePath::new(path);
            let name = |path: &FilePath| {
                path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
            };
            if path_.is_dir() && key.is_none() {
                let mut files: Vec<_> = fs::read_dir(path_)
                    .map_err(failed)?
                    .filter_map(|entry| Some(entry.ok()?.path()))
                    .collect();
                files.sort();
                for one in files.iter().filter(|one| one.is_file()) {
                    add(&name(one), fs::read(one).map_err(failed)?)?;
                }
            } else {
                let content = fs::read(path_).map_err(failed)?;
                add(&key.map_or_else(|| name(path_), str::to_owned), content)?;
            }
        }
        Ok(data)
    }
}

/// Texts in `data`, everything else in `binaryData`.
fn config_map(name: &str, data: &Data) -> Result<Value, Error> {
    let (mut texts, mut binary) = (Map::new(), Map::new());
    for (key, value) in data.load()? {
        match String::from_utf8(value) {
            Ok(text) => texts.insert(key, text.into()),
            Err(error) => binary.insert(key, base64(error.as_bytes()).into()),
        };
    }
    let mut object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
    if !texts.is_empty() {
        object["data"] = texts.into();
    }
    if !binary.is_empty() {
        object["binaryData"] = binary.into();
    }
    Ok(object)
}

fn secret(name: &str, type_: Option<&str>, data: &Data) -> Result<Value, Error> {
    let entries = data.load()?.into_iter().map(|(key, value)| (key, base64(&value).into()));
    let entries: Map<String, Value> = entries.collect();
    let mut object = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}});
    if !entries.is_empty() {
        object["data"] = entries.into();
    }
    if let Some(type_) = type_ {
        object["type"] = type_.into();
    }
    Ok(object)
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let at = |index: usize| u32::from(chunk.get(index).copied().unwrap_or_default());
        let word = at(0) << 16 | at(1) << 8 | at(2);
        for digit in 0..4 {
            let shown = digit <= chunk.len();
            let index = (word >> (18 - 6 * digit)) as usize & 63;
            out.push(if shown { char::from(DIGITS[index]) } else { '=' });
        }
    }
    out
}

pub(crate) async fn run(program: &Commands, args: &CreateArgs) -> Result<(), Error> {
    let given = |object: Value| vec![Item { object, source: String::new() }];
    let named =
        |kind: &str, name: &str| json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name}});
    let (items, common) = match &args.kind {
        None if args.files.is_empty() => return Err(Error::failed("must specify one of -f and -k")),
        None => (args.files.load()?, &args.common),
        Some(Kind::Namespace { name, common }) => {
            let mut namespace = named("Namespace", name);
            (namespace["spec"], namespace["status"]) = (json!({}), json!({}));
            (given(namespace), &**common)
        }
        Some(Kind::ServiceAccount { name, common }) => (given(named("ServiceAccount", name)), &**common),
        Some(Kind::ConfigMap { name, data, common }) => (given(config_map(name, data)?), &**common),
        Some(Kind::Secret { kind: SecretKind::Generic { name, type_, data, common } }) => {
            (given(secret(name, type_.as_deref(), data)?), &**common)
        }
        // Made below: roles name resources of the server.
        Some(Kind::Generated(generated)) => (Vec::new(), generated.common()),
    };
    let generated = match &args.kind {
        Some(Kind::Generated(generated)) => Some(generated),
        _ => None,
    };
    if items.is_empty() && generated.is_none() {
        return Err(Error::failed("no objects passed to create"));
    }
    let printer = common.print.printer(common.dry_run)?;
    let session = Session::open(program, &common.target, Access::Write).await?;
    let done = async {
        let resources = session.resources().await?;
        let mut errors = Vec::new();
        let mut items = items;
        if let Some(generated) = generated {
            items = given(generated.object(&resources, &session.env.name_suffix())?);
        }
        let mut progress = Progress::new(&session.env, items.len());
        for item in items {
            progress.step("created");
            let source = item.source.clone();
            let wanted = match of_file(&session, &resources, item) {
                Ok(wanted) => wanted,
                Err(error) => {
                    errors.push(error);
                    continue;
                }
            };
            match one(program, &session, &wanted, common).await {
                Ok(object) => printer.print(&object, "created")?,
                // Without a file, there is no source to name.
                Err(error) if source.is_empty() => errors.push(failed_to(error, &wanted)),
                Err(error) => errors.push(error.when("creating", &source)),
            }
        }
        Error::all(errors)
    };
    let done = done.await;
    session.finish(program, done).await
}

/// `failed to create configmap: …`, for objects of the command line.
fn failed_to(error: Error, wanted: &Wanted) -> Error {
    match error {
        Error::Refused { status } => {
            // kubectl wraps only some kinds.
            let what = match wanted.resource.kind.as_str() {
                "Secret" => "secret".to_owned(),
                "ResourceQuota" => "quota:".to_owned(),
                "Service" => {
                    let object = wanted.file.as_ref().map(|item| &item.object);
                    let type_ = object.and_then(|object| object["spec"]["type"].as_str());
                    format!("{} service:", type_.unwrap_or_default())
                }
                kind @ ("ConfigMap" | "ServiceAccount" | "Deployment" | "Job" | "Ingress" | "RoleBinding"
                | "ClusterRoleBinding") => format!("{}:", kind.to_lowercase()),
                _ => return Error::Refused { status },
            };
            Error::failed(format!(
                "failed to create {what} {}",
                status["message"].as_str().unwrap_or_default()
            ))
        }
        other => other,
    }
}

async fn one(
    program: &Commands,
    session: &Session,
    wanted: &Wanted,
    common: &Common,
) -> Result<Value, Error> {
    let Some(item) = &wanted.file else { return Err(Error::failed("no file")) };
    if common.dry_run == DryRun::Client {
        let mut object = item.object.clone();
        // What the command line describes has the namespace that it was given; objects of files, the one they would go to.
        if let Some(metadata) = object["metadata"].as_object_mut()
            && item.source.is_empty()
            && !session.explicit_namespace
        {
            metadata.remove("namespace");
        }
        return Ok(object);
    }
    let manager = format!("{}-create", program.name);
    let path = Path::new(wanted.resource.collection(Some(&wanted.namespace)))
        .with("fieldManager", common.field_manager.as_deref().unwrap_or(&manager))
        .with("fieldValidation", field_validation(&common.validate)?)
        .with("dryRun", common.dry_run.parameter());
    session.api.send(Method::POST, path, JSON, Some((JSON, item.object.to_string().into_bytes()))).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_padded() {
        for (plain, encoded) in
            [("", ""), ("a", "YQ=="), ("ab", "YWI="), ("abc", "YWJj"), ("abcd", "YWJjZA==")]
        {
            assert_eq!(base64(plain.as_bytes()), encoded);
        }
    }

    #[test]
    fn a_literal_is_a_key_and_a_value() {
        let data = |literal: &str| Data { from_literal: vec![literal.to_owned()], from_file: Vec::new() };
        assert_eq!(config_map("a", &data("k=v=w")).unwrap()["data"]["k"], "v=w");
        assert_eq!(config_map("a", &data("k=\"v\"")).unwrap()["data"]["k"], "v");
        assert!(config_map("a", &data("k")).unwrap_err().to_string().contains("key=value"));
        assert_eq!(secret("a", Some("t"), &data("k=v")).unwrap()["data"]["k"], "dg==");
    }
}
