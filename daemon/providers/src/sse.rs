//! Server-sent events as a stream of `data:` payloads, cut out of bytes that may be split anywhere.
//!
//! Model servers send one JSON value per `data:` line, so that a line is the unit here, not the
//! blank-line-ended event of the standard. Comments, blank lines, `event:`, `id:`, `retry:` and
//! empty `data:` lines are dropped: they carry nothing and must not count as progress
//! (spec 30 §3, §15). Lines end with LF, CR or CRLF.

use std::ops::ControlFlow;

/// Longest line that is accepted (spec 30 §22).
pub(crate) const MAX_LINE_BYTES: usize = 16 << 20;

/// A line grew beyond the cap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LineTooLong;

/// The parser's state between two pieces of the stream.
#[derive(Debug)]
pub(crate) struct SseParser {
    /// The beginning of a line whose end has not come yet.
    pending: Vec<u8>,
    /// The last piece ended with CR: an LF at the start of the next one belongs to it.
    skip_line_feed: bool,
    /// Nothing of the stream was consumed yet, so a byte-order mark may come.
    at_start: bool,
    max_line: usize,
}

impl Default for SseParser {
    fn default() -> Self {
        Self::with_line_cap(MAX_LINE_BYTES)
    }
}

impl SseParser {
    pub(crate) fn with_line_cap(max_line: usize) -> Self {
        Self { pending: Vec::new(), skip_line_feed: false, at_start: true, max_line }
    }

    /// Takes the next bytes and calls `payload` for each finished, non-empty `data:` line, in order.
    ///
    /// When `payload` breaks, the rest of `bytes` is dropped: the caller is done with the stream.
    pub(crate) fn push(
        &mut self,
        mut bytes: &[u8],
        payload: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, LineTooLong> {
        if self.skip_line_feed && !bytes.is_empty() {
            self.skip_line_feed = false;
            if let [b'\n', rest @ ..] = bytes {
                bytes = rest;
            }
        }
        while let Some(end) = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            let (line, rest) = bytes.split_at(end);
            if self.pending.len() + line.len() > self.max_line {
                return Err(LineTooLong);
            }
            let flow = if self.pending.is_empty() {
                self.line(line, payload)
            } else {
                self.pending.extend_from_slice(line);
                let whole = std::mem::take(&mut self.pending);
                let flow = self.line(&whole, payload);
                // The allocation is kept for the next split line.
                self.pending = whole;
                self.pending.clear();
                flow
            };
            if flow.is_break() {
                return Ok(flow);
            }
            bytes = match rest {
                [b'\r', b'\n', rest @ ..] => rest,
                [b'\r'] => {
                    self.skip_line_feed = true;
                    &[]
                }
                [_, rest @ ..] => rest,
                [] => &[],
            };
        }
        if self.pending.len() + bytes.len() > self.max_line {
            return Err(LineTooLong);
        }
        self.pending.extend_from_slice(bytes);
        Ok(ControlFlow::Continue(()))
    }

    /// Takes the end of the stream: a last line without a line end counts.
    pub(crate) fn finish(&mut self, payload: &mut dyn FnMut(&[u8]) -> ControlFlow<()>) -> ControlFlow<()> {
        let last = std::mem::take(&mut self.pending);
        self.line(&last, payload)
    }

    fn line(&mut self, line: &[u8], payload: &mut dyn FnMut(&[u8]) -> ControlFlow<()>) -> ControlFlow<()> {
        let line = if std::mem::take(&mut self.at_start) { without_bom(line) } else { line };
        let Some(value) = line.strip_prefix(b"data:") else { return ControlFlow::Continue(()) };
        let value = value.trim_ascii();
        if value.is_empty() { ControlFlow::Continue(()) } else { payload(value) }
    }
}

/// Drops a leading UTF-8 byte-order mark.
pub(crate) fn without_bom(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes)
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use proptest::prelude::*;

    use super::*;

    fn parse(pieces: &[&[u8]]) -> Vec<Vec<u8>> {
        let mut parser = SseParser::default();
        let mut seen = Vec::new();
        let mut take = |payload: &[u8]| {
            seen.push(payload.to_vec());
            ControlFlow::Continue(())
        };
        for piece in pieces {
            assert!(parser.push(piece, &mut take).unwrap().is_continue());
        }
        assert!(parser.finish(&mut take).is_continue());
        seen
    }

    #[test]
    fn only_payloads_come_through() {
        let stream =
            b"\xEF\xBB\xBFdata: {\"a\":1}\r\n\r\n: keep-alive\nevent: ping\nid: 7\ndata:\ndata:   \r\
                       data:{\"b\":2}\n\nnonsense\ndata: [DONE]";
        assert_eq!(parse(&[stream]), [b"{\"a\":1}".to_vec(), b"{\"b\":2}".to_vec(), b"[DONE]".to_vec()]);
    }

    #[test]
    fn a_line_above_the_cap_is_an_error_and_not_a_growing_buffer() {
        let mut parser = SseParser::with_line_cap(16);
        let mut ignore = |_: &[u8]| ControlFlow::Continue(());
        assert!(parser.push(b"data: 0123456789", &mut ignore).is_ok());
        assert_eq!(parser.push(b"0", &mut ignore), Err(LineTooLong));
        let mut parser = SseParser::with_line_cap(16);
        assert_eq!(parser.push(b"data: 0123456789012345\n", &mut ignore), Err(LineTooLong));
    }

    #[test]
    fn a_break_ends_the_parse_at_once() {
        let mut parser = SseParser::default();
        let mut seen = 0;
        let flow = parser.push(b"data: 1\ndata: 2\n", &mut |_| {
            seen += 1;
            ControlFlow::Break(())
        });
        assert_eq!((flow, seen), (Ok(ControlFlow::Break(())), 1));
    }

    fn stream() -> impl Strategy<Value = Vec<u8>> {
        let line = prop_oneof![
            Just(b"data: {\"x\":\"\xC3\xA4\"}".to_vec()),
            Just(b"data:".to_vec()),
            Just(b": ping".to_vec()),
            Just(b"event: message".to_vec()),
            Just(b"data: [DONE]".to_vec()),
            Just(Vec::new()),
            proptest::collection::vec(any::<u8>(), 0..12),
        ];
        let end = prop_oneof![Just(&b"\n"[..]), Just(&b"\r\n"[..]), Just(&b"\r"[..])];
        proptest::collection::vec((line, end), 0..12).prop_map(|lines| {
            lines.into_iter().flat_map(|(line, end)| line.into_iter().chain(end.iter().copied())).collect()
        })
    }

    proptest! {
        #[test]
        fn the_parse_is_the_same_at_every_split(bytes in stream(), cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..6)) {
            let whole = parse(&[&bytes]);
            let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
            at.sort_unstable();
            let mut pieces = Vec::new();
            let mut from = 0;
            for cut in at.into_iter().chain([bytes.len()]) {
                pieces.push(&bytes[from..cut]);
                from = cut;
            }
            prop_assert_eq!(&parse(&pieces), &whole);
            let single: Vec<&[u8]> = bytes.chunks(1).collect();
            prop_assert_eq!(&parse(&single), &whole);
        }
    }
}
