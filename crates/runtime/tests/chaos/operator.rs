//! An operator with three levels: a `Tree` has branches (`ConfigMap`s) and a trunk (a `Deployment`), each
//! branch has leaves (`Secret`s). One controller reconciles trees, another one branches.
//!
//! There are no periodic requeues, only those after errors: a missed event leads to missing work.

use std::{collections::BTreeMap, sync::Arc};

use k1s_controllers::ControllersOptions;
use k1s_env::Env;
use k1s_runtime::{
    Action, BoxError, Context, Controller, ControllerOptions, Manager, ManagerOptions, ObjectKey, Request,
    client::{DeleteOptions, ListOptions, Patch},
    kind, predicate, util,
};
use k8s_openapi::{
    ByteString,
    api::{
        apps::v1::Deployment,
        core::v1::{ConfigMap, Secret},
    },
};
use kube::{CustomResource, ResourceExt as _, api::ObjectMeta};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::own::Own;

#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, PartialEq, Eq, JsonSchema)]
#[kube(group = "chaos.k1s.dev", version = "v1", kind = "Tree", namespaced, status = "TreeStatus")]
#[serde(rename_all = "camelCase")]
pub(crate) struct TreeSpec {
    pub(crate) branches: u32,
    pub(crate) leaves: u32,
    pub(crate) text: String,
}

#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TreeStatus {
    pub(crate) observed_generation: i64,
    pub(crate) branches: u32,
    pub(crate) leaves: u32,
    pub(crate) complete: bool,
}

pub(crate) const NAMESPACE: &str = "default";
pub(crate) const TREE_FINALIZER: &str = "chaos.k1s.dev/tree";
pub(crate) const BRANCH_FINALIZER: &str = "chaos.k1s.dev/branch";
/// The tree of a branch, and the branch of a leaf.
pub(crate) const TREE: &str = "chaos.k1s.dev/tree";
pub(crate) const BRANCH: &str = "chaos.k1s.dev/branch";
/// Number of leaves of a branch.
pub(crate) const LEAVES: &str = "chaos.k1s.dev/leaves";

pub(crate) fn branch_name(tree: &str, branch: u32) -> String {
    format!("{tree}-{branch}")
}

pub(crate) fn leaf_name(branch: &str, leaf: u32) -> String {
    format!("{branch}-{leaf}")
}

pub(crate) fn key(name: &str) -> ObjectKey {
    ObjectKey::namespaced(NAMESPACE, name)
}

pub(crate) fn named(name: &str) -> ObjectMeta {
    ObjectMeta { name: Some(name.into()), namespace: Some(NAMESPACE.into()), ..Default::default() }
}

/// Adds the two controllers to a manager.
pub(crate) fn add_controllers(manager: &Manager, own: &Arc<Own>, options: &ControllerOptions<Request>) {
    let mine = own.clone();
    Controller::managed_by(manager)
        .for_(kind::<Tree>())
        .owns(kind::<ConfigMap>())
        .owns(kind::<Deployment>())
        .with_options(options.clone())
        .complete(move |request: Request, context: Context| {
            let own = mine.clone();
            async move { tree(&own, &request, &context).await }
        })
        .unwrap();
    let mine = own.clone();
    Controller::managed_by(manager)
        .named("branch")
        .for_(kind::<ConfigMap>().with_predicate(predicate::label_selector(TREE).unwrap()))
        .owns(kind::<Secret>())
        .with_options(options.clone())
        .complete(move |request: Request, _: Context| {
            let own = mine.clone();
            async move { branch(&own, &request).await }
        })
        .unwrap();
}

/// A manager with a garbage collector, as in every cluster.
pub(crate) fn collector(env: &Env, kube: kube::Client) -> Manager {
    let options = ManagerOptions { env: Some(env.clone()), ..ManagerOptions::local() };
    let manager = Manager::new(kube, options).unwrap();
    let options = ControllersOptions { garbage_collection: true, ..ControllersOptions::none() };
    k1s_controllers::add_to_manager(&manager, &options).unwrap();
    manager
}

async fn tree(own: &Own, request: &Request, context: &Context) -> Result<Action, BoxError> {
    if context.causes().is_empty() {
        own.complain(format!("tree {request} runs without a cause"));
    }
    let Some(tree) = own.get::<Tree>(request).await? else { return Ok(Action::done()) };
    let branches = own.list::<ConfigMap>(of(TREE, request.name())).await?;
    if tree.metadata.deletion_timestamp.is_some() {
        if !util::contains_finalizer(&*tree, TREE_FINALIZER) {
            return Ok(Action::done());
        }
        for branch in branches.iter().filter(|branch| branch.metadata.deletion_timestamp.is_none()) {
            own.delete(&**branch, DeleteOptions::exactly(&**branch)).await?;
        }
        // The deletion of the last branch triggers another reconcile.
        if branches.is_empty() {
            let mut freed = (*tree).clone();
            util::remove_finalizer(&mut freed, TREE_FINALIZER);
            own.update(&freed).await?;
        }
        return Ok(Action::done());
    }
    let mut tree = (*tree).clone();
    if util::add_finalizer(&mut tree, TREE_FINALIZER) {
        tree = own.update(&tree).await?;
    }
    for number in 0..tree.spec.branches {
        let name = branch_name(request.name(), number);
        // A terminating branch cannot be repaired; its end triggers another reconcile.
        let leaving = own.get::<ConfigMap>(&key(&name)).await?;
        if leaving.is_some_and(|branch| branch.metadata.deletion_timestamp.is_some()) {
            continue;
        }
        let skeleton = ConfigMap { metadata: named(&name), ..Default::default() };
        own.create_or_update(skeleton, |branch: &mut ConfigMap| {
            branch.labels_mut().insert(TREE.into(), request.name().into());
            util::add_finalizer(branch, BRANCH_FINALIZER);
            branch.data = Some(BTreeMap::from([
                ("leaves".into(), tree.spec.leaves.to_string()),
                ("text".into(), tree.spec.text.clone()),
            ]));
            util::set_controller_reference(&tree, branch)
        })
        .await?;
    }
    let wanted = |name: &str| (0..tree.spec.branches).any(|n| branch_name(request.name(), n) == name);
    for branch in &branches {
        if !wanted(&branch.name_any()) && branch.metadata.deletion_timestamp.is_none() {
            own.delete(&**branch, DeleteOptions::exactly(&**branch)).await?;
        }
    }
    trunk(own, &tree).await?;
    status(own, tree).await
}

/// The trunk has no finalizer: garbage collection deletes it after its tree.
async fn trunk(own: &Own, tree: &Tree) -> Result<(), BoxError> {
    let name = tree.name_any();
    let skeleton: Deployment = serde_json::from_value(json!({
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "selector": {"matchLabels": {"tree": name}},
            "template": {
                "metadata": {"labels": {"tree": name}},
                "spec": {"containers": [{"name": "trunk", "image": "wood"}]},
            },
        },
    }))?;
    own.create_or_update(skeleton, |trunk: &mut Deployment| {
        let spec = &mut trunk.spec;
        spec.replicas = Some(i32::try_from(tree.spec.branches).unwrap());
        util::set_controller_reference(tree, trunk)
    })
    .await?;
    Ok(())
}

async fn status(own: &Own, mut tree: Tree) -> Result<Action, BoxError> {
    let branches = own.list::<ConfigMap>(of(TREE, &tree.name_any())).await?;
    let living: Vec<_> = branches.iter().filter(|one| one.metadata.deletion_timestamp.is_none()).collect();
    let leaves = |branch: &ConfigMap| branch.annotations().get(LEAVES).and_then(|text| text.parse().ok());
    let status = TreeStatus {
        observed_generation: tree.metadata.generation.unwrap_or_default(),
        branches: u32::try_from(living.len()).unwrap(),
        leaves: living.iter().filter_map(|branch| leaves(branch)).sum::<u32>(),
        complete: branches.len() == usize::try_from(tree.spec.branches).unwrap()
            && living.iter().all(|branch| leaves(branch) == Some(tree.spec.leaves)),
    };
    if tree.status.as_ref() != Some(&status) {
        tree.status = Some(status);
        own.update_status(&tree).await?;
    }
    Ok(Action::done())
}

async fn branch(own: &Own, request: &Request) -> Result<Action, BoxError> {
    let Some(branch) = own.get::<ConfigMap>(request).await? else { return Ok(Action::done()) };
    if !branch.labels().contains_key(TREE) {
        return Ok(Action::done());
    }
    let leaves = own.list::<Secret>(of(BRANCH, request.name())).await?;
    if branch.metadata.deletion_timestamp.is_some() {
        for leaf in &leaves {
            own.delete(&**leaf, DeleteOptions::exactly(&**leaf)).await?;
        }
        if util::contains_finalizer(&*branch, BRANCH_FINALIZER) {
            if !own.list::<Secret>(of(BRANCH, request.name())).await?.is_empty() {
                return Ok(Action::done());
            }
            let mut freed = (*branch).clone();
            util::remove_finalizer(&mut freed, BRANCH_FINALIZER);
            own.update(&freed).await?;
        }
        return Ok(Action::done());
    }
    let data = branch.data.clone().unwrap_or_default();
    let count: u32 = data.get("leaves").and_then(|text| text.parse().ok()).unwrap_or(0);
    let text = data.get("text").cloned().unwrap_or_default();
    for number in 0..count {
        let metadata = named(&leaf_name(request.name(), number));
        let skeleton = Secret { metadata, ..Default::default() };
        own.create_or_update(skeleton, |leaf: &mut Secret| {
            leaf.labels_mut().insert(BRANCH.into(), request.name().into());
            let bytes = ByteString(format!("{text}/{number}").into_bytes());
            leaf.data = Some(BTreeMap::from([("text".into(), bytes)]));
            util::set_controller_reference(&*branch, leaf)
        })
        .await?;
    }
    for leaf in own.list::<Secret>(of(BRANCH, request.name())).await? {
        if !(0..count).any(|number| leaf_name(request.name(), number) == leaf.name_any()) {
            own.delete(&*leaf, DeleteOptions::exactly(&*leaf)).await?;
        }
    }
    let there = own.list::<Secret>(of(BRANCH, request.name())).await?.len().to_string();
    if branch.annotations().get(LEAVES) != Some(&there) {
        let mut annotated = (*branch).clone();
        annotated.annotations_mut().insert(LEAVES.into(), there);
        own.patch(&annotated, Patch::merge_from(&*branch)).await?;
    }
    Ok(Action::done())
}

fn of(label: &str, value: &str) -> ListOptions {
    ListOptions::in_namespace(NAMESPACE).matching_labels([(label, value)]).unwrap()
}
