//! Users and their credentials. Nothing here depends on a tenant.

mod claims;
mod csv;
mod jwt;
mod tokens;

pub(crate) use claims::{Claims, ObjectRef, Private};
pub(crate) use jwt::Verdict;
pub use tokens::Tokens;

/// Signs and verifies the tokens of service accounts.
pub(crate) type TokenSigner = jwt::Signer<Claims>;

/// The user that sends a request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct User {
    /// The name.
    pub name: String,
    /// The uid, if there is one.
    pub uid: String,
    /// The groups.
    pub groups: Vec<String>,
    /// Additional attributes, such as the pod a token is bound to.
    pub extra: Vec<(String, Vec<String>)>,
}

impl User {
    /// A user in these groups and in `system:authenticated`.
    pub fn new(name: impl Into<String>, groups: &[&str]) -> User {
        let mut groups: Vec<String> = groups.iter().map(|group| (*group).to_owned()).collect();
        groups.push("system:authenticated".into());
        User { name: name.into(), groups, ..User::default() }
    }

    /// The administrator: the default user of clients in this process.
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

    pub(crate) fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|one| one == group)
    }

    /// Whether the user is a member of `system:masters`, who may do everything.
    pub fn is_admin(&self) -> bool {
        self.is_in("system:masters")
    }
}
