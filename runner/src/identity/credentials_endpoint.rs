//! A loopback address that gives a job its mode's credentials, always fresh (ECS container credentials format).
//!
//! A session of a chained role lasts an hour at most, and a job longer: credentials in the environment would be frozen.
//! Every AWS SDK and Terraform asks such an endpoint again before the credentials end. Other programs of the machine can
//! reach the address too, so it answers only to whoever has the job's random token.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use aws_credential_types::Credentials;
use aws_credential_types::provider::{ProvideCredentials as _, SharedCredentialsProvider};
use aws_smithy_types::DateTime;
use aws_smithy_types::date_time::Format;
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};
use zeroize::Zeroizing;

const PATH: &str = "/credentials";
/// The largest request that is read, in bytes.
const MAX_REQUEST: usize = 16 * 1024;
/// The longest that one request may take.
const REQUEST_TIME: Duration = Duration::from_secs(30);

/// The endpoint of one job; it is gone when this is dropped.
#[derive(Debug)]
pub struct CredentialsEndpoint {
    address: SocketAddr,
    token: Arc<str>,
    server: JoinHandle<()>,
}

impl CredentialsEndpoint {
    /// Starts to serve what `credentials` gives.
    ///
    /// # Errors
    /// When no loopback port can be had, or the machine has no randomness.
    pub async fn start(credentials: SharedCredentialsProvider) -> io::Result<Self> {
        let mut random = [0; 32];
        getrandom::fill(&mut random).map_err(|error| io::Error::other(error.to_string()))?;
        let token: Arc<str> = freehold_protocol::digest::hex(&random).into();
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let server = tokio::spawn(serve(listener, Arc::clone(&token), credentials));
        Ok(Self { address, token, server })
    }

    /// Returns what a program needs in its environment.
    pub fn environment(&self) -> BTreeMap<String, String> {
        BTreeMap::from([
            ("AWS_CONTAINER_CREDENTIALS_FULL_URI".to_owned(), format!("http://{}{PATH}", self.address)),
            ("AWS_CONTAINER_AUTHORIZATION_TOKEN".to_owned(), self.token.to_string()),
        ])
    }

    /// Returns the token, for the log to take out.
    pub fn token(&self) -> &str {
        &self.token
    }
}

impl Drop for CredentialsEndpoint {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn serve(listener: TcpListener, token: Arc<str>, credentials: SharedCredentialsProvider) {
    // Its requests end with it.
    let mut requests = JoinSet::new();
    loop {
        while requests.try_join_next().is_some() {}
        match listener.accept().await {
            Ok((stream, _)) => {
                let (token, credentials) = (Arc::clone(&token), credentials.clone());
                requests.spawn(async move {
                    // The caller went away or was slow: it asks again if it still wants credentials.
                    let _ = tokio::time::timeout(REQUEST_TIME, answer(stream, &token, &credentials)).await;
                });
            }
            // Out of file descriptors, say.
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

async fn answer(mut stream: TcpStream, token: &str, credentials: &SharedCredentialsProvider) -> io::Result<()> {
    let head = read_head(&mut stream).await?;
    let (status, body) = match check(&head, token) {
        Err((status, message)) => (status, problem("Refused", message)),
        Ok(()) => match credentials.provide_credentials().await {
            Ok(credentials) => ("200 OK", document(&credentials)),
            Err(error) => {
                tracing::warn!("No credentials for a job: {}", crate::aws::explain(&error));
                ("503 Service Unavailable", problem("NoCredentials", "the mode's role gives no credentials now"))
            }
        },
    };
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    stream.shutdown().await
}

async fn read_head(stream: &mut TcpStream) -> io::Result<String> {
    let mut head = Vec::new();
    let mut chunk = [0; 2048];
    while !head.windows(4).any(|window| window == b"\r\n\r\n") {
        let read = stream.read(&mut chunk).await?;
        if read == 0 || head.len() + read > MAX_REQUEST {
            return Err(io::ErrorKind::InvalidData.into());
        }
        head.extend_from_slice(chunk.get(..read).unwrap_or_default());
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}

fn check(head: &str, token: &str) -> Result<(), (&'static str, &'static str)> {
    let mut lines = head.split("\r\n");
    let mut words = lines.next().unwrap_or_default().split(' ');
    if (words.next(), words.next()) != (Some("GET"), Some(PATH)) {
        return Err(("404 Not Found", "only `GET /credentials` is served here"));
    }
    let given = lines
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("authorization"))
        .map_or("", |(_, value)| value.trim());
    // Digests are compared, so that the time says nothing about the token.
    if Sha256::digest(given) == Sha256::digest(token) {
        return Ok(());
    }
    Err(("401 Unauthorized", "the token is missing or wrong"))
}

/// Amazon ECS developer guide, "Task IAM role": the document that SDKs read.
fn document(credentials: &Credentials) -> Zeroizing<String> {
    #[derive(Serialize)]
    #[serde(rename_all = "PascalCase")]
    struct Document<'a> {
        access_key_id: &'a str,
        secret_access_key: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        token: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        expiration: Option<String>,
    }
    let document = Document {
        access_key_id: credentials.access_key_id(),
        secret_access_key: credentials.secret_access_key(),
        token: credentials.session_token(),
        expiration: credentials.expiry().and_then(|at| DateTime::from(at).fmt(Format::DateTime).ok()),
    };
    Zeroizing::new(serde_json::to_string(&document).unwrap_or_default())
}

fn problem(code: &str, message: &str) -> Zeroizing<String> {
    Zeroizing::new(serde_json::json!({ "code": code, "message": message }).to_string())
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    async fn get(endpoint: &CredentialsEndpoint, token: &str) -> (u16, serde_json::Value) {
        let url = endpoint.environment().remove("AWS_CONTAINER_CREDENTIALS_FULL_URI").expect("address");
        let http = freehold_oci::client().expect("client");
        let answer = http.get(url).header("authorization", token).send().await.expect("answer");
        (answer.status().as_u16(), answer.json().await.expect("json"))
    }

    fn some() -> SharedCredentialsProvider {
        let expiry = UNIX_EPOCH + Duration::from_secs(1_800_000_000);
        SharedCredentialsProvider::new(Credentials::new("AKID", "SECRET", Some("SESSION".into()), Some(expiry), "test"))
    }

    #[tokio::test]
    async fn the_holder_of_the_token_gets_the_credentials() {
        let endpoint = CredentialsEndpoint::start(some()).await.expect("endpoint");

        let (status, document) = get(&endpoint, endpoint.token()).await;

        assert_eq!(status, 200);
        assert_eq!(
            document,
            serde_json::json!({ "AccessKeyId": "AKID", "SecretAccessKey": "SECRET", "Token": "SESSION",
                "Expiration": "2027-01-15T08:00:00Z" })
        );
    }

    #[tokio::test]
    async fn nobody_else_gets_them() {
        let endpoint = CredentialsEndpoint::start(some()).await.expect("endpoint");

        let (status, document) = get(&endpoint, "guess").await;

        assert_eq!(status, 401);
        assert!(!document.to_string().contains("SECRET"));
    }
}
