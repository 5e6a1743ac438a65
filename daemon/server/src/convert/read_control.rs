//! Contract → core: greetings, settings keys and the wish to end.

use std::time::Duration;

use hermes_proto::{PROTOCOL, v1 as wire};
use tonic::Status;

use super::field::{InvalidField, name};
use crate::deps::ShutdownCommand;

/// Longest drain that a client may ask for: a day.
const MAX_DRAIN_S: f64 = 86_400.0;

/// Checks that both sides speak the same contract; if not, says which one to update.
pub(crate) fn hello(request: &wire::HelloRequest, version: &str) -> Result<(), Status> {
    let client = match name("client", &request.client) {
        Ok(name) => format!("`{name}` {}", request.version),
        Err(_) => "the client".to_owned(),
    };
    if request.protocol == PROTOCOL {
        return Ok(());
    }
    let older = if request.protocol < PROTOCOL {
        "update the client"
    } else {
        "update the daemon (hermesd), then run `hermes-cli daemon restart`"
    };
    Err(Status::failed_precondition(format!(
        "{client} speaks protocol {}, and the daemon {version} speaks protocol {PROTOCOL}; {older}",
        request.protocol
    )))
}

/// The dotted path of a setting.
pub(crate) fn config_key(request: &wire::ConfigGetRequest) -> Result<String, InvalidField> {
    name("key", &request.key)
}

pub(crate) fn shutdown(request: &wire::ShutdownRequest) -> Result<ShutdownCommand, InvalidField> {
    let drain = match request.drain_s {
        None => None,
        Some(seconds) if (0.0..=MAX_DRAIN_S).contains(&seconds) => Some(Duration::from_secs_f64(seconds)),
        Some(seconds) => {
            return Err(InvalidField::new(
                "drain_s",
                format!("{seconds} is not between 0 and {MAX_DRAIN_S} seconds"),
            ));
        }
    };
    Ok(ShutdownCommand { restart: request.restart, drain })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn greet(protocol: u32) -> Result<(), String> {
        let request = wire::HelloRequest { protocol, client: "hermes-cli".into(), version: "9.9".into() };
        hello(&request, "0.1.0").map_err(|status| status.message().to_owned())
    }

    #[test]
    fn a_skew_of_protocols_says_which_side_to_update() {
        assert_eq!(greet(PROTOCOL), Ok(()));
        let newer = greet(PROTOCOL + 1).unwrap_err();
        assert!(newer.contains("update the daemon") && newer.contains("`hermes-cli` 9.9"), "{newer}");
        let older = greet(PROTOCOL - 1).unwrap_err();
        assert!(older.contains("update the client"), "{older}");
    }

    #[test]
    fn a_drain_is_a_bounded_time() {
        let ask = |drain_s| shutdown(&wire::ShutdownRequest { restart: false, drain_s });
        assert_eq!(ask(None).unwrap().drain, None);
        assert_eq!(ask(Some(0.0)).unwrap().drain, Some(Duration::ZERO));
        for bad in [-1.0, f64::NAN, f64::INFINITY, 1e9] {
            assert_eq!(ask(Some(bad)).unwrap_err().field, "drain_s");
        }
    }
}
