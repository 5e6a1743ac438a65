//! Decodes a stream of bytes as UTF-8; what is invalid becomes U+FFFD. Works across any split of the input.

use std::str;

/// The decoder; holds back at most the three bytes of an unfinished character.
#[derive(Debug, Default)]
pub(crate) struct Utf8Decoder {
    held: Vec<u8>,
}

impl Utf8Decoder {
    /// Appends what `input` completes to `out`.
    pub(crate) fn decode(&mut self, input: &[u8], out: &mut String) {
        if self.held.is_empty() {
            let tail = decode_complete(input, out);
            self.held.extend_from_slice(tail);
        } else {
            let mut joined = std::mem::take(&mut self.held);
            joined.extend_from_slice(input);
            let tail = decode_complete(&joined, out);
            self.held = tail.to_vec();
        }
    }

    /// Ends the stream: an unfinished character is invalid.
    pub(crate) fn finish(&mut self, out: &mut String) {
        if !self.held.is_empty() {
            self.held.clear();
            out.push(char::REPLACEMENT_CHARACTER);
        }
    }
}

/// Decodes all but an unfinished character at the end, which is returned.
fn decode_complete<'a>(mut input: &'a [u8], out: &mut String) -> &'a [u8] {
    loop {
        match str::from_utf8(input) {
            Ok(text) => {
                out.push_str(text);
                return &[];
            }
            Err(error) => {
                let (valid, rest) = input.split_at(error.valid_up_to());
                out.push_str(str::from_utf8(valid).unwrap_or_default());
                let Some(invalid) = error.error_len() else { return rest };
                out.push(char::REPLACEMENT_CHARACTER);
                input = rest.get(invalid..).unwrap_or_default();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decode(chunks: &[&[u8]]) -> String {
        let (mut decoder, mut out) = (Utf8Decoder::default(), String::new());
        for chunk in chunks {
            decoder.decode(chunk, &mut out);
        }
        decoder.finish(&mut out);
        out
    }

    proptest! {
        #[test]
        fn agrees_with_the_standard_library_at_every_split(
            bytes in proptest::collection::vec(any::<u8>(), 0..40),
            text in "\\PC{0,10}",
            at in 0usize..80,
        ) {
            let mut all = text.into_bytes();
            all.extend(bytes);
            let (a, b) = all.split_at(at.min(all.len()));
            prop_assert_eq!(decode(&[a, b]), String::from_utf8_lossy(&all));
        }
    }
}
