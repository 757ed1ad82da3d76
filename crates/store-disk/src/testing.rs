//! A simulated disk, for tests: stores on it, and their check and repair.

use std::path::Path;

use k1s_env::Env;

pub use crate::files::sim::{Fault, Loss, Rates, SimDisk};
use crate::{
    DiskOptions, DiskStore, FolderReport, OpenError, Progress, Repaired, repair, writer::Background,
};

impl SimDisk {
    /// Opens a store on this disk, as [`DiskStore::open`] does.
    ///
    /// # Errors
    /// As [`DiskStore::open`].
    pub fn open(
        &self,
        env: Env,
        folder: impl AsRef<Path>,
        options: DiskOptions,
    ) -> Result<DiskStore, OpenError> {
        DiskStore::open_on(self.files(), env, folder.as_ref(), options, Background::Threads)
    }

    /// Like [`open`](Self::open), but segments are cleaned when [`DiskStore::step`] is called, and not by a
    /// separate thread: then the order of all disk calls depends only on the order of commands.
    ///
    /// # Errors
    /// As [`DiskStore::open`].
    pub fn open_stepped(
        &self,
        env: Env,
        folder: impl AsRef<Path>,
        options: DiskOptions,
    ) -> Result<DiskStore, OpenError> {
        DiskStore::open_on(self.files(), env, folder.as_ref(), options, Background::Stepped)
    }

    /// As [`check_folder`](crate::check_folder).
    ///
    /// # Errors
    /// As [`check_folder`](crate::check_folder).
    pub fn check_folder(&self, path: impl AsRef<Path>) -> Result<FolderReport, OpenError> {
        repair::check_on(&self.files(), path.as_ref(), &mut |_: Progress| {})
    }

    /// As [`repair_folder`](crate::repair_folder).
    ///
    /// # Errors
    /// As [`repair_folder`](crate::repair_folder).
    pub fn repair_folder(&self, path: impl AsRef<Path>) -> Result<Repaired, OpenError> {
        repair::repair_on(&self.files(), path.as_ref(), None, &mut |_: Progress| {})
    }
}
