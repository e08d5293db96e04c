//! `freehold login` and `freehold logout`: the real command, an issuer that signs its tokens, and a person who agrees.

#[expect(dead_code, reason = "the tests of the crate `sign-in` use the rest")]
#[path = "../../../crates/sign-in/tests/issuer/server.rs"]
mod issuer;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::{Arc, Mutex};

use freehold_sign_in::{Login, Store};
use serde_json::json;
use url::Url;

use crate::support::{loopback, tenant_api, text};
use issuer::{CLIENT, Server};

/// A list without items.
const EMPTY: &str = r#"{"items":[]}"#;

type Paths = Arc<Mutex<Vec<String>>>;

/// Starts an API that answers with `status` and `answer`; returns its address, and the paths of requests.
fn api(status: u16, answer: &'static str) -> (String, Paths) {
    let paths = Paths::default();
    let seen = Arc::clone(&paths);
    let address = loopback::listen(move |_, path, _| {
        seen.lock().unwrap().push(path.to_owned());
        (status, answer.to_owned())
    });
    (address, paths)
}

/// Returns `freehold` as a person runs it who keeps logins in `place`. No program can open a browser.
fn freehold(api: &str, place: &Path, args: &[&str]) -> Command {
    let mut command = tenant_api::freehold(api, place, args);
    command.env("XDG_STATE_HOME", place.join("state")).env("PATH", place);
    command
}

/// Starts a login; returns it with the page that it asks the person to open.
fn login(api: &str, place: &Path, server: &Server, options: &[&str]) -> (Child, BufReader<ChildStderr>, Url) {
    let address = server.state().address.clone();
    let mut command =
        freehold(api, place, &[&["login", "--issuer", &address, "--client-id", CLIENT], options].concat());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut notes = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("/authorize?") {
        line.clear();
        assert_ne!(notes.read_line(&mut line).unwrap(), 0, "the command ended without a page to open");
    }
    let page = line.split_whitespace().next_back().unwrap().parse().unwrap();
    (child, notes, page)
}

/// Returns to the command as a browser does; returns the page that it shows.
fn visit(page: &Url, query: &str) -> String {
    let (_, redirect) = page.query_pairs().find(|(name, _)| name == "redirect_uri").unwrap();
    let redirect: Url = redirect.parse().unwrap();
    let mut stream = TcpStream::connect(("127.0.0.1", redirect.port().unwrap())).unwrap();
    let head = format!("GET {}?{query} HTTP/1.1\r\nhost: localhost\r\n\r\n", redirect.path());
    stream.write_all(head.as_bytes()).unwrap();
    let mut shown = String::new();
    stream.read_to_string(&mut shown).unwrap();
    shown
}

/// Signs in; returns what the command printed.
fn signed_in(api: &str, place: &Path, server: &Server) -> String {
    let (child, _notes, page) = login(api, place, server, &[]);
    let shown = visit(&page, &server.agree(&page));
    assert!(shown.contains("You are signed in."), "{shown}");
    let done = child.wait_with_output().unwrap();
    assert!(done.status.success());
    text(&done.stdout)
}

#[test]
fn commands_call_the_api_with_the_token_of_a_login_until_it_ends() {
    let (server, place) = (Server::start(), tempfile::tempdir().unwrap());
    let (address, paths) = api(200, EMPTY);
    let run = |args: &[&str]| {
        let done = freehold(&address, place.path(), args).output().unwrap();
        assert!(done.status.success(), "{}", text(&done.stderr));
        text(&done.stdout)
    };

    let printed = signed_in(&address, place.path(), &server);
    run(&["app", "list"]);
    run(&["app", "list", "--as-aws"]);
    let ended = run(&["logout"]);
    run(&["app", "list"]);

    assert!(printed.contains("as ana@example.com, subject `ana`"), "{printed}");
    assert!(printed.contains("the login lasts until") && !printed.contains("access-0"), "{printed}");
    assert_eq!(ended, format!("signed out at {address}/\n"));
    assert_eq!(server.state().refresh, None);
    assert_eq!(*paths.lock().unwrap(), ["/people/v1/apps", "/v1/apps", "/v1/apps"]);
}

#[test]
fn the_answer_of_another_sign_in_is_refused_and_does_not_end_this_one() {
    let (server, place) = (Server::start(), tempfile::tempdir().unwrap());
    let (child, mut notes, page) = login("http://127.0.0.1:1", place.path(), &server, &[]);

    let other = visit(&page, "code=stolen&state=other");
    let mut note = String::new();
    notes.read_line(&mut note).unwrap();
    let own = visit(&page, &server.agree(&page));

    assert!(other.starts_with("HTTP/1.1 400") && other.contains("belongs to another sign-in"), "{other}");
    assert!(note.contains("a browser returned from another sign-in") && !note.contains("stolen"), "{note}");
    assert!(own.starts_with("HTTP/1.1 200") && own.contains("Content-Security-Policy: default-src 'none'"), "{own}");
    assert!(child.wait_with_output().unwrap().status.success());
}

#[test]
fn a_person_who_declines_is_not_signed_in() {
    let (server, place) = (Server::start(), tempfile::tempdir().unwrap());
    let (child, mut notes, page) = login("http://127.0.0.1:1", place.path(), &server, &[]);
    let state = page.query_pairs().find(|(name, _)| name == "state").unwrap().1.into_owned();

    let shown = visit(&page, &format!("error=access_denied&state={state}"));
    let mut complaint = String::new();
    notes.read_to_string(&mut complaint).unwrap();

    assert!(shown.contains("You are not signed in."), "{shown}");
    assert!(complaint.contains("the issuer refused the sign-in: `access_denied`; sign in again"), "{complaint}");
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(6));
    assert!(!place.path().join("state").exists());
}

#[test]
fn without_a_browser_the_person_pastes_the_address() {
    let (server, place) = (Server::start(), tempfile::tempdir().unwrap());
    let paste = |wanted: Option<&str>| {
        let (mut child, mut notes, page) = login("http://127.0.0.1:1", place.path(), &server, &["--no-browser"]);
        let query = server.agree(&page);
        let line =
            wanted.map_or_else(|| format!("http://localhost:8976/callback?{query}\n"), |text| format!("{text}\n"));
        child.stdin.take().unwrap().write_all(line.as_bytes()).unwrap();
        let mut complaint = String::new();
        notes.read_to_string(&mut complaint).unwrap();
        (child.wait_with_output().unwrap().status.code().unwrap(), complaint)
    };

    let (good, _) = paste(None);
    let (code, complaint) = paste(Some("secret-code"));

    assert_eq!((good, code), (0, 2));
    assert!(complaint.contains("this is not the address of a page after a sign-in"), "{complaint}");
    assert!(!complaint.contains("secret-code"), "{complaint}");
}

#[test]
fn a_code_on_another_device_signs_in_where_the_issuer_has_such_codes() {
    let (server, place) = (Server::start(), tempfile::tempdir().unwrap());
    server.state().claims = json!({ "nonce": null });
    let address = server.state().address.clone();
    let words = ["login", "--issuer", &address, "--client-id", CLIENT, "--device"];
    let run = || freehold("http://127.0.0.1:1", place.path(), &words).output().unwrap();

    let good = run();
    server.state().document = json!({ "device_authorization_endpoint": null });
    let without = run();

    let notes = text(&good.stderr);
    assert!(
        notes.contains("open https://id.example.com/device on any device, and enter the code ABCD-EFGH"),
        "{notes}"
    );
    assert!(text(&good.stdout).contains("subject `ana`"));
    assert_eq!(without.status.code(), Some(2));
    assert!(text(&without.stderr).contains("does not offer codes for other devices; run `freehold login`"));
}

#[tokio::test]
async fn a_token_that_the_api_refuses_asks_for_another_login() {
    let (address, _) = api(401, r#"{"message":"Unauthorized"}"#);
    let place = tempfile::tempdir().unwrap();
    let login: Login =
        serde_json::from_value(json!({ "api": format!("{address}/"), "issuer": "https://id.example.com",
        "client_id": CLIENT, "tokens": { "access": "abc", "expires_at": 9_000_000_000_000_u64,
        "identity": { "subject": "ana" } } }))
        .unwrap();
    Store::new(place.path().join("state/freehold/logins")).save(&login).await.unwrap();

    let refused = freehold(&address, place.path(), &["app", "list"]).output().unwrap();
    let checks = freehold(&address, place.path(), &["doctor"]).output().unwrap();

    assert_eq!(refused.status.code(), Some(6));
    let complaint = text(&refused.stderr);
    assert!(complaint.contains("the tenant API does not accept the token of your login (401); run `freehold login`"));
    assert!(text(&checks.stdout).contains("login of ana"));
}

#[test]
fn a_pipeline_calls_the_api_with_its_token() {
    let (address, paths) = api(200, EMPTY);
    let place = tempfile::tempdir().unwrap();
    let run = |name: &str, value: &str| {
        let mut command = freehold(&address, place.path(), &["app", "list"]);
        let done = command.env(name, value).output().unwrap();
        (done.status.code().unwrap(), text(&done.stderr))
    };

    let (good, _) = run("FREEHOLD_PIPELINE_TOKEN", "abc.def");
    let (code, wrong) = run("FREEHOLD_PIPELINE_TOKEN_FILE", "absent");

    assert_eq!((good, code), (0, 2));
    assert_eq!(*paths.lock().unwrap(), ["/pipelines/v1/apps"]);
    assert!(wrong.contains("FREEHOLD_PIPELINE_TOKEN_FILE is `absent`, and it cannot be read"), "{wrong}");
}
