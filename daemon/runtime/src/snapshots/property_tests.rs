//! Any sequence of changes by the agent and by hand, undone and undone again.

use std::collections::BTreeMap;
use std::fs;

use proptest::prelude::*;

use super::tests::{Bench, by_id, put};
use super::*;

/// A step of the property test.
#[derive(Debug, Clone)]
enum Step {
    AgentWrites(usize, u8),
    AgentDeletes(usize),
    HandWrites(usize, u8),
    HandDeletes(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let file = 0_usize..5;
    proptest::collection::vec(
        prop_oneof![
            3 => (file.clone(), any::<u8>()).prop_map(|(file, content)| Step::AgentWrites(file, content)),
            1 => file.clone().prop_map(Step::AgentDeletes),
            1 => (file.clone(), any::<u8>()).prop_map(|(file, content)| Step::HandWrites(file, content)),
            1 => file.prop_map(Step::HandDeletes),
        ],
        0..14,
    )
}

fn state_of(bench: &Bench) -> BTreeMap<usize, Option<Vec<u8>>> {
    (0..5).map(|file| (file, fs::read(bench.path(&format!("d{file}/f"))).ok())).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    // Files that only the agent changed are back byte for byte; a file that was edited by hand is as it was, or
    // nobody could tell the edit from the agent's own work because it left the very same bytes.
    #[test]
    fn any_turn_is_undone_but_for_what_was_edited_by_hand(present in proptest::collection::vec(any::<bool>(), 5), steps in steps()) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
        runtime.block_on(async {
            let bench = Bench::new();
            for (file, _) in present.iter().enumerate().filter(|(_, present)| **present) {
                put(&bench.path(&format!("d{file}/f")), &format!("first {file}"));
            }
            let first = state_of(&bench);
            let turn = TurnId::mint();
            let mut by_hand = [false; 5];
            for step in &steps {
                let file = match step {
                    Step::AgentWrites(file, _) | Step::AgentDeletes(file) | Step::HandWrites(file, _) | Step::HandDeletes(file) => *file,
                };
                let name = format!("d{file}/f");
                let path = bench.path(&name);
                let before = fs::read(&path).ok();
                match step {
                    Step::AgentWrites(_, content) => bench.agent_writes(&turn, &name, &format!("agent {content}")).await,
                    Step::AgentDeletes(_) => bench.agent(&turn, &[&name], || { let _ = fs::remove_file(&path); }).await,
                    Step::HandWrites(_, content) => put(&path, &format!("hand {content}")),
                    Step::HandDeletes(_) => { let _ = fs::remove_file(&path); }
                }
                let is_hand = matches!(step, Step::HandWrites(..) | Step::HandDeletes(_));
                by_hand[file] |= is_hand && fs::read(&path).ok() != before;
            }
            let last = state_of(&bench);
            let undone = bench.restore(RestoreRequest::default()).await;
            let then = state_of(&bench);
            for file in 0..5 {
                if by_hand[file] {
                    // Edited before the agent came is the state before; edited after it stays.
                    prop_assert!(then[&file] == last[&file] || then[&file].as_deref().is_none_or(|content| !content.starts_with(b"agent")), "{file}: {steps:?}");
                } else {
                    prop_assert_eq!(&then[&file], &first[&file], "{}: {:?}", file, steps);
                }
            }
            if let Ok(Restored { undone_by: Some(id), .. }) = undone {
                bench.restore(by_id(&id)).await.unwrap();
                prop_assert_eq!(state_of(&bench), last);
            }
            Ok(())
        })?;
    }
}
