//! Secrets that their structure gives away: private keys in PEM form, passwords and tokens in a URL's user part, and
//! bot tokens.

use memchr::memmem;

use super::Span;
use super::assignments::{is_lookup, is_placeholder};
use super::mask::holds_mask;
use super::scan::{begins_token, is_token, run_end, run_start};

pub(super) fn find(text: &str, spans: &mut Vec<Span<'_>>) {
    let bytes = text.as_bytes();
    private_keys(text, spans);
    for at in memmem::find_iter(bytes, b"://") {
        user_part(text, at, spans);
    }
    for at in memchr::memchr_iter(b':', bytes) {
        bot_token(bytes, at, spans);
    }
}

/// The lines between `-----BEGIN … PRIVATE KEY-----` and its end. Each line is a span of its own, so that lines stay.
/// A text that begins inside a key, or ends there, is known by the one fence it has.
fn private_keys(text: &str, spans: &mut Vec<Span<'_>>) {
    const FENCE: &str = "PRIVATE KEY";
    let mut rest = 0;
    while let Some(at) = text.get(rest..).and_then(|tail| tail.find(FENCE)).map(|at| rest + at) {
        // `PRIVATE KEY-----` or `PRIVATE KEY BLOCK-----`.
        let after = at + FENCE.len();
        let dashes = text.get(after..).map_or("", |tail| tail.strip_prefix(" BLOCK").unwrap_or(tail));
        let end = text.len() - dashes.len() + 5;
        let line = text.get(..at).map_or("", |head| head.rsplit(['\n', '"', '\'']).next().unwrap_or(""));
        let opens = line.contains("-----BEGIN ");
        let closes = line.rsplit("-----").next().is_some_and(|word| word.starts_with("END "));
        rest = after;
        if !dashes.starts_with("-----") {
            continue;
        }
        rest = end;
        if closes {
            // Not opened before, or it would have been skipped: the text begins inside the key.
            let fence = text.get(..at).and_then(|head| head.rfind("-----END ")).unwrap_or(at);
            key_lines(text, body_start(text, fence), fence, spans);
        } else if opens {
            let close = text.get(end..).and_then(|tail| tail.find("-----END ")).map(|offset| end + offset);
            let to = close.unwrap_or_else(|| body_end(text, end));
            key_lines(text, end, to, spans);
            // Past the closing fence as well.
            rest = text.get(to..).and_then(|tail| tail.find('\n')).map_or(text.len(), |offset| to + offset);
        }
    }
}

/// Makes each line of a key's body a span. Inside a JSON text the breaks are the two characters `\n`.
fn key_lines(text: &str, from: usize, to: usize, spans: &mut Vec<Span<'_>>) {
    let mut start = from;
    for line in text.get(from..to).unwrap_or_default().split_inclusive('\n') {
        let mut part_start = start;
        for part in line.split_inclusive("\\n") {
            key_line(part, part_start, spans);
            part_start += part.len();
        }
        start += line.len();
    }
}

fn key_line(line: &str, offset: usize, spans: &mut Vec<Span<'_>>) {
    if holds_mask(line) {
        return;
    }
    let line = line.strip_suffix("\\n").unwrap_or(line);
    // The number that a file reader puts before a line stays.
    let number = line.split_once('|').filter(|(number, _)| number.bytes().all(|byte| byte.is_ascii_digit()));
    let (skip, body) = number.map_or((0, line), |(number, body)| (number.len() + 1, body));
    // In source code a line of the key stands in quotes, beside other things.
    let least = if body.trim().bytes().all(is_body_byte) { 1 } else { 16 };
    let (bytes, end) = (body.as_bytes(), body.len());
    let mut at = 0;
    while at < end {
        let run = run_end(bytes, at, is_body_byte);
        if run - at >= least {
            let start = offset + skip + at;
            spans.push(Span { start, end: offset + skip + run, label: "private-key", opaque: true });
        }
        at = run + 1;
    }
}

fn is_body_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}

/// How far lines that look like a key's body reach on from `from`.
fn body_end(text: &str, from: usize) -> usize {
    let mut end = from;
    for line in text.get(from..).unwrap_or_default().split_inclusive('\n') {
        if !is_body_line(line) {
            break;
        }
        end += line.len();
    }
    end
}

/// Where the lines that look like a key's body begin before `to`.
fn body_start(text: &str, to: usize) -> usize {
    let mut start = to;
    for line in text.get(..to).unwrap_or_default().split_inclusive('\n').rev() {
        if !is_body_line(line) || line.trim().is_empty() {
            break;
        }
        start -= line.len();
    }
    start
}

/// Base64 of some length, possibly with the number that a file reader puts before the line.
fn is_body_line(line: &str) -> bool {
    let line = line.trim();
    let line = line.split_once('|').map_or(line, |(_, body)| body);
    let long = line.is_empty() || line.len() >= 20 || line.ends_with('=');
    long && line.bytes().all(is_body_byte)
}

/// The password in `scheme://user:password@host`, or a token in place of the user.
fn user_part(text: &str, colon: usize, spans: &mut Vec<Span<'_>>) {
    let bytes = text.as_bytes();
    let scheme =
        run_start(bytes, colon, |byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'));
    let start = colon + 3;
    let end = run_end(bytes, start, |byte| {
        byte.is_ascii_graphic()
            && !matches!(byte, b'/' | b'"' | b'\'' | b'`' | b'<' | b'>' | b'\\' | b'?' | b'#' | b',')
    });
    let Some(at) =
        bytes.get(start..end).and_then(|authority| authority.iter().rposition(|byte| *byte == b'@'))
    else {
        return;
    };
    if scheme == colon {
        return;
    }
    let user_end = start + at;
    let Some(user) = text.get(start..user_end) else { return };
    match user.split_once(':') {
        Some((name, password))
            if !is_lookup(password) && !is_placeholder(password) && !password.is_empty() =>
        {
            spans.push(Span {
                start: start + name.len() + 1,
                end: user_end,
                label: "password",
                opaque: false,
            });
        }
        None if user.len() >= 20
            && user.bytes().all(is_token)
            && user.bytes().any(|byte| byte.is_ascii_digit()) =>
        {
            spans.push(Span { start, end: user_end, label: "token", opaque: false });
        }
        _ => {}
    }
}

/// `123456789:` and 35 token characters, as Telegram gives them to bots.
fn bot_token(bytes: &[u8], colon: usize, spans: &mut Vec<Span<'_>>) {
    const TOKEN_CHARS: usize = 35;
    let start = run_start(bytes, colon, |byte| byte.is_ascii_digit());
    let end = run_end(bytes, colon + 1, is_token);
    if (8..=10).contains(&(colon - start)) && end - colon - 1 == TOKEN_CHARS && begins_token(bytes, start) {
        spans.push(Span { start, end, label: "bot-token", opaque: false });
    }
}
