//! Which project file wins (spec 20 §6): the first type that has a readable, non-empty file, and only that type.

use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use super::read::{FileText, ReadFile, read_bounded};

/// Asks whether a file may be read at all; the error says why not.
pub type ReadCheck = Arc<dyn Fn(&Path) -> Result<(), String> + Send + Sync>;

/// Most folders between the working directory and the Git root.
const MAX_PARENTS: usize = 64;
/// Most Cursor rule files, and most entries of their folder that are looked at.
const MAX_RULES: usize = 64;
const MAX_ENTRIES: usize = 4_096;

/// A kind of project file. Kinds stand in the order of their priority.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// `.hermes.md`: looked for up to the Git root, and freed of its front matter.
    Hermes,
    /// The file of another convention, in the working directory only.
    Other,
    /// All of Cursor's rules together.
    Cursor,
}

/// One file that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub(crate) path: PathBuf,
    /// The path as seen from the working directory.
    pub(crate) label: String,
    pub(crate) state: CandidateState,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CandidateState {
    /// It won.
    Text(FileText),
    Empty,
    Unreadable(String),
    /// A file of a higher kind, or of the same kind and nearer, won.
    Shadowed,
}

/// Everything that was found, in the order of priority.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) files: Vec<Candidate>,
    /// More Cursor rules than are read.
    pub(crate) rules_left_out: bool,
}

/// Searches within `limit`; `None` when the file system did not answer in time (a dead network mount). The search
/// then stays behind on a thread of its own, which no shutdown waits for: it ends when the file system answers.
pub(crate) fn find_within(limit: Duration, cwd: &Path, may_read: Option<&ReadCheck>) -> Option<Found> {
    let (answer, found) = mpsc::sync_channel(1);
    let cwd = cwd.to_owned();
    let may_read = may_read.cloned();
    let search = move || drop(answer.send(find(&cwd, may_read.as_ref())));
    std::thread::Builder::new().name("project-files".to_owned()).spawn(search).ok()?;
    found.recv_timeout(limit).ok()
}

/// Searches without a limit of time.
pub(crate) fn find(cwd: &Path, may_read: Option<&ReadCheck>) -> Found {
    let mut search = Search { cwd, may_read, found: Found::default() };
    for (depth, folder) in up_to_git_root(cwd).into_iter().enumerate() {
        for name in [".hermes.md", "HERMES.md"] {
            let label = format!("{}{name}", "../".repeat(depth));
            search.visit(Kind::Hermes, folder.join(name), label, search.has_winner());
        }
    }
    for name in ["AGENTS.md", "agents.md", "CLAUDE.md", "claude.md"] {
        // On a file system without case, both spellings are one file.
        let path = cwd.join(name);
        if !search.found.files.last().is_some_and(|last| same_file(&last.path, &path)) {
            search.visit(Kind::Other, path, name.to_owned(), search.has_winner());
        }
    }
    search.visit_cursor();
    search.found
}

struct Search<'a> {
    cwd: &'a Path,
    may_read: Option<&'a ReadCheck>,
    found: Found,
}

impl Search<'_> {
    fn has_winner(&self) -> bool {
        self.found.files.iter().any(|file| matches!(file.state, CandidateState::Text(_)))
    }

    /// Notes the file at `path` if there is one; a shadowed one is not read.
    fn visit(&mut self, kind: Kind, path: PathBuf, label: String, shadowed: bool) {
        let state = if shadowed {
            path.symlink_metadata().is_ok().then_some(CandidateState::Shadowed)
        } else {
            read(&path, kind, self.may_read)
        };
        if let Some(state) = state {
            self.found.files.push(Candidate { path, label, state });
        }
    }

    fn visit_cursor(&mut self) {
        let shadowed = self.has_winner();
        let folder = self.cwd.join(".cursor/rules");
        let mut names: Vec<String> = std::fs::read_dir(&folder)
            .into_iter()
            .flatten()
            .take(MAX_ENTRIES)
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .filter(|name| Path::new(name).extension().is_some_and(|extension| extension == "mdc"))
            .collect();
        names.sort();
        self.found.rules_left_out = names.len() > MAX_RULES && !shadowed;
        names.truncate(MAX_RULES);
        self.visit(Kind::Cursor, self.cwd.join(".cursorrules"), ".cursorrules".to_owned(), shadowed);
        for name in names {
            self.visit(Kind::Cursor, folder.join(&name), format!(".cursor/rules/{name}"), shadowed);
        }
    }
}

/// `None` when there is no such file.
fn read(path: &Path, kind: Kind, may_read: Option<&ReadCheck>) -> Option<CandidateState> {
    path.symlink_metadata().ok()?;
    if let Some(Err(reason)) = may_read.map(|check| check(path)) {
        return Some(CandidateState::Unreadable(reason));
    }
    Some(match read_bounded(path) {
        ReadFile::Missing => return None,
        ReadFile::Unreadable(reason) => CandidateState::Unreadable(reason),
        ReadFile::Text(mut text) => {
            if kind == Kind::Hermes {
                let (front_matter, body) = split_front_matter(&text.head);
                text.skipped_lines = front_matter.lines().count();
                text.head = body.into();
            }
            if text.is_blank() { CandidateState::Empty } else { CandidateState::Text(text) }
        }
    })
}

/// The working directory and its parents up to the Git root; the working directory alone where there is none.
fn up_to_git_root(cwd: &Path) -> Vec<&Path> {
    let folders: Vec<&Path> = cwd.ancestors().take(MAX_PARENTS).collect();
    let root = folders.iter().position(|folder| folder.join(".git").symlink_metadata().is_ok());
    folders.into_iter().take(root.unwrap_or(0) + 1).collect()
}

fn same_file(a: &Path, b: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    match (a.symlink_metadata(), b.symlink_metadata()) {
        (Ok(a), Ok(b)) => (a.dev(), a.ino()) == (b.dev(), b.ino()),
        _ => false,
    }
}

/// Splits off YAML front matter, which is reserved; front matter that never ends is text.
fn split_front_matter(text: &str) -> (&str, &str) {
    let is_fence = |line: &str| line.trim_end() == "---";
    let mut lines = text.split_inclusive('\n');
    let Some(first) = lines.next().filter(|line| is_fence(line)) else { return ("", text) };
    let mut length = first.len();
    for line in lines {
        length += line.len();
        if is_fence(line) {
            return text.split_at_checked(length).unwrap_or(("", text));
        }
    }
    ("", text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;
    use std::fs;

    /// Makes the files under a fresh folder; a name that ends in `/` is a folder.
    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            if name.ends_with('/') {
                fs::create_dir_all(path).unwrap();
            } else {
                fs::write(path, text).unwrap();
            }
        }
        folder
    }

    fn check(files: &[(&str, &str)], cwd: &str, wanted: &[(&str, &str)]) {
        let folder = tree(files);
        let found = find(&folder.path().join(cwd), None);
        let got: Vec<(&str, String)> = found
            .files
            .iter()
            .map(|file| {
                let state = match &file.state {
                    CandidateState::Text(text) => text.head.clone(),
                    CandidateState::Empty => "(empty)".into(),
                    CandidateState::Unreadable(_) => "(unreadable)".into(),
                    CandidateState::Shadowed => "(shadowed)".into(),
                };
                (file.label.as_str(), state)
            })
            .collect();
        let got: Vec<(&str, &str)> = got.iter().map(|(label, state)| (*label, state.as_str())).collect();
        assert_eq!(got, wanted);
    }

    #[test]
    fn the_first_kind_wins_alone() {
        check(
            &[(".hermes.md", "h"), ("AGENTS.md", "a"), ("CLAUDE.md", "c"), (".cursorrules", "r")],
            "",
            &[
                (".hermes.md", "h"),
                ("AGENTS.md", "(shadowed)"),
                ("CLAUDE.md", "(shadowed)"),
                (".cursorrules", "(shadowed)"),
            ],
        );
        check(
            &[("HERMES.md", "H"), (".hermes.md", "h")],
            "",
            &[(".hermes.md", "h"), ("HERMES.md", "(shadowed)")],
        );
        check(
            &[("agents.md", "a"), ("claude.md", "c")],
            "",
            &[("agents.md", "a"), ("claude.md", "(shadowed)")],
        );
        check(
            &[("claude.md", "c"), (".cursorrules", "r")],
            "",
            &[("claude.md", "c"), (".cursorrules", "(shadowed)")],
        );
        check(&[("README.md", "x")], "", &[]);
    }

    #[test]
    fn empty_and_unreadable_files_do_not_win() {
        check(
            &[(".hermes.md", "---\na: 1\n---\n \n"), ("AGENTS.md/", ""), ("CLAUDE.md", "c")],
            "",
            &[(".hermes.md", "(empty)"), ("AGENTS.md", "(unreadable)"), ("CLAUDE.md", "c")],
        );
    }

    #[test]
    fn hermes_md_is_looked_for_up_to_the_git_root() {
        let files = [
            (".hermes.md", "outer"),
            ("repo/.git", "gitdir: x"),
            ("repo/HERMES.md", "root"),
            ("repo/a/b/", ""),
        ];
        check(&files, "repo/a/b", &[("../../HERMES.md", "root")]);
        check(&files, "repo", &[("HERMES.md", "root")]);
        // Without a Git root, the working directory alone counts.
        check(&[(".hermes.md", "outer"), ("a/b/", "")], "a/b", &[]);
        // Other kinds are never taken from a parent.
        check(&[(".git/", ""), ("AGENTS.md", "a"), ("sub/", "")], "sub", &[]);
        // The nearest wins.
        check(
            &[(".git/", ""), (".hermes.md", "far"), ("sub/HERMES.md", "near")],
            "sub",
            &[("HERMES.md", "near"), ("../.hermes.md", "(shadowed)")],
        );
    }

    #[test]
    fn cursor_rules_load_together_and_sorted() {
        check(
            &[
                (".cursor/rules/b.mdc", "B"),
                (".cursor/rules/a.mdc", "A"),
                (".cursor/rules/skip.txt", "no"),
                (".cursor/rules/e.mdc", ""),
                (".cursorrules", "R"),
            ],
            "",
            &[
                (".cursorrules", "R"),
                (".cursor/rules/a.mdc", "A"),
                (".cursor/rules/b.mdc", "B"),
                (".cursor/rules/e.mdc", "(empty)"),
            ],
        );
    }

    #[test]
    fn too_many_cursor_rules_are_bounded() {
        let names: Vec<String> = (0..80).map(|n| format!(".cursor/rules/{n:03}.mdc")).collect();
        let files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "x")).collect();
        let folder = tree(&files);
        let found = find(folder.path(), None);
        assert_eq!(found.files.len(), MAX_RULES);
        assert!(found.rules_left_out);
    }

    #[test]
    fn a_file_that_may_not_be_read_is_passed_over() {
        let folder = tree(&[("AGENTS.md", "secret"), ("CLAUDE.md", "c")]);
        let check: ReadCheck =
            Arc::new(
                |path: &Path| {
                    if path.ends_with("AGENTS.md") { Err("a secret".to_owned()) } else { Ok(()) }
                },
            );
        let found = find(folder.path(), Some(&check));
        assert_eq!(found.files[0].state, CandidateState::Unreadable("a secret".into()));
        assert!(matches!(found.files[1].state, CandidateState::Text(_)));
    }

    #[test]
    fn a_pipe_for_a_project_file_does_not_hang() {
        let folder = tree(&[("CLAUDE.md", "c")]);
        nix::unistd::mkfifo(&folder.path().join("AGENTS.md"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let found = find_within(Duration::from_mins(1), folder.path(), None).unwrap();
        assert!(matches!(found.files[0].state, CandidateState::Unreadable(_)));
        assert!(matches!(found.files[1].state, CandidateState::Text(_)));
    }

    #[test]
    fn a_file_system_that_does_not_answer_is_given_up() {
        let (release, wait) = mpsc::channel::<()>();
        let wait = std::sync::Mutex::new(wait);
        let folder = tree(&[("AGENTS.md", "a")]);
        let check: ReadCheck = Arc::new(move |_: &Path| {
            wait.lock().unwrap().recv().ok();
            Ok(())
        });
        assert_eq!(find_within(Duration::from_millis(20), folder.path(), Some(&check)), None);
        drop(release);
    }

    #[test]
    fn front_matter_goes_and_an_endless_one_stays() {
        for (given, wanted) in [
            ("---\na: 1\n---\ntext", "text"),
            ("---\r\na: 1\r\n---\r\ntext", "text"),
            ("---\na: 1\ntext", "---\na: 1\ntext"),
            ("text\n---\nmore\n---\n", "text\n---\nmore\n---\n"),
            ("---\n---\n", ""),
        ] {
            assert_eq!(split_front_matter(given).1, wanted, "{given:?}");
        }
    }
}
