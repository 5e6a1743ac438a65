//! Patterns: of deny lists, of the shell, and whether one could mean a protected name.

use super::scope::UNKNOWN;

/// Whether a pattern of `*`, `?` and `[…]` covers the whole text. `*` also covers slashes and spaces.
pub(super) fn matches(pattern: &str, text: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let text: Vec<char> = text.chars().collect();
    matches_chars(&pattern, &text)
}

fn matches_chars(pattern: &[char], text: &[char]) -> bool {
    let (mut at, mut place) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    loop {
        if place == text.len() && pattern.get(at..).is_some_and(|rest| rest.iter().all(|c| *c == '*')) {
            return true;
        }
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, place));
                at += 1;
                continue;
            }
            Some(_) if place < text.len() => {
                if let Some(length) = one(pattern.get(at..).unwrap_or_default(), text.get(place).copied()) {
                    at += length;
                    place += 1;
                    continue;
                }
            }
            _ => {}
        }
        // Go back to the last star and let it cover one more.
        match star {
            Some((star_at, star_place)) if star_place < text.len() => {
                at = star_at + 1;
                place = star_place + 1;
                star = Some((star_at, star_place + 1));
            }
            _ => return false,
        }
    }
}

/// How much of the pattern covers this character.
fn one(pattern: &[char], c: Option<char>) -> Option<usize> {
    let c = c?;
    match pattern.first()? {
        '?' => Some(1),
        '\\' if pattern.len() > 1 => (pattern.get(1) == Some(&c)).then_some(2),
        '[' => {
            let negated = matches!(pattern.get(1), Some('!' | '^'));
            let start = 1 + usize::from(negated);
            let close = pattern.iter().skip(start + 1).position(|c| *c == ']').map(|at| at + start + 1);
            let Some(close) = close else { return (c == '[').then_some(1) };
            let set = pattern.get(start..close).unwrap_or_default();
            // Classes such as `[:alpha:]` are taken for "any".
            let mut inside = set.first() == Some(&'[');
            let mut at = 0;
            while let Some(low) = set.get(at) {
                if set.get(at + 1) == Some(&'-')
                    && let Some(high) = set.get(at + 2)
                {
                    inside |= (*low..=*high).contains(&c);
                    at += 3;
                } else {
                    inside |= *low == c;
                    at += 1;
                }
            }
            (inside != negated).then_some(close + 1)
        }
        literal => (*literal == c).then_some(1),
    }
}

/// `${value%pattern}` and its kin.
pub(super) fn trim(value: &str, pattern: &str, operator: &str) -> String {
    let cuts: Vec<usize> = value.char_indices().map(|(at, _)| at).chain([value.len()]).collect();
    let halves = |at: usize| value.split_at_checked(at).unwrap_or((value, ""));
    let found = match operator {
        "%" => cuts.iter().rev().find(|at| matches(pattern, halves(**at).1)),
        "%%" => cuts.iter().find(|at| matches(pattern, halves(**at).1)),
        "#" => cuts.iter().find(|at| matches(pattern, halves(**at).0)),
        _ => cuts.iter().rev().find(|at| matches(pattern, halves(**at).0)),
    };
    match found {
        None => value.to_owned(),
        Some(at) if operator.starts_with('%') => halves(*at).0.to_owned(),
        Some(at) => halves(*at).1.to_owned(),
    }
}

/// Whether an absolute shell pattern, in which [`UNKNOWN`] stands for anything, could mean `path` or, when `below`,
/// something below it. A part of which nothing is known means nothing: everything would match.
pub(super) fn could_mean(pattern: &str, path: &str, below: bool) -> bool {
    let pattern: Vec<&str> = pattern.split('/').filter(|part| !part.is_empty()).collect();
    let path: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    if path.is_empty() || pattern.len() < path.len() || (!below && pattern.len() != path.len()) {
        return false;
    }
    pattern.iter().zip(&path).all(|(pattern, name)| part_could_mean(pattern, name))
}

fn part_could_mean(pattern: &str, name: &str) -> bool {
    if pattern == name {
        return true;
    }
    if pattern.chars().all(|c| c == UNKNOWN) {
        return false;
    }
    // The shell's patterns leave out names that begin with a dot, unless the pattern does too.
    if name.starts_with('.') && !pattern.starts_with(['.', UNKNOWN]) {
        return false;
    }
    let pattern = pattern.replace(UNKNOWN, "*");
    matches(&pattern, name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_cover_anything_and_sets_their_members() {
        for (pattern, text, expected) in [
            ("git push *", "git push --force origin", true),
            ("git push*", "git push", true),
            ("*", "", true),
            ("a*b*c", "aXbYbZc", true),
            ("a*b*c", "aXbYbZ", false),
            ("r?", "rm", true),
            ("[!a]m", "rm", true),
            ("[a-z]m", "rm", true),
            ("[", "[", true),
            ("rm", "rmdir", false),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn patterns_are_trimmed_as_the_shell_does() {
        assert_eq!(trim("a.tar.gz", ".*", "%"), "a.tar");
        assert_eq!(trim("a.tar.gz", ".*", "%%"), "a");
        assert_eq!(trim("/a/b/c", "*/", "#"), "a/b/c");
        assert_eq!(trim("/a/b/c", "*/", "##"), "c");
    }

    #[test]
    fn a_pattern_could_mean_a_protected_place() {
        for (pattern, expected) in [
            ("/home/u/.ss*/id_*", true),
            ("/home/*/.ssh/x", true),
            ("/home/u/.s?h", true),
            ("/home/u/*", false),
            ("/home/u/\0", false),
            ("/home/u/.s\0", true),
            ("/home/u/.ssh/\0", true),
        ] {
            assert_eq!(could_mean(pattern, "/home/u/.ssh", true), expected, "{pattern:?}");
        }
    }
}
