//! Model servers on this machine, looked for on their usual ports (spec 30 §16).
//!
//! What is found is told to the user and never used by itself.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use reqwest::{Client, Url};
use serde_json::Value;

/// A model server that answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalServer {
    /// `Ollama`, `LM Studio`, `llama.cpp` or `vLLM`.
    pub name: &'static str,
    /// What `base_url` would be.
    pub base_url: String,
    /// Ids of the models that it serves, at most five.
    pub models: Vec<String>,
}

/// Usual ports, in the order in which servers are reported.
pub(crate) const USUAL_PORTS: [u16; 4] = [11434, 1234, 8080, 8000];

/// A closed port on this machine says so at once; this is for one that is filtered.
const CONNECT_LIMIT: Duration = Duration::from_millis(200);
/// Longest time for all questions to a server that took the connection.
const PROBE_LIMIT: Duration = Duration::from_secs(2);
const MAX_MODELS: usize = 5;

/// Asks the given ports of this machine, all at once.
pub(crate) async fn find(client: &Client, ports: [u16; 4]) -> Vec<LocalServer> {
    let [a, b, c, d] = ports.map(|port| tokio::time::timeout(PROBE_LIMIT, probe(client, port)));
    let (a, b, c, d) = tokio::join!(a, b, c, d);
    [a, b, c, d].into_iter().flatten().flatten().collect()
}

async fn probe(client: &Client, port: u16) -> Option<LocalServer> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    tokio::time::timeout(CONNECT_LIMIT, tokio::net::TcpStream::connect(address)).await.ok()?.ok()?;
    let root = format!("http://{address}");
    let name = identify(client, &root).await?;
    let base_url = format!("{root}/v1");
    let models =
        get(client, &format!("{base_url}/models")).await.map(|list| model_ids(&list)).unwrap_or_default();
    Some(LocalServer { name, base_url, models })
}

async fn identify(client: &Client, root: &str) -> Option<&'static str> {
    let has = |value: &Value, field: &str| value.get(field).is_some();
    if get(client, &format!("{root}/api/v1/models")).await.is_some() {
        return Some("LM Studio");
    }
    if get(client, &format!("{root}/api/tags")).await.is_some_and(|tags| has(&tags, "models")) {
        return Some("Ollama");
    }
    for path in ["/v1/props", "/props"] {
        if get(client, &format!("{root}{path}"))
            .await
            .is_some_and(|props| has(&props, "default_generation_settings"))
        {
            return Some("llama.cpp");
        }
    }
    get(client, &format!("{root}/version"))
        .await
        .is_some_and(|version| has(&version, "version"))
        .then_some("vLLM")
}

/// A JSON answer with status 200, else nothing.
async fn get(client: &Client, url: &str) -> Option<Value> {
    /// None of these answers is large; what is larger comes from something else.
    const MAX_BYTES: usize = 1 << 20;
    let url = Url::parse(url).ok()?;
    let mut response = client.get(url).send().await.ok()?;
    if response.status() != reqwest::StatusCode::OK {
        return None;
    }
    let mut body = Vec::new();
    while let Some(bytes) = response.chunk().await.ok()? {
        body.extend_from_slice(&bytes);
        if body.len() > MAX_BYTES {
            return None;
        }
    }
    serde_json::from_slice(&body).ok()
}

fn model_ids(list: &Value) -> Vec<String> {
    let data = list.get("data").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    data.iter().filter_map(|model| model.get("id")?.as_str()).take(MAX_MODELS).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;

    use pretty_assertions::assert_eq;

    use super::*;
    use crate::http::Http;

    /// Answers these paths with 200 and the JSON, all others with 404.
    fn serve(answers: &'static [(&'static str, &'static str)]) -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut head = Vec::new();
                let mut byte = [0];
                while !head.ends_with(b"\r\n\r\n") && matches!(stream.read(&mut byte), Ok(1)) {
                    head.extend(byte);
                }
                let head = String::from_utf8(head).unwrap();
                let path = head.split(' ').nth(1).unwrap_or_default();
                let (status, body) = answers
                    .iter()
                    .find(|(known, _)| *known == path)
                    .map_or(("404 No", "{}"), |(_, body)| ("200 OK", body));
                let length = body.len();
                let _ = write!(
                    stream,
                    "HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
                );
            }
        });
        port
    }

    #[tokio::test]
    async fn servers_are_told_apart_by_what_they_answer() {
        let ollama =
            serve(&[("/api/tags", r#"{"models":[]}"#), ("/v1/models", r#"{"data":[{"id":"llama3:8b"}]}"#)]);
        let studio = serve(&[("/api/v1/models", "{}")]);
        let llama = serve(&[("/props", r#"{"default_generation_settings":{}}"#)]);
        let other = serve(&[("/version", "\"no object\"")]);
        let http = Http::default();
        let client = http.client_for(&Url::parse("http://127.0.0.1").unwrap()).unwrap();
        let found = find(client, [ollama, studio, llama, other]).await;
        let told: Vec<(&str, String, Vec<String>)> =
            found.into_iter().map(|server| (server.name, server.base_url, server.models)).collect();
        let base = |port: u16| format!("http://127.0.0.1:{port}/v1");
        assert_eq!(
            told,
            [
                ("Ollama", base(ollama), vec!["llama3:8b".to_owned()]),
                ("LM Studio", base(studio), vec![]),
                ("llama.cpp", base(llama), vec![]),
            ]
        );
    }
}
