//! A definition with the parts that all versions share moved to the top, as kube-apiserver validates it.

use serde_json::Value;

/// One version.
#[derive(Debug)]
pub(super) struct Version<'v> {
    pub(super) name: &'v str,
    pub(super) served: bool,
    pub(super) storage: bool,
    pub(super) deprecated: bool,
    pub(super) warning: Option<&'v str>,
    pub(super) shared: Shared<'v>,
}

/// The parts that versions can share.
#[derive(Debug, Default)]
pub(super) struct Shared<'v> {
    pub(super) validation: Option<&'v Value>,
    pub(super) subresources: Option<&'v Value>,
    pub(super) columns: Option<&'v Value>,
    pub(super) selectable: Option<&'v Value>,
}

impl<'v> Shared<'v> {
    pub(super) fn schema(&self) -> Option<&'v Value> {
        self.validation.and_then(|validation| validation.get("openAPIV3Schema"))
    }

    pub(super) fn has_status(&self) -> bool {
        self.subresources.is_some_and(|subresources| subresources.get("status").is_some())
    }
}

/// The specification of a definition.
#[derive(Debug)]
pub(super) struct View<'v> {
    pub(super) spec: Option<&'v Value>,
    pub(super) versions: Vec<Version<'v>>,
    pub(super) shared: Shared<'v>,
}

impl<'v> View<'v> {
    pub(super) fn new(crd: &'v Value) -> View<'v> {
        let spec = crd.get("spec");
        let list = spec.and_then(|spec| spec.get("versions")).and_then(Value::as_array);
        let mut versions: Vec<Version<'v>> = list
            .into_iter()
            .flatten()
            .map(|version| {
                let text = |key: &str| version.get(key).and_then(Value::as_str);
                let flag = |key: &str| version.get(key).and_then(Value::as_bool).unwrap_or_default();
                Version {
                    name: text("name").unwrap_or_default(),
                    served: flag("served"),
                    storage: flag("storage"),
                    deprecated: flag("deprecated"),
                    warning: text("deprecationWarning"),
                    shared: Shared {
                        validation: version.get("schema"),
                        subresources: version.get("subresources"),
                        columns: version.get("additionalPrinterColumns"),
                        selectable: version.get("selectableFields"),
                    },
                }
            })
            .collect();
        let mut shared = Shared::default();
        lift(&mut versions, &mut shared, |shared| &mut shared.validation);
        lift(&mut versions, &mut shared, |shared| &mut shared.subresources);
        lift(&mut versions, &mut shared, |shared| &mut shared.columns);
        lift(&mut versions, &mut shared, |shared| &mut shared.selectable);
        View { spec, versions, shared }
    }

    pub(super) fn text(&self, key: &str) -> &'v str {
        self.spec.and_then(|spec| spec.get(key)).and_then(Value::as_str).unwrap_or_default()
    }

    /// All schemas, the shared one or that of each version.
    pub(super) fn schemas(&self) -> impl Iterator<Item = &'v Value> {
        self.shared
            .schema()
            .into_iter()
            .chain(self.versions.iter().filter_map(|version| version.shared.schema()))
    }
}

/// Moves a part to the top if it is equal in all versions.
fn lift<'v>(
    versions: &mut [Version<'v>],
    top: &mut Shared<'v>,
    pick: impl for<'s> Fn(&'s mut Shared<'v>) -> &'s mut Option<&'v Value>,
) {
    let Some(first) = versions.first_mut().map(|version| *pick(&mut version.shared)) else { return };
    if versions.iter_mut().all(|version| *pick(&mut version.shared) == first) {
        *pick(top) = first;
        for version in versions {
            *pick(&mut version.shared) = None;
        }
    }
}
