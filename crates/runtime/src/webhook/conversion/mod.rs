//! Conversion: a webhook that converts objects of a custom resource from one version to another.
//!
//! One version is the *hub*; every other, a *spoke*, is converted to and from it, by the traits of the standard library:
//!
//! ```
//! use k1s_runtime::webhook::conversion::Converter;
//! use kube::CustomResource;
//! use schemars::JsonSchema;
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(CustomResource, Serialize, Deserialize, Clone, Debug, JsonSchema)]
//! #[kube(group = "example.com", version = "v1", kind = "Job", namespaced)]
//! struct JobSpec {
//!     schedule: String,
//! }
//!
//! mod v1beta1 {
//! #   use kube::CustomResource;
//! #   use schemars::JsonSchema;
//! #   use serde::{Deserialize, Serialize};
//!     #[derive(CustomResource, Serialize, Deserialize, Clone, Debug, JsonSchema)]
//!     #[kube(group = "example.com", version = "v1beta1", kind = "Job", namespaced)]
//!     pub struct JobSpec {
//!         pub cron: String,
//!     }
//! }
//!
//! impl From<v1beta1::Job> for Job {
//!     fn from(old: v1beta1::Job) -> Job {
//!         Job { metadata: old.metadata, spec: JobSpec { schedule: old.spec.cron } }
//!     }
//! }
//!
//! impl From<Job> for v1beta1::Job {
//!     fn from(job: Job) -> v1beta1::Job {
//!         v1beta1::Job { metadata: job.metadata, spec: v1beta1::JobSpec { cron: job.spec.schedule } }
//!     }
//! }
//!
//! let converter = Converter::<Job>::new().spoke::<v1beta1::Job>();
//! # let server = k1s_runtime::webhook::WebhookServer::new(&k1s_env::Env::system(), Default::default());
//! server.register_converter(converter)?;
//! # Ok::<(), k1s_runtime::webhook::RegisterError>(())
//! ```
//!
//! Conversions need not care about metadata: all of it but labels and annotations is taken from the original, as Kubernetes
//! requires. A conversion may change these two; if it returns metadata without a name, they stay as they were.

mod review;

use std::{collections::BTreeMap, fmt, sync::Arc};

use serde_json::{Map, Value, value::RawValue};

pub(crate) use review::Converters;

use crate::{BoxError, Object};

type ToHub<H> = Box<dyn Fn(&str) -> Result<H, BoxError> + Send + Sync>;
type FromHub<H> = Box<dyn Fn(H) -> Result<Value, BoxError> + Send + Sync>;

struct Version<H> {
    to_hub: ToHub<H>,
    from_hub: FromHub<H>,
}

/// The versions of one kind, and the conversions between them. Registered with
/// [`WebhookServer::register_converter`](super::WebhookServer::register_converter).
pub struct Converter<H> {
    group: String,
    kind: String,
    /// By `apiVersion`.
    versions: BTreeMap<String, Version<H>>,
    error: Option<ConverterError>,
}

/// An invalid converter.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConverterError {
    /// A spoke is of another kind than the hub.
    #[error("{spoke} is not a version of the hub's kind {hub}")]
    OtherKind {
        /// The hub's kind.
        hub: String,
        /// The spoke's kind.
        spoke: String,
    },
    /// A version was added twice.
    #[error("version {0} was given twice")]
    Duplicate(String),
}

impl<H: Object<DynamicType: Default>> Converter<H> {
    /// A converter around the hub `H`, without spokes.
    #[must_use]
    pub fn new() -> Converter<H> {
        let dynamic = H::DynamicType::default();
        let converter = Converter {
            group: H::group(&dynamic).into_owned(),
            kind: H::kind(&dynamic).into_owned(),
            versions: BTreeMap::new(),
            error: None,
        };
        converter.version::<H>(Ok, Ok)
    }

    /// Adds a version that converts to and from the hub by `From` or `TryFrom`.
    #[must_use]
    pub fn spoke<S>(self) -> Converter<H>
    where
        S: Object<DynamicType: Default> + TryFrom<H, Error: Into<BoxError>>,
        H: TryFrom<S, Error: Into<BoxError>>,
    {
        self.version::<S>(|s| H::try_from(s).map_err(Into::into), |h| S::try_from(h).map_err(Into::into))
    }

    /// Adds a version with functions that convert to and from the hub, where `From` cannot be implemented.
    #[must_use]
    pub fn spoke_with<S: Object<DynamicType: Default>>(
        self,
        to_hub: impl Fn(S) -> Result<H, BoxError> + Send + Sync + 'static,
        from_hub: impl Fn(H) -> Result<S, BoxError> + Send + Sync + 'static,
    ) -> Converter<H> {
        self.version(to_hub, from_hub)
    }

    fn version<S: Object<DynamicType: Default>>(
        mut self,
        to_hub: impl Fn(S) -> Result<H, BoxError> + Send + Sync + 'static,
        from_hub: impl Fn(H) -> Result<S, BoxError> + Send + Sync + 'static,
    ) -> Converter<H> {
        let dynamic = S::DynamicType::default();
        let (group, kind) = (S::group(&dynamic), S::kind(&dynamic));
        if group != self.group || kind != self.kind {
            let hub = k1s_object::status::qualified(&self.group, &self.kind);
            let spoke = k1s_object::status::qualified(&group, &kind);
            self.error.get_or_insert(ConverterError::OtherKind { hub, spoke });
            return self;
        }
        let api_version = S::api_version(&dynamic).into_owned();
        let version = Version {
            to_hub: Box::new(move |raw| to_hub(serde_json::from_str(raw)?)),
            from_hub: Box::new(move |hub| Ok(serde_json::to_value(from_hub(hub)?)?)),
        };
        if self.versions.insert(api_version.clone(), version).is_some() {
            self.error.get_or_insert(ConverterError::Duplicate(api_version));
        }
        self
    }

    /// Erases the type, if the converter is valid.
    pub(crate) fn erase(self) -> Result<(String, String, Arc<dyn ConvertKind>), ConverterError> {
        match self.error {
            Some(error) => Err(error),
            None => Ok((self.group.clone(), self.kind.clone(), Arc::new(self))),
        }
    }
}

impl<H: Object<DynamicType: Default>> Default for Converter<H> {
    fn default() -> Converter<H> {
        Converter::new()
    }
}

impl<H> fmt::Debug for Converter<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Converter")
            .field("kind", &self.kind)
            .field("versions", &self.versions.keys())
            .finish_non_exhaustive()
    }
}

/// A type-erased [`Converter`].
pub(crate) trait ConvertKind: Send + Sync {
    /// Converts an object; both versions are `apiVersion`s.
    fn convert(&self, object: &RawValue, from: &str, to: &str) -> Result<Map<String, Value>, BoxError>;

    /// The known `apiVersion`s.
    fn versions(&self) -> Vec<&str>;
}

impl<H: Send + Sync> ConvertKind for Converter<H> {
    fn convert(&self, object: &RawValue, from: &str, to: &str) -> Result<Map<String, Value>, BoxError> {
        let version = |name: &str| {
            self.versions
                .get(name)
                .ok_or_else(|| format!("{name} is not known, only {}", self.versions().join(", ")))
        };
        let (from, to) = (version(from)?, version(to)?);
        match (to.from_hub)((from.to_hub)(object.get())?)? {
            Value::Object(object) => Ok(object),
            _ => Err("the converted object is not an object".into()),
        }
    }

    fn versions(&self) -> Vec<&str> {
        self.versions.keys().map(String::as_str).collect()
    }
}
