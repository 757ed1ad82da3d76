//! Paths and operations of a resource.

use serde_json::{Map, Value, json};

use super::{META, SCHEMAS, prefix};
use crate::{
    table::{Shape, Type},
    type_by_name,
};

const JSON: &str = "application/json";
const YAML: &str = "application/yaml";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// A resource, built-in or custom, with its paths.
#[derive(Debug, Clone, Copy)]
pub struct Resource<'a> {
    /// The API group, empty for the core group.
    pub group: &'a str,
    /// The version.
    pub version: &'a str,
    /// `CronTab`
    pub kind: &'a str,
    /// `crontabs`
    pub plural: &'a str,
    /// Whether it is namespaced.
    pub namespaced: bool,
    /// The verbs in discovery.
    pub verbs: &'a [&'a str],
    /// Its subresources.
    pub subresources: &'a [ResourceSubresource<'a>],
    /// The name of its schema: `com.example.stable.v1.CronTab`.
    pub schema: &'a str,
    /// The name of the schema of its list.
    pub list_schema: &'a str,
    /// Custom resources support JSON and YAML only, and have neither strategic merge patch nor watch paths.
    pub custom: bool,
    /// Whether DELETE responds with the object instead of a Status.
    pub returns_deleted: bool,
}

/// A subresource of a [`Resource`].
#[derive(Debug, Clone, Copy)]
pub struct ResourceSubresource<'a> {
    /// `scale`
    pub name: &'a str,
    /// The group of its kind.
    pub group: &'a str,
    /// Its version.
    pub version: &'a str,
    /// `Scale`
    pub kind: &'a str,
    /// The verbs in discovery.
    pub verbs: &'a [&'a str],
    /// The name of the schema of its body (for `exec` and the like: of its options).
    pub schema: &'a str,
}

/// A parameter: location, name and type.
type Parameter = (&'static str, &'static str, &'static str);

const fn query(name: &'static str, ty: &'static str) -> Parameter {
    ("query", name, ty)
}

const PRETTY: Parameter = query("pretty", "string");

const LIST: &[Parameter] = &[
    query("allowWatchBookmarks", "boolean"),
    query("continue", "string"),
    query("fieldSelector", "string"),
    query("labelSelector", "string"),
    query("limit", "integer"),
    PRETTY,
    query("resourceVersion", "string"),
    query("resourceVersionMatch", "string"),
    query("sendInitialEvents", "boolean"),
    query("shardSelector", "string"),
    query("timeoutSeconds", "integer"),
    query("watch", "boolean"),
];

const WRITE: &[Parameter] =
    &[query("dryRun", "string"), query("fieldManager", "string"), query("fieldValidation", "string"), PRETTY];

const DELETE: &[Parameter] = &[
    query("dryRun", "string"),
    query("gracePeriodSeconds", "integer"),
    query("ignoreStoreReadErrorWithClusterBreakingPotential", "boolean"),
    query("orphanDependents", "boolean"),
    PRETTY,
    query("propagationPolicy", "string"),
];

/// An operation, before common parameters are moved to its path.
struct Operation {
    method: &'static str,
    parameters: Vec<Parameter>,
    body: Value,
}

/// The id and the tag of a group version: `AppsV1`, as in `listAppsV1Deployment`, and `apps_v1`.
pub(super) fn operation_name(group: &str, version: &str) -> (String, String) {
    let group = if group.is_empty() { "core" } else { group.strip_suffix(".k8s.io").unwrap_or(group) };
    let group: String = group.split(|letter: char| !letter.is_alphanumeric()).map(title).collect();
    let id = format!("{group}{}", title(version));
    let mut letters = group.chars();
    let lower: String =
        letters.next().into_iter().flat_map(char::to_lowercase).chain(letters.clone()).collect();
    let tag = if version.is_empty() { lower } else { format!("{lower}_{version}") };
    (id, tag)
}

fn title(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().into_iter().flat_map(char::to_uppercase).chain(letters.clone()).collect()
}

/// A GET operation without parameters.
pub(super) fn read_operation(id: &str, tag: &str, schema: &str) -> Value {
    let mut out = Map::new();
    out.insert("tags".to_owned(), json!([tag]));
    out.insert("operationId".to_owned(), id.into());
    out.insert("responses".to_owned(), responses(&["200"], &[JSON, PROTOBUF, YAML], &refer(schema)));
    out.into()
}

fn refer(schema: &str) -> Value {
    json!({"$ref": format!("{SCHEMAS}{schema}")})
}

fn content(media: &[&str], schema: &Value) -> Value {
    Value::Object(media.iter().map(|media| ((*media).to_owned(), json!({"schema": schema}))).collect())
}

fn responses(codes: &[&str], media: &[&str], schema: &Value) -> Value {
    let mut out = Map::new();
    for code in codes {
        let description = match *code {
            "201" => "Created",
            "202" => "Accepted",
            _ => "OK",
        };
        out.insert(
            (*code).to_owned(),
            json!({"description": description, "content": content(media, schema)}),
        );
    }
    out.insert("401".to_owned(), json!({"description": "Unauthorized"}));
    out.into()
}

/// The query parameters of an options type; only scalar fields can be parameters.
fn options(ty: &'static Type) -> impl Iterator<Item = Parameter> {
    ty.fields.iter().filter(|field| field.declared_in != "TypeMeta").filter_map(|field| {
        let shape = match field.shape {
            Shape::List(item) => *item,
            shape => shape,
        };
        match shape {
            Shape::Bool => Some(query(field.name, "boolean")),
            Shape::Int32 | Shape::Int64 => Some(query(field.name, "integer")),
            Shape::String(_) => Some(query(field.name, "string")),
            _ => None,
        }
    })
}

impl Resource<'_> {
    /// The paths with their operations.
    pub(super) fn paths(&self) -> Vec<(String, Value)> {
        let mut paths = Vec::new();
        let has = |verb| self.verbs.contains(&verb);
        let root = format!("/{}", prefix(self.group, self.version));
        let collection = if self.namespaced {
            format!("namespaces/{{namespace}}/{}", self.plural)
        } else {
            self.plural.to_owned()
        };
        if self.namespaced && has("list") {
            let operation = self.list(&format!("{}ForAllNamespaces", self.kind));
            paths.push((format!("{root}/{}", self.plural), item(vec![operation])));
        }
        let noun = self.noun();
        let mut operations = Vec::new();
        if has("list") {
            operations.push(self.list(&noun));
        }
        if has("create") {
            operations.push(self.write(
                "post",
                "create",
                &noun,
                self.own(self.schema),
                &["200", "201", "202"],
            ));
        }
        if has("deletecollection") {
            operations.push(self.delete_collection());
        }
        paths.push((format!("{root}/{collection}"), item(operations)));

        let mut operations = Vec::new();
        if has("get") {
            operations.push(self.get(&noun, self.own(self.schema)));
        }
        if has("update") {
            operations.push(self.write("put", "replace", &noun, self.own(self.schema), &["200", "201"]));
        }
        if has("patch") {
            operations.push(self.patch(&noun, self.own(self.schema)));
        }
        if has("delete") {
            operations.push(self.delete());
        }
        paths.push((format!("{root}/{collection}/{{name}}"), item(operations)));
        for subresource in self.subresources {
            self.subresource(
                &format!("{root}/{collection}/{{name}}/{}", subresource.name),
                subresource,
                &mut paths,
            );
        }
        if has("watch") && !self.custom {
            let watch = format!("{root}/watch");
            if self.namespaced {
                let operation = self.watch(&format!("{}ListForAllNamespaces", self.kind), "watchlist", &[]);
                paths.push((format!("{watch}/{}", self.plural), item(vec![operation])));
            }
            let operation = self.watch(&format!("{noun}List"), "watchlist", self.scope(false));
            paths.push((format!("{watch}/{collection}"), item(vec![operation])));
            let operation = self.watch(&noun, "watch", self.scope(true));
            paths.push((format!("{watch}/{collection}/{{name}}"), item(vec![operation])));
        }
        paths.retain(|(_, item)| !item.is_null());
        paths
    }

    /// `NamespacedDeployment`
    fn noun(&self) -> String {
        format!("{}{}", if self.namespaced { "Namespaced" } else { "" }, self.kind)
    }

    /// The parameters in the path.
    fn scope(&self, object: bool) -> &'static [Parameter] {
        const NAME: Parameter = ("path", "name", "string");
        const NAMESPACE: Parameter = ("path", "namespace", "string");
        match (object, self.namespaced) {
            (true, true) => &[NAME, NAMESPACE],
            (true, false) => &[NAME],
            (false, true) => &[NAMESPACE],
            (false, false) => &[],
        }
    }

    /// The resource itself as the body of an operation.
    fn own<'b>(&'b self, schema: &'b str) -> ResourceSubresource<'b> {
        ResourceSubresource {
            name: "",
            group: self.group,
            version: self.version,
            kind: self.kind,
            verbs: self.verbs,
            schema,
        }
    }

    fn produces(&self) -> &'static [&'static str] {
        if self.custom { &[JSON, YAML] } else { &[JSON, PROTOBUF, YAML] }
    }

    fn consumes(&self) -> &'static [&'static str] {
        if self.custom { &[JSON, YAML] } else { &["*/*"] }
    }

    fn operation(
        &self,
        action: &str,
        verb: &str,
        noun: &str,
        of: &ResourceSubresource<'_>,
        responses: Value,
    ) -> Map<String, Value> {
        let (id, tag) = operation_name(self.group, self.version);
        let mut out = Map::new();
        out.insert("tags".to_owned(), json!([tag]));
        out.insert("operationId".to_owned(), format!("{verb}{id}{noun}").into());
        out.insert("responses".to_owned(), responses);
        out.insert("x-kubernetes-action".to_owned(), action.into());
        out.insert(
            "x-kubernetes-group-version-kind".to_owned(),
            json!({"group": of.group, "version": of.version, "kind": of.kind}),
        );
        out
    }

    fn get(&self, noun: &str, of: ResourceSubresource<'_>) -> Operation {
        let responses = responses(&["200"], self.produces(), &refer(of.schema));
        let body = self.operation("get", "read", noun, &of, responses).into();
        Operation { method: "get", parameters: [self.scope(true), &[PRETTY]].concat(), body }
    }

    fn list(&self, noun: &str) -> Operation {
        let media: &[&str] = if self.custom {
            &[JSON, YAML]
        } else {
            &[
                JSON,
                "application/json;stream=watch",
                PROTOBUF,
                "application/vnd.kubernetes.protobuf;stream=watch",
                YAML,
            ]
        };
        let responses = responses(&["200"], media, &refer(self.list_schema));
        let body = self.operation("list", "list", noun, &self.own(self.schema), responses).into();
        let everywhere = noun.ends_with("ForAllNamespaces");
        let scope = if everywhere { &[] } else { self.scope(false) };
        Operation { method: "get", parameters: [scope, LIST].concat(), body }
    }

    fn watch(&self, noun: &str, action: &str, scope: &[Parameter]) -> Operation {
        let media = [
            JSON,
            "application/json;stream=watch",
            PROTOBUF,
            "application/vnd.kubernetes.protobuf;stream=watch",
            YAML,
        ];
        let responses = responses(&["200"], &media, &refer(&format!("{META}.WatchEvent")));
        let body = self.operation(action, "watch", noun, &self.own(self.schema), responses).into();
        Operation { method: "get", parameters: [scope, LIST].concat(), body }
    }

    fn write(
        &self,
        method: &'static str,
        verb: &str,
        noun: &str,
        of: ResourceSubresource<'_>,
        codes: &[&str],
    ) -> Operation {
        let schema = refer(of.schema);
        let mut body = self.operation(method, verb, noun, &of, responses(codes, self.produces(), &schema));
        let request = json!({"content": content(self.consumes(), &schema), "required": true});
        body.insert("requestBody".to_owned(), request);
        let object = method == "put" || !of.name.is_empty();
        Operation { method, parameters: [self.scope(object), WRITE].concat(), body: body.into() }
    }

    fn patch(&self, noun: &str, of: ResourceSubresource<'_>) -> Operation {
        let (media, codes): (&[&str], &[&str]) = if self.custom {
            (
                &[
                    "application/apply-patch+yaml",
                    "application/json-patch+json",
                    "application/merge-patch+json",
                ],
                &["200"],
            )
        } else {
            (
                &[
                    "application/apply-patch+yaml",
                    "application/json-patch+json",
                    "application/merge-patch+json",
                    "application/strategic-merge-patch+json",
                ],
                &["200", "201"],
            )
        };
        let responses = responses(codes, self.produces(), &refer(of.schema));
        let mut body = self.operation("patch", "patch", noun, &of, responses);
        let patch = refer(&format!("{META}.Patch"));
        body.insert("requestBody".to_owned(), json!({"content": content(media, &patch), "required": true}));
        let parameters = [self.scope(true), WRITE, &[query("force", "boolean")]].concat();
        Operation { method: "patch", parameters, body: body.into() }
    }

    fn delete(&self) -> Operation {
        let status = format!("{META}.Status");
        let schema = refer(if self.returns_deleted { self.schema } else { &status });
        let responses = responses(&["200", "202"], self.produces(), &schema);
        let mut body = self.operation("delete", "delete", &self.noun(), &self.own(self.schema), responses);
        body.insert("requestBody".to_owned(), self.delete_options());
        Operation { method: "delete", parameters: [self.scope(true), DELETE].concat(), body: body.into() }
    }

    fn delete_collection(&self) -> Operation {
        let responses = responses(&["200"], self.produces(), &refer(&format!("{META}.Status")));
        let noun = format!("Collection{}", self.noun());
        let mut body = self.operation("deletecollection", "delete", &noun, &self.own(self.schema), responses);
        let mut parameters = [self.scope(false), LIST].concat();
        if !self.custom {
            body.insert("requestBody".to_owned(), self.delete_options());
            parameters.retain(|(_, name, _)| *name != "watch" && *name != "allowWatchBookmarks");
            parameters.extend(DELETE.iter().filter(|parameter| **parameter != PRETTY));
        }
        Operation { method: "delete", parameters, body: body.into() }
    }

    fn delete_options(&self) -> Value {
        json!({"content": content(self.consumes(), &refer(&format!("{META}.DeleteOptions")))})
    }

    fn subresource(&self, path: &str, of: &ResourceSubresource<'_>, paths: &mut Vec<(String, Value)>) {
        let noun = format!("{}{}", self.noun(), title(of.name));
        if of.kind.ends_with("Options") {
            paths.push((path.to_owned(), item(self.connect(&noun, of, false))));
            if of.name == "proxy" {
                let operations = self.connect(&format!("{noun}WithPath"), of, true);
                paths.push((format!("{path}/{{path}}"), item(operations)));
            }
            return;
        }
        // The operations of a custom resource have its own kind, also those on its scale.
        let shown = if self.custom {
            ResourceSubresource { group: self.group, version: self.version, kind: self.kind, ..*of }
        } else {
            *of
        };
        let mut operations = Vec::new();
        for verb in of.verbs {
            operations.push(match *verb {
                "get" if of.name == "log" => self.log(&noun, of),
                "get" => self.get(&noun, shown),
                "create" => self.write("post", "create", &noun, shown, &["200", "201", "202"]),
                "update" => self.write("put", "replace", &noun, shown, &["200", "201"]),
                "patch" => self.patch(&noun, shown),
                _ => continue,
            });
        }
        paths.push((path.to_owned(), item(operations)));
    }

    fn log(&self, noun: &str, of: &ResourceSubresource<'_>) -> Operation {
        let media = [JSON, PROTOBUF, YAML, "text/plain"];
        let responses = responses(&["200"], &media, &json!({"type": "string"}));
        let body = self.operation("get", "read", noun, of, responses).into();
        let mut parameters = [self.scope(true), &[PRETTY]].concat();
        parameters.extend(type_by_name("io.k8s.api.core.v1.PodLogOptions").into_iter().flat_map(options));
        Operation { method: "get", parameters, body }
    }

    fn connect(&self, noun: &str, of: &ResourceSubresource<'_>, with_path: bool) -> Vec<Operation> {
        let methods: &[&str] = if of.name == "proxy" {
            &["delete", "get", "head", "options", "patch", "post", "put"]
        } else {
            &["get", "post"]
        };
        let mut parameters = self.scope(true).to_vec();
        parameters.extend(type_by_name(of.schema).into_iter().flat_map(options));
        if with_path {
            parameters.push(("path", "path", "string"));
        }
        let operation = |method: &&'static str| {
            let responses = responses(&["200"], &["*/*"], &json!({"type": "string"}));
            let noun = format!("{}{noun}", title(method));
            let (id, _) = operation_name(self.group, self.version);
            let mut body = self.operation("connect", "connect", &noun, of, responses);
            body.insert("operationId".to_owned(), format!("connect{id}{noun}").into());
            Operation { method, parameters: parameters.clone(), body: body.into() }
        };
        methods.iter().map(operation).collect()
    }
}

/// The item of a path, with the parameters that all operations share. Null without operations.
fn item(operations: Vec<Operation>) -> Value {
    let Some(first) = operations.first() else { return Value::Null };
    let shared: Vec<Parameter> = first
        .parameters
        .iter()
        .filter(|parameter| operations.iter().all(|operation| operation.parameters.contains(parameter)))
        .copied()
        .collect();
    let mut out = Map::new();
    for mut operation in operations {
        operation.parameters.retain(|parameter| !shared.contains(parameter));
        if let (false, Some(body)) = (operation.parameters.is_empty(), operation.body.as_object_mut()) {
            body.insert("parameters".to_owned(), show(operation.parameters));
        }
        out.insert(operation.method.to_owned(), operation.body);
    }
    if !shared.is_empty() {
        out.insert("parameters".to_owned(), show(shared));
    }
    out.into()
}

fn show(mut parameters: Vec<Parameter>) -> Value {
    parameters.sort_by_key(|(place, name, _)| (*name, *place));
    parameters
        .into_iter()
        .map(|(place, name, ty)| {
            let mut out = json!({"name": name, "in": place, "schema": {"type": ty, "uniqueItems": true}});
            if let (true, Some(out)) = (place == "path", out.as_object_mut()) {
                out.insert("required".to_owned(), true.into());
            }
            out
        })
        .collect()
}
