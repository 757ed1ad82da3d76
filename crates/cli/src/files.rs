//! Objects from files: `-f`, `-R`, `-k`.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use clap::Args;
use k1s::manifests;
use serde_json::Value;

use crate::{api::Error, session::read};

/// Where objects come from.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct FileArgs {
    /// A file or a folder with YAML or JSON, or `-` for stdin; can be repeated.
    #[arg(short = 'f', long = "filename", value_name = "FILE")]
    filenames: Vec<String>,
    /// Reads folders in folders as well.
    #[arg(short = 'R', long, requires = "filenames")]
    recursive: bool,
    /// A folder with a kustomization that has nothing but resources.
    #[arg(short = 'k', long, value_name = "DIR", conflicts_with = "filenames")]
    kustomize: Option<PathBuf>,
}

/// An object of a file.
#[derive(Debug, Clone)]
pub(crate) struct Item {
    pub(crate) object: Value,
    /// The file, as in messages.
    pub(crate) source: String,
}

impl FileArgs {
    pub(crate) fn is_empty(&self) -> bool {
        self.filenames.is_empty() && self.kustomize.is_none()
    }

    /// All objects, in the order of the files.
    pub(crate) fn load(&self) -> Result<Vec<Item>, Error> {
        let mut items = Vec::new();
        for name in &self.filenames {
            if name.starts_with("http://") || name.starts_with("https://") {
                return Err(Error::failed(format!(
                    "{name}: files are not read from the network; use `curl -sSL {name} | … -f -`"
                )));
            }
            let path = Path::new(name);
            if name != "-" && path.is_dir() {
                let mut files = Vec::new();
                walk(path, self.recursive, &mut files).map_err(|error| failed(path, &error))?;
                for file in files {
                    let file = file.to_string_lossy();
                    parse(file.strip_prefix("./").unwrap_or(&file), &mut items)?;
                }
            } else {
                parse(name, &mut items)?;
            }
        }
        if let Some(folder) = &self.kustomize {
            kustomization(folder, &mut items, 0)?;
            items.sort_by_key(|item| place(item.object["kind"].as_str().unwrap_or_default()));
        }
        Ok(items)
    }
}

fn failed(path: &Path, error: &io::Error) -> Error {
    Error::failed(format!("{}: {error}", path.display()))
}

fn walk(folder: &Path, recursive: bool, files: &mut Vec<PathBuf>) -> io::Result<()> {
    let mut entries = fs::read_dir(folder)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<io::Result<Vec<PathBuf>>>()?;
    entries.sort();
    for path in entries {
        if path.is_dir() {
            if recursive {
                walk(&path, recursive, files)?;
            }
        } else if path.extension().is_some_and(|end| end == "yaml" || end == "yml" || end == "json") {
            files.push(path);
        }
    }
    Ok(())
}

fn parse(name: &str, items: &mut Vec<Item>) -> Result<(), Error> {
    let text = read(name)?;
    let source = if name == "-" { "STDIN" } else { name };
    let objects = manifests::values(&text)
        .map_err(|error| Error::failed(format!("error parsing {source}: {error}")))?;
    items.extend(objects.into_iter().map(|object| Item { object, source: source.to_owned() }));
    Ok(())
}

/// A kustomization may refer to folders with kustomizations; not endlessly.
const MAX_DEPTH: usize = 16;

fn kustomization(folder: &Path, items: &mut Vec<Item>, depth: usize) -> Result<(), Error> {
    if depth > MAX_DEPTH {
        return Err(Error::failed(format!("{}: kustomizations that refer to each other", folder.display())));
    }
    let names = ["kustomization.yaml", "kustomization.yml", "Kustomization"];
    let Some(path) = names.iter().map(|name| folder.join(name)).find(|path| path.is_file()) else {
        return Err(Error::failed(format!(
            "{} has no {}; for a folder of plain files use -f",
            folder.display(),
            names.join(", ")
        )));
    };
    let text = read(&path.to_string_lossy())?;
    let decoded = k1s_object::yaml::decode(text.as_bytes())
        .map_err(|error| Error::failed(format!("{}: {error}", path.display())))?;
    let value = decoded.value;
    let known = ["apiVersion", "kind", "metadata", "resources"];
    for field in value.as_object().into_iter().flat_map(serde_json::Map::keys) {
        if !known.contains(&field.as_str()) {
            return Err(Error::failed(format!(
                "{} has {field:?}, and only resources are supported; use `kubectl kustomize {} | … -f -`",
                path.display(),
                folder.display()
            )));
        }
    }
    for resource in value["resources"].as_array().into_iter().flatten() {
        let resource = resource.as_str().unwrap_or_default();
        let at = folder.join(resource);
        if at.is_dir() {
            kustomization(&at, items, depth + 1)?;
        } else {
            parse(&at.to_string_lossy(), items)?;
        }
    }
    Ok(())
}

/// Kinds that others need come first.
fn place(kind: &str) -> usize {
    const ORDER: [&str; 12] = [
        "Namespace",
        "ResourceQuota",
        "StorageClass",
        "CustomResourceDefinition",
        "ServiceAccount",
        "Role",
        "ClusterRole",
        "RoleBinding",
        "ClusterRoleBinding",
        "ConfigMap",
        "Secret",
        "Service",
    ];
    let last = matches!(kind, "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration");
    ORDER.iter().position(|known| *known == kind).unwrap_or(ORDER.len() + usize::from(last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_read_in_order_and_kustomizations_have_resources_only() {
        let dir = tempfile::tempdir().unwrap();
        let object = |name: &str| format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n");
        fs::create_dir(dir.path().join("sub")).unwrap();
        for (file, name) in [("b.yaml", "b"), ("a.json", "a"), ("sub/c.yml", "c"), ("no.txt", "no")] {
            fs::write(dir.path().join(file), object(name)).unwrap();
        }
        let load = |recursive| {
            let filenames = vec![dir.path().to_string_lossy().into_owned()];
            let items = FileArgs { filenames, recursive, kustomize: None }.load().unwrap();
            let name = |item: &Item| item.object["metadata"]["name"].as_str().unwrap().to_owned();
            items.iter().map(name).collect::<Vec<_>>()
        };
        assert_eq!(load(false), ["a", "b"]);
        assert_eq!(load(true), ["a", "b", "c"]);

        let kustomization = dir.path().join("kustomization.yaml");
        let files = FileArgs { kustomize: Some(dir.path().to_owned()), ..FileArgs::default() };
        fs::write(&kustomization, "resources: [b.yaml]\n").unwrap();
        assert_eq!(files.load().unwrap().len(), 1);
        fs::write(&kustomization, "resources: [b.yaml]\nimages: []\n").unwrap();
        let error = files.load().unwrap_err().to_string();
        assert!(error.contains("\"images\"") && error.contains("kubectl kustomize"), "{error}");
    }
}
