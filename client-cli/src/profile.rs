//! The profile of this call: its home, its settings where they are needed, and its daemon.

use std::path::PathBuf;

use hermes_client::{Connector, Identity, Launch, Place};
use hermes_config::{CONFIG_VARIABLE, Home, HomeInput, LoadInput, Loaded, SocketEnv};

use crate::args::GlobalFlags;
use crate::failure::Outcome;
use crate::surroundings::Surroundings;

/// Resolves the home. Creates nothing.
pub(crate) fn home(global: &GlobalFlags, around: &Surroundings) -> Outcome<Home> {
    Ok(Home::resolve(&HomeInput {
        profile: global.profile.as_deref(),
        hermes_home: around.variable("HERMES_HOME"),
        user_home: around.user_home.as_deref(),
    })?)
}

/// How to reach the daemon of a home.
pub(crate) fn connector(home: &Home, around: &Surroundings) -> Connector {
    let socket_env = SocketEnv {
        xdg_runtime_dir: around.variable("XDG_RUNTIME_DIR").map(Into::into),
        temp_dir: around.temp_dir.clone(),
        uid: around.uid,
    };
    let place = Place {
        root: home.root().to_owned(),
        profile: home.profile().as_str().to_owned(),
        socket: home.socket(&socket_env),
        daemon_json: home.daemon_json(),
        gateway_lock: home.gateway_lock(),
        agent_log: home.logs_dir().join("agent.log"),
    };
    let identity = Identity { client: "hermes-cli".into(), version: env!("CARGO_PKG_VERSION").into() };
    let launch = Launch {
        client_exe: around.exe.clone(),
        search_path: around.variable("PATH").map(ToOwned::to_owned),
    };
    Connector::new(place, identity, launch)
}

/// Makes a named profile's folder when `HERMES_HOME` names one that is new: the daemon, which is told the
/// name, takes only a profile that exists.
pub(crate) fn prepare(home: &Home) -> Outcome<()> {
    if home.is_named() && !home.dir().exists() {
        home.ensure()?;
    }
    Ok(())
}

/// The file that stands in for the profile's `config.yaml`, if one was named.
pub(crate) fn chosen_config(global: &GlobalFlags, around: &Surroundings) -> Option<PathBuf> {
    global.config.clone().or_else(|| around.variable(CONFIG_VARIABLE).map(Into::into))
}

/// The settings file of this call, whether it exists or not.
pub(crate) fn config_path(home: &Home, global: &GlobalFlags, around: &Surroundings) -> PathBuf {
    chosen_config(global, around).unwrap_or_else(|| home.config_yaml())
}

/// Loads the settings as this client sees them: its environment and its project file included.
pub(crate) fn settings(home: &Home, global: &GlobalFlags, around: &Surroundings) -> Outcome<Loaded> {
    Ok(hermes_config::load(&LoadInput {
        config_file: global.config.as_deref(),
        env: around.text_variables().collect(),
        project_dir: around.cwd.as_deref(),
        ..LoadInput::new(home)
    })?)
}
