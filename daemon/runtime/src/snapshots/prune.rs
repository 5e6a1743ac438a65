//! Housekeeping: what is too old, too much, or of a project that is gone is removed in the background.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::index::Index;
use super::settings::{CheckpointSettings, ORPHAN_S};
use super::store::Store;

/// What the housekeeping goes by.
#[derive(Debug, Default)]
pub(super) struct Upkeep {
    /// Bytes of all contents, as far as is known.
    pub(super) size: u64,
    /// Unix seconds of the last look at everything in this process.
    last: Option<f64>,
    running: bool,
}

/// Removes what a session has too much of; looks at everything when it is time, or when there is too much in all.
pub(super) fn after_a_turn(store: &Store, session: &str) {
    let settings = store.settings();
    if !settings.auto_prune {
        return;
    }
    let lock = store.session_lock(session);
    {
        let _locked = Store::lock(&lock);
        let snapshots = store.shelf.of_session(session);
        for index in snapshots.iter().skip(settings.max_snapshots.max(1)) {
            remove(store, index);
        }
    }
    let due = {
        let upkeep = Store::lock(&store.upkeep);
        upkeep.size > settings.max_total()
            || upkeep.last.is_none_or(|last| store.now() - last > settings.interval_s())
    };
    if due {
        everything(store);
    }
}

/// Looks at everything. One at a time.
pub(super) fn everything(store: &Store) {
    let settings = store.settings();
    if !settings.auto_prune {
        return;
    }
    {
        let mut upkeep = Store::lock(&store.upkeep);
        if std::mem::replace(&mut upkeep.running, true) {
            return;
        }
        upkeep.last = Some(store.now());
    }
    let _running = Running(store);
    let left = by_age(store, &settings);
    let size = collect(store);
    let size = by_size(store, &settings, left, size);
    Store::lock(&store.upkeep).size = size;
}

/// One look at everything; however it ends, the next one may begin.
struct Running<'a>(&'a Store);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        Store::lock(&self.0.upkeep).running = false;
    }
}

/// Removes all that a session has.
pub(super) fn forget(store: &Store, session: &str) {
    let lock = store.session_lock(session);
    let _locked = Store::lock(&lock);
    for index in store.shelf.of_session(session) {
        remove(store, &index);
    }
    let _ = fs::remove_dir_all(store.shelf.folder(session));
}

/// Removes snapshots that are too old or orphaned, and beyond a session's number. Gives what is left.
fn by_age(store: &Store, settings: &CheckpointSettings) -> Vec<Index> {
    let now = store.now();
    let mut left = Vec::new();
    for session in store.shelf.sessions() {
        let lock = store.session_lock(&session);
        let _locked = Store::lock(&lock);
        for (place, index) in store.shelf.of_session(&session).into_iter().enumerate() {
            let age = now - index.created_at;
            let orphaned = || settings.delete_orphans && age > ORPHAN_S && !index.workspace.0.exists();
            if place >= settings.max_snapshots.max(1) || age > settings.retention_s() || orphaned() {
                remove(store, &index);
            } else {
                left.push(index);
            }
        }
    }
    left
}

/// Removes the oldest until the whole fits, but the newest of each session. Gives the size then.
fn by_size(store: &Store, settings: &CheckpointSettings, mut left: Vec<Index>, mut size: u64) -> u64 {
    left.sort_by(|a, b| a.created_at.total_cmp(&b.created_at).then_with(|| a.order.cmp(&b.order)));
    let mut oldest = left.iter().enumerate();
    while size > settings.max_total() {
        let victim =
            oldest.find(|(at, index)| left.iter().skip(at + 1).any(|later| later.session == index.session));
        let Some((_, victim)) = victim else { break };
        {
            let lock = store.session_lock(&victim.session);
            let _locked = Store::lock(&lock);
            remove(store, victim);
        }
        size = collect(store);
    }
    size
}

fn remove(store: &Store, index: &Index) {
    store.shelf.remove(&index.session, &index.id);
    if let Err(error) = fs::remove_dir_all(store.root.join("trash").join(&index.id))
        && error.kind() != std::io::ErrorKind::NotFound
    {
        tracing::debug!(%error, "a folder of the trash stays");
    }
}

/// Removes contents that no index names. Gives the bytes that are left, with the trash.
fn collect(store: &Store) -> u64 {
    let contents = store.blobs.collect(|| {
        let mut named = BTreeSet::new();
        for session in store.shelf.sessions() {
            let lock = store.session_lock(&session);
            let _locked = Store::lock(&lock);
            for name in store.shelf.names(&session) {
                // A walk that still runs, or that waits to be settled, names contents too.
                named.extend(store.shelf.load(&session, &name).iter().flat_map(Index::hashes).cloned());
            }
        }
        named
    });
    contents + tree_size(&store.root.join("trash"))
}

fn tree_size(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(meta) if meta.is_dir() => tree_size(&entry.path()),
            Ok(meta) => meta.len(),
            Err(_) => 0,
        })
        .sum()
}
