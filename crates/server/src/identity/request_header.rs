//! Front proxies: clients that authenticate others, and name them in headers.
//!
//! The headers count only on connections whose client has a certificate of a front proxy. From all other requests they are
//! removed, as are the credentials that have been used, so that nothing behind authentication can take them for a fact.

use std::{borrow::Cow, collections::BTreeMap};

use http::{HeaderMap, HeaderName, header};
use smallvec::SmallVec;

use super::User;
use crate::request::unescape;

/// Front proxies, and the headers in which they name a user.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RequestHeaderOptions {
    /// The authorities, as PEM, that issue the certificates of front proxies. They should issue no others.
    pub authorities: String,
    /// The names (`CN`) of the certificates of front proxies. Empty: every certificate of the authorities is one.
    pub allowed_names: Vec<String>,
    /// The headers with the name of the user: the first one that is not empty counts.
    pub username_headers: Vec<String>,
    /// The headers with the uid.
    pub uid_headers: Vec<String>,
    /// The headers with groups: all values count.
    pub group_headers: Vec<String>,
    /// The prefixes of headers with additional attributes, whose names follow.
    pub extra_headers_prefix: Vec<String>,
}

impl Default for RequestHeaderOptions {
    fn default() -> RequestHeaderOptions {
        let one = |name: &str| vec![name.to_owned()];
        RequestHeaderOptions {
            authorities: String::new(),
            allowed_names: Vec::new(),
            username_headers: one("X-Remote-User"),
            uid_headers: one("X-Remote-Uid"),
            group_headers: one("X-Remote-Group"),
            extra_headers_prefix: one("X-Remote-Extra-"),
        }
    }
}

/// What is wrong with [`RequestHeaderOptions`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestHeaderError {
    /// A name is empty.
    #[error("empty value in {0:?}")]
    Empty(&'static str),
    /// A name is none of a header.
    #[error("{1:?} in {0:?} is not the name of a header")]
    Name(&'static str, String),
    /// The uid would be lost on the way to extension servers.
    #[error(
        "--requestheader-uid-headers is set without specifying the standard X-Remote-Uid header - API aggregation will not work"
    )]
    NoStandardUid,
}

impl RequestHeaderOptions {
    /// Checks the names.
    ///
    /// # Errors
    /// The first that cannot be used.
    pub fn check(&self) -> Result<(), RequestHeaderError> {
        RequestHeaders::new(self).map(drop)
    }
}

/// The headers, ready to be looked up.
#[derive(Debug, Clone, Default)]
pub(crate) struct RequestHeaders {
    username: Vec<HeaderName>,
    uid: Vec<HeaderName>,
    groups: Vec<HeaderName>,
    /// In lower case.
    extra: Vec<String>,
}

/// The standard headers, in which API aggregation names users: nobody else may send them.
const STANDARD: [&str; 3] = ["x-remote-user", "x-remote-uid", "x-remote-group"];
const STANDARD_EXTRA: &str = "x-remote-extra-";
const IMPERSONATE: &str = "impersonate-";

impl RequestHeaders {
    pub(crate) fn new(options: &RequestHeaderOptions) -> Result<RequestHeaders, RequestHeaderError> {
        let trimmed = |flag: &'static str, name: &str| match name.trim() {
            "" => Err(RequestHeaderError::Empty(flag)),
            name => name.parse::<HeaderName>().map_err(|_| RequestHeaderError::Name(flag, name.to_owned())),
        };
        let all = |flag: &'static str, names: &[String]| -> Result<Vec<HeaderName>, RequestHeaderError> {
            names.iter().map(|name| trimmed(flag, name)).collect()
        };
        let username = all("requestheader-username-headers", &options.username_headers)?;
        let groups = all("requestheader-group-headers", &options.group_headers)?;
        let extra = all("requestheader-extra-headers-prefix", &options.extra_headers_prefix)?;
        if options.allowed_names.iter().any(|name| name.trim().is_empty()) {
            return Err(RequestHeaderError::Empty("requestheader-allowed-names"));
        }
        let uid = all("requestheader-uid-headers", &options.uid_headers)?;
        if !uid.is_empty() && !uid.iter().any(|name| name == "x-remote-uid") {
            return Err(RequestHeaderError::NoStandardUid);
        }
        let extra = extra.iter().map(|name| name.as_str().to_owned()).collect();
        Ok(RequestHeaders { username, uid, groups, extra })
    }

    /// The user that the headers name, if they do.
    pub(crate) fn user(&self, headers: &HeaderMap) -> Option<User> {
        let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let first = |names: &[HeaderName]| {
            let values = names.iter().filter_map(|name| headers.get(name)).map(text);
            values.into_iter().find(|value| !value.is_empty())
        };
        let name = first(&self.username)?;
        let groups = self.groups.iter().flat_map(|name| headers.get_all(name)).map(text);
        let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for prefix in &self.extra {
            for (name, value) in headers {
                if let Some(key) = name.as_str().strip_prefix(prefix.as_str()) {
                    // A key that is not encoded correctly is taken as it is.
                    let key = unescape(key).map_or_else(|_| key.to_owned(), Cow::into_owned);
                    extra.entry(key).or_default().push(text(value));
                }
            }
        }
        Some(User {
            name,
            uid: first(&self.uid).unwrap_or_default(),
            groups: groups.filter(|group| !group.is_empty()).collect(),
            extra: extra.into_iter().collect(),
        })
    }

    fn has(&self, name: &str) -> bool {
        let named = |names: &[HeaderName]| names.iter().any(|one| one == name);
        named(&self.username)
            || named(&self.uid)
            || named(&self.groups)
            || self.extra.iter().any(|prefix| name.starts_with(prefix.as_str()))
    }

    /// Removes the credentials of an authenticated request, and all headers that name users.
    pub(crate) fn strip(&self, headers: &mut HeaderMap) {
        let spent = |name: &HeaderName| {
            let text = name.as_str();
            *name == header::AUTHORIZATION
                || text.starts_with(IMPERSONATE)
                || STANDARD.contains(&text)
                || text.starts_with(STANDARD_EXTRA)
                || self.has(text)
        };
        let names: SmallVec<[HeaderName; 4]> = headers.keys().filter(|name| spent(name)).cloned().collect();
        for name in names {
            headers.remove(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn map(headers: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(HeaderName::from_bytes(name.as_bytes()).unwrap(), HeaderValue::from_static(value));
        }
        map
    }

    fn options(username: &[&str], groups: &[&str], extra: &[&str]) -> RequestHeaderOptions {
        let all = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        RequestHeaderOptions {
            username_headers: all(username),
            group_headers: all(groups),
            extra_headers_prefix: all(extra),
            ..RequestHeaderOptions::default()
        }
    }

    type Extra = &'static [(&'static str, &'static [&'static str])];

    /// Upstream's cases (`TestRequestHeader`): the headers that count, those of the request, and the user.
    #[test]
    fn the_user_is_in_the_headers() {
        #[allow(clippy::type_complexity, reason = "a table")]
        let cases: &[(
            &str,
            RequestHeaderOptions,
            &[(&str, &str)],
            Option<(&str, &[&str], Extra)>,
        )] = &[
            ("empty", options(&[], &[], &[]), &[], None),
            ("user no match", options(&["X-Remote-User"], &[], &[]), &[], None),
            (
                "user match",
                options(&["X-Remote-User"], &[], &[]),
                &[("X-Remote-User", "Bob")],
                Some(("Bob", &[], &[])),
            ),
            (
                "user exact match",
                options(&["X-Remote-User"], &[], &[]),
                &[("Prefixed-X-Remote-User-With-Suffix", "Bob"), ("X-Remote-User-With-Suffix", "Bob")],
                None,
            ),
            (
                "groups none",
                options(&["X-Remote-User"], &["X-Remote-Group"], &[]),
                &[("X-Remote-User", "Bob")],
                Some(("Bob", &[], &[])),
            ),
            (
                "groups all matches",
                options(&["X-Remote-User"], &["X-Remote-Group-1", "X-Remote-Group-2"], &[]),
                &[
                    ("X-Remote-User", "Bob"),
                    ("X-Remote-Group-1", "one-a"),
                    ("X-Remote-Group-1", "one-b"),
                    ("X-Remote-Group-2", "two-a"),
                    ("X-Remote-Group-2", "two-b"),
                ],
                Some(("Bob", &["one-a", "one-b", "two-a", "two-b"], &[])),
            ),
            (
                "groups case-insensitive",
                options(&["X-REMOTE-User"], &["X-REMOTE-Group"], &[]),
                &[("X-Remote-User", "Bob"), ("X-Remote-Group", "Users")],
                Some(("Bob", &["Users"], &[])),
            ),
            (
                "extra prefix matches case-insensitive",
                options(
                    &["X-Remote-User"],
                    &["X-Remote-Group-1", "X-Remote-Group-2"],
                    &["X-Remote-Extra-1-", "X-Remote-Extra-2-"],
                ),
                &[
                    ("X-Remote-User", "Bob"),
                    ("X-Remote-Group-1", "one-a"),
                    ("X-Remote-Group-1", "one-b"),
                    ("X-Remote-Group-2", "two-a"),
                    ("X-Remote-Group-2", "two-b"),
                    ("X-Remote-Extra-1-key1", "alfa"),
                    ("X-Remote-Extra-1-key1", "bravo"),
                    ("X-Remote-Extra-1-Key2", "charlie"),
                    ("X-Remote-Extra-1-Key2", "delta"),
                    ("X-Remote-Extra-1-", "india"),
                    ("X-Remote-Extra-1-", "juliet"),
                    ("X-Remote-Extra-2-", "kilo"),
                    ("X-Remote-Extra-2-", "lima"),
                    ("X-Remote-Extra-2-Key1", "echo"),
                    ("X-Remote-Extra-2-Key1", "foxtrot"),
                    ("X-Remote-Extra-2-key2", "golf"),
                    ("X-Remote-Extra-2-key2", "hotel"),
                ],
                Some((
                    "Bob",
                    &["one-a", "one-b", "two-a", "two-b"],
                    &[
                        ("", &["india", "juliet", "kilo", "lima"]),
                        ("key1", &["alfa", "bravo", "echo", "foxtrot"]),
                        ("key2", &["charlie", "delta", "golf", "hotel"]),
                    ],
                )),
            ),
            (
                "extra prefix matches case-insensitive with unrelated headers",
                options(
                    &["X-Remote-User"],
                    &["X-Remote-Group-1", "X-Remote-Group-2"],
                    &["X-Remote-Extra-1-", "X-Remote-Extra-2-"],
                ),
                &[
                    ("X-Remote-User", "Bob"),
                    ("X-Group-Remote", "snorlax"),
                    ("X-Group-Bear", "panda"),
                    ("X-Remote-Group-1", "one-a"),
                    ("X-Remote-Extra-3-key1", "alfa"),
                    ("X-Remote-Extra-1-key1", "bravo"),
                ],
                Some(("Bob", &["one-a"], &[("key1", &["bravo"])])),
            ),
            (
                "escaped extra keys",
                options(&["X-Remote-User"], &["X-Remote-Group"], &["X-Remote-Extra-"]),
                &[
                    ("X-Remote-User", "Bob"),
                    ("X-Remote-Group", "one-a"),
                    ("X-Remote-Extra-Alpha", "alphabetical"),
                    ("X-Remote-Extra-Alph4num3r1c", "alphanumeric"),
                    ("X-Remote-Extra-Percent%20encoded", "percent encoded"),
                    ("X-Remote-Extra-Almost%zzpercent%xxencoded", "not quite percent encoded"),
                    ("X-Remote-Extra-Example.com%2fpercent%2Dencoded", "url with double percent encoded"),
                ],
                Some((
                    "Bob",
                    &["one-a"],
                    &[
                        ("almost%zzpercent%xxencoded", &["not quite percent encoded"]),
                        ("alph4num3r1c", &["alphanumeric"]),
                        ("alpha", &["alphabetical"]),
                        ("example.com/percent-encoded", &["url with double percent encoded"]),
                        ("percent encoded", &["percent encoded"]),
                    ],
                )),
            ),
        ];
        for (case, options, sent, expected) in cases {
            let mut headers = HeaderMap::new();
            for (name, value) in *sent {
                headers.append(
                    HeaderName::from_bytes(name.as_bytes()).unwrap(),
                    HeaderValue::from_str(value).unwrap(),
                );
            }
            let user = RequestHeaders::new(options).unwrap().user(&headers);
            let expected = expected.map(|(name, groups, extra)| User {
                name: name.into(),
                groups: groups.iter().map(|group| (*group).to_owned()).collect(),
                extra: extra
                    .iter()
                    .map(|(key, values)| {
                        ((*key).to_owned(), values.iter().map(|v| (*v).to_owned()).collect())
                    })
                    .collect(),
                ..User::default()
            });
            assert_eq!(user, expected, "{case}");
        }
    }

    #[test]
    fn the_uid_is_in_a_header_and_empty_names_do_not_count() {
        let headers = RequestHeaders::new(&RequestHeaderOptions::default()).unwrap();
        let user = headers.user(&map(&[("x-remote-user", "bob"), ("x-remote-uid", "u1")])).unwrap();
        assert_eq!((&*user.name, &*user.uid), ("bob", "u1"));
        assert_eq!(headers.user(&map(&[("x-remote-user", ""), ("x-remote-uid", "u1")])), None);
        let two = RequestHeaders::new(&options(&["a", "b"], &[], &[])).unwrap();
        assert_eq!(two.user(&map(&[("a", ""), ("b", "bob")])).unwrap().name, "bob");
    }

    /// The rest of upstream's cases: of several headers, the first one that is not empty counts. Those with the uid have to
    /// include the standard one.
    #[test]
    fn the_first_header_counts() {
        type Case<'a> =
            (&'a str, &'a [&'a str], &'a [&'a str], &'a [(&'static str, &'static str)], (&'a str, &'a str));
        let bob = ("x-remote-user", "Bob");
        let cases: [Case<'_>; 5] = [
            (
                "user first match",
                &["X-Remote-User", "A-Second-X-Remote-User", "Another-X-Remote-User"],
                &[],
                &[
                    ("x-remote-user", ""),
                    ("x-remote-user", "1.2"),
                    ("a-second-x-remote-user", "2.1"),
                    ("a-second-x-remote-user", "2.2"),
                    ("another-x-remote-user", "3.1"),
                ],
                ("2.1", ""),
            ),
            ("user case-insensitive", &["x-REMOTE-user"], &[], &[bob], ("Bob", "")),
            ("uid none", &["X-Remote-User"], &["X-Remote-Uid"], &[bob], ("Bob", "")),
            (
                "uid exact match",
                &["X-Remote-User"],
                &["X-Remote-Uid"],
                &[bob, ("x-remote-uid-1", "a"), ("x-remote-uid-2", "b")],
                ("Bob", ""),
            ),
            (
                "uid first match",
                &["X-Remote-User"],
                &["X-Remote-Uid-1", "X-Remote-Uid-2", "X-Remote-Uid"],
                &[bob, ("x-remote-uid-1", "a"), ("x-remote-uid-2", "b")],
                ("Bob", "a"),
            ),
        ];
        for (case, names, uids, sent, expected) in cases {
            let mut options = options(names, &[], &[]);
            if !uids.is_empty() {
                options.uid_headers = uids.iter().map(|name| (*name).to_owned()).collect();
            }
            let user = RequestHeaders::new(&options).unwrap().user(&map(sent)).unwrap();
            assert_eq!((&*user.name, &*user.uid), expected, "{case}");
        }
    }

    #[test]
    fn whatever_names_a_user_is_removed() {
        let custom = RequestHeaders::new(&options(&["X-User"], &["X-Groups"], &["X-More-"])).unwrap();
        let mut headers = map(&[
            ("Authorization", "Bearer a"),
            ("AUTHORIZATION", "Bearer b"),
            ("x-Remote-USER", "a"),
            ("X-Remote-Uid", "a"),
            ("X-Remote-Group", "a"),
            ("X-Remote-Group", "b"),
            ("X-Remote-Extra-Scopes", "a"),
            ("X-User", "a"),
            ("X-Groups", "a"),
            ("X-More-Scopes", "a"),
            ("Impersonate-User", "a"),
            ("impersonate-extra-scopes", "a"),
            ("X-Remote-Users", "kept"),
            ("Accept", "kept"),
        ]);
        custom.strip(&mut headers);
        let mut left: Vec<&str> = headers.keys().map(HeaderName::as_str).collect();
        left.sort_unstable();
        assert_eq!(left, ["accept", "x-remote-users"]);
    }

    #[test]
    fn names_of_headers_are_checked() {
        type Change = fn(&mut RequestHeaderOptions);
        let check = |change: Change| {
            let mut options = RequestHeaderOptions::default();
            change(&mut options);
            options.check().map_err(|error| error.to_string())
        };
        assert_eq!(check(|_| {}), Ok(()));
        let cases: [(Change, &str); 6] = [
            (|o| o.username_headers.push(" ".into()), "empty value in \"requestheader-username-headers\""),
            (|o| o.group_headers.push("\t".into()), "empty value in \"requestheader-group-headers\""),
            (
                |o| o.extra_headers_prefix.push(String::new()),
                "empty value in \"requestheader-extra-headers-prefix\"",
            ),
            (|o| o.allowed_names.push("  ".into()), "empty value in \"requestheader-allowed-names\""),
            (
                |o| o.username_headers.push("a b".into()),
                "\"a b\" in \"requestheader-username-headers\" is not the name of a header",
            ),
            (
                |o| o.uid_headers = vec!["X-Uid".into()],
                "--requestheader-uid-headers is set without specifying the standard X-Remote-Uid header - API aggregation will not work",
            ),
        ];
        for (change, expected) in cases {
            assert_eq!(check(change).unwrap_err(), expected);
        }
    }
}
