//! What a person typed into a search box, as something that can be asked.
//!
//! Words must all occur; `OR`, `NOT`, `"a phrase"` and `prefix*` mean what they say; everything
//! else that the index has a syntax for is taken as plain text (spec 70 §6 "Query rules"). There
//! is no text that is not a legal query.

use std::fmt::Write as _;

/// Characters of a query that are read, and terms that are looked for.
const MAX_CHARS: usize = 2048;
const MAX_TERMS: usize = 64;

/// A parsed query: groups of which one must fit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Query {
    groups: Vec<Group>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Group {
    /// Never empty.
    with: Vec<Term>,
    without: Vec<Term>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Term {
    /// Holds at least one letter or digit, and no control characters.
    pub(super) text: String,
    prefix: bool,
}

enum Token {
    Term(Term),
    Or,
    Not,
}

impl Query {
    pub(super) fn parse(text: &str) -> Self {
        let mut query = Self::default();
        let mut group = Group::default();
        let mut negated = false;
        for token in tokens(text) {
            match token {
                Token::Or => {
                    query.push(std::mem::take(&mut group));
                    negated = false;
                }
                // With nothing before it to take from, the operator is dropped and its term looked for.
                Token::Not => negated = !group.with.is_empty(),
                Token::Term(term) => {
                    let side = if negated { &mut group.without } else { &mut group.with };
                    side.push(term);
                    negated = false;
                }
            }
        }
        query.push(group);
        query
    }

    fn push(&mut self, group: Group) {
        if !group.with.is_empty() {
            self.groups.push(group);
        }
    }

    /// Whether there is nothing to look for.
    pub(super) fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// Whether the word index cannot answer: it takes a run of CJK characters for one word.
    pub(super) fn has_cjk(&self) -> bool {
        self.groups
            .iter()
            .flat_map(|group| group.with.iter().chain(&group.without))
            .any(|term| term.text.chars().any(is_cjk))
    }

    /// The terms that a hit may hold, to be marked in its snippet.
    pub(super) fn positive_terms(&self) -> impl Iterator<Item = &Term> {
        self.groups.iter().flat_map(|group| &group.with)
    }

    /// The query in the index's language.
    pub(super) fn to_match(&self) -> String {
        let mut out = String::new();
        for group in &self.groups {
            if !out.is_empty() {
                out.push_str(" OR ");
            }
            let _ = write!(out, "(({})", joined(&group.with, " AND "));
            if !group.without.is_empty() {
                let _ = write!(out, " NOT ({})", joined(&group.without, " OR "));
            }
            out.push(')');
        }
        out
    }

    /// The query as an SQL condition over `m`, for a scan, with its parameters in order.
    pub(super) fn to_condition(&self) -> (String, Vec<String>) {
        let mut patterns = Vec::new();
        let mut one = |term: &Term| {
            patterns.push(like_pattern(&term.text));
            let at = patterns.len();
            format!(
                "(COALESCE(m.content, '') LIKE ?{at} ESCAPE '\\' OR COALESCE(m.tool_name, '') LIKE ?{at} ESCAPE '\\' \
                 OR COALESCE(m.tool_calls, '') LIKE ?{at} ESCAPE '\\')"
            )
        };
        let mut groups = Vec::new();
        for group in &self.groups {
            let mut parts: Vec<String> = group.with.iter().map(&mut one).collect();
            parts.extend(group.without.iter().map(|term| format!("NOT {}", one(term))));
            groups.push(format!("({})", parts.join(" AND ")));
        }
        (format!("({})", groups.join(" OR ")), patterns)
    }
}

fn joined(terms: &[Term], operator: &str) -> String {
    let quoted: Vec<String> = terms
        .iter()
        .map(|term| format!("\"{}\"{}", term.text.replace('"', "\"\""), if term.prefix { " *" } else { "" }))
        .collect();
    quoted.join(operator)
}

fn like_pattern(text: &str) -> String {
    let mut pattern = String::from("%");
    for c in text.chars() {
        if matches!(c, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern.push('%');
    pattern
}

fn tokens(text: &str) -> Vec<Token> {
    let text: String = text.chars().take(MAX_CHARS).map(|c| if c.is_control() { ' ' } else { c }).collect();
    let mut out = Vec::new();
    let mut rest = text.as_str();
    while let Some((before, after)) = rest.split_once('"') {
        plain(before, &mut out);
        // A quote without a partner is a space.
        let Some((phrase, after_phrase)) = after.split_once('"') else {
            rest = after;
            continue;
        };
        let (star, after_phrase) = match after_phrase.strip_prefix('*') {
            Some(after_star) => (true, after_star),
            None => (false, after_phrase),
        };
        push(phrase, star, &mut out);
        rest = after_phrase;
    }
    plain(rest, &mut out);
    let mut terms = 0;
    out.retain(|token| match token {
        Token::Term(_) => {
            terms += 1;
            terms <= MAX_TERMS
        }
        Token::Or | Token::Not => true,
    });
    out
}

fn plain(text: &str, out: &mut Vec<Token>) {
    let text = text.replace(['+', '{', '}', '(', ')', ':', '^'], " ");
    for word in text.split_whitespace() {
        match word {
            "OR" => out.push(Token::Or),
            "NOT" => out.push(Token::Not),
            // Every word must occur anyway.
            "AND" => {}
            _ => {
                let star = word.ends_with('*');
                let inner = word.trim_matches('*');
                let mut pieces = inner.split('*').filter(|piece| !piece.is_empty()).peekable();
                while let Some(piece) = pieces.next() {
                    push(piece, star && pieces.peek().is_none(), out);
                }
            }
        }
    }
}

fn push(text: &str, prefix: bool, out: &mut Vec<Token>) {
    let text = text.trim();
    if text.chars().any(char::is_alphanumeric) {
        out.push(Token::Term(Term { text: text.to_owned(), prefix }));
    }
}

/// Han with its extensions, kana, hangul, bopomofo and the symbols among them.
fn is_cjk(c: char) -> bool {
    matches!(u32::from(c),
        0x1100..=0x11FF | 0x2E80..=0x303F | 0x3040..=0x318F | 0x31A0..=0x31FF | 0x3400..=0x4DBF
        | 0x4E00..=0x9FFF | 0xA960..=0xA97F | 0xAC00..=0xD7FF | 0xF900..=0xFAFF | 0xFF66..=0xFFDC
        | 0x20000..=0x3FFFF)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_mean_what_people_mean() {
        for (typed, asked) in [
            ("fix build", r#"(("fix" AND "build"))"#),
            ("fix OR build", r#"(("fix")) OR (("build"))"#),
            ("fix NOT build", r#"(("fix") NOT ("build"))"#),
            ("fix NOT a NOT b", r#"(("fix") NOT ("a" OR "b"))"#),
            ("NOT fix", r#"(("fix"))"#),
            ("OR fix AND", r#"(("fix"))"#),
            ("a OR OR b", r#"(("a")) OR (("b"))"#),
            ("\"fix the build\" now", r#"(("fix the build" AND "now"))"#),
            ("\"un balanced", r#"(("un" AND "balanced"))"#),
            ("pre* \"two wo\"*", r#"(("pre" * AND "two wo" *))"#),
            ("a*b", r#"(("a" AND "b"))"#),
            ("foo.bar-baz_q", r#"(("foo.bar-baz_q"))"#),
            ("col:umn (x) {y} +z ^w", r#"(("col" AND "umn" AND "x" AND "y" AND "z" AND "w"))"#),
            ("not or and", r#"(("not" AND "or" AND "and"))"#),
        ] {
            assert_eq!(Query::parse(typed).to_match(), asked, "{typed}");
        }
        for nothing in ["", "  ", "\"\"", "*", "-- !!", "OR", "NOT", "\u{0}", "\"--\" OR ()"] {
            assert!(Query::parse(nothing).is_empty(), "{nothing:?}");
        }
    }

    #[test]
    fn wildcards_of_a_scan_are_literals() {
        let (sql, patterns) = Query::parse("100%_a\\b NOT c*").to_condition();
        assert_eq!(patterns, ["%100\\%\\_a\\\\b%", "%c%"]);
        assert!(sql.contains("NOT (COALESCE"), "{sql}");
    }

    #[test]
    fn cjk_is_recognised() {
        for cjk in ["修改", "カナ", "한글", "abc字"] {
            assert!(Query::parse(cjk).has_cjk(), "{cjk}");
        }
        assert!(!Query::parse("Größe привет").has_cjk());
    }
}
