//! The gate before every call: the peer, the method's scope, and the wording of transport errors.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::future::Either;
use hermes_core::Scope;
use tonic::body::Body;
use tonic::{Code, Status};
use tower::{Layer, Service};
use tracing::Instrument as _;

use crate::clients::Clients;
use crate::error::shorten;
use crate::limit;
use crate::peer::{Access, Grant, admit_confined, refusal};
use crate::scopes::scope_of;

/// Puts a [`Gate`] before the services.
#[derive(Debug, Clone)]
pub(crate) struct GateLayer {
    pub(crate) clients: Clients,
}

impl<S> Layer<S> for GateLayer {
    type Service = Gate<S>;

    fn layer(&self, inner: S) -> Gate<S> {
        Gate { inner, clients: self.clients.clone() }
    }
}

/// Lets a call through when the connection's scope covers its method, with its [`Grant`] attached.
#[derive(Debug, Clone)]
pub(crate) struct Gate<S> {
    inner: S,
    clients: Clients,
}

type Answer = Result<http::Response<Body>, Infallible>;

impl<S> Service<http::Request<Body>> for Gate<S>
where
    S: Service<http::Request<Body>, Response = http::Response<Body>, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Either<Ready<Answer>, Pin<Box<dyn Future<Output = Answer> + Send>>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: http::Request<Body>) -> Self::Future {
        self.clients.touch();
        let path = request.uri().path();
        let span = tracing::debug_span!("rpc", method = path);
        match admit(path, request.extensions().get()) {
            Ok(grant) => {
                request.extensions_mut().insert(grant);
                let answer = self.inner.call(request);
                Either::Right(Box::pin(async move { answer.await.map(reworded) }.instrument(span)))
            }
            Err(status) => {
                tracing::warn!(method = path, code = ?status.code(), "call refused");
                Either::Left(ready(Ok(status.into_http())))
            }
        }
    }
}

/// Holds a call against the scope table.
fn admit(path: &str, access: Option<&Access>) -> Result<Grant, Status> {
    let grant = match access {
        Some(Access::Granted(grant)) => grant,
        Some(Access::Refused(reason)) => return Err(Status::permission_denied(reason)),
        // Only a transport that forgot to say who its peer is can come here.
        None => return Err(Status::permission_denied("this connection has no known peer")),
    };
    let Some(needed) = scope_of(path) else {
        return Err(Status::unimplemented(format!(
            "this daemon (version {}) has no method {}; update the daemon if the client is newer",
            env!("CARGO_PKG_VERSION"),
            shorten(path, 200)
        )));
    };
    admit_confined(grant, path)?;
    require(grant, needed, path)?;
    Ok(grant.clone())
}

/// Refuses what needs a higher scope than the connection has.
pub(crate) fn require(grant: &Grant, needed: Scope, what: &str) -> Result<(), Status> {
    if grant.scope >= needed {
        return Ok(());
    }
    if grant.confined.is_some() {
        return Err(refusal(what));
    }
    Err(Status::permission_denied(format!(
        "{what} needs scope `{}`, and this connection has `{}`",
        needed.as_str(),
        grant.scope.as_str()
    )))
}

/// An answer that is only an error, in our words.
fn reworded(answer: http::Response<Body>) -> http::Response<Body> {
    if !answer.headers().contains_key(Status::GRPC_STATUS) {
        return answer;
    }
    let status = Status::from_header_map(answer.headers());
    match status.filter(|status| status.code() == Code::OutOfRange).as_ref().and_then(limit::explain) {
        Some(status) => status.into_http(),
        None => answer,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn granted(scope: Scope) -> Access {
        Access::Granted(Grant { scope, ..Grant::owner() })
    }

    #[test]
    fn a_call_needs_the_scope_of_its_method() {
        let path = "/hermes.v1.Turns/Submit";
        let refused = admit(path, Some(&granted(Scope::Read))).unwrap_err();
        assert_eq!(refused.code(), Code::PermissionDenied);
        assert!(refused.message().contains("needs scope `chat`"), "{refused}");
        assert!(admit(path, Some(&granted(Scope::Chat))).is_ok());
        assert!(admit(path, Some(&granted(Scope::Admin))).is_ok());
    }

    #[test]
    fn an_unlisted_method_is_refused_whatever_the_scope() {
        let refused = admit("/hermes.v1.Sessions/Explode", Some(&granted(Scope::Admin))).unwrap_err();
        assert_eq!(refused.code(), Code::Unimplemented);
        assert!(refused.message().contains("update the daemon"), "{refused}");
    }

    #[test]
    fn a_refused_peer_gets_its_reason_on_every_call() {
        let access = Access::Refused("not you".into());
        let refused = admit("/hermes.v1.Control/Hello", Some(&access)).unwrap_err();
        assert_eq!((refused.code(), refused.message()), (Code::PermissionDenied, "not you"));
    }

    #[test]
    fn a_connection_without_a_peer_is_refused() {
        assert!(admit("/hermes.v1.Control/Hello", None).is_err());
    }
}
