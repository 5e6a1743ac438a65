//! Why no route could be made out of the settings: always the key, its value and what would do.

use crate::catalog::usable_ids;
use crate::mode::ApiMode;

/// A configuration that does not lead to a model. Nothing was sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResolveError {
    /// The name is neither built in nor under `providers`.
    #[error("{key}: there is no provider `{value}`{}; known are {}", did_you_mean(near), choices.join(", "))]
    UnknownProvider { key: String, value: String, near: Vec<String>, choices: Vec<String> },
    /// The user switched it off.
    #[error("provider `{provider}` is switched off: {key} is false")]
    Disabled { provider: String, key: String },
    /// `api_mode` names no wire.
    #[error("{key}: there is no API mode `{value}`; valid are {}", ApiMode::NAMES.join(", "))]
    UnknownMode { key: String, value: String },
    /// The wire is known, but this version does not speak it.
    #[error("provider `{provider}` is spoken to as `{mode}`, which this version does not support yet")]
    ModeNotBuilt { provider: String, mode: ApiMode, mode_key: String, also_chat: bool },
    /// A `base_url` that cannot be used.
    #[error("{key}: `{value}` is not a usable address: {reason}")]
    BadAddress { key: String, value: String, reason: String },
    /// A provider that has no address of its own was chosen without one.
    #[error("provider `{provider}` needs an address, and {key} is not set")]
    MissingAddress { provider: String, key: String },
    /// A provider was chosen, but no model.
    #[error("no model is named for provider `{provider}` ({why})")]
    MissingModel { provider: String, key: String, why: String },
    /// A provider was chosen that does not answer without a key.
    #[error("provider `{provider}` needs a key, and {} not set in .env", is_list(variables))]
    MissingKey { provider: String, variables: Vec<String>, key: String },
    /// A model was named, but nothing says who serves it.
    #[error("model `{model}` is named, but no provider: model.provider is not set and .env holds no key")]
    NoProvider { model: String },
    /// A header that HTTP does not allow.
    #[error("{key}: `{name}` is not a valid HTTP header")]
    BadHeader { key: String, name: String },
}

impl ResolveError {
    /// What the user can do now.
    pub fn hint(&self) -> String {
        match self {
            Self::UnknownProvider { value, .. } => format!(
                "use one of the known names, or set `provider: custom` with `base_url` for an \
                 OpenAI-compatible server, or describe `{value}` under `providers` in config.yaml"
            ),
            Self::Disabled { key, .. } => format!("remove {key} from config.yaml, or name another provider"),
            Self::UnknownMode { key, .. } => format!("correct {key} in config.yaml, or remove it"),
            Self::ModeNotBuilt { mode_key, also_chat: true, .. } => format!(
                "this server also speaks chat_completions: set `{mode_key}: chat_completions` in config.yaml"
            ),
            Self::ModeNotBuilt { .. } => format!(
                "use a provider that speaks chat_completions ({}), for instance the same model through openrouter",
                usable_ids().collect::<Vec<_>>().join(", ")
            ),
            Self::BadAddress { key, .. } => {
                format!("set {key} to something like `http://127.0.0.1:11434/v1` or `https://host/v1`")
            }
            Self::MissingAddress { key, .. } => format!(
                "set {key} in config.yaml to the address of an OpenAI-compatible server, for instance \
                 `http://127.0.0.1:11434/v1` (Ollama)"
            ),
            Self::MissingModel { key, .. } => {
                format!("set {key} in config.yaml, or name a model with -m")
            }
            Self::MissingKey { variables, key, .. } => match variables.first() {
                Some(variable) => format!("write `{variable}=<your key>` into .env of this profile"),
                None => format!("set {key} in config.yaml"),
            },
            Self::NoProvider { .. } => format!(
                "set model.provider in config.yaml to one of {}, or put a provider's key into .env",
                usable_ids().collect::<Vec<_>>().join(", ")
            ),
            Self::BadHeader { key, .. } => format!("correct {key} in config.yaml, or remove it"),
        }
    }
}

fn did_you_mean(near: &[String]) -> String {
    if near.is_empty() { String::new() } else { format!("; did you mean {}?", near.join(" or ")) }
}

fn is_list(variables: &[String]) -> String {
    match variables {
        [] => "its key is".to_owned(),
        [one] => format!("{one} is"),
        [many @ .., last] => format!("{} and {last} are", many.join(", ")),
    }
}
