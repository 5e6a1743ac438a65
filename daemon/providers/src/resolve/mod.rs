//! From settings to a route: explicit choice > provider's own rule > what the address says >
//! `chat_completions` (spec 30 §2, §9).
//!
//! Resolution is pure: it sends nothing and reads no environment. Keys come out of the secret
//! scope, and a vendor's key only ever goes to that vendor's host.

mod address;
mod error;
#[cfg(test)]
mod tests;

use std::time::Duration;

use hermes_core::Json;
use hermes_runtime::{Secret, SecretScope};
use reqwest::header::{HeaderName, HeaderValue};
use serde_json::Value;

pub(crate) use address::{Address, endpoint, is_loopback};
pub use error::ResolveError;

use crate::catalog::{self, BuiltIn, CUSTOM, KeyNeed, OFFLINE};
use crate::mode::ApiMode;
use crate::route::{CallTimeouts, Route, StaleLimit, thinking_floor_seconds};
use crate::settings::{ModelEntry, ProviderEntry, RouteSettings};

/// What a session, a turn or a flag asks for, over what the profile says.
#[derive(Debug, Clone, Copy, Default)]
pub struct RouteChoice<'a> {
    pub provider: Option<&'a str>,
    /// A model's id, or `provider:id` with a known provider.
    pub model: Option<&'a str>,
}

/// Makes the route of a call. When nothing at all is configured, that is the offline route; a
/// configuration that is there but incomplete is an error.
pub fn resolve(
    settings: &RouteSettings,
    secrets: &SecretScope,
    choice: &RouteChoice<'_>,
) -> Result<Route, ResolveError> {
    let Some(subject) = Subject::choose(settings, secrets, choice)? else { return Ok(Route::offline()) };
    if subject.id == OFFLINE {
        return Ok(Route::offline());
    }
    let mut notes = Vec::new();
    let address = subject.address(secrets, &mut notes)?;
    let api_mode = subject.mode(&address, &mut notes)?;
    let model = subject.model()?;
    let (credential, credential_source) = subject.credential(&address, secrets)?;
    let facts = subject.entry.and_then(|entry| entry.models.get(&model));
    Ok(Route {
        provider: subject.id.clone(),
        base_url: address.as_text(),
        api_mode,
        credential,
        credential_source,
        context_window: subject.context_window(&model, facts),
        max_tokens: subject.max_tokens(facts),
        timeouts: subject.timeouts(&model, facts, address.is_local()),
        extra_body: subject.extra_body(&mut notes),
        extra_headers: subject.extra_headers()?,
        is_local: address.is_local(),
        model,
        notes,
    })
}

/// The provider that is being resolved, with all that speaks about it.
struct Subject<'a> {
    settings: &'a RouteSettings,
    id: String,
    built_in: Option<&'static BuiltIn>,
    entry: Option<&'a ProviderEntry>,
    /// Section `model` was written for this provider. A base address, key or mode that was written
    /// for another one must not be used for this one.
    owns_model_section: bool,
    chosen_model: Option<&'a str>,
    /// How this provider came to be used, for error texts.
    why: String,
}

impl<'a> Subject<'a> {
    /// Picks the provider; `None` when nothing is configured.
    fn choose(
        settings: &'a RouteSettings,
        secrets: &SecretScope,
        choice: &RouteChoice<'a>,
    ) -> Result<Option<Self>, ResolveError> {
        let section = &settings.model;
        let configured = named(section.provider.as_deref());
        // With a provider beside it, a model's id is taken as it is, colons and all.
        let (chosen, chosen_model) = match named(choice.provider) {
            Some(provider) => (Some(provider), named(choice.model)),
            None => split_model(settings, choice.model),
        };
        let subject = |id: &str, owns_model_section: bool, why: &str| -> Self {
            Self {
                settings,
                id: id.to_owned(),
                built_in: catalog::find(&normalise(id)),
                entry: settings.providers.0.get(id),
                owns_model_section,
                chosen_model,
                why: why.to_owned(),
            }
        };
        if let Some(name) = chosen {
            let id = find(settings, "provider", name)?;
            let owns = match configured {
                Some(other) => find(settings, "model.provider", other).is_ok_and(|other| other == id),
                None => true,
            };
            return Ok(Some(subject(&id, owns, "it was asked for by name")));
        }
        if let Some(name) = configured {
            let id = find(settings, "model.provider", name)?;
            return Ok(Some(subject(&id, true, "model.provider names it")));
        }
        if named(section.base_url.as_deref()).is_some() {
            return Ok(Some(subject(CUSTOM, true, "model.base_url is set without model.provider")));
        }
        if filled(section.api_key.as_ref()).is_some() {
            return Ok(Some(subject("openrouter", true, "model.api_key is set without model.provider")));
        }
        let found = catalog::key_variables().find(|variable| secrets.get(variable).is_some());
        if let Some((variable, provider)) =
            found.and_then(|name| Some((name, catalog::provider_of_key(name)?)))
        {
            return Ok(Some(subject(provider.id, true, &format!("{variable} stands in .env"))));
        }
        match chosen_model.or(named(section.default.as_deref())) {
            Some(model) => Err(ResolveError::NoProvider { model: model.to_owned() }),
            None => Ok(None),
        }
    }

    /// The settings key that speaks about this provider, for error texts.
    fn key(&self, leaf: &str) -> String {
        if self.entry.is_some() || (!self.owns_model_section && self.id != CUSTOM) {
            format!("providers.{}.{leaf}", self.id)
        } else {
            format!("model.{leaf}")
        }
    }

    fn address(&self, secrets: &SecretScope, notes: &mut Vec<String>) -> Result<Address, ResolveError> {
        let section = named(self.settings.model.base_url.as_deref());
        let variable = self.built_in.and_then(|provider| provider.base_variable);
        let (key, value) = if let Some(value) = self.entry.and_then(|entry| named(entry.base_url.as_deref()))
        {
            (format!("providers.{}.base_url", self.id), value.to_owned())
        } else if let Some(value) = section.filter(|value| self.may_use_saved_address(value)) {
            ("model.base_url".to_owned(), value.to_owned())
        } else if let Some((name, value)) =
            variable.and_then(|name| Some((name, secrets.get(name)?.expose().to_owned())))
        {
            (format!("{name} in .env"), value)
        } else if let Some(value) = self.built_in.and_then(|provider| provider.base_url) {
            (format!("providers.{}.base_url", self.id), value.to_owned())
        } else {
            return Err(ResolveError::MissingAddress {
                provider: self.id.clone(),
                key: self.key("base_url"),
            });
        };
        let address = Address::parse(&key, &value)?;
        if let Some(tail) = address.stripped {
            notes.push(format!("{key} ended in {tail}, which was cut off: {}", address.as_text()));
        }
        Ok(address)
    }

    /// A saved address goes with the provider that it was saved with; on this machine it is safe anyway.
    fn may_use_saved_address(&self, value: &str) -> bool {
        let is_loopback =
            || Address::parse("model.base_url", value).is_ok_and(|address| address.is_loopback());
        self.owns_model_section || (self.id == CUSTOM && is_loopback())
    }

    fn mode(&self, address: &Address, notes: &mut Vec<String>) -> Result<ApiMode, ResolveError> {
        let from_entry = self
            .entry
            .and_then(|entry| named(entry.api_mode.as_deref()))
            .map(|value| (format!("providers.{}.api_mode", self.id), value));
        let from_section = named(self.settings.model.api_mode.as_deref())
            .filter(|_| self.owns_model_section)
            .map(|value| ("model.api_mode".to_owned(), value));
        let mut explicit = None;
        if let Some((key, value)) = from_entry.or(from_section) {
            let mode = ApiMode::parse(value)
                .ok_or_else(|| ResolveError::UnknownMode { key: key.clone(), value: value.to_owned() })?;
            let is_stale =
                mode == ApiMode::CodexResponses && self.is_users_own() && !address.speaks_responses();
            if is_stale {
                notes.push(format!("{key}: {mode} is ignored, since {} does not offer it", address.host()));
            } else {
                explicit = Some(mode);
            }
        }
        let mode = explicit
            .or_else(|| self.built_in.and_then(|provider| provider.mode))
            .or_else(|| address.mode())
            .unwrap_or(ApiMode::ChatCompletions);
        if mode.is_built() {
            return Ok(mode);
        }
        Err(ResolveError::ModeNotBuilt {
            provider: self.id.clone(),
            mode,
            mode_key: self.key("api_mode"),
            also_chat: mode == ApiMode::CodexResponses && address.speaks_responses(),
        })
    }

    /// Whether the user described the server, and not we.
    fn is_users_own(&self) -> bool {
        self.built_in.is_none_or(|provider| provider.id == CUSTOM)
    }

    fn model(&self) -> Result<String, ResolveError> {
        let section = named(self.settings.model.default.as_deref()).filter(|_| self.owns_model_section);
        let entry = self.entry.and_then(|entry| named(entry.default_model.as_deref()));
        // `provider:id` in the file is read as in a choice; before a model of another provider it is a
        // part of the id (`deepseek:7b` of a local server).
        let section = section.map(|model| match split_model(self.settings, Some(model)) {
            (Some(provider), Some(id))
                if find(self.settings, "model", provider).is_ok_and(|named| named == self.id) =>
            {
                id
            }
            _ => model,
        });
        self.chosen_model.or(section).or(entry).map(str::to_owned).ok_or_else(|| ResolveError::MissingModel {
            provider: self.id.clone(),
            key: if self.owns_model_section {
                "model.default".to_owned()
            } else {
                format!("providers.{}.default_model", self.id)
            },
            why: self.why.clone(),
        })
    }

    /// The key, and where it was found.
    fn credential(
        &self,
        address: &Address,
        secrets: &SecretScope,
    ) -> Result<(Option<Secret>, Option<String>), ResolveError> {
        let found = |secret: Secret, source: String| Ok((Some(secret), Some(source)));
        if let Some(key) = self.entry.and_then(|entry| filled(entry.api_key.as_ref())) {
            return found(key.clone(), format!("providers.{}.api_key in config.yaml", self.id));
        }
        if let Some(variable) = self.entry.and_then(|entry| named(entry.key_env.as_deref())) {
            let Some(key) = secrets.get(variable) else {
                return Err(ResolveError::MissingKey {
                    provider: self.id.clone(),
                    variables: vec![variable.to_owned()],
                    key: format!("providers.{}.api_key", self.id),
                });
            };
            return found(key, format!("{variable} in .env"));
        }
        let of_section = filled(self.settings.model.api_key.as_ref());
        if let Some(key) = of_section.filter(|_| self.owns_model_section) {
            return found(key.clone(), "model.api_key in config.yaml".to_owned());
        }
        // A vendor's key goes to that vendor's host and nowhere else, whatever the provider is called.
        let vendors = catalog::BUILT_IN.iter().filter(|vendor| address.is_on(vendor.key_hosts));
        let own = self.built_in.into_iter().filter(|vendor| address.is_on(vendor.key_hosts));
        for variable in own.chain(vendors).flat_map(|vendor| vendor.key_variables) {
            if let Some(key) = secrets.get(variable) {
                return found(key, format!("{variable} in .env"));
            }
        }
        let by_host = address.key_variable().and_then(|name| secrets.get(&name).map(|key| (name, key)));
        if let Some((variable, key)) = by_host {
            return found(key, format!("{variable} in .env"));
        }
        match self.built_in {
            Some(vendor) if vendor.key == KeyNeed::Required && !address.is_local() => {
                let on_own_host = address.is_on(vendor.key_hosts);
                let own = vendor.key_variables.iter().filter(|_| on_own_host).map(|name| (*name).to_owned());
                Err(ResolveError::MissingKey {
                    provider: self.id.clone(),
                    variables: own.chain(address.key_variable().filter(|_| !on_own_host)).collect(),
                    key: self.key("api_key"),
                })
            }
            _ => Ok((None, None)),
        }
    }

    fn context_window(&self, model: &str, facts: Option<&ModelEntry>) -> Option<u64> {
        let section = &self.settings.model;
        // `model.context_length` is a fact about `model.default`, not about another model.
        let is_default = self.owns_model_section
            && (self.chosen_model.is_none() || section.default.as_deref() == Some(model));
        section.context_length.filter(|_| is_default).or_else(|| facts.and_then(|facts| facts.context_length))
    }

    fn max_tokens(&self, facts: Option<&ModelEntry>) -> Option<u32> {
        let section = self.settings.model.max_tokens.filter(|_| self.owns_model_section);
        section.or_else(|| facts.and_then(|facts| facts.max_output_tokens))
    }

    fn timeouts(&self, model: &str, facts: Option<&ModelEntry>, is_local: bool) -> CallTimeouts {
        let defaults = CallTimeouts::default();
        let whole = facts
            .and_then(|facts| duration(facts.timeout_seconds))
            .or_else(|| self.entry.and_then(|entry| duration(entry.request_timeout_seconds)));
        let stale = facts
            .and_then(|facts| duration(facts.stale_timeout_seconds))
            .or_else(|| self.entry.and_then(|entry| duration(entry.stale_timeout_seconds)));
        let floor = thinking_floor_seconds(model);
        let (stream_stale, whole_answer_stale) = match stale {
            Some(limit) => (StaleLimit::Fixed(limit), StaleLimit::Fixed(limit)),
            None if is_local => (
                duration(Some(self.settings.agent.local_stream_stale_timeout))
                    .map_or(defaults.stream_stale, StaleLimit::Fixed),
                StaleLimit::Never,
            ),
            None => (defaults.stream_stale.with_floor(floor), defaults.whole_answer_stale.with_floor(floor)),
        };
        CallTimeouts { whole: whole.unwrap_or(defaults.whole), stream_stale, whole_answer_stale }
    }

    fn extra_body(&self, notes: &mut Vec<String>) -> Option<Json> {
        let mut fields = self.entry?.extra_body.clone()?;
        for ours in ["model", "messages", "tools", "stream"] {
            if fields.shift_remove(ours).is_some() {
                notes.push(format!(
                    "providers.{}.extra_body.{ours} is ignored: the request itself sets it",
                    self.id
                ));
            }
        }
        (!fields.is_empty()).then(|| Json::from(Value::Object(fields)))
    }

    fn extra_headers(&self) -> Result<Vec<(String, Secret)>, ResolveError> {
        let mut headers = Vec::new();
        if self.id == "openrouter" {
            headers.push(("x-title".to_owned(), Secret::from("Hermes")));
        }
        for (name, value) in self.entry.iter().flat_map(|entry| &entry.extra_headers) {
            let name = name.to_ascii_lowercase();
            let is_valid = HeaderName::from_bytes(name.as_bytes()).is_ok()
                && HeaderValue::from_str(value.expose()).is_ok();
            if !is_valid {
                let key = format!("providers.{}.extra_headers", self.id);
                return Err(ResolveError::BadHeader { key, name });
            }
            headers.retain(|(other, _)| *other != name);
            headers.push((name, value.clone()));
        }
        Ok(headers)
    }
}

/// Finds a provider by the name that stands under `key`.
fn find(settings: &RouteSettings, key: &str, value: &str) -> Result<String, ResolveError> {
    let name = normalise(value);
    let own = name.strip_prefix("custom:").unwrap_or(&name);
    let written = settings.providers.0.iter().find(|(id, _)| normalise(id) == own);
    if let Some((id, entry)) = written {
        if !entry.enabled {
            return Err(ResolveError::Disabled {
                key: format!("providers.{id}.enabled"),
                provider: id.clone(),
            });
        }
        return Ok(id.clone());
    }
    if name == OFFLINE {
        return Ok(name);
    }
    if let Some(provider) = catalog::find(&name) {
        return Ok(provider.id.to_owned());
    }
    let choices: Vec<String> =
        catalog::usable_ids().map(str::to_owned).chain(settings.providers.0.keys().cloned()).collect();
    /// Below this likeness a suggestion would be noise.
    const LIKE_ENOUGH: f64 = 0.8;
    let near =
        choices.iter().filter(|choice| strsim::jaro_winkler(choice, own) >= LIKE_ENOUGH).cloned().collect();
    Err(ResolveError::UnknownProvider { key: key.to_owned(), value: value.to_owned(), near, choices })
}

/// Splits `provider:id` when what stands before the colon is a provider; many ids hold a colon.
fn split_model<'a>(settings: &RouteSettings, model: Option<&'a str>) -> (Option<&'a str>, Option<&'a str>) {
    let Some(model) = named(model) else { return (None, None) };
    match model.split_once(':') {
        Some((provider, id)) if !id.trim().is_empty() && find(settings, "model", provider).is_ok() => {
            (Some(provider), Some(id.trim()))
        }
        _ => (None, Some(model)),
    }
}

fn normalise(name: &str) -> String {
    name.trim().to_lowercase().replace(' ', "-")
}

/// A value that says something; `auto` is how the original spells "not set".
fn named(value: Option<&str>) -> Option<&str> {
    value.map(str::trim).filter(|value| !value.is_empty() && !value.eq_ignore_ascii_case("auto"))
}

fn filled(secret: Option<&Secret>) -> Option<&Secret> {
    secret.filter(|secret| !secret.is_empty())
}

fn duration(seconds: Option<f64>) -> Option<Duration> {
    const YEAR_SECONDS: f64 = 366.0 * 86_400.0;
    let seconds = seconds.filter(|seconds| seconds.is_finite() && *seconds > 0.0)?;
    Some(Duration::from_secs_f64(seconds.min(YEAR_SECONDS)))
}
