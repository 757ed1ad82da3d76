//! Lists: of JSON, of constants, or of computed values.

use std::sync::Arc;

use serde_json::Value as Json;

use super::Value;
use crate::{
    error::EvalError,
    types::{DeclKind, DeclType, ListType},
};

/// A list. JSON items become values when they are looked at.
#[derive(Clone, Debug)]
pub struct List<'a> {
    items: Items<'a>,
    /// The declared type; of the items for JSON, and how the list is compared.
    decl: Option<&'a DeclType>,
}

#[derive(Clone, Debug)]
enum Items<'a> {
    Json(&'a [Json]),
    Constant(&'a [Value<'a>]),
    Shared(Arc<Vec<Value<'a>>>),
}

impl<'a> List<'a> {
    /// A list of values.
    pub fn new(items: Vec<Value<'a>>) -> Self {
        Self { items: Items::Shared(Arc::new(items)), decl: None }
    }

    /// A list of values that are compared as a declared type says.
    pub(crate) fn declared(items: Vec<Value<'a>>, decl: Option<&'a DeclType>) -> Self {
        Self { items: Items::Shared(Arc::new(items)), decl }
    }

    /// The items of a JSON array, with their declared type.
    pub fn json(items: &'a [Json], decl: Option<&'a DeclType>) -> Self {
        Self { items: Items::Json(items), decl }
    }

    /// The same list, without counting references to it.
    pub(crate) fn borrowed(&'a self) -> Self {
        match &self.items {
            Items::Shared(items) => Self { items: Items::Constant(items), decl: self.decl },
            _ => self.clone(),
        }
    }

    /// The number of items.
    pub fn len(&self) -> usize {
        match &self.items {
            Items::Json(items) => items.len(),
            Items::Constant(items) => items.len(),
            Items::Shared(items) => items.len(),
        }
    }

    /// Whether it has no items.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The item at an index, or `None` beyond the end. Reading JSON that is not of its declared type is an error.
    pub fn get(&self, index: usize) -> Option<Result<Value<'a>, EvalError>> {
        match &self.items {
            Items::Json(items) => items.get(index).map(|item| Value::read(item, self.item_decl())),
            Items::Constant(items) => items.get(index).cloned().map(Ok),
            Items::Shared(items) => items.get(index).cloned().map(Ok),
        }
    }

    /// The items in order.
    pub fn iter(&self) -> impl Iterator<Item = Result<Value<'a>, EvalError>> + '_ {
        (0..self.len()).filter_map(|index| self.get(index))
    }

    /// All items.
    pub fn values(&self) -> Result<Vec<Value<'a>>, EvalError> {
        self.iter().collect()
    }

    fn item_decl(&self) -> Option<&'a DeclType> {
        let decl = self.decl?;
        match decl.kind() {
            DeclKind::List(items, _) => Some(items),
            DeclKind::Decoded => Some(decl),
            _ => None,
        }
    }

    pub(crate) fn decl(&self) -> Option<&'a DeclType> {
        self.decl
    }

    /// How the list is compared and added to.
    pub(crate) fn list_type(&self) -> &'a ListType {
        match self.decl.map(DeclType::kind) {
            Some(DeclKind::List(_, list_type)) => list_type,
            _ => &ListType::Atomic,
        }
    }

    /// The list with more items. In place if nothing else refers to it, as in the loop of a `map` macro.
    pub(crate) fn extended(mut self, more: &List<'a>) -> Result<Self, EvalError> {
        if self.is_empty() && *self.list_type() == ListType::Atomic {
            return Ok(more.clone());
        }
        if let Items::Shared(shared) = &mut self.items
            && let Some(items) = Arc::get_mut(shared)
        {
            for item in more.iter() {
                items.push(item?);
            }
            return Ok(self);
        }
        let mut items = Vec::with_capacity(self.len().saturating_add(more.len()));
        for item in self.iter().chain(more.iter()) {
            items.push(item?);
        }
        Ok(Self::new(items))
    }

    /// The list with one more item.
    pub(crate) fn pushed(mut self, item: Value<'a>) -> Result<Self, EvalError> {
        if let Items::Shared(shared) = &mut self.items
            && let Some(items) = Arc::get_mut(shared)
        {
            items.push(item);
            return Ok(self);
        }
        let mut items = self.values()?;
        items.push(item);
        Ok(Self::new(items))
    }
}
