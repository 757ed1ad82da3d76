//! Cases that do not hold, and why.

const LARGE: &str = "upstream reads integers as floats, and loses digits beyond 2^53; here they stay exact";
const TWICE: &str =
    "an entry of the same manager twice: managers are a map, as they are upstream before entries are sorted";
const DUPLICATE: &str =
    "a JSON object with a repeated name: it is decoded before this crate sees it, and the last counts";

/// The name of a case, and the reason.
pub(crate) const DIFFERENCES: &[(&str, &str)] = &[
    ("key/v:9007199254740993", LARGE),
    ("key/v:-9223372036854775808", LARGE),
    ("key/v:18446744073709551615", LARGE),
    ("key/k:{\"a\":1,\"a\":2}", DUPLICATE),
    ("fields/{\"f:a\":{},\"f:a\":{\"f:b\":{}}}", DUPLICATE),
    ("fields/{\"f:a\":{\".\":{},\"f:b\":{}},\"f:a\":{\"f:c\":{}}}", DUPLICATE),
    ("key/v:\"\\ud800\"", "half of a surrogate pair is not valid JSON for serde_json; Go replaces it"),
    ("TestSortEncodedManagedFields/manager without time first", TWICE),
    ("TestSortEncodedManagedFields/manager without time first name last", TWICE),
    ("TestSortEncodedManagedFields/newest last", TWICE),
    ("TestUpdateBeforeFirstApply/1", "a probability of 0 that a new object is tracked; kube-apiserver has 1"),
    (
        "TestInvalidOverride",
        "a schema that makes a scalar atomic: upstream has no such type, here it has no effect",
    ),
];
