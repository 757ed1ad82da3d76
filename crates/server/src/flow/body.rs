//! Reads the body of a request, charging its bytes as they arrive.

use bytes::{Buf as _, Bytes, BytesMut};
use http_body_util::{BodyExt as _, Empty, combinators::UnsyncBoxBody};
use k1s_object::Status;

use crate::{
    capacity::{Charge, Share},
    errors, services,
    tenant::Shared,
};

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The body of a request, whatever its sender's type.
pub(crate) struct RequestBody {
    /// The least that will come: the declared length, if there is one.
    min_bytes: u64,
    /// `None`: it is empty.
    frames: Option<UnsyncBoxBody<Bytes, BoxError>>,
}

impl RequestBody {
    /// Erases the type of a body.
    pub(crate) fn new<B>(body: B) -> RequestBody
    where
        B: http_body::Body + Send + 'static,
        B::Data: Send,
        B::Error: Into<BoxError>,
    {
        let min_bytes = body.size_hint().lower();
        let bytes = |mut data: B::Data| data.copy_to_bytes(data.remaining());
        let frames = (!body.is_end_stream())
            .then(|| body.map_frame(move |frame| frame.map_data(bytes)).map_err(Into::into).boxed_unsync());
        RequestBody { min_bytes, frames }
    }
}

impl RequestBody {
    /// The body as it arrives, for another server.
    pub(crate) fn into_stream(self) -> services::RequestBody {
        self.frames.unwrap_or_else(|| Empty::new().map_err(|never| match never {}).boxed_unsync())
    }
}

/// Reads a body, which is accounted for until the charge is dropped.
pub(crate) async fn read(
    shared: &Shared,
    body: RequestBody,
    share: Share,
) -> Result<(Bytes, Charge), Status> {
    let charge = Charge::new(&shared.capacity.bodies, share);
    let RequestBody { min_bytes, frames } = body;
    let Some(frames) = frames else { return Ok((Bytes::new(), charge)) };
    // A declared length is enough to reject the request before the body is sent.
    let limit = shared.options.max_body_bytes;
    if min_bytes > limit as u64 {
        return Err(too_large(limit));
    }
    let read = collect(shared, frames, charge);
    match shared.env.timeout(shared.options.limits.body_timeout, read).await {
        Ok(read) => read,
        Err(_) => {
            let message = "Timeout: request did not complete within the allotted timeout";
            Err(Status::new(504, "Timeout", message))
        }
    }
}

async fn collect(
    shared: &Shared,
    mut frames: UnsyncBoxBody<Bytes, BoxError>,
    mut charge: Charge,
) -> Result<(Bytes, Charge), Status> {
    let (limit, patience) = (shared.options.max_body_bytes, shared.options.limits.patience);
    let mut first = Bytes::new();
    // Only bodies of several frames are copied.
    let mut whole = BytesMut::new();
    while let Some(frame) = frames.frame().await {
        let frame = frame.map_err(|error| {
            Status::bad_request(format!("the body of the request could not be read: {error}"))
        })?;
        // Trailers are ignored.
        let Ok(data) = frame.into_data() else { continue };
        if first.len().max(whole.len()) + data.len() > limit {
            return Err(too_large(limit));
        }
        charge.grow(&shared.env, data.len(), patience).await?;
        if whole.is_empty() && first.is_empty() {
            first = data;
            continue;
        }
        if whole.is_empty() {
            whole.extend_from_slice(&first);
            first = Bytes::new();
        }
        whole.extend_from_slice(&data);
    }
    Ok((if whole.is_empty() { first } else { whole.freeze() }, charge))
}

fn too_large(limit: usize) -> Status {
    errors::request_entity_too_large(format!("Request entity too large: limit is {limit}"))
}
