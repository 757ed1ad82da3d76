//! What was worked out for users, by their names and groups.

use std::{
    fmt,
    hash::{Hash, Hasher},
};

use hashbrown::{Equivalent, HashMap};
use parking_lot::RwLock;

use super::User;

/// Whom something was worked out for. Users with the same name and other groups are different: groups come from credentials.
#[derive(Debug, PartialEq, Eq)]
struct Key {
    name: Box<str>,
    groups: Box<[Box<str>]>,
}

/// The same, of a user at hand.
struct Of<'a>(&'a User);

impl Hash for Key {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.name.hash(hasher);
        self.groups.iter().for_each(|group| group.hash(hasher));
    }
}

impl Hash for Of<'_> {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.0.name.hash(hasher);
        self.0.groups.iter().for_each(|group| group.hash(hasher));
    }
}

impl Equivalent<Key> for Of<'_> {
    fn equivalent(&self, key: &Key) -> bool {
        *self.0.name == *key.name
            && self.0.groups.len() == key.groups.len()
            && self.0.groups.iter().zip(&key.groups).all(|(one, other)| **one == **other)
    }
}

impl From<&User> for Key {
    fn from(user: &User) -> Key {
        let groups = user.groups.iter().map(|group| group.as_str().into()).collect();
        Key { name: user.name.as_str().into(), groups }
    }
}

/// Maximum number of users. With more, all are forgotten: what was worked out for them is worked out again.
const MOST: usize = 10_000;

/// Values that depend on a user's name and groups, and on nothing else that can change while they are here.
pub(crate) struct ByUser<T> {
    values: RwLock<HashMap<Key, T>>,
}

impl<T> ByUser<T> {
    /// Reads the value of a user, which is worked out if it is not here.
    pub(crate) fn read<R>(&self, user: &User, work_out: impl FnOnce() -> T, read: impl FnOnce(&T) -> R) -> R {
        {
            let values = self.values.read();
            if let Some(value) = values.get(&Of(user)) {
                return read(value);
            }
        }
        // Without the lock: others need not wait for this. Somebody else may do the same, which is as well.
        let value = work_out();
        let result = read(&value);
        let mut values = self.values.write();
        if values.len() >= MOST {
            values.clear();
        }
        values.insert(Key::from(user), value);
        result
    }

    /// Forgets all values.
    pub(crate) fn clear(&mut self) {
        // Giving back the room for users who may never come again.
        *self.values.get_mut() = HashMap::new();
    }
}

impl<T> Default for ByUser<T> {
    fn default() -> ByUser<T> {
        ByUser { values: RwLock::default() }
    }
}

impl<T> fmt::Debug for ByUser<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ByUser").field("users", &self.values.read().len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn a_value_is_worked_out_once_for_a_name_with_its_groups() {
        let mut values = ByUser::<String>::default();
        let asked = Cell::new(0);
        let read = |values: &ByUser<String>, user: &User| {
            let work_out = || {
                asked.set(asked.get() + 1);
                format!("{} of {}", user.name, user.groups.join("+"))
            };
            values.read(user, work_out, String::clone)
        };
        let users = [
            User { name: "a".into(), ..User::default() },
            User { name: "a".into(), groups: vec!["x".into()], ..User::default() },
            User { name: "a".into(), groups: vec!["x".into(), "y".into()], ..User::default() },
            User { name: "a".into(), groups: vec!["y".into(), "x".into()], ..User::default() },
            User { name: "ax".into(), ..User::default() },
        ];
        let expected = ["a of ", "a of x", "a of x+y", "a of y+x", "ax of "];
        for _ in 0..2 {
            assert_eq!(users.each_ref().map(|user| read(&values, user)), expected);
            assert_eq!(asked.get(), 5);
        }
        values.clear();
        assert_eq!(read(&values, &users[0]), "a of ");
        assert_eq!(asked.get(), 6);
    }

    #[test]
    fn only_so_many_users_are_remembered() {
        let values = ByUser::<usize>::default();
        for number in 0..=MOST {
            let user = User { name: number.to_string(), ..User::default() };
            assert_eq!(values.read(&user, || number, |value| *value), number);
            assert!(values.values.read().len() <= MOST);
        }
        assert_eq!(values.values.read().len(), 1);
    }
}
