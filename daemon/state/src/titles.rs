//! Titles: at most 100 characters on one line, unique over the profile (spec 70 §4).

use hermes_core::SessionId;
use rusqlite::{Connection, OptionalExtension as _, params};

use crate::column;
use crate::db::Db;
use crate::error::{StateError, TitleError};
use crate::lineage;
use crate::writer::Fault;

/// Longest title, in characters.
const MAX_CHARS: usize = 100;
/// Longest title that is derived from a text (spec 10 §23).
const DERIVED_CHARS: usize = 80;

/// Where a title comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TitleSource {
    /// From the first words of the conversation.
    Derived,
    /// Written by a model.
    Llm,
    /// Chosen by a person. The only one that replaces a title.
    User,
    /// Inherited by a branch.
    Branch,
    /// A branch's own, until a better one comes.
    BranchFallback,
}

impl TitleSource {
    /// The name used in the database.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Derived => "derived",
            Self::Llm => "llm",
            Self::User => "user",
            Self::Branch => "branch",
            Self::BranchFallback => "branch_fallback",
        }
    }
}

impl Db {
    /// Sets a session's title and returns it as stored.
    ///
    /// A person's title replaces any other; an empty one removes it (and `""` is returned). All
    /// other sources fill only an empty title, take the next number (`Fix build #2`) when theirs
    /// is taken, and return the title that stands.
    ///
    /// # Errors
    /// For a person's title: [`TitleError::TooLong`], and [`TitleError::Taken`] unless the holder
    /// is an earlier part of the same conversation, which then gives it up.
    pub async fn set_title(
        &self,
        id: &SessionId,
        title: &str,
        source: TitleSource,
    ) -> Result<String, TitleError> {
        let (id, cleaned) = (id.clone(), clean(title));
        let length = cleaned.chars().count();
        if source == TitleSource::User && length > MAX_CHARS {
            return Err(TitleError::TooLong { length, max: MAX_CHARS });
        }
        self.write(move |conn| {
            let current = current(conn, &id)?;
            if source != TitleSource::User {
                return Ok(match current {
                    Some(title) => title,
                    None => fill(conn, &id, &cleaned, source)?.unwrap_or_default(),
                });
            }
            if !cleaned.is_empty() {
                make_way(conn, &id, &cleaned)?;
            }
            store(conn, &id, &cleaned, source)?;
            Ok(cleaned.clone())
        })
        .await
    }

    /// Gives a session without a title one from `text` (its first line, at most 80 characters),
    /// numbered when it is taken. `None` when the session has a title or the text gives none.
    pub async fn derive_title(&self, id: &SessionId, text: &str) -> Result<Option<String>, TitleError> {
        let (id, derived) = (id.clone(), derive(text));
        self.write(move |conn| match current(conn, &id)? {
            Some(_) => Ok(None),
            None => Ok(fill(conn, &id, &derived, TitleSource::Derived)?),
        })
        .await
    }
}

fn current(conn: &Connection, id: &SessionId) -> Result<Option<String>, Fault<TitleError>> {
    conn.prepare_cached("SELECT title FROM sessions WHERE id = ?1")?
        .query_row([id.as_str()], |row| column::filled(row, 0))
        .optional()?
        .ok_or_else(|| Fault::Refused(StateError::UnknownSession(id.clone()).into()))
}

fn fill(
    conn: &Connection,
    id: &SessionId,
    title: &str,
    source: TitleSource,
) -> rusqlite::Result<Option<String>> {
    let free = free(conn, title)?;
    if let Some(title) = &free {
        store(conn, id, title, source)?;
    }
    Ok(free)
}

fn store(conn: &Connection, id: &SessionId, title: &str, source: TitleSource) -> rusqlite::Result<()> {
    let title = Some(title).filter(|title| !title.is_empty());
    conn.prepare_cached("UPDATE sessions SET title = ?2, title_source = ?3 WHERE id = ?1")?
        .execute(params![id.as_str(), title, title.map(|_| source.as_str())])?;
    Ok(())
}

/// Refuses a title that another session holds, or takes it from an earlier part of this one.
fn make_way(conn: &Connection, id: &SessionId, title: &str) -> Result<(), Fault<TitleError>> {
    let holder = conn
        .prepare_cached("SELECT id, source, archived FROM sessions WHERE title = ?1 AND id <> ?2")?
        .query_row([title, id.as_str()], |row| {
            Ok((
                column::text(row, 0)?.unwrap_or_default(),
                column::text(row, 1)?.unwrap_or_default(),
                column::flag(row, 2)?,
            ))
        })
        .optional()?;
    let Some((holder, source_tag, archived)) = holder else { return Ok(()) };
    if lineage::is_compression_ancestor(conn, &holder, id.as_str())? {
        conn.prepare_cached("UPDATE sessions SET title = NULL WHERE id = ?1")?.execute([holder])?;
        return Ok(());
    }
    let title = title.to_owned();
    Err(Fault::Refused(match SessionId::parse(&holder) {
        Ok(holder) => TitleError::Taken { title, holder, source_tag, archived },
        Err(_) => StateError::UnknownSession(id.clone()).into(),
    }))
}

/// A title like `title` that is free: itself, or with the next number. `None` when it is empty.
pub(crate) fn free(conn: &Connection, title: &str) -> rusqlite::Result<Option<String>> {
    let title = shorten(&clean(title), MAX_CHARS);
    if title.is_empty() {
        return Ok(None);
    }
    let taken = conn.prepare_cached("SELECT 1 FROM sessions WHERE title = ?1")?.exists([&title])?;
    if !taken {
        return Ok(Some(title));
    }
    // Room for the number is kept from the start, so that all of one base count together.
    let base = shorten(base_of(&title), MAX_CHARS - 10);
    let mut highest = 1;
    let mut numbered =
        conn.prepare_cached("SELECT title FROM sessions WHERE title >= ?1 || ' #' AND title < ?1 || ' $'")?;
    for other in numbered.query_map([&base], |row| column::text(row, 0))? {
        let number = other?.as_deref().and_then(|other| number_of(other, &base)).unwrap_or(1);
        highest = highest.max(number);
    }
    Ok(Some(format!("{base} #{}", highest + 1)))
}

/// The title without its number.
pub(crate) fn base_of(title: &str) -> &str {
    match title.rsplit_once(" #") {
        Some((base, number)) if !base.is_empty() && is_number(number) => base,
        _ => title,
    }
}

/// The number that `title` adds to `base`.
pub(crate) fn number_of(title: &str, base: &str) -> Option<u64> {
    title.strip_prefix(base)?.strip_prefix(" #").filter(|number| is_number(number))?.parse().ok()
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.len() <= 9 && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Removes control, zero-width and direction characters and collapses white space.
pub(crate) fn clean(text: &str) -> String {
    let visible = |c: &char| {
        c.is_whitespace()
            || !(c.is_control()
                || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}')
                || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'))
    };
    let visible: String = text.chars().filter(visible).collect();
    visible.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A title out of a text: its first line that has words.
fn derive(text: &str) -> String {
    let line =
        text.lines().map(clean).find(|line| line.chars().any(char::is_alphanumeric)).unwrap_or_default();
    if line.chars().count() <= DERIVED_CHARS {
        return line;
    }
    let cut: String = line.chars().take(DERIVED_CHARS - 3).collect();
    // At a word's end, unless that would lose much: text without spaces is cut where it must.
    let at_word =
        cut.rsplit_once(' ').map(|(head, _)| head).filter(|head| head.chars().count() > DERIVED_CHARS / 2);
    format!("{}...", at_word.unwrap_or(&cut).trim_end())
}

fn shorten(text: &str, chars: usize) -> String {
    text.chars().take(chars).collect::<String>().trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn invisible_characters_and_extra_space_go() {
        assert_eq!(clean("  Fix\u{200b} the\n\tbuild \u{202e}now\u{0}\u{7}  "), "Fix the build now");
        assert_eq!(clean("\u{feff}\u{200d}"), "");
    }

    #[test]
    fn derived_titles_are_the_first_line_with_words() {
        assert_eq!(derive("\n\n---\nWhat is in this folder?\nmore"), "What is in this folder?");
        assert_eq!(derive("  "), "");
        let long = derive(&"abcdefghi ".repeat(20));
        assert!(long.ends_with("abcdefghi...") && long.chars().count() <= DERIVED_CHARS, "{long}");
        assert_eq!(derive(&"字".repeat(200)).chars().count(), DERIVED_CHARS);
    }

    #[test]
    fn numbers_are_told_from_other_words() {
        assert_eq!(base_of("Fix build #2"), "Fix build");
        assert_eq!(base_of("Issue #"), "Issue #");
        assert_eq!(base_of("See #12a"), "See #12a");
        assert_eq!(base_of(" #2"), " #2");
        assert_eq!(number_of("Fix build #12", "Fix build"), Some(12));
        assert_eq!(number_of("Fix building #12", "Fix build"), None);
    }

    proptest! {
        #[test]
        fn every_text_gives_a_free_title(titles in proptest::collection::vec("\\PC{0,120}|a{98,101}|a( #2)?", 1..12)) {
            let conn = crate::schema::reference().unwrap();
            for (at, title) in titles.iter().enumerate() {
                let free = free(&conn, title).unwrap();
                if let Some(free) = &free {
                    prop_assert!(free.chars().count() <= MAX_CHARS && !free.is_empty());
                }
                conn.execute("INSERT INTO sessions (id, source, started_at, title) VALUES (?1, 'cli', 0, ?2)",
                    params![at.to_string(), free]).unwrap();
            }
        }
    }
}
