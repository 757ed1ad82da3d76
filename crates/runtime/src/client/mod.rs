//! Reads from the cache, writes to the server.
//!
//! - [`Client`]: the verbs for typed objects; [`KindClient`]: the verbs for one kind, which may be known at run time only.
//!   Wrappers of a client: in one namespace, dry run, field owner, field validation, interceptors.
//! - [`Reader`], [`KindReader`]: reads that bypass the cache, pages and watches.
//! - [`SubResourceClient`]: status, scale, eviction and the like.
//! - [`Patch`], and the options of each verb.
//! - [`ApplyConfiguration`]: some fields of an object, for server-side apply; [`ApplyConflict`].
//! - [`Error`]: the call, and why it failed.
//! - [`RestMapper`]: the kinds that the server serves.
//! - `http2`: a `kube::Client` that needs one connection for all of its watches. `Http2Connections`: several such clients share it.
//!
//! Requests are plain HTTP requests, sent by a `kube::Client`. The response to a write is decoded for the caller and stored
//! in the cache, so that the next read sees the write.
//!
//! Helpers for reconcilers (create or update, owners, finalizers, conditions, retries) are in [`util`](crate::util).

mod apply;
mod call;
#[expect(clippy::module_inception, reason = "the client of the client module")]
mod client;
mod decode;
mod delete_all;
mod error;
mod exchange;
#[cfg(feature = "tls")]
mod http2;
mod intercept;
mod kind_client;
pub(crate) mod lines;
mod metrics;
mod object_ref;
mod options;
mod patch;
mod reader;
mod rest_mapper;
mod strategic;
mod sub_resource;
pub(crate) mod telemetry;
mod transport;
mod watch;
mod written;

pub(crate) use apply::is_field_conflict;
pub use apply::{Applicable, ApplyConfiguration, ApplyConflict, ApplyReport, ExtractError, FieldConflict};
pub use call::{Call, Target, Verb};
pub use client::{Client, ClientOptions};
pub use decode::{List, RawList};
pub use error::{ApiError, Error, MissingPermission, ignore_already_exists, ignore_not_found};
#[cfg(feature = "tls")]
pub use http2::{Http2Connections, http2};
pub use intercept::Interceptor;
pub use kind_client::{Deleted, KindClient};
pub use metrics::RestMetrics;
pub use object_ref::ObjectRef;
pub use options::{
    ApplyOptions, CreateOptions, DeleteAllOfOptions, DeleteOptions, FieldValidation, ListOptions,
    PatchOptions, Preconditions, PropagationPolicy, SelectorError, UpdateOptions, VersionMatch, WatchOptions,
    WriteOptions,
};
pub(crate) use options::{Query, selectors};
pub use patch::{Patch, PatchType};
pub use reader::{KindReader, Pages, Reader};
pub use rest_mapper::{RestMapper, RestMapping};
pub use sub_resource::SubResourceClient;
pub use watch::{EventType, RawEvent, RawWatchStream, WatchEvent, WatchStream};
pub use written::Written;
