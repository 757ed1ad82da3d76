//! The query of a request.

use k1s_object::Status;

/// The parameters of a query, in their order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    pub(crate) fn parse(query: Option<&str>) -> Query {
        Query(form_urlencoded::parse(query.unwrap_or_default().as_bytes()).into_owned().collect())
    }

    /// The first value of a parameter, empty if it is absent.
    pub(crate) fn get(&self, name: &str) -> &str {
        self.find(name).unwrap_or_default()
    }

    /// The first value of a parameter.
    pub(crate) fn find(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// All values of a parameter.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// A boolean parameter as Kubernetes parses it: present, and neither `false` nor `0`.
    pub(crate) fn flag(&self, name: &str) -> bool {
        match self.find(name) {
            None => false,
            Some(value) => !matches!(value.to_ascii_lowercase().as_str(), "false" | "0"),
        }
    }

    /// An integer, or Go's error message.
    pub(crate) fn number(&self, name: &str) -> Result<Option<i64>, Status> {
        let Some(text) = self.find(name) else { return Ok(None) };
        text.parse::<i64>().map(Some).map_err(|error| {
            use std::num::IntErrorKind::{NegOverflow, PosOverflow};
            let why = match error.kind() {
                PosOverflow | NegOverflow => "value out of range",
                _ => "invalid syntax",
            };
            Status::bad_request(format!(
                "strconv.ParseInt: parsing {}: {why}",
                k1s_object::field::quote(text)
            ))
        })
    }
}
