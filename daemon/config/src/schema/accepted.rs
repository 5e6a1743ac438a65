//! Says in words what a place in the schema accepts.

use serde_json::Value;

use super::View;
use super::scalar::integer_bounds;

/// Most words of an enumeration that a message lists.
const MAX_WORDS: usize = 24;

impl View<'_> {
    /// What is accepted here, as the end of the sentence "accepted: …".
    pub(super) fn accepted(&self) -> String {
        if let Some(choices) = self.choices() {
            return words(&choices);
        }
        let alternatives = self.alternatives();
        if !alternatives.is_empty() {
            let mut texts: Vec<String> = alternatives.iter().map(View::accepted).collect();
            texts.dedup();
            return texts.join(", or ");
        }
        let types: Vec<String> = self.types().into_iter().map(|name| self.type_in_words(name)).collect();
        if types.is_empty() { "anything".to_owned() } else { types.join(" or ") }
    }

    fn type_in_words(&self, name: &str) -> String {
        match name {
            "integer" => {
                let (min, max) = integer_bounds(self);
                format!("a whole number{}", bounds(min, max))
            }
            "number" => {
                let bound = |names: [&str; 2]| {
                    names.iter().find_map(|name| self.number(name)).map(ToString::to_string)
                };
                let (min, max) =
                    (bound(["minimum", "exclusiveMinimum"]), bound(["maximum", "exclusiveMaximum"]));
                format!("a number{}", bounds(min, max))
            }
            "boolean" => "true or false".to_owned(),
            "string" => match (self.number("minLength"), self.number("maxLength")) {
                (None, None) => "text".to_owned(),
                (Some(min), None) => format!("text of at least {min} characters"),
                (None, Some(max)) => format!("text of at most {max} characters"),
                (Some(min), Some(max)) => format!("text of {min} to {max} characters"),
            },
            "array" => match self.items() {
                Some(items) => format!("a list, each item {}", items.accepted()),
                None => "a list".to_owned(),
            },
            "object" => "a map of `key: value` lines".to_owned(),
            other => other.to_owned(),
        }
    }
}

fn bounds(min: Option<impl ToString>, max: Option<impl ToString>) -> String {
    match (min.map(|bound| bound.to_string()), max.map(|bound| bound.to_string())) {
        (None, None) => String::new(),
        (Some(min), None) => format!(" of at least {min}"),
        (None, Some(max)) => format!(" of at most {max}"),
        (Some(min), Some(max)) => format!(" from {min} to {max}"),
    }
}

fn words(choices: &[&Value]) -> String {
    let texts: Vec<String> = choices
        .iter()
        .take(MAX_WORDS)
        .map(|choice| choice.as_str().map_or_else(|| choice.to_string(), ToOwned::to_owned))
        .collect();
    let more = if choices.len() > MAX_WORDS { ", …" } else { "" };
    match texts.as_slice() {
        [only] => format!("only `{only}`"),
        _ => format!("one of {}{more}", texts.join(", ")),
    }
}
