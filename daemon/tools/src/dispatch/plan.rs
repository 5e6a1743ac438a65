//! Which calls of one message may run at once, with the outcome of running them in order (spec 10 §10.2).

use std::ops::Range;
use std::path::{Path, PathBuf};

use hermes_core::ToolCall;

use crate::arguments::parse_arguments;
use crate::names::repair_name;
use crate::registry::{Registry, SessionTools};
use crate::tool::{Concurrency, OwnedEffect};
use crate::workspace::{Workspace, real_path};

/// A run of calls, by their places in the message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    pub calls: Range<usize>,
    /// All may run at once; otherwise one after the other.
    pub parallel: bool,
}

/// What a call keeps others from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reach {
    /// Everything.
    Barrier,
    /// Nothing.
    Safe,
    /// Calls that touch these paths, or what is below them.
    Paths(Vec<Touch>),
}

/// A path that a call touches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Touch {
    path: PathBuf,
    writes: bool,
}

/// On these systems two spellings usually mean one file.
const FOLDS_CASE: bool = cfg!(any(target_os = "macos", target_os = "windows"));

/// What `call` keeps others from. Whatever is unknown or broken about it makes it a barrier.
pub(super) fn reach(
    call: &ToolCall,
    tools: &SessionTools,
    registry: &Registry,
    workspace: &Workspace,
) -> Reach {
    let tool = repair_name(&call.name, tools.names()).and_then(|name| registry.get(&name));
    let arguments = parse_arguments(&call.arguments).ok().filter(serde_json::Value::is_object);
    let (Some(tool), Some(mut arguments)) = (tool, arguments) else { return Reach::Barrier };
    if let Some(schema) = tools.parameters(tool.name()) {
        crate::arguments::coerce(&mut arguments, schema);
    }
    match tool.traits().concurrency {
        Concurrency::Barrier => Reach::Barrier,
        Concurrency::Safe => Reach::Safe,
        Concurrency::PathScoped => match tool.effect(&arguments, workspace) {
            Ok(effects) => {
                effects.into_iter().map(touch).collect::<Option<_>>().map_or(Reach::Barrier, Reach::Paths)
            }
            Err(_) => Reach::Barrier,
        },
    }
}

fn touch(effect: OwnedEffect) -> Option<Touch> {
    let (path, writes) = match effect {
        OwnedEffect::Read { path } => (path, false),
        OwnedEffect::Write { path } | OwnedEffect::CrossProfileWrite { path } => (path, true),
        OwnedEffect::Command { .. } => return None,
    };
    // Two names of one file must meet.
    let path = real_path(&path).ok()?;
    let path = if FOLDS_CASE { path.to_string_lossy().to_lowercase().into() } else { path };
    Some(Touch { path, writes })
}

/// Splits calls, given by their reaches, into segments in their order.
pub(super) fn plan(reaches: impl Iterator<Item = Reach>) -> Vec<Segment> {
    let mut segments: Vec<Segment> = Vec::new();
    let mut open: Vec<Touch> = Vec::new();
    let mut can_join = false;
    for (at, reach) in reaches.enumerate() {
        let joins = can_join
            && match &reach {
                Reach::Barrier => false,
                Reach::Safe => true,
                Reach::Paths(touches) => {
                    !touches.iter().any(|touch| open.iter().any(|other| conflict(touch, other)))
                }
            };
        if joins && let Some(last) = segments.last_mut() {
            last.calls.end = at + 1;
        } else {
            segments.push(Segment { calls: at..at + 1, parallel: true });
            open.clear();
        }
        can_join = reach != Reach::Barrier;
        if let Reach::Paths(touches) = reach {
            open.extend(touches);
        }
    }
    merged(segments)
}

/// Two touches of one file, or of a file and a folder above it, of which one writes.
fn conflict(a: &Touch, b: &Touch) -> bool {
    let nested = |a: &Path, b: &Path| a.starts_with(b) || b.starts_with(a);
    (a.writes || b.writes) && nested(&a.path, &b.path)
}

/// A parallel segment of one call is sequential, and neighbouring sequential ones are one.
fn merged(segments: Vec<Segment>) -> Vec<Segment> {
    let mut out: Vec<Segment> = Vec::new();
    for segment in segments {
        let parallel = segment.calls.len() > 1;
        match out.last_mut() {
            Some(last) if !last.parallel && !parallel => last.calls.end = segment.calls.end,
            _ => out.push(Segment { parallel, ..segment }),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use proptest::prelude::*;

    use super::*;

    fn paths(path: &str, writes: bool) -> Reach {
        Reach::Paths(vec![Touch { path: path.into(), writes }])
    }

    fn planned(reaches: &[Reach]) -> Vec<(Range<usize>, bool)> {
        plan(reaches.iter().cloned()).into_iter().map(|segment| (segment.calls, segment.parallel)).collect()
    }

    #[test]
    fn reads_run_together_and_writes_close_the_segment() {
        assert_eq!(planned(&[paths("/a", false), paths("/a", false), paths("/b", true)]), [(0..3, true)]);
        assert_eq!(
            planned(&[paths("/a", false), paths("/b", false), paths("/a", true), paths("/c", false)]),
            [(0..2, true), (2..4, true)],
        );
        // A search below `/` reads what is written there.
        assert_eq!(planned(&[paths("/a/b", true), paths("/a", false)]), [(0..2, false)]);
    }

    #[test]
    fn barriers_stand_alone_and_lonely_calls_are_sequential() {
        assert_eq!(
            planned(&[Reach::Barrier, Reach::Safe, Reach::Barrier, Reach::Safe, Reach::Safe, Reach::Barrier]),
            [(0..3, false), (3..5, true), (5..6, false)],
        );
        assert_eq!(planned(&[]), []);
    }

    fn any_reach() -> impl Strategy<Value = Reach> {
        prop_oneof![
            Just(Reach::Barrier),
            Just(Reach::Safe),
            ("(/[ab]){1,3}", any::<bool>()).prop_map(|(path, writes)| paths(&path, writes)),
        ]
    }

    proptest! {
        // In every parallel segment no two calls can see each other, so any order gives the same.
        #[test]
        fn a_plan_is_as_good_as_one_after_the_other(reaches in proptest::collection::vec(any_reach(), 0..12)) {
            let mut next = 0;
            for (calls, parallel) in planned(&reaches) {
                prop_assert_eq!(calls.start, next);
                next = calls.end;
                if !parallel {
                    continue;
                }
                for at in calls.clone() {
                    for other in at + 1..calls.end {
                        let independent = match (&reaches[at], &reaches[other]) {
                            (Reach::Barrier, _) | (_, Reach::Barrier) => false,
                            (Reach::Paths(a), Reach::Paths(b)) => {
                                !a.iter().any(|a| b.iter().any(|b| conflict(a, b)))
                            }
                            _ => true,
                        };
                        prop_assert!(independent, "{:?} {:?}", reaches[at], reaches[other]);
                    }
                }
            }
            prop_assert_eq!(next, reaches.len());
        }
    }
}
