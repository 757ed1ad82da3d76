//! `authorizer` in expressions: whether the user of the request, or a service account, may do something else.
//!
//! An evaluation cannot wait, but an authorizer may have to. So an evaluation only asks: if it needed an answer that is not known
//! yet, the question is put to the authorizer, and the expressions are evaluated again.

use std::sync::Arc;

use k1s_cel::{
    Work,
    library::authz::{self, Action, Authorize, Decision, ResourceAction, Subject},
};
use k1s_kinds::expressions::{Authorizers, Input};
use parking_lot::Mutex;

use super::{Allowance, Attributes};
use crate::{
    authz::{Attributes as Wanted, Selection, Target},
    errors::Error,
    identity::User,
    request::Verb,
};

/// Maximum number of evaluations of the same expressions: each but the last has asked something new.
const MAX_ROUNDS: usize = 64;

/// What expressions have asked.
#[derive(Debug, Default)]
struct Known {
    answered: Mutex<Vec<(Subject, Action, Decision)>>,
    asked: Mutex<Vec<(Subject, Action)>>,
}

impl Authorize for Known {
    fn authorize(&self, subject: &Subject, action: &Action) -> Decision {
        let answered = self.answered.lock();
        if let Some((.., decision)) = answered.iter().find(|(who, what, _)| (who, what) == (subject, action))
        {
            return decision.clone();
        }
        self.asked.lock().push((subject.clone(), action.clone()));
        let error = Some("the authorizer has not answered yet".to_owned());
        Decision { error, ..Decision::default() }
    }
}

/// The authorizer of a request, for all expressions that are evaluated for it.
#[derive(Debug)]
pub(super) struct Questions {
    known: Arc<Known>,
    values: Authorizers,
}

impl Questions {
    pub(super) fn new(a: &Attributes<'_>) -> Questions {
        let known = Arc::new(Known::default());
        let resource = a.resource();
        let action = ResourceAction {
            group: resource.group.clone(),
            resource: resource.plural.clone(),
            subresource: a.subresource().to_owned(),
            namespace: a.namespace.clone(),
            name: a.name.clone(),
            ..ResourceAction::default()
        };
        let values = Authorizers {
            authorizer: authz::authorizer(known.clone()),
            request_resource: authz::request_resource(known.clone(), action),
        };
        Questions { known, values }
    }

    /// The authorizer for expressions.
    pub(super) fn values(&self) -> &Authorizers {
        &self.values
    }

    /// Answers what the last evaluation has asked. Returns whether there was anything, so that it is to be repeated.
    async fn answer(&self, a: &Attributes<'_>) -> bool {
        let asked = std::mem::take(&mut *self.known.asked.lock());
        let any = !asked.is_empty();
        for (subject, action) in asked {
            let decision = answer(a, &subject, &action).await;
            self.known.answered.lock().push((subject, action, decision));
        }
        any
    }

    /// Evaluates expressions until all that they ask is answered.
    pub(super) async fn evaluate<T: Send + 'static>(
        &self,
        a: &Attributes<'_>,
        allowance: &mut Allowance,
        input: Input<'_>,
        evaluate: impl Fn(Input<'_>, &Work) -> T + Clone + Send + 'static,
    ) -> Result<T, Error> {
        let mut done = allowance.evaluate(a.cx, input, evaluate.clone()).await?;
        for _ in 1..MAX_ROUNDS {
            if !self.answer(a).await {
                break;
            }
            done = allowance.evaluate(a.cx, input, evaluate.clone()).await?;
        }
        Ok(done)
    }
}

async fn answer(a: &Attributes<'_>, subject: &Subject, action: &Action) -> Decision {
    let account;
    let user = match subject {
        Subject::Requester => &a.cx.user,
        Subject::ServiceAccount(namespace, name) => {
            let groups = ["system:serviceaccounts", &format!("system:serviceaccounts:{namespace}")];
            account = User::new(format!("system:serviceaccount:{namespace}:{name}"), &groups);
            &account
        }
    };
    let wanted = match action {
        Action::Path { path, verb } => Wanted::new(Verb::named(verb), Target::Path(path)),
        Action::Resource(action) => {
            let target = Target::Resource {
                group: &action.group,
                resource: &action.resource,
                subresource: &action.subresource,
                namespace: &action.namespace,
                name: &action.name,
            };
            let selection =
                Selection::Sent { fields: &action.field_selector, labels: &action.label_selector };
            Wanted { version: "*", selection, ..Wanted::new(Verb::named(&action.verb), target) }
        }
    };
    let tenant = &a.cx.tenant;
    let decided = tenant.shared.authorizer.authorize(Some(tenant), user, &wanted).await;
    Decision {
        allowed: decided.allowed,
        reason: decided.reason.to_string(),
        error: decided.failure.map(|status| status.message),
    }
}
