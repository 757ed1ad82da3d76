//! Responses with lists: streamed as the objects are stored, or encoded before the response begins.

use std::sync::Arc;

use bytes::Bytes;
use http::Response;
use k1s_object::Status;
use serde_json::{Map, Value, json};

use super::{bytes, encode_meta, go_type, partial};
use crate::{
    body::Body,
    capacity::Charge,
    context::Cx,
    errors::Error,
    flow,
    negotiate::{Form, Media, not_acceptable},
    resource::{Resource, Source},
    stored::{Stored, write_number},
    table,
};

/// A list to respond with.
pub(crate) struct List {
    pub(crate) revision: u64,
    pub(crate) items: Vec<Stored>,
    /// The keys of objects that are left out because they cannot be read.
    pub(crate) unreadable: Vec<Bytes>,
    pub(crate) continue_token: String,
    pub(crate) remaining: Option<usize>,
}

/// Whether a list is encoded while the client reads it: objects sent as they are stored need no conversion that could fail.
fn streams(cx: &Cx, list: &List) -> bool {
    cx.accepted.form == Form::Object
        && cx.accepted.media == Media::Json
        && list.items.iter().all(|item| cx.resource.shows_as_stored(item))
}

/// Reserves memory for a response with a list: called before anything is changed.
///
/// # Errors
/// 429, or [`Error::Apart`] if the request has to be restarted apart ([`Cx::weigh`]).
pub(crate) async fn afford(cx: &Cx, list: &List) -> Result<Option<Charge>, Error> {
    if streams(cx, list) {
        return Ok(None);
    }
    cx.weigh_list(&list.items)?;
    Ok(Some(flow::room(cx, &list.items).await?))
}

/// The response with a list; `charge` is what [`afford`] reserved.
pub(crate) fn list(cx: &Cx, list: List, charge: Option<Charge>) -> Result<Response<Body>, Status> {
    let media = cx.accepted.media;
    let resource = &cx.resource;
    if streams(cx, &list) {
        let mut out =
            Vec::with_capacity(CHUNK.min(list.items.iter().map(|item| item.len() + 64).sum::<usize>() + 256));
        write_list_head(&mut out, resource, &list);
        return Ok(bytes(200, media.content_type(), stream_items(resource.clone(), list.items, out, charge)));
    }
    if cx.accepted.form == Form::Partial {
        return Err(not_acceptable(format!(
            "you requested PartialObjectMetadata, but the requested object is a list ({})",
            go_type(resource, true)
        )));
    }
    list.items.iter().try_for_each(|item| resource.check_conversion(item))?;
    // Encoded before the response begins, so that it can still fail; in pieces that are freed as they are sent.
    let mut pieces = whole(cx, &list)?;
    drop(list);
    if pieces.len() <= 1 {
        return Ok(bytes(200, media.content_type(), pieces.pop().unwrap_or_default()));
    }
    let sent = futures_util::stream::iter(pieces.into_iter().inspect(move |_| {
        let _held = &charge;
    }));
    Ok(bytes(200, media.content_type(), Body::stream(sent)))
}

/// Maximum number of objects that are decoded at a time.
const TOGETHER: usize = 64;

/// A list in the negotiated form.
fn whole(cx: &Cx, list: &List) -> Result<Vec<Bytes>, Status> {
    let (media, resource) = (cx.accepted.media, &*cx.resource);
    let meta = list_meta(list, resource.is_custom() && cx.accepted.form == Form::Object);
    match cx.accepted.form {
        Form::Table => {
            let include = table::include(cx)?;
            let mut shell = table::build(cx, &meta, std::iter::empty(), include, true);
            if list.items.is_empty() || media == Media::Protobuf {
                return encode_meta(&shell, media).map(|bytes| vec![bytes.into()]);
            }
            shell["rows"] = Value::Array(Vec::new());
            let together = if table::needs_all(cx) { list.items.len() } else { TOGETHER };
            in_pieces(media, &shell, "rows", list.items.chunks(together), |items| {
                let objects = read_all(resource, items);
                match table::build(cx, &Value::Null, objects.iter(), include, false)["rows"].take() {
                    Value::Array(rows) => rows,
                    _ => Vec::new(),
                }
            })
        }
        Form::PartialList | Form::Partial => {
            let mut shell = json!({"kind": "PartialObjectMetadataList", "apiVersion": cx.accepted.form_version,
                "metadata": meta, "items": null});
            if list.items.is_empty() {
                return encode_meta(&shell, media).map(|bytes| vec![bytes.into()]);
            }
            let one = |item: &Stored| readable(resource, item).map(|object| partial(cx.accepted, &object));
            if media == Media::Protobuf {
                let ty =
                    k1s_kinds::type_by_name("io.k8s.apimachinery.pkg.apis.meta.v1.PartialObjectMetadataList")
                        .ok_or_else(|| {
                            not_acceptable("PartialObjectMetadataList has no protobuf encoding here")
                        })?;
                let names = ("meta.k8s.io/v1", "PartialObjectMetadataList");
                let items = list.items.iter().rev().filter_map(one);
                return Ok(cut(k1s_kinds::protobuf::encode_list(ty, &shell, items, names)));
            }
            shell["items"] = Value::Array(Vec::new());
            in_pieces(media, &shell, "items", list.items.chunks(TOGETHER), |items| {
                items.iter().filter_map(one).collect()
            })
        }
        Form::Object => {
            let shell = json!({"kind": resource.list_kind, "apiVersion": resource.api_version,
                "metadata": meta, "items": []});
            match (&resource.source, media) {
                (Source::BuiltIn(built_in), Media::Protobuf) => {
                    let ty = built_in.kind.list_ty.ok_or_else(|| {
                        not_acceptable(format!("{} has no protobuf encoding here", resource.list_kind))
                    })?;
                    let items = list.items.iter().rev().filter_map(|item| readable(resource, item));
                    let names = (&*resource.api_version, &*resource.list_kind);
                    Ok(cut(k1s_kinds::protobuf::encode_list(ty, &shell, items, names)))
                }
                (Source::Custom(_), Media::Protobuf) => {
                    Err(not_acceptable("custom resources have no protobuf encoding"))
                }
                _ => in_pieces(media, &shell, "items", list.items.chunks(TOGETHER), |items| {
                    let mut objects = read_all(resource, items);
                    // Items of built-in lists have no kind and apiVersion.
                    for object in objects.iter_mut().filter(|_| !resource.is_custom()) {
                        if let Some(map) = object.as_object_mut() {
                            map.shift_remove("kind");
                            map.shift_remove("apiVersion");
                        }
                    }
                    objects
                }),
            }
        }
    }
}

fn read_all(resource: &Resource, items: &[Stored]) -> Vec<Value> {
    items.iter().filter_map(|item| readable(resource, item)).collect()
}

/// An item of a list, or `None` if it cannot be read.
fn readable(resource: &Resource, item: &Stored) -> Option<Value> {
    resource
        .read(item)
        .inspect_err(|why| {
            let name = item.metadata().map(|metadata| metadata["name"].to_string()).unwrap_or_default();
            tracing::error!(resource = resource.plural, name, %why, "an unreadable object is left out");
        })
        .ok()
}

/// A document in JSON or YAML whose empty array `field` is filled batch by batch.
fn in_pieces<'a>(
    media: Media,
    shell: &Value,
    field: &str,
    batches: impl Iterator<Item = &'a [Stored]>,
    elements: impl Fn(&'a [Stored]) -> Vec<Value>,
) -> Result<Vec<Bytes>, Status> {
    let yaml = media == Media::Yaml;
    let text = if yaml { k1s_object::to_yaml(shell) } else { shell.to_string() };
    // Quotes within a JSON string are escaped, and no line within a YAML string begins like this.
    let (empty, opened, closed) = if yaml {
        (format!("{field}: []\n"), format!("{field}:\n"), "")
    } else {
        (format!("\"{field}\":[]"), format!("\"{field}\":["), "]")
    };
    let at = match text.find(&empty) {
        Some(at) if yaml && at > 0 => text.find(&format!("\n{empty}")).map(|before| before + 1),
        other => other,
    };
    let at = at.ok_or_else(|| Status::internal(format!("a list without {field}")))?;
    let (head, tail) = (text.get(..at).unwrap_or_default(), text.get(at + empty.len()..).unwrap_or_default());
    let mut pieces = Pieces::default();
    pieces.out.extend_from_slice(head.as_bytes());
    let mut any = false;
    for batch in batches {
        let batch = elements(batch);
        if batch.is_empty() {
            continue;
        }
        let first = !std::mem::replace(&mut any, true);
        if first {
            pieces.out.extend_from_slice(opened.as_bytes());
        }
        if yaml {
            pieces.out.extend_from_slice(k1s_object::to_yaml(&Value::Array(batch)).as_bytes());
            pieces.cut();
            continue;
        }
        for (number, element) in batch.iter().enumerate() {
            if !first || number > 0 {
                pieces.out.push(b',');
            }
            let _ = serde_json::to_writer(&mut pieces.out, element);
            pieces.cut();
        }
    }
    pieces.out.extend_from_slice(if any { closed.as_bytes() } else { empty.as_bytes() });
    pieces.out.extend_from_slice(tail.as_bytes());
    if !yaml {
        pieces.out.push(b'\n');
    }
    Ok(pieces.finish())
}

/// The pieces of an encoded list.
#[derive(Default)]
struct Pieces {
    done: Vec<Bytes>,
    out: Vec<u8>,
}

impl Pieces {
    /// Begins a new piece if this one has [`CHUNK`] bytes.
    fn cut(&mut self) {
        if self.out.len() >= CHUNK {
            self.done.push(std::mem::take(&mut self.out).into());
        }
    }

    fn finish(mut self) -> Vec<Bytes> {
        self.done.push(self.out.into());
        self.done
    }
}

/// Cuts an encoded list into pieces.
fn cut(whole: Vec<u8>) -> Vec<Bytes> {
    if whole.len() <= CHUNK {
        vec![whole.into()]
    } else {
        whole.chunks(CHUNK).map(Bytes::copy_from_slice).collect()
    }
}

/// Size of the pieces of a list: bytes in memory per response that is streamed, however long the list is.
const CHUNK: usize = 64 << 10;

/// The body of a list whose head is written. A short list is one piece.
fn stream_items(resource: Arc<Resource>, items: Vec<Stored>, head: Vec<u8>, charge: Option<Charge>) -> Body {
    let mut items = items.into_iter();
    let mut first = true;
    let mut piece = move |mut out: Vec<u8>| {
        for item in items.by_ref() {
            if !std::mem::take(&mut first) {
                out.push(b',');
            }
            write_item(&mut out, &resource, &item);
            if out.len() >= CHUNK {
                return (out, true);
            }
        }
        out.extend_from_slice(b"]}\n");
        (out, false)
    };
    let (head, more) = piece(head);
    if !more {
        return head.into();
    }
    let mut ended = false;
    let rest = std::iter::from_fn(move || {
        let _held = &charge;
        if ended {
            return None;
        }
        let (out, more) = piece(Vec::with_capacity(CHUNK + CHUNK / 8));
        ended = !more;
        Some(Bytes::from(out))
    });
    Body::stream(futures_util::stream::iter(std::iter::once(Bytes::from(head)).chain(rest)))
}

fn write_item(out: &mut Vec<u8>, resource: &Resource, item: &Stored) {
    // Items of custom resources have kind and apiVersion; those of built-in lists do not.
    let (kind, api_version) =
        if resource.is_custom() { (&*resource.kind, &*resource.api_version) } else { ("", "") };
    item.write(out, kind, api_version);
}

fn list_meta(list: &List, custom: bool) -> Value {
    let mut meta = Map::new();
    meta.insert("resourceVersion".into(), list.revision.to_string().into());
    if custom || !list.continue_token.is_empty() {
        meta.insert("continue".into(), list.continue_token.as_str().into());
    }
    if let Some(remaining) = list.remaining {
        meta.insert("remainingItemCount".into(), remaining.into());
    }
    Value::Object(meta)
}

fn write_list_head(out: &mut Vec<u8>, resource: &Resource, list: &List) {
    out.extend_from_slice(b"{\"kind\":\"");
    out.extend_from_slice(resource.list_kind.as_bytes());
    out.extend_from_slice(b"\",\"apiVersion\":\"");
    out.extend_from_slice(resource.api_version.as_bytes());
    out.extend_from_slice(b"\",\"metadata\":{\"resourceVersion\":\"");
    write_number(out, list.revision);
    out.push(b'"');
    if resource.is_custom() || !list.continue_token.is_empty() {
        out.extend_from_slice(b",\"continue\":\"");
        out.extend_from_slice(list.continue_token.as_bytes());
        out.push(b'"');
    }
    if let Some(remaining) = list.remaining {
        out.extend_from_slice(b",\"remainingItemCount\":");
        write_number(out, remaining as u64);
    }
    out.extend_from_slice(b"},\"items\":[");
}
