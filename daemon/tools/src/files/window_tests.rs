//! Tests of the line window.

use std::io::Cursor;

use pretty_assertions::assert_eq;
use proptest::prelude::*;

use super::*;

const WIDE: Window = Window { offset: 1, limit: 1000, max_line_chars: 2000, max_chars: 100_000 };

fn slice(text: &[u8], window: Window) -> Slice {
    match read_window(&mut Cursor::new(text), text.len() as u64, window, &|| false).unwrap() {
        Outcome::Text(slice) => slice,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_unterminated_last_line_counts() {
    for (text, total) in [("", 0), ("a", 1), ("a\n", 1), ("a\nb", 2), ("\n\n", 2)] {
        assert_eq!(slice(text.as_bytes(), WIDE).total_lines, total, "{text:?}");
    }
}

#[test]
fn the_window_is_cut_out_and_the_rest_is_counted() {
    let text = (1..=10).map(|n| format!("line {n}\n")).collect::<Vec<_>>().concat();
    let got = slice(text.as_bytes(), Window { offset: 4, limit: 2, ..WIDE });
    assert_eq!((got.first, got.lines, got.total_lines), (4, vec!["line 4".into(), "line 5".into()], 10));
    assert_eq!(got.cut, Some(Cut::Limit));
    let all = slice(text.as_bytes(), Window { offset: 1, limit: 10, ..WIDE });
    assert_eq!((all.cut, all.lines.len()), (None, 10));
}

#[test]
fn past_the_end_is_the_last_line() {
    let got = slice(b"a\nb\nlast", Window { offset: 99, limit: 5, ..WIDE });
    assert_eq!((got.past_end, got.first, got.lines), (true, 3, vec!["last".to_owned()]));
    assert_eq!(slice(b"", Window { offset: 7, ..WIDE }).lines, Vec::<String>::new());
}

#[test]
fn byte_order_mark_and_carriage_returns_are_taken_off() {
    let got = slice(b"\xEF\xBB\xBFa\r\nb\rc\r\n", WIDE);
    assert_eq!(got.lines, ["a", "b\rc"]);
    assert!(got.crlf);
}

#[test]
fn bytes_that_are_no_utf8_are_replaced_and_said() {
    let got = slice(b"caf\xe9 is coffee\nplain\n", WIDE);
    assert_eq!(got.lines, ["caf\u{fffd} is coffee", "plain"]);
    assert!(got.lossy);
    assert!(!slice("café\n".as_bytes(), WIDE).lossy);
}

#[test]
fn a_long_line_is_cut_between_characters() {
    let text = format!("{}\nshort\n", "é".repeat(3000));
    let got = slice(text.as_bytes(), Window { max_line_chars: 10, ..WIDE });
    assert_eq!(got.lines, [format!("{}… [line cut: 6000 bytes in all]", "é".repeat(10)), "short".to_owned()]);
    assert_eq!((got.long_lines, got.lossy), (1, false));
}

#[test]
fn the_answer_ends_at_a_line_when_it_is_full() {
    let text = "x".repeat(50) + "\n";
    let got = slice(text.repeat(10).as_bytes(), Window { max_chars: 120, ..WIDE });
    assert_eq!((got.lines.len(), got.cut, got.total_lines), (2, Some(Cut::Chars), 10));
    let first = slice(text.as_bytes(), Window { max_chars: 20, ..WIDE });
    assert_eq!(first.lines, [format!("{}… [line cut: 50 bytes in all]", "x".repeat(17))]);
}

/// A file of endless `x` that never reports its end and counts what is read of it.
struct Endless {
    read: u64,
    newline_every: u64,
}

impl Read for Endless {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        for byte in buffer.iter_mut() {
            self.read += 1;
            *byte = if self.read.is_multiple_of(self.newline_every) { b'\n' } else { b'x' };
        }
        Ok(buffer.len())
    }
}

impl Seek for Endless {
    fn seek(&mut self, _: SeekFrom) -> io::Result<u64> {
        Ok(0)
    }
}

#[test]
fn a_huge_file_is_not_read_for_its_line_count_nor_for_one_endless_line() {
    for (newline_every, least_lines, read, shown) in [
        (80, 1000, CHUNK as u64, "x".repeat(79)),
        (
            u64::MAX,
            1,
            COUNT_UP_TO,
            format!("{}… [line cut: more than 67108864 bytes in all]", "x".repeat(2000)),
        ),
    ] {
        let mut file = Endless { read: 0, newline_every };
        let Outcome::Text(got) =
            read_window(&mut file, u64::MAX, Window { limit: 1, ..WIDE }, &|| false).unwrap()
        else {
            panic!("no text")
        };
        assert!(got.total_is_lower_bound && got.total_lines >= least_lines, "{}", got.total_lines);
        assert_eq!(got.lines, [shown]);
        assert!(got.cut.is_some());
        assert_eq!(file.read, read);
    }
}

#[test]
fn reading_stops_when_it_is_told_to() {
    let mut file = Endless { read: 0, newline_every: u64::MAX };
    let asked = std::cell::Cell::new(0);
    let stop = || {
        asked.set(asked.get() + 1);
        asked.get() > 5
    };
    assert_eq!(read_window(&mut file, u64::MAX, WIDE, &stop).unwrap(), Outcome::Stopped);
    assert_eq!(file.read, 5 * CHUNK as u64);
}

proptest! {
    // The window over any text is what splitting it into lines gives.
    #[test]
    fn a_window_is_the_lines_of_the_text(
        lines in proptest::collection::vec("[a-zé]{0,5}", 0..30),
        terminated in any::<bool>(),
        offset in 1_usize..40,
        limit in 1_usize..40,
    ) {
        let mut text = lines.join("\n");
        if terminated && !text.is_empty() {
            text.push('\n');
        }
        let want: Vec<&str> = text.lines().collect();
        let got = slice(text.as_bytes(), Window { offset, limit, ..WIDE });
        prop_assert_eq!(got.total_lines, want.len());
        let from = if got.past_end { want.len() - 1 } else { offset - 1 };
        let expected: Vec<&str> = want.iter().skip(from).take(if got.past_end { 1 } else { limit }).copied().collect();
        prop_assert_eq!(&got.lines, &expected);
        prop_assert_eq!(got.cut.is_some(), !got.past_end && from + expected.len() < want.len());
    }

    #[test]
    fn the_answer_is_bounded(text in "[a-z\n]{0,400}", max_chars in 1_usize..200, max_line_chars in 1_usize..50) {
        let got = slice(text.as_bytes(), Window { max_line_chars, max_chars, ..WIDE });
        let chars: usize = got.lines.iter().map(|line| line.chars().count() + 3).sum();
        let markers = got.long_lines * 40;
        prop_assert!(chars <= max_chars + markers + 4, "{} > {}", chars, max_chars);
    }
}
