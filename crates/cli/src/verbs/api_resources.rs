//! `api-resources`

use clap::Args;

use crate::{
    Commands,
    api::{Error, discovery::Resource},
    print::table::Aligned,
    say,
    session::{Access, Session, Target},
};

/// Options of `api-resources`.
#[derive(Debug, Clone, Args)]
pub struct ApiResourcesArgs {
    /// Only of this group; empty for the core group.
    #[arg(long, value_name = "GROUP")]
    api_group: Option<String>,
    /// Only those that are namespaced, or not.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    namespaced: Option<bool>,
    /// Only those that support all of these verbs.
    #[arg(long, value_name = "VERB", value_delimiter = ',')]
    verbs: Vec<String>,
    /// Only of these categories.
    #[arg(long, value_name = "CATEGORY", value_delimiter = ',')]
    categories: Vec<String>,
    /// Output format: wide or name.
    #[arg(short, long, value_name = "FORMAT")]
    output: Option<String>,
    /// Sorts by name or kind.
    #[arg(long, value_name = "FIELD")]
    sort_by: Option<String>,
    /// Without the line of names.
    #[arg(long)]
    no_headers: bool,
    #[command(flatten)]
    target: Target,
}

pub(crate) async fn run(program: &Commands, args: &ApiResourcesArgs) -> Result<(), Error> {
    let wide = match args.output.as_deref() {
        None | Some("" | "name") => false,
        Some("wide") => true,
        Some(other) => {
            return Err(Error::failed(format!("--output {other} is not available; use wide or name")));
        }
    };
    let session = Session::open(program, &args.target, Access::Read).await?;
    let done = session.resources().await.and_then(|resources| print(args, wide, resources.all));
    session.close().await?;
    done
}

fn print(args: &ApiResourcesArgs, wide: bool, mut all: Vec<Resource>) -> Result<(), Error> {
    all.retain(|resource| {
        resource.preferred
            && !resource.verbs.is_empty()
            && args.api_group.as_ref().is_none_or(|group| *group == resource.group)
            && args.namespaced.is_none_or(|namespaced| namespaced == resource.namespaced)
            && args.verbs.iter().all(|verb| resource.can(verb))
            && args.categories.iter().all(|category| resource.categories.contains(category))
    });
    match args.sort_by.as_deref() {
        None => all.sort_by(|a, b| (&a.group, &a.plural).cmp(&(&b.group, &b.plural))),
        Some("name") => all.sort_by(|a, b| a.plural.cmp(&b.plural)),
        Some("kind") => all.sort_by(|a, b| a.kind.cmp(&b.kind)),
        Some(other) => {
            return Err(Error::failed(format!("--sort-by accepts only name or kind, not {other}")));
        }
    }
    if args.output.as_deref() == Some("name") {
        for resource in &all {
            say::line(&resource.group_resource());
        }
        return Ok(());
    }
    let mut lines = Aligned::default();
    if !args.no_headers {
        let mut names = vec!["NAME", "SHORTNAMES", "APIVERSION", "NAMESPACED", "KIND"];
        if wide {
            names.extend(["VERBS", "CATEGORIES"]);
        }
        lines.row(names);
    }
    for resource in &all {
        let mut cells = vec![
            resource.plural.clone(),
            resource.short_names.join(","),
            resource.api_version(),
            resource.namespaced.to_string(),
            resource.kind.clone(),
        ];
        if wide {
            cells.extend([resource.verbs.join(","), resource.categories.join(",")]);
        }
        lines.row(cells);
    }
    say::table(&lines.flush(), !args.no_headers);
    Ok(())
}
