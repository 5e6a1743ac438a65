//! Lines of a file, read as a stream: memory is bounded by the answer, not by the file or its lines.

use std::io::{self, Read, Seek, SeekFrom};

use super::text::{BOM, looks_binary};

const CHUNK: usize = 256 * 1024;

/// In a larger file lines behind the answer are not counted for their own sake (spec 40 §5.2), and a line that
/// is cut is followed to here.
const COUNT_UP_TO: u64 = 64 * 1024 * 1024;

/// Which lines are wanted, and how much of them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Window {
    /// First line, from 1.
    pub(crate) offset: usize,
    pub(crate) limit: usize,
    pub(crate) max_line_chars: usize,
    /// Characters of the whole answer, line numbers included.
    pub(crate) max_chars: usize,
}

/// Why the answer ends before the file does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    /// As many lines as were asked for.
    Limit,
    /// As many characters as an answer may have.
    Chars,
}

/// What was read.
#[expect(clippy::struct_excessive_bools, reason = "independent facts about one file")]
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Slice {
    /// Number of the first line in `lines`.
    pub(crate) first: usize,
    pub(crate) lines: Vec<String>,
    pub(crate) total_lines: usize,
    /// There are at least `total_lines`; the rest was not counted.
    pub(crate) total_is_lower_bound: bool,
    pub(crate) cut: Option<Cut>,
    /// Lines of which only the beginning is there.
    pub(crate) long_lines: usize,
    /// Some bytes were no UTF-8 and were replaced.
    pub(crate) lossy: bool,
    /// A line ended in CR LF.
    pub(crate) crlf: bool,
    /// The file has no line `offset`; this is its last.
    pub(crate) past_end: bool,
}

/// What came of reading.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Text(Slice),
    /// Not text; the head tells what it may be.
    Binary {
        head: Vec<u8>,
    },
    /// `stop` said so.
    Stopped,
}

/// Reads a window of lines of a file of about `size` bytes. `stop` is asked between chunks.
pub(crate) fn read_window(
    file: &mut (impl Read + Seek),
    size: u64,
    window: Window,
    stop: &dyn Fn() -> bool,
) -> io::Result<Outcome> {
    let outcome = scan(file, size, window, stop)?;
    let Outcome::Text(slice) = &outcome else { return Ok(outcome) };
    if !slice.lines.is_empty() || slice.total_lines == 0 {
        return Ok(outcome);
    }
    // Past the end: the last line, whose number is known now.
    file.seek(SeekFrom::Start(0))?;
    let last = Window { offset: slice.total_lines, limit: 1, ..window };
    Ok(match scan(file, size, last, stop)? {
        Outcome::Text(slice) => Outcome::Text(Slice { past_end: true, ..slice }),
        other => other,
    })
}

fn scan(file: &mut impl Read, size: u64, window: Window, stop: &dyn Fn() -> bool) -> io::Result<Outcome> {
    let mut scan = Scan::new(window);
    let mut buffer = vec![0_u8; CHUNK];
    let mut position = 0_u64;
    loop {
        if stop() {
            return Ok(Outcome::Stopped);
        }
        let read = match file.read(&mut buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read?,
        };
        let mut chunk = buffer.get(..read).unwrap_or_default();
        if chunk.is_empty() {
            scan.end_of_file();
            break;
        }
        if position == 0 {
            if looks_binary(chunk) {
                return Ok(Outcome::Binary { head: chunk.iter().take(16).copied().collect() });
            }
            chunk = chunk.strip_prefix(BOM).unwrap_or(chunk);
        }
        position += read as u64;
        scan.take(chunk);
        // Cut: there is more than the answer.
        let answered = scan.slice.cut.is_some() && size.max(position) > COUNT_UP_TO;
        if answered || position >= COUNT_UP_TO && scan.is_inside_a_cut_line() {
            scan.stop_counting();
            break;
        }
    }
    Ok(Outcome::Text(scan.slice))
}

/// Where reading stands.
struct Scan {
    window: Window,
    slice: Slice,
    /// Number of the line that the next byte belongs to.
    line: usize,
    /// The next byte is the first of its line.
    at_line_start: bool,
    /// As much of the current line as can be shown.
    kept: Vec<u8>,
    /// Bytes of the current line so far.
    line_bytes: u64,
    chars_left: usize,
    /// The current line is longer than what was read of it.
    open_ended: bool,
}

impl Scan {
    fn new(window: Window) -> Self {
        Self {
            window,
            slice: Slice {
                first: window.offset,
                lines: Vec::new(),
                total_lines: 0,
                total_is_lower_bound: false,
                cut: None,
                long_lines: 0,
                lossy: false,
                crlf: false,
                past_end: false,
            },
            line: 1,
            at_line_start: true,
            kept: Vec::new(),
            line_bytes: 0,
            chars_left: window.max_chars,
            open_ended: false,
        }
    }

    fn is_full(&self) -> bool {
        self.slice.cut.is_some() || self.slice.lines.len() >= self.window.limit
    }

    /// More of the current line came than can be shown.
    fn is_inside_a_cut_line(&self) -> bool {
        self.line >= self.window.offset && self.line_bytes > self.kept.len() as u64
    }

    fn stop_counting(&mut self) {
        if !self.is_full() {
            self.open_ended = true;
            self.finish_line(false);
            self.slice.cut = Some(Cut::Chars);
            self.line -= 1;
        }
        self.slice.total_is_lower_bound = true;
        self.slice.total_lines = self.line;
    }

    fn take(&mut self, mut chunk: &[u8]) {
        while !chunk.is_empty() {
            if self.is_full() {
                // There is more than what was asked for.
                self.slice.cut.get_or_insert(Cut::Limit);
                self.skip_lines(chunk, usize::MAX);
                return;
            }
            if self.line < self.window.offset {
                let skipped = self.skip_lines(chunk, self.window.offset - self.line);
                chunk = chunk.get(skipped..).unwrap_or_default();
                continue;
            }
            let end = memchr::memchr(b'\n', chunk);
            let (part, rest) = chunk.split_at(end.unwrap_or(chunk.len()));
            self.keep(part);
            self.at_line_start = false;
            if end.is_some() {
                self.finish_line(true);
                chunk = rest.get(1..).unwrap_or_default();
            } else {
                chunk = rest;
            }
        }
    }

    /// Passes over at most `lines` line ends. Gives the bytes passed.
    fn skip_lines(&mut self, chunk: &[u8], lines: usize) -> usize {
        // Counting is many times faster than stepping from one to the next.
        let ends = memchr::memchr_iter(b'\n', chunk).count();
        let last = lines.checked_sub(1).filter(|_| ends >= lines);
        let passed = last
            .and_then(|last| memchr::memchr_iter(b'\n', chunk).nth(last))
            .map_or(chunk.len(), |at| at + 1);
        self.line += ends.min(lines);
        self.at_line_start = passed.checked_sub(1).and_then(|last| chunk.get(last)) == Some(&b'\n');
        passed
    }

    fn keep(&mut self, part: &[u8]) {
        self.line_bytes += part.len() as u64;
        // Four bytes a character, and one more for the CR of the line end.
        let room = (self.window.max_line_chars.saturating_mul(4) + 1).saturating_sub(self.kept.len());
        self.kept.extend_from_slice(part.get(..room).unwrap_or(part));
    }

    fn finish_line(&mut self, terminated: bool) {
        let mut bytes = std::mem::take(&mut self.kept);
        let whole = self.line_bytes == bytes.len() as u64;
        if terminated && whole && bytes.last() == Some(&b'\r') {
            bytes.pop();
            self.slice.crlf = true;
        }
        if !whole {
            drop_cut_character(&mut bytes);
        }
        let (text, lossy) = match String::from_utf8(bytes) {
            Ok(text) => (text, false),
            Err(error) => (String::from_utf8_lossy(error.as_bytes()).into_owned(), true),
        };
        self.slice.lossy |= lossy;
        self.push(text, whole);
        self.line += 1;
        self.line_bytes = 0;
        self.at_line_start = true;
    }

    fn push(&mut self, mut text: String, whole: bool) {
        // The number, the bar and the line end are part of the answer.
        let frame = self.line.checked_ilog10().unwrap_or(0) as usize + 3;
        let room = self.chars_left.saturating_sub(frame);
        let mut max = self.window.max_line_chars;
        if self.slice.lines.is_empty() {
            max = max.min(room.max(1));
        }
        let end = text.char_indices().nth(max).map(|(end, _)| end);
        if let Some(end) = end {
            text.truncate(end);
        }
        let mut cost = frame + text.chars().count();
        if cost > self.chars_left && !self.slice.lines.is_empty() {
            self.slice.cut = Some(Cut::Chars);
            return;
        }
        if end.is_some() || !whole {
            self.slice.long_lines += 1;
            let more_than = if self.open_ended { "more than " } else { "" };
            let marker = format!("… [line cut: {more_than}{} bytes in all]", self.line_bytes);
            cost += marker.chars().count();
            text.push_str(&marker);
        }
        self.chars_left = self.chars_left.saturating_sub(cost);
        self.slice.lines.push(text);
    }

    fn end_of_file(&mut self) {
        let open_line = !self.at_line_start;
        if open_line && !self.is_full() && self.line >= self.window.offset {
            self.finish_line(false);
            self.slice.total_lines = self.line - 1;
        } else {
            self.slice.total_lines = if open_line { self.line } else { self.line - 1 };
        }
    }
}

/// Takes an incomplete character off the end of bytes that were cut.
fn drop_cut_character(bytes: &mut Vec<u8>) {
    if let Err(error) = std::str::from_utf8(bytes)
        && error.error_len().is_none()
    {
        bytes.truncate(error.valid_up_to());
    }
}

#[cfg(test)]
#[path = "window_tests.rs"]
mod tests;
