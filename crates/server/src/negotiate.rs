//! Content negotiation by the `Accept` header.

use http::{HeaderMap, HeaderValue, header};
use k1s_object::{Status, status::Details};

/// The encoding of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Media {
    Json,
    Yaml,
    Protobuf,
}

impl Media {
    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Media::Json => "application/json",
            Media::Yaml => "application/yaml",
            Media::Protobuf => "application/vnd.kubernetes.protobuf",
        }
    }
}

/// The form in which objects are returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// The object itself.
    Object,
    /// `as=Table`
    Table,
    /// `as=PartialObjectMetadata`
    Partial,
    /// `as=PartialObjectMetadataList`
    PartialList,
}

/// The negotiated format of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Accepted {
    pub(crate) media: Media,
    pub(crate) form: Form,
    /// `meta.k8s.io/v1` or `meta.k8s.io/v1beta1`, for forms other than the object itself.
    pub(crate) form_version: &'static str,
}

impl Accepted {
    pub(crate) const JSON: Accepted =
        Accepted { media: Media::Json, form: Form::Object, form_version: "meta.k8s.io/v1" };
}

/// The formats that an endpoint offers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Offer {
    /// Whether protobuf is available: for built-in kinds.
    pub(crate) protobuf: bool,
    /// Whether it is a stream, which is not available as YAML.
    pub(crate) stream: bool,
    /// Whether it is available as a table.
    pub(crate) tables: bool,
}

impl Offer {
    fn media_types(self) -> String {
        let mut names = vec!["application/json", "application/yaml"];
        if self.protobuf {
            names.push("application/vnd.kubernetes.protobuf");
        }
        names.join(", ")
    }
}

/// One clause of an Accept header.
struct Clause<'a> {
    kind: &'a str,
    subtype: &'a str,
    quality: f32,
    parameters: Vec<(&'a str, &'a str)>,
}

fn clauses(header: &str) -> Vec<Clause<'_>> {
    let mut clauses: Vec<Clause<'_>> = header
        .split(',')
        .filter_map(|clause| {
            let mut parts = clause.split(';').map(str::trim);
            let (kind, subtype) = match parts.next()? {
                "" => return None,
                media => media.split_once('/')?,
            };
            let parameters: Vec<(&str, &str)> = parts
                .filter_map(|part| part.split_once('='))
                .map(|(key, value)| (key.trim(), value.trim()))
                .collect();
            let quality = parameters
                .iter()
                .find(|(key, _)| *key == "q")
                .and_then(|(_, q)| q.parse().ok())
                .unwrap_or(1.0);
            Some(Clause { kind: kind.trim(), subtype: subtype.trim(), quality, parameters })
        })
        .collect();
    clauses.sort_by(|a, b| b.quality.total_cmp(&a.quality));
    clauses
}

/// Chooses the format of a response; 406 lists the available ones.
pub(crate) fn negotiate(headers: &HeaderMap, offer: Offer) -> Result<Accepted, Status> {
    let header = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if header.trim().is_empty() {
        return Ok(Accepted::JSON);
    }
    let clauses = clauses(header);
    if let Some(accepted) = clauses.iter().find_map(|clause| accept(clause, offer)) {
        return Ok(accepted);
    }
    let available = offer.media_types();
    // In kube-apiserver, a header without any known media type is rejected one layer earlier, with another message.
    Err(if clauses.iter().any(|clause| media(clause).is_some()) {
        not_acceptable(format!("only the following media types are accepted: {available}"))
    } else {
        let streams = match (offer.stream, offer.protobuf) {
            (false, _) => "",
            (true, false) => ", application/json;stream=watch",
            (true, true) => {
                ", application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"
            }
        };
        not_acceptable(format!("406: Not Acceptable\n\nAvailable representations: {available}{streams}"))
            .with(Details::default())
    })
}

/// The encoding of an error: the first supported one that the client names, regardless of the form it wants objects in.
/// `None` if it names none.
pub(crate) fn error_media(accept: Option<&HeaderValue>) -> Option<Media> {
    let header = accept.and_then(|value| value.to_str().ok()).unwrap_or_default();
    if header.trim().is_empty() {
        return Some(Media::Json);
    }
    let plain =
        |clause: &&Clause<'_>| !clause.parameters.iter().any(|(key, _)| matches!(*key, "as" | "g" | "v"));
    clauses(header).iter().filter(plain).find_map(|clause| match (clause.kind, clause.subtype) {
        ("application", "*") => Some(Media::Json),
        _ => media(clause),
    })
}

/// 406
pub(crate) fn not_acceptable(message: impl Into<String>) -> Status {
    Status::new(406, "NotAcceptable", message)
}

fn media(clause: &Clause<'_>) -> Option<Media> {
    match (clause.kind, clause.subtype) {
        ("*", "*") | ("application", "json") => Some(Media::Json),
        ("application", "yaml") => Some(Media::Yaml),
        ("application", "vnd.kubernetes.protobuf") => Some(Media::Protobuf),
        _ => None,
    }
}

fn accept(clause: &Clause<'_>, offer: Offer) -> Option<Accepted> {
    let media = media(clause)?;
    if (media == Media::Protobuf && !offer.protobuf) || (media == Media::Yaml && offer.stream) {
        return None;
    }
    let parameter =
        |name: &str| clause.parameters.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
    let (name, group, version) = (parameter("as"), parameter("g"), parameter("v"));
    if name.or(group).or(version).is_none() {
        return Some(Accepted { media, ..Accepted::JSON });
    }
    let form = match name? {
        "Table" if offer.tables && media != Media::Protobuf => Form::Table,
        "PartialObjectMetadata" => Form::Partial,
        "PartialObjectMetadataList" => Form::PartialList,
        _ => return None,
    };
    let form_version = match version? {
        "v1" => "meta.k8s.io/v1",
        "v1beta1" => "meta.k8s.io/v1beta1",
        _ => return None,
    };
    (group? == "meta.k8s.io").then_some(Accepted { media, form, form_version })
}

#[cfg(test)]
mod tests {
    use super::*;

    const OFFER: Offer = Offer { protobuf: true, stream: false, tables: true };

    fn chosen(accept: &str, offer: Offer) -> Option<Accepted> {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, accept.parse().unwrap());
        negotiate(&headers, offer).ok()
    }

    #[test]
    fn the_first_available_clause_is_chosen() {
        let table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
        assert_eq!(chosen(table, OFFER), Some(Accepted { form: Form::Table, ..Accepted::JSON }));
        assert_eq!(chosen(table, Offer { tables: false, ..OFFER }), Some(Accepted::JSON));
        assert_eq!(
            chosen("application/json;as=Table;v=v1;g=meta.k8s.io", Offer { tables: false, ..OFFER }),
            None
        );
        assert_eq!(chosen("application/json;g=meta.k8s.io;v=v1", OFFER), None);
        assert_eq!(chosen("application/json;as=Bogus;g=meta.k8s.io;v=v1", OFFER), None);
        assert_eq!(chosen("application/*", OFFER), None);
        assert_eq!(chosen("*/*", OFFER), Some(Accepted::JSON));
        assert_eq!(chosen("", OFFER), Some(Accepted::JSON));
        let both = "application/vnd.kubernetes.protobuf,application/json";
        assert_eq!(chosen(both, OFFER).map(|a| a.media), Some(Media::Protobuf));
        assert_eq!(chosen(both, Offer { protobuf: false, ..OFFER }), Some(Accepted::JSON));
        assert_eq!(
            chosen("application/json;q=0.1,application/yaml;q=0.9", OFFER).map(|a| a.media),
            Some(Media::Yaml)
        );
    }

    #[test]
    fn errors_use_the_first_known_encoding() {
        let media = |accept: &str| error_media(Some(&accept.parse().unwrap()));
        assert_eq!(media(""), Some(Media::Json));
        assert_eq!(media("application/vnd.kubernetes.protobuf,application/json"), Some(Media::Protobuf));
        assert_eq!(media("application/json;as=Table;v=v1;g=meta.k8s.io,application/yaml"), Some(Media::Yaml));
        assert_eq!(media("application/*"), Some(Media::Json));
        assert_eq!(media("text/html,*/*;q=0.8"), Some(Media::Json));
        assert_eq!(media("text/html"), None);
        assert_eq!(media("application/json;as=Table;v=v1;g=meta.k8s.io"), None);
    }
}
