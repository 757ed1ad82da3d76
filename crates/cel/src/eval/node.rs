//! The steps of a program.

use std::{collections::HashSet, sync::Arc};

use crate::{
    function::{Overload, Prepared},
    types::{Field, ObjectType},
    value::Value,
};

#[derive(Debug)]
pub(crate) enum Node {
    Constant(Value<'static>),
    /// A variable, a field, an item, or what a conditional chooses.
    Attribute(Box<Attribute>),
    /// `has(…)`: whether the last qualifier finds something.
    Test(Box<Attribute>),
    Call(Box<CallNode>),
    Equals(Box<Equals>),
    And(Box<(Node, Node)>),
    Or(Box<(Node, Node)>),
    /// `x in [constants]`
    InSet(Box<Node>, Box<Set>),
    /// `@result + [item]`: the accumulator is taken, extended and returned.
    Append(Box<Append>),
    /// `cel.@mapInsert(@result, …)`, likewise.
    Insert(Box<Insert>),
    List(Vec<Item>),
    Map(Vec<Entry>),
    Object(Box<ObjectNode>),
    Fold(Box<Fold>),
    Bind(Box<Bind>),
    OptionalOr(Box<(Node, Node)>),
    OptionalOrValue(Box<(Node, Node)>),
}

#[derive(Debug)]
pub(crate) struct Attribute {
    pub(crate) root: Root,
    pub(crate) qualifiers: Vec<Qualifier>,
}

#[derive(Debug)]
pub(crate) enum Root {
    /// A variable of the environment: number, name, and what reading it costs.
    Variable(usize, Box<str>, u64),
    Local(usize),
    /// Any other value.
    Value(Node),
    Conditional(Node, Box<Node>, Box<Node>),
}

#[derive(Debug)]
pub(crate) struct Qualifier {
    pub(crate) key: QualifierKey,
    /// `.?` or `[?…]`: what is not there is no error.
    pub(crate) optional: bool,
}

#[derive(Debug)]
pub(crate) enum QualifierKey {
    /// A field whose object type is known.
    Field(Field, ObjectType),
    /// A key of a map or a field of anything.
    Name(Box<str>),
    Constant(Value<'static>),
    Computed(Node),
}

pub(crate) struct CallNode {
    pub(crate) function: Box<str>,
    pub(crate) overloads: Vec<Arc<Overload>>,
    pub(crate) args: Vec<Node>,
    /// With constant arguments looked at.
    pub(crate) prepared: Option<Prepared>,
}

impl std::fmt::Debug for CallNode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CallNode")
            .field("function", &self.function)
            .field("args", &self.args)
            .finish_non_exhaustive()
    }
}

#[derive(Debug)]
pub(crate) struct Equals {
    pub(crate) left: Node,
    pub(crate) right: Node,
    pub(crate) negated: bool,
}

/// Constants that are looked up by value.
#[derive(Debug, Default)]
pub(crate) struct Set {
    strings: HashSet<Box<str>>,
    numbers: Vec<Value<'static>>,
    bools: [bool; 2],
    null: bool,
}

impl Set {
    /// The set of some values, unless one is of another kind than those that sets know.
    pub(crate) fn of(values: &[Value<'static>]) -> Option<Self> {
        let mut set = Self::default();
        for value in values {
            match value {
                Value::String(text) => {
                    set.strings.insert((**text).into());
                }
                Value::Int(_) | Value::Uint(_) | Value::Double(_) => set.numbers.push(value.clone()),
                Value::Bool(value) => set.bools[usize::from(*value)] = true,
                Value::Null => set.null = true,
                _ => return None,
            }
        }
        Some(set)
    }

    pub(crate) fn contains(&self, value: &Value<'_>) -> bool {
        match value {
            Value::String(text) => self.strings.contains(&**text),
            Value::Bool(value) => self.bools[usize::from(*value)],
            Value::Null => self.null,
            Value::Int(_) | Value::Uint(_) | Value::Double(_) => {
                self.numbers.iter().any(|known| known.equals(value) == Ok(true))
            }
            _ => false,
        }
    }
}

#[derive(Debug)]
pub(crate) struct Append {
    pub(crate) accumulator: usize,
    pub(crate) item: Node,
    /// Of the list with the item.
    pub(crate) cost: u64,
}

#[derive(Debug)]
pub(crate) struct Insert {
    pub(crate) accumulator: usize,
    /// A key and a value, or a map.
    pub(crate) args: Vec<Node>,
}

#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) value: Node,
    pub(crate) optional: bool,
}

#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) key: Node,
    pub(crate) value: Node,
    pub(crate) optional: bool,
}

#[derive(Debug)]
pub(crate) struct ObjectNode {
    pub(crate) type_name: Box<str>,
    /// Name, value, whether optional.
    pub(crate) fields: Vec<(Box<str>, Node, bool)>,
}

#[derive(Debug)]
pub(crate) struct Fold {
    pub(crate) range: Node,
    pub(crate) two: bool,
    pub(crate) kind: FoldKind,
}

#[derive(Debug)]
pub(crate) enum FoldKind {
    /// `all` (decided by `false`) and `exists` (decided by `true`), with the predicate.
    Quantifier {
        predicate: Node,
        decides: bool,
    },
    General {
        init: Node,
        step: Node,
        result: Node,
    },
}

#[derive(Debug)]
pub(crate) struct Bind {
    pub(crate) value: Node,
    pub(crate) result: Node,
}
