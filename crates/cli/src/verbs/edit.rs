//! `edit`: an object in an editor, and back.

use std::{fs, process::Command};

use clap::Args;
use http::Method;
use serde_json::Value;

use crate::{
    Commands,
    api::{Error, JSON, Path},
    objects::ObjectArgs,
    print::{DryRun, PrintArgs, hide_managed_fields},
    say,
    session::{Access, Session, Target},
    verbs::Scratch,
};

/// Options of `edit`.
#[derive(Debug, Clone, Args)]
pub struct EditArgs {
    #[command(flatten)]
    objects: ObjectArgs,
    #[command(flatten)]
    print: PrintArgs,
    #[command(flatten)]
    target: Target,
}

const HEADER: &str = "# The object is changed when you save and close the editor. An empty file changes nothing.\n\
                      # A mistake does not lose your text: the message says where it is kept.\n#\n";

/// The editor: that of kubectl, then the usual variable.
fn editor() -> String {
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
    set("KUBE_EDITOR").or_else(|| set("EDITOR")).unwrap_or_else(|| "vi".to_owned())
}

pub(crate) async fn run(program: &Commands, args: &EditArgs) -> Result<(), Error> {
    // The folder is not kept open while somebody thinks.
    let session = Session::open(program, &args.target, Access::Read).await?;
    let found = async {
        let resources = session.resources().await?;
        let wanted = args.objects.resolve(&session, &resources)?;
        let (found, errors) = args.objects.fetch(&session.api, &wanted).await;
        Error::all(errors)?;
        Ok::<_, Error>(found)
    };
    let found = found.await;
    let env = session.env.clone();
    session.close().await?;
    let mut edited = Vec::new();
    for (one, mut object) in found? {
        if !args.print.show_managed_fields {
            hide_managed_fields(&mut object);
        }
        let before = k1s_object::to_yaml(&object);
        let failed = |error: std::io::Error| Error::failed(format!("a file for the editor: {error}"));
        let scratch = Scratch::new(program.name, &env).map_err(failed)?;
        let path = scratch.path().join(format!("{}.yaml", one.name.as_deref().unwrap_or_default()));
        fs::write(&path, format!("{HEADER}{before}")).map_err(failed)?;
        let command = editor();
        // As a shell would read it, so that options work.
        let status =
            Command::new("sh").arg("-c").arg(format!("{command} \"$1\"")).arg("sh").arg(&path).status();
        let status = status.map_err(|error| Error::failed(format!("the editor {command:?}: {error}")))?;
        if !status.success() {
            return Err(Error::failed(format!(
                "there was a problem with the editor {command:?}; nothing was changed"
            )));
        }
        let text = fs::read_to_string(&path).map_err(failed)?;
        let after = match checked(&text, &object) {
            Ok(Some(after)) => after,
            Ok(None) => {
                say::note("Edit cancelled, no changes made.");
                continue;
            }
            Err(error) => {
                scratch.keep();
                return Err(Error::failed(format!("{error}\nyour text is kept in {}", path.display())));
            }
        };
        let mut patch = k1s_object::patch::merge::diff(&object, &after);
        // Somebody else may have changed it meanwhile.
        patch["metadata"]["resourceVersion"] = object["metadata"]["resourceVersion"].clone();
        edited.push((one, patch, scratch));
    }
    if edited.is_empty() {
        return Ok(());
    }
    let printer = args.print.printer(DryRun::None)?;
    let session = Session::open(program, &args.target, Access::Write).await?;
    let mut errors = Vec::new();
    for (one, patch, scratch) in edited {
        let manager = format!("{}-edit", program.name);
        let to = Path::new(one.path()).with("fieldManager", &manager);
        let body = Some(("application/merge-patch+json", patch.to_string().into_bytes()));
        let answer: Result<Value, Error> = session.api.send(Method::PATCH, to, JSON, body).await;
        match answer {
            Ok(object) => {
                printer.print(&object, "edited")?;
            }
            Err(error) => {
                say::note(&format!("your text is kept in {}", scratch.path().display()));
                scratch.keep();
                errors.push(error);
            }
        }
    }
    session.finish(program, Error::all(errors)).await
}

/// The edited object; `None` if nothing has changed.
fn checked(text: &str, before: &Value) -> Result<Option<Value>, String> {
    let after = k1s_object::yaml::decode(text.as_bytes()).map_err(|error| error.to_string())?.value;
    if after.is_null() || after == *before {
        return Ok(None);
    }
    for field in ["/apiVersion", "/kind", "/metadata/name"] {
        if after.pointer(field) != before.pointer(field) {
            return Err(format!("{} cannot be changed", field[1..].replace('/', ".")));
        }
    }
    Ok(Some(after))
}
