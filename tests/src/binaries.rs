//! Finds the real binaries that the workspace built.

use std::path::PathBuf;

/// The path of `hermesd` or `hermes-cli` beside the running test.
///
/// # Panics
/// When it was not built. `cargo test --workspace` builds it; for one crate alone, build it first.
pub fn binary(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a test knows its own path");
    // target/<profile>/deps/test-… or target/<profile>/bench
    let found = test.ancestors().skip(1).take(2).map(|folder| folder.join(name)).find(|path| path.is_file());
    found.unwrap_or_else(|| {
        panic!("{name} is not built; run `cargo build --bins -p hermesd -p hermes-cli` or `cargo test --workspace`")
    })
}

/// Whether a program that a test drives is on this machine. A test without it says so and ends; in CI, which
/// installs what the tests need, its absence is a failure.
///
/// # Panics
/// When the program is missing and `CI` is set.
pub fn is_installed(program: &str) -> bool {
    let found = std::process::Command::new(program)
        .arg("--version")
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !found {
        assert!(std::env::var_os("CI").is_none(), "{program} is not installed");
        eprintln!("SKIPPED: {program} is not installed");
    }
    found
}
