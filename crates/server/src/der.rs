//! The part of DER that certificates of clients need: reading elements, and writing them.

pub(crate) const SEQUENCE: u8 = 0x30;
#[cfg(any(test, feature = "tls"))]
pub(crate) const SET: u8 = 0x31;
pub(crate) const INTEGER: u8 = 0x02;
pub(crate) const OBJECT_ID: u8 = 0x06;
#[cfg(feature = "tls")]
pub(crate) const UTF8: u8 = 0x0c;
#[cfg(feature = "tls")]
pub(crate) const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
#[cfg(feature = "tls")]
pub(crate) const ORGANIZATION: &[u8] = &[0x55, 0x04, 0x0a];

/// The tag and the content of the first element, and the bytes after it.
pub(crate) fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = bytes.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = if first < 0x80 {
        (usize::from(first), rest)
    } else {
        let count = usize::from(first & 0x7f);
        if count == 0 || count > 4 || rest.len() < count {
            return None;
        }
        let (digits, rest) = rest.split_at(count);
        (digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit)), rest)
    };
    (rest.len() >= length).then(|| rest.split_at(length)).map(|(content, rest)| (tag, content, rest))
}

/// The content of the first element, which has this tag, and the bytes after it.
pub(crate) fn expect(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    element(bytes).filter(|(found, _, _)| *found == tag).map(|(_, content, rest)| (content, rest))
}

/// The fields of a certificate from its validity on: validity, subject, key, extensions.
pub(crate) fn from_validity(certificate: &[u8]) -> Option<&[u8]> {
    let (certificate, _) = expect(certificate, SEQUENCE)?;
    let (mut fields, _) = expect(certificate, SEQUENCE)?;
    // The version is optional, and tagged.
    if let Some((_, rest)) = expect(fields, 0xa0) {
        fields = rest;
    }
    // Serial number, algorithm, issuer.
    for tag in [INTEGER, SEQUENCE, SEQUENCE] {
        (_, fields) = expect(fields, tag)?;
    }
    Some(fields)
}

/// A time in seconds since 1970: `YYMMDDHHMMSSZ` or `YYYYMMDDHHMMSSZ`.
#[cfg(any(test, feature = "tls"))]
pub(crate) fn time(tag: u8, bytes: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(bytes).ok()?.strip_suffix('Z')?;
    let (year, rest) = match tag {
        0x17 => {
            let (year, rest) = text.split_at_checked(2)?;
            let year: i16 = year.parse().ok()?;
            (year + if year < 50 { 2000 } else { 1900 }, rest)
        }
        0x18 => {
            let (year, rest) = text.split_at_checked(4)?;
            (year.parse().ok()?, rest)
        }
        _ => return None,
    };
    let mut numbers = [0_i8; 5];
    for (place, number) in numbers.iter_mut().enumerate() {
        *number = rest.get(place * 2..place * 2 + 2)?.parse().ok()?;
    }
    let [month, day, hour, minute, second] = numbers;
    let date = jiff::civil::DateTime::new(year, month, day, hour, minute, second, 0).ok()?;
    let zoned = date.to_zoned(jiff::tz::TimeZone::UTC).ok()?;
    (rest.len() == 10).then(|| zoned.timestamp().as_second())
}

/// The tenant that a certificate is valid in: a `UTF8String` under 2.25.1797021454. A certificate without it is valid in all
/// tenants. The number is a random one of 31 bits: Go refuses certificates with larger ones, such as a UUID.
#[cfg(feature = "tls")]
pub(crate) const TENANT: &[u8] = &[0x69, 0x86, 0xd8, 0xf1, 0xbe, 0x0e];

/// The string in an extension; `fields` are those of a certificate after its key.
#[cfg(feature = "tls")]
pub(crate) fn extension<'a>(mut fields: &'a [u8], wanted: &[u8]) -> Option<&'a [u8]> {
    while !fields.is_empty() {
        let (tag, content, rest) = element(fields)?;
        fields = rest;
        if tag != 0xa3 {
            continue;
        }
        let (mut extensions, _) = expect(content, SEQUENCE)?;
        while !extensions.is_empty() {
            let (found, rest) = expect(extensions, SEQUENCE)?;
            extensions = rest;
            let (id, mut value) = expect(found, OBJECT_ID)?;
            if id != wanted {
                continue;
            }
            if let Some((_, after_critical)) = expect(value, 0x01) {
                value = after_critical;
            }
            let (octets, _) = expect(value, 0x04)?;
            return expect(octets, UTF8).map(|(text, _)| text);
        }
    }
    None
}

/// An element.
pub(crate) fn write(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    let mut out = vec![tag];
    match u8::try_from(length) {
        Ok(short) if short < 0x80 => out.push(short),
        _ => {
            let digits: Vec<u8> = length.to_be_bytes().into_iter().skip_while(|digit| *digit == 0).collect();
            // At most eight digits.
            out.push(0x80 | u8::try_from(digits.len()).unwrap_or_default());
            out.extend(digits);
        }
    }
    for part in parts {
        out.extend_from_slice(part);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_in_both_forms() {
        assert_eq!(time(0x17, b"700101000000Z"), Some(0));
        assert_eq!(time(0x17, b"491231235959Z"), Some(2_524_607_999));
        assert_eq!(time(0x18, b"20500101000000Z"), Some(2_524_608_000));
        for wrong in [&b"700101000000"[..], b"7001010000Z", b"701301000000Z", b"70010100000000Z", b"\xff"] {
            assert_eq!(time(0x17, wrong), None);
        }
    }

    #[cfg(feature = "tls")]
    #[test]
    fn the_object_id_of_tenants_is_one_that_go_can_read() {
        let mut number = 0_u64;
        for byte in &TENANT[1..] {
            number = number << 7 | u64::from(byte & 0x7f);
            assert!(i32::try_from(number).is_ok(), "{number}");
        }
        assert_eq!(TENANT[0], 2 * 40 + 25);
    }

    #[test]
    fn what_is_written_can_be_read() {
        for length in [0, 1, 127, 128, 255, 256, 70_000] {
            let content = vec![7; length];
            let written = [write(SET, &[&content]), vec![1, 2]].concat();
            assert_eq!(element(&written), Some((SET, &*content, &[1, 2][..])), "{length}");
        }
        assert_eq!(expect(&write(SET, &[]), SEQUENCE), None);
        assert_eq!(element(&[0x30, 0x85, 0, 0, 0, 0, 0]), None);
    }
}
