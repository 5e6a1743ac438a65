//! What the parser takes, and where it says no.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use pretty_assertions::assert_eq;
use proptest::prelude::*;
use serde_json::json;

use super::*;

fn source() -> Source {
    Source::File(Arc::from(Path::new("/c.yaml")), 0)
}

fn value(text: &str) -> Value {
    parse(text, &source()).unwrap_or_else(|fault| panic!("{text:?}: {fault:?}")).to_value()
}

fn refused(text: &str) -> (u32, String) {
    match parse(text, &source()) {
        Ok(node) => panic!("{text:?} was taken as {}", node.to_value()),
        Err(fault) => (fault.line, fault.reason),
    }
}

#[test]
fn scalars_follow_the_core_schema_of_yaml_1_2() {
    let text = "a: yes\nb: off\nc: True\nd: ~\ne: 0x1F\nf: 0o17\ng: -3\nh: 1.50\ni: 1e3\nj: .5\nk: '5'\nl: .inf\n\
                m: 1_000\nn: 12:30\no: 18446744073709551615\np: 1.2.3\nq: -\nr: 2026-01-01\ns: 007\n";
    let expected = json!({
        "a": "yes", "b": "off", "c": true, "d": null, "e": 31, "f": 15, "g": -3, "h": 1.5, "i": 1000.0, "j": 0.5,
        "k": "5", "l": ".inf", "m": "1_000", "n": "12:30", "o": 18_446_744_073_709_551_615_u64, "p": "1.2.3",
        "q": null, "r": "2026-01-01", "s": 7
    });
    // A lone `-` opens a list with one empty item.
    let mut found = value(&text.replace("q: -\n", ""));
    found["q"] = Value::Null;
    let sorted = |value: &Value| -> std::collections::BTreeMap<String, Value> {
        serde_json::from_value(value.clone()).unwrap()
    };
    assert_eq!(sorted(&found), sorted(&expected));
}

#[test]
fn an_empty_file_is_an_empty_map() {
    for text in ["", "\n\n", "# only a comment\n", "---\n", "~"] {
        assert_eq!(value(text), json!({}), "{text:?}");
    }
}

#[test]
fn nodes_carry_the_line_of_their_key() {
    let node = parse("a:\n  b: 1\n\n  c: |\n    long\n    text\nd:\n  - x\n  - y\n", &source()).unwrap();
    let line = |path: &[&str]| node.at(path).unwrap().source.origin().line().unwrap();
    assert_eq!([line(&["a"]), line(&["a", "b"]), line(&["a", "c"]), line(&["d"])], [1, 2, 4, 7]);
    let items = node.at(&["d"]).unwrap().as_list().unwrap();
    assert_eq!(items[1].source.origin().line(), Some(9));
}

#[test]
fn an_unquoted_scalar_keeps_its_exact_text() {
    let node = parse("a: 3.10\nb: '3.10'\n", &source()).unwrap();
    assert_eq!(node.at(&["a"]).unwrap().written.as_deref(), Some("3.10"));
    assert_eq!(node.at(&["b"]).unwrap().written, None);
}

#[test]
fn a_duplicate_key_names_both_lines() {
    let (line, reason) = refused("a: 1\nb:\n  x: 1\n  y: 2\n  x: 3\n");
    assert_eq!((line, reason.as_str()), (5, "the key `x` is set twice (first on line 3)"));
    assert_eq!(refused("{a: 1, a: 2}").0, 1);
    assert_eq!(refused("1: a\n\"1\": b\n").0, 2, "keys are text");
}

#[test]
fn tabs_as_indentation_are_named_as_such() {
    for (text, line) in
        [("a:\n\tb: c\n", 2), ("a:\n  b: c\n\td: e\n", 3), ("\ta: b\n", 1), ("a:\n  - x\n\t- y\n", 3)]
    {
        assert_eq!(refused(text), (line, TAB_REASON.to_owned()), "{text:?}");
    }
    assert_eq!(value("a: |\n  x\n  \ty\n"), json!({"a": "x\n\ty\n"}), "a tab inside a text is fine");
}

#[test]
fn broken_yaml_names_its_line() {
    for (text, line) in [
        ("a: 1\nb: c: d\n", 2),
        ("a: 'x\n", 1),
        ("a: @x\n", 1),
        ("{a: 1", 2),
        ("- 1\n", 1),
        ("just text\n", 1),
        ("a: 1\n---\nb: 2\n", 2),
        ("? [a]\n: b\n", 1),
        (": a\n", 1),
        ("a: !env X\n", 1),
        ("a: !!int x\n", 1),
        ("a: *nowhere\n", 1),
        ("a: &x [*x]\n", 1),
        ("a: 1\n<<: 5\n", 3),
    ] {
        let (found, reason) = refused(text);
        assert_eq!(found, line, "{text:?}: {reason}");
        assert!(!reason.is_empty());
    }
}

#[test]
fn aliases_and_merges_are_filled_in() {
    let text = "base: &b {x: 1, y: 2}\nplain: *b\nmerged:\n  y: 3\n  <<: *b\nmany:\n  <<: [{x: 7}, *b]\nquoted: {'<<': 1}\n";
    let filled = value(text);
    assert_eq!(filled["plain"], json!({"x": 1, "y": 2}));
    assert_eq!(filled["merged"], json!({"y": 3, "x": 1}));
    assert_eq!(filled["many"], json!({"x": 7, "y": 2}));
    assert_eq!(filled["quoted"], json!({"<<": 1}));
}

#[test]
fn an_alias_bomb_is_refused_before_it_grows() {
    let mut text = "a: &a [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for (name, of) in ["b", "c", "d", "e", "f", "g"].iter().zip(["a", "b", "c", "d", "e", "f"]) {
        writeln!(text, "{name}: &{name} [{}]", vec![format!("*{of}"); 10].join(", ")).unwrap();
    }
    let (line, reason) = refused(&text);
    assert_eq!(line, 5, "{reason}");
    assert!(reason.contains("50000 values"), "{reason}");
}

#[test]
fn bottomless_nesting_is_refused() {
    assert!(parse(&format!("a: {}", "[".repeat(100_000)), &source()).is_err());
    let block: Vec<String> = (0..200).map(|depth| format!("{}a:\n", " ".repeat(depth))).collect();
    let block = block.concat();
    assert!(refused(&block).1.contains("levels of nesting"));
    let mut grown = "a0: &a0 [x]\n".to_owned();
    for depth in 1..100 {
        writeln!(grown, "a{depth}: &a{depth} [*a{}]", depth - 1).unwrap();
    }
    assert!(refused(&grown).1.contains("through an alias"));
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(text in "[a-z:\\-\\[\\]{}&*!#'\"|>%@`,? \t\n0-9]{0,80}") {
        let _ = parse(&text, &source());
    }

    #[test]
    fn numbers_read_back_as_they_were(number in any::<i64>(), float in any::<f64>()) {
        prop_assert_eq!(super::number(&number.to_string()), Some(Number::from(number)));
        prop_assert_eq!(super::number(&format!("{float:e}")), Number::from_f64(float));
    }
}
