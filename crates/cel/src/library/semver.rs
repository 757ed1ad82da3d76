//! Semantic versions as `github.com/blang/semver` reads and compares them.

use std::{cmp::Ordering, fmt};

use k1s_object::field::quote;

use super::{opaque, scan_cost, scan_estimate, text, unit_cost, unit_estimate, wrap};
use crate::{
    error::EvalError,
    function::{Call, Function, Overload},
    types::Type,
    value::{Opaque, Value},
};

/// A part of the pre-release of a version.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Pre {
    Number(u64),
    Text(String),
}

/// A semantic version.
#[derive(Debug, Clone)]
pub struct Version {
    /// The first number.
    pub major: u64,
    /// The second number.
    pub minor: u64,
    /// The third number.
    pub patch: u64,
    pre: Vec<Pre>,
    build: Vec<String>,
}

fn is_number(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_alphanumeric(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// A number as `strconv.ParseUint` parses it.
fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| {
        let wrong = if text.is_empty() { "invalid syntax" } else { "value out of range" };
        format!("strconv.ParseUint: parsing {}: {wrong}", quote(text))
    })
}

fn component(text: &str, lower: &str, upper: &str) -> Result<u64, String> {
    if !is_number(text) {
        return Err(format!("Invalid character(s) found in {lower} number {}", quote(text)));
    }
    if text.len() > 1 && text.starts_with('0') {
        return Err(format!("{upper} number must not contain leading zeroes {}", quote(text)));
    }
    number(text)
}

impl Version {
    /// Parses a version.
    pub fn parse(text: &str) -> Result<Version, String> {
        if text.is_empty() {
            return Err("Version string empty".to_owned());
        }
        let mut parts = text.splitn(3, '.');
        let (Some(major), Some(minor), Some(rest)) = (parts.next(), parts.next(), parts.next()) else {
            return Err("No Major.Minor.Patch elements found".to_owned());
        };
        let major = component(major, "major", "Major")?;
        let minor = component(minor, "minor", "Minor")?;
        let (rest, build) = rest.split_once('+').map_or((rest, None), |(rest, build)| (rest, Some(build)));
        let (patch, pre) = rest.split_once('-').map_or((rest, None), |(patch, pre)| (patch, Some(pre)));
        let patch = component(patch, "patch", "Patch")?;
        let mut version = Version { major, minor, patch, pre: Vec::new(), build: Vec::new() };
        for part in pre.into_iter().flat_map(|pre| pre.split('.')) {
            version.pre.push(match part {
                "" => return Err("Prerelease is empty".to_owned()),
                _ if is_number(part) && part.len() > 1 && part.starts_with('0') => {
                    return Err(format!(
                        "Numeric PreRelease version must not contain leading zeroes {}",
                        quote(part)
                    ));
                }
                _ if is_number(part) => Pre::Number(number(part)?),
                _ if is_alphanumeric(part) => Pre::Text(part.to_owned()),
                _ => return Err(format!("Invalid character(s) found in prerelease {}", quote(part))),
            });
        }
        for part in build.into_iter().flat_map(|build| build.split('.')) {
            if part.is_empty() {
                return Err("Build meta data is empty".to_owned());
            }
            if !is_alphanumeric(part) {
                return Err(format!("Invalid character(s) found in build meta data {}", quote(part)));
            }
            version.build.push(part.to_owned());
        }
        Ok(version)
    }

    /// Parses a version that may begin with `v`, have leading zeroes, or lack its last numbers.
    pub fn parse_normalized(text: &str) -> Result<Version, String> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let mut parts: Vec<String> = text
            .splitn(3, '.')
            .map(|part| {
                if part.len() <= 1 {
                    return part.to_owned();
                }
                let trimmed = part.trim_start_matches('0');
                if trimmed.starts_with(|c: char| c.is_ascii_digit()) {
                    trimmed.to_owned()
                } else {
                    format!("0{trimmed}")
                }
            })
            .collect();
        if parts.len() < 3 && parts.last().is_some_and(|last| last.contains(['+', '-'])) {
            return Err("short version cannot contain PreRelease/Build meta data".to_owned());
        }
        parts.resize(3, "0".to_owned());
        Version::parse(&parts.join("."))
    }

    /// Compares versions; the build does not count.
    pub fn compare(&self, other: &Version) -> Ordering {
        let key = |version: &Version| (version.major, version.minor, version.patch);
        key(self).cmp(&key(other)).then_with(|| match (self.pre.is_empty(), other.pre.is_empty()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) => self.compare_pre(other),
        })
    }

    fn compare_pre(&self, other: &Version) -> Ordering {
        for (a, b) in self.pre.iter().zip(&other.pre) {
            let order = match (a, b) {
                (Pre::Number(a), Pre::Number(b)) => a.cmp(b),
                (Pre::Text(a), Pre::Text(b)) => a.cmp(b),
                (Pre::Number(_), Pre::Text(_)) => Ordering::Less,
                (Pre::Text(_), Pre::Number(_)) => Ordering::Greater,
            };
            if order != Ordering::Equal {
                return order;
            }
        }
        self.pre.len().cmp(&other.pre.len())
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)?;
        for (index, part) in self.pre.iter().enumerate() {
            f.write_str(if index == 0 { "-" } else { "." })?;
            match part {
                Pre::Number(number) => write!(f, "{number}")?,
                Pre::Text(text) => f.write_str(text)?,
            }
        }
        for (index, part) in self.build.iter().enumerate() {
            write!(f, "{}{part}", if index == 0 { "+" } else { "." })?;
        }
        Ok(())
    }
}

impl Opaque for Version {
    fn type_name(&self) -> &str {
        "kubernetes.Semver"
    }

    fn equals(&self, other: &dyn Opaque) -> bool {
        other.downcast::<Version>().is_some_and(|other| self.compare(other) == Ordering::Equal)
    }

    fn equality_cost(&self) -> Option<u64> {
        Some(1)
    }
}

fn parse(args: &[Value<'_>]) -> Result<Result<Version, String>, EvalError> {
    let text = text(args, 0)?;
    Ok(match args.get(1) {
        Some(Value::Bool(true)) => Version::parse_normalized(text),
        None | Some(Value::Bool(false)) => Version::parse(text),
        Some(_) => return Err(EvalError::NoSuchOverload),
    })
}

fn compare(args: &[Value<'_>]) -> Result<Ordering, EvalError> {
    Ok(opaque::<Version>(args, 0)?.compare(opaque(args, 1)?))
}

/// The functions of the library `kubernetes.Semver`.
pub(super) fn functions() -> Vec<Function> {
    let version = || Type::opaque("kubernetes.Semver");
    let parsed = |id, params, result, call: Call| {
        Overload::global(id, params, result, call).with_cost(scan_estimate, scan_cost)
    };
    let member = |id, params, result, call: Call| {
        Overload::member(id, params, result, call).with_cost(unit_estimate, unit_cost)
    };
    let number =
        |name, id, call: Call| Function::new(name, vec![member(id, vec![version()], Type::Int, call)]);
    let of_two = |name, id, result, call: Call| {
        Function::new(name, vec![member(id, vec![version(), version()], result, call)])
    };
    let make: Call = |args| Ok(wrap(parse(args)?.map_err(EvalError::new)?));
    let check: Call = |args| Ok(parse(args)?.is_ok().into());
    // Upstream's numbers are of 64 bits without a sign, and are converted as they are.
    vec![
        Function::new(
            "semver",
            vec![
                parsed("string_to_semver", vec![Type::String], version(), make),
                parsed("string_bool_to_semver", vec![Type::String, Type::Bool], version(), make),
            ],
        ),
        Function::new(
            "isSemver",
            vec![
                parsed("is_semver_string", vec![Type::String], Type::Bool, check),
                parsed("is_semver_string_bool", vec![Type::String, Type::Bool], Type::Bool, check),
            ],
        ),
        of_two("isGreaterThan", "semver_is_greater_than", Type::Bool, |args| {
            Ok((compare(args)? == Ordering::Greater).into())
        }),
        of_two("isLessThan", "semver_is_less_than", Type::Bool, |args| {
            Ok((compare(args)? == Ordering::Less).into())
        }),
        of_two("compareTo", "semver_compare_to", Type::Int, |args| Ok((compare(args)? as i64).into())),
        number("major", "semver_major", |args| Ok((opaque::<Version>(args, 0)?.major as i64).into())),
        number("minor", "semver_minor", |args| Ok((opaque::<Version>(args, 0)?.minor as i64).into())),
        number("patch", "semver_patch", |args| Ok((opaque::<Version>(args, 0)?.patch as i64).into())),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_and_written() {
        for text in ["1.2.3", "0.1.0-alpha.1", "1.2.3-rc.1.x+build.5", "1.0.0+01", "1.2.3-0-a"] {
            assert_eq!(Version::parse(text).unwrap().to_string(), text);
        }
        for (text, error) in [
            ("", "Version string empty"),
            ("1.2", "No Major.Minor.Patch elements found"),
            ("v1.2.3", "Invalid character(s) found in major number \"v1\""),
            ("01.2.3", "Major number must not contain leading zeroes \"01\""),
            ("1.02.3", "Minor number must not contain leading zeroes \"02\""),
            ("1.2.3.4", "Invalid character(s) found in patch number \"3.4\""),
            ("1..3", "strconv.ParseUint: parsing \"\": invalid syntax"),
            (
                "99999999999999999999.0.0",
                "strconv.ParseUint: parsing \"99999999999999999999\": value out of range",
            ),
            ("1.2.3-", "Prerelease is empty"),
            ("1.2.3-01", "Numeric PreRelease version must not contain leading zeroes \"01\""),
            ("1.2.3-a_b", "Invalid character(s) found in prerelease \"a_b\""),
            ("1.2.3+", "Build meta data is empty"),
            ("1.2.3+a~", "Invalid character(s) found in build meta data \"a~\""),
        ] {
            assert_eq!(Version::parse(text).unwrap_err(), error, "{text}");
        }
    }

    #[test]
    fn versions_are_normalized() {
        for (text, normal) in [
            ("v1.2.3", "1.2.3"),
            ("v01.02.03", "1.2.3"),
            ("1", "1.0.0"),
            ("1.2", "1.2.0"),
            ("1.00.0-alpha", "1.0.0-alpha"),
            ("1.2.00-rc", "1.2.0-rc"),
        ] {
            assert_eq!(Version::parse_normalized(text).unwrap().to_string(), normal, "{text}");
        }
        assert_eq!(
            Version::parse_normalized("1.2-rc").unwrap_err(),
            "short version cannot contain PreRelease/Build meta data"
        );
        assert!(Version::parse_normalized("").is_err());
        assert!(Version::parse_normalized("vv1").is_err());
    }

    #[test]
    fn versions_are_ordered() {
        let ordered = [
            "0.9.9",
            "1.0.0-1",
            "1.0.0-2",
            "1.0.0-10",
            "1.0.0-alpha",
            "1.0.0-alpha.1",
            "1.0.0-beta",
            "1.0.0",
            "1.0.1",
            "1.1.0",
            "2.0.0",
        ];
        for (i, a) in ordered.iter().enumerate() {
            for (j, b) in ordered.iter().enumerate() {
                let compared = Version::parse(a).unwrap().compare(&Version::parse(b).unwrap());
                assert_eq!(compared, i.cmp(&j), "{a} {b}");
            }
        }
        let build = |text: &str| Version::parse(text).unwrap();
        assert_eq!(build("1.0.0+a").compare(&build("1.0.0+b")), Ordering::Equal);
    }
}
