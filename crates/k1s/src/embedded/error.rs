//! Why a runtime does not start, or did not stop as it should.

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

use crate::control_plane::ControlPlaneError;

/// Why a [`Runtime`](crate::Runtime) does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// Another runtime, here or in another process, has the folder.
    #[error("the data folder {} is in use by {holder}; stop that one, or choose another folder", .folder.display())]
    FolderInUse {
        /// The folder.
        folder: PathBuf,
        /// Who has it, as far as they said.
        holder: String,
    },
    /// The store in the folder is damaged. Nothing was changed.
    #[cfg(feature = "disk")]
    #[error(
        "{error}; nothing was changed: `k1s store check {place}` tells what is damaged and what would be lost, `k1s store repair {place}` \
         makes a good store of the rest and keeps the damaged one",
        place = .folder.display()
    )]
    Damaged {
        /// The data folder.
        folder: PathBuf,
        /// What was found first.
        error: OpenError,
    },
    /// The folder cannot be used: of a newer version, not accessible, read-only.
    #[cfg(feature = "disk")]
    #[error(transparent)]
    Disk(OpenError),
    /// etcd does not answer, or not as it should.
    #[cfg(feature = "etcd")]
    #[error("etcd at {endpoints} cannot be used: {error}")]
    Etcd {
        /// Where it was looked for.
        endpoints: String,
        /// Why it cannot be used.
        error: ConnectError,
    },
    /// A simulated clock does not know when there is nothing left to wait for.
    #[error(
        "{what} cannot be used under a simulated clock: it would move on while requests are under way; use memory or disk, \
         or Env::system()"
    )]
    Simulated {
        /// What is outside of the simulation.
        what: &'static str,
    },
    /// Somebody else listens there.
    #[error(
        "cannot listen at {address}: another program does; choose another port, or 0 for any that is free"
    )]
    PortInUse {
        /// Where.
        address: SocketAddr,
    },
    /// The address cannot be listened at, or the certificate cannot be used.
    #[error("cannot listen at {address}: {error}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// Why not.
        error: io::Error,
    },
    /// No certificate could be made.
    #[error("cannot make a certificate: {0}")]
    Certificate(String),
    /// A certificate, key or token that was kept cannot be used: damaged, not accessible.
    #[error("{}: {reason}", .path.display())]
    Pki {
        /// The file, or its folder.
        path: PathBuf,
        /// What is wrong, and what to do about it.
        reason: String,
    },
    /// The server does not start: the tenant's name is none, or the store fails.
    #[error("the API server does not start: {0}")]
    Server(#[from] Status),
    /// The election of whose controllers run is not described as it must be.
    #[error("the election of whose controllers run: {0}")]
    Election(#[from] InvalidOptions),
    /// A task of the start did not come to its end.
    #[error(transparent)]
    Task(#[from] TaskError),
}

impl From<ControlPlaneError> for StartError {
    fn from(error: ControlPlaneError) -> StartError {
        match error {
            ControlPlaneError::Server(status) => StartError::Server(status),
            ControlPlaneError::Election(error) => StartError::Election(error),
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

/// What did not go well when a [`Runtime`](crate::Runtime) stopped. It has stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StopError {
    /// Requests were not answered in time, and were given up.
    #[error("not all requests were answered: {0}")]
    InFlight(#[from] StillRunning),
    /// The store could not be closed.
    #[error("the store could not be closed: {0}")]
    Store(#[from] k1s_store::Error),
    /// The listener failed.
    #[error("the listener failed: {0}")]
    Listener(String),
    /// Tasks of the runtime go on.
    #[error("tasks have not ended: {}", .0.join(", "))]
    Tasks(Vec<String>),
}
