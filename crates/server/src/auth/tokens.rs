//! Users by the tokens of a file.

use std::{collections::HashMap, fmt};

use sha2::{Digest as _, Sha256};

use super::User;

/// Users by their bearer tokens.
///
/// The tokens themselves are not kept: what is looked up and compared is their digest. How long that takes says something
/// about digests, of which nobody can choose the first bytes at will, and nothing about tokens.
#[derive(Clone, Default)]
pub struct Tokens(HashMap<[u8; 32], User>);

fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

impl Tokens {
    /// Nobody has a token.
    pub fn new() -> Tokens {
        Tokens::default()
    }

    /// Adds a user.
    pub fn insert(&mut self, token: impl Into<String>, user: User) {
        self.0.insert(digest(&token.into()), user);
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
    fn a_token_file_is_read() {
        let tokens = Tokens::parse("# who\nt1,admin,1,\"system:masters\"\n\nt2,alice,2\n").unwrap();
        assert!(tokens.find("t1").unwrap().is_admin());
        assert_eq!(tokens.find("t2").unwrap().groups, ["system:authenticated"]);
        assert_eq!(Tokens::parse("x,y").unwrap_err(), "line 1: expected token,user,uid[,\"group1,group2\"]");
        assert!(!format!("{tokens:?}").contains("t1"));
    }
}
