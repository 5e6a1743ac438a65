//! The position in a text that is being read, and what every part of the reader needs.

use std::cell::OnceCell;
use std::rc::Rc;

use super::{MAX_DEPTH, Piece, Unreadable, Word};

/// A heredoc whose text is still to come.
struct Pending {
    delimiter: String,
    quoted: bool,
    strip_tabs: bool,
    body: Rc<OnceCell<Word>>,
}

/// Reads one text.
pub(super) struct Cursor {
    text: Vec<char>,
    at: usize,
    depth: usize,
    pending: Vec<Pending>,
    heads: Vec<String>,
    /// Substitutions that are open around this place.
    substitutions: usize,
}

impl Cursor {
    pub(super) fn new(text: &str, depth: usize) -> Self {
        Self {
            text: text.chars().collect(),
            at: 0,
            depth,
            pending: Vec::new(),
            heads: Vec::new(),
            substitutions: 0,
        }
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.text.get(self.at).copied()
    }

    pub(super) fn ahead(&self, by: usize) -> Option<char> {
        self.text.get(self.at + by).copied()
    }

    pub(super) fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += 1;
        Some(c)
    }

    /// Removes joined lines that come `by` characters ahead, where they would part what belongs together.
    pub(super) fn join_lines(&mut self, by: usize) {
        while self.ahead(by) == Some('\\') && self.ahead(by + 1) == Some('\n') {
            self.text.drain(self.at + by..self.at + by + 2);
        }
    }

    pub(super) fn skip(&mut self, count: usize) {
        self.at = (self.at + count).min(self.text.len());
    }

    pub(super) fn looks_at(&self, what: &str) -> bool {
        what.chars().enumerate().all(|(by, c)| self.ahead(by) == Some(c))
    }

    /// Steps over `what` when it comes next.
    pub(super) fn takes(&mut self, what: &str) -> bool {
        let there = self.looks_at(what);
        if there {
            self.skip(what.chars().count());
        }
        there
    }

    pub(super) fn place(&self) -> usize {
        self.at
    }

    pub(super) fn back_to(&mut self, place: usize) {
        self.at = place;
    }

    pub(super) fn source_from(&self, start: usize) -> String {
        self.text.get(start..self.at).unwrap_or_default().iter().collect()
    }

    pub(super) fn depth(&self) -> usize {
        self.depth
    }

    /// Says that a substitution begins (`1`) or ends (`-1`) here.
    pub(super) fn substitutes(&mut self, by: isize) {
        self.substitutions = self.substitutions.saturating_add_signed(by);
    }

    pub(super) fn note_head(&mut self, source: &str) {
        self.heads.push(source.to_owned());
    }

    pub(super) fn note_heads(&mut self, heads: Vec<String>) {
        self.heads.extend(heads);
    }

    pub(super) fn into_heads(self) -> Vec<String> {
        self.heads
    }

    /// Runs a part of the reader one level deeper.
    pub(super) fn deeper<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, Unreadable>,
    ) -> Result<T, Unreadable> {
        if self.depth >= MAX_DEPTH {
            return Err(Unreadable::Deep);
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    /// Spaces, joined lines and a comment.
    pub(super) fn blanks(&mut self) {
        let start = self.at;
        loop {
            match self.peek() {
                Some(' ' | '\t') => self.at += 1,
                Some('\\') if self.ahead(1) == Some('\n') => self.at += 2,
                Some('#') if self.at > start || self.begins_word() => {
                    while self.peek().is_some_and(|c| c != '\n') {
                        self.at += 1;
                    }
                }
                _ => return,
            }
        }
    }

    /// Whether a word could begin here: a comment sign has its meaning only there.
    fn begins_word(&self) -> bool {
        let before = self.at.checked_sub(1).and_then(|before| self.text.get(before));
        before.is_none_or(|c| matches!(c, ' ' | '\t' | '\n' | ';' | '&' | '|' | '(' | ')' | '<' | '>'))
    }

    /// Blanks, line ends, and the heredocs below them.
    pub(super) fn lines(&mut self) -> Result<(), Unreadable> {
        loop {
            self.blanks();
            if self.peek() != Some('\n') {
                return Ok(());
            }
            self.line_end()?;
        }
    }

    /// Steps over a line's end and reads the heredocs that were announced on it.
    pub(super) fn line_end(&mut self) -> Result<(), Unreadable> {
        self.skip(1);
        for pending in std::mem::take(&mut self.pending) {
            let body = self.heredoc_text(&pending);
            let word = if pending.quoted {
                Word { pieces: vec![Piece::Quoted(body.clone())], source: body }
            } else {
                let mut inner = Self::new(&body, self.depth);
                let pieces = inner.heredoc_pieces()?;
                self.heads.append(&mut inner.heads);
                Word { pieces, source: body }
            };
            // Each cell is announced once.
            let _ = pending.body.set(word);
        }
        Ok(())
    }

    fn heredoc_text(&mut self, pending: &Pending) -> String {
        let mut body = String::new();
        while self.peek().is_some() {
            let start = self.at;
            while self.peek().is_some_and(|c| c != '\n') {
                self.at += 1;
            }
            let mut line = self.source_from(start);
            if self.peek() == Some('\n') {
                self.at += 1;
            }
            if pending.strip_tabs {
                line = line.trim_start_matches('\t').to_owned();
            }
            if line == pending.delimiter {
                break;
            }
            // Inside `$(…)` the parenthesis may stand right behind the delimiter.
            let closes =
                line.strip_prefix(pending.delimiter.as_str()).is_some_and(|rest| rest.starts_with(')'));
            if closes && self.substitutions > 0 {
                let tabs =
                    self.text.get(start..).unwrap_or_default().iter().take_while(|c| **c == '\t').count();
                let indent = if pending.strip_tabs { tabs } else { 0 };
                self.at = start + indent + pending.delimiter.chars().count();
                break;
            }
            body.push_str(&line);
            body.push('\n');
        }
        body
    }

    /// Announces a heredoc; its text stands below this line.
    pub(super) fn announce(
        &mut self,
        delimiter: String,
        quoted: bool,
        strip_tabs: bool,
    ) -> Rc<OnceCell<Word>> {
        let body = Rc::new(OnceCell::new());
        self.pending.push(Pending { delimiter, quoted, strip_tabs, body: Rc::clone(&body) });
        body
    }

    /// Heredocs whose text never came are empty.
    pub(super) fn close_heredocs(&mut self) {
        for pending in self.pending.drain(..) {
            let _ = pending.body.set(Word::default());
        }
    }
}

/// Characters that end a word.
pub(super) fn is_meta(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')')
}

/// Whether a name could be a variable's.
pub(super) fn is_name(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}
