//! The schema as `schemars` writes it, against values as people write them.

use pretty_assertions::assert_eq;
use serde_json::json;

use super::*;
use crate::diagnostic::{Diagnostic, Severity};
use crate::tree::{Node, Source};

/// In the forms that schemars 1.x really emits, collected from its output.
fn schema() -> Schema {
    Schema::new(json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Root",
        "type": "object",
        "properties": {
            "agent": {"$ref": "#/$defs/Agent"},
            "model": {"$ref": "#/$defs/Model"},
            "optional": {"anyOf": [{"$ref": "#/$defs/Agent"}, {"type": "null"}]},
            "approvals": {"$ref": "#/$defs/Approvals", "description": "siblings of a reference count"},
            "providers": {"type": "object", "additionalProperties": {"$ref": "#/$defs/Model"}},
            "routes": {"type": "array", "items": {"$ref": "#/$defs/Route"}},
            "limit": {"type": ["integer", "null"], "format": "uint32", "minimum": 0, "default": null},
            "_config_version": {"type": ["integer", "null"], "format": "uint32", "minimum": 0, "default": null}
        },
        "$defs": {
            "Agent": {"type": "object", "properties": {
                "max_turns": {"type": "integer", "format": "uint32", "minimum": 1, "maximum": 1000, "default": 90},
                "small": {"type": "integer", "format": "uint8", "minimum": 0, "maximum": 255, "default": 1},
                "wide": {"type": "integer", "format": "uint64", "minimum": 0, "default": 1},
                "ratio": {"type": "number", "format": "double", "minimum": 0.0, "maximum": 1.0, "default": 0.5},
                "verbose": {"type": "boolean", "default": false},
                "personality": {"type": "string", "default": ""},
                "short": {"type": "string", "maxLength": 3, "default": ""},
                "disabled": {"type": "array", "items": {"type": "string"}, "default": []},
                "enforcement": {"anyOf": [
                    {"type": "boolean"},
                    {"$ref": "#/$defs/Auto"},
                    {"type": "array", "items": {"type": "string"}}
                ], "default": "auto"},
                "effort": {"anyOf": [{"$ref": "#/$defs/Mode"}, {"type": "null"}], "default": null},
                "path": {"type": ["string", "null"], "default": null},
                "extra": {"default": null}
            }},
            "Auto": {"type": "string", "enum": ["auto"]},
            "Mode": {"description": "with documented words", "oneOf": [
                {"type": "string", "enum": ["off"]},
                {"description": "Ask.", "type": "string", "const": "manual"},
                {"description": "Think.", "type": "string", "const": "smart"}
            ]},
            "Approvals": {"type": "object", "properties": {
                "mode": {"$ref": "#/$defs/Mode", "default": "smart"},
                "deny": {"type": "array", "items": {"type": "string"}, "default": []}
            }},
            "Model": {"type": "object", "properties": {
                "default": {"type": "string", "default": ""},
                "base_url": {"type": "string", "default": ""},
                "api_key": {"type": "string", "default": "", "maxLength": 8}
            }},
            "Route": {"type": "object", "properties": {
                "name": {"type": "string"}, "port": {"type": "integer", "format": "uint16", "default": 0}
            }, "required": ["name"]}
        }
    }))
}

fn checked_from(value: &Value, source: &Source) -> (Value, Vec<Diagnostic>) {
    let mut node = match value {
        Value::String(yaml) => crate::yaml::parse(yaml, source).unwrap(),
        other => Node::from_value(other, source),
    };
    let mut report = Vec::new();
    schema().check(&mut node, &mut report);
    (node.to_value(), report)
}

fn file() -> Source {
    Source::File(std::path::Path::new("/c.yaml").into(), 0)
}

/// Checks a YAML text.
fn checked(yaml: &str) -> (Value, Vec<String>) {
    let (value, report) = checked_from(&Value::from(yaml), &file());
    (value, report.iter().map(|finding| format!("{} {finding}", finding.severity.as_str())).collect())
}

#[test]
fn the_committed_schema_is_json_and_describes_a_map() {
    let view = Schema::embedded().view();
    assert!(view.takes_map(), "daemon/config/schema.json");
    assert!(Schema::embedded().defaults().as_map().is_some());
}

#[test]
fn defaults_come_from_the_schema_without_nulls_and_optional_sections() {
    assert_eq!(
        schema().defaults().to_value(),
        json!({
            "agent": {
                "max_turns": 90, "small": 1, "wide": 1, "ratio": 0.5, "verbose": false, "personality": "", "short": "",
                "disabled": [], "enforcement": "auto"
            },
            "model": {"default": "", "base_url": "", "api_key": ""},
            "approvals": {"mode": "smart", "deny": []},
        })
    );
}

#[test]
fn the_default_of_a_section_outranks_those_of_its_keys() {
    let schema = Schema::new(json!({"type": "object", "properties": {"a": {
        "$ref": "#/$defs/A", "default": {"x": 2}}},
        "$defs": {"A": {"type": "object", "properties": {
            "x": {"type": "integer", "default": 1}, "y": {"type": "integer", "default": 3}}}}}));
    assert_eq!(schema.defaults().to_value(), json!({"a": {"x": 2, "y": 3}}));
}

#[test]
fn good_values_pass_without_a_word() {
    for (yaml, expected) in [
        (
            "agent: {max_turns: 1000, ratio: 1, verbose: true}",
            json!({"agent": {"max_turns": 1000, "ratio": 1, "verbose": true}}),
        ),
        ("agent: {enforcement: [a]}", json!({"agent": {"enforcement": ["a"]}})),
        ("agent: {enforcement: off}", json!({"agent": {"enforcement": false}})),
        (
            "agent: {enforcement: auto, extra: {any: [1]}}",
            json!({"agent": {"enforcement": "auto", "extra": {"any": [1]}}}),
        ),
        ("agent: {effort: manual, path: ~}", json!({"agent": {"effort": "manual", "path": null}})),
        ("approvals: {mode: off}", json!({"approvals": {"mode": "off"}})),
        ("providers: {x: {default: m}}", json!({"providers": {"x": {"default": "m"}}})),
        ("limit: ~", json!({"limit": null})),
        ("_note: {anything: 1}", json!({"_note": {"anything": 1}})),
        ("optional: {max_turns: 3}", json!({"optional": {"max_turns": 3}})),
    ] {
        assert_eq!(checked(yaml), (expected, vec![]), "{yaml}");
    }
}

#[test]
fn what_is_plainly_meant_is_bent_into_shape() {
    for (yaml, expected) in [
        ("agent: {verbose: on}", json!({"agent": {"verbose": true}})),
        ("agent: {verbose: No}", json!({"agent": {"verbose": false}})),
        ("agent: {max_turns: '12'}", json!({"agent": {"max_turns": 12}})),
        ("agent: {max_turns: 12.0}", json!({"agent": {"max_turns": 12}})),
        ("agent: {personality: 3.10}", json!({"agent": {"personality": "3.10"}})),
        ("model: {api_key: 0123}", json!({"model": {"api_key": "0123"}})),
        ("model: {baseUrl: u, apiKey: k}", json!({"model": {"base_url": "u", "api_key": "k"}})),
        ("approvals: {mode: Smart}", json!({"approvals": {"mode": "smart"}})),
        ("approvals: {mode: false}", json!({"approvals": {"mode": "off"}})),
        ("approvals: {deny: [rm, 5]}", json!({"approvals": {"deny": ["rm", "5"]}})),
    ] {
        assert_eq!(checked(yaml), (expected, vec![]), "{yaml}");
    }
}

#[test]
fn a_section_without_a_value_is_absent() {
    let (value, report) = checked("agent:\nproviders:\noptional:\nmodel:\n  default:\n");
    assert_eq!((value, report), (json!({"model": {}}), vec![]));
}

#[test]
fn a_bad_value_is_dropped_and_told_with_all_that_helps() {
    let (value, report) =
        checked("agent:\n  max_turns: many\n  ratio: 2\n  small: 300\n  verbose: 7\n  personality: ok\n");
    assert_eq!(value, json!({"agent": {"personality": "ok"}}));
    assert_eq!(
        report,
        [
            "warning /c.yaml:2: `agent.max_turns` is \"many\" (text), which is not accepted and ignored (default: 90); accepted: a whole number from 1 to 1000",
            "warning /c.yaml:3: `agent.ratio` is 2, which is not accepted and ignored (default: 0.5); accepted: a number from 0.0 to 1.0",
            "warning /c.yaml:4: `agent.small` is 300, which is not accepted and ignored (default: 1); accepted: a whole number from 0 to 255",
            "warning /c.yaml:5: `agent.verbose` is 7, which is not accepted and ignored (default: false); accepted: true or false",
        ]
    );
}

#[test]
fn a_number_that_its_type_cannot_hold_is_out_of_range() {
    for yaml in ["limit: 4294967296", "limit: -1", "agent: {wide: -1}", "agent: {wide: 18446744073709551616}"]
    {
        let (_, report) = checked(yaml);
        assert_eq!(report.len(), 1, "{yaml}: {report:?}");
    }
    assert_eq!(checked("agent: {wide: 18446744073709551615}").1, Vec::<String>::new());
}

#[test]
fn an_unknown_word_is_an_error_that_lists_the_words() {
    let (value, report) = checked("approvals:\n  mode: sometimes\n  deny: [x]\n");
    assert_eq!(value, json!({"approvals": {"deny": ["x"]}}));
    assert_eq!(
        report,
        [
            "error /c.yaml:2: `approvals.mode` is \"sometimes\" (text), which is not accepted; accepted: one of off, manual, smart"
        ]
    );
    let (_, report) = checked("agent: {enforcement: maybe}");
    assert!(
        report[0].starts_with("error ")
            && report[0].ends_with("accepted: true or false, or only `auto`, or a list, each item text"),
        "{report:?}"
    );
}

#[test]
fn the_same_in_a_project_file_keeps_nobody_from_starting() {
    let source = Source::Project(std::path::Path::new("/p/cli-config.yaml").into(), 0);
    let (_, report) = checked_from(&json!({"approvals": {"mode": "sometimes"}}), &source);
    assert_eq!(report[0].severity, Severity::Warning);
}

#[test]
fn an_unknown_key_is_kept_and_the_nearest_known_one_named() {
    let (value, report) = checked("agent:\n  max_turn: 5\nverbose: true\nmodle: {default: m}\nzzz:\n");
    assert_eq!(value, json!({"agent": {"max_turn": 5}, "verbose": true, "modle": {"default": "m"}}));
    assert_eq!(
        report,
        [
            "warning /c.yaml:2: `agent.max_turn` is no key that is known, and has no effect; did you mean `agent.max_turns`?",
            "warning /c.yaml:3: `verbose` is no key that is known, and has no effect",
            "warning /c.yaml:4: `modle` is no key that is known, and has no effect; did you mean `model`?",
            "warning /c.yaml:5: `zzz` is no key that is known, and has no effect",
        ],
        "`verbose` stands in two sections of this schema, so neither is proposed"
    );
    let (_, report) = checked("deny: [x]");
    assert!(report[0].ends_with("did you mean `approvals.deny`?"), "{report:?}");
}

#[test]
fn one_bad_item_takes_no_other_with_it() {
    let (value, report) = checked("approvals:\n  deny:\n    - rm\n    - {a: b}\n    - dd\n");
    assert_eq!(value, json!({"approvals": {"deny": ["rm", "dd"]}}));
    assert_eq!(
        report,
        [
            "warning /c.yaml:4: `approvals.deny[1]` is a map, which is not accepted and ignored; accepted: text"
        ]
    );
}

#[test]
fn a_map_that_lacks_what_it_needs_is_dropped_whole() {
    let (value, report) = checked("routes:\n  - {name: a, port: 99999}\n  - {port: 5}\n");
    assert_eq!(value, json!({"routes": [{"name": "a"}]}));
    assert!(
        report[0].contains("`routes[0].port`") && report[1].contains("`routes[1]` lacks its key `name`"),
        "{report:?}"
    );
}

#[test]
fn wrong_shapes_are_named() {
    let (value, report) = checked("agent: fast\nproviders: [a]\napprovals: {deny: rm}\n");
    assert_eq!(value, json!({"approvals": {}}));
    assert_eq!(
        report,
        [
            "warning /c.yaml:1: `agent` is \"fast\" (text), which is not accepted and ignored; accepted: a map of `key: value` lines",
            "warning /c.yaml:2: `providers` is a list, which is not accepted and ignored; accepted: a map of `key: value` lines",
            "warning /c.yaml:3: `approvals.deny` is \"rm\" (text), which is not accepted and ignored (default: []); accepted: a list, each item text",
        ]
    );
}

#[test]
fn a_secret_is_in_no_message() {
    let (_, report) = checked("model: {api_key: sk-123456789}");
    assert_eq!(report.len(), 1);
    assert!(report[0].contains("\"***\"") && !report[0].contains("sk-"), "{report:?}");
}

#[test]
fn variables_and_flags_get_their_types_from_the_schema() {
    let value = json!({"agent": {"max_turns": "7", "verbose": "yes", "disabled": "a, b,", "ratio": "0.25", "junk": 1}});
    let (value, report) = checked_from(&value, &Source::Env("X".into()));
    assert_eq!(
        value["agent"],
        json!({"max_turns": 7, "verbose": true, "disabled": ["a", "b"], "ratio": 0.25, "junk": 1})
    );
    assert_eq!(report, []);
    let (_, report) =
        checked_from(&json!({"agent": {"max_turns": "x"}}), &Source::Env("HERMES_MAX_ITERATIONS".into()));
    assert!(
        report[0].to_string().starts_with("environment variable HERMES_MAX_ITERATIONS: `agent.max_turns`"),
        "{}",
        report[0]
    );
}

#[test]
fn a_tagged_union_of_maps_is_understood() {
    let schema = Schema::new(json!({"type": "object", "properties": {"backend": {"oneOf": [
        {"type": "object", "properties": {"kind": {"type": "string", "const": "local"}}, "required": ["kind"]},
        {"type": "object", "properties": {
            "kind": {"type": "string", "const": "ssh"}, "host": {"type": "string"}}, "required": ["kind", "host"]}
    ]}}}));
    for (value, clean) in [
        (json!({"backend": {"kind": "local"}}), true),
        (json!({"backend": {"kind": "ssh", "host": "h"}}), true),
        (json!({"backend": {"kind": "ftp"}}), false),
    ] {
        let mut node = Node::from_value(&value, &Source::Flag);
        let mut report = Vec::new();
        schema.check(&mut node, &mut report);
        assert_eq!(report.is_empty(), clean, "{value}: {report:?}");
    }
}

#[test]
fn a_schema_that_contains_itself_ends() {
    let schema = Schema::new(json!({"$ref": "#/$defs/A", "$defs": {
        "A": {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}, "x": {"type": "integer", "default": 1}}},
        "B": {"$ref": "#/$defs/B"}
    }}));
    assert!(schema.defaults().as_map().is_some());
    let mut report = Vec::new();
    let mut node = Node::from_value(&json!({"a": {"a": {"y": 1}}}), &Source::Flag);
    schema.check(&mut node, &mut report);
    assert_eq!(report[0].key.as_deref(), Some("a.a.y"));
    let circular = Schema::new(json!({"$ref": "#/$defs/B", "$defs": {"B": {"$ref": "#/$defs/B"}}}));
    circular.check(&mut node, &mut report);
}
