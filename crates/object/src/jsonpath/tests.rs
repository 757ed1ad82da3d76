//! Results of paths, and errors.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn document() -> Value {
    json!({
        "metadata": {"name": "web", "labels": {"example.com/tier": "a&b"}},
        "spec": {"n": 5, "f": 2.5, "on": true, "nothing": null, "list": [1, 2, 3, 4],
            "ports": [{"name": "http", "port": 80}, {"name": "dns", "port": 53, "protocol": "UDP"}]},
    })
}

fn run(template: &str) -> Result<String, String> {
    JsonPath::parse(template)?.execute(&document())
}

#[test]
fn expressions_find_values() {
    let cases = [
        ("{.metadata.name}", "web"),
        ("name: {.metadata.name}!", "name: web!"),
        ("{$.spec.n}", "5"),
        ("{.spec.f} {.spec.on}", "2.5 true"),
        ("{.metadata.labels.example\\.com/tier}", "a&b"),
        ("{.metadata.labels['example\\.com/tier']}", "a&b"),
        ("{.spec.ports[*].name}", "http dns"),
        ("{.spec.ports[0].port}", "80"),
        ("{.spec.ports[-1].port}", "53"),
        ("{.spec.list[1:3]}", "2 3"),
        ("{.spec.list[::2]}", "1 3"),
        ("{.spec.list[0,2]}", "1 3"),
        ("{.spec.list[2:2]}", ""),
        ("{.spec.ports[?(@.name==\"dns\")].port}", "53"),
        ("{.spec.ports[?(@.port>60)].name}", "http"),
        ("{.spec.ports[?(@.protocol)].name}", "dns"),
        ("{.spec.ports[?(@.name!='dns')].name}", "http"),
        ("{..port}", "80 53"),
        ("{.metadata.labels.*}", "a&b"),
        ("{range .spec.ports[*]}{.name}={.port};{end}done", "http=80;dns=53;done"),
        ("{.metadata.labels}", "{\"example.com/tier\":\"a\\u0026b\"}"),
        ("{.spec.nothing}", "null"),
        ("{'a\\tb'}", "a\tb"),
        ("{true}{1}{1.5}", "true11.5"),
    ];
    for (template, expected) in cases {
        assert_eq!(run(template), Ok(expected.into()), "{template}");
    }
}

#[test]
fn wrong_expressions_have_gos_words() {
    let cases = [
        ("{.a", "unclosed action"),
        ("{.a\n}", "unclosed action"),
        ("{.metadata.nope}", "nope is not found"),
        ("{.spec.list[9]}", "array index out of bounds: index 9, length 4"),
        ("{.spec.list[1", "unterminated array"),
        ("{.spec.list[a]}", "invalid array index a"),
        ("{.spec.list[-]}", "array index - is not a number"),
        ("{.spec.list[3:1]}", "starting index 3 is greater than ending index 1"),
        ("{.spec.list[::0]}", "step must be > 0"),
        ("{.spec.n[0]}", "int64 is not array or slice"),
        ("{.spec[?(@.a)]}", ""),
        ("{.spec.ports[?(@.name==\"x)]}", "unterminated filter"),
        ("{.spec.ports[?(@.name)}", "unclosed array expect ]"),
        ("{.spec.ports[?(@.name<1)]}", "incompatible types for comparison"),
        ("{.spec.ports[?(@.port=<1)]}", "unrecognized filter operator =<"),
        ("{'a}", "unterminated quoted string"),
        ("{'\\q'}", "unquote string '\\q' error invalid syntax"),
        ("{!}", "unrecognized character in action: U+0021 '!'"),
        ("{....a}", "invalid multiple recursive descent"),
        ("{+}", "cannot parse number +"),
        ("{nope}", "unrecognized identifier nope"),
        ("{end}", "not in range, nothing to end"),
    ];
    for (template, expected) in cases {
        let error = run(template).expect_err(template);
        if expected.is_empty() {
            assert!(error.ends_with(" is not array or slice and cannot be filtered"), "{error}");
        } else {
            assert_eq!(error, expected, "{template}");
        }
    }
}

#[test]
fn missing_keys_can_be_allowed() {
    let path = JsonPath::parse("{.metadata.nope.deeper}").expect("valid").allow_missing_keys();
    assert_eq!(path.find(&document()), Ok(vec![vec![]]));
}

#[test]
fn floats_are_printed_as_go_prints_them() {
    for (value, text) in
        [(2.5, "2.5"), (1e6, "1e+06"), (123_456.0, "123456"), (1e-5, "1e-05"), (1e21, "1e+21")]
    {
        assert_eq!(print(&json!(value)), text);
    }
    assert_eq!(go_json(&json!({"b": 1.0, "a": [1e21, 1e-7, "<"]})), r#"{"a":[1e+21,1e-7,"\u003c"],"b":1}"#);
}

#[test]
fn excessive_expressions_are_refused() {
    let mut deep = json!(1);
    for _ in 0..300 {
        deep = json!({"a": deep});
    }
    let path = JsonPath::parse("{..a..a..a..a..a..a}").expect("valid");
    assert_eq!(path.find(&deep), Err("too many results".into()));
    let ranges = "{range .}".repeat(100);
    assert!(JsonPath::parse(&ranges).is_ok_and(|path| path.find(&deep).is_err()));
    assert!(JsonPath::parse(&format!("{{{}", "[?(".repeat(10_000))).is_err());
}

proptest! {
    #[test]
    fn no_template_makes_it_panic(template in "\\{?[.\\[\\]?@$()=<>!*:,'\"\\\\ a-c0-9{}rnge-]{0,30}\\}?|\\PC{0,12}") {
        if let Ok(path) = JsonPath::parse(&template) {
            let _ = path.execute(&document());
        }
    }
}
