//! What simple programs print, where that is known without running them.

use super::decoders;
use super::scope::{MAYBE, UNKNOWN};
use super::simple::{Simple, Stdin};

/// The output; `None` when it is not known.
pub(super) fn of(simple: &Simple) -> Option<String> {
    let texts = || {
        simple
            .args
            .iter()
            .map(|arg| if arg.unsure { format!("{MAYBE}{}", arg.text) } else { arg.text.clone() })
    };
    let has_pattern = simple.args.iter().any(|arg| arg.glob);
    match simple.program.as_str() {
        // `$(<file)`.
        "" if matches!(simple.stdin, Stdin::File(_)) => None,
        "set" | "export" | "declare" | "local"
            if simple.assigns.is_empty()
                && simple.args.iter().all(|arg| matches!(arg.text.as_str(), "-p" | "-x" | "-px")) =>
        {
            None
        }
        "" | ":" | "true" | "false" | "cd" | "export" | "set" | "unset" | "alias" | "shopt" | "sleep"
        | "mkdir" | "touch" | "test" | "[" | "local" | "declare" | "read" | "exit" | "return" => {
            Some(String::new())
        }
        "echo" if !has_pattern => {
            let mut texts: Vec<String> = texts().collect();
            let mut escapes = false;
            let mut line = true;
            while texts.first().is_some_and(|text| is_echo_option(text)) {
                let option = texts.remove(0);
                escapes = option.contains('e') || (escapes && !option.contains('E'));
                line &= !option.contains('n');
            }
            let text = texts.join(" ");
            let text = if escapes { unescape(&text) } else { text };
            Some(if line { text + "\n" } else { text })
        }
        "printf" if !has_pattern => {
            let texts: Vec<String> = texts().collect();
            let mut rest = texts.as_slice();
            if rest.first().is_some_and(|text| text == "--") {
                rest = rest.get(1..).unwrap_or_default();
            }
            let (format, args) = rest.split_first()?;
            if format == "-v" {
                return Some(String::new());
            }
            Some(printf(format, args))
        }
        "cat" | "tee" => match &simple.stdin {
            Stdin::Text(text) if simple.args.iter().all(|arg| arg.text == "-") || simple.program == "tee" => {
                Some(text.clone())
            }
            _ => None,
        },
        // The shell's own children.
        "jobs" if simple.has_arg(&["-p"]) => Some("%%\n".to_owned()),
        "pwd" => Some(simple.cwd.clone()? + "\n"),
        "mktemp" => Some(format!("/tmp/tmp.{UNKNOWN}\n")),
        "which" | "type" | "command" | "whereis" => {
            let names: Vec<&str> = simple
                .args
                .iter()
                .map(|arg| arg.text.as_str())
                .filter(|text| !text.starts_with('-'))
                .collect();
            let asks = simple.program != "command" || simple.has_arg(&["-v", "-V"]);
            match names.as_slice() {
                [name] if asks => Some(format!("{name}\n")),
                _ => None,
            }
        }
        "rev" | "base64" | "base32" | "xxd" | "tr" => {
            let Stdin::Text(text) = &simple.stdin else { return None };
            decoders::decode(simple, text)
        }
        _ => None,
    }
}

fn is_echo_option(text: &str) -> bool {
    text.strip_prefix('-')
        .is_some_and(|rest| !rest.is_empty() && rest.chars().all(|c| matches!(c, 'n' | 'e' | 'E')))
}

fn printf(format: &str, args: &[String]) -> String {
    let mut out = String::new();
    let mut args = args.iter();
    let mut rounds = 0;
    loop {
        let mut used = false;
        let mut chars = format.chars().peekable();
        let mut plain = String::new();
        while let Some(c) = chars.next() {
            if c != '%' {
                plain.push(c);
                continue;
            }
            out.push_str(&unescape(&std::mem::take(&mut plain)));
            let mut cuts = false;
            while let Some(c) =
                chars.next_if(|c| c.is_ascii_digit() || matches!(c, '-' | '+' | ' ' | '#' | '.' | '*'))
            {
                cuts |= matches!(c, '.' | '*');
            }
            match chars.next() {
                // How much of it is printed is not computed.
                Some('s' | 'q' | 'b') if cuts => {
                    used = true;
                    args.next();
                    out.push(UNKNOWN);
                }
                Some('%') | None => out.push('%'),
                Some('s' | 'q') => {
                    used = true;
                    out.push_str(args.next().map_or("", String::as_str));
                }
                Some('b') => {
                    used = true;
                    out.push_str(&unescape(args.next().map_or("", String::as_str)));
                }
                Some('c') => {
                    used = true;
                    out.extend(args.next().and_then(|arg| arg.chars().next()));
                }
                Some(_) => {
                    used = true;
                    args.next();
                    out.push(UNKNOWN);
                }
            }
        }
        out.push_str(&unescape(&plain));
        rounds += 1;
        if !used || args.len() == 0 || rounds > 256 {
            return out;
        }
    }
}

/// `\n`, `\x41`, `\101` and the like.
pub(super) fn unescape(text: &str) -> String {
    if !text.contains('\\') {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut chars = text.chars().peekable();
    let digits = |chars: &mut std::iter::Peekable<std::str::Chars<'_>>, radix: u32, most: usize| {
        let mut value = 0_u32;
        let mut count = 0;
        while count < most
            && let Some(digit) = chars.peek().and_then(|c| c.to_digit(radix))
        {
            chars.next();
            value = value.wrapping_mul(radix).wrapping_add(digit);
            count += 1;
        }
        char::from_u32(value).unwrap_or(UNKNOWN)
    };
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('n') => out.push('\n'),
            Some('t') => out.push('\t'),
            Some('r') => out.push('\r'),
            Some('a' | 'b' | 'f' | 'v' | 'e' | 'c') => out.push(UNKNOWN),
            Some('x') => out.push(digits(&mut chars, 16, 2)),
            Some('u') => out.push(digits(&mut chars, 16, 4)),
            Some('0') => out.push(digits(&mut chars, 8, 3)),
            Some(first @ '1'..='7') => {
                let mut value = first.to_digit(8).unwrap_or(0);
                for _ in 0..2 {
                    let Some(digit) = chars.peek().and_then(|c| c.to_digit(8)) else { break };
                    chars.next();
                    value = value * 8 + digit;
                }
                out.push(char::from_u32(value).unwrap_or(UNKNOWN));
            }
            Some('\\') => out.push('\\'),
            Some(other) => out.extend(['\\', other]),
            None => out.push('\\'),
        }
    }
    out
}
