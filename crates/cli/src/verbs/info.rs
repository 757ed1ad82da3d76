//! `version`, `kubeconfig` and `completion`: about the program and where it works.

use clap::Args;
use clap_complete::Shell;
use serde_json::{Value, json};

use crate::{
    Commands,
    api::{Error, JSON, Path},
    print::json::pretty,
    say,
    session::{Access, Session, Target},
};

/// Options of `version`.
#[derive(Debug, Clone, Args)]
pub struct VersionArgs {
    /// Only the program's own version.
    #[arg(long)]
    client: bool,
    /// Output format: json or yaml.
    #[arg(short, long, value_name = "FORMAT")]
    output: Option<String>,
    #[command(flatten)]
    target: Target,
}

/// Options of `kubeconfig`.
#[derive(Debug, Clone, Args)]
pub struct KubeconfigArgs {
    /// The data folder that a running server has open.
    #[arg(long, value_name = "DIR")]
    data_dir: Option<std::path::PathBuf>,
}

/// Options of `completion`.
#[derive(Debug, Clone, Args)]
pub struct CompletionArgs {
    /// bash, elvish, fish, powershell or zsh.
    shell: Shell,
}

pub(crate) async fn version(program: &Commands, args: &VersionArgs) -> Result<(), Error> {
    let mut versions = json!({"clientVersion": {"gitVersion": format!("v{}", program.version)}});
    let mut failed = None;
    if !args.client {
        match server_version(program, &args.target).await {
            Ok(server) => versions["serverVersion"] = server,
            Err(error) => failed = Some(error),
        }
    }
    let text = |which: &str| versions[which]["gitVersion"].as_str().unwrap_or_default().to_owned();
    match args.output.as_deref() {
        None | Some("") => {
            say::line(&format!("Client Version: {}", text("clientVersion")));
            if failed.is_none() && !args.client {
                say::line(&format!("Server Version: {}", text("serverVersion")));
            }
        }
        Some("json") => say::line(&pretty(&versions)),
        Some("yaml") => say::print(&k1s_object::to_yaml(&versions)),
        Some(_) => return Err(Error::failed("--output must be 'yaml' or 'json'")),
    }
    failed.map_or(Ok(()), Err)
}

async fn server_version(program: &Commands, target: &Target) -> Result<Value, Error> {
    let session = Session::open(program, target, Access::Read).await?;
    let version = session.api.get(Path::new("/version"), JSON).await;
    session.close().await?;
    version
}

pub(crate) fn kubeconfig(program: &Commands, args: &KubeconfigArgs) -> Result<(), Error> {
    let folder = match &args.data_dir {
        Some(folder) => folder.clone(),
        None => crate::session::default_folder(program.default_folder()).ok_or_else(|| {
            Error::failed(format!(
                "there is no folder {} here or above; use --data-dir DIR",
                program.default_folder()
            ))
        })?,
    };
    match k1s::folder_kubeconfig(&folder) {
        Some(text) => {
            say::print(&text);
            Ok(())
        }
        None => Err(Error::failed(format!(
            "no server has {0} open; start one with `k1s serve --data-dir {0}`",
            folder.display()
        ))),
    }
}

pub(crate) fn completion(program: &Commands, args: &CompletionArgs) {
    let mut parser = program.parser();
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut parser, program.name, &mut text);
    say::print(&String::from_utf8_lossy(&text));
}
