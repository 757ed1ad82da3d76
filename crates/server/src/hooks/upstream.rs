//! Cases of upstream's `TestShouldCallHook` and `TestMatcher`: which version of a resource rules match.

use k1s_object::gvk::GroupVersionResource;

use super::{policy::Criteria, *};
use crate::catalog::Catalog;

/// The resources of the cases, by group, version and plural: Deployments in four versions, and pods.
fn resources() -> Vec<Arc<Resource>> {
    let deployments = k1s_kinds::find("apps", "v1", "deployments").unwrap();
    let version = |(group, version): (&str, &str)| {
        let mut resource = Resource::built_in(deployments);
        resource.group = group.into();
        resource.version = version.into();
        Arc::new(resource)
    };
    let versions = [("extensions", "v1beta1"), ("apps", "v1"), ("apps", "v1beta1"), ("apps", "v1alpha1")];
    let mut all: Vec<_> = versions.map(version).into();
    let pods = Catalog::new().find(GroupVersionResource::new("", "v1", "pods")).unwrap();
    all.push(pods);
    all
}

fn name(resource: &Resource) -> String {
    format!("{}/{}/{}", resource.group, resource.version, resource.plural)
}

/// Plays the cases of a file: `matched` finds the version that matches.
fn play(
    cases: &str,
    count: usize,
    matched: impl Fn(&Value, &Request<'_>, &[Arc<Resource>]) -> Result<Option<String>, String>,
) {
    let all = resources();
    let cases: Vec<Value> = serde_json::from_str(cases).unwrap();
    assert_eq!(cases.len(), count);
    for case in &cases {
        let wanted = case["request"].as_str().unwrap();
        let resource = all.iter().find(|one| name(one) == wanted).unwrap();
        let others: Vec<_> =
            all.iter().filter(|one| one.plural == resource.plural && name(one) != wanted).cloned().collect();
        let subresource = case["subresource"].as_str().unwrap_or_default();
        let request = Request { operation: Operation::Create, resource, subresource };
        let found = matched(case, &request, &others);
        match case["error"].as_str() {
            Some(why) => assert!(found.as_ref().is_err_and(|found| found.contains(why)), "{case}: {found:?}"),
            None => assert_eq!(found, Ok(case["expect"].as_str().map(str::to_owned)), "{case}"),
        }
    }
}

#[test]
fn webhooks_are_called_with_the_version_that_a_rule_matches() {
    play(include_str!("upstream/should_call_hook.json"), 12, |case, request, others| {
        let hook = Hook::new("c", &case["webhook"]);
        Ok(hook.matches(request, others).map(|found| name(&found)))
    });
}

#[test]
fn policies_match_in_the_version_that_a_rule_matches() {
    play(include_str!("upstream/matching.json"), 23, |case, request, others| {
        let criteria = Criteria::new(&case["criteria"]);
        let Some(found) = criteria.matches(request, "name", others) else { return Ok(None) };
        // Selectors that cannot be read are errors where a rule matches.
        criteria.namespaces.and(criteria.objects)?;
        Ok(Some(name(&found)))
    });
}
