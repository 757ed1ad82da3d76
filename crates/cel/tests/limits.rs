//! How deep and how long expressions may be, where upstream has the same limits; and that nothing needs more stack or time
//! than there is.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use k1s_cel::{Env, Work};

/// What is wrong with an expression.
fn mistake(expression: &str) -> Option<String> {
    let env = Env::kubernetes();
    match env.compile(expression) {
        Ok(ast) => {
            let program = ast.program().expect("a program");
            let nothing: [k1s_cel::Value<'_>; 0] = [];
            program.evaluate(&nothing, 1_000_000);
            None
        }
        Err(error) => error.to_string().lines().next().map(str::to_owned),
    }
}

const RULE: &str = "ERROR: <input>:-1:0: expression recursion limit exceeded: 250";
const TREE: &str = "ERROR: <input>:-1:0: max recursion depth exceeded";

#[test]
fn limits_of_nesting_are_upstreams() {
    type Make = fn(usize) -> String;
    let cases: [(Make, usize, &str); 8] = [
        (|n| vec!["1"; n].join("+"), 251, TREE),
        (|n| "(".repeat(n) + "1" + &")".repeat(n), 249, RULE),
        (|n| "[".repeat(n) + "1" + &"]".repeat(n), 249, RULE),
        (|n| "{1: ".repeat(n) + "1" + &"}".repeat(n), 249, RULE),
        (|n| "dyn(".repeat(n) + "1" + &")".repeat(n), 249, RULE),
        (|n| "1 + (".repeat(n) + "1" + &")".repeat(n), 124, RULE),
        (|n| "{}".to_owned() + &".a".repeat(n), 250, TREE),
        (|n| "[]".to_owned() + &".map(x, x)".repeat(n), 250, TREE),
    ];
    for (make, most, message) in cases {
        let fits = make(most);
        assert_eq!(mistake(&fits), None, "{}", &fits[..40]);
        let too_deep = make(most + 1);
        assert_eq!(mistake(&too_deep).as_deref(), Some(message), "{}", &too_deep[..40]);
    }
}

#[test]
fn deep_macros_fit_the_stack() {
    assert_eq!(mistake(&("[1].map(x, ".repeat(124) + "1" + &")".repeat(124))), None);
    assert_eq!(mistake(&("[1].all(x, ".repeat(248) + "true" + &")".repeat(248))), None);
    assert_eq!(mistake(&vec!["true"; 10_000].join(" && ")), None);
    assert_eq!(mistake(&("!".repeat(1000) + "true")), None);
    assert_eq!(mistake(&"(".repeat(50_000)).as_deref(), Some(RULE));
    assert_eq!(mistake(&"[".repeat(50_000)).as_deref(), Some(RULE));
    assert_eq!(mistake(&"a.".repeat(40_000)).as_deref(), Some(TREE));
}

#[test]
fn the_longest_expression_is_upstreams() {
    let message = "ERROR: <input>:-1:0: expression code point size exceeds limit: size: 100001, limit 100000";
    assert_eq!(mistake(&"x".repeat(100_001)).as_deref(), Some(message));
}

#[test]
fn macros_that_double_are_stopped() {
    let copied = "optional.of(1)".to_owned() + &".optMap(x, x)".repeat(200);
    assert!(mistake(&copied).is_some_and(|error| error.contains("expression is too large")));
    let types = "[1]".to_owned() + &".map(x, {x: x})".repeat(200);
    assert!(mistake(&types).is_some_and(|error| error.contains("has more than 1000 parts")));
}

/// The error of an expression that is stopped.
fn stopped(expression: &str) -> String {
    let program = Env::kubernetes().compile(expression).expect(expression).program().expect("a program");
    let nothing: [k1s_cel::Value<'_>; 0] = [];
    let evaluation = program.evaluate(&nothing, 10_000_000);
    evaluation.result.expect_err(expression).to_string()
}

#[test]
fn expressions_that_explode_are_stopped() {
    const LIMIT: &str = "operation cancelled: actual cost limit exceeded";
    let list = "[1,2,3,4,5,6,7,8,9,10]";
    let nested = (0..12).fold("1".to_owned(), |inner, at| format!("{list}.map(x{at}, {inner})"));
    assert_eq!(stopped(&nested), LIMIT);
    let tested = (0..12).fold("1 > 0".to_owned(), |inner, at| format!("{list}.all(x{at}, {inner})"));
    assert_eq!(stopped(&tested), LIMIT);
    // Values that share their parts, and lists and strings that double, cost little by upstream's count.
    let doubled = |start: &str, step: &str, times: usize, end: &str| {
        format!("[{start}]{}.all(x, {end})", format!(".map(x, {step})").repeat(times))
    };
    assert_eq!(stopped(&doubled("[1]", "x + x", 60, "x == x")), LIMIT);
    assert_eq!(stopped(&doubled("'ab'", "x + x", 60, "x == x")), LIMIT);
    assert_eq!(stopped(&doubled("dyn([1])", "dyn([x, x])", 60, "x == x")), LIMIT);
    assert_eq!(stopped(&doubled("dyn([1])", "dyn([x, x])", 60, "x in [x]")), LIMIT);
    assert_eq!(stopped(&doubled("dyn([1])", "dyn([x, x])", 60, "x.indexOf(1) > 0")), LIMIT);
    // Functions that compare all items with each other, or copy what is shared.
    let parts = |times| format!("[dyn([1])]{}[0]", ".map(x, dyn([x, x]))".repeat(times));
    let many = |from: usize| format!("lists.range(900).map(i, [dyn({}), dyn(i + {from})])", parts(19));
    for hidden in [
        format!("{}.distinct().size() > 0", many(0)),
        format!("sets.intersects({}, {})", many(0), many(1000)),
        format!("sets.contains({}, {})", many(0), many(1000)),
        format!("{}.lastIndexOf({}[0]) == 0", many(0), many(0)),
        format!("{}.includes({}[0])", many(1), many(0)),
        format!("{}.flatten(60).size() > 0", parts(60)),
        // Functions that go through values and texts, which costs little or nothing by upstream's count.
        format!("[{}].all(v, lists.range(900).all(i, v.includes(i) || true))", parts(18).replace("[1]", "''")),
        "lists.range(900).all(i, 'a'.replace('', 'aaaaaaaaaa'.replace('a', 'aaaaaaaaaa').replace('a', 'aaaaaaaaaa').replace('a', 'aaaaaaaaaa').replace('a', 'aaaaaaaaaa')).size() > 0)".to_owned(),
        format!("[{}].all(v, lists.range(900).all(i, '%s'.format([v]).size() > 0))", parts(16)),
        "['a'.replace('a', 'aaaaaaaaaa').replace('a', 'aaaaaaaaaa').replace('a', 'aaaaaaaaaa').replace('a', 'aaaaaaaaaa').replace('a', 'aaaaaaaaaa').replace('a', 'aaaaaaaaaa')].all(t, lists.range(50000).all(i, t.charAt(999) == 'a'))".to_owned(),
        format!(
            "['a'{}].map(t, lists.range(1000).map(i, t).join())[0].size() > 0",
            ".replace('a', 'aaaaaaaaaa')".repeat(4)
        ),
    ] {
        assert_eq!(stopped(&hidden), LIMIT, "{hidden}");
    }
    let patterns = "lists.range(100000).map(i, 'a'.matches('(a{1,100}){1,9}' + string(i)))";
    assert_eq!(stopped(patterns), LIMIT);
}

#[test]
fn evaluations_share_what_they_may_work() {
    let program = Env::kubernetes().compile("[1, 2, 3].all(x, x > 0)").unwrap().program().unwrap();
    let nothing: [k1s_cel::Value<'_>; 0] = [];
    let work = Work::new(1000);
    let mut done = 0;
    while program.evaluate_within(&nothing, 1000, &work).result.is_ok() {
        done += 1;
        assert!(!work.is_exhausted());
    }
    assert!((20..60).contains(&done), "{done} evaluations");
    assert!(work.is_exhausted() && work.left() == 0);
    // What costs nothing by upstream's count is not free.
    let constant = Env::kubernetes().compile("true").unwrap().program().unwrap();
    let work = Work::new(10);
    let ran = (0..20).filter(|_| constant.evaluate_within(&nothing, 1000, &work).result.is_ok()).count();
    assert_eq!(ran, 10);
    // An evaluation that exceeds its own limit leaves the rest to others.
    let work = Work::new(1000);
    assert!(program.evaluate_within(&nothing, 5, &work).result.is_err());
    assert!(!work.is_exhausted() && work.left() > 900);
}
