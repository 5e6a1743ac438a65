//! `base_url`: what is accepted, what is corrected, and what kind of host it names.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use url::{Host, Url};

use crate::mode::ApiMode;
use crate::resolve::ResolveError;

/// A checked `base_url`.
#[derive(Debug, Clone)]
pub(crate) struct Address {
    url: Url,
    /// What was cut off its end, when something was.
    pub(crate) stripped: Option<&'static str>,
}

impl Address {
    /// Checks `value`, which stands under `key`.
    pub(crate) fn parse(key: &str, value: &str) -> Result<Self, ResolveError> {
        let bad = |reason: &str| ResolveError::BadAddress {
            key: key.to_owned(),
            // What stands before an `@` may be a password.
            value: value.rsplit('@').next().unwrap_or_default().to_owned(),
            reason: reason.to_owned(),
        };
        let mut url = Url::parse(value.trim()).map_err(|error| match error {
            url::ParseError::RelativeUrlWithoutBase => bad("it has no `http://` or `https://` in front"),
            other => bad(&other.to_string()),
        })?;
        if !matches!(url.scheme(), "http" | "https") {
            // `localhost:8000` parses as scheme `localhost`.
            return Err(bad("it must begin with `http://` or `https://`"));
        }
        if url.host_str().is_none_or(str::is_empty) {
            return Err(bad("it names no host"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(bad("a user name or password does not belong here; use `api_key` or `.env`"));
        }
        url.set_fragment(None);
        let mut path = url.path().trim_end_matches('/').to_owned();
        let mut stripped = None;
        for tail in ["/chat/completions", "/responses"] {
            if let Some(head) = path.strip_suffix(tail) {
                path = head.trim_end_matches('/').to_owned();
                stripped = Some(tail);
            }
        }
        url.set_path(&path);
        Ok(Self { url, stripped })
    }

    /// The address as text, without a slash at its end.
    pub(crate) fn as_text(&self) -> String {
        let text = self.url.as_str();
        // A bare host always prints with the slash of its empty path.
        if self.url.path() == "/" && self.url.query().is_none() {
            text.trim_end_matches('/').to_owned()
        } else {
            text.to_owned()
        }
    }

    pub(crate) fn host(&self) -> &str {
        self.url.host_str().unwrap_or_default()
    }

    /// Whether the host is one of `domains` or below one of them.
    pub(crate) fn is_on(&self, domains: &[&str]) -> bool {
        let host = self.host();
        domains.iter().any(|domain| {
            host == *domain || host.strip_suffix(domain).is_some_and(|head| head.ends_with('.'))
        })
    }

    pub(crate) fn is_loopback(&self) -> bool {
        is_loopback(&self.url)
    }

    /// Whether the server stands on this machine or in the private network around it.
    pub(crate) fn is_local(&self) -> bool {
        match self.url.host() {
            Some(Host::Ipv4(ip)) => is_local_v4(ip),
            Some(Host::Ipv6(ip)) => is_local_v6(ip),
            Some(Host::Domain(name)) => {
                const SUFFIXES: [&str; 5] =
                    [".local", ".localhost", ".docker.internal", ".containers.internal", ".lima.internal"];
                !name.contains('.') || SUFFIXES.iter().any(|suffix| name.ends_with(suffix))
            }
            None => false,
        }
    }

    /// What the address says about the wire (spec 30 §2, rule 3).
    pub(crate) fn mode(&self) -> Option<ApiMode> {
        let path = self.url.path();
        if self.is_on(&["api.anthropic.com"])
            || path.ends_with("/anthropic")
            || path.ends_with("/anthropic/v1")
            || (self.is_on(&["api.kimi.com"]) && path.contains("/coding"))
        {
            return Some(ApiMode::AnthropicMessages);
        }
        self.speaks_responses().then_some(ApiMode::CodexResponses)
    }

    /// Whether the host is one that offers the Responses wire.
    pub(crate) fn speaks_responses(&self) -> bool {
        self.is_on(&["api.openai.com", "api.x.ai"])
    }

    /// The variable that may hold a key for this host: `api.foo.com` → `FOO_API_KEY`. None for
    /// addresses and names that nobody has registered.
    pub(crate) fn key_variable(&self) -> Option<String> {
        let Some(Host::Domain(name)) = self.url.host() else { return None };
        if self.is_local() {
            return None;
        }
        let mut labels = name.trim_end_matches('.').rsplit('.');
        let (top, second) = (labels.next()?, labels.next()?);
        let is_shared_suffix =
            top.len() == 2 && matches!(second, "co" | "com" | "org" | "net" | "gov" | "ac" | "edu");
        let label = if is_shared_suffix { labels.next()? } else { second };
        let label: String = label
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' })
            .collect();
        Some(format!("{label}_API_KEY"))
    }
}

/// The endpoint under a route's `base_url`: path joined, query kept.
pub(crate) fn endpoint(base_url: &str, path: &str) -> Result<Url, url::ParseError> {
    let mut url = Url::parse(base_url)?;
    let joined = format!("{}{path}", url.path().trim_end_matches('/'));
    url.set_path(&joined);
    Ok(url)
}

/// Whether the address is this machine's own.
pub(crate) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => {
            ip.is_loopback() || ip.to_ipv4_mapped().is_some_and(|mapped| mapped.is_loopback())
        }
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        None => false,
    }
}

fn is_local_v4(ip: Ipv4Addr) -> bool {
    let [a, b, ..] = ip.octets();
    let is_carrier_grade = a == 100 && (64..128).contains(&b);
    ip.is_loopback() || ip.is_private() || ip.is_link_local() || ip.is_unspecified() || is_carrier_grade
}

fn is_local_v6(ip: Ipv6Addr) -> bool {
    match ip.to_canonical() {
        IpAddr::V4(mapped) => is_local_v4(mapped),
        IpAddr::V6(ip) => {
            ip.is_loopback() || ip.is_unspecified() || ip.is_unique_local() || ip.is_unicast_link_local()
        }
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    fn address(value: &str) -> Address {
        Address::parse("model.base_url", value).unwrap()
    }

    #[test]
    fn an_endpoint_at_the_end_is_cut_off_and_noted() {
        let cases = [
            ("http://127.0.0.1:8000/v1", "http://127.0.0.1:8000/v1", None),
            ("http://127.0.0.1:8000/v1/", "http://127.0.0.1:8000/v1", None),
            ("http://127.0.0.1:8000", "http://127.0.0.1:8000", None),
            ("https://h/v1/chat/completions", "https://h/v1", Some("/chat/completions")),
            (
                "https://h/v1/chat/completions/?api-version=1",
                "https://h/v1?api-version=1",
                Some("/chat/completions"),
            ),
            ("https://h/v1/responses", "https://h/v1", Some("/responses")),
            ("http://h/chat/completions", "http://h", Some("/chat/completions")),
        ];
        for (value, text, stripped) in cases {
            let parsed = address(value);
            assert_eq!((parsed.as_text().as_str(), parsed.stripped), (text, stripped), "{value}");
        }
        assert_eq!(
            endpoint("https://h/v1?api-version=1", "/chat/completions").unwrap().as_str(),
            "https://h/v1/chat/completions?api-version=1"
        );
        assert_eq!(endpoint("http://h", "/x").unwrap().as_str(), "http://h/x");
    }

    #[test]
    fn what_is_no_address_is_refused_without_repeating_a_password() {
        for value in ["", "localhost:8000", "127.0.0.1:8000/v1", "ftp://h/v1", "http://", "not a url"] {
            let error = Address::parse("model.base_url", value).unwrap_err();
            assert!(error.to_string().starts_with("model.base_url: "), "{error}");
        }
        let error = Address::parse("model.base_url", "https://me:hunter2@h/v1").unwrap_err();
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }

    #[test]
    fn local_hosts_are_told_from_the_open_network() {
        for local in [
            "http://localhost",
            "http://127.0.0.1",
            "http://[::1]",
            "http://10.1.2.3",
            "http://192.168.0.9",
            "http://172.16.0.1",
            "http://100.64.0.1",
            "http://169.254.1.1",
            "http://gpu-box",
            "http://nas.local",
            "http://host.docker.internal",
            "http://[fe80::1]",
            "http://[fd00::1]",
            "http://0.0.0.0",
        ] {
            assert!(address(local).is_local(), "{local}");
        }
        for open in ["https://api.openai.com", "http://8.8.8.8", "http://100.128.0.1", "http://[2001:db8::1]"]
        {
            assert!(!address(open).is_local(), "{open}");
        }
    }

    #[test]
    fn hosts_are_compared_by_label_and_not_by_substring() {
        assert_eq!(address("https://api.openai.com/v1").mode(), Some(ApiMode::CodexResponses));
        assert_eq!(address("https://api.openai.com.evil.example/v1").mode(), None);
        assert_eq!(address("https://notapi.openai.com.example").mode(), None);
        assert_eq!(address("https://h/anthropic").mode(), Some(ApiMode::AnthropicMessages));
        assert_eq!(address("https://api.kimi.com/coding/v1").mode(), Some(ApiMode::AnthropicMessages));
        assert!(!address("https://evilopenai.com").is_on(&["openai.com"]));
        assert!(address("https://eu.api.openai.com").is_on(&["openai.com"]));
    }

    #[test]
    fn the_key_variable_of_a_host_is_its_registered_name() {
        let variable = |value: &str| address(value).key_variable();
        assert_eq!(variable("https://api.foo.com/v1").as_deref(), Some("FOO_API_KEY"));
        assert_eq!(variable("https://api.my-lab.co.uk/v1").as_deref(), Some("MY_LAB_API_KEY"));
        for none in ["http://127.0.0.1", "http://localhost", "http://8.8.8.8", "http://box.local"] {
            assert_eq!(variable(none), None, "{none}");
        }
    }
}
