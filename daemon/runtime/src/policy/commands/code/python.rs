//! Python one-liners.

use super::tokens::{Style, Token, tokens};

/// Modules of which every allowed attribute only computes.
const MODULES: &[&str] = &[
    "json",
    "sys",
    "re",
    "math",
    "datetime",
    "time",
    "random",
    "string",
    "collections",
    "itertools",
    "functools",
    "textwrap",
    "base64",
    "hashlib",
    "uuid",
    "statistics",
    "decimal",
    "fractions",
    "pprint",
    "platform",
    "struct",
    "csv",
    "html",
    "calendar",
    "urllib",
    "unicodedata",
    "binascii",
    "secrets",
    "bisect",
    "heapq",
    "copy",
    "enum",
    "zoneinfo",
    "sysconfig",
    "tomllib",
    "ssl",
    "typing",
    "cmath",
    "colorsys",
    "locale",
    "difflib",
    "importlib",
];

/// Attributes and functions that compute, print, or read the input.
const ATTRIBUTES: &[&str] = &[
    "load",
    "loads",
    "dumps",
    "dump",
    "stdin",
    "stdout",
    "stderr",
    "read",
    "readline",
    "readlines",
    "write",
    "flush",
    "argv",
    "version",
    "version_info",
    "executable",
    "platform",
    "maxsize",
    "byteorder",
    "exit",
    "path",
    "prefix",
    "strip",
    "lstrip",
    "rstrip",
    "split",
    "rsplit",
    "splitlines",
    "join",
    "replace",
    "upper",
    "lower",
    "title",
    "capitalize",
    "startswith",
    "endswith",
    "find",
    "index",
    "count",
    "format",
    "zfill",
    "ljust",
    "rjust",
    "center",
    "encode",
    "decode",
    "isdigit",
    "isalpha",
    "isalnum",
    "isspace",
    "get",
    "items",
    "keys",
    "values",
    "append",
    "extend",
    "pop",
    "insert",
    "sort",
    "reverse",
    "update",
    "add",
    "union",
    "intersection",
    "difference",
    "setdefault",
    "most_common",
    "Counter",
    "defaultdict",
    "OrderedDict",
    "namedtuple",
    "deque",
    "chain",
    "islice",
    "product",
    "permutations",
    "combinations",
    "groupby",
    "reduce",
    "partial",
    "lru_cache",
    "sqrt",
    "pi",
    "e",
    "inf",
    "nan",
    "sin",
    "cos",
    "tan",
    "log",
    "log2",
    "log10",
    "exp",
    "floor",
    "ceil",
    "factorial",
    "gcd",
    "isclose",
    "hypot",
    "radians",
    "degrees",
    "now",
    "today",
    "utcnow",
    "strftime",
    "strptime",
    "isoformat",
    "fromisoformat",
    "fromtimestamp",
    "timestamp",
    "timedelta",
    "date",
    "datetime",
    "timezone",
    "utc",
    "year",
    "month",
    "day",
    "hour",
    "minute",
    "second",
    "days",
    "seconds",
    "total_seconds",
    "time",
    "sleep",
    "perf_counter",
    "monotonic",
    "gmtime",
    "localtime",
    "ctime",
    "randint",
    "random",
    "choice",
    "choices",
    "shuffle",
    "sample",
    "uniform",
    "seed",
    "token_hex",
    "token_urlsafe",
    "token_bytes",
    "ascii_letters",
    "digits",
    "punctuation",
    "b64encode",
    "b64decode",
    "urlsafe_b64encode",
    "urlsafe_b64decode",
    "hexlify",
    "unhexlify",
    "md5",
    "sha1",
    "sha256",
    "sha512",
    "hexdigest",
    "digest",
    "uuid4",
    "uuid1",
    "hex",
    "mean",
    "median",
    "stdev",
    "mode",
    "Decimal",
    "Fraction",
    "pprint",
    "pformat",
    "system_alias",
    "machine",
    "node",
    "python_version",
    "release",
    "processor",
    "architecture",
    "pack",
    "unpack",
    "calcsize",
    "reader",
    "DictReader",
    "escape",
    "unescape",
    "quote",
    "unquote",
    "quote_plus",
    "urlencode",
    "parse",
    "urlparse",
    "parse_qs",
    "match",
    "search",
    "findall",
    "finditer",
    "sub",
    "subn",
    "fullmatch",
    "compile",
    "group",
    "groups",
    "start",
    "end",
    "span",
    "I",
    "M",
    "S",
    "IGNORECASE",
    "MULTILINE",
    "DOTALL",
    "dedent",
    "indent",
    "fill",
    "wrap",
    "shorten",
    "normalize",
    "name",
    "category",
    "get_paths",
    "get_path",
    "OPENSSL_VERSION",
    "metadata",
    "msg",
    "pos",
    "lineno",
    "colno",
    "real",
    "imag",
    "bit_length",
    "to_bytes",
    "from_bytes",
    "fromkeys",
    "copy",
    "deepcopy",
    "casefold",
    "partition",
    "rpartition",
    "removeprefix",
    "removesuffix",
    "translate",
    "maketrans",
    "expandtabs",
    "swapcase",
    "discard",
    "remove",
    "clear",
    "heappush",
    "heappop",
    "nlargest",
    "nsmallest",
    "bisect_left",
    "bisect_right",
    "unified_diff",
    "JSONDecodeError",
    "exists",
    "isfile",
    "isdir",
    "basename",
    "dirname",
    "abspath",
    "splitext",
    "getsize",
    "expanduser",
    "relpath",
];

/// What `os` may be asked.
const OS: &[&str] = &[
    "path",
    "getcwd",
    "listdir",
    "cpu_count",
    "name",
    "sep",
    "environ",
    "getpid",
    "uname",
    "linesep",
    "getuid",
];

/// What any module may be asked.
const ABOUT: &[&str] = &[
    "__version__",
    "__file__",
    "__name__",
    "__doc__",
    "VERSION",
    "cuda",
    "backends",
    "mps",
    "is_available",
    "device_count",
    "get_device_name",
    "safe_load",
];

/// Names that run, open or look behind things.
const REFUSED: &[&str] = &[
    "exec",
    "eval",
    "compile",
    "getattr",
    "setattr",
    "delattr",
    "globals",
    "locals",
    "vars",
    "breakpoint",
    "input",
    "help",
    "memoryview",
    "object",
    "super",
    "class",
    "async",
    "await",
    "nonlocal",
    "global",
    "exit_code",
    "dir",
    "property",
    "staticmethod",
    "classmethod",
    "copyright",
    "credits",
    "license",
    "raw_input",
    "execfile",
    "file",
    "reload",
    "unicode",
];

pub(super) fn is_harmless(code: &str, may_read: &dyn Fn(&str) -> bool) -> bool {
    check(code, may_read, 0).is_some()
}

/// `None` for anything that is not recognised.
fn check(code: &str, may_read: &dyn Fn(&str) -> bool, depth: usize) -> Option<()> {
    if depth > 3 {
        return None;
    }
    let tokens = tokens(code, Style::Python)?;
    let at = |place: usize| tokens.get(place);
    let strangers = imports(&tokens)?;
    let mut place = 0;
    while let Some(token) = at(place) {
        match token {
            Token::Text { content, prefix } if prefix.contains('f') => fields(content, may_read, depth)?,
            Token::Name(name) => {
                let attribute = place.checked_sub(1).and_then(at).is_some_and(|before| before.is('.'));
                let next_attribute = at(place + 1)
                    .filter(|next| next.is('.'))
                    .and_then(|_| at(place + 2))
                    .and_then(Token::name);
                if attribute {
                    let of = place.checked_sub(2).and_then(at).and_then(Token::name).unwrap_or_default();
                    let known = if of == "os" {
                        OS.contains(&name.as_str())
                    } else if strangers.iter().any(|stranger| stranger == of) {
                        ABOUT.contains(&name.as_str())
                    } else {
                        ATTRIBUTES.contains(&name.as_str()) || ABOUT.contains(&name.as_str())
                    };
                    if !known {
                        return None;
                    }
                } else if name == "open" {
                    opens(tokens.get(place..)?, may_read)?;
                } else if REFUSED.contains(&name.as_str()) || name.starts_with("__") {
                    return None;
                } else if (name == "os" || strangers.contains(name)) && next_attribute.is_none() {
                    // Only where it is imported may such a module stand alone.
                    let imported = place
                        .checked_sub(1)
                        .and_then(at)
                        .is_some_and(|before| before.name() == Some("import") || before.is(','));
                    let renamed = at(place + 1).and_then(Token::name) == Some("as");
                    if !imported || renamed {
                        return None;
                    }
                }
            }
            _ => {}
        }
        place += 1;
    }
    Some(())
}

/// The modules that are imported and not known; `None` when something is imported in a way that is not recognised.
fn imports(tokens: &[Token]) -> Option<Vec<String>> {
    let mut strangers = Vec::new();
    for (place, token) in tokens.iter().enumerate() {
        match token.name() {
            Some("from") => {
                // `yield from` and `raise … from` are left out as well.
                let module = tokens.get(place + 1)?.name()?;
                if !MODULES.contains(&module) || module == "importlib" {
                    return None;
                }
                let rest = tokens.get(place + 1..)?;
                let names = rest.iter().take_while(|token| !token.is(';') && !token.is('\n'));
                let mut after_import = false;
                for token in names {
                    match token {
                        Token::Name(name) if name == "import" => after_import = true,
                        Token::Name(name) if name == "as" => return None,
                        Token::Name(name) if after_import && !ATTRIBUTES.contains(&name.as_str()) => {
                            return None;
                        }
                        Token::Sign('*') => return None,
                        _ => {}
                    }
                }
            }
            Some("import") => {
                let is_from = tokens
                    .get(..place)?
                    .iter()
                    .rev()
                    .take_while(|t| !t.is(';') && !t.is('\n'))
                    .any(|t| t.name() == Some("from"));
                if is_from {
                    continue;
                }
                let list =
                    tokens.get(place + 1..)?.iter().take_while(|token| !token.is(';') && !token.is('\n'));
                let mut expects = true;
                for token in list {
                    match token {
                        Token::Name(name) if expects => {
                            expects = false;
                            if name == "os" || MODULES.contains(&name.as_str()) {
                                continue;
                            }
                            strangers.push(name.clone());
                        }
                        Token::Sign(',') => expects = true,
                        Token::Sign('.') | Token::Name(_) => {}
                        _ => return None,
                    }
                }
            }
            _ => {}
        }
    }
    // What these do is not to compute, and to name them is reason enough to ask.
    const NEVER: [&str; 12] = [
        "subprocess",
        "shutil",
        "socket",
        "ctypes",
        "pty",
        "multiprocessing",
        "pickle",
        "marshal",
        "builtins",
        "signal",
        "runpy",
        "code",
    ];
    (!strangers.iter().any(|stranger| NEVER.contains(&stranger.as_str()))).then_some(strangers)
}

/// `open("name")` and `open("name", "r")`; `None` for any other use of the name.
fn opens(tokens: &[Token], may_read: &dyn Fn(&str) -> bool) -> Option<()> {
    let [Token::Name(_), Token::Sign('('), Token::Text { content, prefix }, rest @ ..] = tokens else {
        return None;
    };
    if content.contains('\\') || prefix.contains('f') || !may_read(content) {
        return None;
    }
    match rest {
        [Token::Sign(')'), ..] => Some(()),
        [Token::Sign(','), Token::Text { content: mode, .. }, Token::Sign(')' | ','), ..]
            if matches!(mode.as_str(), "r" | "rb" | "rt") =>
        {
            Some(())
        }
        [Token::Sign(','), Token::Name(name), Token::Sign('='), Token::Text { .. }, Token::Sign(')'), ..]
            if name == "encoding" =>
        {
            Some(())
        }
        _ => None,
    }
}

/// The expressions in an f-string.
fn fields(content: &str, may_read: &dyn Fn(&str) -> bool, depth: usize) -> Option<()> {
    let plain = content.replace("{{", "").replace("}}", "");
    let mut rest = plain.as_str();
    while let Some((_, after)) = rest.split_once('{') {
        let (field, behind) = after.split_once('}')?;
        if field.contains(['{', '\\']) {
            return None;
        }
        // The format behind a colon is no expression; a colon inside one is not recognised.
        let expression = field.split_once(':').map_or(field, |(expression, _)| expression);
        check(expression.trim_end_matches(['=', '!', 'r', 's', 'a']).trim(), may_read, depth + 1)
            .or_else(|| check(expression, may_read, depth + 1))?;
        rest = behind;
    }
    Some(())
}
