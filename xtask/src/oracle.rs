//! Imports recordings of a kube-apiserver into the repository. `cargo test --test oracle` replays them.

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
};

use flate2::{Compression, GzBuilder};
use serde_json::Value;

use crate::{print, tidy};

/// Replaces the recordings by those of a folder. An area that is not in the folder is kept.
pub(crate) fn take(folder: &Path) -> Result<(), String> {
    let at = |path: &Path, error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let entries = fs::read_dir(folder).map_err(|error| at(folder, &error))?;
    let mut found: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    found.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    found.sort();
    if found.is_empty() {
        return Err(format!("{} has no recordings (*.json)", folder.display()));
    }
    for path in found {
        let text = fs::read(&path).map_err(|error| at(&path, &error))?;
        let recording: Value = serde_json::from_slice(&text).map_err(|error| at(&path, &error))?;
        let scenarios = recording["scenarios"].as_array().ok_or_else(|| at(&path, &"has no `scenarios`"))?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let kept = tidy::root().join("oracle").join(format!("{name}.json.gz"));
        // No time and no name in the header, so that the output is reproducible.
        let mut packed = GzBuilder::new().write(Vec::new(), Compression::best());
        let written = packed.write_all(recording.to_string().as_bytes()).and_then(|()| packed.finish());
        fs::write(&kept, written.map_err(|error| at(&kept, &error))?).map_err(|error| at(&kept, &error))?;
        print(&format!("{name}: {} scenarios", scenarios.len()));
    }
    Ok(())
}
