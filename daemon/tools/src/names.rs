//! Repairs a tool name that a model wrote a little wrong, within what the session may call (spec 40 §3.2).

/// Similarity below which a name is not taken for another (spec 40 §3.2).
const CLOSE_ENOUGH: f32 = 0.7;

/// How often a `tool` suffix is taken off.
const MAX_SUFFIXES: usize = 2;

/// The name in `authority` that `name` most likely means, or `None`. A name that is in the list is
/// returned as it is.
pub fn repair_name<S: AsRef<str>>(name: &str, authority: &[S]) -> Option<String> {
    let known = |candidate: &str| authority.iter().map(AsRef::as_ref).find(|known| *known == candidate);
    if let Some(exact) = known(name) {
        return Some(exact.to_owned());
    }
    let cut = name.split(['"', '\'', '<', '>']).next().unwrap_or_default().trim();
    if cut.is_empty() {
        return None;
    }
    let joined = cut.to_lowercase().replace(['-', ' '], "_");
    let mut spellings = vec![cut.to_owned(), cut.to_lowercase(), joined.clone(), snake_case(cut)];
    for spelling in [joined, snake_case(cut)] {
        let mut rest = spelling.as_str();
        for _ in 0..MAX_SUFFIXES {
            let Some(shorter) = rest.strip_suffix("_tool").or_else(|| rest.strip_suffix("tool")) else {
                break;
            };
            rest = shorter.trim_end_matches('_');
            spellings.push(rest.to_owned());
        }
    }
    if let Some(exact) = spellings.iter().find_map(|spelling| known(spelling)) {
        return Some(exact.to_owned());
    }
    let wanted = snake_case(cut);
    authority
        .iter()
        .map(|known| (similarity(&wanted, known.as_ref()), known.as_ref()))
        .filter(|(score, _)| *score >= CLOSE_ENOUGH)
        .max_by(|(a, a_name), (b, b_name)| a.total_cmp(b).then_with(|| b_name.cmp(a_name)))
        .map(|(_, name)| name.to_owned())
}

/// `ReadFile`, `read-File` and `readFile` are `read_file`.
fn snake_case(name: &str) -> String {
    let mut out = String::with_capacity(name.len() + 4);
    let mut after_lower = false;
    for c in name.chars() {
        if c == '-' || c.is_whitespace() {
            out.push('_');
            after_lower = false;
            continue;
        }
        if c.is_uppercase() && after_lower {
            out.push('_');
        }
        after_lower = c.is_lowercase() || c.is_ascii_digit();
        out.extend(c.to_lowercase());
    }
    out
}

/// Twice the common letters over all letters, in order: 1 for equal names.
fn similarity(a: &str, b: &str) -> f32 {
    similar::TextDiff::from_chars(a, b).ratio()
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use proptest::prelude::*;

    use super::*;

    const NAMES: [&str; 6] = ["patch", "read_file", "search_files", "terminal", "todo", "write_file"];

    #[test]
    fn usual_slips_are_repaired() {
        for (written, meant) in [
            ("read_file", "read_file"),
            ("Read_File", "read_file"),
            ("read-file", "read_file"),
            ("read file", "read_file"),
            ("ReadFile", "read_file"),
            ("readFileTool", "read_file"),
            ("read_file_tool", "read_file"),
            ("read_file_tool_tool", "read_file"),
            ("TodoTool", "todo"),
            ("terminal\" id=\"3", "terminal"),
            ("terminal<arg_key>command", "terminal"),
            ("search_file", "search_files"),
            ("readfile", "read_file"),
        ] {
            assert_eq!(repair_name(written, &NAMES).as_deref(), Some(meant), "{written}");
        }
    }

    #[test]
    fn what_is_not_close_stays_unknown() {
        for written in ["", "<tool_call>", "browser_click", "x"] {
            assert_eq!(repair_name(written, &NAMES), None, "{written}");
        }
    }

    proptest! {
        #[test]
        fn a_repair_never_leaves_the_list(written in "[a-zA-Z_ \"<-]{0,20}") {
            if let Some(name) = repair_name(&written, &NAMES) {
                prop_assert!(NAMES.contains(&name.as_str()));
            }
            prop_assert_eq!(repair_name::<&str>(&written, &[]), None);
        }
    }
}
