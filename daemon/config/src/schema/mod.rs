//! The embedded JSON Schema of all sections: generated from the sections' structs, committed, and read here as
//! the one source of types, bounds, words and defaults.
//!
//! Only what `schemars` 1.x emits is understood: `$ref` into `$defs`, `allOf`, `anyOf` and `oneOf`, type lists,
//! `enum` and `const`, bounds, number formats. An unknown keyword accepts everything.

mod accepted;
mod check;
mod defaults;
mod nearest;
mod scalar;

use std::sync::LazyLock;

use serde_json::{Map, Value};

/// The schema as it is committed in this crate.
const EMBEDDED: &str = include_str!("../../schema.json");
/// Longest chain of `$ref` and `allOf` that is followed; a schema that refers to itself ends here.
const MAX_CHAIN: usize = 16;

/// The embedded JSON Schema, for `config schema`, editors and the generator that keeps it fresh.
pub fn schema_json() -> &'static str {
    EMBEDDED
}

/// A JSON Schema document.
#[derive(Debug)]
pub(crate) struct Schema {
    root: Value,
}

impl Schema {
    /// The committed schema.
    pub(crate) fn embedded() -> &'static Self {
        static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
            let root =
                serde_json::from_str(EMBEDDED).expect("the committed schema is JSON; a test parses it");
            Schema { root }
        });
        &SCHEMA
    }

    /// A schema of the caller's own, for tests.
    #[cfg(test)]
    pub(crate) fn new(root: Value) -> Self {
        Self { root }
    }

    /// The schema of the whole file.
    pub(crate) fn view(&self) -> View<'_> {
        View::of(self, &self.root)
    }

    /// The schema of a dotted key, where the sections name it.
    pub(crate) fn find(&self, path: &[&str]) -> Option<View<'_>> {
        path.iter().try_fold(self.view(), |view, key| view.property(key))
    }

    /// Follows a `$ref` of the form `#/$defs/Name`.
    fn resolve(&self, reference: &str) -> Option<&Value> {
        self.root.pointer(reference.strip_prefix('#')?)
    }
}

/// One place in the schema: all schema objects that hold there at once.
#[derive(Debug, Clone)]
pub(crate) struct View<'s> {
    schema: &'s Schema,
    parts: Vec<&'s Map<String, Value>>,
}

/// What a map takes beside its named keys.
pub(crate) enum Additional<'s> {
    /// Anything, unchecked.
    Any,
    /// Keys of the user's choice, with values of this schema.
    Of(View<'s>),
    /// Nothing that is known.
    Nothing,
}

impl<'s> View<'s> {
    fn of(schema: &'s Schema, value: &'s Value) -> Self {
        let mut parts = Vec::new();
        let mut open = vec![value];
        while let Some(next) = open.pop() {
            let Value::Object(object) = next else {
                continue;
            };
            if parts.len() >= MAX_CHAIN {
                break;
            }
            parts.push(object);
            if let Some(Value::Array(all)) = object.get("allOf") {
                open.extend(all.iter().rev());
            }
            if let Some(Value::String(reference)) = object.get("$ref") {
                open.extend(schema.resolve(reference));
            }
        }
        Self { schema, parts }
    }

    fn child(&self, value: &'s Value) -> Self {
        Self::of(self.schema, value)
    }

    /// A keyword's value; of several, that which stands nearest to the place itself.
    fn keyword(&self, name: &str) -> Option<&'s Value> {
        self.parts.iter().find_map(|part| part.get(name))
    }

    fn number(&self, name: &str) -> Option<&'s serde_json::Number> {
        match self.keyword(name)? {
            Value::Number(number) => Some(number),
            _ => None,
        }
    }

    fn text(&self, name: &str) -> Option<&'s str> {
        self.keyword(name)?.as_str()
    }

    /// The names of types that are accepted here, without `null`; empty when the schema does not say.
    fn types(&self) -> Vec<&'s str> {
        let named = match self.keyword("type") {
            Some(Value::String(name)) => vec![name.as_str()],
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        named.into_iter().filter(|name| *name != "null").collect()
    }

    fn is_null_only(&self) -> bool {
        self.keyword("type").is_some_and(|kind| kind == "null") || self.keyword("const") == Some(&Value::Null)
    }

    /// Whether an explicit null is a value here.
    pub(crate) fn allows_null(&self) -> bool {
        let listed = match self.keyword("type") {
            Some(Value::Array(names)) => names.iter().any(|name| name == "null"),
            Some(Value::String(name)) => name == "null",
            _ => false,
        };
        listed
            || self.listed_alternatives().iter().any(Self::is_null_only)
            || (self.keyword("type").is_none() && self.is_open())
    }

    /// Whether the schema says nothing at all about the value.
    fn is_open(&self) -> bool {
        const TELLING: [&str; 8] =
            ["type", "properties", "enum", "const", "anyOf", "oneOf", "additionalProperties", "items"];
        TELLING.iter().all(|keyword| self.keyword(keyword).is_none())
    }

    /// What `anyOf` or `oneOf` lists, null included.
    fn listed_alternatives(&self) -> Vec<Self> {
        let listed = ["anyOf", "oneOf"].iter().find_map(|name| self.keyword(name)?.as_array());
        listed.map(|all| all.iter().map(|one| self.child(one)).collect()).unwrap_or_default()
    }

    /// The schemas of which one must hold, without that for null. An optional section has exactly one.
    fn alternatives(&self) -> Vec<Self> {
        // An object with keys of its own and a `oneOf` beside them is a flattened enum: one map, not a choice.
        if self.has_named_keys() {
            return Vec::new();
        }
        let mut all = self.listed_alternatives();
        all.retain(|alternative| !alternative.is_null_only());
        all
    }

    /// The words (or numbers) that are accepted here, when nothing else is.
    fn choices(&self) -> Option<Vec<&'s Value>> {
        if let Some(Value::Array(listed)) = self.keyword("enum") {
            return Some(listed.iter().filter(|one| !one.is_null()).collect());
        }
        if let Some(only) = self.keyword("const") {
            return Some(vec![only]);
        }
        let alternatives = self.alternatives();
        if alternatives.is_empty() {
            return None;
        }
        // An enum with a doc comment on each word comes as one alternative a word.
        let listed: Option<Vec<Vec<&Value>>> = alternatives.iter().map(Self::choices).collect();
        listed.map(|words| words.into_iter().flatten().collect())
    }

    /// The schema of a named key.
    fn property(&self, name: &str) -> Option<Self> {
        let own = self.parts.iter().find_map(|part| part.get("properties")?.get(name));
        if let Some(found) = own {
            return Some(self.child(found));
        }
        self.listed_alternatives().iter().find_map(|alternative| alternative.property(name))
    }

    /// The named keys, in the schema's order.
    pub(crate) fn property_names(&self) -> Vec<&'s str> {
        let own = self.parts.iter().filter_map(|part| part.get("properties")?.as_object());
        let mut names: Vec<&str> = own.flat_map(|map| map.keys().map(String::as_str)).collect();
        for alternative in self.listed_alternatives() {
            names.extend(alternative.property_names());
        }
        names
    }

    fn has_named_keys(&self) -> bool {
        self.parts.iter().any(|part| part.contains_key("properties"))
    }

    fn additional(&self) -> Additional<'s> {
        match self.keyword("additionalProperties") {
            Some(schema @ Value::Object(_)) => Additional::Of(self.child(schema)),
            Some(Value::Bool(false)) => Additional::Nothing,
            Some(_) => Additional::Any,
            None if self.keyword("patternProperties").is_some() => Additional::Any,
            None if self.has_named_keys() => Additional::Nothing,
            None => Additional::Any,
        }
    }

    fn required(&self) -> Vec<&'s str> {
        let listed = self.parts.iter().filter_map(|part| part.get("required")?.as_array());
        listed.flatten().filter_map(Value::as_str).collect()
    }

    fn items(&self) -> Option<Self> {
        self.keyword("items").map(|schema| self.child(schema))
    }

    fn takes_map(&self) -> bool {
        self.types().contains(&"object")
            || self.has_named_keys()
            || self.alternatives().iter().any(Self::takes_map)
    }

    fn takes_list(&self) -> bool {
        self.types().contains(&"array") || self.alternatives().iter().any(Self::takes_list)
    }

    /// The default that the section's struct gives, unless it is null.
    fn default_value(&self) -> Option<&'s Value> {
        self.keyword("default").filter(|value| !value.is_null())
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
