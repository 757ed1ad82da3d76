//! The commands, one module each.

pub(crate) mod api_resources;
pub(crate) mod apply;
pub(crate) mod change;
pub(crate) mod create;
pub(crate) mod delete;
pub(crate) mod describe;
pub(crate) mod diff;
pub(crate) mod edit;
pub(crate) mod events;
pub(crate) mod explain;
pub(crate) mod get;
pub(crate) mod info;
pub(crate) mod run;
pub(crate) mod tree;
pub(crate) mod wait;
pub(crate) mod watch;

use std::{
    env, fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use k1s::env::Env;
use serde_json::Value;

/// A folder for files that only this user may read, removed with this.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new(program: &str, env: &Env) -> io::Result<Scratch> {
        // The name cannot be guessed, and nothing that is there already is used.
        let path = env::temp_dir().join(format!("{program}-{}", env.uuid()));
        let mut builder = fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&path)?;
        Ok(Scratch(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Keeps the files.
    pub(crate) fn keep(mut self) {
        self.0 = PathBuf::new();
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if !self.0.as_os_str().is_empty() {
            let _ = fs::remove_dir_all(&self.0);
        }
    }
}

/// Whether two states of an object differ in nothing but what the server counts.
pub(crate) fn same(before: &Value, after: &Value) -> bool {
    let version = |object: &Value| object["metadata"]["resourceVersion"].clone();
    if !version(before).is_null() && version(before) == version(after) {
        // A dry run does not change the version.
        return plain(before) == plain(after);
    }
    false
}

/// Without what the server adds to every change.
pub(crate) fn plain(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("managedFields");
        metadata.remove("generation");
        metadata.remove("resourceVersion");
    }
    object
}

/// `15s`, `1m30s`, `500ms`, `2h`; a number alone is seconds.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is not a duration; use a number and a unit: 500ms, 15s, 1m30s");
    if let Ok(seconds) = text.parse::<u32>() {
        return Ok(Duration::from_secs(seconds.into()));
    }
    let (mut rest, mut whole) = (text, Duration::ZERO);
    if rest.is_empty() {
        return Err(wrong());
    }
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(wrong)?;
        let number: f64 = rest[..end].parse().map_err(|_| wrong())?;
        rest = &rest[end..];
        let end = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let seconds = match &rest[..end] {
            "ms" => 0.001,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            _ => return Err(wrong()),
        };
        let part = Duration::try_from_secs_f64(number * seconds).map_err(|_| wrong())?;
        whole = whole.checked_add(part).ok_or_else(wrong)?;
        rest = &rest[end..];
    }
    Ok(whole)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn durations_are_written_as_in_go() {
        assert_eq!(duration("1m30s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("0"), Ok(Duration::ZERO));
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert!(duration("5 parsecs").is_err() && duration("").is_err() && duration("s").is_err());
    }

    #[test]
    fn a_write_that_changes_nothing_keeps_the_version() {
        let object =
            |version: &str, data: &str| json!({"metadata": {"resourceVersion": version}, "data": data});
        assert!(same(&object("1", "a"), &object("1", "a")));
        assert!(!same(&object("1", "a"), &object("2", "a")));
        assert!(!same(&object("1", "a"), &object("1", "b")), "a dry run");
    }
}
