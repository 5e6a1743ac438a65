//! JavaScript one-liners.

use super::tokens::{Style, Token, tokens};

/// Names that may stand alone.
const NAMES: &[&str] = &[
    "console",
    "JSON",
    "Math",
    "Object",
    "Array",
    "Date",
    "Number",
    "String",
    "Boolean",
    "parseInt",
    "parseFloat",
    "isNaN",
    "Set",
    "Map",
    "BigInt",
    "RegExp",
    "Intl",
    "encodeURIComponent",
    "decodeURIComponent",
    "encodeURI",
    "decodeURI",
    "process",
    "require",
    "const",
    "let",
    "var",
    "of",
    "in",
    "for",
    "if",
    "else",
    "return",
    "new",
    "typeof",
    "true",
    "false",
    "null",
    "undefined",
    "NaN",
    "Infinity",
    "while",
    "break",
    "continue",
    "function",
    "x",
    "a",
    "b",
    "c",
    "i",
    "j",
    "k",
    "n",
    "v",
    "p",
    "d",
    "s",
    "r",
    "e",
    "acc",
    "key",
    "value",
    "item",
    "pkg",
];

/// What `process` may be asked.
const PROCESS: &[&str] = &[
    "version",
    "versions",
    "argv",
    "cwd",
    "platform",
    "arch",
    "env",
    "uptime",
    "memoryUsage",
    "hrtime",
    "pid",
    "execPath",
    "release",
];

/// Modules that only compute.
const MODULES: &[&str] = &["path", "os", "url", "util", "node:path", "node:os", "node:url", "node:util"];

/// Properties that lead from a value to code.
const REFUSED: &[&str] = &[
    "constructor",
    "__proto__",
    "prototype",
    "mainModule",
    "binding",
    "dlopen",
    "kill",
    "_load",
    "call",
    "apply",
    "bind",
    "__defineGetter__",
    "__lookupGetter__",
    "createRequire",
    "setPriority",
];

pub(super) fn is_harmless(code: &str) -> bool {
    check(code).is_some()
}

fn check(code: &str) -> Option<()> {
    let tokens = tokens(code, Style::JavaScript)?;
    let declared: Vec<&str> = tokens
        .iter()
        .zip(tokens.iter().skip(1))
        .filter(|(before, _)| matches!(before.name(), Some("const" | "let" | "var")))
        .filter_map(|(_, name)| name.name())
        .collect();
    for (place, token) in tokens.iter().enumerate() {
        let before = place.checked_sub(1).and_then(|before| tokens.get(before));
        let next = tokens.get(place + 1);
        match token {
            Token::Name(name) => {
                let property = before.is_some_and(|before| before.is('.'));
                // `{ name: value }`.
                let key = before.is_some_and(|before| before.is('{') || before.is(','))
                    && next.is_some_and(|next| next.is(':'));
                if REFUSED.contains(&name.as_str()) {
                    return None;
                }
                if property || key {
                    continue;
                }
                if !NAMES.contains(&name.as_str()) && !declared.contains(&name.as_str()) {
                    return None;
                }
                match name.as_str() {
                    "process" => {
                        let asked =
                            next.filter(|next| next.is('.')).and_then(|_| tokens.get(place + 2)?.name())?;
                        PROCESS.contains(&asked).then_some(())?;
                    }
                    "require" => {
                        let [Token::Sign('('), Token::Text { content, .. }, Token::Sign(')'), ..] =
                            tokens.get(place + 1..)?
                        else {
                            return None;
                        };
                        let data = content.rsplit('.').next() == Some("json")
                            && !content.contains('\\')
                            && !content.contains(".hermes");
                        (data || MODULES.contains(&content.as_str())).then_some(())?;
                    }
                    "function" => return None,
                    _ => {}
                }
            }
            // `value["name"]`: a property that is computed, unless it is a number.
            Token::Sign('[') => {
                let of_value =
                    matches!(before, Some(Token::Name(_) | Token::Text { .. } | Token::Sign(')' | ']')));
                if of_value && !matches!(next, Some(Token::Number)) {
                    return None;
                }
            }
            _ => {}
        }
    }
    Some(())
}
