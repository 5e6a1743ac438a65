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
