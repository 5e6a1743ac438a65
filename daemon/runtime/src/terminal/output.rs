//! Keeps the first 40 % and the last 60 % of an output of any length in bounded memory (spec 40 §6.1).

/// The part of the cap that goes to the beginning.
const HEAD_PERCENT: usize = 40;

/// Characters of one output, bounded while they arrive.
#[derive(Debug)]
pub(super) struct OutputBuffer {
    head_cap: usize,
    tail_cap: usize,
    head: String,
    head_chars: usize,
    tail: String,
    tail_chars: usize,
    total: u64,
}

impl OutputBuffer {
    /// A buffer that keeps at most `cap` characters.
    pub(super) fn new(cap: usize) -> Self {
        let head_cap = cap / 100 * HEAD_PERCENT + cap % 100 * HEAD_PERCENT / 100;
        Self {
            head_cap,
            tail_cap: cap - head_cap,
            head: String::new(),
            head_chars: 0,
            tail: String::new(),
            tail_chars: 0,
            total: 0,
        }
    }

    /// Takes more output.
    pub(super) fn push(&mut self, text: &str) {
        let chars = text.chars().count();
        self.total += chars as u64;
        let room = self.head_cap - self.head_chars;
        if chars <= room {
            self.head.push_str(text);
            self.head_chars += chars;
            return;
        }
        let (to_head, to_tail) = split_at_char(text, room);
        self.head.push_str(to_head);
        self.head_chars += room;
        self.push_tail(to_tail, chars - room);
    }

    fn push_tail(&mut self, text: &str, chars: usize) {
        if chars >= self.tail_cap {
            // The piece alone fills the tail: nothing before it can stay.
            self.tail.clear();
            self.tail.push_str(split_at_char(text, chars - self.tail_cap).1);
            self.tail_chars = self.tail_cap;
            return;
        }
        self.tail.push_str(text);
        self.tail_chars += chars;
        // Cutting only at twice the cap makes the cost of a flood linear.
        if self.tail_chars > self.tail_cap * 2 {
            self.cut_tail();
        }
    }

    fn cut_tail(&mut self) {
        if let Some(excess) = self.tail_chars.checked_sub(self.tail_cap) {
            let keep = split_at_char(&self.tail, excess).1.len();
            self.tail.drain(..self.tail.len() - keep);
            self.tail_chars = self.tail_cap;
        }
    }

    /// Everything pushed so far, as long as nothing has been dropped: head and tail.
    pub(super) fn whole(&self) -> Option<(&str, &str)> {
        let kept = (self.head_chars + self.tail_chars) as u64;
        (kept == self.total).then_some((self.head.as_str(), self.tail.as_str()))
    }

    /// Whether `text` still fits without dropping anything from the result.
    pub(super) fn fits(&self, text: &str) -> bool {
        let cap = (self.head_cap + self.tail_cap) as u64;
        // The byte length is an upper bound that is free to ask.
        self.total + text.len() as u64 <= cap || self.total + text.chars().count() as u64 <= cap
    }

    /// The kept text, and how many characters were left out.
    pub(super) fn finish(mut self) -> (String, u64) {
        self.cut_tail();
        let omitted = self.total - (self.head_chars + self.tail_chars) as u64;
        let mut text = self.head;
        if omitted > 0 {
            if !text.is_empty() && !text.ends_with('\n') {
                text.push('\n');
            }
            let line = format!("[... {omitted} of {} characters left out ...]\n", self.total);
            text.push_str(&line);
        }
        text.push_str(&self.tail);
        (text, omitted)
    }
}

/// Splits after `count` characters, or at the end.
fn split_at_char(text: &str, count: usize) -> (&str, &str) {
    let at = text.char_indices().nth(count).map_or(text.len(), |(at, _)| at);
    text.split_at_checked(at).unwrap_or((text, ""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bound(chunks: &[&str], cap: usize) -> (String, u64) {
        let mut buffer = OutputBuffer::new(cap);
        for chunk in chunks {
            buffer.push(chunk);
        }
        buffer.finish()
    }

    #[test]
    fn head_and_tail_are_kept_and_the_line_between_counts_what_is_gone() {
        let (text, omitted) = bound(&["abcdefghij", "klmnopqrstuvwxyz"], 10);
        assert_eq!(omitted, 16);
        assert_eq!(text, "abcd\n[... 16 of 26 characters left out ...]\nuvwxyz");
    }

    #[test]
    fn output_within_the_cap_is_untouched() {
        assert_eq!(bound(&["abc", "def"], 6), ("abcdef".to_owned(), 0));
        assert_eq!(bound(&["äöü", "漢字"], 5), ("äöü漢字".to_owned(), 0));
        assert_eq!(bound(&[], 5), (String::new(), 0));
    }

    #[test]
    fn a_cap_of_nothing_keeps_only_the_line() {
        assert_eq!(bound(&["abc"], 0), ("[... 3 of 3 characters left out ...]\n".to_owned(), 3));
    }

    #[test]
    fn a_flood_stays_in_bounded_memory() {
        let cap = 1000;
        let mut buffer = OutputBuffer::new(cap);
        let line = "0123456789abcdef\n".repeat(300);
        for _ in 0..2000 {
            buffer.push(&line);
            assert!(buffer.head.capacity() + buffer.tail.capacity() <= 64 * 1024);
        }
        assert_eq!(buffer.finish().1, 2000 * 5100 - cap as u64);
    }

    proptest! {
        #[test]
        fn kept_characters_are_the_first_40_and_last_60_percent(
            chunks in proptest::collection::vec("[a-zäß漢\n]{0,30}", 0..12),
            cap in 0usize..60,
        ) {
            let all: Vec<char> = chunks.concat().chars().collect();
            let pieces: Vec<&str> = chunks.iter().map(String::as_str).collect();
            let (text, omitted) = bound(&pieces, cap);
            if all.len() <= cap {
                prop_assert_eq!((text, omitted), (all.iter().collect::<String>(), 0));
            } else {
                let head: String = all.iter().take(cap * 40 / 100).collect();
                let tail: String = all.iter().skip(all.len() - (cap - cap * 40 / 100)).collect();
                prop_assert!(text.starts_with(&head));
                prop_assert!(text.ends_with(&tail));
                prop_assert_eq!(omitted, (all.len() - cap) as u64);
            }
        }

        #[test]
        fn how_the_output_was_cut_into_pieces_does_not_matter(
            chunks in proptest::collection::vec("[a-z漢]{0,30}", 0..12),
            cap in 0usize..60,
        ) {
            let pieces: Vec<&str> = chunks.iter().map(String::as_str).collect();
            prop_assert_eq!(bound(&pieces, cap), bound(&[&chunks.concat()], cap));
        }
    }
}
