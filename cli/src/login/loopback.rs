//! The address on loopback that the browser returns to: takes the one answer with the state of this sign-in.

use std::net::Ipv4Addr;
use std::time::Duration;

use freehold_sign_in::Attempt;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use url::Url;

use crate::error::{Error, Result, ResultExt as _};
use crate::output::note;

/// The ports of the addresses that a tenant's client permits.
const PORTS: [u16; 3] = [8976, 8977, 8978];
const PATH: &str = "/callback";
/// The time limit of a connection to send its request.
const REQUEST: Duration = Duration::from_secs(10);
/// The maximum size of the head of a request, in bytes.
const LONGEST: usize = 32 * 1024;

pub(super) struct Loopback {
    listener: TcpListener,
    port: u16,
}

impl Loopback {
    /// Listens at the first port that is free.
    pub(super) async fn open() -> Result<Self> {
        for port in PORTS {
            if let Ok(listener) = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await {
                return Ok(Self { listener, port });
            }
        }
        let [first, second, third] = PORTS;
        Err(Error::failed(format!("the ports {first}, {second} and {third} of this machine are all in use"))
            .or("end one of the programs that use them, or run `freehold login --no-browser`"))
    }

    /// Returns the address that the browser returns to.
    pub(super) fn redirect(&self) -> Result<Url> {
        redirect(self.port)
    }

    /// Waits for the answer to `attempt`. Refuses each other request.
    pub(super) async fn callback(&self, attempt: &Attempt) -> Result<Callback> {
        // Browsers also open connections on which they send nothing, so each connection is read by itself.
        let (sender, mut requests) = mpsc::channel(8);
        loop {
            tokio::select! {
                accepted = self.listener.accept() => {
                    let (stream, _) = accepted.doing("accept a connection of the browser")?;
                    let sender = sender.clone();
                    tokio::spawn(async move {
                        if let Some(request) = request(stream).await {
                            let _ = sender.send(request).await;
                        }
                    });
                }
                Some(callback) = requests.recv() => {
                    if let Some(callback) = callback.of(attempt).await {
                        return Ok(callback);
                    }
                }
            }
        }
    }
}

/// Returns the address at `port` that the browser returns to.
fn redirect(port: u16) -> Result<Url> {
    // INVARIANT: this is an address.
    format!("http://localhost:{port}{PATH}").parse().map_err(|e| Error::internal(format!("cannot name loopback: {e}")))
}

/// Returns the address that the browser returns to when nothing listens there.
pub(super) fn redirect_without_listener() -> Result<Url> {
    let [first, ..] = PORTS;
    redirect(first)
}

/// A request of the browser that waits for its answer.
#[derive(Debug)]
pub(super) struct Callback {
    stream: TcpStream,
    path: String,
    query: String,
}

impl Callback {
    /// Returns the query, which has the code.
    pub(super) fn query(&self) -> &str {
        &self.query
    }

    /// Returns this request if it is the answer to `attempt`, or else refuses it.
    async fn of(self, attempt: &Attempt) -> Option<Self> {
        if self.path != PATH {
            self.send("404 Not Found", "There is nothing here.").await;
            return None;
        }
        if !attempt.is_answered_by(&self.query) {
            note("a browser returned from another sign-in, and its answer was refused; still waiting for yours");
            self.send("400 Bad Request", "This answer belongs to another sign-in. Begin again in the terminal.").await;
            return None;
        }
        Some(self)
    }

    /// Shows in the browser how the sign-in ended.
    pub(super) async fn answer(self, error: Option<&Error>) {
        match error {
            None => self.send("200 OK", "You are signed in. You can close this page.").await,
            Some(_) => self.send("400 Bad Request", "You are not signed in. The terminal shows the reason.").await,
        }
    }

    /// Sends a page. A browser that has gone does not change how the sign-in ended.
    async fn send(mut self, status: &str, sentence: &str) {
        let page = format!(
            "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Freehold</title><p>{sentence}</p></html>\n"
        );
        let answer = format!(
            "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\n\
             Cache-Control: no-store\r\nContent-Security-Policy: default-src 'none'\r\nReferrer-Policy: no-referrer\r\n\
             X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n{page}",
            page.len()
        );
        let _ = self.stream.write_all(answer.as_bytes()).await;
        let _ = self.stream.shutdown().await;
    }
}

/// Reads the head of a request. Returns `None` for a connection that sends no GET request in time.
async fn request(mut stream: TcpStream) -> Option<Callback> {
    let head = tokio::time::timeout(REQUEST, head(&mut stream)).await.ok()??;
    let (path, query) = target(&head)?;
    Some(Callback { stream, path, query })
}

async fn head(stream: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::<u8>::new();
    while !bytes.windows(4).any(|end| end == b"\r\n\r\n") {
        let count = stream.read_buf(&mut bytes).await.ok()?;
        if count == 0 || bytes.len() > LONGEST {
            return None;
        }
    }
    String::from_utf8(bytes).ok()
}

/// Returns the path and the query of a GET request.
fn target(head: &str) -> Option<(String, String)> {
    let line = head.lines().next()?;
    let target = line.strip_prefix("GET ")?.strip_suffix(" HTTP/1.1")?;
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    Some((path.to_owned(), query.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_get_request_has_a_path_and_a_query() {
        let of = |head: &str| target(head).map(|(path, query)| format!("{path} {query}"));

        assert_eq!(
            of("GET /callback?code=a&state=b HTTP/1.1\r\nhost: x\r\n").as_deref(),
            Some("/callback code=a&state=b")
        );
        assert_eq!(of("GET / HTTP/1.1\r\n").as_deref(), Some("/ "));
        for other in ["", "POST /callback?code=a HTTP/1.1\r\n", "GET /callback", "text"] {
            assert_eq!(of(other), None, "{other}");
        }
    }
}
