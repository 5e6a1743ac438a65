//! Names near one that does not exist (spec 40 §5.2).

use std::path::Path;

/// Names that are offered.
const OFFERED: usize = 5;

/// Directory entries that are looked at.
const LOOKED_AT: usize = 10_000;

/// Up to five paths in the same directory whose names are near that of `path`, best first.
pub(crate) fn near_names(path: &Path) -> Vec<String> {
    let (Some(directory), Some(wanted)) = (path.parent(), path.file_name().and_then(|name| name.to_str()))
    else {
        return Vec::new();
    };
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    let mut scored: Vec<(u32, String)> = entries
        .take(LOOKED_AT)
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter_map(|name| score(wanted, &name).map(|score| (score, name)))
        .collect();
    scored.sort_by(|(a, a_name), (b, b_name)| b.cmp(a).then_with(|| a_name.cmp(b_name)));
    scored.into_iter().take(OFFERED).map(|(_, name)| directory.join(name).display().to_string()).collect()
}

fn score(wanted: &str, candidate: &str) -> Option<u32> {
    let (wanted, candidate) = (wanted.to_lowercase(), candidate.to_lowercase());
    let (stem, extension) = split(&wanted);
    let (other_stem, other_extension) = split(&candidate);
    if stem == other_stem {
        return Some(90);
    }
    if candidate.starts_with(&*wanted) || wanted.starts_with(&*candidate) {
        return Some(70);
    }
    if candidate.contains(&*wanted) {
        return Some(60);
    }
    if wanted.contains(&*candidate) {
        return Some(40);
    }
    let common = letters_in_common(stem, other_stem);
    let longer = stem.chars().count().max(other_stem.chars().count());
    (extension.is_some() && extension == other_extension && common * 10 >= longer * 4).then_some(30)
}

fn split(name: &str) -> (&str, Option<&str>) {
    match name.rsplit_once('.') {
        Some((stem, extension)) if !stem.is_empty() => (stem, Some(extension)),
        _ => (name, None),
    }
}

/// How many characters both have, each counted as often as both have it.
fn letters_in_common(a: &str, b: &str) -> usize {
    let mut rest: Vec<char> = b.chars().collect();
    a.chars()
        .filter(|c| match rest.iter().position(|other| other == c) {
            Some(at) => {
                rest.swap_remove(at);
                true
            }
            None => false,
        })
        .count()
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn names_are_scored_by_nearness() {
        for (wanted, candidate, want) in [
            ("config.yml", "config.yaml", Some(90)),
            ("Config.yml", "config.yml", Some(90)),
            ("main", "main_test.rs", Some(70)),
            ("settings", "my_settings.py", Some(60)),
            ("old_readme", "readme", Some(40)),
            ("utlis.py", "utils.py", Some(30)),
            ("a.py", "zzzz.py", None),
            ("a.py", "b.rs", None),
        ] {
            assert_eq!(score(wanted, candidate), want, "{wanted} {candidate}");
        }
    }

    #[test]
    fn the_nearest_come_first_and_a_missing_directory_offers_nothing() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["report.md", "report.txt", "reports", "other.txt"] {
            std::fs::write(dir.path().join(name), "").unwrap();
        }
        let found = near_names(&dir.path().join("report.doc"));
        let names: Vec<&str> = found.iter().filter_map(|path| path.rsplit('/').next()).collect();
        assert_eq!(names, ["report.md", "report.txt"]);
        assert_eq!(near_names(&dir.path().join("none/report.md")), Vec::<String>::new());
    }
}
