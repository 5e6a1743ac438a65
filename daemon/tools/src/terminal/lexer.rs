//! The words of a shell command, as far as a quick look needs them: quotes, here-documents and
//! separators are told apart from words. It decides how a command is started and who reads what is written to it;
//! what may run is decided by the policy, which has a parser of its own.

use std::ops::Range;

/// One simple command and what ends it. Places are in characters.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Simple {
    /// Words without their quotes, assignments before the command left out.
    pub(crate) words: Vec<String>,
    /// A bare `&` ends it.
    pub(crate) background: bool,
    /// Where its first word stands, quotes included.
    pub(crate) first: Range<usize>,
    /// Where it begins, assignments included.
    pub(crate) start: usize,
    /// Behind what ends it.
    pub(crate) end: usize,
    pub(crate) before: Before,
}

/// What stands before a simple command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Before {
    /// The beginning, `;`, `&` or a new line.
    #[default]
    Nothing,
    /// `&&` or `||`.
    AndOr,
    /// `|`.
    Pipe,
    /// A parenthesis, a backtick, or a word such as `do`: it is a part of something larger.
    Inside,
}

impl Simple {
    /// The program's name without its folder.
    pub(crate) fn program(&self) -> &str {
        self.words.first().map_or("", |word| word.rsplit('/').next().unwrap_or(word))
    }

    pub(crate) fn arguments(&self) -> impl Iterator<Item = &str> {
        self.words.iter().skip(1).map(String::as_str)
    }
}

/// Splits a command line into its simple commands, in order.
pub(crate) fn simple_commands(command: &str) -> Vec<Simple> {
    let mut lexer = Lexer { chars: command.chars().collect(), at: 0, ..Lexer::default() };
    lexer.run();
    lexer.commands
}

#[derive(Debug, Default)]
struct Lexer {
    chars: Vec<char>,
    at: usize,
    word: Option<String>,
    current: Simple,
    commands: Vec<Simple>,
    /// The next word is the target of a redirection.
    skip_word: bool,
    /// Delimiters of here-documents that begin at the next line.
    heredocs: Vec<String>,
    take_delimiter: bool,
    /// Where the current word began.
    word_start: usize,
    /// Behind its last character so far.
    word_end: usize,
    /// What the current command comes after.
    before: Before,
}

impl Lexer {
    fn run(&mut self) {
        while let Some(c) = self.next() {
            if self.word.is_none() {
                self.word_start = self.at - 1;
            }
            match c {
                '\\' => {
                    if let Some(escaped) = self.next()
                        && escaped != '\n'
                    {
                        self.push(escaped);
                    }
                }
                '\'' => self.quoted('\''),
                '"' => self.quoted('"'),
                '`' => self.end_command(false, Before::Inside),
                '#' if self.word.is_none() => {
                    while self.peek().is_some_and(|c| c != '\n') {
                        self.next();
                    }
                }
                '\n' => {
                    self.end_command(false, Before::Nothing);
                    self.skip_heredocs();
                }
                c if c.is_whitespace() => self.end_word(),
                ';' => self.end_command(false, Before::Nothing),
                '(' | ')' => self.end_command(false, Before::Inside),
                '|' => {
                    let before = if self.eat('|') { Before::AndOr } else { Before::Pipe };
                    self.eat('&');
                    self.end_command(false, before);
                }
                '&' => self.ampersand(),
                '<' | '>' => self.redirection(c),
                c => self.push(c),
            }
        }
        self.end_command(false, Before::Nothing);
    }

    fn ampersand(&mut self) {
        if self.eat('&') {
            self.end_command(false, Before::AndOr);
        } else if self.eat('>') {
            // `&>` and `&>>` redirect both streams.
            self.eat('>');
            self.end_word();
            self.skip_word = true;
        } else {
            self.end_command(true, Before::Nothing);
        }
    }

    fn redirection(&mut self, kind: char) {
        // A number directly before is a file descriptor, not a word.
        if self
            .word
            .as_deref()
            .is_some_and(|word| !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit()))
        {
            self.word = None;
        }
        self.end_word();
        if kind == '<' && self.eat('<') {
            if self.eat('<') {
                self.skip_word = true;
                return;
            }
            self.eat('-');
            self.take_delimiter = true;
            return;
        }
        self.eat('>');
        self.eat('|');
        if self.eat('&') {
            // `>&1`, `<&-`: a descriptor, or a file for both streams.
        } else if self.peek() == Some('(') {
            return;
        }
        self.skip_word = true;
    }

    fn quoted(&mut self, quote: char) {
        self.word.get_or_insert_default();
        while let Some(c) = self.next() {
            if c == quote {
                self.word_end = self.at;
                return;
            }
            if quote == '"' && c == '\\' {
                if let Some(escaped) = self.next() {
                    self.push(escaped);
                }
                continue;
            }
            self.push(c);
        }
    }

    fn end_word(&mut self) {
        let Some(word) = self.word.take() else { return };
        if std::mem::take(&mut self.take_delimiter) {
            self.heredocs.push(word);
            return;
        }
        if std::mem::take(&mut self.skip_word) {
            return;
        }
        if self.current.words.is_empty() {
            if self.current.first.is_empty() {
                self.current.start = self.word_start;
            }
            if is_assignment(&word) {
                // The command begins here; only its first word is still to come.
                self.current.first = self.word_start..self.word_start + 1;
                return;
            }
            if KEYWORDS.contains(&word.as_str()) {
                self.before = Before::Inside;
                return;
            }
            self.current.first = self.word_start..self.word_end;
        }
        self.current.words.push(word);
    }

    fn end_command(&mut self, background: bool, next: Before) {
        self.end_word();
        self.skip_word = false;
        let mut done = std::mem::take(&mut self.current);
        done.end = self.at;
        if done.words.is_empty() {
            // `( … ) &`: the group as a whole.
            if background && let Some(last) = self.commands.last_mut() {
                last.background = true;
                last.end = self.at;
                last.before = Before::Inside;
            }
            // `a &&` and a new line: the operator still holds.
            if next != Before::Nothing || background || self.before == Before::Inside {
                self.before = next;
            }
            return;
        }
        done.background = background;
        done.before = std::mem::replace(&mut self.before, next);
        self.commands.push(done);
    }

    fn skip_heredocs(&mut self) {
        for delimiter in std::mem::take(&mut self.heredocs) {
            loop {
                let mut line = String::new();
                let mut ended = true;
                while let Some(c) = self.next() {
                    if c == '\n' {
                        ended = false;
                        break;
                    }
                    line.push(c);
                }
                if line.trim_start_matches('\t') == delimiter || ended {
                    break;
                }
            }
        }
    }

    fn push(&mut self, c: char) {
        self.word.get_or_insert_default().push(c);
        self.word_end = self.at;
    }

    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += 1;
        Some(c)
    }

    fn eat(&mut self, wanted: char) -> bool {
        let there = self.peek() == Some(wanted);
        self.at += usize::from(there);
        there
    }
}

/// Words after which a command begins.
const KEYWORDS: [&str; 11] = ["if", "then", "elif", "else", "while", "until", "do", "!", "{", "}", "time"];

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        let mut chars = name.chars();
        chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
            && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use proptest::prelude::*;

    use super::*;

    fn lexed(command: &str) -> Vec<(String, bool)> {
        simple_commands(command)
            .into_iter()
            .map(|simple| (simple.words.join(" "), simple.background))
            .collect()
    }

    fn plain(command: &str) -> Vec<String> {
        lexed(command).into_iter().map(|(words, _)| words).collect()
    }

    #[test]
    fn commands_are_told_apart() {
        assert_eq!(
            plain("cd /x && ls -l | grep 'a b' ; echo done"),
            ["cd /x", "ls -l", "grep a b", "echo done"]
        );
        assert_eq!(plain("A=1 B=\"x y\" make -j"), ["make -j"]);
        assert_eq!(plain("if test -f x; then cat x; fi"), ["test -f x", "cat x", "fi"]);
        assert_eq!(plain("echo $(date) `pwd`"), ["echo $", "date", "pwd"]);
        assert_eq!(plain("make 2>&1 >out.txt &> both < in"), ["make"]);
        assert_eq!(plain("echo a # nohup b &"), ["echo a"]);
    }

    #[test]
    fn only_a_bare_ampersand_means_background() {
        for (command, want) in [
            ("sleep 5 &", vec![("sleep 5", true)]),
            ("a && b", vec![("a", false), ("b", false)]),
            ("a & b", vec![("a", true), ("b", false)]),
            ("a &> x", vec![("a", false)]),
            ("a >& x", vec![("a", false)]),
            ("a 2>&1", vec![("a", false)]),
            ("echo 'a & b' \"c & d\" e\\&f", vec![("echo a & b c & d e&f", false)]),
            ("(a; b) &", vec![("a", false), ("b", true)]),
            ("curl 'http://x/?a=1&b=2'", vec![("curl http://x/?a=1&b=2", false)]),
        ] {
            let want: Vec<(String, bool)> = want.into_iter().map(|(w, b)| (w.to_owned(), b)).collect();
            assert_eq!(lexed(command), want, "{command}");
        }
    }

    #[test]
    fn places_are_those_in_the_text() {
        let command = "A=1 'su'do x && b|c & ( d ) &";
        let chars: Vec<char> = command.chars().collect();
        let text = |range: Range<usize>| chars[range].iter().collect::<String>();
        let found: Vec<(String, String, Before)> = simple_commands(command)
            .into_iter()
            .map(|simple| (text(simple.first.clone()), text(simple.start..simple.end), simple.before))
            .collect();
        let expected = [
            ("'su'do", "A=1 'su'do x &&", Before::Nothing),
            ("b", "b|", Before::AndOr),
            ("c", "c &", Before::Pipe),
            ("d", "d ) &", Before::Inside),
        ];
        let expected: Vec<_> = expected.map(|(a, b, c)| (a.to_owned(), b.to_owned(), c)).into();
        assert_eq!(found, expected);
    }

    #[test]
    fn here_documents_are_data() {
        assert_eq!(plain("cat <<'EOF' > x.sh\nnohup a &\nEOF\necho b\n"), ["cat", "echo b"],);
        assert_eq!(plain("cat <<-EOF\n\tsleep 1 &\n\tEOF\nls"), ["cat", "ls"]);
        assert_eq!(plain("cat <<EOF\nnever closed &"), ["cat"]);
        assert_eq!(plain("tr a b <<< 'x & y'"), ["tr a b"]);
    }

    proptest! {
        #[test]
        fn lexing_never_panics_and_always_ends(command in "[a-z &|;<>'\"\\\\\n()`$#-]{0,60}") {
            simple_commands(&command);
        }
    }
}
