//! The pages in a browser, and the commands that print the same answers.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use freehold_protocol::envelope::PublicKey;

use super::super::bucket::{ROOT, command, key};

/// The pages of one install, in a browser that has opened the printed address.
pub(super) struct Pages {
    pub(super) server: Child,
    /// The end of what the server prints.
    pub(super) rest: BufReader<ChildStdout>,
    pub(super) authority: String,
    /// The path of the printed address.
    pub(super) address: String,
    pub(super) cookie: String,
    _place: tempfile::TempDir,
}

/// A response.
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) head: String,
    pub(super) body: String,
}

impl Pages {
    /// Starts the server, and opens the printed address.
    pub(super) fn open(account: &str) -> Self {
        let mut pages = Self::start(account, &[]);
        let opened = pages.send("GET", &pages.address, &[("host", pages.authority.as_str())], "");
        assert_eq!(opened.status, 200, "{}", opened.head);
        let cookie = opened.head.split("set-cookie: ").nth(1).unwrap().split(';').next().unwrap();
        cookie.clone_into(&mut pages.cookie);
        pages
    }

    pub(super) fn start(account: &str, environment: &[(&str, &str)]) -> Self {
        let place = tempfile::tempdir().unwrap();
        let mut command = asked(place.path(), &["ui", "globex", "--tenant", "acme", "--idle", "60"], account);
        let mut server = command.envs(environment.iter().copied()).stdout(Stdio::piped()).spawn().unwrap();
        let mut rest = BufReader::new(server.stdout.take().unwrap());
        let mut line = String::new();
        while !line.contains("http://") {
            line.clear();
            assert_ne!(rest.read_line(&mut line).unwrap(), 0, "the server printed no address");
        }
        let (authority, path) = line.trim().strip_prefix("http://").unwrap().split_once('/').unwrap();
        let (authority, address) = (authority.to_owned(), format!("/{path}"));
        Self { server, rest, authority, address, cookie: String::new(), _place: place }
    }

    /// Sends a request with these headers only.
    pub(super) fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Reply {
        let mut stream = TcpStream::connect(&self.authority).unwrap();
        let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let length = body.len();
        let head =
            format!("{method} {path} HTTP/1.1\r\n{headers}connection: close\r\ncontent-length: {length}\r\n\r\n");
        stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Reply { status, head: head.to_owned(), body: body.to_owned() }
    }

    /// Loads a page as the browser does.
    pub(super) fn get(&self, path: &str) -> Reply {
        self.send("GET", path, &[("host", self.authority.as_str()), ("cookie", self.cookie.as_str())], "")
    }

    /// Sends a form as the browser does, from a page of `origin`.
    pub(super) fn post(&self, path: &str, origin: &str, form: &str) -> Reply {
        let headers = [("host", self.authority.as_str()), ("cookie", self.cookie.as_str()), ("origin", origin)];
        self.send("POST", path, &headers, form)
    }

    pub(super) fn own_origin(&self) -> String {
        format!("http://{}", self.authority)
    }

    /// Returns the token that the forms of a page have.
    pub(super) fn form_token(&self, path: &str) -> String {
        let page = self.get(path).body;
        let token = page.split("name=\"csrf\" value=\"").nth(1).unwrap_or_else(|| panic!("no form: {page}"));
        token.split('"').next().unwrap().to_owned()
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// Returns a command for customers with the credentials of the account, and with the vendor's root key for the log.
fn asked(place: &Path, words: &[&str], account: &str) -> Command {
    let root = PublicKey::from(key(ROOT).verifying_key()).to_string();
    let of_log = ["ui", "asked", "approvals", "ran", "origin", "sent", "audit"];
    let mut all = vec!["customer"];
    all.extend(words);
    if of_log.contains(&words[0]) {
        all.extend(["--root-key", root.as_str()]);
    }
    let mut command = command(place, &all);
    command.envs([
        ("AWS_ENDPOINT_URL", account),
        ("AWS_REGION", "eu-west-1"),
        ("AWS_ACCESS_KEY_ID", "222222222222"),
        ("AWS_SECRET_ACCESS_KEY", "local"),
    ]);
    command
}

/// Returns the JSON that a command prints about the install.
pub(super) fn printed(account: &str, words: &[&str]) -> String {
    let place = tempfile::tempdir().unwrap();
    let words = [words, &["globex", "--tenant", "acme", "--json"]].concat();
    let done = asked(place.path(), &words, account).output().unwrap();
    assert!(!done.stdout.is_empty(), "{words:?}: {done:?}");
    String::from_utf8(done.stdout).unwrap().trim_end().to_owned()
}
