//! How programs on this machine reach the runtime that has a data folder open: a kubeconfig in the folder.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use super::endpoint::write_kubeconfig;

/// The name of the file in the data folder.
const FILE: &str = "server.kubeconfig";

/// The file, which is removed with this.
#[derive(Debug)]
pub(super) struct Reach(PathBuf);

impl Reach {
    /// Writes the kubeconfig of this process into its data folder.
    pub(super) fn write(folder: &Path, kubeconfig: &str) -> io::Result<Reach> {
        let path = folder.join(FILE);
        write_kubeconfig(&path, &format!("# {}\n{kubeconfig}", process(std::process::id())))?;
        Ok(Reach(path))
    }

    pub(super) fn remove(&self) {
        match fs::remove_file(&self.0) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => tracing::debug!(path = %self.0.display(), %error, "could not remove the file"),
        }
    }
}

impl Drop for Reach {
    fn drop(&mut self) {
        self.remove();
    }
}

fn process(id: u32) -> String {
    format!("process {id}")
}

/// The kubeconfig of the administrator of the runtime that has this data folder open, and listens. `None` if the process
/// that has it open does not listen. For a folder that cannot be opened because it is in use: whether it is open at all is
/// not checked here.
#[must_use]
pub fn folder_kubeconfig(folder: &Path) -> Option<String> {
    // A process that was killed has left its file behind; another one may have the folder open since.
    let holder = fs::read_to_string(folder.join("LOCK")).ok()?;
    let text = fs::read_to_string(folder.join(FILE)).ok()?;
    let (first, _) = text.split_once('\n')?;
    let process = first.strip_prefix("# ")?;
    let rest = holder.strip_prefix(process)?;
    (rest.is_empty() || rest.starts_with(' ')).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_file_of_the_process_that_holds_the_folder_counts() {
        let dir = tempfile::tempdir().unwrap();
        let reach = Reach::write(dir.path(), "apiVersion: v1\n").unwrap();
        assert_eq!(folder_kubeconfig(dir.path()), None, "nobody holds it");
        let id = std::process::id();
        fs::write(dir.path().join("LOCK"), format!("{} (k1s)", process(id))).unwrap();
        assert!(folder_kubeconfig(dir.path()).unwrap().ends_with("apiVersion: v1\n"));
        fs::write(dir.path().join("LOCK"), format!("process {id}0 (k1s)")).unwrap();
        assert_eq!(folder_kubeconfig(dir.path()), None, "another process");
        drop(reach);
        assert!(!dir.path().join(FILE).exists());
    }
}
