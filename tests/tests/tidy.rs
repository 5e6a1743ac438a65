//! House rules that no compiler checks: which crate may use which, and how a file must look.
//!
//! An edge that is missing here is a wall. Adding one is a decision of its own, made in its own commit with its
//! reason, and in ARCHITECTURE.md.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, Package};

/// Longest source file, in lines. A longer one holds two subjects.
const MAX_LINES: usize = 700;
/// The first number of our own migrations; the original's schema versions end at 30.
const FIRST_MIGRATION: u32 = 1000;
/// The crate whose code is generated, which therefore has lints of its own.
const GENERATED: &str = "hermes-proto";

/// Which crates of the house each crate may name, as dependencies of any kind. In the order of the floors.
const EDGES: &[(&str, &[&str])] = &[
    ("hermes-proto", &[]),
    ("hermes-client", &["hermes-proto"]),
    ("hermes-core", &[]),
    ("hermes-config", &["hermes-core"]),
    // The two rooms of floor 2 do not know each other.
    ("hermes-runtime", &["hermes-config", "hermes-core"]),
    ("hermes-state", &["hermes-config", "hermes-core"]),
    ("hermes-providers", &["hermes-config", "hermes-core", "hermes-runtime", "hermes-state"]),
    ("hermes-tools", &["hermes-config", "hermes-core", "hermes-runtime"]),
    (
        "hermes-context",
        &[
            "hermes-config",
            "hermes-core",
            "hermes-providers",
            "hermes-runtime",
            "hermes-state",
            "hermes-tools",
        ],
    ),
    (
        "hermes-engine",
        &[
            "hermes-config",
            "hermes-context",
            "hermes-core",
            "hermes-providers",
            "hermes-runtime",
            "hermes-state",
            "hermes-tools",
        ],
    ),
    // How a turn runs is the engine's business: no providers, tools or context here.
    (
        "hermes-server",
        &["hermes-config", "hermes-core", "hermes-engine", "hermes-proto", "hermes-runtime", "hermes-state"],
    ),
    // The one crate that may name all rooms. Clients are none of them.
    (
        "hermesd",
        &[
            "hermes-config",
            "hermes-context",
            "hermes-core",
            "hermes-engine",
            "hermes-proto",
            "hermes-providers",
            "hermes-runtime",
            "hermes-server",
            "hermes-state",
            "hermes-tools",
        ],
    ),
    // A client never sees a room of the daemon.
    ("hermes-cli", &["hermes-client", "hermes-config", "hermes-core", "hermes-proto"]),
    (
        "hermes-tests",
        &["hermes-client", "hermes-config", "hermes-core", "hermes-proto", "hermes-runtime", "hermes-state"],
    ),
];

/// Third parties that belong to some rooms alone, tests aside. `deny.toml` holds more of them, for tests too.
const WALLS: &[(&str, &[&str])] = &[
    ("axum", &["hermes-server"]),
    ("reqwest", &["hermes-providers"]),
    ("rusqlite", &["hermes-state"]),
    ("tonic", &["hermes-client", "hermes-proto", "hermes-server"]),
];

#[test]
fn third_parties_stay_in_their_rooms() {
    let metadata = metadata();
    let mut broken = Vec::new();
    for package in &metadata.packages {
        let shipped = package.dependencies.iter().filter(|one| one.kind != DependencyKind::Development);
        for dependency in shipped {
            let wall = WALLS.iter().find(|(name, _)| *name == dependency.name);
            if wall.is_some_and(|(_, rooms)| !rooms.contains(&package.name.as_str())) {
                broken.push(format!("{} may not use {}", package.name, dependency.name));
            }
        }
    }
    assert_none("third parties", &broken);
}

#[test]
fn crates_use_only_crates_on_floors_below() {
    let allowed: BTreeMap<&str, &[&str]> = EDGES.iter().copied().collect();
    let metadata = metadata();
    let members: BTreeSet<&str> = metadata.packages.iter().map(|package| package.name.as_str()).collect();
    let mut broken = Vec::new();
    for package in &metadata.packages {
        let name = package.name.as_str();
        let Some(allowed) = allowed.get(name) else {
            broken.push(format!("{name} has no line in the table of edges"));
            continue;
        };
        for dependency in package.dependencies.iter().filter(|one| members.contains(one.name.as_str())) {
            if !allowed.contains(&dependency.name.as_str()) {
                broken.push(format!("{name} may not use {}", dependency.name));
            }
        }
    }
    broken.extend(
        allowed.keys().filter(|name| !members.contains(*name)).map(|name| format!("{name} is no crate")),
    );
    assert_none("edges between crates", &broken);
}

#[test]
fn the_table_of_edges_goes_downwards_only() {
    let mut below = BTreeSet::new();
    for (name, allowed) in EDGES {
        for lower in *allowed {
            assert!(below.contains(lower), "{name} uses {lower}, which does not stand below it");
        }
        below.insert(*name);
    }
}

#[test]
fn rooms_are_named_after_their_folders() {
    let mut broken = Vec::new();
    for package in &metadata().packages {
        let folder = folder(package);
        let name = folder.file_name().and_then(|name| name.to_str()).expect("a crate has a folder");
        let in_daemon = folder.parent().is_some_and(|parent| parent.ends_with("daemon"));
        let room = package.name.as_str();
        if in_daemon && room != name && room != format!("hermes-{name}") {
            broken.push(format!("{room} lies in {}", folder.display()));
        }
        if ["common", "helpers", "misc", "shared", "util", "utils"].contains(&name) {
            broken.push(format!("{} says nothing about what it holds", folder.display()));
        }
    }
    assert_none("names of crates", &broken);
}

#[test]
fn every_file_says_what_it_is_for() {
    let broken = each_source(|path, text| {
        (!text.starts_with("//! ")).then(|| format!("{} does not open with `//! `", path.display()))
    });
    assert_none("files without a purpose", &broken);
}

#[test]
fn no_file_is_longer_than_its_subject() {
    let broken = each_source(|path, text| {
        let lines = text.lines().count();
        (lines > MAX_LINES).then(|| format!("{} has {lines} lines, of {MAX_LINES}", path.display()))
    });
    assert_none("files that are too long", &broken);
}

#[test]
fn nothing_is_left_to_be_written() {
    // Spelled apart, so that this file does not find itself.
    let marks = [concat!("to", "do!("), concat!("unimple", "mented!("), concat!("#[ign", "ore")];
    let broken = each_source(|path, text| {
        let found = marks.iter().find(|mark| text.contains(**mark))?;
        Some(format!("{} holds `{found}`", path.display()))
    });
    assert_none("unfinished code", &broken);
}

#[test]
fn every_crate_is_held_to_the_house_lints() {
    let mut broken = Vec::new();
    for package in metadata().packages.iter().filter(|package| package.name.as_str() != GENERATED) {
        let manifest = fs::read_to_string(&package.manifest_path).expect("cargo has just read it");
        let mut lines = manifest.lines().map(str::trim).skip_while(|line| *line != "[lints]").skip(1);
        if lines.next() != Some("workspace = true") {
            broken.push(format!("{} lacks `[lints]` with `workspace = true`", package.manifest_path));
        }
    }
    assert_none("crates with lints of their own", &broken);
}

#[test]
fn migrations_are_numbered_without_holes() {
    let folder = metadata().workspace_root.join("migrations");
    let mut names: Vec<String> = fs::read_dir(&folder)
        .expect("the folder is part of the repository")
        .map(|entry| entry.expect("a readable entry").file_name().to_string_lossy().into_owned())
        .filter(|name| Path::new(name).extension().is_some_and(|extension| extension == "sql"))
        .collect();
    names.sort();
    assert!(!names.is_empty(), "{folder} holds no migration");
    let mut broken = Vec::new();
    for (expected, name) in (FIRST_MIGRATION..).zip(&names) {
        let title = name.strip_prefix(&format!("{expected}_")).and_then(|rest| rest.strip_suffix(".sql"));
        let is_plain =
            |title: &str| title.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
        if !title.is_some_and(|title| !title.is_empty() && is_plain(title)) {
            broken.push(format!("{name} stands where {expected}_<subject>.sql is due"));
        }
    }
    assert_none("numbers of migrations", &broken);
}

fn metadata() -> Metadata {
    MetadataCommand::new()
        .manifest_path(concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml"))
        .no_deps()
        .other_options(vec!["--offline".to_owned()])
        .exec()
        .expect("cargo describes its own workspace")
}

fn folder(package: &Package) -> PathBuf {
    package.manifest_path.parent().expect("a manifest lies in a folder").as_std_path().to_owned()
}

/// Applies a rule to every Rust file of every crate and collects what it objects to.
fn each_source(rule: impl Fn(&Path, &str) -> Option<String>) -> Vec<String> {
    let metadata = metadata();
    let root = metadata.workspace_root.as_std_path();
    // A crate may lie inside another's folder; the set keeps each file once.
    let mut files = BTreeSet::new();
    for package in &metadata.packages {
        collect(&folder(package), &mut files);
    }
    assert!(files.len() > metadata.packages.len(), "no sources were found under {}", root.display());
    let check = |path: &PathBuf| {
        let text = fs::read_to_string(path).expect("sources are UTF-8");
        rule(path.strip_prefix(root).unwrap_or(path), &text)
    };
    files.iter().filter_map(check).collect()
}

fn collect(folder: &Path, files: &mut BTreeSet<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of the repository is readable") {
        let path = entry.expect("a readable entry").path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if path.is_dir() && name != "target" && !name.starts_with('.') {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.insert(path);
        }
    }
}

fn assert_none(what: &str, broken: &[String]) {
    assert!(broken.is_empty(), "{what}:\n  {}", broken.join("\n  "));
}
