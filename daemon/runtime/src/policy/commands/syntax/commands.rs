//! Lists, pipelines, simple commands and redirects.

use super::cursor::{Cursor, is_meta, is_name};
use super::{
    Assign, Command, Item, Kind, Operator, Piece, Pipeline, Redirect, Script, Target, Unreadable, Value, Word,
};

/// Words that end the list in which they begin a command.
const ENDS: [&str; 8] = ["then", "do", "done", "fi", "elif", "else", "esac", "}"];

impl Cursor {
    /// Commands up to the text's end, a closing parenthesis, `;;` or a word that ends a list.
    pub(super) fn script(&mut self) -> Result<Script, Unreadable> {
        let mut items = Vec::new();
        loop {
            self.lines()?;
            if self.peek().is_none_or(|c| c == ')')
                || self.looks_at(";;")
                || self.looks_at(";&")
                || self.at_end_word()
            {
                return Ok(Script { items });
            }
            let mut chain = vec![self.pipeline()?];
            let background = loop {
                self.blanks();
                if self.takes("&&") || self.takes("||") {
                    self.lines()?;
                    chain.push(self.pipeline()?);
                    continue;
                }
                break match self.peek() {
                    Some(';') if self.ahead(1) != Some(';') && self.ahead(1) != Some('&') => {
                        self.skip(1);
                        false
                    }
                    Some('&') => {
                        self.skip(1);
                        true
                    }
                    Some('\n' | ')' | ';') | None => false,
                    Some(_) if self.at_end_word() => false,
                    Some(other) => return Err(Unreadable::Unexpected(other)),
                };
            };
            items.push(Item { chain, background });
        }
    }

    pub(super) fn at_end_word(&self) -> bool {
        ENDS.iter().any(|word| self.at_keyword(word))
    }

    /// Whether exactly this word, unquoted, comes next.
    pub(super) fn at_keyword(&self, word: &str) -> bool {
        self.looks_at(word) && self.ahead(word.len()).is_none_or(is_meta)
    }

    fn pipeline(&mut self) -> Result<Pipeline, Unreadable> {
        loop {
            self.blanks();
            if self.at_keyword("!") {
                self.skip(1);
            } else if self.at_keyword("time") {
                self.note_head("time");
                self.skip(4);
                self.blanks();
                if self.at_keyword("-p") {
                    self.skip(2);
                }
                self.blanks();
                if self.peek().is_none_or(|c| matches!(c, '\n' | ';' | '&' | '|' | ')')) {
                    return Ok(Pipeline { commands: Vec::new() });
                }
            } else {
                break;
            }
        }
        let mut commands = vec![self.deeper(Self::command)?];
        loop {
            self.blanks();
            if self.peek() != Some('|') || self.ahead(1) == Some('|') {
                return Ok(Pipeline { commands });
            }
            self.skip(1);
            self.takes("&");
            self.lines()?;
            commands.push(self.deeper(Self::command)?);
        }
    }

    pub(super) fn command(&mut self) -> Result<Command, Unreadable> {
        let Some(kind) = self.compound()? else { return self.simple() };
        let mut redirects = Vec::new();
        loop {
            self.blanks();
            match self.redirect()? {
                Some(redirect) => redirects.push(redirect),
                None => return Ok(Command { kind, redirects }),
            }
        }
    }

    fn simple(&mut self) -> Result<Command, Unreadable> {
        let (mut assigns, mut words, mut redirects) = (Vec::new(), Vec::<Word>::new(), Vec::new());
        loop {
            self.blanks();
            if let Some(redirect) = self.redirect()? {
                redirects.push(redirect);
                continue;
            }
            let before_program = words.is_empty();
            let declares = words.first().is_some_and(|word| {
                matches!(word.source.as_str(), "declare" | "typeset" | "local" | "export" | "readonly")
            });
            if (before_program || declares)
                && let Some(assign) = self.assignment()?
            {
                assigns.push(assign);
                continue;
            }
            let Some(word) = self.word()? else { break };
            if before_program {
                self.note_head(&word.source);
            }
            words.push(word);
            if words.len() == 1 && assigns.is_empty() && redirects.is_empty() {
                self.blanks();
                if self.peek() == Some('(') {
                    self.skip(1);
                    self.blanks();
                    self.closes(')', "(")?;
                    let name = words.remove(0).source;
                    return self.function_body(name);
                }
            }
        }
        if assigns.is_empty() && words.is_empty() && redirects.is_empty() {
            return Err(Unreadable::Unexpected(self.peek().unwrap_or('\n')));
        }
        Ok(Command { kind: Kind::Simple { assigns, words }, redirects })
    }

    /// `name=…` at this place; nothing is read when it is none.
    fn assignment(&mut self) -> Result<Option<Assign>, Unreadable> {
        let start = self.place();
        while self.peek().is_some_and(|c| c.is_ascii_alphanumeric() || c == '_') {
            self.skip(1);
        }
        let name = self.source_from(start);
        if !is_name(&name) {
            self.back_to(start);
            return Ok(None);
        }
        let mut index = None;
        if self.peek() == Some('[') {
            self.skip(1);
            index = Some(self.deeper(|cursor| cursor.pieces(super::words::Within::Brackets))?);
            if self.peek() != Some(']') {
                self.back_to(start);
                return Ok(None);
            }
            self.skip(1);
        }
        let append = self.takes("+=");
        if !append && !self.takes("=") {
            self.back_to(start);
            return Ok(None);
        }
        let element = index.is_some();
        let mut expanded_index = index.unwrap_or_default();
        expanded_index.retain(|piece| !matches!(piece, Piece::Bare(_) | Piece::Quoted(_)));
        let value = if self.takes("(") {
            let mut values = Vec::new();
            loop {
                self.lines()?;
                if self.takes(")") {
                    break;
                }
                match self.word()? {
                    Some(word) => values.push(word),
                    None => return Err(Unreadable::Open("(")),
                }
            }
            Value::Array(values)
        } else {
            let mut word = self.word()?.unwrap_or_default();
            if !expanded_index.is_empty() {
                // What the index expands runs as well; the value is an element's and stays unknown.
                word.pieces.push(Piece::Arithmetic(expanded_index));
            }
            Value::One(word)
        };
        Ok(Some(Assign { name, append, element, value }))
    }

    /// The redirect at this place; nothing is read when there is none.
    fn redirect(&mut self) -> Result<Option<Redirect>, Unreadable> {
        let start = self.place();
        let mut descriptor = None;
        if self.looks_at("{") {
            self.skip(1);
            while self.peek().is_some_and(|c| c.is_ascii_alphanumeric() || c == '_') {
                self.skip(1);
            }
            if !self.takes("}") || !matches!(self.peek(), Some('<' | '>')) {
                self.back_to(start);
                return Ok(None);
            }
            // The shell chooses a free one.
            descriptor = Some(u32::MAX);
        } else {
            while let Some(digit) = self.peek().and_then(|c| c.to_digit(10)) {
                descriptor = Some(descriptor.unwrap_or(0_u32).saturating_mul(10).saturating_add(digit));
                self.skip(1);
            }
        }
        let is_process = matches!(self.peek(), Some('<' | '>')) && self.ahead(1) == Some('(');
        const SIGNS: [(&str, Operator); 12] = [
            ("<<<", Operator::Here),
            ("<<-", Operator::Here),
            ("<<", Operator::Here),
            ("<&", Operator::DuplicateRead),
            ("<>", Operator::ReadWrite),
            ("<", Operator::Read),
            ("&>>", Operator::Append),
            ("&>", Operator::Write),
            (">>", Operator::Append),
            (">&", Operator::Duplicate),
            (">|", Operator::Write),
            (">", Operator::Write),
        ];
        let found = SIGNS.into_iter().find(|(sign, _)| self.looks_at(sign));
        let Some((sign, mut operator)) = found.filter(|_| !is_process) else {
            self.back_to(start);
            return Ok(None);
        };
        self.skip(sign.len());
        self.blanks();
        if matches!(sign, "<<" | "<<-") {
            let delimiter = self.word()?.ok_or(Unreadable::Unexpected('<'))?;
            let quoted = delimiter.source.contains(['\'', '"', '\\']);
            let mut text = String::new();
            for piece in &delimiter.pieces {
                match piece {
                    Piece::Bare(part) | Piece::Quoted(part) => text.push_str(part),
                    _ => return Err(Unreadable::Unexpected('$')),
                }
            }
            let body = self.announce(text, quoted, sign == "<<-");
            return Ok(Some(Redirect { descriptor, operator, target: Target::Heredoc(body) }));
        }
        let word = self.word()?.ok_or(Unreadable::Unexpected('>'))?;
        let is_descriptor = word.source.trim_end_matches('-').chars().all(|c| c.is_ascii_digit());
        if matches!(operator, Operator::Duplicate | Operator::DuplicateRead) && !is_descriptor {
            // `>& file` writes both streams; `>&$fd` may be either and is taken for the worse.
            operator = if sign == "<&" { Operator::Read } else { Operator::Write };
        }
        Ok(Some(Redirect { descriptor, operator, target: Target::Word(word) }))
    }
}
