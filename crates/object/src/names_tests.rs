//! Messages for invalid names, keys and values.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::field::Check;

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const KEY: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

#[test]
fn dns_names_are_lower_case_and_short() {
    assert!(is_dns1123_subdomain("example.com").is_empty());
    assert_eq!(is_dns1123_subdomain("Example.com"), [SUBDOMAIN]);
    assert_eq!(is_dns1123_subdomain(""), [SUBDOMAIN]);
    assert_eq!(is_dns1123_subdomain("a..b"), [SUBDOMAIN]);
    assert_eq!(is_dns1123_subdomain(&"a".repeat(254)), ["must be no more than 253 characters"]);
    assert!(is_dns1123_label("1-a").is_empty());
    assert_eq!(is_dns1123_label("a.b"), ["must not contain dots"]);
    assert_eq!(is_dns1123_label("a_b"), [LABEL]);
    assert_eq!(is_dns1123_label(&"a".repeat(64)), ["must be no more than 63 characters"]);
    assert!(is_dns1035_label("a-1").is_empty());
    assert_eq!(is_dns1035_label("1a").len(), 1);
    assert!(is_dns1123_subdomain_with_underscore("_dmarc.a_b").is_empty());
    assert!(is_wildcard_dns1123_subdomain("*.example.com").is_empty());
    assert_eq!(is_wildcard_dns1123_subdomain("*").len(), 1);
}

#[test]
fn label_keys_say_which_part_is_wrong() {
    assert!(is_qualified_name("example.com/My_name.1").is_empty());
    assert_eq!(is_qualified_name(""), ["name part must be non-empty", KEY]);
    assert_eq!(is_qualified_name("/a"), ["prefix part must be non-empty"]);
    assert_eq!(is_qualified_name("A/a"), [format!("prefix part {SUBDOMAIN}")]);
    assert_eq!(is_qualified_name(&"a".repeat(64)), ["name part must be no more than 63 bytes"]);
    assert_eq!(
        is_qualified_name("a/b/c"),
        [
            "a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        ]
    );
}

#[test]
fn label_values_may_be_empty() {
    assert!(is_valid_label_value("").is_empty());
    assert!(is_valid_label_value("a_B.1").is_empty());
    assert_eq!(is_valid_label_value(&"a".repeat(64)), ["must be no more than 63 bytes"]);
    assert_eq!(
        is_valid_label_value("-a"),
        [
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
        ]
    );
}

#[test]
fn ports_numbers_and_percents() {
    assert!(is_valid_port_num(65535).is_empty());
    assert_eq!(is_valid_port_num(0), ["must be between 1 and 65535, inclusive"]);
    assert_eq!(is_valid_user_id(-1), ["must be between 0 and 2147483647, inclusive"]);
    assert!(is_valid_port_name("http-8080").is_empty());
    assert_eq!(
        is_valid_port_name("80--"),
        [
            "must contain at least one letter (a-z)",
            "must not contain consecutive hyphens",
            "must not begin or end with a hyphen"
        ]
    );
    assert!(is_valid_percent("25%").is_empty());
    assert_eq!(
        is_valid_percent("%"),
        [
            "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
        ]
    );
    assert!(is_decimal_integer("-12").is_empty());
    for wrong in ["-", "-0", "01", "+1", "1a"] {
        assert_eq!(is_decimal_integer(wrong), [DECIMAL_MESSAGE], "{wrong}");
    }
}

#[test]
fn keys_of_config_maps_and_environments() {
    assert!(is_config_map_key("a.b_C-1").is_empty());
    assert_eq!(is_config_map_key(".."), ["must not be '..'"]);
    assert_eq!(is_config_map_key("..a"), ["must not start with '..'"]);
    assert_eq!(
        is_config_map_key("a b"),
        [
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
        ]
    );
    assert!(is_relaxed_env_var_name("1 a").is_empty());
    assert_eq!(is_relaxed_env_var_name(""), ["environment variable name must be non-empty"]);
    assert_eq!(is_relaxed_env_var_name("a=b").len(), 1);
    assert_eq!(is_env_var_name("1a").len(), 1);
}

#[test]
fn generated_names_may_end_in_a_dash() {
    assert!(name_is_dns_subdomain("web-", true).is_empty());
    assert_eq!(name_is_dns_subdomain("web-", false), [SUBDOMAIN]);
    assert_eq!(name_is_dns_subdomain("-", true), [SUBDOMAIN]);
    assert_eq!(validate_path_segment_name("..", false), ["may not be '..'"]);
    assert_eq!(validate_path_segment_name("a/%", true), ["may not contain '/'", "may not contain '%'"]);
}

#[test]
fn domain_names_are_validated_by_field() {
    let values = json!({"a": "x.y", "b": "", "c": "acme.io", "d": "acme.io/<", "e": "key", "f": "x"});
    let check = Check::new();
    let root = check.root(&values);
    is_fully_qualified_name(root.get("a"));
    is_fully_qualified_name(root.get("b"));
    is_domain_prefixed_path(root.get("c"));
    is_domain_prefixed_path(root.get("d"));
    is_domain_prefixed_key(root.get("e"));
    is_fully_qualified_domain_name(root.get("f"));
    let errors: Vec<String> = check.take().iter().map(ToString::to_string).collect();
    assert_eq!(
        errors,
        [
            r#"a: Invalid value: "x.y": should be a domain with at least three segments separated by dots"#,
            "b: Required value",
            r#"c: Invalid value: "acme.io": must be a domain-prefixed path (such as "acme.io/foo")"#,
            r#"d: Invalid value: "<": Invalid path (regex used for validation is '[A-Za-z0-9/\-._~%!$&'()*+,;=:]+')"#,
            r#"e: Invalid value: "key": must be a domain-prefixed key (such as "acme.io/foo")"#,
            r#"f: Invalid value: "x": should be a domain with at least two segments separated by dots"#,
        ]
    );
}

proptest! {
    #[test]
    fn no_text_makes_a_rule_panic(text in "\\PC{0,40}", prefix: bool) {
        for rule in [name_is_dns_subdomain, name_is_dns_label, name_is_dns1035_label, validate_path_segment_name] {
            rule(&text, prefix);
        }
        is_qualified_name(&text);
        is_config_map_key(&text);
        is_valid_port_name(&text);
        is_decimal_integer(&text);
    }
}
