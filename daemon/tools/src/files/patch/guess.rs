//! The two rungs that guess (spec 40 §5.4, rungs 8 and 9): a block that is alike is taken for the one that
//! was meant only if it is the only best one and each line that the edit changes is proven.

use similar::{Algorithm, DiffOp, capture_diff_slices};

use super::flat::Flat;
use super::fold::trimmed;
use super::ladder::{Matched, Place, Strategy, Wanted};

/// Similarity of the lines between the anchors: of the only candidate, and of one of several.
const ALONE: f32 = 0.50;
const AMONG_SEVERAL: f32 = 0.70;

/// A line counts as alike from this similarity on, and a block when half of its lines are.
const ALIKE: f32 = 0.80;

/// Bounds: beyond them nothing is guessed.
const MAX_LINES: usize = 20_000;
const MAX_HEIGHT: usize = 400;
const MAX_LINE_BYTES: usize = 1000;
const MAX_CANDIDATES: usize = 50;
/// Pairs of lines that are compared closely in one search.
const MAX_CLOSE_LOOKS: usize = 20_000;

/// What guessing came to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Guess {
    /// Nothing is alike.
    Nothing,
    Proved(Matched),
    /// One block is most alike, but these of its lines (numbers from 1) are changed by the edit, or are beside
    /// an insertion, and are not what the edit takes them for.
    Unproved {
        line: usize,
        differ: Vec<usize>,
    },
    /// Several blocks are equally alike.
    Several {
        lines: Vec<usize>,
    },
}

/// Looks for the block that was meant.
pub(crate) fn guess(flat: &Flat<'_>, wanted: Wanted<'_>) -> Guess {
    let lines = flat.lines();
    let old: Vec<&[u8]> = body(wanted.old).split('\n').map(str::as_bytes).collect();
    let bounded = lines.len() <= MAX_LINES
        && (2..=MAX_HEIGHT).contains(&old.len())
        && old.len() <= lines.len()
        && old.iter().all(|line| line.len() <= MAX_LINE_BYTES);
    if !bounded {
        return Guess::Nothing;
    }
    let (candidates, starts) = anchored(&lines, &old);
    let (strategy, starts) = if starts.is_empty() {
        // A block whose ends are right and whose middle is another one is not what was meant.
        (Strategy::Context, alike(&lines, &old, &candidates))
    } else {
        (Strategy::BlockAnchor, starts)
    };
    match starts.as_slice() {
        [] => Guess::Nothing,
        [start] => prove(flat, wanted, strategy, &lines, &old, *start),
        several => Guess::Several { lines: several.iter().map(|start| start + 1).collect() },
    }
}

/// The text without the line feed that ends its last line.
fn body(text: &str) -> &str {
    text.strip_suffix('\n').unwrap_or(text)
}

/// Blocks with the same first and last line, and those of them whose middle is alike: the best only, all of them
/// on a tie.
fn anchored(lines: &[&[u8]], old: &[&[u8]]) -> (Vec<usize>, Vec<usize>) {
    let ([first, middle @ .., last], true) = (old, old.len() >= 3) else { return Default::default() };
    let (first, last) = (trimmed(first), trimmed(last));
    if first.is_empty() || last.is_empty() {
        return Default::default();
    }
    let candidates: Vec<usize> = lines
        .windows(old.len())
        .enumerate()
        .filter(|(_, block)| {
            block.first().is_some_and(|line| trimmed(line) == first)
                && block.last().is_some_and(|line| trimmed(line) == last)
        })
        .map(|(start, _)| start)
        .take(MAX_CANDIDATES + 1)
        .collect();
    if candidates.len() > MAX_CANDIDATES {
        return (candidates, Vec::new());
    }
    let least = if candidates.len() == 1 { ALONE } else { AMONG_SEVERAL };
    let joined = |block: &[&[u8]]| block.iter().map(|line| trimmed(line)).collect::<Vec<_>>().join(&b'\n');
    let wanted = joined(middle);
    let good = best(candidates.iter().filter_map(|&start| {
        let block = lines.get(start + 1..start + 1 + middle.len())?;
        let score = similarity(&joined(block), &wanted);
        (score >= least).then_some((start, score))
    }));
    (candidates, good)
}

/// Blocks of which at least half of the lines are alike, but for those in `not`; the best only, all of them on a
/// tie.
fn alike(lines: &[&[u8]], old: &[&[u8]], not: &[usize]) -> Vec<usize> {
    let wanted: Vec<&[u8]> = old.iter().map(|line| trimmed(line)).collect();
    let counted = wanted.iter().filter(|line| !line.is_empty()).count();
    if counted < 2 {
        return Vec::new();
    }
    let mut looks = 0;
    let scored: Vec<(usize, f32)> = lines
        .windows(old.len())
        .enumerate()
        .map_while(|(start, block)| {
            let mut good = 0;
            let mut sum = 0.0;
            for (line, wanted) in block.iter().map(|line| trimmed(line)).zip(&wanted) {
                if wanted.is_empty() {
                    continue;
                }
                let score = if line == *wanted {
                    1.0
                } else if may_be_alike(line, wanted) {
                    looks += 1;
                    similarity(line, wanted)
                } else {
                    0.0
                };
                if score >= ALIKE {
                    good += 1;
                    sum += score;
                }
            }
            (looks <= MAX_CLOSE_LOOKS).then_some((start, good, sum))
        })
        .filter(|(start, good, _)| good * 2 >= counted && !not.contains(start))
        .map(|(start, _, sum)| (start, sum))
        .collect();
    if looks > MAX_CLOSE_LOOKS { Vec::new() } else { best(scored.into_iter()) }
}

fn best(scored: impl Iterator<Item = (usize, f32)>) -> Vec<usize> {
    let mut best: Vec<usize> = Vec::new();
    let mut highest = f32::MIN;
    for (start, score) in scored {
        if score > highest + f32::EPSILON {
            highest = score;
            best.clear();
        }
        if (score - highest).abs() <= f32::EPSILON {
            best.push(start);
        }
    }
    best
}

/// Cheap: whether two lines can reach the similarity at all, by their lengths and the bytes that both have.
fn may_be_alike(a: &[u8], b: &[u8]) -> bool {
    let (shorter, longer) = (a.len().min(b.len()), a.len().max(b.len()));
    // 2·common / (a + b) ≥ 0.8, and no more can be in common than the shorter one has.
    if longer > MAX_LINE_BYTES || shorter * 10 < (shorter + longer) * 4 {
        return false;
    }
    let mut counts = [0_i32; 256];
    for byte in a {
        if let Some(count) = counts.get_mut(usize::from(*byte)) {
            *count += 1;
        }
    }
    let common = b
        .iter()
        .filter(|byte| {
            counts.get_mut(usize::from(**byte)).is_some_and(|count| {
                *count -= 1;
                *count >= 0
            })
        })
        .count();
    common * 10 >= (shorter + longer) * 4
}

fn similarity(a: &[u8], b: &[u8]) -> f32 {
    if a == b {
        return 1.0;
    }
    let common: usize = capture_diff_slices(Algorithm::Myers, a, b)
        .iter()
        .map(|op| if let DiffOp::Equal { len, .. } = op { *len } else { 0 })
        .sum();
    #[expect(clippy::cast_precision_loss, reason = "lengths of a few lines")]
    let ratio = (2 * common) as f32 / (a.len() + b.len()).max(1) as f32;
    ratio
}

/// The block at `start`, if every line that the edit changes or deletes is the one that it names, and every
/// insertion has such a line beside it.
fn prove(
    flat: &Flat<'_>,
    wanted: Wanted<'_>,
    strategy: Strategy,
    lines: &[&[u8]],
    old: &[&[u8]],
    start: usize,
) -> Guess {
    let new: Vec<&[u8]> = body(wanted.new).split('\n').map(str::as_bytes).collect();
    let same = |index: usize| {
        lines.get(start + index).zip(old.get(index)).is_some_and(|(line, old)| trimmed(line) == trimmed(old))
    };
    let mut differ = Vec::new();
    for op in capture_diff_slices(Algorithm::Myers, old, &new) {
        match op {
            DiffOp::Equal { .. } => {}
            DiffOp::Delete { old_index, old_len, .. } | DiffOp::Replace { old_index, old_len, .. } => {
                differ.extend((old_index..old_index + old_len).filter(|index| !same(*index)));
            }
            DiffOp::Insert { old_index, .. } => {
                let before = old_index.checked_sub(1).is_some_and(same);
                if !before && !same(old_index) {
                    differ.push(old_index.min(old.len() - 1));
                }
            }
        }
    }
    if !differ.is_empty() {
        return Guess::Unproved {
            line: start + 1,
            differ: differ.into_iter().map(|index| start + index + 1).collect(),
        };
    }
    let end = flat.start_of(start + old.len());
    let ends_with_line = wanted.old.ends_with('\n');
    let to = if ends_with_line || !flat.get(0, end).ends_with(b"\n") { end } else { end - 1 };
    Guess::Proved(Matched {
        strategy,
        places: vec![Place { from: flat.start_of(start), to }],
        old: wanted.old.to_owned(),
        new: wanted.new.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    fn guessed(content: &str, old: &str, new: &str) -> Guess {
        guess(&Flat::of(content.as_bytes()), Wanted { old, new, whole_lines: false })
    }

    #[test]
    fn a_block_between_its_anchors_is_taken_when_the_changed_line_is_proven() {
        let content = "fn a() {\n    let x = compute_first(1);\n    emit(x);\n}\n";
        let old = "fn a() {\n    let x = compute_fist(1);\n    emit(x);\n}";
        let Guess::Proved(matched) = guessed(content, old, &old.replace("emit", "send")) else { panic!() };
        assert_eq!(matched.strategy, Strategy::BlockAnchor);
        assert_eq!(matched.places, [Place { from: 0, to: content.len() - 1 }]);
        assert_eq!(
            guessed(content, old, &old.replace("compute_fist(1)", "2")),
            Guess::Unproved { line: 1, differ: vec![2] },
        );
    }

    #[test]
    fn a_tie_is_no_guess() {
        let block = "begin\n    let total = sum(items);\nend\n";
        let old = "begin\n    let total = sum(itemz);\nend";
        let content = format!("{block}---\n{block}");
        assert_eq!(
            guessed(&content, old, &old.replace("begin", "start")),
            Guess::Several { lines: vec![1, 5] }
        );
    }

    #[test]
    fn nothing_alike_is_nothing_and_bounds_hold() {
        assert_eq!(guessed("a\nb\nc\n", "x\ny\nz", "q"), Guess::Nothing);
        let many = "same line here\n".repeat(30_000);
        assert_eq!(guessed(&many, "same line hexe\nsame line here\nother", "x"), Guess::Nothing);
        let alike = "let value_number_one = 1;\n".repeat(15_000);
        let old = "let value_number_two = 1;\nlet value_number_six = 1;\nlet value = 2;";
        assert_eq!(guessed(&alike, old, "x"), Guess::Nothing);
    }
}
