//! Whether rules cover others: nobody may grant what they do not have.

use std::collections::{BTreeSet, HashMap};

use super::rule::{ALL, Rule, has, url_includes};

/// Maximum number of simple rules that are compared with the rules of the owner. A role of more, which would be megabytes of
/// combinations, counts as not covered.
const MAX_SIMPLE_RULES: usize = 20_000;

/// The simplest rules that `rules` consist of: with one verb, and one resource of one group, at most one name, or one path.
/// `None` if they are too many.
fn simple_rules(rules: &[Rule]) -> Option<Vec<Rule>> {
    let count = |rule: &Rule| {
        let resources = rule.api_groups.len().saturating_mul(rule.resources.len());
        let named = resources.saturating_mul(rule.resource_names.len().max(1));
        rule.verbs.len().saturating_mul(named.saturating_add(rule.non_resource_urls.len()))
    };
    if rules.iter().map(count).fold(0, usize::saturating_add) > MAX_SIMPLE_RULES {
        return None;
    }
    let mut simple = Vec::new();
    for rule in rules {
        for group in &rule.api_groups {
            for resource in &rule.resources {
                for verb in &rule.verbs {
                    let one = Rule {
                        verbs: vec![verb.clone()],
                        api_groups: vec![group.clone()],
                        resources: vec![resource.clone()],
                        ..Rule::default()
                    };
                    if rule.resource_names.is_empty() {
                        simple.push(one);
                        continue;
                    }
                    let named = |name: &str| Rule { resource_names: vec![name.into()], ..one.clone() };
                    simple.extend(rule.resource_names.iter().map(|name| named(name)));
                }
            }
        }
        for url in &rule.non_resource_urls {
            for verb in &rule.verbs {
                simple.push(Rule {
                    verbs: vec![verb.clone()],
                    non_resource_urls: vec![url.clone()],
                    ..Rule::default()
                });
            }
        }
    }
    Some(simple)
}

/// The simple rules of `wanted` that no single rule of `held` covers. Empty: everything is covered.
pub(crate) fn uncovered(held: &[Rule], wanted: &[Rule]) -> Vec<Rule> {
    let Some(mut simple) = simple_rules(wanted) else { return wanted.to_vec() };
    simple.retain(|one| !held.iter().any(|rule| covers(rule, one)));
    simple
}

/// Whether a rule covers a simple one.
fn covers(held: &Rule, simple: &Rule) -> bool {
    let all = |held: &[Box<str>], simple: &[Box<str>]| simple.iter().all(|one| has(held, one));
    let resource = |one: &str| {
        has(&held.resources, one)
            || one.split_once('/').is_some_and(|(_, subresource)| {
                held.resources.iter().any(|pattern| pattern.strip_prefix("*/") == Some(subresource))
            })
    };
    (has(&held.verbs, ALL) || all(&held.verbs, &simple.verbs))
        && (has(&held.api_groups, ALL) || all(&held.api_groups, &simple.api_groups))
        && (has(&held.resources, ALL) || simple.resources.iter().all(|one| resource(one)))
        && (held.resource_names.is_empty()
            || (!simple.resource_names.is_empty() && all(&held.resource_names, &simple.resource_names)))
        && simple
            .non_resource_urls
            .iter()
            .all(|path| held.non_resource_urls.iter().any(|pattern| url_includes(pattern, path)))
}

/// The texts of rules, with the verbs of the same resource in one, sorted.
pub(crate) fn compact(rules: &[Rule]) -> BTreeSet<String> {
    let mut texts = BTreeSet::new();
    let mut order: Vec<Rule> = Vec::new();
    let mut places: HashMap<Rule, usize> = HashMap::new();
    for rule in rules {
        let is_simple = rule.resource_names.len() <= 1
            && rule.non_resource_urls.is_empty()
            && rule.api_groups.len() == 1
            && rule.resources.len() == 1;
        if !is_simple {
            texts.insert(rule.describe());
            continue;
        }
        let of = Rule { verbs: Vec::new(), ..rule.clone() };
        match places.get(&of).and_then(|place| order.get_mut(*place)) {
            Some(known) => known.verbs.extend(rule.verbs.iter().cloned()),
            None => {
                places.insert(of, order.len());
                order.push(rule.clone());
            }
        }
    }
    texts.extend(order.iter().map(Rule::describe));
    texts
}
