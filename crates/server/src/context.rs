//! The context of a request for a resource.

use std::sync::{Arc, atomic::AtomicBool};

use bytes::Bytes;
use http::{HeaderMap, Method, header};
use k1s_object::{FieldError, Status};
use k1s_store::Revision;
use parking_lot::Mutex;
use serde_json::Value;

use crate::{
    audit::Trail,
    capacity::HeldTurn,
    closing::Closing,
    converted::Memo,
    errors::Error,
    identity::User,
    negotiate::Accepted,
    request::Query,
    resource::{Resource, Source},
    stored::Stored,
    tenant::Tenant,
};

/// A request for a resource.
pub(crate) struct Cx {
    pub(crate) tenant: Arc<Tenant>,
    pub(crate) user: User,
    pub(crate) method: Method,
    pub(crate) headers: HeaderMap,
    pub(crate) query: Query,
    pub(crate) body: Bytes,
    pub(crate) resource: Arc<Resource>,
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) subresource: String,
    pub(crate) accepted: Accepted,
    /// The `Warning` headers of the response.
    pub(crate) warnings: Mutex<Vec<String>>,
    /// Whether the server itself makes the request. Webhooks and policies of users do not see it.
    pub(crate) own: bool,
    /// Whether the request already runs on a blocking thread, where large work may be done.
    pub(crate) apart: AtomicBool,
    /// The permit for large work, while the request holds it.
    pub(crate) turn: HeldTurn,
    /// What tells the flow of the request apart from others.
    pub(crate) flow: u64,
    /// Objects in other versions, for their field managers.
    pub(crate) converted: Memo,
    /// Ends a watch in a project that is suspended.
    pub(crate) closing: Option<Closing>,
    /// A revision of the store that was read since the request came, if one was.
    pub(crate) newest: Option<Revision>,
    /// What is recorded of the request, if anything is.
    pub(crate) trail: Option<Arc<Trail>>,
}

/// Maximum number of warnings of a response.
const MAX_WARNINGS: usize = 100;
/// Maximum total length of the warnings of a response.
const MAX_WARNING_BYTES: usize = 4 << 10;
/// Length to which warnings are shortened when they exceed the total.
const SHORT_WARNING_BYTES: usize = 256;

/// Maximum length of the name of a field manager.
const MAX_FIELD_MANAGER: usize = 128;

/// How the decoder treats unknown and duplicate fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FieldValidation {
    Ignore,
    Warn,
    Strict,
}

impl Cx {
    /// Adds a warning, once. As kube-apiserver does, all of them are shortened when there are too many, and
    /// further ones are dropped.
    pub(crate) fn warn(&self, warning: impl Into<String>) {
        let mut warning = warning.into();
        let mut warnings = self.warnings.lock();
        let total = |warnings: &[String]| warnings.iter().map(String::len).sum::<usize>();
        if warnings.len() >= MAX_WARNINGS || warnings.contains(&warning) {
            return;
        }
        if total(&warnings) + warning.len() > MAX_WARNING_BYTES {
            let shorten = |text: &mut String| text.truncate(text.floor_char_boundary(SHORT_WARNING_BYTES));
            warnings.iter_mut().for_each(shorten);
            shorten(&mut warning);
            if total(&warnings) + warning.len() > MAX_WARNING_BYTES || warnings.contains(&warning) {
                return;
            }
        }
        warnings.push(warning);
    }

    /// The key of the requested object.
    pub(crate) fn key(&self) -> Bytes {
        self.tenant.key(&self.resource, &self.namespace, &self.name)
    }

    /// 404 for the requested object.
    pub(crate) fn not_found(&self) -> Error {
        self.resource.not_found(&self.name)
    }

    /// Decodes the requested object from its stored form.
    pub(crate) fn read(&self, stored: &Stored) -> Result<Value, Status> {
        self.resource.read(stored).map_err(|why| self.resource.unreadable(&self.name, &why))
    }

    /// Decodes the requested object from its stored form for a write; see [`Stored::to_write`].
    pub(crate) fn read_to_write(&self, stored: &Stored) -> Result<Value, Status> {
        self.resource.read_to_write(stored).map_err(|why| self.resource.unreadable(&self.name, &why))
    }

    /// 422 for the requested object, with its storage group.
    pub(crate) fn invalid(&self, name: &str, errors: &[FieldError]) -> Status {
        Status::invalid(self.resource.storage_group(), &self.resource.kind, name, errors)
    }

    /// A request by the server itself, as an administrator.
    pub(crate) fn internal(
        tenant: &Arc<Tenant>,
        resource: &Arc<Resource>,
        namespace: &str,
        name: &str,
    ) -> Cx {
        Cx {
            tenant: tenant.clone(),
            user: User::admin(),
            method: Method::POST,
            headers: HeaderMap::new(),
            query: Query::default(),
            body: Bytes::new(),
            resource: resource.clone(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            subresource: String::new(),
            accepted: Accepted::JSON,
            warnings: Mutex::default(),
            own: true,
            // Part of another request, which already runs apart if it is large.
            apart: AtomicBool::new(true),
            turn: HeldTurn::default(),
            flow: 0,
            converted: Memo::default(),
            closing: None,
            newest: None,
            trail: None,
        }
    }

    /// The same for one object of the requested collection.
    pub(crate) fn for_object(&self, namespace: &str, name: &str) -> Cx {
        let (user, turn, trail) = (self.user.clone(), self.turn.clone(), self.trail.clone());
        Cx {
            user,
            turn,
            trail,
            flow: self.flow,
            own: self.own,
            ..Cx::internal(&self.tenant, &self.resource, namespace, name)
        }
    }

    /// The options of a write in the query: dryRun, fieldManager, fieldValidation. `kind` names them in errors.
    pub(crate) fn write_options(&self, kind: &str) -> Result<WriteOptions, Status> {
        let mut errors = Vec::new();
        let dry_run: Vec<&str> = self.query.all("dryRun").collect();
        check_dry_run(&dry_run, &mut errors);
        if kind != "DeleteOptions" {
            check_field_manager(self.query.get("fieldManager"), &mut errors);
        }
        let field_validation = match self.query.find("fieldValidation") {
            None | Some("" | "Warn") => FieldValidation::Warn,
            Some("Ignore") => FieldValidation::Ignore,
            Some("Strict") => FieldValidation::Strict,
            Some(other) => {
                if kind != "DeleteOptions" {
                    errors.push(FieldError::not_supported(
                        "fieldValidation",
                        other,
                        &["", "Ignore", "Strict", "Warn"],
                    ));
                }
                FieldValidation::Warn
            }
        };
        if !errors.is_empty() {
            return Err(invalid_options(kind, &errors));
        }
        Ok(WriteOptions { dry_run: !dry_run.is_empty(), field_validation })
    }

    /// The name of the field manager: that of the request, or the beginning of its User-Agent.
    pub(crate) fn field_manager(&self) -> String {
        let named = self.query.get("fieldManager");
        if !named.is_empty() {
            return named.to_owned();
        }
        let agent =
            self.headers.get(header::USER_AGENT).map(|agent| String::from_utf8_lossy(agent.as_bytes()));
        let mut name = String::new();
        let agent = agent.as_deref().unwrap_or_default();
        for c in agent.split('/').next().unwrap_or_default().chars().filter(|c| !c.is_control()) {
            if name.len() + c.len_utf8() > MAX_FIELD_MANAGER {
                break;
            }
            name.push(c);
        }
        name
    }

    /// Warns if the requested version is deprecated.
    pub(crate) fn warn_deprecated(&self) {
        let warning = match &self.resource.source {
            Source::Custom(custom) => custom.deprecation().unwrap_or_default(),
            Source::BuiltIn(built_in) => built_in.rules.deprecated.to_owned(),
        };
        if !warning.is_empty() {
            self.audit(|trail| trail.annotate("k8s.io/deprecated", "true"));
            self.warn(warning);
        }
    }

    /// Adds to the record of the request, if there is one.
    pub(crate) fn audit(&self, add: impl FnOnce(&Trail)) {
        if let Some(trail) = &self.trail {
            add(trail);
        }
    }
}

/// 422 for options.
pub(crate) fn invalid_options(kind: &str, errors: &[FieldError]) -> Status {
    Status::invalid("meta.k8s.io", kind, "", errors)
}

pub(crate) fn check_dry_run(values: &[&str], errors: &mut Vec<FieldError>) {
    if values.iter().any(|value| *value != "All") {
        let shown: Value = values.iter().map(|value| Value::from(*value)).collect();
        errors.push(FieldError::not_supported("dryRun", shown, &["All"]));
    }
}

fn check_field_manager(manager: &str, errors: &mut Vec<FieldError>) {
    if manager.chars().count() > MAX_FIELD_MANAGER {
        errors.push(FieldError::too_long("fieldManager", MAX_FIELD_MANAGER));
    }
    for (at, c) in manager.char_indices() {
        if c.is_control() {
            let detail = format!("invalid character U+{:04X} (at position {at})", c as u32);
            errors.push(FieldError::invalid("fieldManager", manager, detail));
        }
    }
}

/// The options of a write in the query.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WriteOptions {
    pub(crate) dry_run: bool,
    pub(crate) field_validation: FieldValidation,
}
