//! PEM blocks, and the part of DER that is needed to recognize certificates and to read requests.

use base64::{Engine as _, engine::general_purpose::STANDARD};

/// One block of a PEM file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) kind: String,
    pub(super) has_headers: bool,
    pub(super) bytes: Vec<u8>,
}

/// The first block in `text` and the text after it. Malformed blocks are skipped.
pub(super) fn decode(text: &str) -> Option<(Block, &str)> {
    let mut rest = text;
    loop {
        let start = if rest.starts_with("-----BEGIN ") { 0 } else { rest.find("\n-----BEGIN ")? + 1 };
        rest = rest.get(start + "-----BEGIN ".len()..)?;
        if let Some(found) = block(rest) {
            return Some(found);
        }
    }
}

fn block(after_begin: &str) -> Option<(Block, &str)> {
    let (line, body) = after_begin.split_once('\n')?;
    let kind = line.trim_end().strip_suffix("-----")?;
    let end = format!("-----END {kind}-----");
    let at = if body.starts_with(&end) { 0 } else { body.find(&format!("\n{end}"))? + 1 };
    let content = body.get(..at)?;
    let rest = body.get(at + end.len()..)?;
    let rest = rest.split_once('\n').map_or("", |(_, rest)| rest);
    let mut has_headers = false;
    let mut digits = String::new();
    for line in content.lines() {
        if digits.is_empty() && line.contains(':') {
            has_headers = true;
        } else {
            digits.extend(line.chars().filter(|c| !c.is_ascii_whitespace()));
        }
    }
    let bytes = STANDARD.decode(digits).ok()?;
    Some((Block { kind: kind.to_owned(), has_headers, bytes }, rest))
}

pub(super) const SEQUENCE: u8 = 0x30;
pub(super) const SET: u8 = 0x31;
pub(super) const OBJECT_ID: u8 = 0x06;

/// The tag and content of an element, and the bytes after it.
pub(super) fn element(bytes: &[u8]) -> Result<(u8, &[u8], &[u8]), &'static str> {
    const TRUNCATED: &str = "asn1: syntax error: data truncated";
    let (&tag, rest) = bytes.split_first().ok_or(TRUNCATED)?;
    let (&first, rest) = rest.split_first().ok_or(TRUNCATED)?;
    let (length, rest) = if first < 0x80 {
        (usize::from(first), rest)
    } else {
        let count = usize::from(first & 0x7f);
        if count == 0 || count > 4 || rest.len() < count {
            return Err(TRUNCATED);
        }
        let (digits, rest) = rest.split_at(count);
        (digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit)), rest)
    };
    if rest.len() < length {
        return Err(TRUNCATED);
    }
    let (content, rest) = rest.split_at(length);
    Ok((tag, content, rest))
}

pub(super) fn expect(bytes: &[u8], tag: u8) -> Result<(&[u8], &[u8]), &'static str> {
    match element(bytes)? {
        (found, content, rest) if found == tag => Ok((content, rest)),
        _ => Err("asn1: structure error: tags don't match"),
    }
}

/// The number of DER sequences in `bytes`: one or more, as certificates are.
pub(super) fn certificates(mut bytes: &[u8]) -> Result<usize, &'static str> {
    let mut count = 0;
    while !bytes.is_empty() {
        let (content, rest) = expect(bytes, SEQUENCE).map_err(|_| "x509: malformed certificate")?;
        expect(content, SEQUENCE).map_err(|_| "x509: malformed tbs certificate")?;
        bytes = rest;
        count += 1;
    }
    Ok(count)
}

/// Whether a certificate is one of a CA, by its basic constraints.
pub(super) fn is_authority(bytes: &[u8]) -> Result<bool, &'static str> {
    const BASIC_CONSTRAINTS: [u8; 3] = [0x55, 0x1d, 0x13];
    let (certificate, rest) = expect(bytes, SEQUENCE)?;
    if !rest.is_empty() {
        return Err("asn1: syntax error: trailing data");
    }
    let (mut fields, _) = expect(certificate, SEQUENCE)?;
    while !fields.is_empty() {
        let (tag, content, rest) = element(fields)?;
        fields = rest;
        if tag != 0xa3 {
            continue;
        }
        let (mut extensions, _) = expect(content, SEQUENCE)?;
        while !extensions.is_empty() {
            let (extension, rest) = expect(extensions, SEQUENCE)?;
            extensions = rest;
            let (id, mut value) = expect(extension, OBJECT_ID)?;
            if id != BASIC_CONSTRAINTS {
                continue;
            }
            if let Ok((_, after_critical)) = expect(value, 0x01) {
                value = after_critical;
            }
            let (octets, _) = expect(value, 0x04)?;
            let (constraints, _) = expect(octets, SEQUENCE)?;
            return Ok(expect(constraints, 0x01).is_ok_and(|(bit, _)| bit == [0xff]));
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_found_between_other_lines() {
        let text = "hello\n-----BEGIN A-----\nAA==\n-----END A-----\n-----BEGIN B-----\nK: v\n\nAQ==\n-----END B-----";
        let (block, rest) = decode(text).unwrap();
        assert_eq!(block, Block { kind: "A".into(), has_headers: false, bytes: vec![0] });
        let (block, rest) = decode(rest).unwrap();
        assert_eq!(block, Block { kind: "B".into(), has_headers: true, bytes: vec![1] });
        assert_eq!(decode(rest), None);
        assert_eq!(decode("-----BEGIN A-----\nAA=="), None);
    }
}
