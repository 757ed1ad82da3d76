//! Reads the body of a request, charging its bytes as they arrive.

use std::pin::Pin;

use bytes::{Buf as _, Bytes, BytesMut};
use http_body_util::BodyExt as _;
use k1s_object::Status;

use crate::{
    capacity::{Charge, Share},
    errors,
    tenant::Shared,
};

/// Reads a body, which is accounted for until the charge is dropped.
pub(crate) async fn read<B>(shared: &Shared, body: B, share: Share) -> Result<(Bytes, Charge), Status>
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let charge = Charge::new(&shared.capacity.bodies, share);
    if body.is_end_stream() {
        return Ok((Bytes::new(), charge));
    }
    // A declared length is enough to reject the request before the body is sent.
    let limit = shared.options.max_body_bytes;
    if body.size_hint().lower() > limit as u64 {
        return Err(too_large(limit));
    }
    let read = collect(shared, body, charge);
    match shared.env.timeout(shared.options.limits.body_timeout, read).await {
        Ok(read) => read,
        Err(_) => {
            let message = "Timeout: request did not complete within the allotted timeout";
            Err(Status::new(504, "Timeout", message))
        }
    }
}

async fn collect<B>(shared: &Shared, body: B, mut charge: Charge) -> Result<(Bytes, Charge), Status>
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let (limit, patience) = (shared.options.max_body_bytes, shared.options.limits.patience);
    let mut body = std::pin::pin!(body);
    let mut first = Bytes::new();
    // Only bodies of several frames are copied.
    let mut whole = BytesMut::new();
    while let Some(data) = next(body.as_mut()).await? {
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

/// The next data frame.
async fn next<B>(mut body: Pin<&mut B>) -> Result<Option<Bytes>, Status>
where
    B: http_body::Body,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let frame = body.frame().await.transpose().map_err(|error| {
        Status::bad_request(format!("the body of the request could not be read: {}", error.into()))
    })?;
    Ok(frame.map(|frame| match frame.into_data() {
        Ok(mut data) => data.copy_to_bytes(data.remaining()),
        // Trailers are ignored.
        Err(_) => Bytes::new(),
    }))
}

fn too_large(limit: usize) -> Status {
    errors::request_entity_too_large(format!("Request entity too large: limit is {limit}"))
}
