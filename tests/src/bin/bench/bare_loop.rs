//! What nobody can be faster than: one connection that sends the recorded requests one after the
//! other and reads each answer to its end.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::Request;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

type Failure = Box<dyn std::error::Error>;

/// Seconds for all requests.
pub(crate) async fn run(base_url: &str, bodies: &[Arc<str>]) -> Result<f64, Failure> {
    let authority = base_url.trim_start_matches("http://").trim_end_matches("/v1").to_owned();
    let stream = TcpStream::connect(&authority).await?;
    stream.set_nodelay(true)?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let requests = async {
        let start = Instant::now();
        for body in bodies {
            let request = Request::post(format!("{base_url}/chat/completions"))
                .header("host", &authority)
                .header("content-type", "application/json")
                .body(Full::new(Bytes::copy_from_slice(body.as_bytes())))?;
            let response = sender.send_request(request).await?;
            response.into_body().collect().await?;
        }
        Ok(start.elapsed().as_secs_f64())
    };
    // The connection is driven beside the requests and ends with them.
    tokio::select! {
        seconds = requests => seconds,
        ended = connection => Err(format!("the connection ended early: {ended:?}").into()),
    }
}
