//! Who sends a request, and whether they may.

use std::{collections::HashMap, fmt};

use http::{HeaderMap, header};
use k1s_object::Status;

/// Who sends a request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct User {
    /// The name.
    pub name: String,
    /// The uid, if there is one.
    pub uid: String,
    /// The groups.
    pub groups: Vec<String>,
    /// More about them, such as the pod a token is bound to.
    pub extra: Vec<(String, Vec<String>)>,
}

impl User {
    /// A user of these groups, and of `system:authenticated`.
    pub fn new(name: impl Into<String>, groups: &[&str]) -> User {
        let mut groups: Vec<String> = groups.iter().map(|group| (*group).to_owned()).collect();
        groups.push("system:authenticated".into());
        User { name: name.into(), groups, ..User::default() }
    }

    /// The administrator that programs in this process are, unless they say otherwise.
    pub fn admin() -> User {
        User::new("admin", &["system:masters"])
    }

    pub(crate) fn anonymous() -> User {
        User {
            name: "system:anonymous".into(),
            groups: vec!["system:unauthenticated".into()],
            ..User::default()
        }
    }

    /// Whether everything is allowed to them.
    pub fn is_admin(&self) -> bool {
        self.groups.iter().any(|group| group == "system:masters")
    }
}

/// Users by their bearer tokens.
#[derive(Clone, Default)]
pub struct Tokens(HashMap<String, User>);

impl Tokens {
    /// Nobody has a token.
    pub fn new() -> Tokens {
        Tokens::default()
    }

    /// Adds a user.
    pub fn insert(&mut self, token: impl Into<String>, user: User) {
        self.0.insert(token.into(), user);
    }

    /// Reads Kubernetes' static token file: lines of `token,user,uid[,"group1,group2"]`.
    pub fn parse(text: &str) -> Result<Tokens, String> {
        let mut tokens = Tokens::new();
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let mut parts = line.splitn(4, ',').map(str::trim);
            let (Some(token), Some(name), Some(uid)) = (parts.next(), parts.next(), parts.next()) else {
                return Err(format!("line {}: expected token,user,uid[,\"group1,group2\"]", number + 1));
            };
            if token.is_empty() || name.is_empty() {
                return Err(format!("line {}: the token and the user must not be empty", number + 1));
            }
            let groups: Vec<&str> = parts
                .next()
                .map(|groups| {
                    groups
                        .trim_matches('"')
                        .split(',')
                        .map(str::trim)
                        .filter(|group| !group.is_empty())
                        .collect()
                })
                .unwrap_or_default();
            tokens.insert(token, User { uid: uid.to_owned(), ..User::new(name, &groups) });
        }
        Ok(tokens)
    }

    pub(crate) fn find(&self, token: &str) -> Option<&User> {
        self.0.get(token)
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.values().map(|user| &user.name)).finish()
    }
}

/// The bearer token of a request, if it carries one.
pub(crate) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// What somebody wants to do.
#[derive(Debug)]
pub(crate) struct Attributes<'a> {
    pub(crate) verb: &'a str,
    pub(crate) group: &'a str,
    pub(crate) resource: &'a str,
    pub(crate) subresource: &'a str,
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
}

/// Whether a user may do this. Until RBAC is here, administrators may do everything and others nothing.
pub(crate) fn authorize(user: &User, wanted: &Attributes<'_>) -> Result<(), Status> {
    if user.is_admin() {
        return Ok(());
    }
    let Attributes { verb, group, resource, subresource, namespace, name } = wanted;
    let full =
        if subresource.is_empty() { (*resource).to_owned() } else { format!("{resource}/{subresource}") };
    let place = if namespace.is_empty() {
        "at the cluster scope".to_owned()
    } else {
        format!("in the namespace {namespace:?}")
    };
    let why = format!("User {:?} cannot {verb} resource {full:?} in API group {group:?} {place}", user.name);
    Err(Status::forbidden(group, resource, name, why))
}

/// Whether a user may see a path that is no resource.
pub(crate) fn authorize_path(user: &User, verb: &str, path: &str) -> Result<(), Status> {
    let open = matches!(path, "/healthz" | "/livez" | "/readyz" | "/version")
        || path.starts_with("/livez/")
        || path.starts_with("/readyz/")
        || path.starts_with("/healthz/");
    let discovery = ["/api", "/apis", "/openapi"]
        .iter()
        .any(|root| path == *root || path.strip_prefix(root).is_some_and(|rest| rest.starts_with('/')));
    let known = user.groups.iter().any(|group| group == "system:authenticated");
    if user.is_admin() || (verb == "get" && (open || (discovery && known))) {
        return Ok(());
    }
    Err(Status::forbidden("", "", "", format!("User {:?} cannot {verb} path {path:?}", user.name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_file_is_read() {
        let tokens = Tokens::parse("# who\nt1,admin,1,\"system:masters\"\n\nt2,alice,2\n").unwrap();
        assert!(tokens.find("t1").unwrap().is_admin());
        assert_eq!(tokens.find("t2").unwrap().groups, ["system:authenticated"]);
        assert_eq!(Tokens::parse("x,y").unwrap_err(), "line 1: expected token,user,uid[,\"group1,group2\"]");
        assert!(!format!("{tokens:?}").contains("t1"));
    }
}
