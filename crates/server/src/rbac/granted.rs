//! The rules that apply to a user in one scope, arranged for decisions.

use std::{
    collections::HashSet,
    fmt,
    sync::{Arc, OnceLock},
};

use hashbrown::HashMap;
use k1s_object::field::quote;

use super::{
    index::{Binding, Rules, Who},
    rule::{ALL, Rule},
};
use crate::{
    authz::{Attributes, Target},
    identity::User,
};

/// The rules of a user's bindings in one scope, in the order of the bindings. Most requests look at a few of them: those about
/// their resource.
#[derive(Debug, Default)]
pub(super) struct Granted {
    rules: Vec<One>,
    /// The places of rules by the resource that they name, without a subresource. `*` stands for those that name any.
    by_resource: HashMap<Box<str>, Vec<usize>>,
    /// The places of rules about paths.
    paths: Vec<usize>,
}

/// A rule, and the binding that it comes from.
#[derive(Debug)]
struct One {
    rules: Rules,
    at: usize,
    binding: Arc<Binding>,
    /// Why it allows something to the user.
    reason: OnceLock<Arc<str>>,
}

impl One {
    fn allows(&self, wanted: &Attributes<'_>) -> bool {
        self.rules.get(self.at).is_some_and(|rule| rule.allows(wanted))
    }
}

/// The part of `pods` or `pods/log` by which rules are found.
fn name_of(resource: &str) -> &str {
    let end = resource.bytes().position(|byte| byte == b'/').unwrap_or(resource.len());
    resource.get(..end).unwrap_or(resource)
}

impl Granted {
    /// `bindings`: those of the user, with the rules of their roles.
    pub(super) fn new<'a>(bindings: impl Iterator<Item = (&'a Arc<Binding>, &'a Rules)>) -> Granted {
        let mut granted = Granted::default();
        // A rule that an earlier binding has, too, decides nothing.
        let mut seen: HashSet<&Rule> = HashSet::new();
        for (binding, rules) in bindings {
            for (at, rule) in rules.iter().enumerate() {
                if seen.insert(rule) {
                    granted.add(binding, rules, at, rule);
                }
            }
        }
        granted
    }

    fn add(&mut self, binding: &Arc<Binding>, rules: &Rules, at: usize, rule: &Rule) {
        let place = self.rules.len();
        let mut names: Vec<&str> = rule.resources.iter().map(|resource| name_of(resource)).collect();
        names.sort_unstable();
        names.dedup();
        for name in names {
            self.by_resource.entry(name.into()).or_default().push(place);
        }
        if !rule.non_resource_urls.is_empty() {
            self.paths.push(place);
        }
        let reason = OnceLock::new();
        self.rules.push(One { rules: rules.clone(), at, binding: binding.clone(), reason });
    }

    /// The first of these rules that allows something.
    fn first(&self, places: &[usize], wanted: &Attributes<'_>) -> Option<(usize, &One)> {
        let mut rules = places.iter().filter_map(|place| Some((*place, self.rules.get(*place)?)));
        rules.find(|(_, one)| one.allows(wanted))
    }

    fn find(&self, wanted: &Attributes<'_>) -> Option<&One> {
        let found = match wanted.target {
            Target::Path(_) => self.first(&self.paths, wanted),
            Target::Resource { resource, .. } => {
                let first =
                    |name: &str| self.by_resource.get(name).and_then(|places| self.first(places, wanted));
                let (by_name, by_wildcard) = (first(name_of(resource)), first(ALL));
                by_name.into_iter().chain(by_wildcard).min_by_key(|(place, _)| *place)
            }
        };
        found.map(|(_, one)| one)
    }

    /// Whether something is allowed.
    pub(super) fn allows(&self, wanted: &Attributes<'_>) -> bool {
        match wanted.target {
            Target::Path(_) => self.first(&self.paths, wanted).is_some(),
            Target::Resource { resource, .. } => [name_of(resource), ALL]
                .into_iter()
                .filter_map(|name| self.by_resource.get(name))
                .any(|places| self.first(places, wanted).is_some()),
        }
    }

    /// Which binding allows something: `RoleBinding "reader/ns" of Role "reader" to User "alice"`. `user` is the one that this is
    /// of.
    pub(super) fn reason(&self, user: &User, wanted: &Attributes<'_>) -> Option<Arc<str>> {
        let one = self.find(wanted)?;
        let reason =
            one.reason.get_or_init(|| format!("RBAC: allowed by {}", Grant::new(&one.binding, user)).into());
        Some(reason.clone())
    }
}

/// A binding that allows something to a user.
struct Grant<'a> {
    binding: &'a Binding,
    /// The place of the first subject of the binding that is the user or one of its groups.
    subject: usize,
}

impl<'a> Grant<'a> {
    fn new(binding: &'a Binding, user: &User) -> Grant<'a> {
        let is_user = |subject: &super::index::Subject| match subject.who(&binding.namespace) {
            Some(Who::User(name)) => *user.name == *name,
            Some(Who::Group(name)) => user.is_in(&name),
            None => false,
        };
        let subject = binding.subjects.iter().position(is_user).unwrap_or_default();
        Grant { binding, subject }
    }
}

impl fmt::Display for Grant<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Binding { namespace, name, role, subjects } = self.binding;
        let (kind, name) = match &**namespace {
            "" => ("ClusterRoleBinding", quote(name)),
            namespace => ("RoleBinding", quote(&format!("{name}/{namespace}"))),
        };
        write!(f, "{kind} {name} of {} {} to ", role.kind, quote(&role.name))?;
        let Some(subject) = subjects.get(self.subject) else { return Ok(()) };
        let name = match &*subject.kind {
            "ServiceAccount" if subject.namespace.is_empty() => format!("{}/{namespace}", subject.name),
            "ServiceAccount" => format!("{}/{}", subject.name, subject.namespace),
            _ => subject.name.to_string(),
        };
        write!(f, "{} {}", subject.kind, quote(&name))
    }
}
