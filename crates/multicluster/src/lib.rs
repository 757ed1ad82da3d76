//! Controllers over many clusters that come and go.

mod index;
mod provider;
mod request;

pub use provider::{Engager, Provider, ProviderError, Stuck};
pub use request::MultiRequest;
