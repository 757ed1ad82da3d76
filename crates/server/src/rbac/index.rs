//! The roles and bindings of a tenant, by subject.
//!
//! A decision looks up the bindings of the user and of each of its groups, in the cluster and in the namespace of the request;
//! it does not visit any others. Roles are parsed once, when they change.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    sync::Arc,
};

use k1s_object::field::quote;
use serde::Deserialize;

use super::rule::Rule;
use crate::{authz::Attributes, identity::User};

/// The role that a binding grants.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub(crate) struct RoleRef {
    pub(crate) kind: Box<str>,
    pub(crate) name: Box<str>,
}

/// A subject of a binding.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Subject {
    pub(crate) kind: Box<str>,
    pub(crate) name: Box<str>,
    pub(crate) namespace: Box<str>,
}

/// Whom a subject stands for.
#[derive(Debug, PartialEq, Eq)]
enum Who {
    User(Box<str>),
    Group(Box<str>),
}

impl Subject {
    /// Whom this subject of a binding in `namespace` stands for: a service account is the user of that name.
    fn who(&self, namespace: &str) -> Option<Who> {
        match &*self.kind {
            "User" => Some(Who::User(self.name.clone())),
            "Group" => Some(Who::Group(self.name.clone())),
            "ServiceAccount" => {
                let own = if self.namespace.is_empty() { namespace } else { &self.namespace };
                let name = format!("system:serviceaccount:{own}:{}", self.name);
                (!own.is_empty()).then(|| Who::User(name.into()))
            }
            _ => None,
        }
    }
}

/// A binding of a role, in a namespace or (empty) in the cluster.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Binding {
    pub(crate) namespace: Box<str>,
    pub(crate) name: Box<str>,
    pub(crate) role: RoleRef,
    pub(crate) subjects: Vec<Subject>,
}

/// A binding that allows something to a user.
#[derive(Debug, Clone)]
pub(crate) struct Grant {
    binding: Arc<Binding>,
    /// The place of the first subject of the binding that is the user or one of its groups.
    subject: usize,
}

impl Grant {
    fn new(binding: &Arc<Binding>, user: &User) -> Grant {
        let is_user = |subject: &Subject| match subject.who(&binding.namespace) {
            Some(Who::User(name)) => *user.name == *name,
            Some(Who::Group(name)) => user.is_in(&name),
            None => false,
        };
        let subject = binding.subjects.iter().position(is_user).unwrap_or_default();
        Grant { binding: binding.clone(), subject }
    }
}

/// `RoleBinding "reader/ns" of Role "reader" to User "alice"`.
impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Binding { namespace, name, role, subjects } = &*self.binding;
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

/// Rules of one role.
type Rules = Arc<[Rule]>;

/// Bindings by name, in the order in which they are evaluated.
type Bindings = BTreeMap<Box<str>, Arc<Binding>>;

/// The bindings of one namespace, or of the cluster.
#[derive(Debug, Default)]
struct Scope {
    users: HashMap<Box<str>, Bindings>,
    groups: HashMap<Box<str>, Bindings>,
    all: Bindings,
    roles: HashMap<Box<str>, Rules>,
}

impl Scope {
    fn is_empty(&self) -> bool {
        self.all.is_empty() && self.roles.is_empty()
    }

    /// The bindings of a user and its groups; a binding can come more than once.
    fn of<'a>(&'a self, user: &'a User) -> impl Iterator<Item = &'a Arc<Binding>> {
        let of_user = self.users.get(&*user.name);
        let of_groups = user.groups.iter().filter_map(|group| self.groups.get(&**group));
        of_user.into_iter().chain(of_groups).flat_map(BTreeMap::values)
    }
}

/// The policy of a tenant.
#[derive(Debug, Default)]
pub(crate) struct Index {
    /// By namespace; that of the cluster is empty, and its roles are the cluster roles.
    scopes: HashMap<Box<str>, Scope>,
}

/// Where an object is: its namespace, or an empty one, and its name.
pub(crate) type At<'a> = (&'a str, &'a str);

impl Index {
    /// Whether there is no policy at all.
    pub(crate) fn is_empty(&self) -> bool {
        self.scopes.is_empty()
    }

    /// Removes all roles, or all bindings, of the cluster or of all namespaces.
    pub(crate) fn clear(&mut self, cluster: bool, roles: bool) {
        for (namespace, scope) in &mut self.scopes {
            if namespace.is_empty() != cluster {
                continue;
            }
            if roles {
                scope.roles.clear();
            } else {
                *scope = Scope { roles: std::mem::take(&mut scope.roles), ..Scope::default() };
            }
        }
        self.scopes.retain(|_, scope| !scope.is_empty());
    }

    fn change(&mut self, namespace: &str, change: impl FnOnce(&mut Scope)) {
        if let Some(scope) = self.scopes.get_mut(namespace) {
            change(scope);
            if scope.is_empty() {
                self.scopes.remove(namespace);
            }
            return;
        }
        let mut scope = Scope::default();
        change(&mut scope);
        if !scope.is_empty() {
            self.scopes.insert(namespace.into(), scope);
        }
    }

    /// Sets the rules of a role, or removes the role.
    pub(crate) fn set_role(&mut self, (namespace, name): At<'_>, rules: Option<Vec<Rule>>) {
        self.change(namespace, |scope| match rules {
            Some(rules) => drop(scope.roles.insert(name.into(), rules.into())),
            None => drop(scope.roles.remove(name)),
        });
    }

    /// Sets the role and the subjects of a binding, or removes the binding.
    pub(crate) fn set_binding(
        &mut self,
        (namespace, name): At<'_>,
        binding: Option<(RoleRef, Vec<Subject>)>,
    ) {
        self.change(namespace, |scope| {
            if let Some(old) = scope.all.remove(name) {
                for who in old.subjects.iter().filter_map(|subject| subject.who(namespace)) {
                    let (table, key) = match who {
                        Who::User(user) => (&mut scope.users, user),
                        Who::Group(group) => (&mut scope.groups, group),
                    };
                    if let Some(bindings) = table.get_mut(&key) {
                        bindings.remove(name);
                        if bindings.is_empty() {
                            table.remove(&key);
                        }
                    }
                }
            }
            let Some((role, subjects)) = binding else { return };
            let new = Arc::new(Binding { namespace: namespace.into(), name: name.into(), role, subjects });
            for who in new.subjects.iter().filter_map(|subject| subject.who(namespace)) {
                let (table, key) = match who {
                    Who::User(user) => (&mut scope.users, user),
                    Who::Group(group) => (&mut scope.groups, group),
                };
                table.entry(key).or_default().insert(name.into(), new.clone());
            }
            scope.all.insert(name.into(), new);
        });
    }

    /// The rules of the role that a binding in `namespace` names.
    ///
    /// # Errors
    /// That there is no such role, in the words of Kubernetes.
    pub(crate) fn rules_of(&self, role: &RoleRef, namespace: &str) -> Result<&[Rule], String> {
        let word = match &*role.kind {
            "ClusterRole" => "clusterrole",
            "Role" => "role",
            other => return Err(format!("unsupported role reference kind: {}", quote(other))),
        };
        let found = self.find_rules(role, namespace);
        found.ok_or_else(|| format!("{word}.{} {} not found", super::GROUP, quote(&role.name)))
    }

    fn find_rules(&self, role: &RoleRef, namespace: &str) -> Option<&[Rule]> {
        let scope = match &*role.kind {
            "ClusterRole" => "",
            "Role" if !namespace.is_empty() => namespace,
            _ => return None,
        };
        self.scopes.get(scope)?.roles.get(&role.name).map(|rules| &**rules)
    }

    /// The scopes of a request: the cluster, and the namespace if it has one.
    fn scopes(&self, namespace: &str) -> impl Iterator<Item = &Scope> {
        let namespace = Some(namespace).filter(|namespace| !namespace.is_empty());
        let names = [Some(""), namespace].into_iter().flatten();
        names.filter_map(|name| self.scopes.get(name))
    }

    /// The bindings that allow an action to a user.
    fn granting<'a>(
        &'a self,
        user: &'a User,
        wanted: &'a Attributes<'_>,
    ) -> impl Iterator<Item = &'a Arc<Binding>> {
        let allows = |binding: &&Arc<Binding>| {
            let rules = self.find_rules(&binding.role, &binding.namespace);
            rules.is_some_and(|rules| rules.iter().any(|rule| rule.allows(wanted)))
        };
        self.scopes(wanted.namespace()).flat_map(|scope| scope.of(user)).filter(allows)
    }

    /// Whether an action is allowed to a user.
    pub(crate) fn is_granted(&self, user: &User, wanted: &Attributes<'_>) -> bool {
        self.granting(user, wanted).next().is_some()
    }

    /// A binding that allows an action to a user.
    pub(crate) fn grant(&self, user: &User, wanted: &Attributes<'_>) -> Option<Grant> {
        self.granting(user, wanted).next().map(|binding| Grant::new(binding, user))
    }

    /// All rules that apply to a user in a namespace, in the order of the bindings' names, and what is wrong with the
    /// bindings that have no rules.
    pub(crate) fn rules(&self, user: &User, namespace: &str) -> (Vec<Rule>, Vec<String>) {
        let (mut rules, mut errors) = (Vec::new(), Vec::new());
        for scope in self.scopes(namespace) {
            let bindings: BTreeMap<&str, &Arc<Binding>> =
                scope.of(user).map(|binding| (&*binding.name, binding)).collect();
            for binding in bindings.values() {
                match self.rules_of(&binding.role, &binding.namespace) {
                    Ok(found) => rules.extend(found.iter().cloned()),
                    Err(error) => errors.push(error),
                }
            }
        }
        (rules, errors)
    }

    /// What is wrong with the bindings that apply to a user in a namespace and have no rules.
    pub(crate) fn errors(&self, user: &User, namespace: &str) -> Vec<String> {
        let mut errors = Vec::new();
        for scope in self.scopes(namespace) {
            let dangling =
                scope.of(user).filter(|binding| self.find_rules(&binding.role, &binding.namespace).is_none());
            let dangling: BTreeMap<&str, &Arc<Binding>> =
                dangling.map(|binding| (&*binding.name, binding)).collect();
            errors.extend(
                dangling
                    .values()
                    .filter_map(|binding| self.rules_of(&binding.role, &binding.namespace).err()),
            );
        }
        errors
    }
}
