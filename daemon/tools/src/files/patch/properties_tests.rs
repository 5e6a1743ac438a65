//! What holds for any edit of any text.

use pretty_assertions::assert_eq;
use proptest::prelude::*;
use serde_json::json;
use similar::{ChangeTag, TextDiff};

use super::edit::{self, Edit, Edited};
use super::ladder;
use crate::testing::Bench;

/// Lines in which much is alike and much is ambiguous.
fn any_line() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[ \t]{0,4}[abc]{0,3}",
        2 => "    let value_[abc] = call\\([abc], \"[abc]\"\\);",
        1 => Just("}".to_owned()),
        1 => Just(String::new()),
        1 => "“[abc]” — [abc]",
    ]
}

fn any_text() -> impl Strategy<Value = String> {
    (prop::collection::vec(any_line(), 0..14), any::<bool>(), any::<bool>()).prop_map(
        |(lines, ends, crlf)| {
            let end = if crlf { "\r\n" } else { "\n" };
            let text = lines.join(end);
            if ends && !lines.is_empty() { format!("{text}{end}") } else { text }
        },
    )
}

/// The whole change as one hunk: every line is there, so it has one place only.
fn hunk_of(old: &str, new: &str) -> String {
    let flat = |text: &str| {
        let text = text.replace("\r\n", "\n");
        if text.is_empty() || text.ends_with('\n') { text } else { format!("{text}\n") }
    };
    let (old, new) = (flat(old), flat(new));
    let diff = TextDiff::from_lines(&old, &new);
    let lines: Vec<String> = diff
        .iter_all_changes()
        .map(|change| {
            let sign = match change.tag() {
                ChangeTag::Equal => ' ',
                ChangeTag::Delete => '-',
                ChangeTag::Insert => '+',
            };
            format!("{sign}{}", change.value())
        })
        .collect();
    format!("*** Begin Patch\n*** Update File: f.txt\n@@\n{}*** End Patch\n", lines.concat())
}

/// The text with the line ends of the file and, at its end, what the file has there.
fn in_the_manner_of(file: &str, text: &str) -> String {
    let crlf = file.matches("\r\n").count() * 2 > file.matches('\n').count();
    let flat = text.replace("\r\n", "\n");
    let flat = match (file.is_empty() || file.ends_with('\n'), flat.ends_with('\n') || flat.is_empty()) {
        (true, false) => format!("{flat}\n"),
        (false, true) => flat.strip_suffix('\n').unwrap_or_default().to_owned(),
        _ => flat,
    };
    if crlf { flat.replace('\n', "\r\n") } else { flat }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    // From a text that has the whole file in context the target comes, byte for byte.
    #[test]
    fn a_patch_that_was_made_from_a_difference_yields_the_target(old in any_text(), new in any_text()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (value, got) = runtime.block_on(async {
            let bench = Bench::new();
            bench.write("f.txt", &old);
            let value = bench.json("patch", json!({ "mode": "patch", "patch": hunk_of(&old, &new) })).await;
            (value, bench.read("f.txt"))
        });
        let target = in_the_manner_of(&old, &new);
        if value["success"] == true {
            prop_assert_eq!(got, target);
        } else {
            // Nothing to change, or what stands there proves nothing: then not a byte is another one.
            prop_assert_eq!(&got, &old);
            let flat = |text: &str| text.replace("\r\n", "\n").trim_end_matches('\n').to_owned();
            let harmless = flat(&old) == flat(&new) || value["error"].as_str().is_some_and(|error| error.contains("already"));
            prop_assert!(harmless, "{} from {:?} to {:?}", value, old, new);
        }
    }

    #[test]
    fn a_patch_that_fails_changes_no_byte(
        text in any_text(), old in any_text(), new in any_text(), everywhere in any::<bool>(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let bench = Bench::new();
            bench.write("f.txt", &text);
            let edit = json!({ "path": "f.txt", "old_string": old, "new_string": new, "replace_all": everywhere });
            let hunks = format!("*** Update File: f.txt\n{}", hunk_of(&old, &new).replace("*** Begin Patch\n*** Update File: f.txt\n", ""));
            for arguments in [edit, json!({ "mode": "patch", "patch": hunks })] {
                let before = std::fs::read(bench.root.join("f.txt")).unwrap();
                let value = bench.json("patch", arguments).await;
                let after = std::fs::read(bench.root.join("f.txt")).unwrap();
                if value["success"] != true || value["already_applied"] == true {
                    assert_eq!(after, before, "{value}");
                }
            }
        });
    }

    // A part of the file, quoted with other blanks and other quotes, is found, and nothing outside it changes.
    #[test]
    fn what_is_outside_the_place_stays(
        before in prop::collection::vec("[xyz]{1,4}", 0..5),
        block in prop::collection::vec("[ ]{0,6}[abc]{2,5} = [abc]{2,5}", 1..5),
        after in prop::collection::vec("[xyz]{1,4}", 0..5),
        shift in 0..4_usize,
    ) {
        let joined = |lines: &[String]| lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect::<String>();
        let file = format!("{}{}{}", joined(&before), joined(&block), joined(&after));
        let quoted: Vec<String> = block.iter().map(|line| format!("{}{line} ", " ".repeat(shift))).collect();
        let mut replaced = quoted.clone();
        replaced.push("new_line".to_owned());
        let edit = Edit { old: &joined(&quoted), new: &joined(&replaced), everywhere: false };
        match edit::apply(file.as_bytes(), edit) {
            Edited::Changed { content, strategy, .. } => {
                let content = String::from_utf8(content).unwrap();
                prop_assert!(strategy != ladder::Strategy::Context);
                prop_assert!(content.starts_with(&format!("{}{}", joined(&before), joined(&block))), "{}", content);
                prop_assert!(content.ends_with(&format!("new_line\n{}", joined(&after))), "{}", content);
            }
            other => prop_assert!(false, "{:?}", other),
        }
    }

    #[test]
    fn no_input_makes_it_panic(content in prop::collection::vec(any::<u8>(), 0..200), old in ".{1,40}", new in ".{0,40}") {
        let _ = edit::apply(&content, Edit { old: &old, new: &new, everywhere: false });
        let _ = edit::apply(old.as_bytes(), Edit { old: &new, new: "x", everywhere: true });
    }
}
