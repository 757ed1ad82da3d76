//! `run`: applies files, runs controllers until nothing is left to do, and reports.

use std::time::Duration;

use clap::Args;

use crate::{
    Commands,
    api::Error,
    files::FileArgs,
    print::{DryRun, PrintArgs},
    say,
    session::{Access, Session, Target},
    verbs::{apply::apply_items, duration},
};

/// Options of `run`.
#[derive(Debug, Clone, Args)]
pub struct RunArgs {
    #[command(flatten)]
    files: FileArgs,
    /// How long the controllers may work.
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = duration)]
    timeout: Duration,
    #[command(flatten)]
    target: Target,
}

pub(crate) async fn run(program: &Commands, args: &RunArgs) -> Result<(), Error> {
    let items = args.files.load()?;
    let session = Session::open_or_memory(program, &args.target, Access::Write).await?;
    let done = async {
        let printer = PrintArgs::default().printer(DryRun::None)?;
        apply_items(program, &session, items, printer).await?;
        session.reconcile(program, args.timeout).await
    };
    let report = done.await;
    session.close().await?;
    let report = report?;
    say::line(&report.to_string());
    for failed in &report.failed {
        say::complain(&format!("error: not reconciled: {failed}"), true);
    }
    if report.succeeded() { Ok(()) } else { Err(Error::Exit(1)) }
}
