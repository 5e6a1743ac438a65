//! Perl, Ruby and PHP one-liners.

const PERL: &[&str] = &[
    "print",
    "printf",
    "say",
    "if",
    "unless",
    "length",
    "uc",
    "lc",
    "ucfirst",
    "lcfirst",
    "join",
    "split",
    "scalar",
    "reverse",
    "sort",
    "int",
    "abs",
    "sqrt",
    "sprintf",
    "chomp",
    "my",
    "eq",
    "ne",
    "lt",
    "gt",
    "and",
    "or",
    "not",
    "x",
    "for",
    "foreach",
    "keys",
    "values",
    "substr",
    "index",
    "time",
    "localtime",
    "next",
    "last",
    "END",
    "BEGIN",
    "sum",
    "n",
    "s",
    "i",
    "F",
    "_",
    "a",
    "b",
    "c",
    "h",
    "count",
    "total",
    "line",
    "V",
    "exit",
    "eof",
    "STDIN",
];

const RUBY: &[&str] = &[
    "puts",
    "p",
    "pp",
    "print",
    "RUBY_VERSION",
    "RUBY_PLATFORM",
    "require",
    "JSON",
    "parse",
    "pretty_generate",
    "generate",
    "STDIN",
    "stdin",
    "read",
    "ARGF",
    "map",
    "each",
    "select",
    "reject",
    "join",
    "split",
    "size",
    "length",
    "count",
    "sort",
    "sort_by",
    "reverse",
    "sum",
    "min",
    "max",
    "to_s",
    "to_i",
    "to_f",
    "upcase",
    "downcase",
    "strip",
    "keys",
    "values",
    "Time",
    "now",
    "x",
    "y",
    "i",
    "n",
    "k",
    "v",
    "a",
    "b",
    "s",
    "d",
    "do",
    "end",
    "if",
    "else",
    "Math",
    "sqrt",
    "first",
    "last",
    "uniq",
    "times",
    "upto",
    "inspect",
    "Gem",
    "VERSION",
    "nil",
    "true",
    "false",
    "format",
];

const PHP: &[&str] = &[
    "echo",
    "print",
    "PHP_VERSION",
    "PHP_EOL",
    "PHP_OS",
    "PHP_INT_MAX",
    "phpversion",
    "json_encode",
    "json_decode",
    "var_dump",
    "print_r",
    "extension_loaded",
    "ini_get",
    "date",
    "time",
    "strlen",
    "strtoupper",
    "strtolower",
    "count",
    "implode",
    "explode",
    "max",
    "min",
    "round",
    "md5",
    "sha1",
    "php_ini_loaded_file",
    "phpinfo",
    "get_loaded_extensions",
    "true",
    "false",
    "null",
    "memory_get_usage",
    "php_uname",
    "JSON_PRETTY_PRINT",
    "microtime",
    "number_format",
];

pub(super) fn perl(code: &str) -> bool {
    if code.contains(['`', '<', '>', '|', '&']) && !code.contains("&&")
        || code.contains("(?{")
        || code.contains("(??{")
    {
        return false;
    }
    code.split(';').map(str::trim).filter(|statement| !statement.is_empty()).all(perl_statement)
}

fn perl_statement(statement: &str) -> bool {
    // `s/a/b/g`, `tr/a/b/`, `y/a/b/`: one delimiter, and no letter that makes the text code.
    for operator in ["s", "tr", "y"] {
        if let Some(rest) = statement.strip_prefix(operator)
            && let Some(delimiter) =
                rest.chars().next().filter(|c| matches!(c, '/' | '|' | '#' | ',' | '!' | '~'))
        {
            let parts: Vec<&str> = rest.split(delimiter).collect();
            return matches!(parts.as_slice(), ["", _, _, flags] if flags.chars().all(|c| matches!(c, 'g' | 'i' | 'm' | 's' | 'x' | 'r' | 'd')))
                && !rest.contains("@{")
                && !rest.contains("${")
                && !rest.contains("$(");
        }
    }
    // `print if /pattern/`: one pattern, at the end.
    let (rest, pattern) =
        statement.split_once('/').map_or((statement, None), |(rest, pattern)| (rest, Some(pattern)));
    if let Some(pattern) = pattern {
        let simple = pattern.split_once('/').is_some_and(|(body, flags)| {
            !body.contains(['@', '$', '`', '\'', '"']) || body.trim_end_matches('$').chars().all(|c| !matches!(c, '@' | '$' | '`' | '\'' | '"'))
        } && flags.chars().all(|c| matches!(c, 'i' | 'x' | 'm' | 's')));
        if !simple {
            return false;
        }
    }
    names_known(rest, PERL, &["@{", "${", "@["])
}

pub(super) fn ruby(code: &str) -> bool {
    !code.contains(['`', '%', '<', '&', '/']) && names_known(code, RUBY, &["#{"])
}

pub(super) fn php(code: &str) -> bool {
    // Variables may hold the names of functions.
    !code.contains(['`', '$', '<', '&', '/', '?']) && names_known(code, PHP, &["{$", "${"])
}

/// Whether every name outside strings is known, and no string contains code.
fn names_known(code: &str, known: &[&str], interpolation: &[&str]) -> bool {
    let mut chars = code.chars().peekable();
    let mut name = String::new();
    let mut names = Vec::new();
    while let Some(c) = chars.next() {
        if c.is_alphanumeric() || c == '_' {
            name.push(c);
            continue;
        }
        if !name.is_empty() {
            names.push(std::mem::take(&mut name));
        }
        if !c.is_ascii() || c == '\\' || c == '#' {
            return false;
        }
        if matches!(c, '"' | '\'') {
            let mut content = String::new();
            loop {
                match chars.next() {
                    None => return false,
                    Some('\\') => {
                        content.push('\\');
                        content.extend(chars.next());
                    }
                    Some(end) if end == c => break,
                    Some(other) => content.push(other),
                }
            }
            if c == '"' && interpolation.iter().any(|mark| content.contains(mark)) {
                return false;
            }
        }
    }
    names.extend((!name.is_empty()).then_some(name));
    names.iter().all(|name| known.contains(&name.as_str()) || name.chars().all(|c| c.is_ascii_digit()))
}
