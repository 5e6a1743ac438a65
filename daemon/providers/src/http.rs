//! The HTTP clients: built when first needed, shared by all calls.
//!
//! Two of them, because a server on this machine needs neither TLS roots nor a proxy, and loading
//! the roots would cost a local user memory and start-up time. HTTP/1.1 only: a cancelled call then
//! closes its own socket and harms no other.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use reqwest::redirect::{Attempt, Policy};
use reqwest::{Client, ClientBuilder, Url};

use crate::resolve::is_loopback;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
const IDLE_CONNECTIONS_PER_HOST: usize = 20;
const IDLE_TIMEOUT: Duration = Duration::from_secs(20);
const KEEPALIVE: Duration = Duration::from_secs(30);
const MAX_REDIRECTS: usize = 3;

/// The clients of one process.
#[derive(Debug, Default)]
pub(crate) struct Http {
    /// For `http://` on this machine.
    direct: OnceLock<Result<Client, String>>,
    general: OnceLock<Result<Client, String>>,
}

impl Http {
    /// The client for `url`; the error says why none could be built.
    pub(crate) fn client_for(&self, url: &Url) -> Result<&Client, String> {
        let cell = if url.scheme() == "http" && is_loopback(url) {
            self.direct.get_or_init(build_direct)
        } else {
            self.general.get_or_init(build_general)
        };
        cell.as_ref().map_err(Clone::clone)
    }
}

fn build_direct() -> Result<Client, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        // Trusts nobody: this client is only used for plain HTTP.
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    // Both families without asking a resolver, IPv4 first: that is where local servers listen.
    let localhost = [SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), SocketAddr::from((Ipv6Addr::LOCALHOST, 0))];
    common()
        .tls_backend_preconfigured(tls)
        .no_proxy()
        .resolve_to_addrs("localhost", &localhost)
        .build()
        .map_err(text)
}

fn build_general() -> Result<Client, String> {
    // The builder panics without one.
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        return Err("no TLS provider is installed in this process".to_owned());
    }
    common().build().map_err(text)
}

fn common() -> ClientBuilder {
    Client::builder()
        .user_agent(concat!("hermes/", env!("CARGO_PKG_VERSION")))
        .http1_only()
        .tcp_nodelay(true)
        .tcp_keepalive(KEEPALIVE)
        .connect_timeout(CONNECT_TIMEOUT)
        .pool_max_idle_per_host(IDLE_CONNECTIONS_PER_HOST)
        .pool_idle_timeout(IDLE_TIMEOUT)
        .referer(false)
        // Whether to try again is decided above, where the user can see it.
        .retry(reqwest::retry::never())
        .redirect(Policy::custom(
            |attempt| if may_follow(&attempt) { attempt.follow() } else { attempt.stop() },
        ))
}

/// Only to the same server, and only where the request is repeated as it was. A redirect to another
/// host would carry the conversation there, with or without the key.
fn may_follow(attempt: &Attempt<'_>) -> bool {
    let next = attempt.url();
    let is_repeated = matches!(attempt.status().as_u16(), 307 | 308);
    attempt.previous().len() <= MAX_REDIRECTS
        && is_repeated
        && attempt.previous().last().is_some_and(|from| {
            from.host() == next.host()
                && from.scheme() == next.scheme()
                && from.port_or_known_default() == next.port_or_known_default()
        })
}

#[expect(clippy::needless_pass_by_value, reason = "used as a function of `map_err`")]
fn text(error: reqwest::Error) -> String {
    error.to_string()
}
