//! A small HTTP server whose answers a test decides, and the search for a credential in all places that others could read.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

use aws_sdk_secretsmanager::Client;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use freehold_protocol::source::{SourceAddress, SourceCredential};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::cloud::Cloud;

/// A request, with the names of its headers in lower case.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Vec<u8>,
}

impl Asked {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }
}

/// An answer: a status, headers and a body.
pub(crate) struct Reply(pub(crate) u16, pub(crate) Vec<(String, String)>, pub(crate) Vec<u8>);

impl Reply {
    pub(crate) fn status(status: u16, text: &str) -> Self {
        Self(status, vec![("content-type".into(), "text/plain".into())], text.as_bytes().to_vec())
    }
}

type Answer = Arc<dyn Fn(&Asked) -> Reply + Send + Sync>;

/// A server on loopback.
#[derive(Clone)]
pub(crate) struct StandIn {
    pub(crate) address: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl StandIn {
    pub(crate) async fn start(
        tls: Option<TlsAcceptor>,
        answer: impl Fn(&Asked) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Self { address: listener.local_addr().unwrap().to_string(), asked: Arc::default() };
        let (served, answer): (Self, Answer) = (server.clone(), Arc::new(answer));
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (served, answer, tls) = (served.clone(), Arc::clone(&answer), tls.clone());
                tokio::spawn(async move {
                    match tls {
                        Some(tls) => served.converse(tls.accept(stream).await?, answer).await,
                        None => served.converse(stream, answer).await,
                    }
                });
            }
        });
        server
    }

    /// Returns all requests until now.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    async fn converse(&self, mut stream: impl AsyncRead + AsyncWrite + Unpin, answer: Answer) -> std::io::Result<()> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await?);
        }
        let mut asked = parsed(&String::from_utf8_lossy(&head));
        let length = asked.header("content-length").parse().unwrap_or(0);
        asked.body = vec![0; length];
        stream.read_exact(&mut asked.body).await?;
        self.asked.lock().unwrap().push(asked.clone());
        let Reply(status, headers, body) = tokio::task::spawn_blocking(move || answer(&asked)).await.unwrap();
        let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let length = body.len();
        let head = format!("HTTP/1.1 {status} x\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).await?;
        stream.write_all(&body).await?;
        stream.shutdown().await
    }
}

fn parsed(head: &str) -> Asked {
    let mut lines = head.lines();
    let mut words = lines.next().unwrap_or_default().split(' ').map(str::to_owned);
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let headers = lines.filter_map(|line| line.split_once(": "));
    let headers = headers.map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned())).collect();
    Asked { method, path: path.to_owned(), query: query.to_owned(), headers, body: Vec::new() }
}

/// Returns the header with which a user and a password log in (RFC 7617).
pub(crate) fn basic(user: &str, password: &str) -> String {
    format!("Basic {}", STANDARD.encode(format!("{user}:{password}")))
}

/// Stores a credential as `freehold tenant source add` does.
pub(crate) async fn store(cloud: &Cloud, address: &str, credential: &SourceCredential) {
    let name = address.parse::<SourceAddress>().unwrap().secret_name(&"acme".parse().unwrap());
    let (client, text) = (Client::new(&cloud.tenant), serde_json::to_string(credential).unwrap());
    if client.create_secret().name(&name).secret_string(&text).send().await.is_err() {
        client.put_secret_value().secret_id(&name).secret_string(text).send().await.unwrap();
    }
}

/// Returns the places that contain one of `canaries`: command lines and environments of all processes, and the files below
/// `directory`.
pub(crate) fn places(canaries: &[&str], directory: &Path) -> Vec<String> {
    let has = |bytes: &[u8]| {
        canaries.iter().any(|canary| bytes.windows(canary.len()).any(|window| window == canary.as_bytes()))
    };
    let processes = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    let of_processes = processes.flat_map(|process| [process.join("cmdline"), process.join("environ")]);
    let found = of_processes.chain(files(directory)).filter(|file| fs::read(file).is_ok_and(|bytes| has(&bytes)));
    found.map(|file| file.display().to_string()).collect()
}

fn files(directory: &Path) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .flat_map(|entry| match entry.file_type() {
            Ok(kind) if kind.is_dir() => files(&entry.path()),
            Ok(kind) if kind.is_file() => vec![entry.path()],
            Ok(_) | Err(_) => Vec::new(),
        })
        .collect()
}
