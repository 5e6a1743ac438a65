//! Secrets that their issuer's prefix gives away (spec 30 §21).

use aho_corasick::{AhoCorasick, MatchKind};

use super::Span;
use super::scan::{begins_token, is_token, run_end};

/// How far a prefix alone is trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trust {
    /// Nothing else begins like this: ten token characters are enough.
    Sure,
    /// Ordinary names begin like this too (`npm_config_registry`, `sk-circle-fade-dot`): what follows must look
    /// drawn, not written.
    Drawn,
    /// Followed by capital letters and digits only.
    Capitals,
    /// Followed by hexadecimal digits only.
    Hexadecimal,
    /// Followed by further parts after dots.
    Dotted,
    /// A JSON Web Token: three parts, of which the first is encoded JSON.
    WebToken,
}

/// Token characters that must follow a prefix.
const MIN_FOLLOWING: usize = 10;

const PREFIXES: &[(&str, Trust)] = &[
    ("AIza", Trust::Sure),
    ("AKIA", Trust::Capitals),
    ("ASIA", Trust::Capitals),
    ("SG.", Trust::Dotted),
    ("bb_live_", Trust::Sure),
    ("doo_v1_", Trust::Sure),
    ("dop_v1_", Trust::Sure),
    ("dor_v1_", Trust::Sure),
    ("exa_", Trust::Drawn),
    ("eyJ", Trust::WebToken),
    ("fal_", Trust::Drawn),
    ("fc-", Trust::Hexadecimal),
    ("fw-", Trust::Drawn),
    ("fw_", Trust::Drawn),
    ("gAAAA", Trust::Drawn),
    ("gho_", Trust::Sure),
    ("ghp_", Trust::Sure),
    ("ghr_", Trust::Sure),
    ("ghs_", Trust::Sure),
    ("ghu_", Trust::Sure),
    ("github_pat_", Trust::Sure),
    ("glpat-", Trust::Sure),
    ("gsk_", Trust::Drawn),
    ("hf_", Trust::Drawn),
    ("mem0_", Trust::Drawn),
    ("npm_", Trust::Drawn),
    ("ntn_", Trust::Drawn),
    ("pplx-", Trust::Drawn),
    ("pypi-", Trust::Drawn),
    ("pypi_", Trust::Drawn),
    ("r8_", Trust::Drawn),
    ("rk_live_", Trust::Sure),
    ("rk_test_", Trust::Sure),
    ("sk-", Trust::Drawn),
    ("sk-ant-", Trust::Sure),
    ("sk-or-v1-", Trust::Sure),
    ("sk-proj-", Trust::Sure),
    ("sk_live_", Trust::Sure),
    ("sk_test_", Trust::Sure),
    ("syt_", Trust::Drawn),
    ("tvly-", Trust::Drawn),
    ("xai-", Trust::Drawn),
    ("xapp-", Trust::Sure),
    ("xoxa-", Trust::Sure),
    ("xoxb-", Trust::Sure),
    ("xoxe-", Trust::Sure),
    ("xoxp-", Trust::Sure),
    ("xoxr-", Trust::Sure),
    ("xoxs-", Trust::Sure),
];

/// The known prefixes, and those of the user.
#[derive(Debug, Clone)]
pub(super) struct Vendors {
    prefixes: Vec<(String, Trust)>,
    search: Option<AhoCorasick>,
}

impl Vendors {
    pub(super) fn new(own: &[String]) -> Self {
        let known = PREFIXES.iter().map(|(prefix, trust)| ((*prefix).to_owned(), *trust));
        let own = own.iter().map(|prefix| prefix.trim()).filter(|prefix| !prefix.is_empty());
        let prefixes: Vec<(String, Trust)> =
            known.chain(own.map(|prefix| (prefix.to_owned(), Trust::Sure))).collect();
        // Building fails only beyond sizes that no list of prefixes reaches.
        let search = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(prefixes.iter().map(|(prefix, _)| prefix.as_str()))
            .inspect_err(|error| tracing::warn!(%error, "secret prefixes not searched"))
            .ok();
        Self { prefixes, search }
    }

    pub(super) fn find<'a>(&'a self, text: &str, spans: &mut Vec<Span<'a>>) {
        let Some(search) = &self.search else { return };
        let bytes = text.as_bytes();
        for hit in search.find_iter(text) {
            let Some((prefix, trust)) = self.prefixes.get(hit.pattern().as_usize()) else { continue };
            if !begins_token(bytes, hit.start()) {
                continue;
            }
            if let Some(end) = token_end(bytes, hit.end(), *trust) {
                let label = if *trust == Trust::WebToken { "jwt" } else { prefix.as_str() };
                spans.push(Span { start: hit.start(), end, label, opaque: false });
            }
        }
    }
}

/// Where the token ends whose prefix ends at `from`; `None` when it is none.
fn token_end(bytes: &[u8], from: usize, trust: Trust) -> Option<usize> {
    let dotted = |byte: u8| is_token(byte) || byte == b'.';
    let end = match trust {
        Trust::Dotted | Trust::WebToken => run_end(bytes, from, dotted),
        Trust::Sure | Trust::Drawn | Trust::Capitals | Trust::Hexadecimal => run_end(bytes, from, is_token),
    };
    // A sentence may end right behind a token.
    let end = bytes.get(from..end).map_or(from, |token| from + token.trim_ascii_end_dots());
    let token = bytes.get(from..end)?;
    let fits = match trust {
        Trust::Sure => true,
        Trust::Drawn | Trust::Dotted => looks_drawn(token),
        Trust::Capitals => token.iter().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit()),
        Trust::Hexadecimal => token.len() >= 16 && token.iter().all(u8::is_ascii_hexdigit),
        Trust::WebToken => {
            let parts: Vec<&[u8]> = token.split(|byte| *byte == b'.').collect();
            parts.len() == 3 && parts.iter().all(|part| part.len() >= 8)
        }
    };
    (fits && token.len() >= MIN_FOLLOWING).then_some(end)
}

/// Whether a token was drawn at random rather than written by a person: some part of ten characters without a
/// separator that holds a digit, or of sixteen letters.
fn looks_drawn(token: &[u8]) -> bool {
    token
        .split(|byte| !byte.is_ascii_alphanumeric())
        .any(|part| part.len() >= 16 || (part.len() >= MIN_FOLLOWING && part.iter().any(u8::is_ascii_digit)))
}

trait TrimDots {
    /// The length without dots at the end.
    fn trim_ascii_end_dots(&self) -> usize;
}

impl TrimDots for [u8] {
    fn trim_ascii_end_dots(&self) -> usize {
        self.iter().rposition(|byte| *byte != b'.').map_or(0, |last| last + 1)
    }
}
