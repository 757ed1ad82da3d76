//! Errors of starting and stopping a runtime.

#[cfg(feature = "disk")]
use std::path::Path;
use std::{io, net::SocketAddr, path::PathBuf};

use k1s_env::{StillRunning, TaskError};
use k1s_runtime::leader::InvalidOptions;
use k1s_server::Status;
#[cfg(feature = "disk")]
use k1s_store_disk::OpenError;
#[cfg(feature = "etcd")]
use k1s_store_etcd::ConnectError;

use crate::{control_plane::ControlPlaneError, manifests::ApplyError};

/// Why a [`Runtime`](crate::Runtime) could not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// Another runtime, in this or another process, uses the folder.
    #[error("the data folder {} is in use by {holder}; stop that one, or choose another folder", .folder.display())]
    FolderInUse {
        /// The folder.
        folder: PathBuf,
        /// The holder, as recorded in its lock file.
        holder: String,
    },
    /// The store in the folder is damaged. Nothing was changed.
    #[cfg(feature = "disk")]
    #[error(
        "{error}; nothing was changed: `k1s store check {place}` reports the damage and what would be lost, \
         `k1s store repair {place}` creates a good store of the rest and keeps the damaged one",
        place = .folder.display()
    )]
    Damaged {
        /// The data folder.
        folder: PathBuf,
        /// The first error that was found.
        error: OpenError,
    },
    /// The folder cannot be used: a newer format, inaccessible, or read-only.
    #[cfg(feature = "disk")]
    #[error(transparent)]
    Disk(OpenError),
    /// etcd does not respond, or not as expected.
    #[cfg(feature = "etcd")]
    #[error("etcd at {endpoints} cannot be used: {error}")]
    Etcd {
        /// The addresses of etcd.
        endpoints: String,
        /// Why it cannot be used.
        error: ConnectError,
    },
    /// The store cannot be used under a simulated clock, which does not see its pending work.
    #[error(
        "{what} cannot be used under a simulated clock: it would advance while requests are in flight; use memory or disk, \
         or Env::system()"
    )]
    Simulated {
        /// What is outside of the simulation.
        what: &'static str,
    },
    /// Another program listens at the address.
    #[error("cannot listen at {address}: it is in use; choose another port, or 0 for a free one")]
    PortInUse {
        /// The address.
        address: SocketAddr,
    },
    /// The address cannot be listened at, or the certificate cannot be used.
    #[error("cannot listen at {address}: {error}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why not.
        error: io::Error,
    },
    /// No certificate could be created.
    #[error("cannot create a certificate: {0}")]
    Certificate(String),
    /// A stored certificate, key or token cannot be used: damaged or inaccessible.
    #[error("{}: {reason}", .path.display())]
    Pki {
        /// The file, or its folder.
        path: PathBuf,
        /// What is wrong, and what to do about it.
        reason: String,
    },
    /// The configuration of encryption at rest cannot be used.
    #[cfg(feature = "encryption")]
    #[error("encryption at rest: {0}")]
    Encryption(String),
    /// The server could not start: the tenant's name is invalid, or the store fails.
    #[error("the API server could not start: {0}")]
    Server(#[from] Status),
    /// The options of the controllers' leader election are invalid.
    #[error("leader election of the controllers: {0}")]
    Election(#[from] InvalidOptions),
    /// The definitions of projects could not be installed.
    #[error("the definitions of projects cannot be installed: {0}")]
    Projects(#[from] ApplyError),
    /// A startup task panicked or was cancelled.
    #[error(transparent)]
    Task(#[from] TaskError),
}

impl From<ControlPlaneError> for StartError {
    fn from(error: ControlPlaneError) -> StartError {
        match error {
            ControlPlaneError::Server(status) => StartError::Server(status),
            ControlPlaneError::Election(error) => StartError::Election(error),
            ControlPlaneError::Projects(error) => StartError::Projects(error),
        }
    }
}

impl StartError {
    #[cfg(feature = "disk")]
    pub(super) fn disk(folder: &Path, error: OpenError) -> StartError {
        match error {
            OpenError::Locked { folder, holder } => StartError::FolderInUse { folder, holder },
            OpenError::Damaged { .. } => StartError::Damaged { folder: folder.to_owned(), error },
            other => StartError::Disk(other),
        }
    }

    #[cfg(feature = "server-tls")]
    pub(super) fn listen(address: SocketAddr, error: io::Error) -> StartError {
        match error.kind() {
            io::ErrorKind::AddrInUse => StartError::PortInUse { address },
            _ => StartError::Listen { address, error },
        }
    }
}

/// What failed when a [`Runtime`](crate::Runtime) stopped. It has stopped anyway.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StopError {
    /// Requests were not answered in time, and were abandoned.
    #[error("not all requests were answered: {0}")]
    InFlight(#[from] StillRunning),
    /// The store could not be closed.
    #[error("the store could not be closed: {0}")]
    Store(#[from] k1s_store::Error),
    /// The listener failed.
    #[error("the listener failed: {0}")]
    Listener(String),
    /// Tasks of the runtime are still running.
    #[error("tasks have not ended: {}", .0.join(", "))]
    Tasks(Vec<String>),
}
