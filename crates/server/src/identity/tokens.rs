//! The static token file.

use std::{collections::HashMap, fmt};

use sha2::{Digest as _, Sha256};

use super::{User, csv};

/// Users by their bearer tokens.
///
/// Only the digests of tokens are kept and compared. So the timing of a comparison reveals something about digests, whose
/// first bytes an attacker cannot choose, and nothing about tokens.
#[derive(Clone, Default)]
pub struct Tokens(HashMap<[u8; 32], User>);

fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

/// Whether two secrets are the same. Their digests are compared, for the reason above.
pub(crate) fn same_secret(one: &[u8], other: &[u8]) -> bool {
    let digest = |secret: &[u8]| -> [u8; 32] { Sha256::digest(secret).into() };
    digest(one) == digest(other)
}

impl Tokens {
    /// An empty set.
    pub fn new() -> Tokens {
        Tokens::default()
    }

    /// Adds a user.
    pub fn insert(&mut self, token: impl Into<String>, user: User) {
        self.0.insert(digest(&token.into()), user);
    }

    /// Parses Kubernetes' static token file, which is CSV: `token,user,uid[,"group1,group2"]`. As in kube-apiserver, a line
    /// without a token is skipped, and of two lines with the same token the last wins; both are logged. Lines that begin
    /// with `#` are comments.
    ///
    /// # Errors
    /// A description of the error, with its line number.
    pub fn parse(text: &str) -> Result<Tokens, String> {
        let mut tokens = Tokens::new();
        for (line, values) in csv::records(text)? {
            let [token, name, uid, more @ ..] = &values[..] else {
                return Err(format!(
                    "line {line}: expected token,user,uid[,\"group1,group2\"], found {} fields",
                    values.len()
                ));
            };
            if token.is_empty() {
                tracing::warn!(line, "skipping a line of the token file without a token");
                continue;
            }
            if name.is_empty() {
                return Err(format!("line {line}: the user must not be empty"));
            }
            if tokens.find(token).is_some() {
                tracing::warn!(line, "the token file has a token twice; the later line wins");
            }
            let groups = more.first().map(String::as_str).unwrap_or_default();
            let groups: Vec<&str> = groups.split(',').filter(|group| !group.is_empty()).collect();
            tokens.insert(token.as_str(), User { uid: uid.clone(), ..User::new(name, &groups) });
        }
        Ok(tokens)
    }

    pub(crate) fn find(&self, token: &str) -> Option<&User> {
        self.0.get(&digest(token))
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.values().map(|user| &user.name)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_file_is_parsed() {
        let tokens = Tokens::parse("# who\nt1,admin,1,\"system:masters\"\n\nt2,alice,2\n").unwrap();
        assert!(tokens.find("t1").unwrap().is_admin());
        assert_eq!(tokens.find("t2").unwrap().groups, ["system:authenticated"]);
        let refused = Tokens::parse("x,y,z\nx,y").unwrap_err();
        assert_eq!(refused, "line 2: expected token,user,uid[,\"group1,group2\"], found 2 fields");
        assert!(!format!("{tokens:?}").contains("t1"));
    }

    #[test]
    fn quotes_are_parsed_as_kube_apiserver_parses_them() {
        let tokens = Tokens::parse(
            "\"to,ken\",\"Doe, Jane\",1,\"devs,ops\",more\n,nobody,0\nt,first,1\nt,last,2,one,two\n",
        )
        .unwrap();
        let jane = tokens.find("to,ken").unwrap();
        assert_eq!((&*jane.name, &*jane.uid), ("Doe, Jane", "1"));
        assert!(["devs", "ops"].iter().all(|group| jane.groups.iter().any(|has| has == group)), "{jane:?}");
        assert!(tokens.find("").is_none() && tokens.find("to").is_none());
        let last = tokens.find("t").unwrap();
        assert_eq!(last.name, "last");
        assert!(!last.groups.iter().any(|group| group == "two"), "{last:?}");
        assert!(Tokens::parse("t,alice,1,\"devs").unwrap_err().starts_with("line 1: "));
    }
}
