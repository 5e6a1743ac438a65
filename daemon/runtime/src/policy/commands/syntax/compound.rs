//! Groups, conditions, loops, functions.

use std::rc::Rc;

use super::cursor::{Cursor, is_name};
use super::words::Within;
use super::{Command, Kind, Piece, Script, Unreadable, Word};

impl Cursor {
    /// The compound command at this place; `None`, and nothing read, when a simple one begins here.
    pub(super) fn compound(&mut self) -> Result<Option<Kind>, Unreadable> {
        self.blanks();
        if self.looks_at("((") {
            self.skip(1);
            if let Some(pieces) = self.arithmetic()? {
                return Ok(Some(Kind::Test { words: vec![Word { pieces, source: String::new() }] }));
            }
            return self.group().map(Some);
        }
        if self.takes("(") {
            return self.group().map(Some);
        }
        let keyword = ["{", "[[", "if", "while", "until", "for", "select", "case", "function", "coproc"]
            .into_iter()
            .find(|word| self.at_keyword(word));
        let Some(keyword) = keyword else { return Ok(None) };
        let start = self.place();
        self.skip(keyword.len());
        let kind = match keyword {
            "{" => {
                let body = self.script()?;
                self.expect("}", "{")?;
                Kind::Group { body, subshell: false }
            }
            "[[" => self.test()?,
            "if" => self.condition()?,
            "while" | "until" => {
                let condition = self.script()?;
                let body = self.body()?;
                Kind::Loop { condition, body }
            }
            "for" | "select" => self.each()?,
            "case" => self.case()?,
            "function" => {
                self.blanks();
                let name = self.word()?.ok_or(Unreadable::Open("function"))?.source;
                self.blanks();
                if self.takes("(") {
                    self.blanks();
                    self.closes(')', "(")?;
                }
                return self.function_body(name).map(|command| Some(command.kind));
            }
            _ => self.beside(start)?,
        };
        Ok(Some(kind))
    }

    fn group(&mut self) -> Result<Kind, Unreadable> {
        let body = self.script()?;
        self.closes(')', "(")?;
        Ok(Kind::Group { body, subshell: true })
    }

    fn expect(&mut self, word: &str, open: &'static str) -> Result<(), Unreadable> {
        self.lines()?;
        if self.at_keyword(word) {
            self.skip(word.len());
            return Ok(());
        }
        Err(self.peek().map_or(Unreadable::Open(open), Unreadable::Unexpected))
    }

    /// `do … done`, or the braces that bash allows instead.
    fn body(&mut self) -> Result<Script, Unreadable> {
        self.blanks();
        self.takes(";");
        self.lines()?;
        if self.at_keyword("{") {
            self.skip(1);
            let body = self.script()?;
            self.expect("}", "{")?;
            return Ok(body);
        }
        self.expect("do", "do")?;
        let body = self.script()?;
        self.expect("done", "do")?;
        Ok(body)
    }

    fn condition(&mut self) -> Result<Kind, Unreadable> {
        let mut arms = Vec::new();
        loop {
            let condition = self.script()?;
            self.expect("then", "if")?;
            arms.push((condition, self.script()?));
            if self.at_keyword("elif") {
                self.skip(4);
                continue;
            }
            let otherwise = if self.at_keyword("else") {
                self.skip(4);
                Some(self.script()?)
            } else {
                None
            };
            self.expect("fi", "if")?;
            return Ok(Kind::If { arms, otherwise });
        }
    }

    fn each(&mut self) -> Result<Kind, Unreadable> {
        self.blanks();
        if self.looks_at("((") {
            self.skip(1);
            let arithmetic = self.arithmetic()?.ok_or(Unreadable::Open("(("))?;
            return Ok(Kind::Count { arithmetic, body: self.body()? });
        }
        let name = self.word()?.ok_or(Unreadable::Open("for"))?.source;
        if !is_name(&name) {
            return Err(Unreadable::Unexpected('$'));
        }
        self.lines()?;
        let mut words = None;
        if self.at_keyword("in") {
            self.skip(2);
            let mut list = Vec::new();
            loop {
                self.blanks();
                match self.word()? {
                    Some(word) => list.push(word),
                    None => break,
                }
            }
            words = Some(list);
        }
        Ok(Kind::For { name, words, body: self.body()? })
    }

    fn case(&mut self) -> Result<Kind, Unreadable> {
        self.blanks();
        let subject = self.word()?.ok_or(Unreadable::Open("case"))?;
        self.expect("in", "case")?;
        let mut arms = Vec::new();
        loop {
            self.lines()?;
            if self.at_keyword("esac") {
                self.skip(4);
                return Ok(Kind::Case { subject, arms });
            }
            self.takes("(");
            let mut patterns = Vec::new();
            loop {
                self.blanks();
                patterns.push(self.word()?.ok_or(Unreadable::Open("case"))?);
                self.blanks();
                if !self.takes("|") {
                    break;
                }
            }
            self.closes(')', "case")?;
            let body = self.script()?;
            arms.push((patterns, body));
            if !(self.takes(";;&") || self.takes(";;") || self.takes(";&") || self.at_keyword("esac")) {
                return Err(Unreadable::Open("case"));
            }
        }
    }

    /// `[[ … ]]`: its operators do not matter, only the words.
    fn test(&mut self) -> Result<Kind, Unreadable> {
        let mut words: Vec<Word> = Vec::new();
        loop {
            self.lines()?;
            if self.at_keyword("]]") {
                self.skip(2);
                return Ok(Kind::Test { words });
            }
            if words.last().is_some_and(|word| word.source == "=~") {
                let pieces: Vec<Piece> = self.pieces(Within::Regex)?;
                words.push(Word { pieces, source: "regex".to_owned() });
                continue;
            }
            if matches!(self.peek(), Some('(' | ')' | '<' | '>' | '&' | '|')) {
                self.skip(1);
                continue;
            }
            match self.word()? {
                Some(word) => words.push(word),
                None => return Err(self.peek().map_or(Unreadable::Open("[["), Unreadable::Unexpected)),
            }
        }
    }

    pub(super) fn function_body(&mut self, name: String) -> Result<Command, Unreadable> {
        self.lines()?;
        let body = self.deeper(Self::command)?;
        if matches!(body.kind, Kind::Simple { .. }) {
            return Err(Unreadable::Open("function"));
        }
        Ok(Command { kind: Kind::Function { name, body: Rc::new(body) }, redirects: Vec::new() })
    }

    /// `coproc [name] command`.
    fn beside(&mut self, start: usize) -> Result<Kind, Unreadable> {
        self.note_head("coproc");
        self.blanks();
        let place = self.place();
        let named = self.word()?.is_some_and(|word| is_name(&word.source));
        self.blanks();
        let compound_follows = self.peek() == Some('(') || self.at_keyword("{");
        if !(named && compound_follows) {
            self.back_to(place);
        }
        if self.place() == start {
            return Err(Unreadable::Open("coproc"));
        }
        Ok(Kind::Beside(Box::new(self.deeper(Self::command)?)))
    }
}
