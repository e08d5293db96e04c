//! Fetches the bytes of an item into a file, and returns their SHA-256.

use std::fs::File;
use std::io::{Read as _, Seek as _, Write as _};
use std::path::Path;
use std::time::Duration;

use freehold_protocol::Digest;
use reqwest::StatusCode;
use reqwest::redirect::Policy;
use sha2::{Digest as _, Sha256};

use super::list::{Item, Origin};
use crate::api::{Failed, http_builder, with_retries};
use crate::error::{Error, Result, ResultExt, chain};

/// The maximum size of a fetched file, in bytes.
const MAX_BYTES: u64 = 1 << 30;
/// The maximum time of one try to fetch a file.
const LONGEST: Duration = Duration::from_secs(900);
/// The maximum number of tries to fetch one file.
const TRIES: u32 = 3;
const REDIRECTS: usize = 5;

/// Fetches items.
pub(super) struct Fetcher {
    http: reqwest::Client,
}

/// The bytes of an item, in a file without a name.
pub(super) struct Fetched {
    pub(super) file: File,
    pub(super) digest: Digest,
    pub(super) size: u64,
}

impl Fetcher {
    pub(super) fn new() -> Result<Self> {
        let redirects = Policy::custom(|attempt| {
            if attempt.url().scheme() != "https" {
                attempt.error("it redirects to an address without https")
            } else if attempt.previous().len() > REDIRECTS {
                attempt.error("it redirects too often")
            } else {
                attempt.follow()
            }
        });
        let http = http_builder().https_only(true).redirect(redirects).timeout(LONGEST).build();
        let http = http.map_err(|e| Error::internal(format!("cannot make an HTTP client: {}", chain(&e))))?;
        Ok(Self { http })
    }

    /// Returns the bytes of `item` without comparing them with its checksum. `dir` is the directory of `tools.toml`,
    /// which contains the file of an item without an address.
    pub(super) async fn any(&self, dir: &Path, item: &Item) -> Result<Fetched> {
        match item.origin()? {
            Origin::File(file) => read_file(&dir.join(file)),
            Origin::Url(url) => self.download(&url).await,
        }
    }

    /// Fetches the file at `url`. Each try begins at the first byte.
    async fn download(&self, url: &str) -> Result<Fetched> {
        with_retries(TRIES, async || self.once(url).await).await
    }

    async fn once(&self, url: &str) -> Result<Fetched, Failed> {
        let shown = without_secrets(url);
        let lost = |e: reqwest::Error| {
            let is_wrong = e.is_redirect() || e.is_builder();
            // The next try of a file that takes too long would take too long as well.
            let is_slow = e.is_timeout() && !e.is_connect();
            let why = chain(&e.without_url());
            let message = format!("cannot fetch `{shown}`: {why}; check the address and the network");
            match (is_wrong, is_slow) {
                (true, _) => Failed::ForGood(Error::invalid(message)),
                (false, true) => Failed::ForGood(Error::transient(message)),
                (false, false) => Failed::ForNow(Error::transient(message)),
            }
        };
        let mut answer = self.http.get(url).send().await.map_err(lost)?;
        if !answer.status().is_success() {
            return Err(refused(answer.status(), &shown));
        }
        let mut taken = Taken::new().map_err(Failed::ForGood)?;
        while let Some(chunk) = answer.chunk().await.map_err(lost)? {
            taken.add(&chunk).map_err(Failed::ForGood)?;
        }
        taken.finish().map_err(Failed::ForGood)
    }

    /// Returns the bytes of `item` after checking that they have its checksum.
    pub(super) async fn fetch_verified(&self, dir: &Path, item: &Item) -> Result<Fetched> {
        let wanted = item.digest()?;
        let fetched = self.any(dir, item).await?;
        if fetched.digest == wanted {
            return Ok(fetched);
        }
        Err(Error::invalid(format!(
            "its bytes have the SHA-256 {}, but the list has {}; do not use them before you know the reason",
            fetched.digest.hex(),
            wanted.hex()
        )))
    }
}

/// Returns the bytes of the file at `path`.
fn read_file(path: &Path) -> Result<Fetched> {
    let reading = || format!("read `{}`", path.display());
    let mut from = File::open(path).doing(reading()).map_err(|error| {
        error.or("make the file with the command in the comment above the item in `tools.toml`, or remove the item")
    })?;
    let (mut taken, mut chunk) = (Taken::new()?, vec![0; 1 << 16]);
    while let read @ 1.. = from.read(&mut chunk).doing(reading())? {
        taken.add(chunk.get(..read).unwrap_or_default())?;
    }
    taken.finish()
}

/// Returns the address without the parts that may be secret: the user, the password and the query.
fn without_secrets(url: &str) -> String {
    let Ok(mut url) = reqwest::Url::parse(url) else { return "the address".to_owned() };
    let _ = (url.set_username(""), url.set_password(None));
    url.set_query(None);
    url.set_fragment(None);
    url.to_string()
}

struct Taken {
    file: File,
    hash: Sha256,
    size: u64,
}

impl Taken {
    fn new() -> Result<Self> {
        let file = tempfile::tempfile().doing("make a temporary file")?;
        Ok(Self { file, hash: Sha256::new(), size: 0 })
    }

    fn add(&mut self, bytes: &[u8]) -> Result<()> {
        self.size += bytes.len() as u64;
        if self.size > MAX_BYTES {
            return Err(Error::invalid(format!("it has more than {MAX_BYTES} bytes")));
        }
        self.hash.update(bytes);
        self.file.write_all(bytes).doing("write a temporary file")
    }

    fn finish(mut self) -> Result<Fetched> {
        self.file.rewind().doing("read a temporary file")?;
        let digest = format!("sha256:{}", freehold_protocol::digest::hex(self.hash.finalize().as_slice())).parse();
        let digest = digest.map_err(|_| Error::internal("cannot make the digest of a downloaded file"))?;
        Ok(Fetched { file: self.file, digest, size: self.size })
    }
}

/// Returns the error for a response with `status`, which is not a success, from the address `shown`.
fn refused(status: StatusCode, shown: &str) -> Failed {
    let message = format!("the server returned {status} for `{shown}`");
    if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS {
        Failed::ForNow(Error::transient(message).or("try again"))
    } else {
        Failed::ForGood(Error::invalid(message).or("correct the address in the list"))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;
    use crate::error::Kind;

    /// Starts a server that gives these answers in turn; returns its address.
    async fn server(answers: [&'static str; 3]) -> String {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = format!("http://{}/helm.tar.gz", listener.local_addr().unwrap());
        tokio::spawn(async move {
            for answer in answers {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(stream.read_u8().await.unwrap());
                }
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        });
        address
    }

    #[tokio::test]
    async fn a_file_is_fetched_from_its_first_byte_after_a_busy_answer_and_after_a_cut() {
        let busy = "HTTP/1.1 503 X\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
        let cut = "HTTP/1.1 200 X\r\ncontent-length: 9\r\nconnection: close\r\n\r\nhel";
        let whole = "HTTP/1.1 200 X\r\ncontent-length: 4\r\nconnection: close\r\n\r\nhelm";
        let address = server([busy, cut, whole]).await;
        // A fetcher of the product takes no address without https.
        let fetcher = Fetcher { http: http_builder().build().unwrap() };

        let fetched = fetcher.download(&address).await.unwrap();

        assert_eq!((fetched.size, fetched.digest), (4, Digest::of(b"helm")));
    }

    #[test]
    fn a_server_in_trouble_is_asked_again_and_a_wrong_address_is_corrected() {
        for (status, kind) in [(503, Kind::Transient), (429, Kind::Transient), (404, Kind::Invalid)] {
            let failed = refused(StatusCode::from_u16(status).unwrap(), "https://a.example/helm.tar.gz");

            assert_eq!(matches!(failed, Failed::ForNow(_)), kind == Kind::Transient, "{failed:?}");
            assert_eq!(Error::from(failed).kind(), kind);
        }
    }

    #[test]
    fn an_error_shows_no_secret_of_an_address() {
        let address = without_secrets("https://me:token@a.example/helm.tar.gz?X-Amz-Signature=secret#x");

        assert_eq!(address, "https://a.example/helm.tar.gz");
    }
}
