//! An index of the built-in resources.

use std::sync::Arc;

use hashbrown::HashMap;
use k1s_object::{Status, gvk::GroupVersionResource};

use crate::resource::Resource;

/// All built-in resources, shared by all tenants.
#[derive(Debug)]
pub(crate) struct Catalog {
    all: Vec<Arc<Resource>>,
    places: HashMap<GroupVersionResource<&'static str>, usize>,
}

impl Catalog {
    pub(crate) fn new() -> Catalog {
        let kinds = k1s_kinds::kinds();
        Catalog {
            all: kinds.iter().map(|kind| Arc::new(Resource::built_in(kind))).collect(),
            places: kinds
                .iter()
                .enumerate()
                .map(|(place, kind)| {
                    (GroupVersionResource::new(kind.group, kind.version, kind.plural), place)
                })
                .collect(),
        }
    }

    /// The built-in resource with this group, version and name.
    pub(crate) fn find(&self, gvr: GroupVersionResource<&str>) -> Option<Arc<Resource>> {
        self.places.get(&gvr).and_then(|place| self.all.get(*place)).cloned()
    }

    /// The same, for a resource that the server itself relies on.
    ///
    /// # Errors
    /// 500 if it is not in the table of kinds.
    pub(crate) fn require(&self, gvr: GroupVersionResource<&str>) -> Result<Arc<Resource>, Status> {
        let not_there = || Status::internal(format!("{} are not in the table of kinds", gvr.resource));
        self.find(gvr).ok_or_else(not_there)
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
