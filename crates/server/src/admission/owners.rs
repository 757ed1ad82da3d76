//! `OwnerReferencesPermissionEnforcement`: who changes the owners of an object could delete it, and who makes it block an
//! owner's deletion could set the owner's finalizers.

use k1s_object::{
    field::quote,
    gvk::{GroupResource, GroupVersion},
};
use serde_json::Value;

use super::{Attributes, forbidden, refused};
use crate::{
    authz::{Attributes as Wanted, Decision, Target},
    errors::Error,
    hooks::Operation,
    request::Verb,
    resource::Resource,
};

fn owners(of: Option<&Value>) -> &[Value] {
    of.and_then(|of| of["metadata"]["ownerReferences"].as_array()).map_or(&[], Vec::as_slice)
}

/// References to owners whose deletion waits for the object, and did not before.
fn newly_blocking<'a>(new: &'a [Value], old: &[Value]) -> Vec<&'a Value> {
    let blocks = |owner: &&Value| owner["blockOwnerDeletion"] == true;
    let known = |owner: &Value| old.iter().filter(blocks).any(|before| before["uid"] == owner["uid"]);
    new.iter().filter(|owner| blocks(owner) && !known(owner)).collect()
}

/// Checks a new state of an object.
pub(super) async fn check(a: &Attributes<'_>, object: &Value, old: Option<&Value>) -> Result<(), Error> {
    let resource = a.resource();
    let is_pod_status = GroupResource::new(&*resource.group, &*resource.plural)
        == GroupResource::new("", "pods")
        && a.subresource() == "status";
    let (new, before) = (owners(Some(object)), owners(old));
    if new == before || is_pod_status {
        return Ok(());
    }
    let refuse = |why: String| -> Result<(), Error> {
        Err(match a.operation {
            Operation::Create => forbidden(a.cx, object, why),
            _ => refused(a.cx, &a.name, why),
        }
        .into())
    };
    if a.operation != Operation::Create {
        let target = Target::Resource {
            group: &resource.group,
            resource: &resource.plural,
            subresource: a.subresource(),
            namespace: &a.namespace,
            name: &a.name,
        };
        if let Some(why) = denial(&ask(a, Verb::Delete, target).await) {
            return refuse(format!("cannot set an ownerRef on a resource you can't delete: {why}"));
        }
    }
    let blocking = newly_blocking(new, before);
    if blocking.is_empty() {
        return Ok(());
    }
    let anything =
        Target::Resource { group: "*", resource: "*", subresource: "finalizers", namespace: "", name: "*" };
    if ask(a, Verb::Update, anything).await.allowed {
        return Ok(());
    }
    for owner in blocking {
        let text = |field: &str| owner[field].as_str().unwrap_or_default();
        let (version, kind) = (text("apiVersion"), text("kind"));
        let Some((group, plural, namespaced)) = find(a, version, kind).await? else {
            return refuse(format!(
                "cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion {version} Kind {kind}: no matches for kind {} in version {}",
                quote(kind),
                quote(version)
            ));
        };
        let target = Target::Resource {
            group: &group,
            resource: &plural,
            subresource: "finalizers",
            namespace: if namespaced { &a.namespace } else { "" },
            name: text("name"),
        };
        if let Some(why) = denial(&ask(a, Verb::Update, target).await) {
            return refuse(format!(
                "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: {why}"
            ));
        }
    }
    Ok(())
}

async fn ask(a: &Attributes<'_>, verb: Verb<'_>, target: Target<'_>) -> Decision {
    let tenant = &a.cx.tenant;
    let wanted = Wanted::new(verb, target);
    tenant.shared.authorizer.authorize(Some(tenant), &a.cx.user, &wanted).await
}

/// Why something is not allowed, as Go prints a reason and an error.
fn denial(decision: &Decision) -> Option<String> {
    let error = decision.failure.as_ref().map_or("<nil>", |failure| &failure.message);
    (!decision.allowed).then(|| format!("{}, {error}", decision.reason))
}

/// The group and plural of a kind, and whether it is namespaced.
async fn find(
    a: &Attributes<'_>,
    version: &str,
    kind: &str,
) -> Result<Option<(String, String, bool)>, Error> {
    let GroupVersion { group, version } = GroupVersion::split(version);
    let tenant = &a.cx.tenant;
    let shown = |resource: &Resource| (resource.group.clone(), resource.plural.clone(), resource.namespaced);
    if let Some(found) = tenant.shared.catalog.of(group, version).find(|one| one.kind == kind) {
        return Ok(Some(shown(found)));
    }
    let customs = tenant.customs.fresh(tenant, group).await?;
    let mut all = customs.resources();
    Ok(all.find(|one| one.group == group && one.version == version && one.kind == kind).map(|one| shown(one)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Upstream's cases of references that newly block.
    #[test]
    fn references_that_newly_block_are_found() {
        let owner = |uid: &str, blocks: Option<bool>| match blocks {
            None => json!({"uid": uid}),
            Some(blocks) => json!({"uid": uid, "blockOwnerDeletion": blocks}),
        };
        let (yes, no, none) = (owner("1", Some(true)), owner("1", Some(false)), owner("1", None));
        let other = owner("2", Some(true));
        let cases: [(&[&Value], &[&Value], usize); 8] = [
            (&[&no, &none], &[], 0),
            (&[&yes], &[], 1),
            (&[&yes], &[&no], 1),
            (&[&yes], &[&none], 1),
            (&[&yes], &[&yes], 0),
            (&[&yes, &other], &[&yes], 1),
            (&[&no], &[&yes], 0),
            (&[&other], &[&yes], 1),
        ];
        for (new, old, count) in cases {
            let [new, old] = [new, old].map(|of| of.iter().map(|one| (*one).clone()).collect::<Vec<_>>());
            assert_eq!(newly_blocking(&new, &old).len(), count, "{new:?} {old:?}");
        }
    }
}
