//! Loops.

use super::{
    Frame, Outcome, combine,
    node::{Fold, FoldKind, Node},
};
use crate::{
    cost,
    error::EvalError,
    value::{Key, List, Map, Value},
};

/// What a loop goes over.
enum Range<'a> {
    List(List<'a>),
    Map(Map<'a>, Vec<Key<'a>>),
}

impl<'a> Range<'a> {
    fn len(&self) -> usize {
        match self {
            Self::List(list) => list.len(),
            Self::Map(_, keys) => keys.len(),
        }
    }

    /// The variables of one round: the item or the key; or with two, index and item, or key and value.
    fn round(&self, at: usize, two: bool) -> Result<(Value<'a>, Option<Value<'a>>), EvalError> {
        match self {
            Self::List(list) => {
                let item = list.get(at).unwrap_or(Ok(Value::Null))?;
                Ok(if two {
                    (Value::Int(i64::try_from(at).unwrap_or(i64::MAX)), Some(item))
                } else {
                    (item, None)
                })
            }
            Self::Map(map, keys) => {
                let Some(key) = keys.get(at) else { return Err(EvalError::NoSuchOverload) };
                // A null of an object is a key without a value.
                let value = if two { Some(map.get(key).unwrap_or(Ok(Value::Null))?) } else { None };
                Ok((key.to_value(), value))
            }
        }
    }
}

impl<'a> Frame<'a, '_> {
    pub(super) fn fold(&mut self, fold: &'a Fold) -> Outcome<'a> {
        let range = match self.node(&fold.range)? {
            Value::List(list) => Range::List(list),
            Value::Map(map) => {
                let keys = map.keys();
                Range::Map(map, keys)
            }
            other => return Err(not_iterable(&other)),
        };
        let depth = self.locals.len();
        let result = match &fold.kind {
            FoldKind::Quantifier { predicate, decides } => self.quantifier(fold, &range, predicate, *decides),
            FoldKind::General { init, step, result } => self.general(fold, &range, init, step, result),
        };
        self.locals.truncate(depth);
        result
    }

    fn enter(&mut self, depth: usize, round: (Value<'a>, Option<Value<'a>>)) -> Result<(), EvalError> {
        self.decoded(round.1.as_ref().unwrap_or(&round.0))?;
        self.locals.truncate(depth + 1);
        self.locals.push(round.0);
        self.locals.extend(round.1);
        Ok(())
    }

    /// `all` or `exists`. An error of one round is hidden if another decides.
    fn quantifier(
        &mut self,
        fold: &'a Fold,
        range: &Range<'a>,
        predicate: &'a Node,
        decides: bool,
    ) -> Outcome<'a> {
        let depth = self.locals.len();
        // The place of the accumulator, which the predicate cannot name.
        self.locals.push(Value::Null);
        // The condition reads the accumulator and calls a function; `exists` negates it too.
        let condition = if decides { 3 } else { 2 };
        let mut so_far: Result<bool, EvalError> = Ok(!decides);
        for at in 0..range.len() {
            self.charge(condition)?;
            if so_far == Ok(decides) {
                break;
            }
            self.charge(cost::SELECT)?;
            let value = match range.round(at, fold.two) {
                Ok(round) => self.enter(depth, round).and_then(|()| self.node(predicate)),
                Err(error) => Err(error),
            };
            so_far = match (so_far, value) {
                (Ok(_), Ok(Value::Bool(value))) => Ok(value),
                (so_far, value) => combine(so_far.map(Value::Bool), value, decides),
            };
            if so_far == Err(EvalError::CostLimit) {
                return Err(EvalError::CostLimit);
            }
        }
        self.charge(cost::SELECT)?;
        so_far.map(Value::Bool)
    }

    fn general(
        &mut self,
        fold: &'a Fold,
        range: &Range<'a>,
        init: &'a Node,
        step: &'a Node,
        result: &'a Node,
    ) -> Outcome<'a> {
        let depth = self.locals.len();
        let init = self.node(init)?;
        self.locals.push(init);
        // An error does not end the loop, as upstream has it: what it costs must not depend on where the error is.
        let mut failed = None;
        for at in 0..range.len() {
            let next = range.round(at, fold.two).and_then(|round| {
                self.enter(depth, round)?;
                self.node(step)
            });
            match next {
                Ok(next) => {
                    if let Some(place) = self.locals.get_mut(depth) {
                        *place = next;
                    }
                }
                Err(EvalError::CostLimit) => return Err(EvalError::CostLimit),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        self.locals.truncate(depth + 1);
        let result = self.node(result);
        match failed {
            Some(error) if !matches!(result, Err(EvalError::CostLimit)) => Err(error),
            _ => result,
        }
    }
}

#[cold]
fn not_iterable(value: &Value<'_>) -> EvalError {
    let name = match value {
        Value::Null => "types.Null",
        Value::Bool(_) => "types.Bool",
        Value::Int(_) => "types.Int",
        Value::Uint(_) => "types.Uint",
        Value::Double(_) => "types.Double",
        Value::String(_) => "types.String",
        Value::Bytes(_) => "types.Bytes",
        Value::Duration(_) => "types.Duration",
        Value::Timestamp(_) => "types.Timestamp",
        Value::Type(_) => "*types.Type",
        Value::Optional(_) => "*types.Optional",
        other => other.type_name(),
    };
    EvalError::new(format!("got '{name}', expected iterable type"))
}
