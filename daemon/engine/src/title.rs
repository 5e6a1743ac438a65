//! Titles derived from the first thing the user said (the fallback of spec 10 §23).

/// Longest derived title, in characters.
const MAX_CHARS: usize = 80;

/// The first line with words in it, without Markdown marks, cut at a word.
pub(crate) fn derive(user_text: &str) -> Option<String> {
    let line = user_text
        .lines()
        .map(|line| line.trim().trim_start_matches(['#', '>', '*', '-', '`', ' ']).trim())
        .find(|line| line.chars().any(char::is_alphanumeric))?;
    let collapsed: String = line.split_whitespace().collect::<Vec<_>>().join(" ");
    if collapsed.chars().count() <= MAX_CHARS {
        return Some(collapsed);
    }
    let cut: String = collapsed.chars().take(MAX_CHARS - 3).collect();
    let at_word = cut.rsplit_once(' ').map_or(cut.as_str(), |(head, _)| head);
    let kept = if at_word.chars().count() * 2 > MAX_CHARS { at_word } else { &cut };
    Some(format!("{}...", kept.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_are_the_first_line_with_words() {
        assert_eq!(derive("\n\n## Fix  the build\nplease"), Some("Fix the build".into()));
        assert_eq!(derive("   \n---\n"), None);
        assert_eq!(derive(""), None);
    }

    #[test]
    fn long_titles_are_cut_at_a_word_and_stay_in_bounds() {
        let title = derive(&"word ".repeat(100)).unwrap();
        assert!(title.ends_with("word..."), "{title}");
        assert!(title.chars().count() <= MAX_CHARS);
        let unbroken = derive(&"ä".repeat(500)).unwrap();
        assert_eq!(unbroken.chars().count(), MAX_CHARS);
    }
}
