//! Fetches texts that a config names by address: over HTTPS, or from a git repository with the `git` program.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

use freehold_appconfig::Diagnostics;
use freehold_appconfig::Fetched;
use freehold_appconfig::GitAddress;
use freehold_appconfig::Loaded;
use freehold_appconfig::git_address;
use reqwest::redirect::Policy;
use reqwest::{StatusCode, Url};
use serde_json::json;
use tempfile::TempDir;
use tokio::process::Command;

use super::check::has_errors;
use crate::api::{Failed, http_builder, with_retries};
use crate::error::{Error, Result, ResultExt, chain};
use crate::output::{bytes, note, stderr_is_json};
use crate::progress::Progress;

/// The maximum size of a text at an address, in bytes.
const MAX_BYTES: u64 = 4 * 1024 * 1024;
/// The maximum time to fetch the text at one address.
const LONGEST: Duration = Duration::from_secs(120);
/// The maximum number of redirects from one address.
const REDIRECTS: usize = 5;
/// The maximum number of tries for one address.
const TRIES: u32 = 3;
/// The maximum depth of fetched texts that name further addresses.
const ROUNDS: u32 = 8;

/// Reads an app config, given the texts that it names by address.
type Read = fn(&Path, &Fetched) -> std::result::Result<Loaded, Diagnostics>;

/// Reads the app config in `dir` with `read`, and every text that the config names by address. Prints the mistakes in
/// the config to stderr.
pub(crate) async fn load(dir: &Path, progress: &Progress, read: Read) -> Result<Loaded> {
    let mut texts = Texts::new()?;
    for _ in 0..ROUNDS {
        let loaded = read(dir, &texts.fetched).map_err(|found| {
            if stderr_is_json() {
                return has_errors(dir, &found).with_found(json!(found));
            }
            note(&found.to_string());
            has_errors(dir, &found)
        })?;
        let missing: Vec<&String> =
            loaded.addresses.iter().filter(|address| !texts.fetched.contains_key(*address)).collect();
        if missing.is_empty() {
            return Ok(loaded);
        }
        for address in missing {
            progress.now(format!("fetching {}", without_secrets(address)));
            let text = texts.fetch(address).await.map_err(|error| match named_in(dir, address) {
                Some(file) => error.within(file.display()),
                None => error,
            })?;
            texts.fetched.insert(address.clone(), text);
        }
    }
    Err(Error::invalid(
        "fetched files refer to further files through too many levels; copy the files into the app's directory",
    ))
}

/// The texts fetched so far. Each address is fetched only once, and each repository only once for all its files.
struct Texts {
    fetched: Fetched,
    http: reqwest::Client,
    repositories: BTreeMap<(String, String), TempDir>,
}

impl Texts {
    fn new() -> Result<Self> {
        let http = http_builder().redirect(Policy::custom(|attempt| {
            if is_plain(attempt.url()) {
                attempt.error("it redirects to an address without https")
            } else if attempt.previous().len() > REDIRECTS {
                attempt.error("it redirects too often")
            } else {
                attempt.follow()
            }
        }));
        let http = http.build().map_err(|e| Error::internal(format!("cannot make an HTTP client: {}", chain(&e))))?;
        Ok(Self { fetched: Fetched::new(), http, repositories: BTreeMap::new() })
    }

    async fn fetch(&mut self, address: &str) -> Result<String> {
        let name = without_secrets(address);
        let fetched = async {
            if address.starts_with("git::") {
                // A reference with `+` or `:` would be a refspec, which can name several references.
                let one = |git: &GitAddress| !git.reference.starts_with('+') && !git.reference.contains(':');
                let git = git_address(address).filter(one).ok_or_else(|| {
                    Error::invalid("not an address of a file; expected `git::https://host/name//path?ref=branch`")
                })?;
                if git.url.parse().is_ok_and(|url| is_plain(&url)) {
                    return Err(unprotected());
                }
                return self.git_text(&git).await;
            }
            self.web_text(address).await
        };
        let found = tokio::time::timeout(LONGEST, fetched).await;
        let found = found.unwrap_or_else(|_| {
            let message = format!("no response within {} seconds; try again", LONGEST.as_secs());
            Err(Error::transient(message))
        });
        let bytes = found.map_err(|e| e.within(format!("cannot fetch `{name}`")))?;
        String::from_utf8(bytes).map_err(|_| {
            Error::invalid(format!("cannot use `{name}`: it is not UTF-8 text"))
                .or("check the address, or store the file there as UTF-8")
        })
    }

    async fn web_text(&self, address: &str) -> Result<Vec<u8>> {
        let url: Url = address
            .parse()
            .map_err(|e| Error::invalid(format!("not an address: {e}; expected one like `https://host/path`")))?;
        if is_plain(&url) {
            return Err(unprotected());
        }
        with_retries(TRIES, async || self.once(&url).await).await
    }

    async fn once(&self, url: &Url) -> Result<Vec<u8>, Failed> {
        let lost = |e: reqwest::Error| {
            let is_final = e.is_redirect() || e.is_builder();
            let message = format!("{}; check the address and the network", chain(&e.without_url()));
            if is_final { Failed::ForGood(Error::invalid(message)) } else { Failed::ForNow(Error::transient(message)) }
        };
        let mut answer = self.http.get(url.clone()).timeout(LONGEST).send().await.map_err(lost)?;
        match answer.status() {
            StatusCode::OK => {}
            status if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS => {
                return Err(Failed::ForNow(Error::transient(format!("the server returned {status}; try again"))));
            }
            status => {
                let message = format!("the server returned {status}; check the address and that anybody may read it");
                return Err(Failed::ForGood(Error::invalid(message)));
            }
        }
        let mut text = Vec::new();
        while let Some(part) = answer.chunk().await.map_err(lost)? {
            text.extend_from_slice(&part);
            if text.len() as u64 > MAX_BYTES {
                return Err(Failed::ForGood(too_large(None)));
            }
        }
        Ok(text)
    }

    async fn git_text(&mut self, git: &GitAddress) -> Result<Vec<u8>> {
        let key = (git.url.clone(), git.reference.clone());
        if !self.repositories.contains_key(&key) {
            let repository = fetched_repository(&git.url, &git.reference).await?;
            self.repositories.insert(key.clone(), repository);
        }
        let Some(repository) = self.repositories.get(&key) else {
            return Err(Error::internal("a fetched repository is missing"));
        };
        let file = format!("FETCH_HEAD:{}", git.path);
        let size = run_git(repository.path(), &["cat-file", "-s", &file]).await?;
        let size = size.success().map_err(|_| {
            Error::invalid(format!(
                "`{}` of the repository has no file `{}`; check the address",
                git.reference, git.path
            ))
        })?;
        let size = String::from_utf8_lossy(&size).trim().parse::<u64>().unwrap_or(u64::MAX);
        if size > MAX_BYTES {
            return Err(too_large(Some(size)));
        }
        run_git(repository.path(), &["cat-file", "blob", &file]).await?.success().map_err(|reason| {
            Error::invalid(format!("`{}` of the repository is not a file ({reason}); check the address", git.path))
        })
    }
}

/// Makes a temporary git repository and fetches only `reference` of the repository at `url` into it.
async fn fetched_repository(url: &str, reference: &str) -> Result<TempDir> {
    let directory = tempfile::tempdir().doing("make a directory for a git repository")?;
    let broken = |reason| Error::internal(format!("cannot make a git repository: {reason}"));
    run_git(directory.path(), &["init", "--quiet", "--bare"]).await?.success().map_err(broken)?;
    // `--` ends the options: `git` must not read an address as an option.
    let fetch = ["fetch", "--quiet", "--depth", "1", "--no-tags", "--no-recurse-submodules", "--", url, reference];
    run_git(directory.path(), &fetch).await?.success().map_err(|reason| {
        Error::invalid(format!(
            "cannot read `{reference}` of the repository: {reason}; check the address and your access"
        ))
    })?;
    Ok(directory)
}

/// The output and the exit status of `git`.
struct GitOutput(Output);

impl GitOutput {
    /// Returns the standard output, or after a failure the last line of the error output.
    fn success(self) -> Result<Vec<u8>, String> {
        if self.0.status.success() {
            return Ok(self.0.stdout);
        }
        let errors = String::from_utf8_lossy(&self.0.stderr);
        let last = errors.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("git gave no reason");
        Err(last.trim_start_matches("fatal: ").to_owned())
    }
}

async fn run_git(directory: &Path, words: &[&str]) -> Result<GitOutput> {
    let mut command = Command::new("git");
    command.arg("-C").arg(directory).args(words);
    // Only these transports are allowed; `ext::` would run any program.
    command.env("GIT_TERMINAL_PROMPT", "0").env("GIT_ALLOW_PROTOCOL", "file:git:http:https:ssh");
    // These variables would make `git` work on the repository in which the user runs the command.
    for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"] {
        command.env_remove(name);
    }
    command.stdin(Stdio::null()).kill_on_drop(true);
    let done = command.output().await.map_err(|e| Error::invalid(format!("cannot run `git`: {e}; install git")))?;
    Ok(GitOutput(done))
}

fn too_large(size: Option<u64>) -> Error {
    let size = size.map_or_else(|| "too many bytes".to_owned(), bytes);
    Error::invalid(format!("it has {size}, more than the maximum of {}; make it smaller", bytes(MAX_BYTES)))
}

/// Returns the address without the parts that may be secret: its password, its fragment, its query except `ref`, and
/// the user of an HTTP address, because Git hosts accept a token there.
fn without_secrets(address: &str) -> String {
    let (prefix, rest) = if let Some(rest) = address.strip_prefix("git::") { ("git::", rest) } else { ("", address) };
    match rest.parse::<Url>() {
        Ok(mut url) => {
            let reference = url.query_pairs().find(|(key, _)| key == "ref").map(|(_, value)| value.into_owned());
            let _ = url.set_password(None);
            if matches!(url.scheme(), "http" | "https") {
                let _ = url.set_username("");
            }
            url.set_fragment(None);
            url.set_query(reference.map(|reference| format!("ref={reference}")).as_deref());
            format!("{prefix}{url}")
        }
        Err(_) => address.to_owned(),
    }
}

/// Returns whether the address is fetched without TLS, so that anybody on the network path can change the text.
fn is_plain(url: &Url) -> bool {
    let loopback = match url.host() {
        Some(url::Host::Ipv4(ip)) => ip.is_loopback(),
        Some(url::Host::Ipv6(ip)) => ip.is_loopback(),
        Some(url::Host::Domain(_)) | None => false,
    };
    url.scheme() == "http" && !loopback
}

fn unprotected() -> Error {
    Error::invalid("anybody on the network path could change the text; use `https://`")
}

/// Returns the file of the app config that contains `address`, relative to `dir`.
fn named_in(dir: &Path, address: &str) -> Option<PathBuf> {
    let mut directories = vec![dir.to_owned()];
    let mut found: Vec<PathBuf> = Vec::new();
    while let Some(directory) = directories.pop() {
        let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
        for path in entries.map(|entry| entry.path()) {
            let is_config = path.extension().is_some_and(|extension| extension == "toml");
            if path.is_dir() && !path.is_symlink() {
                directories.push(path);
            } else if is_config && std::fs::read_to_string(&path).is_ok_and(|text| text.contains(address)) {
                found.push(path);
            }
        }
    }
    found.sort();
    Some(found.first()?.strip_prefix(dir).ok()?.to_owned())
}

#[cfg(test)]
mod tests;
