//! Searches the content of files, in process, with ripgrep's crates. Results come in path order, the
//! work is spread over threads in chunks, and memory holds only what can be shown.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use grep_matcher::Matcher as _;
use grep_regex::RegexMatcher;
use grep_searcher::{
    BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkContextKind, SinkFinish, SinkMatch,
};

use super::glob::NameGlob;
use super::stop::{Stop, StoppingReader};
use super::walk::{Rules, walk};
use crate::files::text::first_chars;

/// Characters of a line that are shown (spec 40 §5.6).
pub(crate) const LINE_CHARS: usize = 500;

/// A line longer than this is not searched: it would have to be held in memory.
const MAX_LINE_BYTES: usize = 16 * 1024 * 1024;

/// Files searched at once while hits are kept, and afterwards, when they are only counted.
const KEEPING_CHUNK: usize = 64;
const COUNTING_CHUNK: usize = 1024;

/// Fewer files than this are not worth threads.
const WORTH_THREADS: usize = 16;
const MAX_THREADS: usize = 8;

/// Hits that are passed over before the first shown one, beyond which files are searched one by one so
/// that passed-over hits need not be held.
const MAX_HELD_OFFSET: usize = 500;

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
    /// Which hit of the file it is, or is context of; from 0.
    of: u64,
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
    let mut found = Found::default();
    let mut entries = walk(query.root, rules).filter_map(Result::ok).filter(|entry| {
        entry.file_type().is_some_and(|kind| kind.is_file() || entry.depth() == 0 && kind.is_symlink())
            && query.glob.as_ref().is_none_or(|glob| glob.matches(entry.path(), query.root))
            && !is_one_of(entry, never_opened)
    });
    loop {
        let size = chunk_size(query, &found);
        let chunk: Vec<PathBuf> = entries
            .by_ref()
            .take_while(|_| !stop.now())
            .take(size)
            .map(ignore::DirEntry::into_path)
            .collect();
        if chunk.is_empty() || stop.now() {
            break;
        }
        for outcome in search_chunk(query, &chunk, &found, stop) {
            take(query, &mut found, outcome, may_read);
        }
    }
    found.timed_out = stop.timed_out();
    found
}

/// The inode comes with the directory entry; only a match costs a look at the file.
fn is_one_of(entry: &ignore::DirEntry, files: &[(u64, u64)]) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    entry.ino().is_some_and(|ino| files.iter().any(|(_, known)| *known == ino))
        && entry.metadata().is_ok_and(|meta| files.contains(&(meta.dev(), meta.ino())))
}

fn chunk_size(query: &Query<'_>, found: &Found) -> usize {
    let wanted = (query.offset + query.limit) as u64;
    let so_far = if query.files_only { found.files_with_hits } else { found.hits };
    if so_far >= wanted {
        COUNTING_CHUNK
    } else if query.offset > MAX_HELD_OFFSET {
        1
    } else {
        KEEPING_CHUNK
    }
}

/// What came of one file.
enum Outcome {
    Nothing,
    Hits(FileHits),
    Binary,
    LongLine,
    Unreadable,
}

fn search_chunk(query: &Query<'_>, chunk: &[PathBuf], found: &Found, stop: &Stop) -> Vec<Outcome> {
    let so_far = usize::try_from(found.hits).unwrap_or(usize::MAX);
    // One file at a time can pass over exactly; several do not know of each other's hits.
    let (skip, keep) = if chunk.len() == 1 {
        (query.offset.saturating_sub(so_far), (query.offset + query.limit).saturating_sub(so_far))
    } else {
        (0, (query.offset + query.limit).saturating_sub(so_far))
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS);
    if chunk.len() < WORTH_THREADS || threads == 1 {
        let mut searcher = searcher(query.context);
        return chunk.iter().map(|path| search_file(query, &mut searcher, path, skip, keep, stop)).collect();
    }
    let next = AtomicUsize::new(0);
    let outcomes: Mutex<Vec<Option<Outcome>>> = Mutex::new(chunk.iter().map(|_| None).collect());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut searcher = searcher(query.context);
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(path) = chunk.get(at) else { break };
                    let outcome = search_file(query, &mut searcher, path, skip, keep, stop);
                    let mut outcomes = outcomes.lock().unwrap_or_else(PoisonError::into_inner);
                    if let Some(slot) = outcomes.get_mut(at) {
                        *slot = Some(outcome);
                    }
                }
            });
        }
    });
    let outcomes = outcomes.into_inner().unwrap_or_else(PoisonError::into_inner);
    outcomes.into_iter().map(|outcome| outcome.unwrap_or(Outcome::Nothing)).collect()
}

fn take(query: &Query<'_>, found: &mut Found, outcome: Outcome, may_read: &(dyn Fn(&Path) -> bool + Sync)) {
    match outcome {
        Outcome::Nothing => {}
        Outcome::Binary => found.binary += 1,
        Outcome::LongLine => found.long_lines += 1,
        Outcome::Unreadable => found.unreadable += 1,
        Outcome::Hits(file) if !may_read(&file.path) => found.protected += 1,
        Outcome::Hits(mut file) => {
            cut_to_window(query, found.hits, &mut file);
            found.hits += file.hits;
            found.files_with_hits += 1;
            if found.files.len() < MAX_LISTED_FILES {
                found.files.push(file);
            }
        }
    }
}

/// Leaves the lines of those hits that are shown, when `before` hits came in earlier files.
fn cut_to_window(query: &Query<'_>, before: u64, file: &mut FileHits) {
    let shown = query.offset as u64..(query.offset + query.limit) as u64;
    file.lines.retain(|line| shown.contains(&(before + line.of)));
}

fn searcher(context: usize) -> Searcher {
    SearcherBuilder::new()
        .line_number(true)
        .line_terminator(grep_matcher::LineTerminator::crlf())
        .before_context(context)
        .after_context(context)
        .heap_limit(Some(MAX_LINE_BYTES))
        .binary_detection(BinaryDetection::quit(b'\0'))
        .build()
}

fn search_file(
    query: &Query<'_>,
    searcher: &mut Searcher,
    path: &Path,
    skip: usize,
    keep: usize,
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
    let mut sink = HitSink { query, skip, keep, hits: 0, lines: Vec::new(), last_kept: false, binary: false };
    let reader = StoppingReader { inner: file, stop };
    match searcher.search_reader(&query.matcher, reader, &mut sink) {
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
    skip: usize,
    /// Hits from `skip` up to here are kept with their lines; all are counted.
    keep: usize,
    hits: u64,
    lines: Vec<Line>,
    last_kept: bool,
    binary: bool,
}

impl HitSink<'_> {
    fn keeps_next(&self) -> bool {
        let hits = usize::try_from(self.hits).unwrap_or(usize::MAX);
        !self.query.files_only && hits >= self.skip && hits < self.keep
    }

    fn push(&mut self, number: Option<u64>, bytes: &[u8], hit: bool, of: u64) {
        let line = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let text = if hit { shown_hit(line, &self.query.matcher) } else { shown_start(line) };
        self.lines.push(Line { number: number.unwrap_or(0), text, hit, of });
    }
}

impl Sink for HitSink<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, io::Error> {
        self.last_kept = self.keeps_next();
        if self.last_kept {
            self.push(found.line_number(), found.bytes(), true, self.hits);
        }
        self.hits += 1;
        Ok(!self.query.files_only)
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> Result<bool, io::Error> {
        let (wanted, of) = match context.kind() {
            SinkContextKind::After => (self.last_kept, self.hits.saturating_sub(1)),
            _ => (self.keeps_next(), self.hits),
        };
        if wanted {
            self.push(context.line_number(), context.bytes(), false, of);
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
