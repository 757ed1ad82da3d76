//! The static token file.

use std::{collections::HashMap, fmt};

use k1s_env::Env;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use super::{User, csv};

/// Users by their bearer tokens.
///
/// Tokens are not kept, only their digests. They are found by a second digest with the server's random salt, which nobody else can
/// compute, and compared in constant time: how long a search takes says nothing about a token.
#[derive(Clone, Default)]
pub struct Tokens {
    salt: [u8; 16],
    users: HashMap<Digest, (Digest, User)>,
}

type Digest = [u8; 32];

/// Whether two secrets are the same, in constant time for all of one length.
pub(crate) fn same_secret(one: &[u8], other: &[u8]) -> bool {
    let digest = |secret: &[u8]| -> Digest { Sha256::digest(secret).into() };
    digest(one).ct_eq(&digest(other)).into()
}

impl Tokens {
    /// An empty set.
    pub fn new() -> Tokens {
        Tokens::default()
    }

    /// Adds a user.
    pub fn insert(&mut self, token: impl Into<String>, user: User) {
        let digest = Sha256::digest(token.into().as_bytes()).into();
        self.users.insert(self.key(&digest), (digest, user));
    }

    /// Takes a random salt.
    pub(crate) fn salted(mut self, env: &Env) -> Tokens {
        env.fill_random(&mut self.salt);
        let users = std::mem::take(&mut self.users).into_values();
        self.users = users.map(|entry| (self.key(&entry.0), entry)).collect();
        self
    }

    fn key(&self, digest: &Digest) -> Digest {
        Sha256::new_with_prefix(self.salt).chain_update(digest).finalize().into()
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
        let digest: Digest = Sha256::digest(token.as_bytes()).into();
        let (known, user) = self.users.get(&self.key(&digest))?;
        bool::from(known.ct_eq(&digest)).then_some(user)
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.users.values().map(|(_, user)| &user.name)).finish()
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
    fn tokens_are_found_by_the_servers_salt() {
        let env = Env::system();
        let plain = Tokens::parse("t1,alice,1\nt2,bob,2\n").unwrap();
        let (one, other) = (plain.clone().salted(&env), plain.clone().salted(&env));
        for tokens in [&plain, &one, &other] {
            assert_eq!(tokens.find("t1").map(|user| &*user.name), Some("alice"));
            assert_eq!(tokens.find("t2").map(|user| &*user.name), Some("bob"));
            assert!(tokens.find("t3").is_none() && tokens.find("").is_none());
        }
        assert!(plain.users.keys().all(|key| !one.users.contains_key(key) && !other.users.contains_key(key)));
        assert!(one.users.keys().all(|key| !other.users.contains_key(key)));
        // A place of the table is not enough.
        let mut moved = one;
        moved.users.values_mut().for_each(|(digest, _)| digest[31] ^= 1);
        assert!(moved.find("t1").is_none());
    }

    #[test]
    fn secrets_are_the_same_or_not() {
        assert!(same_secret(b"", b"") && same_secret(b"abc", b"abc"));
        assert!(!same_secret(b"abc", b"abd") && !same_secret(b"abc", b"abcd") && !same_secret(b"", b"a"));
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
