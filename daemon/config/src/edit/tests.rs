//! What is written reads back, and everything else stays byte for byte.

use pretty_assertions::assert_eq;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn schema() -> Schema {
    Schema::new(json!({"type": "object", "properties": {
        "approvals": {"type": "object", "properties": {
            "mode": {"enum": ["manual", "smart", "off"]},
            "timeout": {"type": "integer", "minimum": 1},
            "deny": {"type": "array", "items": {"type": "string"}},
        }},
        "agent": {"type": "object", "properties": {"max_turns": {"type": "integer"}}},
        "free": {"type": "object"},
        "command_allowlist": {"type": "array", "items": {"type": "string"}},
    }}))
}

fn edit(text: &str, key: &str, value: &Value) -> Result<String, EditError> {
    edit_with(&schema(), text, key, Some(value))
}

fn set(text: &str, key: &str, value: &Value) -> String {
    edit(text, key, value).unwrap()
}

fn out(text: &str, key: &str) -> String {
    edit_with(&schema(), text, key, None).unwrap()
}

const FILE: &str = "\
# my settings
agent:   # limits
  max_turns: 5   # few

approvals:
  # who is asked
  mode: 'manual'
  deny:
    - git push *   # never
    # nor this
    - \"rm *\"
free: {a: 1}  # flow
";

#[test]
fn a_value_changes_and_nothing_else() {
    assert_eq!(set(FILE, "agent.max_turns", &json!(7)), FILE.replace("max_turns: 5 ", "max_turns: 7 "));
    assert_eq!(set(FILE, "approvals.mode", &json!("off")), FILE.replace("'manual'", "\"off\""));
    assert_eq!(set(FILE, "free.a", &json!([1, "x, y"])), FILE.replace("a: 1", "a: [1, \"x, y\"]"));
    assert_eq!(set(FILE, "approvals.deny.1", &json!("dd *")), FILE.replace("\"rm *\"", "dd *"));
    assert_eq!(set(FILE, "approvals.deny[0]", &json!("git push")), FILE.replace("push *", "push"));
    assert_eq!(set(FILE, "agent.max_turns", &json!(5)), FILE);
}

#[test]
fn one_text_is_no_list_and_a_word_for_a_number_is_written_as_one() {
    assert!(edit(FILE, "approvals.deny", &json!("git push *")).is_err());
    assert!(edit(FILE, "command_allowlist", &json!("a, b")).is_err());
    assert_eq!(set(FILE, "agent.max_turns", &json!("7")), FILE.replace("max_turns: 5 ", "max_turns: 7 "));
}

#[test]
fn a_new_key_comes_last_in_its_section() {
    assert_eq!(
        set(FILE, "approvals.timeout", &json!(9)),
        FILE.replace("- \"rm *\"\n", "- \"rm *\"\n  timeout: 9\n")
    );
    assert_eq!(set(FILE, "free.b.c", &json!(true)), FILE.replace("{a: 1}", "{a: 1, b: {c: true}}"));
    assert_eq!(set(FILE, "command_allowlist", &json!(["ls"])), format!("{FILE}command_allowlist: [ls]\n"));
    assert_eq!(set("", "agent.max_turns", &json!(1)), "agent:\n  max_turns: 1\n");
    assert_eq!(set("# empty\n", "agent.max_turns", &json!(1)), "# empty\nagent:\n  max_turns: 1\n");
    assert_eq!(set("agent:\n", "agent.max_turns", &json!(1)), "agent:\n  max_turns: 1\n");
    assert_eq!(set("agent: ~ # x\n", "agent.max_turns", &json!(1)), "agent: # x\n  max_turns: 1\n");
    assert_eq!(set("free: {}", "free.a", &json!("b")), "free: {a: b}");
    assert_eq!(set("free:\n  a: 1", "free.b", &json!(2)), "free:\n  a: 1\n  b: 2");
}

#[test]
fn lists_keep_the_lines_that_stay() {
    let deny = |items: Value| set(FILE, "approvals.deny", &items);
    assert_eq!(
        deny(json!(["git push *", "rm *", "dd *"])),
        FILE.replace("\"rm *\"\n", "\"rm *\"\n    - dd *\n")
    );
    assert_eq!(deny(json!(["rm *"])), FILE.replace("    - git push *   # never\n", ""));
    assert_eq!(deny(json!(["git push *"])), FILE.replace("    - \"rm *\"\n", ""));
    let none = deny(json!([]));
    assert!(none.contains("deny: []\nfree"), "{none}");
}

#[test]
fn a_key_that_is_taken_out_leaves_its_neighbours() {
    assert_eq!(out(FILE, "approvals.mode"), FILE.replace("  mode: 'manual'\n", ""));
    assert_eq!(out(FILE, "approvals.timeout"), FILE);
    assert_eq!(out(FILE, "nothing.at.all"), FILE);
    assert_eq!(out("free: {a: 1, b: 2, c: 3}\n", "free.b"), "free: {a: 1, c: 3}\n");
    assert_eq!(out("free: {a: 1, b: 2}\n", "free.b"), "free: {a: 1}\n");
    assert_eq!(out("a: 1\nagent:\n  max_turns: 2\nb: 1\n", "agent.max_turns"), "a: 1\nb: 1\n");
    assert_eq!(out("agent:\n  max_turns: 2\n", "agent"), "");
}

#[test]
fn line_ends_marks_and_unicode_stay() {
    let text = "\u{feff}# é\r\nagent:\r\n  max_turns: 1 # ü\r\n";
    assert_eq!(set(text, "agent.max_turns", &json!(2)), text.replace(": 1", ": 2"));
    assert_eq!(set(text, "free.é", &json!("ß: x")), format!("{text}free:\r\n  é: \"ß: x\"\r\n"));
}

#[test]
fn block_texts_and_anchors_are_handled_or_refused() {
    assert_eq!(
        set("free:\n  a: |\n    x\n    y\n  b: 1\n", "free.a", &json!("z")),
        "free:\n  a: z\n  b: 1\n"
    );
    assert_eq!(set("free:\n  a: &x 1\n  b: *x\n", "free.b", &json!(2)), "free:\n  a: &x 1\n  b: 2\n");
    // The other mention would change too.
    let shared = edit("free:\n  a: &x 1\n  b: *x\n", "free.a", &json!(2));
    assert_eq!(shared, Err(EditError::Unsafe { key: "free.a".into() }));
}

#[test]
fn what_the_schema_does_not_know_is_refused_with_what_it_knows() {
    let refused = |key: &str, value: Value| match edit(FILE, key, &value) {
        Err(EditError::NotAccepted(text)) => text,
        other => panic!("{other:?}"),
    };
    assert_eq!(
        refused("approvals.modes", json!("off")),
        "`approvals.modes` is no key that is known; did you mean `approvals.mode`?"
    );
    assert_eq!(
        refused("approvals.who", json!("me")),
        "`approvals.who` is no key that is known; known: mode, timeout, deny"
    );
    assert_eq!(
        refused("approvals.mode", json!("never")),
        "`approvals.mode` does not take \"never\"; accepted: one of manual, smart, off"
    );
    assert!(refused("approvals.timeout", json!(0)).contains("at least 1"));
    assert!(refused("approvals.deny", json!([1, {}])).contains("approvals.deny"));
    assert!(refused("agnet.max_turns", json!(1)).contains("agent"));
    assert!(matches!(edit(FILE, "agent.max_turns.x", &json!(1)), Err(EditError::NoPlace { .. })));
    assert!(matches!(edit(FILE, "approvals.deny.7", &json!("x")), Err(EditError::NoPlace { .. })));
    assert!(matches!(edit(FILE, "approvals..mode", &json!("off")), Err(EditError::NoPlace { .. })));
    assert!(matches!(edit("a: [1", "agent.max_turns", &json!(1)), Err(EditError::Broken { .. })));
}

fn any_leaf() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[ -~é\n]{0,10}".prop_map(Value::from),
    ]
}

fn any_map() -> impl Strategy<Value = Value> {
    let inner = any_leaf().prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec(("[a-d]{1,2}", inner), 0..4)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    });
    prop::collection::vec(("[a-d]{1,2}", inner), 0..4)
        .prop_map(|entries| Value::Object(entries.into_iter().collect()))
}

proptest! {
    #[test]
    fn an_edit_holds_exactly_what_was_asked_or_is_refused(
        before in any_map(),
        path in prop::collection::vec("[a-d]{1,2}", 1..4),
        value in prop::option::of(any_map().prop_union(any_map())),
    ) {
        let open = Schema::new(json!({}));
        let text = crate::render::to_yaml(&before);
        let key = path.join(".");
        match edit_with(&open, &text, &key, value.as_ref()) {
            Ok(edited) => {
                let read = parse(&edited).unwrap();
                let found = path.iter().try_fold(&read, |node, name| node.as_map()?.get(name));
                prop_assert_eq!(found.map(Node::to_value), value);
            }
            // The document `{}` as a whole, a path through a value, keys on the line of a dash.
            Err(EditError::NoPlace { .. } | EditError::Unsafe { .. }) => {}
            Err(other) => prop_assert!(false, "{}", other),
        }
    }
}
