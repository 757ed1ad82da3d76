//! `cargo xtask gen`: the table of built-in kinds, from Kubernetes' published Go packages.
//!
//! A small Go program (`xtask/gen`) prints the types; `xtask/gen/kinds.json` lists the served kinds and their
//! names in discovery. The generated files hold only data and are committed. Descriptions are compressed.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    fs,
    io::{Read as _, Write as _},
    path::PathBuf,
    process::Command,
};

use flate2::{Compression, read::DeflateDecoder, write::DeflateEncoder};
use serde_json::{Map, Value};

use crate::{print, tidy};

const ALL_VERBS: &[&str] =
    &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

/// The generator's output folder.
fn folder() -> PathBuf {
    tidy::root().join("crates/kinds/src/generated")
}

/// Writes the files, or (`check`) reports whether they are up to date.
pub(crate) fn run(check: bool) -> Result<(), String> {
    let files = Table::read()?.files()?;
    let folder = folder();
    let mut different = Vec::new();
    for (name, text) in &files {
        let path = folder.join(name);
        let compressed = name.ends_with(COMPRESSED);
        let known = fs::read(&path).ok();
        let known = known
            .and_then(|bytes| if compressed { inflate(&bytes).ok() } else { String::from_utf8(bytes).ok() });
        if known.as_deref() == Some(text) {
            continue;
        }
        different.push(name.clone());
        if !check {
            fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
            let bytes = if compressed { deflate(text)? } else { text.clone().into_bytes() };
            fs::write(&path, bytes).map_err(|error| format!("{}: {error}", path.display()))?;
        }
    }
    for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if !files.contains_key(&name) {
            different.push(name);
            if !check {
                fs::remove_file(entry.path())
                    .map_err(|error| format!("{}: {error}", entry.path().display()))?;
            }
        }
    }
    match (different.is_empty(), check) {
        (true, _) => print("the generated files are up to date"),
        (false, false) => print(&format!("written: {}", different.join(", "))),
        (false, true) => return Err(format!("run `cargo xtask gen`: {} differ", different.join(", "))),
    }
    Ok(())
}

/// How names of compressed files end.
const COMPRESSED: &str = ".json.deflate";

fn deflate(text: &str) -> Result<Vec<u8>, String> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(text.as_bytes()).and_then(|()| encoder.finish()).map_err(|error| error.to_string())
}

fn inflate(bytes: &[u8]) -> Result<String, String> {
    let mut text = String::new();
    DeflateDecoder::new(bytes).read_to_string(&mut text).map_err(|error| error.to_string())?;
    Ok(text)
}

struct Table {
    groups: Vec<Value>,
    types: Vec<Value>,
    /// The descriptions of types that are shapes in the table, by their `OpenAPI` names.
    specials: Map<String, Value>,
    /// The type's `OpenAPI` name to its module and static.
    places: BTreeMap<String, (String, String)>,
}

impl Table {
    fn read() -> Result<Self, String> {
        let folder = tidy::root().join("xtask/gen");
        let kinds = folder.join("kinds.json");
        let text = fs::read_to_string(&kinds).map_err(|error| format!("{}: {error}", kinds.display()))?;
        let output = Command::new("go")
            .args(["run", ".", "kinds.json"])
            .current_dir(&folder)
            .output()
            .map_err(|error| format!("cannot run go: {error}"))?;
        if !output.status.success() {
            return Err(format!("go: {}", String::from_utf8_lossy(&output.stderr)));
        }
        let groups = serde_json::from_str(&text).map_err(|error| format!("{}: {error}", kinds.display()))?;
        let mut printed: Value =
            serde_json::from_slice(&output.stdout).map_err(|error| format!("go's output: {error}"))?;
        match (printed["types"].take(), printed["specials"].take()) {
            (Value::Array(types), Value::Object(specials)) => Self::new(groups, types, specials),
            _ => Err("go's output has no types".to_owned()),
        }
    }

    fn new(groups: Vec<Value>, types: Vec<Value>, specials: Map<String, Value>) -> Result<Self, String> {
        let mut places = BTreeMap::new();
        let mut taken = BTreeSet::new();
        for ty in &types {
            let name = text(ty, "name");
            let (_, short) = name.rsplit_once('.').ok_or_else(|| format!("invalid type name {name}"))?;
            let place = (module(text(ty, "package")), screaming(short));
            if !taken.insert(place.clone()) {
                return Err(format!("{} in {} is defined twice", place.1, place.0));
            }
            places.insert(name.to_owned(), place);
        }
        Ok(Self { groups, types, specials, places })
    }

    fn files(&self) -> Result<BTreeMap<String, String>, String> {
        let mut files = BTreeMap::new();
        let mut modules: BTreeMap<String, (&str, Vec<&Value>)> = BTreeMap::new();
        for ty in &self.types {
            let package = text(ty, "package");
            modules.entry(module(package)).or_insert((package, Vec::new())).1.push(ty);
        }
        for (module, (package, types)) in &modules {
            files.insert(format!("{module}.rs"), self.module(module, package, types)?);
        }
        files.insert("kinds.rs".to_owned(), self.kinds()?);
        let descriptions = self.descriptions();
        files.insert("mod.rs".to_owned(), self.root(modules.keys(), descriptions.keys()));
        for (module, texts) in descriptions {
            files.insert(format!("{module}{COMPRESSED}"), Value::Object(texts).to_string());
        }
        Ok(files)
    }

    /// Descriptions by module, type and field; that of a type itself has an empty key.
    fn descriptions(&self) -> BTreeMap<String, Map<String, Value>> {
        let mut modules: BTreeMap<String, Map<String, Value>> = BTreeMap::new();
        let mut add = |name: &str, texts: Map<String, Value>| {
            let (package, name) = name.rsplit_once('.').unwrap_or_default();
            if !texts.is_empty() {
                modules
                    .entry(module(&package.replace('.', "/")))
                    .or_default()
                    .insert(name.to_owned(), texts.into());
            }
        };
        for ty in &self.types {
            let fields = list(ty, "fields").iter().map(|field| (text(field, "name"), text(field, "doc")));
            let texts =
                [("", text(ty, "doc"))].into_iter().chain(fields).filter(|(_, text)| !text.is_empty());
            add(text(ty, "name"), texts.map(|(name, text)| (name.to_owned(), text.into())).collect());
        }
        for (name, doc) in &self.specials {
            if doc.as_str().is_some_and(|doc| !doc.is_empty()) {
                add(name, Map::from_iter([(String::new(), doc.clone())]));
            }
        }
        modules
    }

    fn root<'a>(
        &self,
        modules: impl Iterator<Item = &'a String>,
        described: impl ExactSizeIterator<Item = &'a String>,
    ) -> String {
        let mut out =
            String::from("//! The table of types and kinds. Written by `cargo xtask gen`: do not edit.\n\n");
        for module in modules.map(String::as_str).chain(["kinds"]) {
            let _ = writeln!(out, "pub(crate) mod {module};");
        }
        out.push_str(
            "\nuse crate::table::{Field, Merge, Omit, Shape, Topology, Type};\n\n\
             /// A field with the most common values.\n\
             const F: Field = Field {\n    name: \"\",\n    declared_in: \"\",\n    go: \"string\",\n    \
             shape: Shape::String(\"string\"),\n    pointer: false,\n    omit: Omit::Empty,\n    required: false,\n    \
             proto: None,\n    merge: M,\n    topology: Topology::Default,\n    default: \"\",\n    values: &[],\n};\n\n\
             const M: Merge = Merge { merge: false, retain_keys: false, replace: false, key: \"\" };\n\n",
        );
        let _ = writeln!(
            out,
            "/// Every type, sorted by name.\npub(crate) static TYPES: [&Type; {}] = [",
            self.places.len()
        );
        for (module, name) in self.places.values() {
            let _ = writeln!(out, "    &{module}::{name},");
        }
        out.push_str("];\n");
        let _ = writeln!(
            out,
            "\n/// Descriptions by module: compressed JSON, by type and field; that of a type itself has an empty name.\n\
             pub(crate) static DESCRIPTIONS: [(&str, &[u8]); {}] = [",
            described.len()
        );
        for module in described {
            let _ = writeln!(out, "    ({module:?}, include_bytes!(\"{module}{COMPRESSED}\")),");
        }
        out.push_str("];\n");
        out
    }

    fn module(&self, module: &str, package: &str, types: &[&Value]) -> Result<String, String> {
        let mut body = String::new();
        for ty in types {
            let (_, name) = self.place(text(ty, "name"))?;
            let _ = writeln!(
                body,
                "\npub(crate) static {name}: Type = Type {{ name: {:?}, go: {:?}, atomic: {}, fields: &[",
                text(ty, "name"),
                text(ty, "go"),
                ty["atomic"]
            );
            for field in list(ty, "fields") {
                let _ = writeln!(body, "    {},", self.field(module, field)?);
            }
            body.push_str("] };\n");
        }
        let uses = |needle: &str| body.contains(needle);
        let mut table: Vec<&str> = Vec::new();
        for name in ["Field", "Merge", "Omit", "Proto", "SchemaOther", "Shape", "Topology", "Wire"] {
            if uses(&format!("{name}::")) || uses(&format!("{name} {{")) {
                table.push(name);
            }
        }
        table.insert(table.iter().position(|name| *name == "Wire").unwrap_or(table.len()), "Type");
        let base: Vec<&str> = [("F", "..F"), ("M", "..M")]
            .iter()
            .filter(|(_, use_)| uses(use_))
            .map(|(name, _)| *name)
            .collect();
        let mut out = format!("//! The types of `{package}`. Written by `cargo xtask gen`: do not edit.\n\n");
        if !base.is_empty() {
            let _ = writeln!(out, "use super::{{{}}};", base.join(", "));
        }
        let _ = writeln!(out, "use crate::table::{{{}}};", table.join(", "));
        out.push_str(&body);
        Ok(out)
    }

    fn field(&self, module: &str, field: &Value) -> Result<String, String> {
        let mut out = format!("Field {{ name: {:?}", text(field, "name"));
        let declared_in = text(field, "declaredIn");
        if !declared_in.is_empty() {
            let _ = write!(out, ", declared_in: {declared_in:?}");
        }
        let go = text(field, "go");
        if go != "string" {
            let _ = write!(out, ", go: {go:?}, shape: {}", self.shape(module, &field["shape"])?);
        }
        for flag in ["pointer", "required"] {
            if field[flag] == true {
                let _ = write!(out, ", {flag}: true");
            }
        }
        let omit = text(field, "omit");
        if omit != "Empty" {
            let _ = write!(out, ", omit: Omit::{omit}");
        }
        if let Some(proto) = field["proto"].as_object() {
            let within: Vec<String> = list(&field["proto"], "within").iter().map(Value::to_string).collect();
            let _ = write!(
                out,
                ", proto: Some(Proto {{ number: {}, wire: Wire::{}, within: &[{}], wrapped: {} }})",
                proto["number"],
                text(&field["proto"], "wire"),
                within.join(", "),
                proto["wrapped"]
            );
        }
        let strategies: Vec<&str> = list(field, "merge").iter().filter_map(Value::as_str).collect();
        let key = text(field, "mergeKey");
        if !strategies.is_empty() || !key.is_empty() {
            out.push_str(", merge: Merge { ");
            for strategy in strategies {
                let name = match strategy {
                    "merge" | "replace" => strategy,
                    "retainKeys" => "retain_keys",
                    _ => return Err(format!("unknown patch strategy {strategy}")),
                };
                let _ = write!(out, "{name}: true, ");
            }
            if !key.is_empty() {
                let _ = write!(out, "key: {key:?}, ");
            }
            out.push_str("..M }");
        }
        match text(field, "topology") {
            "Default" => {}
            "Map" => {
                let _ = write!(out, ", topology: Topology::Map(&{})", strings(list(field, "keys")));
            }
            topology => {
                let _ = write!(out, ", topology: Topology::{topology}");
            }
        }
        let default = text(field, "default");
        if !default.is_empty() {
            let _ = write!(out, ", default: {default:?}");
        }
        let values = list(field, "values");
        if !values.is_empty() {
            let _ = write!(out, ", values: &{}", strings(values));
        }
        out.push_str(", ..F }");
        Ok(out)
    }

    fn shape(&self, module: &str, shape: &Value) -> Result<String, String> {
        let of = text(shape, "of");
        let item = || self.shape(module, &shape["item"]);
        let ty = || self.reference(module, text(shape, "struct"));
        Ok(match of {
            "String" => format!("Shape::String({:?})", text(shape, "go")),
            "Uint" => format!("Shape::Uint({:?}, {})", text(shape, "go"), shape["max"]),
            "List" | "Map" => format!("Shape::{of}(&{})", item()?),
            "Struct" => format!("Shape::Struct({})", ty()?),
            "SchemaOrBool" | "SchemaOrArray" | "SchemaOrStringArray" => {
                let other = of.trim_start_matches("SchemaOr");
                format!("Shape::SchemaOr({}, SchemaOther::{other})", ty()?)
            }
            _ => format!("Shape::{of}"),
        })
    }

    fn place(&self, name: &str) -> Result<(&str, &str), String> {
        let place = self.places.get(name).ok_or_else(|| format!("no type {name}"))?;
        Ok((&place.0, &place.1))
    }

    fn reference(&self, from: &str, name: &str) -> Result<String, String> {
        let (module, name) = self.place(name)?;
        Ok(if module == from { format!("&{name}") } else { format!("&super::{module}::{name}") })
    }

    /// The type of a kind, by the package of its group and version.
    fn type_of(&self, group: &str, version: &str, kind: &str) -> Option<String> {
        let found = self
            .groups
            .iter()
            .find(|entry| text(entry, "group") == group && text(entry, "version") == version)?;
        let module = module(text(found, "package"));
        let name = screaming(kind);
        self.places
            .values()
            .any(|place| place.0 == module && place.1 == name)
            .then(|| format!("&super::{module}::{name}"))
    }

    fn kinds(&self) -> Result<String, String> {
        let mut kinds = Vec::new();
        let mut versions: Vec<(&str, Vec<&str>)> = Vec::new();
        for entry in &self.groups {
            let (group, version) = (text(entry, "group"), text(entry, "version"));
            match versions.iter_mut().find(|(name, _)| *name == group) {
                Some((_, versions)) => versions.push(version),
                None => versions.push((group, vec![version])),
            }
            let api_version =
                if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
            let resources = list(entry, "resources");
            for resource in resources.iter().filter(|resource| !text(resource, "name").contains('/')) {
                let plural = text(resource, "name");
                let kind = text(resource, "kind");
                let subresources = resources.iter().filter_map(|other| {
                    let (parent, name) = text(other, "name").split_once('/')?;
                    (parent == plural).then(|| self.subresource(group, version, name, other))
                });
                let subresources = subresources.collect::<Result<Vec<String>, String>>()?;
                let ty = self.type_of(group, version, kind).ok_or_else(|| format!("{kind} has no type"))?;
                let list_ty = match self.type_of(group, version, &format!("{kind}List")) {
                    Some(ty) => format!("Some({ty})"),
                    None => "None".to_owned(),
                };
                let mut out = format!(
                    "    Kind {{ group: {group:?}, version: {version:?}, api_version: {api_version:?}, kind: {kind:?}, \
                     list_kind: \"{kind}List\", plural: {plural:?}, \
                     singular: {:?}, namespaced: {},\n        short_names: &{}, categories: &{}, verbs: {}, \
                     storage_hash: {:?},\n        ty: {ty}, list_ty: {list_ty}, returns_deleted: {}, \
                     subresources: &[",
                    kind.to_lowercase(),
                    resource["namespaced"],
                    strings(list(resource, "shortNames")),
                    strings(list(resource, "categories")),
                    verbs(resource),
                    text(resource, "hash"),
                    resource["returnsDeleted"] == true,
                );
                for subresource in &subresources {
                    let _ = write!(out, "\n            {subresource},");
                }
                out.push_str(if subresources.is_empty() { "] },\n" } else { "\n        ] },\n" });
                kinds.push(([group, version, plural], [group, version, kind], out));
            }
        }
        let mut out = String::from(
            "//! The kinds that are served, in discovery's order. Written by `cargo xtask gen`: do not edit.\n\n\
             use crate::table::{Group, Kind, Subresource};\n\n",
        );
        let _ = writeln!(out, "const ALL: &[&str] = &{ALL_VERBS:?};\n");
        let _ = writeln!(
            out,
            "/// The groups, in discovery's order.\npub(crate) static GROUPS: [Group; {}] = [",
            versions.len()
        );
        for (name, versions) in &versions {
            let _ = writeln!(out, "    Group {{ name: {name:?}, versions: &{versions:?} }},");
        }
        out.push_str("];\n\n");
        let mut index = |name: &str, what: &str, keys: &[[&str; 3]]| {
            let mut order: Vec<usize> = (0..keys.len()).collect();
            order.sort_by_key(|at| keys.get(*at));
            let _ = writeln!(out, "/// Indices of the kinds, sorted by group, version and {what}.");
            let _ = writeln!(out, "pub(crate) static {name}: [u8; {}] = {order:?};\n", order.len());
        };
        index("BY_PLURAL", "plural", &kinds.iter().map(|kind| kind.0).collect::<Vec<_>>());
        index("BY_KIND", "kind", &kinds.iter().map(|kind| kind.1).collect::<Vec<_>>());
        let _ = writeln!(out, "/// The kinds.\npub(crate) static KINDS: [Kind; {}] = [", kinds.len());
        for kind in &kinds {
            out.push_str(&kind.2);
        }
        out.push_str("];\n");
        Ok(out)
    }

    fn subresource(&self, group: &str, version: &str, name: &str, value: &Value) -> Result<String, String> {
        let own = |key, parent| value[key].as_str().unwrap_or(parent).to_owned();
        let (group, version, kind) = (own("group", group), own("version", version), text(value, "kind"));
        let ty = self.type_of(&group, &version, kind).ok_or_else(|| format!("{kind} has no type"))?;
        Ok(format!(
            "Subresource {{ name: {name:?}, group: {group:?}, version: {version:?}, kind: {kind:?}, verbs: {}, ty: Some({ty}) }}",
            verbs(value)
        ))
    }
}

fn verbs(resource: &Value) -> String {
    match &resource["verbs"] {
        Value::String(_) => "ALL".to_owned(),
        _ => format!("&{}", strings(list(resource, "verbs"))),
    }
}

/// The module of a Go package: `core_v1`, `meta_v1`.
fn module(package: &str) -> String {
    let mut parts = package.rsplit('/');
    let version = parts.next().unwrap_or_default();
    let group = parts.next().unwrap_or_default();
    format!("{group}_{version}")
}

/// Converts a Go name to that of a Rust static: `CSINode` to `CSI_NODE`.
fn screaming(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    let mut out = String::new();
    for (at, letter) in letters.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|at| letters.get(at));
        let after = letters.get(at + 1);
        let begins = letter.is_uppercase()
            && before.is_some_and(|before| {
                !before.is_uppercase() || after.is_some_and(|after| after.is_lowercase())
            });
        if begins {
            out.push('_');
        }
        out.extend(letter.to_uppercase());
    }
    out
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map_or(&[], Vec::as_slice)
}

fn strings(values: &[Value]) -> String {
    let texts: Vec<&str> = values.iter().filter_map(Value::as_str).collect();
    format!("{texts:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn go_names_become_names_of_statics() {
        for (go, rust) in [
            ("Pod", "POD"),
            ("CSINode", "CSI_NODE"),
            ("PodIP", "POD_IP"),
            ("FCVolumeSource", "FC_VOLUME_SOURCE"),
            ("HTTPIngressPath", "HTTP_INGRESS_PATH"),
        ] {
            assert_eq!(screaming(go), rust);
        }
    }

    #[test]
    fn packages_become_modules() {
        assert_eq!(module("k8s.io/api/core/v1"), "core_v1");
        assert_eq!(module("k8s.io/apimachinery/pkg/apis/meta/v1"), "meta_v1");
    }
}
