//! Regions of a file that are most like a text that is not in it, for the error that says so.

use std::time::{Duration, Instant};

use similar::TextDiff;

/// Regions shown (spec 40 §5.4).
const SHOWN: usize = 3;

/// Similarity from which a region is worth showing (spec 40 §5.4).
const WORTH_SHOWING: f32 = 0.3;

/// Lines shown around a region.
const CONTEXT: usize = 2;

/// Lines of a region beyond which it is cut.
const MAX_REGION_LINES: usize = 12;

/// Bounds of the search: it only serves an error message.
const MAX_LINES: usize = 20_000;
const MAX_COMPARED_CHARS: usize = 2000;
const CANDIDATES: usize = 12;
const PATIENCE: Duration = Duration::from_millis(150);

/// Up to three regions of `content` nearest to `wanted`, as numbered lines; best first.
pub(crate) fn closest_regions(content: &str, wanted: &str) -> Vec<String> {
    let until = Instant::now() + PATIENCE;
    let lines: Vec<&str> = content.lines().take(MAX_LINES).collect();
    let wanted_lines: Vec<&str> = wanted.lines().collect();
    let height = wanted_lines.len().max(1);
    let mut candidates: Vec<(u32, usize)> = (0..lines.len())
        .take_while(|_| Instant::now() < until)
        .map(|start| (rough_score(lines.get(start..).unwrap_or_default(), &wanted_lines), start))
        .filter(|(score, _)| *score > 0)
        .collect();
    candidates.sort_by(|(a, a_start), (b, b_start)| b.cmp(a).then(a_start.cmp(b_start)));
    candidates.truncate(CANDIDATES);
    let mut scored: Vec<(f32, usize)> = candidates
        .into_iter()
        .take_while(|_| Instant::now() < until)
        .map(|(_, start)| {
            let region = lines.iter().skip(start).take(height).copied().collect::<Vec<_>>().join("\n");
            (similarity(&region, wanted, until), start)
        })
        .filter(|(score, _)| *score > WORTH_SHOWING)
        .collect();
    scored.sort_by(|(a, a_start), (b, b_start)| b.total_cmp(a).then(a_start.cmp(b_start)));
    let mut chosen: Vec<usize> = Vec::new();
    for (_, start) in scored {
        if chosen.iter().all(|other| other.abs_diff(start) >= height) {
            chosen.push(start);
        }
    }
    chosen.into_iter().take(SHOWN).map(|start| show(&lines, start, height)).collect()
}

/// Cheap: how many lines of the text stand at this place, with half a point for words in common.
fn rough_score(region: &[&str], wanted: &[&str]) -> u32 {
    region.iter().zip(wanted.iter().take(MAX_REGION_LINES)).map(|(a, b)| line_score(a.trim(), b.trim())).sum()
}

fn line_score(a: &str, b: &str) -> u32 {
    if a.is_empty() || b.is_empty() {
        return 0;
    }
    if a == b {
        return 10;
    }
    let words = |text: &str| -> Vec<String> {
        text.split(|c: char| !c.is_alphanumeric())
            .filter(|word| !word.is_empty())
            .map(str::to_lowercase)
            .collect()
    };
    let (a, b) = (words(a), words(b));
    let common = a.iter().filter(|word| b.contains(word)).count();
    u32::try_from(common * 8 / a.len().max(b.len()).max(1)).unwrap_or(0)
}

fn similarity(a: &str, b: &str, until: Instant) -> f32 {
    let cut = |text| super::super::text::first_chars(text, MAX_COMPARED_CHARS).0;
    TextDiff::configure().deadline(until).diff_chars(cut(a), cut(b)).ratio()
}

fn show(lines: &[&str], start: usize, height: usize) -> String {
    let from = start.saturating_sub(CONTEXT);
    let to = (start + height.min(MAX_REGION_LINES) + CONTEXT).min(lines.len());
    let numbered: Vec<String> = lines
        .get(from..to)
        .unwrap_or_default()
        .iter()
        .enumerate()
        .map(|(at, line)| format!("{}|{}", from + at + 1, super::super::text::first_chars(line, 300).0))
        .collect();
    numbered.join("\n")
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn the_nearest_region_is_shown_with_its_numbers() {
        let content =
            "fn a() {}\n\nfn sum(left: u32, right: u32) -> u32 {\n    left + right\n}\n\nfn z() {}\n";
        let regions = closest_regions(content, "fn sum(left: u64, right: u64) -> u64 {\n    left + right");
        assert_eq!(
            regions.first().map(String::as_str),
            Some("1|fn a() {}\n2|\n3|fn sum(left: u32, right: u32) -> u32 {\n4|    left + right\n5|}\n6|"),
        );
    }

    #[test]
    fn nothing_alike_shows_nothing() {
        assert_eq!(closest_regions("alpha\nbeta\n", "zzz qqq"), Vec::<String>::new());
        assert_eq!(closest_regions("", "x"), Vec::<String>::new());
    }

    #[test]
    fn the_answer_is_bounded_whatever_comes_in() {
        let content = "same words here again\n".repeat(50_000);
        let regions = closest_regions(&content, &"same words here\n".repeat(500));
        assert!(regions.len() <= SHOWN);
        assert!(regions.iter().all(|region| region.lines().count() <= MAX_REGION_LINES + 2 * CONTEXT));
    }
}
