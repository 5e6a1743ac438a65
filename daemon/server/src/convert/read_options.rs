//! Contract → core: what a client chooses for a session and for a turn (contract §8).

use std::path::PathBuf;

use hermes_core::{BusyMode, ClientEnv, SessionOptions, TurnOptions};
use hermes_proto::v1 as wire;

use super::field::{InvalidField, name, optional_name};

/// Longest list of toolsets or skills.
const MAX_LIST: usize = 500;

/// Longest turn that a client may ask for: a week.
const MAX_DEADLINE_S: f64 = 7.0 * 86_400.0;

/// Reads the options of a session; absent options mean the profile's own.
pub(crate) fn session(options: Option<wire::SessionOptions>) -> Result<SessionOptions, InvalidField> {
    let options = options.unwrap_or_default();
    Ok(SessionOptions {
        cwd: options.cwd.as_deref().map(cwd).transpose()?,
        client_env: ClientEnv::filter(options.client_env),
        platform: optional_name("options.platform", options.platform)?,
        model: optional_name("options.model", options.model)?,
        provider: optional_name("options.provider", options.provider)?,
        toolsets: options.toolsets.map(|list| names("options.toolsets", &list.items)).transpose()?,
        skills: names("options.skills", &options.skills)?,
        skip_context: options.skip_context,
        skip_memory: options.skip_memory,
        source: optional_name("options.source", options.source)?,
        ephemeral: options.persist == Some(false),
    })
}

/// Reads the options of a turn.
pub(crate) fn turn(options: Option<wire::TurnOptions>) -> Result<TurnOptions, InvalidField> {
    let options = options.unwrap_or_default();
    if options.max_turns == Some(0) {
        return Err(InvalidField::new("options.max_turns", "must be at least 1"));
    }
    Ok(TurnOptions {
        max_turns: options.max_turns,
        yolo: options.yolo,
        busy_mode: options.busy_mode.as_deref().map(busy_mode).transpose()?,
        deadline_s: options.deadline_s.map(deadline).transpose()?,
        model_once: optional_name("options.model_once", options.model_once)?,
        one_shot: options.one_shot,
    })
}

fn cwd(text: &str) -> Result<PathBuf, InvalidField> {
    let path = PathBuf::from(text);
    if text.contains('\0') || !path.is_absolute() {
        return Err(InvalidField::new("options.cwd", format!("`{text}` is not an absolute path")));
    }
    Ok(path)
}

fn names(field: &'static str, items: &[String]) -> Result<Vec<String>, InvalidField> {
    if items.len() > MAX_LIST {
        return Err(InvalidField::new(
            field,
            format!("has {} entries, at most {MAX_LIST} are allowed", items.len()),
        ));
    }
    items.iter().map(|item| name(field, item)).collect()
}

fn busy_mode(text: &str) -> Result<BusyMode, InvalidField> {
    match text {
        "queue" => Ok(BusyMode::Queue),
        "steer" => Ok(BusyMode::Steer),
        "interrupt" => Ok(BusyMode::Interrupt),
        other => Err(InvalidField::new(
            "options.busy_mode",
            format!("`{other}` is not one of queue, steer, interrupt"),
        )),
    }
}

fn deadline(seconds: f64) -> Result<f64, InvalidField> {
    if seconds > 0.0 && seconds <= MAX_DEADLINE_S {
        return Ok(seconds);
    }
    Err(InvalidField::new(
        "options.deadline_s",
        format!("{seconds} is not above 0 and at most {MAX_DEADLINE_S} seconds"),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absent_options_are_the_defaults() {
        assert_eq!(session(None).unwrap(), SessionOptions::default());
        assert_eq!(turn(None).unwrap(), TurnOptions::default());
    }

    #[test]
    fn a_session_keeps_what_the_client_chose() {
        let wire = wire::SessionOptions {
            cwd: Some("/work".into()),
            client_env: [("PATH".to_owned(), "/bin".to_owned()), ("AWS_KEY".to_owned(), "x".to_owned())]
                .into(),
            platform: Some("cli".into()),
            toolsets: Some(wire::StringList { items: vec![] }),
            persist: Some(false),
            ..Default::default()
        };
        let options = session(Some(wire)).unwrap();
        assert_eq!(options.cwd, Some(PathBuf::from("/work")));
        assert_eq!(options.client_env.iter().collect::<Vec<_>>(), [("PATH", "/bin")]);
        assert_eq!(options.toolsets, Some(vec![]), "an empty list means no tools, not the default ones");
        assert!(options.ephemeral);
    }

    #[test]
    fn a_relative_working_directory_is_refused() {
        let wire = wire::SessionOptions { cwd: Some("work".into()), ..Default::default() };
        assert_eq!(session(Some(wire)).unwrap_err().field, "options.cwd");
    }

    #[test]
    fn every_field_of_a_turn_is_checked() {
        let with = |change: fn(&mut wire::TurnOptions)| {
            let mut options = wire::TurnOptions::default();
            change(&mut options);
            turn(Some(options)).map_err(|error| error.field)
        };
        assert_eq!(with(|o| o.max_turns = Some(0)), Err("options.max_turns"));
        assert_eq!(with(|o| o.busy_mode = Some("now".into())), Err("options.busy_mode"));
        assert_eq!(with(|o| o.deadline_s = Some(0.0)), Err("options.deadline_s"));
        assert_eq!(with(|o| o.deadline_s = Some(f64::NAN)), Err("options.deadline_s"));
        assert_eq!(with(|o| o.deadline_s = Some(f64::INFINITY)), Err("options.deadline_s"));
        assert_eq!(with(|o| o.model_once = Some(" ".into())), Err("options.model_once"));
        let options = with(|o| o.busy_mode = Some("steer".into())).unwrap();
        assert_eq!(options.busy_mode, Some(BusyMode::Steer));
    }
}
