//! Searches the content of files, in process, with ripgrep's crates. Two passes: all files are counted on
//! several threads, in no order; then the few files whose hits are on the page are searched once more for their
//! lines, in path order. So results come in a stable order, and memory holds only what can be shown.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use grep_matcher::Matcher as _;
use grep_regex::RegexMatcher;
use grep_searcher::{
    BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkContextKind, SinkFinish, SinkMatch,
};
use ignore::WalkState;

use super::glob::NameGlob;
use super::stop::{Stop, StoppingReader};
use super::walk::{Rules, walk_at_once};
use crate::files::text::first_chars;

/// Characters of a line that are shown (spec 40 §5.6).
pub(crate) const LINE_CHARS: usize = 500;

/// A line longer than this is not searched: it would have to be held in memory.
const MAX_LINE_BYTES: usize = 16 * 1024 * 1024;

const MAX_THREADS: usize = 8;

/// How long the second pass may take: it also shows what was found when the time of the first was up.
const SHOWING_TIME: Duration = Duration::from_secs(10);

/// What to look for.
#[derive(Debug)]
pub(crate) struct Query<'a> {
    pub(crate) root: &'a Path,
    pub(crate) matcher: RegexMatcher,
    pub(crate) glob: Option<NameGlob>,
    pub(crate) context: usize,
    /// Hits passed over, and shown behind those.
    pub(crate) offset: usize,
    pub(crate) limit: usize,
    /// One hit a file is enough.
    pub(crate) files_only: bool,
}

/// One line of a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) number: u64,
    pub(crate) text: String,
    /// False: context around a hit.
    pub(crate) hit: bool,
}

/// A file with hits.
#[derive(Debug)]
pub(crate) struct FileHits {
    pub(crate) path: PathBuf,
    /// All hits of the file.
    pub(crate) hits: u64,
    /// The lines that are shown, with their context.
    pub(crate) lines: Vec<Line>,
}

/// What a search found.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Files with hits. Beyond the shown hits they have no lines.
    pub(crate) files: Vec<FileHits>,
    pub(crate) hits: u64,
    pub(crate) files_with_hits: u64,
    /// Ended by the clock: there may be more.
    pub(crate) timed_out: bool,
    /// Files with hits that may not be read.
    pub(crate) protected: u64,
    /// Files that could not be read.
    pub(crate) unreadable: u64,
    /// Files with a line too long to search.
    pub(crate) long_lines: u64,
    /// Files with hits that turned out to be binary.
    pub(crate) binary: u64,
}

/// Files whose counts are listed.
const MAX_LISTED_FILES: usize = 100_000;

/// Searches below the root. Files in `never_opened` (device, inode) are passed over; `may_read` is asked for each
/// other file that has hits.
pub(crate) fn search(
    query: &Query<'_>,
    rules: Rules,
    stop: &Stop,
    never_opened: &[(u64, u64)],
    may_read: &(dyn Fn(&Path) -> bool + Sync),
) -> Found {
    if query.root.is_file() {
        return search_root(query, stop, never_opened, may_read);
    }
    let mut found = count_all(query, rules, stop, never_opened, may_read);
    if query.limit > 0 {
        fill_page(query, &mut found, stop);
    }
    found
}

/// A root that is a file is read once.
fn search_root(
    query: &Query<'_>,
    stop: &Stop,
    never_opened: &[(u64, u64)],
    may_read: &(dyn Fn(&Path) -> bool + Sync),
) -> Found {
    use std::os::unix::fs::MetadataExt as _;
    let mut found = Found::default();
    let known = query.root.metadata().is_ok_and(|meta| never_opened.contains(&(meta.dev(), meta.ino())));
    if !known {
        let wanted = Wanted { skip: query.offset, keep: query.offset + query.limit, count_all: true };
        let outcome =
            search_file(query, &query.matcher, &mut searcher(query.context, true), query.root, wanted, stop);
        take(&mut found, outcome, may_read);
    }
    found.timed_out = stop.timed_out();
    found
}

/// Counts the hits of all files, on several threads.
fn count_all(
    query: &Query<'_>,
    rules: Rules,
    stop: &Stop,
    never_opened: &[(u64, u64)],
    may_read: &(dyn Fn(&Path) -> bool + Sync),
) -> Found {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS);
    let shares: Mutex<Vec<Found>> = Mutex::default();
    walk_at_once(query.root, rules, threads).run(|| {
        let mut share = Share { found: Found::default(), shares: &shares };
        // Each thread has its own: the regex's scratch space is not fought for.
        let matcher = query.matcher.clone();
        let mut searcher = searcher(0, false);
        Box::new(move |entry| {
            if stop.now() {
                return WalkState::Quit;
            }
            let Ok(entry) = entry else { return WalkState::Continue };
            let wanted = entry.file_type().is_some_and(|kind| kind.is_file())
                && query.glob.as_ref().is_none_or(|glob| glob.matches(entry.path(), query.root))
                && !is_one_of(&entry, never_opened);
            if wanted {
                let nothing = Wanted { skip: 0, keep: 0, count_all: true };
                let outcome = search_file(query, &matcher, &mut searcher, entry.path(), nothing, stop);
                take(&mut share.found, outcome, may_read);
                if share.found.files.len() > 2 * MAX_LISTED_FILES {
                    keep_listed(&mut share.found.files);
                }
            }
            WalkState::Continue
        })
    });
    let shares = shares.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut found = shares.into_iter().fold(Found::default(), Found::joined);
    keep_listed(&mut found.files);
    found.timed_out = stop.timed_out();
    found
}

/// What one thread found; handed over when the thread is done.
struct Share<'a> {
    found: Found,
    shares: &'a Mutex<Vec<Found>>,
}

impl Drop for Share<'_> {
    fn drop(&mut self) {
        self.shares.lock().unwrap_or_else(PoisonError::into_inner).push(std::mem::take(&mut self.found));
    }
}

impl Found {
    fn joined(mut self, other: Self) -> Self {
        self.files.extend(other.files);
        Self {
            files: self.files,
            hits: self.hits + other.hits,
            files_with_hits: self.files_with_hits + other.files_with_hits,
            timed_out: self.timed_out || other.timed_out,
            protected: self.protected + other.protected,
            unreadable: self.unreadable + other.unreadable,
            long_lines: self.long_lines + other.long_lines,
            binary: self.binary + other.binary,
        }
    }
}

/// Sorts by path and drops what cannot be listed.
fn keep_listed(files: &mut Vec<FileHits>) {
    files.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    files.truncate(MAX_LISTED_FILES);
}

/// Gets the lines of the hits that are on the page.
fn fill_page(query: &Query<'_>, found: &mut Found, stop: &Stop) {
    let stop = Stop { cancel: stop.cancel.clone(), until: stop.until.max(Instant::now() + SHOWING_TIME) };
    let mut searcher = searcher(query.context, true);
    let mut before = 0;
    for file in &mut found.files {
        let hits = usize::try_from(file.hits).unwrap_or(usize::MAX);
        let (skip, keep) =
            (query.offset.saturating_sub(before), (query.offset + query.limit).saturating_sub(before));
        if keep == 0 {
            break;
        }
        before = before.saturating_add(hits);
        if skip >= hits {
            continue;
        }
        let wanted = Wanted { skip, keep, count_all: false };
        if let Outcome::Hits(shown) =
            search_file(query, &query.matcher, &mut searcher, &file.path, wanted, &stop)
        {
            file.lines = shown.lines;
        }
    }
}

/// The inode comes with the directory entry; only a match costs a look at the file.
fn is_one_of(entry: &ignore::DirEntry, files: &[(u64, u64)]) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    entry.ino().is_some_and(|ino| files.iter().any(|(_, known)| *known == ino))
        && entry.metadata().is_ok_and(|meta| files.contains(&(meta.dev(), meta.ino())))
}

/// What came of one file.
enum Outcome {
    Nothing,
    Hits(FileHits),
    Binary,
    LongLine,
    Unreadable,
}

fn take(found: &mut Found, outcome: Outcome, may_read: &(dyn Fn(&Path) -> bool + Sync)) {
    match outcome {
        Outcome::Nothing => {}
        Outcome::Binary => found.binary += 1,
        Outcome::LongLine => found.long_lines += 1,
        Outcome::Unreadable => found.unreadable += 1,
        Outcome::Hits(file) if !may_read(&file.path) => found.protected += 1,
        Outcome::Hits(file) => {
            found.hits += file.hits;
            found.files_with_hits += 1;
            found.files.push(file);
        }
    }
}

/// Which hits of a file are kept with their lines.
#[derive(Debug, Clone, Copy)]
struct Wanted {
    /// Hits passed over.
    skip: usize,
    /// The first hit that is not kept any more.
    keep: usize,
    /// Those behind are counted; otherwise the search ends there.
    count_all: bool,
}

fn searcher(context: usize, numbers: bool) -> Searcher {
    SearcherBuilder::new()
        .line_number(numbers)
        .line_terminator(grep_matcher::LineTerminator::crlf())
        .before_context(context)
        .after_context(context)
        .heap_limit(Some(MAX_LINE_BYTES))
        .binary_detection(BinaryDetection::quit(b'\0'))
        .build()
}

fn search_file(
    query: &Query<'_>,
    matcher: &RegexMatcher,
    searcher: &mut Searcher,
    path: &Path,
    wanted: Wanted,
    stop: &Stop,
) -> Outcome {
    if stop.now() {
        return Outcome::Nothing;
    }
    // Not blocking: a file may have become a pipe since the walk saw it.
    let opened = OpenOptions::new().read(true).custom_flags(nix::libc::O_NONBLOCK).open(path);
    let Ok(file) = opened else { return Outcome::Unreadable };
    if !file.metadata().is_ok_and(|metadata| metadata.is_file()) {
        return Outcome::Nothing;
    }
    let mut sink = HitSink { query, wanted, hits: 0, lines: Vec::new(), last_kept: false, binary: false };
    let reader = StoppingReader { inner: file, stop };
    match searcher.search_reader(matcher, reader, &mut sink) {
        Ok(()) if sink.hits == 0 => Outcome::Nothing,
        Ok(()) if sink.binary => Outcome::Binary,
        Ok(()) => Outcome::Hits(FileHits { path: path.to_owned(), hits: sink.hits, lines: sink.lines }),
        Err(error) if error.kind() == io::ErrorKind::TimedOut && sink.hits > 0 => {
            Outcome::Hits(FileHits { path: path.to_owned(), hits: sink.hits, lines: sink.lines })
        }
        Err(error) if error.kind() == io::ErrorKind::TimedOut => Outcome::Nothing,
        Err(error) if error.to_string().contains("allocation limit") => Outcome::LongLine,
        Err(_) => Outcome::Unreadable,
    }
}

/// Takes the hits of one file.
struct HitSink<'a> {
    query: &'a Query<'a>,
    wanted: Wanted,
    hits: u64,
    lines: Vec<Line>,
    last_kept: bool,
    binary: bool,
}

impl HitSink<'_> {
    fn keeps_next(&self) -> bool {
        let hits = usize::try_from(self.hits).unwrap_or(usize::MAX);
        !self.query.files_only && (self.wanted.skip..self.wanted.keep).contains(&hits)
    }

    fn push(&mut self, number: Option<u64>, bytes: &[u8], hit: bool) {
        let line = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let text = if hit { shown_hit(line, &self.query.matcher) } else { shown_start(line) };
        self.lines.push(Line { number: number.unwrap_or(0), text, hit });
    }
}

impl Sink for HitSink<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, io::Error> {
        self.last_kept = self.keeps_next();
        if self.last_kept {
            self.push(found.line_number(), found.bytes(), true);
        } else if !self.wanted.count_all
            && usize::try_from(self.hits).is_ok_and(|hits| hits >= self.wanted.keep)
        {
            return Ok(false);
        }
        self.hits += 1;
        Ok(!self.query.files_only)
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> Result<bool, io::Error> {
        let wanted = match context.kind() {
            SinkContextKind::After => self.last_kept,
            _ => self.keeps_next(),
        };
        if wanted {
            self.push(context.line_number(), context.bytes(), false);
        }
        Ok(true)
    }

    fn finish(&mut self, _: &Searcher, end: &SinkFinish) -> Result<(), io::Error> {
        self.binary = end.binary_byte_offset().is_some();
        Ok(())
    }
}

fn shown_start(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line.get(..LINE_CHARS * 4).unwrap_or(line));
    let (shown, cut) = first_chars(&text, LINE_CHARS);
    let cut = cut || line.len() > LINE_CHARS * 4;
    format!("{shown}{}", if cut { "…" } else { "" })
}

/// The line, or the part of a long one around its first match.
fn shown_hit(line: &[u8], matcher: &RegexMatcher) -> String {
    if line.len() <= LINE_CHARS {
        return String::from_utf8_lossy(line).into_owned();
    }
    let at = matcher.find(line).ok().flatten().map_or(0, |found| found.start());
    // A fifth of the room before the match.
    let from = at.saturating_sub(LINE_CHARS / 5);
    let window = line.get(from..(from + LINE_CHARS * 4).min(line.len())).unwrap_or_default();
    let text = String::from_utf8_lossy(window);
    let text = if from > 0 { text.trim_start_matches('\u{fffd}') } else { &*text };
    let (shown, cut) = first_chars(text, LINE_CHARS - 2);
    let more = cut || from + window.len() < line.len();
    format!("{}{shown}{}", if from > 0 { "…" } else { "" }, if more { "…" } else { "" })
}

/// Compiles a pattern for line-wise search. The flag says that it can match a line break, which no line holds.
pub(crate) fn compile(pattern: &str) -> Result<(RegexMatcher, bool), String> {
    let mut builder = grep_regex::RegexMatcherBuilder::new();
    builder.multi_line(true).unicode(true).octal(false);
    match builder.crlf(true).build(pattern) {
        Ok(matcher) => Ok((matcher, false)),
        Err(first) => match builder.crlf(false).line_terminator(None).build(pattern) {
            Ok(matcher) => Ok((matcher, true)),
            Err(_) => Err(first.to_string()),
        },
    }
}
