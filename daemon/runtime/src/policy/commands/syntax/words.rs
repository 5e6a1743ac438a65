//! Words: quotes, escapes, substitutions.

use std::rc::Rc;

use super::cursor::{Cursor, is_meta};
use super::{Piece, Script, Unreadable, Word};

/// Where pieces are read, which decides what ends them and what quotes mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Within {
    /// A word of a command.
    Plain,
    /// `"…"`, up to the quote.
    Double,
    /// The operand of `${…}`, up to the brace; `true` when double-quoted.
    Braces(bool),
    /// An index, up to the bracket.
    Brackets,
    /// `@(…)`, up to the parenthesis.
    Pattern,
    /// The right side of `=~`, up to a space; parentheses belong to it.
    Regex,
    /// A heredoc's text, up to its end.
    Heredoc,
}

impl Within {
    fn quotes(self) -> bool {
        matches!(self, Self::Double | Self::Heredoc | Self::Braces(true))
    }
}

/// Pieces under construction; neighbours of a kind are joined.
#[derive(Default)]
pub(super) struct Pieces(Vec<Piece>);

impl Pieces {
    fn bare(&mut self, c: char) {
        match self.0.last_mut() {
            Some(Piece::Bare(text)) => text.push(c),
            _ => self.0.push(Piece::Bare(c.to_string())),
        }
    }

    fn quoted(&mut self, text: &str) {
        match self.0.last_mut() {
            Some(Piece::Quoted(before)) => before.push_str(text),
            _ => self.0.push(Piece::Quoted(text.to_owned())),
        }
    }

    /// Whether a parenthesis here begins a pattern such as `@(…)`.
    fn end_in_pattern_sign(&self) -> bool {
        matches!(self.0.last(), Some(Piece::Bare(text)) if text.ends_with(['?', '*', '+', '@', '!']))
    }

    fn literal(&mut self, c: char, within: Within) {
        if within.quotes() { self.quoted(c.encode_utf8(&mut [0; 4])) } else { self.bare(c) }
    }
}

impl Cursor {
    /// The word at this place; `None` when none begins here.
    pub(super) fn word(&mut self) -> Result<Option<Word>, Unreadable> {
        let start = self.place();
        let pieces = self.pieces(Within::Plain)?;
        let source = self.source_from(start);
        Ok((self.place() > start).then_some(Word { pieces, source }))
    }

    /// The text of a heredoc.
    pub(super) fn heredoc_pieces(&mut self) -> Result<Vec<Piece>, Unreadable> {
        self.pieces(Within::Heredoc)
    }

    pub(super) fn pieces(&mut self, within: Within) -> Result<Vec<Piece>, Unreadable> {
        let mut pieces = Pieces::default();
        let mut open = 0_usize;
        while let Some(c) = self.peek() {
            match (within, c) {
                (Within::Plain, '<' | '>') if self.opens_process() => {
                    self.skip(2);
                    let script = self.substitution()?;
                    pieces.0.push(Piece::Process { script, reads: c == '<' });
                }
                (Within::Plain, '(') if pieces.end_in_pattern_sign() => {
                    self.skip(1);
                    let inner = self.deeper(|cursor| cursor.pieces(Within::Pattern))?;
                    self.closes(')', "(")?;
                    pieces.0.push(Piece::Pattern(inner));
                }
                (Within::Plain, c) if is_meta(c) => break,
                (Within::Double, '"')
                | (Within::Braces(_), '}')
                | (Within::Brackets, ']')
                | (Within::Regex, ' ' | '\t' | '\n') => break,
                (Within::Pattern, ')') if open == 0 => break,
                (Within::Pattern, '(') => {
                    open += 1;
                    self.skip(1);
                }
                (Within::Pattern, ')') => {
                    open -= 1;
                    self.skip(1);
                }
                (_, '\\') => self.escape(within, &mut pieces),
                (Within::Double | Within::Heredoc, '\'') | (Within::Heredoc, '"') => {
                    self.skip(1);
                    pieces.quoted(c.encode_utf8(&mut [0; 4]));
                }
                (Within::Braces(true), '\'') => {
                    self.skip(1);
                    pieces.quoted("'");
                }
                (_, '\'') => {
                    self.skip(1);
                    let text = self.single_quoted()?;
                    pieces.quoted(&text);
                }
                (_, '"') => {
                    self.skip(1);
                    self.double_quoted(&mut pieces)?;
                }
                (_, '`') => {
                    self.skip(1);
                    let script = self.backticks(within == Within::Double)?;
                    pieces.0.push(Piece::Command { script, quoted: within.quotes() });
                }
                (_, '$') => self.dollar(within, &mut pieces)?,
                (_, c) => {
                    self.skip(1);
                    pieces.literal(c, within);
                }
            }
        }
        Ok(pieces.0)
    }

    /// Whether `<(` or `>(` stands here.
    fn opens_process(&mut self) -> bool {
        self.join_lines(1);
        self.ahead(1) == Some('(')
    }

    pub(super) fn closes(&mut self, with: char, open: &'static str) -> Result<(), Unreadable> {
        if self.next() == Some(with) { Ok(()) } else { Err(Unreadable::Open(open)) }
    }

    fn escape(&mut self, within: Within, pieces: &mut Pieces) {
        self.skip(1);
        match self.next() {
            None => pieces.quoted("\\"),
            Some('\n') => {}
            Some(c) => {
                let meant = match within {
                    Within::Double => matches!(c, '$' | '`' | '"' | '\\'),
                    Within::Braces(true) => matches!(c, '$' | '`' | '"' | '\\' | '}'),
                    Within::Heredoc => matches!(c, '$' | '`' | '\\'),
                    _ => true,
                };
                if !meant {
                    pieces.quoted("\\");
                }
                pieces.quoted(c.encode_utf8(&mut [0; 4]));
            }
        }
    }

    fn single_quoted(&mut self) -> Result<String, Unreadable> {
        let start = self.place();
        loop {
            match self.peek() {
                None => return Err(Unreadable::Open("'")),
                Some('\'') => {
                    let text = self.source_from(start);
                    self.skip(1);
                    return Ok(text);
                }
                Some(_) => self.skip(1),
            }
        }
    }

    fn double_quoted(&mut self, pieces: &mut Pieces) -> Result<(), Unreadable> {
        // An empty pair still makes a word.
        pieces.quoted("");
        let inner = self.deeper(|cursor| cursor.pieces(Within::Double))?;
        pieces.0.extend(inner);
        self.closes('"', "\"")
    }

    /// The script up to the closing parenthesis, which is stepped over.
    pub(super) fn substitution(&mut self) -> Result<Rc<Script>, Unreadable> {
        self.substitutes(1);
        let script = self.deeper(Self::script)?;
        self.substitutes(-1);
        self.closes(')', "$(")?;
        Ok(Rc::new(script))
    }

    /// Backticks are unescaped first and then read as a text of their own.
    fn backticks(&mut self, in_double: bool) -> Result<Rc<Script>, Unreadable> {
        let mut text = String::new();
        loop {
            match self.next() {
                None => return Err(Unreadable::Open("`")),
                Some('`') => break,
                Some('\\') => match self.next() {
                    Some(c) if matches!(c, '$' | '`' | '\\') || (in_double && c == '"') => text.push(c),
                    Some(c) => text.extend(['\\', c]),
                    None => return Err(Unreadable::Open("`")),
                },
                Some(c) => text.push(c),
            }
        }
        let depth = self.depth();
        self.deeper(|cursor| {
            let mut inner = Self::new(&text, depth + 1);
            let script = inner.script()?;
            if let Some(other) = inner.peek() {
                return Err(Unreadable::Unexpected(other));
            }
            inner.close_heredocs();
            cursor.note_heads(inner.into_heads());
            Ok(Rc::new(script))
        })
    }

    fn dollar(&mut self, within: Within, pieces: &mut Pieces) -> Result<(), Unreadable> {
        let quoted = within.quotes();
        self.join_lines(1);
        match self.ahead(1) {
            Some('(') => {
                self.skip(2);
                if self.peek() == Some('(')
                    && let Some(inner) = self.arithmetic()?
                {
                    pieces.0.push(Piece::Arithmetic(inner));
                    return Ok(());
                }
                let script = self.substitution()?;
                pieces.0.push(Piece::Command { script, quoted });
            }
            Some('[') => {
                self.skip(2);
                let inner = self.deeper(|cursor| cursor.pieces(Within::Brackets))?;
                self.closes(']', "$[")?;
                pieces.0.push(Piece::Arithmetic(inner));
            }
            Some('{') => {
                self.skip(2);
                let parameter = self.deeper(|cursor| cursor.braced_parameter(quoted))?;
                pieces.0.push(Piece::Parameter { parameter: Box::new(parameter), quoted });
            }
            Some('\'') if !quoted => {
                self.skip(2);
                let text = self.ansi_c()?;
                pieces.quoted(&text);
            }
            Some('"') if !quoted => {
                self.skip(2);
                self.double_quoted(pieces)?;
            }
            Some(c)
                if c.is_ascii_alphanumeric()
                    || matches!(c, '_' | '@' | '*' | '#' | '?' | '-' | '$' | '!') =>
            {
                self.skip(1);
                let parameter = Box::new(self.plain_parameter());
                pieces.0.push(Piece::Parameter { parameter, quoted });
            }
            _ => {
                self.skip(1);
                pieces.literal('$', within);
            }
        }
        Ok(())
    }

    /// `((…))`, of which the first parenthesis is behind and the second here. `None`, and nothing read, when the
    /// parentheses turn out to be groups.
    pub(super) fn arithmetic(&mut self) -> Result<Option<Vec<Piece>>, Unreadable> {
        let start = self.place();
        self.skip(1);
        let mut pieces = Pieces::default();
        let mut open = 0_usize;
        loop {
            match self.peek() {
                None => break,
                Some(')') if open == 0 => {
                    if self.takes("))") {
                        return Ok(Some(pieces.0));
                    }
                    break;
                }
                Some(')') => {
                    open -= 1;
                    self.skip(1);
                }
                Some('(') => {
                    open += 1;
                    self.skip(1);
                }
                Some('\\') => self.escape(Within::Plain, &mut pieces),
                Some('\'') => {
                    self.skip(1);
                    let Ok(text) = self.single_quoted() else { break };
                    // Single quotes do not keep what they hold from being expanded here.
                    if text.contains(['$', '`']) {
                        let mut inner = Self::new(&text, self.depth());
                        pieces.0.extend(inner.pieces(Within::Heredoc)?);
                        self.note_heads(inner.into_heads());
                    }
                }
                Some('"') => {
                    self.skip(1);
                    self.double_quoted(&mut pieces)?;
                }
                Some('`') => {
                    self.skip(1);
                    let script = self.backticks(false)?;
                    pieces.0.push(Piece::Command { script, quoted: true });
                }
                Some('$') => self.dollar(Within::Brackets, &mut pieces)?,
                Some(c) => {
                    self.skip(1);
                    pieces.bare(c);
                }
            }
        }
        self.back_to(start);
        Ok(None)
    }

    /// `$'…'`.
    fn ansi_c(&mut self) -> Result<String, Unreadable> {
        let mut bytes: Vec<u8> = Vec::new();
        let push = |c: char, bytes: &mut Vec<u8>| bytes.extend(c.encode_utf8(&mut [0; 4]).bytes());
        loop {
            let c = match self.next() {
                None => return Err(Unreadable::Open("$'")),
                Some('\'') => return Ok(String::from_utf8_lossy(&bytes).into_owned()),
                Some('\\') => match self.next() {
                    None => return Err(Unreadable::Open("$'")),
                    Some(c) => c,
                },
                Some(c) => {
                    push(c, &mut bytes);
                    continue;
                }
            };
            match c {
                'a' => bytes.push(7),
                'b' => bytes.push(8),
                'e' | 'E' => bytes.push(27),
                'f' => bytes.push(12),
                'n' => bytes.push(b'\n'),
                'r' => bytes.push(b'\r'),
                't' => bytes.push(b'\t'),
                'v' => bytes.push(11),
                'x' => {
                    let value = if self.takes("{") {
                        let value = self.digits(16, 8);
                        self.takes("}");
                        value
                    } else {
                        self.digits(16, 2)
                    };
                    bytes.push(value.to_le_bytes()[0]);
                }
                'u' | 'U' => {
                    let value = self.digits(16, if c == 'u' { 4 } else { 8 });
                    push(char::from_u32(value).unwrap_or('\u{fffd}'), &mut bytes);
                }
                'c' => {
                    if let Some(control) = self.next().and_then(|c| u8::try_from(c).ok()) {
                        bytes.push(control & 0x1f);
                    }
                }
                '0'..='7' => {
                    self.back_to(self.place() - 1);
                    bytes.push(self.digits(8, 3).to_le_bytes()[0]);
                }
                '\\' | '\'' | '"' | '?' => push(c, &mut bytes),
                other => {
                    bytes.push(b'\\');
                    push(other, &mut bytes);
                }
            }
        }
    }

    fn digits(&mut self, radix: u32, most: usize) -> u32 {
        let mut value = 0_u32;
        for _ in 0..most {
            let Some(digit) = self.peek().and_then(|c| c.to_digit(radix)) else { break };
            value = value.wrapping_mul(radix).wrapping_add(digit);
            self.skip(1);
        }
        value
    }
}
