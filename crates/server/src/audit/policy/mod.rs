//! The audit policy (`audit.k8s.io/v1`): in which detail a request is recorded, and at which stages.

mod parse;
#[cfg(test)]
mod tests;

use std::fmt;

pub use parse::AuditPolicyError;

use crate::{
    authz::{Attributes, Target},
    identity::User,
};

/// How much of a request is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) enum Level {
    /// Nothing.
    #[default]
    None,
    /// Who, what, when, from where, and the outcome.
    Metadata,
    /// The object in the request as well.
    Request,
    /// The object in the response as well.
    RequestResponse,
}

impl Level {
    pub(super) const ALL: [Level; 4] = [Level::None, Level::Metadata, Level::Request, Level::RequestResponse];

    /// Its name in policies and events.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Level::None => "None",
            Level::Metadata => "Metadata",
            Level::Request => "Request",
            Level::RequestResponse => "RequestResponse",
        }
    }
}

/// The moments at which events are recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The sender is authenticated, and nothing else has happened.
    RequestReceived,
    /// The headers of the response are sent; only of requests that take long, such as watches.
    ResponseStarted,
    /// The response is complete.
    ResponseComplete,
    /// The server panicked.
    Panic,
}

impl Stage {
    const ALL: [Stage; 4] =
        [Stage::RequestReceived, Stage::ResponseStarted, Stage::ResponseComplete, Stage::Panic];

    /// Its name in policies and events.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Stage::RequestReceived => "RequestReceived",
            Stage::ResponseStarted => "ResponseStarted",
            Stage::ResponseComplete => "ResponseComplete",
            Stage::Panic => "Panic",
        }
    }
}

/// A set of stages.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Stages(u8);

impl Stages {
    fn with(self, stage: Stage) -> Stages {
        Stages(self.0 | 1 << stage as u8)
    }

    fn union(self, other: Stages) -> Stages {
        Stages(self.0 | other.0)
    }

    pub(crate) fn contains(self, stage: Stage) -> bool {
        self.0 & 1 << stage as u8 != 0
    }
}

impl fmt::Debug for Stages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(Stage::ALL.iter().filter(|stage| self.contains(**stage))).finish()
    }
}

/// An audit policy: rules of which the first that matches a request decides. Requests that no rule matches are not recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditPolicy {
    rules: Vec<Rule>,
    omit_stages: Stages,
    omit_managed_fields: bool,
}

/// Requests match a rule if they match all of its fields. An empty list matches all requests.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Rule {
    level: Level,
    users: Vec<String>,
    groups: Vec<String>,
    verbs: Vec<String>,
    resources: Vec<GroupResources>,
    namespaces: Vec<String>,
    paths: Vec<String>,
    omit_stages: Stages,
    omit_managed_fields: Option<bool>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct GroupResources {
    group: String,
    /// `pods`, `pods/log`, `pods/*`, `*/scale`, `*`.
    resources: Vec<String>,
    names: Vec<String>,
}

/// What a policy says about a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Verdict {
    pub(crate) level: Level,
    pub(crate) omit_stages: Stages,
    pub(crate) omit_managed_fields: bool,
}

impl AuditPolicy {
    /// What to record of a request. Without a user, rules that name users or groups do not match.
    pub(crate) fn evaluate(&self, user: Option<&User>, request: &Attributes<'_>) -> Verdict {
        match self.rules.iter().find(|rule| rule.matches(user, request)) {
            Some(rule) => Verdict {
                level: rule.level,
                omit_stages: self.omit_stages.union(rule.omit_stages),
                omit_managed_fields: rule.omit_managed_fields.unwrap_or(self.omit_managed_fields),
            },
            None => Verdict {
                level: Level::None,
                omit_stages: self.omit_stages,
                omit_managed_fields: self.omit_managed_fields,
            },
        }
    }
}

/// Whether a list that matches everything when it is empty contains a text.
fn lists(list: &[String], text: &str) -> bool {
    list.is_empty() || list.iter().any(|one| one == text)
}

impl Rule {
    fn matches(&self, user: Option<&User>, request: &Attributes<'_>) -> bool {
        let by_name = self.users.is_empty() || user.is_some_and(|user| lists(&self.users, &user.name));
        let by_group = self.groups.is_empty()
            || user.is_some_and(|user| user.groups.iter().any(|group| self.groups.contains(group)));
        if !by_name || !by_group || !lists(&self.verbs, request.verb.as_str()) {
            return false;
        }
        match request.target {
            _ if self.is_for_all_targets() => true,
            Target::Resource { group, resource, subresource, namespace, name } => {
                self.paths.is_empty()
                    && lists(&self.namespaces, namespace)
                    && (self.resources.is_empty()
                        || self.resources.iter().any(|one| one.matches(group, resource, subresource, name)))
            }
            Target::Path(path) => {
                self.namespaces.is_empty()
                    && self.resources.is_empty()
                    && self.paths.iter().any(|pattern| path_matches(pattern, path))
            }
        }
    }

    fn is_for_all_targets(&self) -> bool {
        self.namespaces.is_empty() && self.resources.is_empty() && self.paths.is_empty()
    }
}

impl GroupResources {
    fn matches(&self, group: &str, resource: &str, subresource: &str, name: &str) -> bool {
        if self.group != "*" && self.group != group {
            return false;
        }
        if self.resources.is_empty() {
            return true;
        }
        lists(&self.names, name)
            && self.resources.iter().any(|pattern| match pattern.split_once('/') {
                None => pattern == "*" || subresource.is_empty() && pattern == resource,
                Some((of, "*")) => of == resource,
                Some(("*", sub)) => !subresource.is_empty() && sub == subresource,
                Some((of, sub)) => of == resource && sub == subresource,
            })
    }
}

fn path_matches(pattern: &str, path: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => path.starts_with(prefix),
        None => pattern == path,
    }
}
