//! Any text is refused or compiled, and any program ends: nothing panics.

use k1s_cel::{Env, Value, cost::NoSizes};
use proptest::prelude::*;

fn play(expression: &str) {
    let env = Env::kubernetes().extend().variable("self", k1s_cel::Type::Dyn).build();
    let ast = match env.compile(expression) {
        Ok(ast) => ast,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    let cost = ast.cost(&NoSizes);
    assert!(cost.min <= cost.max, "{expression}: {cost:?}");
    if let Ok(program) = ast.program() {
        let json = serde_json::json!({"a": [1, "x", null, {"b": 2.5}], "s": "text", "n": 3});
        let limit = 10_000;
        let value = [Value::from_untyped(&json)];
        let evaluation = program.evaluate(&value, limit);
        // What does not fail has not cost too much.
        assert!(evaluation.result.is_err() || evaluation.cost <= limit, "{expression}");
    }
}

/// Pieces of expressions, so that many texts are almost expressions.
const PIECES: &[&str] = &[
    "self",
    ".a",
    ".s",
    ".?n",
    "[0]",
    "[?1]",
    "['b']",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ",",
    ":",
    " ? ",
    " : ",
    " + ",
    " - ",
    " * ",
    " / ",
    " % ",
    " == ",
    " != ",
    " < ",
    " >= ",
    " in ",
    " && ",
    " || ",
    "!",
    "-",
    "1",
    "2u",
    "3.5",
    "0",
    "'x'",
    "b'y'",
    "true",
    "null",
    "x",
    ".all(x, ",
    ".exists(x, ",
    ".map(x, ",
    ".filter(x, ",
    ".transformMap(k, x, ",
    "has(",
    "size(",
    "string(",
    "int(",
    "dyn(",
    "type(",
    "timestamp(",
    "duration(",
    ".size()",
    ".matches('x+')",
    ".contains('x')",
    ".optMap(x, ",
    ".orValue(",
    "optional.of(",
    "optional.none()",
    "quantity('1')",
    ".sort()",
    ".split('')",
    ".format([",
    ".sum()",
    ".sortBy(x, ",
    "\\",
    "\"",
];

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_refused_or_runs(text in "\\PC{0,40}") {
        play(&text);
    }

    #[test]
    fn texts_of_pieces_are_refused_or_run(pieces in prop::collection::vec(prop::sample::select(PIECES), 0..14)) {
        play(&pieces.concat());
    }

    #[test]
    fn texts_that_close_their_parentheses_are_refused_or_run(
        pieces in prop::collection::vec(prop::sample::select(PIECES), 0..14),
    ) {
        let open = pieces.concat();
        let mut ends = String::new();
        for c in open.chars() {
            match c {
                '(' => ends.insert(0, ')'),
                '[' => ends.insert(0, ']'),
                '{' => ends.insert(0, '}'),
                ')' | ']' | '}' if ends.starts_with(c) => {
                    ends.remove(0);
                }
                _ => {}
            }
        }
        play(&(open + &ends));
    }
}
