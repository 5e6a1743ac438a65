//! `$name` and `${name…}`.

use super::cursor::Cursor;
use super::words::Within;
use super::{Parameter, Unreadable};

/// Operators behind a parameter's name; the longest that fits counts.
const OPERATORS: [&str; 21] = [
    ":-", ":=", ":?", ":+", "%%", "##", "//", "/#", "/%", "^^", ",,", "-", "=", "?", "+", ":", "%", "#", "/",
    "^", ",",
];

impl Cursor {
    /// The name behind a `$`.
    pub(super) fn plain_parameter(&mut self) -> Parameter {
        let name = self.name_or_sign(false);
        Parameter { name, ..Parameter::default() }
    }

    fn name_or_sign(&mut self, many_digits: bool) -> String {
        let start = self.place();
        match self.peek() {
            Some(c) if c.is_ascii_alphabetic() || c == '_' => {
                while self.peek().is_some_and(|c| c.is_ascii_alphanumeric() || c == '_') {
                    self.skip(1);
                    self.join_lines(0);
                }
            }
            Some(c) if c.is_ascii_digit() && many_digits => {
                while self.peek().is_some_and(|c| c.is_ascii_digit()) {
                    self.skip(1);
                }
            }
            Some(_) => self.skip(1),
            None => {}
        }
        self.source_from(start)
    }

    /// What stands in `${…}`; the closing brace is stepped over.
    pub(super) fn braced_parameter(&mut self, quoted: bool) -> Result<Parameter, Unreadable> {
        let mut parameter = Parameter::default();
        let closes_after_sign = self.ahead(1) == Some('}');
        if self.peek() == Some('#') && !closes_after_sign {
            // `${#}` counts the parameters, and `${#-x}` gives it a default; `${#name}` is a length.
            parameter.length = self.ahead(1).is_some_and(|c| c.is_ascii_alphanumeric() || "_@*".contains(c));
            if parameter.length {
                self.skip(1);
            }
        } else if self.peek() == Some('!') && !closes_after_sign {
            parameter.indirect = true;
            self.skip(1);
        }
        match self.peek() {
            Some(c) if c.is_ascii_alphanumeric() || "_@*#?-$!".contains(c) => {
                parameter.name = self.name_or_sign(true);
            }
            // `${ command; }` of the newest bash and what else there may be.
            Some(other) => return Err(Unreadable::Unexpected(other)),
            None => return Err(Unreadable::Open("${")),
        }
        if self.takes("[") {
            parameter.index = Some(self.pieces(Within::Brackets)?);
            self.closes(']', "[")?;
        }
        if self.takes("@") {
            "@".clone_into(&mut parameter.operator);
        } else if let Some(operator) = OPERATORS.into_iter().find(|operator| self.looks_at(operator)) {
            self.skip(operator.len());
            operator.clone_into(&mut parameter.operator);
        } else if self.peek() == Some('*') {
            // `${!prefix*}`.
            self.skip(1);
            "@".clone_into(&mut parameter.operator);
        }
        let is_default =
            matches!(parameter.operator.as_str(), ":-" | "-" | ":=" | "=" | ":+" | "+" | ":?" | "?");
        parameter.operand = self.pieces(Within::Braces(quoted && is_default))?;
        if parameter.operator.is_empty() && !parameter.operand.is_empty() {
            return Err(Unreadable::Unexpected('{'));
        }
        self.closes('}', "${")?;
        Ok(parameter)
    }
}
