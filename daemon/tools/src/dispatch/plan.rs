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
    match tool.concurrency(&arguments) {
        Concurrency::Barrier => Reach::Barrier,
        // Like a reader of every file.
        Concurrency::AfterWrites => Reach::Paths(vec![Touch { path: PathBuf::from("/"), writes: false }]),
        Concurrency::Safe => Reach::Safe,
        Concurrency::PathScoped => match tool.effect(&arguments, workspace) {
            Ok(effects) => {
                let touches: Option<Vec<Vec<Touch>>> = effects.into_iter().map(touches).collect();
                touches.map_or(Reach::Barrier, |touches| Reach::Paths(touches.concat()))
            }
            Err(_) => Reach::Barrier,
        },
    }
}

/// Files that say what a search of their folder, and of those below it, leaves out.
const IGNORE_FILES: [&str; 3] = [".gitignore", ".ignore", ".rgignore"];

/// What an effect touches; `None` when it cannot be told.
fn touches(effect: OwnedEffect) -> Option<Vec<Touch>> {
    let (path, writes) = match effect {
        OwnedEffect::Read { path } => (path, false),
        OwnedEffect::Write { path } | OwnedEffect::CrossProfileWrite { path } => (path, true),
        OwnedEffect::Command { .. } => return None,
    };
    // Two names of one file must meet.
    let path = real_path(&path).ok()?;
    let missing = path.symlink_metadata().is_err();
    let parent = path.parent().unwrap_or(&path);
    if !writes {
        // What is missing is answered with the names beside it.
        return Some(vec![Touch::read(if missing { existing(parent) } else { &path })]);
    }
    let mut touches = vec![Touch::write(rules_of(&path).unwrap_or_else(|| first_missing(&path)))];
    if missing {
        touches.push(Touch::read(existing(parent)));
    }
    Some(touches)
}

impl Touch {
    fn read(path: &Path) -> Self {
        Self { path: folded(path), writes: false }
    }

    fn write(path: &Path) -> Self {
        Self { path: folded(path), writes: true }
    }
}

fn folded(path: &Path) -> PathBuf {
    if FOLDS_CASE { path.to_string_lossy().to_lowercase().into() } else { path.to_owned() }
}

/// The deepest folder above or at `path` that exists.
fn existing(path: &Path) -> &Path {
    path.ancestors().find(|folder| folder.symlink_metadata().is_ok()).unwrap_or(path)
}

/// The folder that a write has to make first, or the file itself.
fn first_missing(path: &Path) -> &Path {
    let missing = path.ancestors().take_while(|part| part.symlink_metadata().is_err());
    missing.last().unwrap_or(path)
}

/// The folder whose searches a write to `path` may change.
fn rules_of(path: &Path) -> Option<&Path> {
    let in_git = path.ancestors().find(|part| part.file_name().is_some_and(|name| name == ".git"));
    let ignores =
        path.file_name().and_then(|name| name.to_str()).is_some_and(|name| IGNORE_FILES.contains(&name));
    in_git.or(ignores.then_some(path))?.parent()
}

/// What came before in the message, and what that means for the calls behind it.
#[derive(Debug, Default)]
struct Before {
    /// A barrier may have moved the session, and made links: where a path leads is known for reads only in so
    /// far as reads do not hinder each other.
    barrier: bool,
    written: Vec<PathBuf>,
}

impl Before {
    fn widen(&self, reach: Reach) -> Reach {
        let Reach::Paths(touches) = reach else { return reach };
        let mut wider = Vec::with_capacity(touches.len());
        for mut touch in touches {
            let changed = self.written.iter().any(|written| nested(written, &touch.path));
            // It may be gone when the call comes, which is answered with the names beside it.
            if changed && let Some(parent) = touch.path.parent() {
                wider.push(Touch { path: parent.to_owned(), writes: false });
            }
            if self.barrier && touch.writes {
                touch.path = PathBuf::from("/");
            }
            wider.push(touch);
        }
        Reach::Paths(wider)
    }

    fn note(&mut self, reach: &Reach) {
        match reach {
            Reach::Barrier => self.barrier = true,
            Reach::Safe => {}
            Reach::Paths(touches) => {
                let written = touches.iter().filter(|touch| touch.writes).map(|touch| touch.path.clone());
                self.written.extend(written);
            }
        }
    }
}

/// Splits calls, given by their reaches, into segments in their order.
pub(super) fn plan(reaches: impl Iterator<Item = Reach>) -> Vec<Segment> {
    let mut segments: Vec<Segment> = Vec::new();
    let mut open: Vec<Touch> = Vec::new();
    let mut can_join = false;
    let mut before = Before::default();
    for (at, reach) in reaches.enumerate() {
        let reach = before.widen(reach);
        before.note(&reach);
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
    (a.writes || b.writes) && nested(&a.path, &b.path)
}

fn nested(a: &Path, b: &Path) -> bool {
    a.starts_with(b) || b.starts_with(a)
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

    #[test]
    fn nothing_is_written_beside_others_once_a_barrier_may_have_changed_what_paths_mean() {
        assert_eq!(
            planned(&[
                Reach::Barrier,
                paths("/a", false),
                paths("/b", false),
                paths("/c", true),
                paths("/d", true)
            ]),
            [(0..1, false), (1..3, true), (3..5, false)],
        );
    }

    #[test]
    fn a_file_that_was_written_before_may_be_missing_and_is_read_with_what_is_beside_it() {
        let again = [paths("/d/a", true), paths("/d/a", false), paths("/d/b", true), paths("/e/c", true)];
        assert_eq!(planned(&again), [(0..2, false), (2..4, true)]);
    }

    #[test]
    fn writes_reach_as_far_as_others_can_notice() {
        let dir = tempfile::tempdir().unwrap();
        let root = std::fs::canonicalize(dir.path()).unwrap();
        std::fs::write(root.join("there"), "").unwrap();
        let of = |effect: OwnedEffect| -> Vec<(PathBuf, bool)> {
            let short = |path: PathBuf| path.strip_prefix(&root).map_or(path.clone(), Path::to_owned);
            touches(effect).unwrap().into_iter().map(|touch| (short(touch.path), touch.writes)).collect()
        };
        let write = |path: &str| of(OwnedEffect::Write { path: root.join(path) });
        let read = |path: &str| of(OwnedEffect::Read { path: root.join(path) });
        let touch = |path: &str, writes: bool| (PathBuf::from(path), writes);
        assert_eq!(write("there"), [touch("there", true)]);
        assert_eq!(write("new"), [touch("new", true), touch("", false)]);
        assert_eq!(write("a/b/c"), [touch("a", true), touch("", false)]);
        assert_eq!(write(".gitignore").first(), Some(&touch("", true)));
        assert_eq!(write("x/.git/info/exclude").first(), Some(&touch("x", true)));
        assert_eq!(read("there"), [touch("there", false)]);
        assert_eq!(read("missing/x"), [touch("", false)]);
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
