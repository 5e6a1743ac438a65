//! A profile's name: the one rule for it (spec 70 §1), checked once at the edge.

use std::fmt;
use std::sync::Arc;

/// Longest profile name, in characters.
const MAX_CHARS: usize = 64;

/// The name of a profile: `^[a-z0-9][a-z0-9_-]{0,63}$`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProfileName(Arc<str>);

/// A text that cannot name a profile.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{value}` is not a profile name: use 1 to 64 lower-case letters, digits, `_` or `-`, starting with a letter or digit"
)]
pub struct ProfileNameError {
    value: String,
}

impl ProfileName {
    /// The profile that is the home's root folder itself.
    pub const DEFAULT: &'static str = "default";

    /// Reads a name from a flag, a file or a folder.
    ///
    /// # Errors
    /// When the text breaks the rule above; nothing is trimmed or lower-cased on the way.
    pub fn parse(text: &str) -> Result<Self, ProfileNameError> {
        let legal = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        let mut chars = text.chars();
        let head = chars.next().is_some_and(legal);
        if head && text.len() <= MAX_CHARS && chars.all(|c| legal(c) || matches!(c, '_' | '-')) {
            return Ok(Self(text.into()));
        }
        Err(ProfileNameError { value: text.chars().take(80).flat_map(char::escape_debug).collect() })
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether this is the root folder's own profile.
    pub fn is_default(&self) -> bool {
        &*self.0 == Self::DEFAULT
    }
}

impl Default for ProfileName {
    fn default() -> Self {
        Self(Self::DEFAULT.into())
    }
}

impl fmt::Display for ProfileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ProfileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rule_is_the_documented_one() {
        for good in ["default", "a", "0", "work-2", "a_b", &"x".repeat(64)] {
            assert_eq!(ProfileName::parse(good).unwrap().as_str(), good);
        }
        for bad in ["", "-a", "_a", "Work", "a b", "a/b", "..", "é", "a\n", &"x".repeat(65)] {
            assert!(ProfileName::parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_bad_name_cannot_smuggle_control_characters_into_the_terminal() {
        let text = ProfileName::parse("a\u{1b}[31m").unwrap_err().to_string();
        assert!(!text.contains('\u{1b}'), "{text}");
    }
}
