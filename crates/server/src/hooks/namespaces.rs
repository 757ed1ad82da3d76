//! Which webhooks and policies namespace selectors leave of those whose rules match.
//!
//! The answers are remembered by namespace and its revision, so that those that are for other namespaces cost a request one
//! lookup, however many they are.

use std::{collections::HashMap, sync::Arc};

use k1s_object::selector::LabelSelector;
use k1s_store::Revision;
use serde_json::Value;

use super::{Match, Matches, Policy};

/// Maximum size of all remembered answers; beyond it, all are forgotten.
const MAX_SIZE: usize = 1 << 17;

/// A selector, or why it cannot be read.
type Selector = Result<LabelSelector, String>;

/// What is left for a namespace.
struct Answer {
    /// Its address is a part of the key, so that it is kept alive.
    _of: Arc<Matches>,
    revision: Revision,
    left: Arc<Matches>,
}

/// The answers, by the address of the matches and the name of the namespace.
#[derive(Default)]
pub(super) struct Answers {
    all: HashMap<(usize, String), Answer>,
    /// About how much they hold.
    size: usize,
}

impl Answers {
    fn key(matches: &Arc<Matches>, namespace: &str) -> (usize, String) {
        (Arc::as_ptr(matches) as usize, namespace.to_owned())
    }

    /// The remembered answer for a revision of the namespace.
    pub(super) fn known(
        &self,
        matches: &Arc<Matches>,
        namespace: &str,
        revision: Revision,
    ) -> Option<Arc<Matches>> {
        let answer = self.all.get(&Answers::key(matches, namespace))?;
        (answer.revision == revision).then(|| answer.left.clone())
    }

    pub(super) fn remember(
        &mut self,
        matches: &Arc<Matches>,
        namespace: &str,
        revision: Revision,
        left: Arc<Matches>,
    ) {
        // An answer that leaves out nothing is shared.
        let own = if Arc::ptr_eq(matches, &left) { 0 } else { left.len() };
        if self.size + own + 1 > MAX_SIZE {
            *self = Answers::default();
        }
        self.size += own + 1;
        let answer = Answer { _of: matches.clone(), revision, left };
        self.all.insert(Answers::key(matches, namespace), answer);
    }
}

/// Those of the matches that are not for other namespaces than one with these labels. Unreadable selectors stay, as they are
/// errors of whoever is matched.
pub(super) fn narrow(matches: &Arc<Matches>, labels: Option<&Value>) -> Arc<Matches> {
    let selects = |selector: &Selector| match selector {
        Ok(selector) => selector.matches_labels(labels),
        Err(_) => true,
    };
    let hooks = |all: &[Match]| all.iter().filter(|one| selects(&one.hook.namespaces)).cloned().collect();
    let left = Matches {
        mutating: hooks(&matches.mutating),
        validating: hooks(&matches.validating),
        mutating_policies: policies(&matches.mutating_policies, selects),
        validating_policies: policies(&matches.validating_policies, selects),
        equivalents: matches.equivalents.clone(),
        by_namespace: true,
    };
    if left.len() == matches.len() { matches.clone() } else { Arc::new(left) }
}

fn policies<E>(all: &[Arc<Policy<E>>], selects: impl Fn(&Selector) -> bool) -> Vec<Arc<Policy<E>>> {
    let is_for = |policy: &&Arc<Policy<E>>| {
        selects(&policy.criteria.namespaces)
            && (can_fail_unbound(policy)
                || policy.bindings.iter().any(|binding| {
                    binding.criteria.as_ref().is_none_or(|criteria| selects(&criteria.namespaces))
                }))
    };
    all.iter().filter(is_for).cloned().collect()
}

/// Whether a policy may be wrong itself, which is an error even if none of its bindings matches.
fn can_fail_unbound<E>(policy: &Policy<E>) -> bool {
    policy.param_kind.is_some() || policy.criteria.objects.is_err()
}

/// Whether any of these has a selector of namespaces.
pub(super) fn have_selectors(matches: &Matches) -> bool {
    fn is_selective(selector: &Selector) -> bool {
        selector.as_ref().is_ok_and(|selector| !selector.is_empty())
    }
    fn is_policy_selective<E>(policy: &Arc<Policy<E>>) -> bool {
        let bindings = policy.bindings.iter().filter_map(|binding| binding.criteria.as_ref());
        std::iter::once(&policy.criteria).chain(bindings).any(|criteria| is_selective(&criteria.namespaces))
    }
    let hooks = matches.mutating.iter().chain(&matches.validating);
    hooks.into_iter().any(|one| is_selective(&one.hook.namespaces))
        || matches.mutating_policies.iter().any(is_policy_selective)
        || matches.validating_policies.iter().any(is_policy_selective)
}
