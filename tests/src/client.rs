//! The client library, pointed at a test's own home.

use hermes_client::{Connector, Identity, Launch, Place};

use crate::{TestHome, binary};

/// Finds, or starts, the daemon of `home`.
pub fn connector(home: &TestHome) -> Connector {
    let dir = home.dir();
    let place = Place {
        root: dir.clone(),
        profile: "default".into(),
        socket: dir.join("run/hermesd.sock"),
        daemon_json: dir.join("run/daemon.json"),
        gateway_lock: dir.join("gateway.lock"),
        agent_log: dir.join("logs/agent.log"),
    };
    let launch = Launch { client_exe: Some(binary("hermes-cli")), ..Launch::default() };
    Connector::new(
        place,
        Identity { client: "test".into(), version: env!("CARGO_PKG_VERSION").into() },
        launch,
    )
}
