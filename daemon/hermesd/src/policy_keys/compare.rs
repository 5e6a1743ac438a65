//! What of a file's value may be in force, given what was accepted.

use hermes_config::Settings;
use serde_json::{Map, Value};

use super::table::Wider;

/// The accepted form of a file's value: itself, or the hashes of its entries.
pub(super) fn accepted_form(wider: Wider, value: Option<&Value>) -> Option<Value> {
    match (wider, value) {
        (Wider::Entries, Some(Value::Object(entries))) => Some(Value::Object(
            entries.iter().map(|(name, entry)| (name.clone(), Value::from(hash(entry)))).collect(),
        )),
        (_, value) => value.cloned(),
    }
}

/// The part of the file's value that was accepted, or is narrower than that. Equal to `file` when nothing waits.
pub(super) fn in_force(wider: Wider, accepted: Option<&Value>, file: Option<&Value>) -> Option<Value> {
    let kept = || accepted.cloned();
    let taken = || file.cloned();
    match wider {
        Wider::Neither => taken(),
        Wider::Later(words) => {
            // An absent or unknown word is the narrowest: the settings' own defaults are no wider.
            let rank = |value: Option<&Value>| {
                value.and_then(Value::as_str).and_then(|word| words.iter().position(|known| *known == word))
            };
            if rank(file).unwrap_or(0) <= rank(accepted).unwrap_or(0) { taken() } else { kept() }
        }
        Wider::WhenTrue => {
            let is = |value: Option<&Value>| value.and_then(Value::as_bool).unwrap_or(false);
            if is(file) && !is(accepted) { kept() } else { taken() }
        }
        Wider::WhenFalse => {
            let is = |value: Option<&Value>| value.and_then(Value::as_bool).unwrap_or(true);
            if !is(file) && is(accepted) { kept() } else { taken() }
        }
        Wider::More => {
            let known = items(accepted);
            let (allowed, new): (Vec<&Value>, Vec<&Value>) =
                items(file).into_iter().partition(|item| known.contains(item));
            if new.is_empty() { taken() } else { Some(allowed.into_iter().cloned().collect()) }
        }
        Wider::Fewer => {
            let stated = items(file);
            let missing: Vec<&Value> =
                items(accepted).into_iter().filter(|item| !stated.contains(item)).collect();
            if missing.is_empty() {
                return taken();
            }
            Some(stated.into_iter().chain(missing).cloned().collect())
        }
        Wider::Any => {
            if file == accepted {
                taken()
            } else {
                kept()
            }
        }
        Wider::Entries => {
            let Some(Value::Object(entries)) = file else { return taken() };
            let known = |name: &str, entry: &Value| {
                accepted.and_then(|known| known.get(name)).and_then(Value::as_str)
                    == Some(hash(entry).as_str())
            };
            let kept: Map<String, Value> = entries
                .iter()
                .filter(|(name, entry)| known(name, entry))
                .map(|(name, entry)| (name.clone(), entry.clone()))
                .collect();
            Some(Value::Object(kept))
        }
    }
}

/// The value as it may be shown to whoever decides about it.
pub(super) fn shown(key: &str, wider: Wider, value: Option<&Value>) -> Option<Value> {
    let mut value = hermes_config::masked_value(key, value?);
    if let (Wider::Entries, Value::Object(entries)) = (wider, &mut value) {
        for entry in entries.values_mut() {
            for part in ["env", "headers"] {
                if let Some(Value::Object(values)) = entry.get_mut(part) {
                    values.values_mut().for_each(|value| *value = Value::from("***"));
                }
            }
        }
    }
    Some(value)
}

/// The accepted values of a daemon that has lost them: the built-in defaults.
pub(super) fn default_form(key: &str, wider: Wider) -> Option<Value> {
    accepted_form(wider, super::table::value(&Settings::defaults(), key))
}

fn items(value: Option<&Value>) -> Vec<&Value> {
    match value {
        Some(Value::Array(items)) => items.iter().collect(),
        Some(Value::Null) | None => Vec::new(),
        Some(single) => vec![single],
    }
}

/// Names an entry without telling it.
fn hash(entry: &Value) -> String {
    blake3::hash(entry.to_string().as_bytes()).to_hex().to_string()
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const MODE: Wider = Wider::Later(&["manual", "smart", "off"]);

    fn force(wider: Wider, accepted: &Value, file: &Value) -> Value {
        let accepted = accepted_form(wider, Some(accepted));
        in_force(wider, accepted.as_ref(), Some(file)).unwrap()
    }

    #[test]
    fn a_wider_value_waits_and_a_narrower_one_holds() {
        for (wider, accepted, file, expected) in [
            (MODE, json!("manual"), json!("off"), json!("manual")),
            (MODE, json!("off"), json!("manual"), json!("manual")),
            (MODE, json!("smart"), json!("smart"), json!("smart")),
            (Wider::WhenTrue, json!(false), json!(true), json!(false)),
            (Wider::WhenTrue, json!(true), json!(false), json!(false)),
            (Wider::WhenFalse, json!(true), json!(false), json!(true)),
            (Wider::WhenFalse, json!(false), json!(true), json!(true)),
            (Wider::More, json!(["a", "b"]), json!(["b", "c"]), json!(["b"])),
            (Wider::More, json!(["a", "b"]), json!(["b", "a"]), json!(["b", "a"])),
            (Wider::Fewer, json!(["a", "b"]), json!(["c", "b"]), json!(["c", "b", "a"])),
            (Wider::Fewer, json!(["a"]), json!(["a", "b"]), json!(["a", "b"])),
            (Wider::Any, json!("docker"), json!("local"), json!("docker")),
            (
                Wider::Entries,
                json!({"a": {"command": "x"}, "b": {"command": "y"}}),
                json!({"a": {"command": "x"}, "b": {"command": "evil"}, "c": {"command": "z"}}),
                json!({"a": {"command": "x"}}),
            ),
        ] {
            assert_eq!(force(wider, &accepted, &file), expected, "{wider:?} {file}");
        }
    }

    #[test]
    fn absence_is_a_value() {
        assert_eq!(in_force(Wider::WhenTrue, None, Some(&json!(true))), None);
        assert_eq!(in_force(Wider::WhenFalse, None, Some(&json!(false))), None);
        assert_eq!(in_force(Wider::Any, Some(&json!("docker")), None), Some(json!("docker")));
        assert_eq!(in_force(Wider::Fewer, Some(&json!(["a"])), None), Some(json!(["a"])));
        assert_eq!(in_force(Wider::More, Some(&json!(["a"])), None), None);
        assert_eq!(in_force(MODE, Some(&json!("off")), None), None);
    }

    #[test]
    fn what_is_shown_and_kept_of_a_server_tells_no_secret() {
        let servers = json!({"s": {"command": "npx", "env": {"WHATEVER": "hunter2"}}});
        let shown = shown("mcp_servers", Wider::Entries, Some(&servers)).unwrap().to_string();
        assert!(shown.contains("npx") && shown.contains("WHATEVER") && !shown.contains("hunter2"), "{shown}");
        let kept = accepted_form(Wider::Entries, Some(&servers)).unwrap().to_string();
        assert!(kept.contains("\"s\"") && !kept.contains("hunter2"), "{kept}");
    }

    proptest! {
        #[test]
        fn what_is_in_force_is_accepted_the_next_time(
            accepted in prop::collection::vec("[a-e]", 0..4),
            file in prop::collection::vec("[a-e]", 0..4),
            wider in prop::sample::select(vec![Wider::More, Wider::Fewer, Wider::Any]),
        ) {
            let (accepted, file) = (json!(accepted), json!(file));
            let first = in_force(wider, Some(&accepted), Some(&file));
            prop_assert_eq!(in_force(wider, first.as_ref(), first.as_ref()), first.clone());
            // The baseline never grows by itself.
            let items = |value: &Value| -> Vec<Value> { value.as_array().cloned().unwrap_or_default() };
            let kept = first.as_ref().map(items).unwrap_or_default();
            if wider == Wider::More {
                prop_assert!(kept.iter().all(|item| items(&accepted).contains(item)));
            }
            if wider == Wider::Fewer {
                prop_assert!(items(&accepted).iter().all(|item| kept.contains(item)));
            }
        }
    }
}
