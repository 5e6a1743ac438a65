//! What a request asks for, as far as a few patterns can tell.

use serde_json::{Value, json};

/// Most entries of a listing, and most hits of a search, that are asked for.
const LIMIT: u32 = 500;

/// A request that is understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Intent {
    Greeting,
    Help,
    Time,
    List { path: String },
    Read { path: String },
    Search { text: String, path: String },
    Run { command: String },
    Remember,
    Unknown,
}

impl Intent {
    /// The tool that serves the request, and its arguments.
    pub(crate) fn tool_call(&self) -> Option<(&'static str, Value)> {
        match self {
            // Directly below the folder, as `ls` would: a whole tree does not fit one answer.
            Self::List { path } => Some((
                "search_files",
                json!({"pattern": "/*", "target": "files", "path": path, "limit": LIMIT}),
            )),
            Self::Read { path } => Some(("read_file", json!({ "path": path }))),
            Self::Search { text, path } => Some((
                "search_files",
                json!({"pattern": escape_regex(text), "target": "content", "path": path}),
            )),
            Self::Run { command } => Some(("terminal", json!({ "command": command }))),
            Self::Greeting | Self::Help | Self::Time | Self::Remember | Self::Unknown => None,
        }
    }
}

/// Understands a request, or says that it does not.
pub(crate) fn understand(request: &str) -> Intent {
    let request = request.trim();
    let words = Words::new(request);
    run(request, &words)
        .or_else(|| remember(&words))
        .or_else(|| search(request, &words))
        .or_else(|| list(&words))
        .or_else(|| read(&words))
        .or_else(|| time(&words))
        .or_else(|| small_talk(&words))
        .unwrap_or(Intent::Unknown)
}

/// The words of a request, with their punctuation taken off, as written and in lower case.
struct Words<'a> {
    written: Vec<&'a str>,
    lower: Vec<String>,
}

impl<'a> Words<'a> {
    fn new(request: &'a str) -> Self {
        let written: Vec<&str> = request
            .split_whitespace()
            .map(|word| word.trim_matches(['"', '\'', '`', '“', '”', '‘', '’', '(', ')', '<', '>', '«', '»']))
            .map(|word| word.trim_end_matches(['?', '!', ',', ';', ':']))
            // A full stop ends a sentence, but `.` and `..` are places.
            .map(
                |word| if matches!(word, "." | "..") { word } else { word.strip_suffix('.').unwrap_or(word) },
            )
            .map(|word| word.trim_matches(['"', '\'', '`', '“', '”']))
            .filter(|word| !word.is_empty())
            .collect();
        let lower = written.iter().map(|word| word.to_lowercase()).collect();
        Self { written, lower }
    }

    /// The first word that carries meaning.
    fn verb(&self) -> &str {
        const FILLERS: [&str; 14] = [
            "please", "can", "could", "would", "will", "you", "hermes", "hey", "now", "just", "kindly", "ok",
            "okay", "so",
        ];
        let verb = self.lower.iter().find(|word| !FILLERS.contains(&word.as_str()));
        verb.map_or("", String::as_str)
    }

    fn has(&self, any: &[&str]) -> bool {
        self.lower.iter().any(|word| any.contains(&word.as_str()))
    }

    fn has_sequence(&self, sequence: &[&str]) -> bool {
        self.lower
            .windows(sequence.len())
            .any(|window| window.iter().zip(sequence).all(|(word, want)| word == want))
    }

    /// The last word that names a place in the file system.
    fn path(&self) -> Option<&'a str> {
        self.written.iter().copied().rev().find(|word| is_path(word))
    }
}

fn is_path(word: &str) -> bool {
    if word.contains("://") || word.contains('@') {
        return false;
    }
    if matches!(word, "." | ".." | "~")
        || word.contains('/')
        || word.starts_with('~')
        || word.starts_with('.')
    {
        return word.len() < 4096;
    }
    const BARE_NAMES: [&str; 6] = ["Makefile", "Dockerfile", "LICENSE", "README", "CHANGELOG", "TODO.md"];
    // `notes.txt`: a name, a dot and an extension that is no number.
    let has_extension = word.rsplit_once('.').is_some_and(|(stem, extension)| {
        !stem.is_empty()
            && (1..=8).contains(&extension.len())
            && extension.chars().all(char::is_alphanumeric)
            && !extension.chars().all(|character| character.is_ascii_digit())
    });
    has_extension || BARE_NAMES.contains(&word)
}

fn run(request: &str, words: &Words<'_>) -> Option<Intent> {
    if let Some(command) = request.strip_prefix("$ ") {
        return command_of(command);
    }
    let verb = words.verb();
    if !matches!(verb, "run" | "execute" | "exec") {
        return None;
    }
    if let Some(quoted) = quoted(request) {
        return command_of(quoted);
    }
    let at = request.to_lowercase().find(verb)?;
    let mut rest = request.get(at + verb.len()..)?.trim_start_matches([' ', ':']);
    for filler in ["the command ", "the shell command ", "command ", "this command ", "this: "] {
        if let Some(shorter) = rest.strip_prefix(filler) {
            rest = shorter;
            break;
        }
    }
    command_of(rest.trim_start_matches([' ', ':']))
}

fn command_of(text: &str) -> Option<Intent> {
    let command = text.trim();
    (!command.is_empty()).then(|| Intent::Run { command: command.to_owned() })
}

fn remember(words: &Words<'_>) -> Option<Intent> {
    let asks = matches!(words.verb(), "remember" | "memorize" | "memorise")
        || words.has_sequence(&["keep", "in", "mind"])
        || words.has_sequence(&["don't", "forget"]);
    asks.then_some(Intent::Remember)
}

fn search(request: &str, words: &Words<'_>) -> Option<Intent> {
    let verb = words.verb();
    let is_search = matches!(verb, "search" | "grep" | "find" | "look")
        || (verb == "where" && words.has(&["used", "mentioned", "defined", "say", "says"]));
    if !is_search || words.has_sequence(&["find", "files"]) {
        return None;
    }
    // `… in src/`: the place is no part of what is looked for.
    let place =
        words.lower.iter().rposition(|word| matches!(word.as_str(), "in" | "under" | "below" | "inside"));
    let path = place
        .and_then(|at| words.written.get(at + 1..))
        .and_then(|rest| rest.iter().find(|word| is_path(word)));
    let text = if let Some(quoted) = quoted(request) {
        quoted.to_owned()
    } else {
        const NOISE: [&str; 24] = [
            "please",
            "can",
            "could",
            "would",
            "you",
            "hermes",
            "search",
            "grep",
            "find",
            "look",
            "for",
            "the",
            "text",
            "word",
            "string",
            "where",
            "is",
            "all",
            "used",
            "mentioned",
            "defined",
            "occurrences",
            "of",
            "files",
        ];
        let end = match (place, path) {
            (Some(at), Some(_)) => at,
            // "in this folder", "in here": said, but no path.
            (Some(at), None)
                if words
                    .lower
                    .get(at + 1)
                    .is_some_and(|word| matches!(word.as_str(), "this" | "here" | "the" | "all" | "my")) =>
            {
                at
            }
            _ => words.written.len(),
        };
        let kept: Vec<&str> = words
            .written
            .iter()
            .zip(&words.lower)
            .take(end)
            .filter(|(_, lower)| !NOISE.contains(&lower.as_str()))
            .map(|(written, _)| *written)
            .collect();
        kept.join(" ")
    };
    let path = path.copied().unwrap_or(".").to_owned();
    (!text.is_empty()).then_some(Intent::Search { text, path })
}

fn list(words: &Words<'_>) -> Option<Intent> {
    const PLACES: [&str; 8] =
        ["folder", "directory", "dir", "files", "folders", "directories", "workspace", "project"];
    const ASKS: [&str; 9] = ["what", "what's", "whats", "list", "show", "which", "see", "ls", "tell"];
    let verb = words.verb();
    let asks = matches!(verb, "ls" | "dir" | "list")
        || (words.has(&PLACES) && words.has(&ASKS))
        || words.has_sequence(&["what", "is", "here"])
        || words.has_sequence(&["what's", "here"])
        || words.has_sequence(&["find", "files"]);
    if !asks {
        return None;
    }
    let is_one_file = words.has(&["file"]) && !words.has(&["files", "folder", "directory"]);
    if is_one_file && words.path().is_some() {
        return None;
    }
    Some(Intent::List { path: words.path().unwrap_or(".").to_owned() })
}

fn read(words: &Words<'_>) -> Option<Intent> {
    const VERBS: [&str; 13] = [
        "read",
        "show",
        "open",
        "print",
        "cat",
        "display",
        "what",
        "what's",
        "whats",
        "view",
        "tell",
        "head",
        "summarize",
    ];
    let path = words.path()?;
    VERBS.contains(&words.verb()).then(|| Intent::Read { path: path.to_owned() })
}

fn time(words: &Words<'_>) -> Option<Intent> {
    let asks = words.has_sequence(&["what", "time"])
        || words.has_sequence(&["time", "is", "it"])
        || words.has_sequence(&["the", "time"])
        || words.has_sequence(&["what", "day"])
        || words.has_sequence(&["today's", "date"])
        || words.has_sequence(&["the", "date"])
        || words.has_sequence(&["what", "date"]);
    asks.then_some(Intent::Time)
}

fn small_talk(words: &Words<'_>) -> Option<Intent> {
    if words.has(&["help", "?"])
        || words.has_sequence(&["what", "can", "you"])
        || words.has_sequence(&["who", "are", "you"])
    {
        return Some(Intent::Help);
    }
    const GREETINGS: [&str; 8] = ["hello", "hi", "hey", "hallo", "moin", "greetings", "howdy", "hola"];
    let first = words.lower.first().map_or("", String::as_str);
    let greets = GREETINGS.contains(&first)
        || (first == "good" && words.has(&["morning", "day", "afternoon", "evening"]));
    greets.then_some(Intent::Greeting)
}

/// The first text in backticks, else in double quotes.
fn quoted(request: &str) -> Option<&str> {
    [('`', '`'), ('"', '"'), ('“', '”')].iter().find_map(|(open, close)| {
        let (_, rest) = request.split_once(*open)?;
        let (inner, _) = rest.split_once(*close)?;
        let inner = inner.trim();
        (!inner.is_empty()).then_some(inner)
    })
}

/// The request names a text, not a pattern.
fn escape_regex(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut out, character| {
        if r"\.+*?()|[]{}^$#&-~".contains(character) && !matches!(character, '#' | '&' | '-' | '~') {
            out.push('\\');
        }
        out.push(character);
        out
    })
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    fn list_of(path: &str) -> Intent {
        Intent::List { path: path.into() }
    }

    fn read_of(path: &str) -> Intent {
        Intent::Read { path: path.into() }
    }

    fn search_for(text: &str, path: &str) -> Intent {
        Intent::Search { text: text.into(), path: path.into() }
    }

    fn run_of(command: &str) -> Intent {
        Intent::Run { command: command.into() }
    }

    #[test]
    fn requests_are_understood_as_people_write_them() {
        let cases = [
            ("What is in this folder?", list_of(".")),
            ("what's in this directory", list_of(".")),
            ("List files", list_of(".")),
            ("please list the files in src/", list_of("src/")),
            ("ls", list_of(".")),
            ("ls ..", list_of("..")),
            ("Which files are here?", list_of(".")),
            ("show me the files in ~/notes", list_of("~/notes")),
            ("What is here?", list_of(".")),
            ("Read README.md", read_of("README.md")),
            ("read the file \"my.txt\".", read_of("my.txt")),
            ("Can you show me src/main.rs?", read_of("src/main.rs")),
            ("What is in Cargo.toml?", read_of("Cargo.toml")),
            ("show me the file ./a/b", read_of("./a/b")),
            ("cat Makefile", read_of("Makefile")),
            ("search for TODO", search_for("TODO", ".")),
            ("Search for \"fn main\" in src/", search_for("fn main", "src/")),
            ("grep unwrap in src/lib.rs", search_for("unwrap", "src/lib.rs")),
            ("find the word needle in this folder", search_for("needle", ".")),
            ("where is resolve defined?", search_for("resolve", ".")),
            ("run `ls -la`", run_of("ls -la")),
            ("Run: echo hi", run_of("echo hi")),
            ("please run the command git status", run_of("git status")),
            ("execute make test", run_of("make test")),
            ("$ uname -a", run_of("uname -a")),
            ("What time is it?", Intent::Time),
            ("tell me the date", Intent::Time),
            ("Remember that my cat is called Minka", Intent::Remember),
            ("hello", Intent::Greeting),
            ("Good morning!", Intent::Greeting),
            ("help", Intent::Help),
            ("What can you do?", Intent::Help),
            ("Write a poem about rust", Intent::Unknown),
            ("What is 1.5 plus 2?", Intent::Unknown),
            ("run", Intent::Unknown),
            ("", Intent::Unknown),
        ];
        for (request, intent) in cases {
            assert_eq!(understand(request), intent, "{request:?}");
        }
    }

    #[test]
    fn a_searched_text_is_no_pattern() {
        assert_eq!(escape_regex("a.b(c)*"), r"a\.b\(c\)\*");
        let (tool, arguments) = search_for("x[0]", "src").tool_call().unwrap();
        assert_eq!(tool, "search_files");
        assert_eq!(arguments, json!({"pattern": r"x\[0\]", "target": "content", "path": "src"}));
    }
}
