//! Image references, as far as the default of `imagePullPolicy` needs them.

/// The tag of an image; `latest` if it has neither tag nor digest, empty if it has only a digest or is
/// malformed.
pub(super) fn tag(image: &str) -> &str {
    parse(image).unwrap_or_default()
}

fn parse(image: &str) -> Option<&str> {
    if image.len() == 64 && image.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)) {
        return None;
    }
    let (domain, rest) = match image.split_once('/') {
        Some((first, rest))
            if first.contains(['.', ':'])
                || first == "localhost"
                || first.bytes().any(|b| b.is_ascii_uppercase()) =>
        {
            (first, rest)
        }
        _ => ("", image),
    };
    if !domain.is_empty() && !is_domain(domain) {
        return None;
    }
    let (named, digest) = match rest.split_once('@') {
        Some((named, digest)) => (named, Some(digest)),
        None => (rest, None),
    };
    if digest.is_some_and(|digest| !is_digest(digest)) {
        return None;
    }
    let (path, tag) = match named.split_once(':') {
        Some((path, tag)) => (path, Some(tag)),
        None => (named, None),
    };
    if !path.split('/').all(is_path_component) || domain.len() + path.len() > 254 {
        return None;
    }
    match tag {
        Some(tag) if is_tag(tag) => Some(tag),
        Some(_) => None,
        None if digest.is_some() => Some(""),
        None => Some("latest"),
    }
}

fn is_domain(domain: &str) -> bool {
    let (host, port) = match domain.rsplit_once(':') {
        Some((host, port)) if !host.ends_with(']') || domain.starts_with('[') => (host, Some(port)),
        _ => (domain, None),
    };
    if port.is_some_and(|port| port.is_empty() || !port.bytes().all(|b| b.is_ascii_digit())) {
        return domain.starts_with('[') && domain.ends_with(']');
    }
    if host.starts_with('[') {
        return host.ends_with(']') && host.len() > 2;
    }
    host.split('.').all(|part| {
        !part.is_empty()
            && !part.starts_with('-')
            && !part.ends_with('-')
            && part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
    })
}

/// Lower case letters and digits, separated by `.`, `_`, `__` or dashes.
fn is_path_component(part: &str) -> bool {
    let alphanumeric = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    if !part.starts_with(alphanumeric) || !part.ends_with(alphanumeric) {
        return false;
    }
    let mut rest = part;
    while let Some(at) = rest.find(|c: char| !alphanumeric(c)) {
        let tail = rest.get(at..).unwrap_or_default();
        let end = tail.find(alphanumeric).unwrap_or(tail.len());
        let separator = tail.get(..end).unwrap_or_default();
        if !(matches!(separator, "." | "_" | "__") || separator.bytes().all(|b| b == b'-')) {
            return false;
        }
        rest = tail.get(end..).unwrap_or_default();
    }
    true
}

fn is_tag(tag: &str) -> bool {
    tag.len() <= 128
        && tag.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        && tag.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-'))
}

fn is_digest(digest: &str) -> bool {
    digest.split_once(':').is_some_and(|(algorithm, hex)| {
        let algorithm_fits = algorithm.split(['+', '.', '-', '_']).all(|part| {
            part.starts_with(|c: char| c.is_ascii_alphabetic())
                && part.bytes().all(|b| b.is_ascii_alphanumeric())
        });
        algorithm_fits && hex.len() >= 32 && hex.bytes().all(|b| b.is_ascii_hexdigit())
    })
}

#[cfg(test)]
mod tests {
    use super::tag;

    #[test]
    fn a_tag_is_what_the_reference_says_or_latest() {
        for (image, expected) in [
            ("nginx", "latest"),
            ("nginx:1.25", "1.25"),
            ("nginx:latest", "latest"),
            ("reg.example.com:5000/nginx", "latest"),
            ("reg.example.com:5000/a/b:2", "2"),
            ("localhost/a:x", "x"),
            ("nginx@sha256:0000000000000000000000000000000000000000000000000000000000000000", ""),
            ("nginx:1@sha256:0000000000000000000000000000000000000000000000000000000000000000", "1"),
            ("", ""),
            (" x ", ""),
            ("Nginx", ""),
            ("a//b", ""),
            ("a__b", "latest"),
            ("a___b", ""),
            ("a---b", "latest"),
        ] {
            assert_eq!(tag(image), expected, "{image}");
        }
    }
}
