//! Finds and removes the marker by which a shell tells its working directory inside its own output.
//!
//! The marker holds an id that is drawn per session, so no file or program prints it by accident. It is
//! found at the level of bytes, before anything is decoded or cut.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

use memchr::memmem;

/// No path is longer than this on any system we run on; beyond it the text was no marker.
const MAX_PATH_BYTES: usize = 16 * 1024;

/// The two ends of a session's marker: `RS id :` path `: id RS`.
#[derive(Debug, Clone)]
pub(super) struct Marker {
    id: String,
}

impl Marker {
    /// A marker that nothing else prints.
    pub(super) fn new() -> Self {
        Self { id: uuid::Uuid::new_v4().simple().to_string() }
    }

    /// The unguessable part, made of hexadecimal digits.
    pub(super) fn id(&self) -> &str {
        &self.id
    }

    fn start(&self) -> Vec<u8> {
        format!("\x1e{}:", self.id).into_bytes()
    }

    fn end(&self) -> Vec<u8> {
        format!(":{}\x1e", self.id).into_bytes()
    }
}

/// Takes markers out of a stream, whatever its split.
#[derive(Debug)]
pub(super) struct MarkerFilter {
    start: Vec<u8>,
    end: Vec<u8>,
    inside: bool,
    held: Vec<u8>,
    found: Option<PathBuf>,
}

impl MarkerFilter {
    pub(super) fn new(marker: &Marker) -> Self {
        Self { start: marker.start(), end: marker.end(), inside: false, held: Vec::new(), found: None }
    }

    /// Appends `input` without markers to `out`; holds back what may be the beginning of one.
    pub(super) fn filter(&mut self, input: &[u8], out: &mut Vec<u8>) {
        let joined;
        let mut rest = if self.held.is_empty() {
            input
        } else {
            let mut held = std::mem::take(&mut self.held);
            held.extend_from_slice(input);
            joined = held;
            &joined
        };
        loop {
            if self.inside {
                if let Some(at) = memmem::find(rest, &self.end) {
                    let (path, after) = rest.split_at(at);
                    self.found = Some(PathBuf::from(OsString::from_vec(path.to_vec())));
                    self.inside = false;
                    rest = after.get(self.end.len()..).unwrap_or_default();
                } else if rest.len() > MAX_PATH_BYTES {
                    out.extend_from_slice(&self.start);
                    self.inside = false;
                } else {
                    self.held = rest.to_vec();
                    return;
                }
            } else if let Some(at) = memmem::find(rest, &self.start) {
                let (text, after) = rest.split_at(at);
                out.extend_from_slice(text);
                self.inside = true;
                rest = after.get(self.start.len()..).unwrap_or_default();
            } else {
                let (text, held) = rest.split_at(rest.len() - partial_match(rest, &self.start));
                out.extend_from_slice(text);
                self.held = held.to_vec();
                return;
            }
        }
    }

    /// Ends the stream: appends what was held back, and gives the directory of the last marker.
    pub(super) fn finish(&mut self, out: &mut Vec<u8>) -> Option<PathBuf> {
        if std::mem::take(&mut self.inside) {
            out.extend_from_slice(&self.start);
        }
        out.append(&mut self.held);
        self.found.take()
    }
}

/// How many bytes at the end of `text` are the beginning of `pattern`.
fn partial_match(text: &[u8], pattern: &[u8]) -> usize {
    (1..pattern.len().min(text.len() + 1))
        .rev()
        .find(|length| text.get(text.len() - length..) == pattern.get(..*length))
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn filter(marker: &Marker, chunks: &[&[u8]]) -> (Vec<u8>, Option<PathBuf>) {
        let (mut filter, mut out) = (MarkerFilter::new(marker), Vec::new());
        for chunk in chunks {
            filter.filter(chunk, &mut out);
        }
        let found = filter.finish(&mut out);
        (out, found)
    }

    fn marked(marker: &Marker, path: &str) -> Vec<u8> {
        [marker.start(), path.as_bytes().to_vec(), marker.end()].concat()
    }

    proptest! {
        #[test]
        fn the_marker_is_found_and_removed_at_every_split(
            before in proptest::collection::vec(any::<u8>(), 0..20),
            after in proptest::collection::vec(any::<u8>(), 0..20),
            at in 0usize..160,
        ) {
            let marker = Marker::new();
            let all = [before.clone(), marked(&marker, "/a b/ü"), after.clone()].concat();
            let (a, b) = all.split_at(at.min(all.len()));
            let (out, found) = filter(&marker, &[a, b]);
            prop_assert_eq!(out, [before, after].concat());
            prop_assert_eq!(found, Some(PathBuf::from("/a b/ü")));
        }

        #[test]
        fn a_stream_without_marker_is_untouched(chunks in proptest::collection::vec(
            proptest::collection::vec(prop_oneof![Just(0x1eu8), any::<u8>()], 0..20), 0..5)) {
            let pieces: Vec<&[u8]> = chunks.iter().map(Vec::as_slice).collect();
            prop_assert_eq!(filter(&Marker::new(), &pieces), (chunks.concat(), None));
        }
    }

    #[test]
    fn an_unfinished_marker_is_output() {
        let marker = Marker::new();
        let cut = [b"x".to_vec(), marker.start(), b"/half".to_vec()].concat();
        assert_eq!(filter(&marker, &[&cut]), (cut.clone(), None));
        let endless = [marker.start(), vec![b'y'; MAX_PATH_BYTES + 1]].concat();
        assert_eq!(filter(&marker, &[&endless]), (endless.clone(), None));
    }

    #[test]
    fn the_last_marker_wins() {
        let marker = Marker::new();
        let two = [marked(&marker, "/a"), b"-".to_vec(), marked(&marker, "/b")].concat();
        assert_eq!(filter(&marker, &[&two]), (b"-".to_vec(), Some(PathBuf::from("/b"))));
    }
}
