//! Small helpers for looking at text byte by byte. Secrets and what surrounds them are ASCII, so every position
//! these give is a character boundary.

/// What tokens are made of.
pub(super) fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

/// The byte before a position.
pub(super) fn before(bytes: &[u8], at: usize) -> Option<u8> {
    at.checked_sub(1).and_then(|index| bytes.get(index)).copied()
}

/// The end of the run of `wanted` bytes that begins at `from`.
pub(super) fn run_end(bytes: &[u8], from: usize, wanted: impl Fn(u8) -> bool) -> usize {
    bytes
        .get(from..)
        .map_or(from, |rest| from + rest.iter().position(|byte| !wanted(*byte)).unwrap_or(rest.len()))
}

/// The beginning of the run of `wanted` bytes that ends at `to`.
pub(super) fn run_start(bytes: &[u8], to: usize, wanted: impl Fn(u8) -> bool) -> usize {
    bytes.get(..to).map_or(to, |head| head.iter().rposition(|byte| !wanted(*byte)).map_or(0, |last| last + 1))
}

/// Whether a token may begin here: after anything but a token character, after an escape such as `\n` (text that
/// was put into JSON), or after a percent-encoded byte.
pub(super) fn begins_token(bytes: &[u8], at: usize) -> bool {
    let Some(previous) = before(bytes, at) else { return true };
    if !is_token(previous) {
        return true;
    }
    let back = |count: usize| at.checked_sub(count).and_then(|index| bytes.get(index)).copied();
    let escaped = matches!(previous, b'n' | b'r' | b't' | b'b' | b'f') && back(2) == Some(b'\\');
    let encoded = back(3) == Some(b'%')
        && previous.is_ascii_hexdigit()
        && back(2).is_some_and(|byte| byte.is_ascii_hexdigit());
    escaped || encoded
}
