//! Keeps inline thinking (`<think>…</think>` and its kin) out of the visible text (spec 10 §18).
//!
//! Works on a stream of pieces cut anywhere, and gives the same result for every cut. A tag at the
//! start of a line opens a block at once, closed or not. A tag within a line is held with what
//! follows, for up to 400 characters: with its closing tag it is removed, without one it was prose.
//! Tags inside code are text.

/// Names of the tags, in lower case.
const TAGS: [&str; 6] = ["think", "thinking", "reasoning", "thought", "reasoning_scratchpad", "mm:think"];
/// Longest tag with attributes; longer ones are prose.
const MAX_TAG_CHARS: usize = 120;
/// Longest text that is held back for the closing tag of a tag within a line.
const MAX_HELD_CHARS: usize = 400;

/// A piece of the text, sorted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Piece<'a> {
    Text(&'a str),
    Thinking(&'a str),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Text,
    /// Inside a block that began at the start of a line.
    Block,
    /// After a tag within a line; `held` has the tag and what followed.
    Held,
}

/// The state between two pieces.
#[derive(Debug)]
pub(crate) struct ThinkScrubber {
    mode: Mode,
    /// What may yet turn out to be a tag: from `<` on.
    tag: String,
    held: String,
    held_chars: usize,
    /// Where the thinking begins in `held`.
    held_body: usize,
    code: Code,
    /// White space is dropped until something else comes.
    skip_space: bool,
    /// What this push has sorted so far, not handed over yet.
    out: String,
    out_is_thinking: bool,
}

/// Where the text stands with regard to lines and code.
#[derive(Debug, Clone, Copy)]
struct Code {
    at_line_start: bool,
    in_fence: bool,
    /// Length of the run of backticks that opened inline code; 0 outside.
    inline: usize,
    /// Length of the run of backticks that is being read, and whether it began its line.
    run: usize,
    run_began_line: bool,
}

impl Code {
    fn new() -> Self {
        Self { at_line_start: true, in_fence: false, inline: 0, run: 0, run_began_line: false }
    }

    fn is_code(self) -> bool {
        self.in_fence || self.inline > 0
    }

    fn see(&mut self, character: char) {
        if character == '`' {
            if self.run == 0 {
                self.run_began_line = self.at_line_start;
            }
            self.run += 1;
            self.at_line_start = false;
            return;
        }
        self.end_run();
        match character {
            '\n' => {
                self.at_line_start = true;
                // A stray backtick must not make code of all that follows.
                self.inline = 0;
            }
            ' ' | '\t' | '\r' => {}
            _ => self.at_line_start = false,
        }
    }

    fn end_run(&mut self) {
        let run = std::mem::take(&mut self.run);
        if run >= 3 && self.run_began_line && self.inline == 0 {
            self.in_fence = !self.in_fence;
        } else if run > 0 && !self.in_fence {
            match self.inline {
                0 => self.inline = run,
                open if open == run => self.inline = 0,
                _ => {}
            }
        }
    }
}

/// What a beginning with `<` is.
enum Shape {
    /// Not a tag of ours, whatever follows.
    No,
    Maybe,
    Open,
    Close,
}

impl Default for ThinkScrubber {
    fn default() -> Self {
        Self {
            mode: Mode::Text,
            tag: String::new(),
            held: String::new(),
            held_chars: 0,
            held_body: 0,
            code: Code::new(),
            skip_space: false,
            out: String::new(),
            out_is_thinking: false,
        }
    }
}

impl ThinkScrubber {
    /// Takes the next piece of the model's text.
    pub(crate) fn push(&mut self, text: &str, sink: &mut dyn FnMut(Piece<'_>)) {
        let is_plain = self.mode == Mode::Text
            && self.tag.is_empty()
            && !self.skip_space
            && self.code.run == 0
            && !text.contains(['<', '`']);
        if is_plain {
            // By far the most common case: nothing to look for, so nothing to copy.
            self.note_plain(text);
            if !text.is_empty() {
                sink(Piece::Text(text));
            }
            return;
        }
        for character in text.chars() {
            self.take(character, sink);
        }
        self.hand_over(sink);
    }

    /// Takes the end: what was held back is prose, and an open block stays thinking.
    pub(crate) fn finish(&mut self, sink: &mut dyn FnMut(Piece<'_>)) {
        let tag = std::mem::take(&mut self.tag);
        match self.mode {
            Mode::Text => self.emit(&tag, false, sink),
            Mode::Block => self.emit(&tag, true, sink),
            Mode::Held => {
                let held = std::mem::take(&mut self.held);
                self.emit(&held, false, sink);
                self.emit(&tag, false, sink);
            }
        }
        self.mode = Mode::Text;
        self.hand_over(sink);
    }

    fn note_plain(&mut self, text: &str) {
        for character in text.chars() {
            self.code.see(character);
        }
    }

    fn take(&mut self, character: char, sink: &mut dyn FnMut(Piece<'_>)) {
        if !self.tag.is_empty() {
            self.tag.push(character);
            match shape(&self.tag) {
                Shape::Maybe => {}
                Shape::No => self.not_a_tag(sink),
                Shape::Open => self.opened(sink),
                Shape::Close => self.closed(sink),
            }
            return;
        }
        if self.skip_space {
            if character.is_whitespace() {
                if character == '\n' {
                    self.code.see(character);
                }
                return;
            }
            self.skip_space = false;
        }
        if self.mode == Mode::Text {
            // A run of backticks ends at whatever follows it, also at a tag.
            if character != '`' {
                self.code.end_run();
            }
            if character == '<' && !self.code.is_code() {
                self.tag.push(character);
                return;
            }
            self.code.see(character);
            self.emit_char(character, false, sink);
            return;
        }
        if character == '<' {
            self.tag.push(character);
            return;
        }
        self.inside(character, sink);
    }

    /// A character of thinking, or of what may be thinking.
    fn inside(&mut self, character: char, sink: &mut dyn FnMut(Piece<'_>)) {
        if self.mode == Mode::Block {
            self.emit_char(character, true, sink);
            return;
        }
        self.held.push(character);
        self.held_chars += 1;
        if self.held_chars > MAX_HELD_CHARS {
            self.release_held(sink);
        }
    }

    fn not_a_tag(&mut self, sink: &mut dyn FnMut(Piece<'_>)) {
        let tag = std::mem::take(&mut self.tag);
        let mut characters = tag.chars();
        // The first character was no tag after all; the last one may begin another.
        let Some(first) = characters.next() else { return };
        match self.mode {
            Mode::Text => {
                self.code.see(first);
                self.emit_char(first, false, sink);
            }
            Mode::Block | Mode::Held => self.inside(first, sink),
        }
        for character in characters {
            self.take(character, sink);
        }
    }

    fn opened(&mut self, sink: &mut dyn FnMut(Piece<'_>)) {
        match self.mode {
            Mode::Text if self.code.at_line_start => {
                self.tag.clear();
                self.mode = Mode::Block;
            }
            Mode::Text => {
                self.held = std::mem::take(&mut self.tag);
                self.held_body = self.held.len();
                self.held_chars = 0;
                self.mode = Mode::Held;
            }
            Mode::Block | Mode::Held => {
                let tag = std::mem::take(&mut self.tag);
                for character in tag.chars() {
                    self.inside_or_text(character, sink);
                }
            }
        }
    }

    fn closed(&mut self, sink: &mut dyn FnMut(Piece<'_>)) {
        self.tag.clear();
        match self.mode {
            // A closing tag of nothing is dropped, with the space that it stood in.
            Mode::Text => self.skip_space = true,
            Mode::Block => {
                self.mode = Mode::Text;
                self.skip_space = true;
            }
            Mode::Held => {
                let held = std::mem::take(&mut self.held);
                let body = held.get(self.held_body..).unwrap_or_default().to_owned();
                self.mode = Mode::Text;
                self.emit(&body, true, sink);
            }
        }
    }

    /// Too much came without a closing tag: all of it was prose, and stays prose.
    fn release_held(&mut self, sink: &mut dyn FnMut(Piece<'_>)) {
        let held = std::mem::take(&mut self.held);
        self.mode = Mode::Text;
        self.note_plain(&held);
        self.emit(&held, false, sink);
    }

    fn inside_or_text(&mut self, character: char, sink: &mut dyn FnMut(Piece<'_>)) {
        if self.mode == Mode::Text {
            self.code.see(character);
            self.emit_char(character, false, sink);
        } else {
            self.inside(character, sink);
        }
    }

    fn emit(&mut self, text: &str, thinking: bool, sink: &mut dyn FnMut(Piece<'_>)) {
        if text.is_empty() {
            return;
        }
        self.turn_to(thinking, sink);
        self.out.push_str(text);
    }

    fn emit_char(&mut self, character: char, thinking: bool, sink: &mut dyn FnMut(Piece<'_>)) {
        self.turn_to(thinking, sink);
        self.out.push(character);
    }

    fn turn_to(&mut self, thinking: bool, sink: &mut dyn FnMut(Piece<'_>)) {
        if self.out_is_thinking != thinking {
            self.hand_over(sink);
            self.out_is_thinking = thinking;
        }
    }

    fn hand_over(&mut self, sink: &mut dyn FnMut(Piece<'_>)) {
        if !self.out.is_empty() {
            let piece =
                if self.out_is_thinking { Piece::Thinking(&self.out) } else { Piece::Text(&self.out) };
            sink(piece);
            self.out.clear();
        }
    }
}

/// What `text`, which begins with `<`, is so far.
fn shape(text: &str) -> Shape {
    let Some(rest) = text.strip_prefix('<') else { return Shape::No };
    let (rest, is_close) = rest.strip_prefix('/').map_or((rest, false), |rest| (rest, true));
    let name_end = rest.find(|c: char| c == '>' || c.is_whitespace()).unwrap_or(rest.len());
    let Some((name, tail)) = rest.split_at_checked(name_end) else { return Shape::No };
    let name = name.to_ascii_lowercase();
    if tail.is_empty() {
        // The name is still being written.
        return if TAGS.iter().any(|tag| tag.starts_with(name.as_str())) { Shape::Maybe } else { Shape::No };
    }
    if !TAGS.contains(&name.as_str()) || tail.contains('<') || text.chars().count() > MAX_TAG_CHARS {
        return Shape::No;
    }
    match (tail.ends_with('>'), is_close) {
        (false, _) => Shape::Maybe,
        (true, false) => Shape::Open,
        (true, true) => Shape::Close,
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use proptest::prelude::*;

    use super::*;

    fn scrub(pieces: &[&str]) -> (String, String) {
        let mut scrubber = ThinkScrubber::default();
        let (mut text, mut thinking) = (String::new(), String::new());
        let mut sort = |piece: Piece<'_>| match piece {
            Piece::Text(piece) => text.push_str(piece),
            Piece::Thinking(piece) => thinking.push_str(piece),
        };
        for piece in pieces {
            scrubber.push(piece, &mut sort);
        }
        scrubber.finish(&mut sort);
        (text, thinking)
    }

    #[test]
    fn blocks_are_removed_and_prose_about_tags_stays() {
        let long = format!("a <think>{}", "x".repeat(500));
        let cases = [
            ("plain", "plain", ""),
            ("<think>hm</think>\n\nanswer", "answer", "hm"),
            ("<THINK>hm</Think>answer", "answer", "hm"),
            ("<think attr=\"1\">hm</think>answer", "answer", "hm"),
            ("  <reasoning>never closed", "  ", "never closed"),
            ("one\n<thought>hm</thought>\ntwo", "one\ntwo", "hm"),
            ("see <think>inner</think> here", "see  here", "inner"),
            ("the <think> tag alone", "the <think> tag alone", ""),
            (long.as_str(), long.as_str(), ""),
            ("`<think>` is a tag", "`<think>` is a tag", ""),
            ("```\n<think>\n```\n<think>x</think>y", "```\n<think>\n```\ny", "x"),
            ("a </think> b", "a b", ""),
            ("a < b and c <d", "a < b and c <d", ""),
            ("<thin", "<thin", ""),
            ("<<think>x</think>y", "<y", "x"),
            ("<thinker>x", "<thinker>x", ""),
            ("it`s\n<think>x</think>y", "it`s\ny", "x"),
            ("<mm:think>x</mm:think>y", "y", "x"),
            ("", "", ""),
        ];
        for (input, text, thinking) in cases {
            assert_eq!(scrub(&[input]), (text.to_owned(), thinking.to_owned()), "{input:?}");
        }
    }

    fn text() -> impl Strategy<Value = String> {
        let word = prop_oneof![
            Just("<think>"),
            Just("</think>"),
            Just("<thinking a=1>"),
            Just("</thinking>"),
            Just("\n"),
            Just("`"),
            Just("```"),
            Just(" "),
            Just("<"),
            Just("word"),
            Just("ä"),
            Just("</"),
            Just("<th"),
            Just(">"),
        ];
        proptest::collection::vec(word, 0..24).prop_map(|words| words.concat())
    }

    proptest! {
        #[test]
        fn every_cut_gives_the_same_result(text in text(), every in 1usize..6) {
            let whole = scrub(&[&text]);
            let characters: Vec<char> = text.chars().collect();
            let pieces: Vec<String> = characters.chunks(every).map(|piece| piece.iter().collect()).collect();
            let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
            prop_assert_eq!(scrub(&pieces), whole);
        }

        #[test]
        fn text_without_tags_comes_through_unchanged(text in "[a-z <`\n/>]{0,60}") {
            prop_assume!(!TAGS.iter().any(|tag| text.contains(tag)));
            prop_assert_eq!(scrub(&[&text]).0, text);
        }
    }
}
