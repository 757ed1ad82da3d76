//! Users, and the credentials they are known by. Nothing here depends on a tenant.

mod claims;
mod csv;
mod jwt;
mod tokens;

pub(crate) use claims::{Claims, ObjectRef, Private};
pub(crate) use jwt::Verdict;
pub use tokens::Tokens;

/// Signs and verifies the tokens of service accounts.
pub(crate) type TokenSigner = jwt::Signer<Claims>;

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

    pub(crate) fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|one| one == group)
    }

    /// Whether everything is allowed to them.
    pub fn is_admin(&self) -> bool {
        self.is_in("system:masters")
    }
}
