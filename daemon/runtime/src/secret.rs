//! Secrets and the scope they are read from (spec 40 §10.1): usable where they are needed, readable nowhere else.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// A value that must never be shown. `Debug` and `Display` print `[redacted]`; only [`Secret::expose`]
/// gives the text, so that every use can be found by name.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Arc<str>);

impl Secret {
    /// The secret's text, for the one place that sends or compares it.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Whether there is nothing in it: an empty key counts as no key.
    pub fn is_empty(&self) -> bool {
        self.0.trim().is_empty()
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

/// Secrets may stand in a settings struct (`model.api_key`): its `Debug` then stays clean.
impl<'de> serde::Deserialize<'de> for Secret {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::from)
    }
}

impl schemars::JsonSchema for Secret {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Secret".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        String::json_schema(generator)
    }
}

/// The credentials of one profile, as loaded from its `.env`.
///
/// It fails closed: a name that the scope does not hold is missing, whatever the process environment
/// says; this crate never reads that. Cheap to clone, so that it follows the work into every task.
#[derive(Clone, Default)]
pub struct SecretScope(Arc<BTreeMap<String, Secret>>);

impl SecretScope {
    /// A scope that holds nothing.
    pub fn empty() -> Self {
        Self::default()
    }

    /// The scope of a profile's `.env`.
    pub fn from_env_file(file: &hermes_config::EnvFile) -> Self {
        Self::from_pairs(file.iter())
    }

    /// A scope of the given names and values; a later value of the same name wins.
    pub fn from_pairs<N, V>(pairs: impl IntoIterator<Item = (N, V)>) -> Self
    where
        N: Into<String>,
        V: Into<String>,
    {
        Self(Arc::new(
            pairs.into_iter().map(|(name, value)| (name.into(), Secret::from(value.into()))).collect(),
        ))
    }

    /// The named secret. An empty value counts as missing.
    pub fn get(&self, name: &str) -> Option<Secret> {
        self.0.get(name).filter(|secret| !secret.is_empty()).cloned()
    }

    /// Whether the name is set at all, even to nothing.
    pub fn contains(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// The names, sorted. Names are no secrets.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Names with their secrets, for redaction and for filling in at the moment of use.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Secret)> {
        self.0.iter().map(|(name, secret)| (name.as_str(), secret))
    }
}

impl fmt::Debug for SecretScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_never_printed() {
        let secret = Secret::from("hunter2hunter2");
        assert_eq!(format!("{secret:?} {secret}"), "[redacted] [redacted]");
        let scope = SecretScope::from_pairs([("API_KEY", "hunter2hunter2")]);
        assert_eq!(format!("{scope:?}"), r#"{"API_KEY"}"#);
    }

    #[test]
    fn a_missing_or_empty_name_is_missing_whatever_the_process_has() {
        let scope = SecretScope::from_pairs([("EMPTY_KEY", " ")]);
        assert!(std::env::var_os("PATH").is_some());
        assert_eq!(scope.get("PATH"), None);
        assert_eq!(scope.get("EMPTY_KEY"), None);
        assert!(scope.contains("EMPTY_KEY"));
    }

    #[test]
    fn the_last_value_of_a_name_wins() {
        let scope = SecretScope::from_pairs([("A", "1"), ("A", "2")]);
        assert_eq!(scope.get("A").map(|s| s.expose().to_owned()), Some("2".to_owned()));
    }
}
