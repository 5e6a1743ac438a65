//! `version` and `-V`: what this is, how it was built, and whose home it would use.

use std::env::consts::{ARCH, OS};

use hermes_config::Home;

use super::Desk;
use crate::exit::Exit;
use crate::failure::{Outcome, Stop};
use crate::output::Output;

/// `-V`: settings are not loaded, and a home that cannot be used is no reason to fail.
pub(crate) fn show(home: Outcome<Home>, output: &mut Output) -> Outcome<Exit> {
    let place = match home {
        Ok(home) => home.dir().display().to_string(),
        Err(Stop::Failure(failure)) => format!("none ({})", failure.message),
        Err(stop) => return Err(stop),
    };
    for line in lines(&place) {
        output.line(&line)?;
    }
    Ok(Exit::Success)
}

/// `version`: and the daemon's, when one runs.
pub(super) async fn run(desk: &Desk<'_>, output: &mut Output) -> Outcome<Exit> {
    for line in lines(&desk.home.dir().display().to_string()) {
        output.line(&line)?;
    }
    let daemon = match desk.connector.connect().await {
        Ok(client) => format!("{} (protocol {})", client.hello().version, client.hello().protocol),
        Err(error) if error.is_absent() => "not running".into(),
        Err(error) => crate::failure::chain(&error),
    };
    output.line(&format!("daemon: {daemon}"))?;
    Ok(Exit::Success)
}

fn lines(home: &str) -> [String; 3] {
    let build = if cfg!(debug_assertions) { "debug" } else { "release" };
    [
        format!("hermes-cli {} (protocol {})", env!("CARGO_PKG_VERSION"), hermes_proto::PROTOCOL),
        format!("build: {build}, {OS} {ARCH}"),
        format!("home: {home}"),
    ]
}
