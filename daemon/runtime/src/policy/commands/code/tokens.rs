//! Splits a one-liner into names, texts, numbers and signs.

/// A token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    Name(String),
    /// A string's content, escapes as written, and the letters before its quote.
    Text {
        content: String,
        prefix: String,
    },
    Number,
    Sign(char),
}

impl Token {
    pub(super) fn is(&self, sign: char) -> bool {
        *self == Self::Sign(sign)
    }

    pub(super) fn name(&self) -> Option<&str> {
        if let Self::Name(name) = self { Some(name) } else { None }
    }
}

/// How a language writes texts and comments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    Python,
    JavaScript,
}

/// The tokens; `None` for what cannot be told apart for certain.
pub(super) fn tokens(code: &str, style: Style) -> Option<Vec<Token>> {
    let chars: Vec<char> = code.chars().collect();
    let at = |place: usize| chars.get(place).copied();
    let mut tokens: Vec<Token> = Vec::new();
    let mut place = 0;
    while let Some(c) = at(place) {
        if c.is_whitespace() {
            if c == '\n' {
                tokens.push(Token::Sign('\n'));
            }
            place += 1;
        } else if c == '#' && style == Style::Python {
            while at(place).is_some_and(|c| c != '\n') {
                place += 1;
            }
        } else if c == '/' && style == Style::JavaScript {
            // A comment or a pattern; a division is told by what stands before it.
            let divides = matches!(tokens.last(), Some(Token::Number | Token::Sign(')')))
                && !matches!(at(place + 1), Some('/' | '*'));
            if !divides {
                return None;
            }
            tokens.push(Token::Sign('/'));
            place += 1;
        } else if c.is_alphabetic() || c == '_' || c == '$' {
            let start = place;
            while at(place).is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '$') {
                place += 1;
            }
            let name: String = chars.get(start..place)?.iter().collect();
            // Names in other letters are folded by the language; we do not.
            if !name.is_ascii() {
                return None;
            }
            let is_prefix =
                style == Style::Python && name.len() <= 2 && matches!(at(place), Some('"' | '\''));
            if is_prefix {
                let (content, end) = text(&chars, place, style)?;
                tokens.push(Token::Text { content, prefix: name.to_lowercase() });
                place = end;
            } else {
                tokens.push(Token::Name(name));
            }
        } else if c.is_ascii_digit() {
            while at(place).is_some_and(|c| c.is_ascii_alphanumeric() || c == '.' || c == '_') {
                place += 1;
            }
            tokens.push(Token::Number);
        } else if matches!(c, '"' | '\'') || (c == '`' && style == Style::JavaScript) {
            let (content, end) = text(&chars, place, style)?;
            if c == '`' && content.contains("${") {
                return None;
            }
            tokens.push(Token::Text { content, prefix: String::new() });
            place = end;
        } else if c.is_ascii() && !matches!(c, '\\' | '`' | '#') {
            tokens.push(Token::Sign(c));
            place += 1;
        } else {
            return None;
        }
    }
    Some(tokens)
}

/// The string that begins at `start`, and where it ends.
fn text(chars: &[char], start: usize, style: Style) -> Option<(String, usize)> {
    let quote = *chars.get(start)?;
    let triple = style == Style::Python
        && chars.get(start + 1) == Some(&quote)
        && chars.get(start + 2) == Some(&quote);
    let mut place = start + if triple { 3 } else { 1 };
    let mut content = String::new();
    loop {
        let c = *chars.get(place)?;
        if c == '\\' {
            content.push(c);
            content.push(*chars.get(place + 1)?);
            place += 2;
            continue;
        }
        if c == quote {
            if !triple {
                return Some((content, place + 1));
            }
            if chars.get(place + 1) == Some(&quote) && chars.get(place + 2) == Some(&quote) {
                return Some((content, place + 3));
            }
        }
        if c == '\n' && !triple && quote != '`' {
            return None;
        }
        content.push(c);
        place += 1;
    }
}
