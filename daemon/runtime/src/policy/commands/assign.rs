//! Assignments, and what arithmetic makes of the values.

use super::expand::Arg;
use super::places::absolute;
use super::scope::{MAYBE, Scope, UNKNOWN, Variable};
use super::simple::Simple;
use super::syntax::{Assign, Piece, Value};
use super::walk::Walker;

impl Walker<'_> {
    /// Text in arithmetic is computed, and an index in it may run commands.
    pub(super) fn arithmetic(&mut self, pieces: &[Piece], scope: &Scope) {
        let injected = |value: &str| value.contains("$(") || value.contains('`');
        let named = pieces.iter().filter_map(|piece| match piece {
            Piece::Bare(text) | Piece::Quoted(text) => Some(text.as_str()),
            Piece::Parameter { parameter, .. } => Some(parameter.name.as_str()),
            _ => None,
        });
        for text in named {
            let names = text.split(|c: char| !c.is_alphanumeric() && c != '_');
            let values = names.filter_map(|name| scope.get(name));
            for value in values {
                if matches!(value, Variable::One(value) if injected(value)) {
                    self.report.ask("syntax.arithmetic", "computes a text that contains a command", text);
                }
            }
        }
    }

    pub(super) fn assign(&mut self, assign: &Assign, scope: &mut Scope) -> (String, Arg) {
        let (value, shown) = match &assign.value {
            Value::One(word) => {
                let arg = self.expand_one(word, scope);
                let text = if arg.unsure { format!("{MAYBE}{}", arg.text) } else { arg.text.clone() };
                (Variable::One(text), arg)
            }
            Value::Array(words) => {
                let mut values = Vec::new();
                for word in words {
                    values.extend(self.expand(word, scope));
                }
                let shown =
                    Arg::known(&values.iter().map(|arg| arg.text.as_str()).collect::<Vec<_>>().join(" "));
                // `[n]=value` stands anywhere.
                let open = values.iter().any(|arg| arg.splits)
                    || words.iter().any(|word| word.source.starts_with('['));
                let texts = values.into_iter().map(|arg| arg.text).collect();
                (if open { Variable::One(UNKNOWN.to_string()) } else { Variable::Many(texts) }, shown)
            }
        };
        let value = if assign.element {
            Variable::One(UNKNOWN.to_string())
        } else if assign.append {
            match (scope.get(&assign.name).cloned(), value) {
                (Some(Variable::One(before)), Variable::One(more)) => Variable::One(before + &more),
                (Some(Variable::Many(mut before)), Variable::Many(more)) => {
                    before.extend(more);
                    Variable::Many(before)
                }
                (None, Variable::One(more)) => Variable::One(format!("{UNKNOWN}{more}")),
                _ => Variable::One(UNKNOWN.to_string()),
            }
        } else {
            value
        };
        scope.set(&assign.name, value);
        (assign.name.clone(), shown)
    }

    /// Known texts that a command writes to files, or copies from one to another.
    pub(super) fn copies(&mut self, simple: &Simple, output: Option<&str>) {
        let cwd = simple.cwd.as_deref();
        let files: Vec<String> = simple
            .args
            .iter()
            .filter(|arg| !arg.text.starts_with('-'))
            .filter_map(|arg| absolute(&arg.text, cwd))
            .collect();
        match (simple.program.as_str(), files.as_slice(), output) {
            ("tee", files, Some(text)) => {
                self.written.extend(files.iter().map(|file| (file.clone(), text.to_owned())));
            }
            ("cp" | "mv" | "ln" | "install", [source, target], _) => {
                if let Some(text) = self.written.get(source).cloned() {
                    self.written.insert(target.clone(), text);
                }
            }
            _ => {}
        }
    }
}
