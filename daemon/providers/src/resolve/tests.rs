//! Routes by table: what wins, what is refused, and that keys stay at home.

use std::time::Duration;

use hermes_runtime::{Secret, SecretScope};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::{ResolveError, RouteChoice, resolve};
use crate::mode::ApiMode;
use crate::route::{Route, StaleLimit};
use crate::settings::RouteSettings;

fn settings(value: &Value) -> RouteSettings {
    let section = |name: &str| value.get(name).cloned().unwrap_or(json!({}));
    RouteSettings {
        model: serde_json::from_value(section("model")).unwrap(),
        providers: serde_json::from_value(section("providers")).unwrap(),
        agent: serde_json::from_value(section("agent")).unwrap(),
    }
}

fn route_of(config: &Value, keys: &[(&str, &str)], choice: RouteChoice<'_>) -> Result<Route, ResolveError> {
    resolve(&settings(config), &SecretScope::from_pairs(keys.iter().copied()), &choice)
}

fn route(config: &Value, keys: &[(&str, &str)]) -> Result<Route, ResolveError> {
    route_of(config, keys, RouteChoice::default())
}

fn key_of(route: &Route) -> Option<&str> {
    route.credential.as_ref().map(Secret::expose)
}

#[test]
fn nothing_configured_is_offline_and_something_incomplete_is_an_error() {
    assert!(route(&json!({}), &[]).unwrap().is_offline());
    assert!(
        route(&json!({"model": {"provider": "", "default": " "}}), &[("OTHER_KEY", "x")])
            .unwrap()
            .is_offline()
    );
    assert!(
        route(&json!({"model": {"provider": "offline"}}), &[("OPENAI_API_KEY", "x")]).unwrap().is_offline()
    );
    let errors = [
        route(&json!({"model": {"default": "m"}}), &[]),
        route(&json!({"model": {"provider": "custom", "default": "m"}}), &[]),
        route(&json!({"model": {"provider": "custom", "base_url": "http://h/v1"}}), &[]),
        route(&json!({"model": {"provider": "openrouter", "default": "m"}}), &[]),
        route(&json!({}), &[("OPENROUTER_API_KEY", "k")]),
        route_of(&json!({}), &[], RouteChoice { provider: None, model: Some("m") }),
    ];
    let told: Vec<String> = errors
        .into_iter()
        .map(|outcome| {
            let error = outcome.unwrap_err();
            format!("{error}\n  -> {}", error.hint())
        })
        .collect();
    insta::assert_snapshot!("incomplete", told.join("\n"));
}

#[test]
fn what_is_wrong_is_named_with_its_key_its_value_and_the_choices() {
    let errors = [
        route(&json!({"model": {"provider": "opnai", "default": "m"}}), &[]),
        route_of(&json!({}), &[], RouteChoice { provider: Some("nosuch"), model: Some("m") }),
        route(&json!({"model": {"provider": "custom", "base_url": "localhost:8000", "default": "m"}}), &[]),
        route(
            &json!({"model": {"provider": "custom", "base_url": "http://h/v1", "default": "m", "api_mode": "grpc"}}),
            &[],
        ),
        route(
            &json!({"model": {"provider": "anthropic", "default": "claude"}}),
            &[("ANTHROPIC_API_KEY", "k")],
        ),
        route(&json!({"model": {"provider": "openai-api", "default": "gpt-5"}}), &[("OPENAI_API_KEY", "k")]),
        route(
            &json!({"model": {"provider": "custom", "base_url": "https://h/anthropic", "default": "m"}}),
            &[],
        ),
        route(
            &json!({"model": {"provider": "lab", "default": "m"}, "providers": {"lab": {"enabled": false}}}),
            &[],
        ),
        route(
            &json!({"model": {"provider": "lab", "default": "m"}, "providers": {"lab": {"base_url": "http://h", "key_env": "LAB_KEY"}}}),
            &[],
        ),
        route(
            &json!({"model": {"provider": "lab", "default": "m"}, "providers": {"lab": {"base_url": "http://h", "extra_headers": {"a b": "c"}}}}),
            &[],
        ),
    ];
    let told: Vec<String> = errors
        .into_iter()
        .map(|outcome| {
            let error = outcome.unwrap_err();
            format!("{error}\n  -> {}", error.hint())
        })
        .collect();
    insta::assert_snapshot!("wrong", told.join("\n"));
}

#[test]
fn a_custom_server_is_used_as_it_is_written() {
    let config = json!({"model": {"provider": "custom", "base_url": "http://127.0.0.1:8000/v1/chat/completions", "api_key": "x", "default": "fake", "max_tokens": 9, "context_length": 32768}});
    let route = route(&config, &[]).unwrap();
    assert_eq!((route.provider.as_str(), route.model.as_str()), ("custom", "fake"));
    assert_eq!(
        (route.base_url.as_str(), route.api_mode),
        ("http://127.0.0.1:8000/v1", ApiMode::ChatCompletions)
    );
    assert_eq!(
        route.notes,
        ["model.base_url ended in /chat/completions, which was cut off: http://127.0.0.1:8000/v1"]
    );
    assert_eq!(
        (key_of(&route), route.credential_source.as_deref()),
        (Some("x"), Some("model.api_key in config.yaml"))
    );
    assert_eq!((route.max_tokens, route.context_window, route.is_local), (Some(9), Some(32768), true));
    assert_eq!(route.timeouts.stream_stale, StaleLimit::Fixed(Duration::from_mins(15)));
    assert_eq!(route.timeouts.whole_answer_stale, StaleLimit::Never);
}

#[test]
fn the_provider_is_chosen_explicitly_then_by_the_file_then_by_what_is_there() {
    let keys =
        [("OPENROUTER_API_KEY", "or-key"), ("OPENAI_API_KEY", "oa-key"), ("DEEPSEEK_API_KEY", "ds-key")];
    let config = json!({"model": {"provider": "OpenAI", "default": "gpt-4o"}});
    let chosen = |provider, model| route_of(&config, &keys, RouteChoice { provider, model }).unwrap();
    assert_eq!(chosen(None, None).provider, "openai");
    assert_eq!(chosen(Some("or"), Some("x/y")).provider, "openrouter");
    assert_eq!(chosen(None, Some("deepseek:deepseek-chat")).model, "deepseek-chat");
    assert_eq!(chosen(None, Some("deepseek:deepseek-chat")).provider, "deepseek");
    // A colon alone makes no provider.
    assert_eq!(
        (chosen(None, Some("llama3:8b")).model.as_str(), chosen(None, Some("llama3:8b")).provider.as_str()),
        ("llama3:8b", "openai")
    );
    assert_eq!(chosen(Some("or"), Some("deepseek:x")).model, "deepseek:x");
    // The file's model belongs to the file's provider.
    assert!(matches!(
        route_of(&config, &keys, RouteChoice { provider: Some("openrouter"), model: None }),
        Err(ResolveError::MissingModel { .. })
    ));
    let by_key = |keys: &[(&str, &str)]| route(&json!({"model": {"default": "m"}}), keys).unwrap().provider;
    assert_eq!(by_key(&keys), "openrouter");
    assert_eq!(by_key(&keys[1..]), "openai");
    assert_eq!(by_key(&keys[2..]), "deepseek");
    assert_eq!(
        route(&json!({"model": {"default": "m", "base_url": "http://box:1/v1"}}), &keys).unwrap().provider,
        "custom"
    );
    assert_eq!(
        route(&json!({"model": {"default": "m", "api_key": "k"}}), &[]).unwrap().provider,
        "openrouter"
    );
}

#[test]
fn a_colon_in_the_files_model_is_a_provider_only_before_a_model_of_that_provider() {
    let keys = [("DEEPSEEK_API_KEY", "ds-key")];
    let local = json!({"model": {"provider": "custom", "base_url": "http://127.0.0.1:9/v1", "default": "deepseek:7b"}});
    assert_eq!(route(&local, &keys).unwrap().model, "deepseek:7b");
    let hosted = json!({"model": {"provider": "deepseek", "default": "deepseek:deepseek-chat"}});
    assert_eq!(route(&hosted, &keys).unwrap().model, "deepseek-chat");
}

#[test]
fn a_built_in_provider_may_be_written_in_capitals() {
    let config = json!({
        "model": {"provider": "openai", "default": "m"},
        "providers": {"OpenAI": {"request_timeout_seconds": 7}},
    });
    let route = route(&config, &[("OPENAI_API_KEY", "oa-key")]).unwrap();
    assert_eq!((route.host(), key_of(&route)), ("api.openai.com", Some("oa-key")));
}

#[test]
fn ones_own_providers_are_found_by_name_and_may_change_a_built_in_one() {
    let config = json!({
        "model": {"provider": "custom:my-lab", "default": "q"},
        "providers": {
            "My Lab": {
                "base_url": "https://lab.example/v1", "key_env": "LAB_KEY", "request_timeout_seconds": 60, "stale_timeout_seconds": 20,
                "models": {"q": {"context_length": 65536, "max_output_tokens": 100, "timeout_seconds": 5}},
                "extra_body": {"options": {"num_ctx": 1}, "messages": []}, "extra_headers": {"X-Team": "a"},
            },
            "openrouter": {"request_timeout_seconds": 7, "default_model": "or/default"},
        },
    });
    let keys = [("LAB_KEY", "lab-key"), ("OPENROUTER_API_KEY", "or-key")];
    let lab = route(&config, &keys).unwrap();
    assert_eq!((lab.provider.as_str(), key_of(&lab)), ("My Lab", Some("lab-key")));
    assert_eq!((lab.context_window, lab.max_tokens), (Some(65536), Some(100)));
    assert_eq!(
        (lab.timeouts.whole, lab.timeouts.stream_stale),
        (Duration::from_secs(5), StaleLimit::Fixed(Duration::from_secs(20)))
    );
    assert_eq!(lab.extra_body.unwrap().as_str(), r#"{"options":{"num_ctx":1}}"#);
    assert_eq!(lab.notes, ["providers.My Lab.extra_body.messages is ignored: the request itself sets it"]);
    assert_eq!((lab.extra_headers[0].0.as_str(), lab.extra_headers[0].1.expose()), ("x-team", "a"));

    let openrouter =
        route_of(&config, &keys, RouteChoice { provider: Some("openrouter"), model: None }).unwrap();
    assert_eq!(
        (openrouter.model.as_str(), openrouter.base_url.as_str()),
        ("or/default", "https://openrouter.ai/api/v1")
    );
    assert_eq!((openrouter.timeouts.whole, key_of(&openrouter)), (Duration::from_secs(7), Some("or-key")));
}

#[test]
fn a_vendors_key_goes_to_that_vendors_host_and_nowhere_else() {
    let keys = [
        ("OPENAI_API_KEY", "oa-key"),
        ("OPENROUTER_API_KEY", "or-key"),
        ("FOO_API_KEY", "foo-key"),
        ("EVIL_API_KEY", "evil-key"),
    ];
    let custom = |base_url: &str| {
        let config = json!({"model": {"provider": "custom", "default": "m", "base_url": base_url}});
        route(&config, &keys).unwrap()
    };
    for (base_url, key) in [
        ("https://openrouter.ai/api/v1", Some("or-key")),
        ("https://x.openai.azure.com/openai/v1", Some("oa-key")),
        ("https://api.foo.com/v1", Some("foo-key")),
        ("https://openrouter.ai.evil.com/v1", Some("evil-key")),
        ("https://other.example/v1", None),
        ("http://127.0.0.1:8000/v1", None),
        ("http://192.168.1.2/v1", None),
    ] {
        assert_eq!(key_of(&custom(base_url)), key, "{base_url}");
    }
    // A vendor that was given another address keeps its key to itself.
    let moved =
        json!({"model": {"provider": "openai", "default": "m", "base_url": "https://proxy.example/v1"}});
    assert!(matches!(route(&moved, &keys), Err(ResolveError::MissingKey { .. })));
    let moved = json!({"model": {"provider": "openai", "default": "m", "base_url": "http://127.0.0.1:9/v1"}});
    assert_eq!(key_of(&route(&moved, &keys).unwrap()), None);
}

#[test]
fn what_was_saved_for_another_provider_is_not_used() {
    let config = json!({"model": {"provider": "openrouter", "default": "m", "base_url": "https://far.example/v1", "api_key": "far-key", "api_mode": "anthropic_messages", "max_tokens": 5}});
    let keys = [("DEEPSEEK_API_KEY", "ds-key")];
    let deepseek =
        route_of(&config, &keys, RouteChoice { provider: Some("deepseek"), model: Some("x") }).unwrap();
    assert_eq!(
        (deepseek.base_url.as_str(), key_of(&deepseek)),
        ("https://api.deepseek.com/v1", Some("ds-key"))
    );
    assert_eq!((deepseek.api_mode, deepseek.max_tokens), (ApiMode::ChatCompletions, None));
    let custom = RouteChoice { provider: Some("custom"), model: Some("x") };
    assert!(matches!(route_of(&config, &keys, custom), Err(ResolveError::MissingAddress { .. })));
    let config = json!({"model": {"provider": "openrouter", "base_url": "http://localhost:8000/v1"}});
    assert_eq!(route_of(&config, &keys, custom).unwrap().base_url, "http://localhost:8000/v1");
}

#[test]
fn the_mode_is_explicit_then_the_providers_then_the_addresss() {
    let mode = |model: Value| {
        route(&json!({ "model": model }), &[("OPENAI_API_KEY", "k")]).map(|route| route.api_mode)
    };
    let not_built = |outcome: Result<ApiMode, ResolveError>| match outcome {
        Err(ResolveError::ModeNotBuilt { mode, .. }) => mode,
        other => panic!("{other:?}"),
    };
    assert_eq!(mode(json!({"provider": "openai", "default": "m"})), Ok(ApiMode::ChatCompletions));
    assert_eq!(not_built(mode(json!({"provider": "openai-api", "default": "m"}))), ApiMode::CodexResponses);
    assert_eq!(
        mode(json!({"provider": "openai-api", "default": "m", "api_mode": "openai_chat"})),
        Ok(ApiMode::ChatCompletions)
    );
    assert_eq!(
        not_built(mode(json!({"default": "m", "base_url": "https://api.openai.com/v1"}))),
        ApiMode::CodexResponses
    );
    assert_eq!(
        not_built(mode(json!({"default": "m", "base_url": "http://h/v1", "api_mode": "anthropic_messages"}))),
        ApiMode::AnthropicMessages
    );
    let stale = route(
        &json!({"model": {"default": "m", "base_url": "http://h/v1", "api_mode": "codex_responses"}}),
        &[],
    )
    .unwrap();
    assert_eq!(stale.api_mode, ApiMode::ChatCompletions);
    assert_eq!(stale.notes, ["model.api_mode: codex_responses is ignored, since h does not offer it"]);
}

#[test]
fn a_model_that_thinks_for_long_is_given_time() {
    let config = json!({"model": {"provider": "openai", "default": "o3"}});
    let route = route(&config, &[("OPENAI_API_KEY", "k")]).unwrap();
    assert_eq!(route.timeouts.stream_stale.for_tokens(0), Some(Duration::from_mins(10)));
    assert_eq!(route.timeouts.whole, Duration::from_mins(30));
    assert!(!route.is_local);
}

#[test]
fn a_route_is_never_printed_with_its_secrets() {
    let config = json!({"model": {"provider": "lab", "default": "m"}, "providers": {"lab": {"base_url": "http://h", "api_key": "hunter2hunter2", "extra_headers": {"x-key": "hunter3hunter3"}}}});
    let printed = format!("{:?}", route(&config, &[]).unwrap());
    assert!(!printed.contains("hunter"), "{printed}");
}
