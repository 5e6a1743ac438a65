//! Programs that turn one text into another, so that what is piped through them can still be judged.

use super::simple::Simple;

/// Programs whose output is a decoded or computed text, whatever they read.
pub(super) const DECODERS: [&str; 14] = [
    "base64", "base32", "base16", "basenc", "xxd", "openssl", "tr", "rev", "gunzip", "zcat", "gzip",
    "uudecode", "hexdump", "od",
];

/// The decoded text; `None` when it is not known.
pub(super) fn decode(simple: &Simple, text: &str) -> Option<String> {
    match simple.program.as_str() {
        "rev" => Some(text.lines().map(|line| line.chars().rev().collect::<String>() + "\n").collect()),
        "base64" if simple.args.iter().any(|arg| is_decode(&arg.text)) => base64(text),
        "xxd" if simple.args.iter().any(|arg| arg.text.starts_with("-r") || arg.text == "-p") => hex(text),
        "tr" => match simple.args.as_slice() {
            [delete, set] if delete.text == "-d" => {
                Some(text.chars().filter(|c| !ranges(&set.text).contains(c)).collect())
            }
            [from, to] if !from.text.starts_with('-') => {
                let (from, to) = (ranges(&from.text), ranges(&to.text));
                let last = to.last().copied()?;
                let change = |c: char| match from.iter().position(|known| *known == c) {
                    Some(at) => to.get(at).copied().unwrap_or(last),
                    None => c,
                };
                Some(text.chars().map(change).collect())
            }
            _ => None,
        },
        _ => None,
    }
}

fn is_decode(option: &str) -> bool {
    matches!(option, "-d" | "-D" | "-di" | "-id") || (option.len() > 3 && "--decode".starts_with(option))
}

fn base64(text: &str) -> Option<String> {
    const LETTERS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut bytes = Vec::new();
    let (mut value, mut bits) = (0_u32, 0);
    for c in text.chars().filter(|c| !c.is_whitespace() && *c != '=') {
        let digit = u32::try_from(LETTERS.find(c)?).ok()?;
        value = (value << 6 | digit) & 0xff_ffff;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push(((value >> bits) & 0xff).to_le_bytes()[0]);
        }
    }
    String::from_utf8(bytes).ok()
}

fn hex(text: &str) -> Option<String> {
    let digits: Vec<u32> =
        text.chars().filter(|c| !c.is_whitespace()).map(|c| c.to_digit(16)).collect::<Option<_>>()?;
    let bytes = digits
        .chunks_exact(2)
        .map(|pair| pair.iter().fold(0, |value, digit| value * 16 + digit).to_le_bytes()[0]);
    String::from_utf8(bytes.collect()).ok()
}

/// The characters of a set such as `a-z`.
fn ranges(set: &str) -> Vec<char> {
    let chars: Vec<char> = super::outputs::unescape(set).chars().collect();
    let mut all = Vec::new();
    let mut at = 0;
    while let Some(low) = chars.get(at) {
        if chars.get(at + 1) == Some(&'-')
            && let Some(high) = chars.get(at + 2)
        {
            all.extend((*low..=*high).take(512));
            at += 3;
        } else {
            all.push(*low);
            at += 1;
        }
    }
    all
}
