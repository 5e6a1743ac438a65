//! From the text of a patch to its sections (spec 40 §5.5). Reads no file.

/// What a patch does to one file, or with two names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Section {
    Update { path: String, moved_to: Option<String>, hunks: Vec<Hunk> },
    Add { path: String, content: String },
    Delete { path: String },
    Move { from: String, to: String },
}

/// One change inside a file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Hunk {
    /// Line of the patch at which it begins, from 1.
    pub(crate) at: usize,
    /// Texts of lines that stand before the place, from the outermost on.
    pub(crate) hints: Vec<String>,
    pub(crate) lines: Vec<(Sign, String)>,
    /// So many lines at the end were empty in the patch, which may also only separate it from what follows.
    pub(crate) soft_tail: usize,
    /// It says that it reaches to the end of the file.
    pub(crate) at_end: bool,
}

/// What a line of a hunk is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sign {
    Context,
    Delete,
    Add,
}

impl Hunk {
    /// The text before the change, without `tail` lines of its end.
    pub(crate) fn old(&self, tail: usize) -> String {
        self.side(Sign::Delete, tail)
    }

    /// The text after the change, without `tail` lines of its end.
    pub(crate) fn new_text(&self, tail: usize) -> String {
        self.side(Sign::Add, tail)
    }

    fn side(&self, own: Sign, tail: usize) -> String {
        let lines = self.lines.iter().take(self.lines.len().saturating_sub(tail));
        lines
            .filter(|(sign, _)| *sign == Sign::Context || *sign == own)
            .flat_map(|(_, text)| [text.as_str(), "\n"])
            .collect()
    }

    pub(crate) fn changes(&self) -> bool {
        self.lines.iter().any(|(sign, _)| *sign != Sign::Context)
    }
}

/// A header and the paths that it names.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Header {
    Begin,
    End,
    EndOfFile,
    Update(String),
    Add(String),
    Delete(String),
    Move(String, String),
    MoveTo(String),
    Unknown(String),
}

fn header_of(line: &str) -> Option<Header> {
    let rest = line.strip_prefix("***")?.trim();
    let lower = rest.to_ascii_lowercase();
    let after = |name: &str| {
        lower.starts_with(name).then(|| rest.get(name.len()..).unwrap_or_default().trim().to_owned())
    };
    Some(match lower.as_str() {
        "begin patch" => Header::Begin,
        "end patch" => Header::End,
        "end of file" => Header::EndOfFile,
        _ => {
            if let Some(path) = after("update file:") {
                Header::Update(path)
            } else if let Some(path) = after("add file:") {
                Header::Add(path)
            } else if let Some(path) = after("delete file:") {
                Header::Delete(path)
            } else if let Some(path) = after("move to:") {
                Header::MoveTo(path)
            } else if let Some(paths) = after("move file:") {
                match paths.split_once(" -> ") {
                    Some((from, to)) => Header::Move(from.trim().to_owned(), to.trim().to_owned()),
                    None => Header::Unknown(rest.to_owned()),
                }
            } else {
                Header::Unknown(rest.to_owned())
            }
        }
    })
}

/// All paths that headers of the patch name, in order.
pub(crate) fn header_paths(patch: &str) -> Vec<String> {
    patch
        .lines()
        .filter_map(header_of)
        .flat_map(|header| match header {
            Header::Update(path) | Header::Add(path) | Header::Delete(path) | Header::MoveTo(path) => {
                vec![path]
            }
            Header::Move(from, to) => vec![from, to],
            Header::Begin | Header::End | Header::EndOfFile | Header::Unknown(_) => Vec::new(),
        })
        .collect()
}

/// The sections of a patch, or all that is wrong with its form.
pub(crate) fn parse(patch: &str) -> Result<Vec<Section>, Vec<String>> {
    let mut parser = Parser::default();
    for (index, line) in patch.lines().enumerate() {
        if parser.ended {
            break;
        }
        match header_of(line) {
            Some(header) => parser.header(index + 1, header),
            None => parser.line(index + 1, line),
        }
    }
    parser.finish()
}

#[derive(Default)]
struct Parser {
    sections: Vec<Section>,
    /// Lines that an added file may still turn out to end with.
    blank_lines: usize,
    problems: Vec<String>,
    ended: bool,
}

impl Parser {
    fn header(&mut self, at: usize, header: Header) {
        self.blank_lines = 0;
        let section = match header {
            Header::Begin => return,
            Header::End => {
                self.ended = true;
                return;
            }
            Header::EndOfFile => {
                if let Some(Section::Update { hunks, .. }) = self.sections.last_mut()
                    && let Some(hunk) = hunks.last_mut()
                {
                    hunk.at_end = true;
                }
                return;
            }
            Header::MoveTo(to) => {
                match self.sections.last_mut() {
                    Some(Section::Update { moved_to: moved_to @ None, .. }) if !to.is_empty() => {
                        *moved_to = Some(to);
                    }
                    _ => self.problems.push(format!("line {at}: `Move to` belongs under an `Update File`")),
                }
                return;
            }
            Header::Update(path) => Section::Update { path, moved_to: None, hunks: Vec::new() },
            Header::Add(path) => Section::Add { path, content: String::new() },
            Header::Delete(path) => Section::Delete { path },
            Header::Move(from, to) => Section::Move { from, to },
            Header::Unknown(text) => {
                self.problems.push(format!(
                    "line {at}: `*** {text}` is no header; use `Update File:`, `Add File:`, `Delete File:` or \
                     `Move File: a -> b`"
                ));
                return;
            }
        };
        let nameless = match &section {
            Section::Update { path, .. } | Section::Add { path, .. } | Section::Delete { path } => {
                path.is_empty()
            }
            Section::Move { from, to } => from.is_empty() || to.is_empty(),
        };
        if nameless {
            self.problems.push(format!("line {at}: the header names no path"));
        }
        self.sections.push(section);
    }

    fn line(&mut self, at: usize, line: &str) {
        let line = line.strip_suffix('\r').unwrap_or(line);
        if line.starts_with("\\ No newline") {
            return;
        }
        match self.sections.last_mut() {
            None if line.trim().is_empty() => {}
            None => {
                // One complaint is enough for all that stands before the first header.
                if self.problems.is_empty() {
                    self.problems
                        .push(format!("line {at} comes before any `*** Update File:` or other header"));
                }
            }
            Some(Section::Update { hunks, .. }) => hunk_line(hunks, at, line),
            Some(Section::Add { content, .. }) => match line.strip_prefix('+') {
                Some(text) => {
                    content.push_str(&"\n".repeat(self.blank_lines));
                    self.blank_lines = 0;
                    content.push_str(text);
                    content.push('\n');
                }
                // An empty line inside is one; behind the last it only separates.
                None if line.is_empty() => self.blank_lines += 1,
                None if line.starts_with("@@") => {}
                None => self.problems.push(format!("line {at}: each line of an added file begins with `+`")),
            },
            Some(Section::Delete { .. } | Section::Move { .. }) if line.trim().is_empty() => {}
            Some(Section::Delete { path }) => {
                self.problems.push(format!("line {at}: the deletion of {path} has no lines below it"));
            }
            Some(Section::Move { from, .. }) => {
                self.problems.push(format!(
                    "line {at}: lines below `Move File: {from}`; change the file under an `Update File`"
                ));
            }
        }
    }

    fn finish(mut self) -> Result<Vec<Section>, Vec<String>> {
        if self.sections.is_empty() && self.problems.is_empty() {
            self.problems.push(
                "the patch names no file: it needs `*** Update File: path` or another header".to_owned(),
            );
        }
        let mut does_something = false;
        for section in &mut self.sections {
            let Section::Update { path, moved_to, hunks } = section else {
                does_something = true;
                continue;
            };
            hunks.retain(|hunk| !hunk.lines.is_empty() || !hunk.hints.is_empty());
            for hunk in hunks.iter_mut() {
                let empty = hunk
                    .lines
                    .iter()
                    .rev()
                    .take_while(|(sign, text)| *sign == Sign::Context && text.is_empty());
                // `soft_tail` counted only what had no prefix at all.
                hunk.soft_tail = hunk.soft_tail.min(empty.count());
                if hunk.lines.len() == hunk.soft_tail {
                    self.problems.push(format!("line {}: the hunk has no lines", hunk.at));
                }
            }
            if hunks.is_empty() && moved_to.is_none() {
                self.problems.push(format!("the update of {path} has no hunk"));
            }
            does_something |= moved_to.is_some() || hunks.iter().any(Hunk::changes);
        }
        if !does_something && self.problems.is_empty() {
            self.problems.push("the patch changes nothing: it has no line with `+` or `-`".to_owned());
        }
        if self.problems.is_empty() { Ok(self.sections) } else { Err(self.problems) }
    }
}

fn hunk_line(hunks: &mut Vec<Hunk>, at: usize, line: &str) {
    if let Some(hint) = line.strip_prefix("@@") {
        let hint = hint_of(hint);
        match hunks.last_mut() {
            // Several hints in a row lead to one place.
            Some(open) if open.lines.is_empty() => open.hints.extend(hint),
            _ => hunks.push(Hunk { at, hints: hint.into_iter().collect(), ..Hunk::default() }),
        }
        return;
    }
    if hunks.is_empty() {
        if line.trim().is_empty() {
            return;
        }
        hunks.push(Hunk { at, ..Hunk::default() });
    }
    let Some(hunk) = hunks.last_mut() else { return };
    if line.is_empty() {
        hunk.lines.push((Sign::Context, String::new()));
        hunk.soft_tail += 1;
        return;
    }
    hunk.soft_tail = 0;
    let signed = [('+', Sign::Add), ('-', Sign::Delete), (' ', Sign::Context)]
        .into_iter()
        .find_map(|(prefix, sign)| Some((sign, line.strip_prefix(prefix)?)));
    let (sign, text) = signed.unwrap_or((Sign::Context, line));
    hunk.lines.push((sign, text.to_owned()));
}

/// The text of a hint; line numbers as `diff` writes them are none.
fn hint_of(text: &str) -> Option<String> {
    let text = text.trim();
    let text = text.strip_suffix("@@").unwrap_or(text).trim();
    let text = match text.split_once("@@") {
        Some((numbers, hint)) if is_range(numbers.trim()) => hint.trim(),
        _ => text,
    };
    (!text.is_empty() && !is_range(text)).then(|| text.to_owned())
}

/// `-1,3 +1,4`
fn is_range(text: &str) -> bool {
    let side = |part: &str, sign: char| {
        part.strip_prefix(sign).is_some_and(|numbers| {
            !numbers.is_empty() && numbers.chars().all(|c| c.is_ascii_digit() || c == ',')
        })
    };
    text.split_once(' ').is_some_and(|(old, new)| side(old, '-') && side(new.trim(), '+'))
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn all_forms_are_read() {
        let patch = "*** Begin Patch\n*** Update File: a.rs\n@@ fn a() @@\n ctx\n-old\n+new\n\n tail\n@@ -1,2 +1,3 @@ fn b\n+x\n\
                     *** Move to: b.rs\n\n***Add File: n.txt\n+one\n\n+two\n\n*** Delete File: d\n*** Move File: m n -> o\n*** End Patch\nrest";
        let sections = parse(patch).unwrap();
        let [Section::Update { path, moved_to, hunks }, added, deleted, moved] = sections.as_slice() else {
            panic!("{sections:?}")
        };
        assert_eq!((path.as_str(), moved_to.as_deref(), hunks.len()), ("a.rs", Some("b.rs"), 2));
        assert_eq!(hunks[0].hints, ["fn a()"]);
        assert_eq!(hunks[0].old(0), "ctx\nold\n\ntail\n");
        assert_eq!(hunks[0].new_text(0), "ctx\nnew\n\ntail\n");
        assert_eq!(hunks[1].hints, ["fn b"]);
        assert_eq!(*added, Section::Add { path: "n.txt".into(), content: "one\n\ntwo\n".into() });
        assert_eq!(*deleted, Section::Delete { path: "d".into() });
        assert_eq!(*moved, Section::Move { from: "m n".into(), to: "o".into() });
        assert_eq!(header_paths(patch), ["a.rs", "b.rs", "n.txt", "d", "m n", "o"]);
    }

    #[test]
    fn problems_name_their_lines() {
        let problems = |patch: &str| parse(patch).unwrap_err().join("; ");
        for (patch, want) in [
            ("", "names no file"),
            ("hello\nworld", "line 1 comes before any"),
            ("*** Frob File: x", "line 1: `*** Frob File: x` is no header"),
            ("*** Update File: x\n*** Delete File: y", "the update of x has no hunk"),
            ("*** Update File: x\n@@\n ctx\n", "changes nothing"),
            ("*** Add File: x\nplain", "begins with `+`"),
            ("*** Update File:\n+a", "names no path"),
            ("*** Move File: a b", "is no header"),
            ("*** Delete File: x\n-a", "no lines below"),
            ("*** Move to: x", "belongs under"),
        ] {
            assert!(problems(patch).contains(want), "{patch:?}: {}", problems(patch));
        }
    }

    #[test]
    fn empty_lines_at_the_end_are_soft() {
        let Ok(sections) = parse("*** Update File: x\n a\n+b\n\n\n*** Delete File: y") else { panic!() };
        let Section::Update { hunks, .. } = &sections[0] else { panic!() };
        assert_eq!(
            (hunks[0].soft_tail, hunks[0].old(2).as_str(), hunks[0].old(0).as_str()),
            (2, "a\n", "a\n\n\n")
        );
    }
}
