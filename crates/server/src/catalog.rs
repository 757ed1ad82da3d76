//! The built-in resources, ready to be looked up.

use std::{collections::HashMap, sync::Arc};

use crate::resource::Resource;

/// All built-in resources. The same for every tenant, so a tenant costs nothing for them.
#[derive(Debug)]
pub(crate) struct Catalog {
    all: Vec<Arc<Resource>>,
    places: HashMap<(&'static str, &'static str, &'static str), usize>,
}

impl Catalog {
    pub(crate) fn new() -> Catalog {
        let kinds = k1s_kinds::kinds();
        Catalog {
            all: kinds.iter().map(|kind| Arc::new(Resource::built_in(kind))).collect(),
            places: kinds
                .iter()
                .enumerate()
                .map(|(place, kind)| ((kind.group, kind.version, kind.plural), place))
                .collect(),
        }
    }

    /// The resource at `/apis/{group}/{version}/{plural}`.
    pub(crate) fn find(&self, group: &str, version: &str, plural: &str) -> Option<Arc<Resource>> {
        self.places.get(&(group, version, plural)).and_then(|place| self.all.get(*place)).cloned()
    }

    /// All resources in discovery's order.
    pub(crate) fn all(&self) -> &[Arc<Resource>] {
        &self.all
    }

    /// The resources of a version.
    pub(crate) fn of<'a>(
        &'a self,
        group: &'a str,
        version: &'a str,
    ) -> impl Iterator<Item = &'a Arc<Resource>> {
        self.all.iter().filter(move |resource| resource.group == group && resource.version == version)
    }

    /// Whether a group is one of Kubernetes' own.
    pub(crate) fn has_group(&self, group: &str) -> bool {
        self.all.iter().any(|resource| resource.group == group)
    }
}
