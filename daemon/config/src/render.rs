//! Writes a value as YAML, for `config show` and `config get`.

use saphyr::{Mapping, Scalar, ScalarStyle, Yaml, YamlEmitter};
use serde_json::Value;

/// The value as a YAML text that ends in a newline. Texts that a YAML 1.1 or 1.2 reader would take for something
/// else are quoted.
pub fn to_yaml(value: &Value) -> String {
    let mut text = String::new();
    let written = YamlEmitter::new(&mut text).dump(&convert(value));
    // Writing into a `String` cannot fail; JSON is YAML too, should the emitter ever refuse a value.
    let mut body = match (written, text.strip_prefix("---\n")) {
        (Ok(()), Some(body)) => body.to_owned(),
        _ => value.to_string(),
    };
    body.push('\n');
    body
}

fn convert(value: &Value) -> Yaml<'_> {
    match value {
        Value::Null => Yaml::Value(Scalar::Null),
        Value::Bool(truth) => Yaml::Value(Scalar::Boolean(*truth)),
        // As text: a number above `i64::MAX` has no place among saphyr's own.
        Value::Number(number) => Yaml::Representation(number.to_string().into(), ScalarStyle::Plain, None),
        Value::String(text) => Yaml::Value(Scalar::String(text.as_str().into())),
        Value::Array(items) => Yaml::Sequence(items.iter().map(convert).collect()),
        Value::Object(entries) => {
            let mut mapping = Mapping::new();
            for (key, value) in entries {
                mapping.insert(Yaml::Value(Scalar::String(key.as_str().into())), convert(value));
            }
            Yaml::Mapping(mapping)
        }
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::tree::Source;

    #[test]
    fn maps_lists_and_doubtful_words_are_written_so_that_they_read_back() {
        let value =
            json!({"a": {"b": [1, "off", {"c": null}]}, "big": u64::MAX, "f": 0.5, "empty": {}, "none": []});
        assert_eq!(
            to_yaml(&value),
            "a:\n  b:\n    - 1\n    - \"off\"\n    - c: ~\nbig: 18446744073709551615\nf: 0.5\nempty: {}\nnone: []\n"
        );
        assert_eq!(to_yaml(&json!("x: y")), "\"x: y\"\n");
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_filter("finite", |float| float.is_finite()).prop_map(Value::from),
            "[ -~é\n\t]{0,12}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec(("[ -~]{1,8}", inner), 0..4)
                    .prop_map(|entries| Value::Object(entries.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(value in any_json()) {
            let wrapped = json!({"k": value});
            let source = Source::Flag;
            let read = crate::yaml::parse(&to_yaml(&wrapped), &source);
            prop_assert_eq!(read.map(|node| node.to_value()), Ok(wrapped));
        }
    }
}
