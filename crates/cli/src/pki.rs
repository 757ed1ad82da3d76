//! `k1s pki`: the certificates of a control plane and of its users.

use std::{io, path::PathBuf, time::Duration};

use clap::{Args, Subcommand};
use k1s::{
    KnownCertificate, NewUser, Pki, StartError, env::Env, server::CertificateInfo, store::etcd::EtcdOptions,
    write_kubeconfig,
};

/// The commands of `k1s pki`.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Gives a user a certificate, and writes a kubeconfig with it. What the user may do, roles and bindings decide:
    /// `kubectl create rolebinding devs --clusterrole=edit --group=devs -n team-a`.
    Issue(Issue),
    /// Shows the certificates: the authority, that of the server, and those of users with a certificate from `k1s pki issue`;
    /// whose they are and until when.
    Show {
        #[command(flatten)]
        place: Place,
    },
    /// Renews the server's certificate now, for the same names. A server renews it itself 30 days before its end. One that is
    /// running takes the new one within seconds.
    Renew {
        #[command(flatten)]
        place: Place,
    },
    /// Puts a new authority in the place of the old one. For the time of the overlap, clients with kubeconfigs and certificates
    /// of the old one are still served; new kubeconfigs have both. A server that is running takes the new one within seconds.
    Rotate {
        #[command(flatten)]
        place: Place,
        /// How many days the old authority and the certificates that it has issued are still trusted. With 0, all of them,
        /// and all kubeconfigs, are worth nothing at once: for a key that others know.
        #[arg(long, value_name = "DAYS", default_value_t = 30, value_parser = clap::value_parser!(u32).range(..36_500))]
        overlap: u32,
    },
}

/// Where the authority is.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct Place {
    /// The data folder of the server, with the authority in its `pki`.
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// The folder with the authority: `ca.crt` and `ca.key`.
    #[arg(long, value_name = "DIR")]
    cert_dir: Option<PathBuf>,
    /// The etcd of the servers, which share the authority in it.
    #[arg(long, value_name = "URL", num_args = 1..)]
    etcd: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Issue {
    /// The name of the user.
    #[arg(long, value_name = "NAME")]
    user: String,
    /// A group of the user; can be given more than once.
    #[arg(long = "group", visible_alias = "groups", value_name = "NAME", value_delimiter = ',')]
    groups: Vec<String>,
    /// Where to write the kubeconfig.
    #[arg(long, value_name = "FILE")]
    kubeconfig: PathBuf,
    /// The URL of the server.
    #[arg(long, value_name = "URL", default_value = "https://127.0.0.1:6443")]
    server: String,
    #[command(flatten)]
    place: Place,
    /// How many days the certificate is valid. It cannot be taken back before.
    #[arg(long, value_name = "DAYS", default_value_t = 365, value_parser = clap::value_parser!(u32).range(1..36_500))]
    days: u32,
}

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The authority cannot be used.
    #[error(transparent)]
    Authority(#[from] StartError),
    /// The kubeconfig cannot be written.
    #[error("{path}: {error}", path = path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The I/O error.
        error: io::Error,
    },
}

const DAY: Duration = Duration::from_secs(24 * 3600);

impl Place {
    async fn open(&self) -> Result<Pki, Error> {
        let env = Env::system();
        if !self.etcd.is_empty() {
            return Ok(Pki::etcd(&env, EtcdOptions::new(self.etcd.clone())).await?);
        }
        let own = self.data_dir.as_ref().map(|folder| folder.join("pki"));
        Ok(Pki::folder(&env, self.cert_dir.clone().or(own).unwrap_or_default()))
    }
}

/// Runs a command.
pub(crate) async fn run(command: &Command) -> Result<(), Error> {
    match command {
        Command::Issue(options) => issue(options).await,
        Command::Show { place } => {
            let all = place.open().await?.show().await?;
            say(&table(&all));
            Ok(())
        }
        Command::Renew { place } => Ok(place.open().await?.renew()?),
        Command::Rotate { place, overlap } => Ok(place.open().await?.rotate(DAY * *overlap).await?),
    }
}

async fn issue(options: &Issue) -> Result<(), Error> {
    let Issue { user, groups, kubeconfig, server, place, days } = options;
    let user = NewUser::new(user).in_groups(groups).valid_for(DAY * *days);
    let text = place.open().await?.issue(server, &user).await?;
    write_kubeconfig(kubeconfig, &text).map_err(|error| Error::Write { path: kubeconfig.clone(), error })?;
    Ok(())
}

/// A table like those of kubectl.
fn table(all: &[KnownCertificate]) -> String {
    let head = ["PURPOSE", "NAME", "GROUPS OR ADDRESSES", "ISSUER", "UNTIL"].map(str::to_owned);
    let row = |known: &KnownCertificate| {
        let CertificateInfo { name, groups, names, issuer, until, .. } = &known.info;
        let list = if groups.is_empty() { names } else { groups };
        let list = if list.is_empty() { "-".to_owned() } else { list.join(",") };
        let until = k1s::server::timestamp(*until);
        [known.purpose.to_owned(), name.clone(), list, issuer.clone(), until]
    };
    let rows: Vec<[String; 5]> = [head].into_iter().chain(all.iter().map(row)).collect();
    let mut widths = [0; 5];
    for row in &rows {
        for (width, text) in widths.iter_mut().zip(row) {
            *width = (*width).max(text.chars().count());
        }
    }
    let line = |row: &[String; 5]| {
        let cells = row.iter().zip(widths).map(|(text, width)| format!("{text:width$}"));
        cells.collect::<Vec<_>>().join("   ").trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Prints to stdout; a closed pipe is not an error.
fn say(text: &str) {
    let _ = io::Write::write_all(&mut io::stdout().lock(), format!("{text}\n").as_bytes());
}
