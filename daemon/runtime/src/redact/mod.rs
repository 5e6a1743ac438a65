//! Masks secrets in text: on every surface that shows something, and in file content that the model reads
//! (spec 30 §21, spec 40 §10.3 and §10.4).
//!
//! A secret is known by being a value of the secret scope, by its issuer's prefix, by its structure (JWT, PEM, the
//! password of a URL, a bot token), or by the name it is assigned to. Only the value goes: quotes, separators and
//! line breaks around it stay, so that code, configuration and JSON remain what they were.

mod assignments;
mod literals;
mod mask;
mod scan;
mod structures;
mod vendors;

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::sync::Arc;

use crate::secret::{Secret, SecretScope};
use literals::Literals;
use vendors::Vendors;

/// The beginning of every marker that stands for a secret in file content.
const MARKER_START: &str = "«redacted:";
const MARKER_END: &str = "…»";

/// How often a text is looked at again. Masking can uncover a secret that was glued to another one; more
/// layers than this do not occur.
const MAX_ROUNDS: usize = 8;

/// Masks secrets. Cheap to clone, never changed after it is built: nothing that runs can switch it off.
#[derive(Clone)]
pub struct Redactor(Arc<Rules>);

#[derive(Clone)]
struct Rules {
    enabled: bool,
    literals: Literals,
    vendors: Vendors,
}

/// One secret inside a text, as a range of bytes on character boundaries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Span<'a> {
    start: usize,
    end: usize,
    /// What a marker calls it: the issuer's prefix, or the kind of secret.
    label: &'a str,
    /// No part of it may be shown.
    opaque: bool,
}

impl Redactor {
    /// A redactor that also knows every secret of `scope` by its value. With `enabled` false
    /// (`security.redact_secrets`) it leaves all text alone.
    pub fn new(enabled: bool, scope: &SecretScope) -> Self {
        let mut literals = Literals::default();
        for (name, secret) in scope.iter() {
            literals.add(Some(name), secret.expose());
        }
        Self(Arc::new(Rules { enabled, literals: literals.built(), vendors: Vendors::new(&[]) }))
    }

    /// The same, with one more secret: a credential that stands in the settings, or one that a person typed.
    #[must_use]
    pub fn with_secret(&self, secret: &Secret) -> Self {
        let mut literals = self.0.literals.clone();
        literals.add(None, secret.expose());
        Self(Arc::new(Rules { literals: literals.built(), ..(*self.0).clone() }))
    }

    /// The same, with more prefixes by which secrets are known (`security.redact_prefixes`).
    #[must_use]
    pub fn with_prefixes(&self, prefixes: &[String]) -> Self {
        Self(Arc::new(Rules { vendors: Vendors::new(prefixes), ..(*self.0).clone() }))
    }

    /// The form for surfaces: tool output, logs, events, errors. A secret of 18 characters or more keeps its
    /// first six and last four; a shorter one becomes `***`. Doing it twice changes nothing more.
    pub fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.replace(text, mask::masked).0
    }

    /// The form for file content that the model reads: each secret becomes a marker that cannot be used by
    /// mistake, `«redacted:sk-…»`. Also says how many there are. Lines stay in number and order; give it the
    /// whole text where possible, since half a private key is harder to know.
    pub fn redact_file_content<'t>(&self, text: &'t str) -> (Cow<'t, str>, usize) {
        self.replace(text, |_, span| format!("{MARKER_START}{}{MARKER_END}", span.label))
    }

    /// Whether the text holds a marker. Such text must not be written to a file: the real value would be lost.
    pub fn contains_marker(text: &str) -> bool {
        text.contains(MARKER_START)
    }

    fn replace<'t>(
        &self,
        text: &'t str,
        replacement: impl Fn(&str, &Span<'_>) -> String,
    ) -> (Cow<'t, str>, usize) {
        let mut current = Cow::Borrowed(text);
        let mut count = 0;
        if !self.0.enabled {
            return (current, count);
        }
        for _ in 0..MAX_ROUNDS {
            let spans = self.0.find(&current);
            if spans.is_empty() {
                break;
            }
            count += spans.len();
            current = Cow::Owned(apply(&current, &spans, &replacement));
        }
        (current, count)
    }
}

impl Rules {
    /// All secrets of the text, in order, without overlaps.
    fn find<'a>(&'a self, text: &str) -> Vec<Span<'a>> {
        let mut spans = Vec::new();
        self.vendors.find(text, &mut spans);
        structures::find(text, &mut spans);
        assignments::find(text, &mut spans);
        // What is masked already is no secret. The scope's own values are known for sure.
        spans.retain(|span| !text.get(span.start..span.end).is_none_or(mask::holds_mask));
        self.literals.find(text, &mut spans);
        merge(spans)
    }
}

/// Joins spans that overlap.
fn merge(mut spans: Vec<Span<'_>>) -> Vec<Span<'_>> {
    spans.sort_by_key(|span| (span.start, std::cmp::Reverse(span.end)));
    let mut merged: Vec<Span<'_>> = Vec::with_capacity(spans.len());
    for span in spans {
        match merged.last_mut() {
            Some(last) if span.start < last.end => {
                last.end = last.end.max(span.end);
                last.opaque |= span.opaque;
            }
            _ => merged.push(span),
        }
    }
    merged
}

fn apply(text: &str, spans: &[Span<'_>], replacement: impl Fn(&str, &Span<'_>) -> String) -> String {
    let mut result = String::with_capacity(text.len());
    let mut done = 0;
    for span in spans {
        result.push_str(text.get(done..span.start).unwrap_or_default());
        result.push_str(&replacement(text.get(span.start..span.end).unwrap_or_default(), span));
        done = span.end;
    }
    result.push_str(text.get(done..).unwrap_or_default());
    result
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Redactor")
            .field("enabled", &self.0.enabled)
            .field("known_values", &self.0.literals.len())
            .finish_non_exhaustive()
    }
}
