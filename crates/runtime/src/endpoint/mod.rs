//! The HTTP endpoints of a manager: health, readiness, metrics.
//!
//! - [`Checks`] are the health checks of `/healthz` and `/readyz`; they can be added at run time.
//! - [`Routes`] map paths to checks and metrics; [`Endpoint`] serves them on a socket.
//! - [`AccessReview`] authenticates and authorizes clients by the API server; [`Certificates`] enable HTTPS.
//! - Addresses are written as in Go: `:8080`, `127.0.0.1:0`, `0` for none.
//!
//! ```
//! # async fn example(stop: tokio_util::sync::CancellationToken) -> Result<(), Box<dyn std::error::Error>> {
//! use k1s_env::Env;
//! use k1s_runtime::endpoint::{Checks, Endpoint, Routes};
//!
//! let (healthz, readyz) = (Checks::new(), Checks::new());
//! healthz.add("ping", || async { Ok(()) });
//! let routes = Routes::new().checks("/healthz", &healthz).checks("/readyz", &readyz);
//! if let Some(endpoint) = Endpoint::bind("127.0.0.1:0", "health probes").await? {
//!     println!("healthy? http://{}/healthz", endpoint.address());
//!     endpoint.serve(Env::system(), routes, stop).await;
//! }
//! # Ok(())
//! # }
//! ```

mod access;
mod address;
#[cfg(feature = "tls")]
mod certificates;
mod checks;
mod exposition;
mod routes;
mod server;

pub use access::{AccessReview, AccessReviewOptions};
pub use address::InvalidAddress;
#[cfg(feature = "tls")]
pub use certificates::Certificates;
pub use checks::Checks;
pub use exposition::prometheus_text;
pub use routes::Routes;
pub use server::{BindError, Endpoint};

/// Without the feature `tls` there are none.
#[cfg(not(feature = "tls"))]
#[derive(Debug, Clone)]
pub(crate) enum Certificates {}
