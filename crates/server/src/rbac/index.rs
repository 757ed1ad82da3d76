//! The roles and bindings of a tenant, by subject.
//!
//! What applies to a user in the cluster or in a namespace is collected from the bindings of the user and of each of its groups,
//! without visiting any others, when it is first asked for, and kept until a role or binding of that scope changes. A decision
//! looks at what was collected. Roles are parsed once, when they change.

use std::{collections::BTreeMap, sync::Arc};

use hashbrown::HashMap;
use k1s_object::field::quote;
use serde::Deserialize;

use super::{granted::Granted, rule::Rule};
use crate::{
    authz::Attributes,
    identity::{ByUser, User},
};

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
pub(super) enum Who {
    User(Box<str>),
    Group(Box<str>),
}

impl Subject {
    /// Whom this subject of a binding in `namespace` stands for: a service account is the user of that name.
    pub(super) fn who(&self, namespace: &str) -> Option<Who> {
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

/// Rules of one role.
pub(super) type Rules = Arc<[Rule]>;

/// Bindings by name, in the order in which they are evaluated.
type Bindings = BTreeMap<Box<str>, Arc<Binding>>;

/// The bindings of one namespace, or of the cluster.
#[derive(Debug, Default)]
struct Scope {
    users: HashMap<Box<str>, Bindings>,
    groups: HashMap<Box<str>, Bindings>,
    all: Bindings,
    roles: HashMap<Box<str>, Rules>,
    /// What applies to users that were asked about.
    granted: ByUser<Granted>,
}

impl Scope {
    fn is_empty(&self) -> bool {
        self.all.is_empty() && self.roles.is_empty()
    }

    /// The bindings of a user and its groups; a binding can come more than once.
    fn of<'a>(&'a self, user: &'a User) -> impl Iterator<Item = &'a Arc<Binding>> {
        self.lists(user).flat_map(BTreeMap::values)
    }

    fn lists<'a>(&'a self, user: &'a User) -> impl Iterator<Item = &'a Bindings> {
        let of_user = self.users.get(&*user.name);
        let of_groups = user.groups.iter().filter_map(|group| self.groups.get(&**group));
        of_user.into_iter().chain(of_groups)
    }

    /// Whether there is a binding of a user or one of its groups.
    fn has(&self, user: &User) -> bool {
        self.lists(user).next().is_some()
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
        self.forget();
        self.scopes.retain(|_, scope| !scope.is_empty());
    }

    /// Forgets what applies to users: bindings of all scopes can be of cluster roles.
    fn forget(&mut self) {
        self.scopes.values_mut().for_each(|scope| scope.granted.clear());
    }

    fn change(&mut self, namespace: &str, change: impl FnOnce(&mut Scope)) {
        if let Some(scope) = self.scopes.get_mut(namespace) {
            scope.granted.clear();
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
        if namespace.is_empty() {
            self.forget();
        }
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
        let found = self.find_rules(role, namespace).map(|rules| &**rules);
        found.ok_or_else(|| format!("{word}.{} {} not found", super::GROUP, quote(&role.name)))
    }

    fn find_rules(&self, role: &RoleRef, namespace: &str) -> Option<&Rules> {
        let scope = match &*role.kind {
            "ClusterRole" => "",
            "Role" if !namespace.is_empty() => namespace,
            _ => return None,
        };
        self.scopes.get(scope)?.roles.get(&*role.name)
    }

    /// The scopes of a request: the cluster, and the namespace if it has one.
    fn scopes(&self, namespace: &str) -> impl Iterator<Item = &Scope> {
        let namespace = Some(namespace).filter(|namespace| !namespace.is_empty());
        let names = [Some(""), namespace].into_iter().flatten();
        names.filter_map(|name| self.scopes.get(name))
    }

    /// Reads what applies to a user in a scope. In namespaces, to be asked for users with bindings only: that of all others need
    /// not be kept.
    fn granted<R>(&self, scope: &Scope, user: &User, read: impl FnOnce(&Granted) -> R) -> R {
        let collect = || {
            let rules = |binding: &Arc<Binding>| self.find_rules(&binding.role, &binding.namespace);
            Granted::new(scope.of(user).filter_map(|binding| Some((binding, rules(binding)?))))
        };
        scope.granted.read(user, collect, read)
    }

    /// Reads what applies to a user in the cluster, and then in the namespace of a request, until something is found.
    fn find<R>(
        &self,
        user: &User,
        wanted: &Attributes<'_>,
        read: impl Fn(&Granted) -> Option<R>,
    ) -> Option<R> {
        let scope = |name: &str| self.scopes.get(name);
        let of_cluster = scope("").and_then(|scope| self.granted(scope, user, &read));
        if of_cluster.is_some() || wanted.namespace().is_empty() {
            return of_cluster;
        }
        let scope = scope(wanted.namespace()).filter(|scope| scope.has(user))?;
        self.granted(scope, user, read)
    }

    /// Whether an action is allowed to a user.
    pub(crate) fn is_granted(&self, user: &User, wanted: &Attributes<'_>) -> bool {
        self.find(user, wanted, |granted| granted.allows(wanted).then_some(())).is_some()
    }

    /// Why an action is allowed to a user, by the first binding that allows it: `RBAC: allowed by RoleBinding "reader/ns" of Role
    /// "reader" to User "alice"`.
    pub(crate) fn grant(&self, user: &User, wanted: &Attributes<'_>) -> Option<Arc<str>> {
        self.find(user, wanted, |granted| granted.reason(user, wanted))
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
