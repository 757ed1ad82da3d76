//! `tree`: an object, its owners above, and what it owns below.

use std::collections::{BTreeMap, BTreeSet};

use clap::Args;
use k1s_object::time::age;
use serde_json::Value;

use crate::{
    Commands,
    api::{Error, JSON, Path},
    objects::{ObjectArgs, list},
    print::table::Aligned,
    progress::Progress,
    say,
    session::{Access, Session, Target},
    verbs::events::now,
};

/// Options of `tree`.
#[derive(Debug, Clone, Args)]
pub struct TreeArgs {
    /// `TYPE NAME` or `TYPE/NAME`.
    #[arg(value_name = "TYPE|TYPE/NAME", required = true)]
    what: Vec<String>,
    #[command(flatten)]
    target: Target,
}

const METADATA: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";

/// An object of a tree.
struct Node {
    name: String,
    namespace: String,
    created: Option<String>,
    owners: Vec<String>,
    /// Whether it is being deleted.
    deleting: bool,
}

pub(crate) async fn run(program: &Commands, args: &TreeArgs) -> Result<(), Error> {
    let session = Session::open(program, &args.target, Access::Read).await?;
    let done = tree(&session, args).await;
    session.close().await?;
    done
}

async fn tree(session: &Session, args: &TreeArgs) -> Result<(), Error> {
    let resources = session.resources().await?;
    let wanted =
        ObjectArgs { what: args.what.clone(), ..ObjectArgs::default() }.resolve(session, &resources)?;
    let mut roots = Vec::new();
    for one in &wanted {
        if one.name.is_none() {
            return Err(Error::failed("resource(s) were provided, but no name was specified; use TYPE/NAME"));
        }
        let object = session.api.get(Path::new(one.path()), JSON).await?;
        roots.push(object["metadata"]["uid"].as_str().unwrap_or_default().to_owned());
    }
    let mut nodes: BTreeMap<String, Node> = BTreeMap::new();
    let api = session.api.quiet();
    let listed: Vec<_> = resources.all.iter().filter(|one| one.preferred && one.can("list")).collect();
    let mut progress = Progress::new(&session.env, listed.len());
    for resource in listed {
        progress.step("kinds read");
        // Events are about objects, and belong to none.
        if resource.kind == "Event" {
            continue;
        }
        let answer = list(&api, &Path::new(resource.collection(None)), METADATA, "items").await;
        let found = match answer {
            Ok(found) => found,
            // What this user may not see is not shown.
            Err(error) if error.reason() == "Forbidden" => continue,
            Err(error) => return Err(error),
        };
        for item in found["items"].as_array().into_iter().flatten() {
            let metadata = &item["metadata"];
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let owners = metadata["ownerReferences"].as_array().into_iter().flatten();
            let node = Node {
                name: format!("{}/{}", resource.group_kind(), text(&metadata["name"])),
                namespace: text(&metadata["namespace"]),
                created: metadata["creationTimestamp"].as_str().map(str::to_owned),
                owners: owners.map(|owner| text(&owner["uid"])).collect(),
                deleting: !metadata["deletionTimestamp"].is_null(),
            };
            nodes.entry(text(&metadata["uid"])).or_insert(node);
        }
    }
    let mut dependents: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (uid, node) in &nodes {
        for owner in &node.owners {
            dependents.entry(owner).or_default().push(uid);
        }
    }
    for list in dependents.values_mut() {
        list.sort_by_key(|uid| nodes.get(*uid).map(|node| (&node.namespace, &node.name)));
    }
    let forest = Forest { nodes: &nodes, dependents, now: now(session) };
    for root in &roots {
        say::print(&forest.show(root));
    }
    Ok(())
}

struct Forest<'a> {
    nodes: &'a BTreeMap<String, Node>,
    dependents: BTreeMap<&'a str, Vec<&'a str>>,
    now: k1s_object::time::Time,
}

impl Forest<'_> {
    /// The tree of an object, from its topmost owners.
    fn show(&self, root: &str) -> String {
        let mut lines = Aligned::default();
        lines.row(["NAMESPACE", "NAME", "AGE"]);
        // Only the path to the object is shown of what its owners own.
        let mut path = BTreeSet::from([root.to_owned()]);
        let mut tops = Vec::new();
        self.climb(root, &mut path, &mut tops);
        for top in tops {
            self.branch(&mut lines, &top, root, &path, "", "", &mut BTreeSet::new());
        }
        lines.flush()
    }

    fn climb(&self, uid: &str, path: &mut BTreeSet<String>, tops: &mut Vec<String>) {
        let owners = self.nodes.get(uid).map(|node| node.owners.as_slice()).unwrap_or_default();
        let known: Vec<&String> = owners.iter().filter(|owner| self.nodes.contains_key(*owner)).collect();
        if known.is_empty() && !tops.iter().any(|top| top == uid) {
            tops.push(uid.to_owned());
        }
        for owner in known {
            if path.insert(owner.clone()) {
                self.climb(owner, path, tops);
            }
        }
    }

    #[expect(clippy::too_many_arguments, reason = "the state of a recursion")]
    fn branch(
        &self,
        lines: &mut Aligned,
        uid: &str,
        root: &str,
        path: &BTreeSet<String>,
        before: &str,
        below: &str,
        seen: &mut BTreeSet<String>,
    ) {
        let Some(node) = self.nodes.get(uid) else { return };
        let again = !seen.insert(uid.to_owned());
        let mark = match (again, node.deleting) {
            (true, _) => " (shown above)",
            (false, true) => " (being deleted)",
            (false, false) => "",
        };
        let name = format!("{before}{}{mark}", node.name);
        lines.row([node.namespace.clone(), name, age(node.created.as_deref(), self.now)]);
        if again {
            return;
        }
        // Below the object itself, everything; above it, the way.
        let inside = !path.contains(uid) || uid == root;
        let children: Vec<&str> = self.dependents.get(uid).into_iter().flatten().copied().collect();
        let children: Vec<&str> =
            children.into_iter().filter(|child| inside || path.contains(*child)).collect();
        for (index, child) in children.iter().enumerate() {
            let last = index + 1 == children.len();
            let (mark, space) = if last { ("└─", "  ") } else { ("├─", "│ ") };
            self.branch(
                lines,
                child,
                root,
                path,
                &format!("{below}{mark}"),
                &format!("{below}{space}"),
                seen,
            );
        }
    }
}
