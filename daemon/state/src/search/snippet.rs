//! Snippets of a scan, in the form of those that the index makes.

/// Characters kept before and after a match.
const BEFORE: usize = 80;
const AFTER: usize = 160;

/// The surroundings of the first of `terms` that `text` holds, or `None`.
pub(super) fn around(text: &str, terms: &[&str]) -> Option<String> {
    let chars: Vec<char> = text.chars().collect();
    let folded: Vec<char> = chars.iter().map(|c| fold(*c)).collect();
    let (start, length) = terms
        .iter()
        .filter_map(|term| {
            let wanted: Vec<char> = term.chars().map(fold).collect();
            let at = folded.windows(wanted.len().max(1)).position(|window| window == wanted)?;
            Some((at, wanted.len()))
        })
        .min()?;
    let end = start + length;
    let from = start.saturating_sub(BEFORE);
    let to = chars.len().min(end + AFTER);
    let part = |range: std::ops::Range<usize>| -> String {
        let part: String = chars.get(range).unwrap_or_default().iter().collect();
        part.replace(['\n', '\r'], " ")
    };
    Some(format!(
        "{}{}>>>{}<<<{}{}",
        if from > 0 { "..." } else { "" },
        part(from..start),
        part(start..end),
        part(end..to),
        if to < chars.len() { "..." } else { "" },
    ))
}

/// Case folding that keeps one character one character, so that places stay the same.
fn fold(c: char) -> char {
    c.to_lowercase().next().unwrap_or(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_match_is_marked() {
        assert_eq!(
            around("Bitte 修改youer服务 now", &["youer", "修改"]).unwrap(),
            "Bitte >>>修改<<<youer服务 now"
        );
        assert_eq!(around("HELLO\nworld", &["hello"]).unwrap(), ">>>HELLO<<< world");
        assert_eq!(around("nothing here", &["else"]), None);
        assert_eq!(around("", &["x"]), None);
        let long = around(&format!("{}needle{}", "a".repeat(500), "b".repeat(500)), &["NEEDLE"]).unwrap();
        assert!(long.starts_with("...a") && long.contains(">>>needle<<<") && long.ends_with("b..."));
    }
}
