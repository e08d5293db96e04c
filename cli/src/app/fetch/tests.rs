//! Tests against a server on loopback and a git repository in a directory.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;
use crate::error::Kind;

/// Starts a server that gives `answers` (status, further header, body) in turn; returns its address and what it was
/// asked for.
async fn server(answers: Vec<(u16, String, Vec<u8>)>) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let asked = Arc::new(Mutex::new(Vec::new()));
    let kept = asked.clone();
    tokio::spawn(async move {
        for (status, header, body) in answers {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(stream.read_u8().await.unwrap());
            }
            let line = String::from_utf8_lossy(&head).lines().next().unwrap_or_default().to_owned();
            kept.lock().unwrap().push(line);
            let length = body.len();
            let head = format!("HTTP/1.1 {status} X\r\n{header}content-length: {length}\r\nconnection: close\r\n\r\n");
            // A client that has read enough hangs up.
            let _ = stream.write_all(head.as_bytes()).await;
            let _ = stream.write_all(&body).await;
        }
    });
    (address, asked)
}

fn ok(body: &str) -> (u16, String, Vec<u8>) {
    (200, String::new(), body.as_bytes().to_vec())
}

async fn refused(address: &str) -> (Kind, String) {
    let error = Texts::new().unwrap().fetch(address).await.unwrap_err();
    (error.kind(), error.to_string())
}

#[tokio::test]
async fn a_text_is_fetched_through_redirects_and_after_a_busy_answer() {
    let (address, asked) = server(vec![
        (503, String::new(), Vec::new()),
        (302, "location: /there\r\n".into(), Vec::new()),
        ok("kind: Namespace\n"),
    ])
    .await;

    let text = Texts::new().unwrap().fetch(&format!("{address}/here")).await.unwrap();

    assert_eq!(text, "kind: Namespace\n");
    assert_eq!(*asked.lock().unwrap(), ["GET /here HTTP/1.1", "GET /here HTTP/1.1", "GET /there HTTP/1.1"]);
}

#[tokio::test]
async fn a_missing_source_is_named_by_its_address_without_its_secrets() {
    let (address, asked) = server(vec![(404, String::new(), Vec::new())]).await;
    let secret = address.replace("http://", "http://me:secret@");

    let (kind, message) = refused(&format!("{secret}/gone?token=secret")).await;

    assert_eq!(kind, Kind::Invalid);
    assert_eq!(
        message,
        format!(
            "cannot fetch `{address}/gone`: the server returned 404 Not Found; check the address and that anybody may read it"
        )
    );
    assert_eq!(asked.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_text_that_is_too_large_or_no_text_is_refused() {
    let large = vec![b'x'; (MAX_BYTES + 1) as usize];
    let (address, _) = server(vec![(200, String::new(), large), (200, String::new(), vec![0xff, 0xfe])]).await;

    let (_, large) = refused(&address).await;
    let (_, binary) = refused(&address).await;

    assert!(large.ends_with("it has too many bytes, more than the maximum of 4.00 MiB; make it smaller"), "{large}");
    assert!(binary.ends_with("it is not UTF-8 text; check the address, or store the file there as UTF-8"), "{binary}");
}

#[tokio::test]
async fn a_redirect_goes_round_five_times_and_never_to_plain_http() {
    let round = (302, "location: /again\r\n".to_owned(), Vec::new());
    let (address, asked) = server(vec![round; 9]).await;
    let (away, _) = server(vec![(302, "location: http://config.example/\r\n".into(), Vec::new())]).await;

    let (kind, message) = refused(&address).await;
    let (_, downgraded) = refused(&away).await;

    assert_eq!(kind, Kind::Invalid);
    assert!(message.contains("it redirects too often"), "{message}");
    assert_eq!(asked.lock().unwrap().len(), 6);
    assert!(downgraded.contains("it redirects to an address without https"), "{downgraded}");
}

#[tokio::test]
async fn an_address_without_https_is_refused_before_anything_is_sent() {
    for address in ["http://config.example/crds.yaml", "git::http://config.example/acme/app//crds.yaml"] {
        let (kind, message) = refused(address).await;

        assert_eq!(kind, Kind::Invalid);
        assert!(message.ends_with("anybody on the network path could change the text; use `https://`"), "{message}");
    }
}

/// Makes a repository with one file on the branch `main` and another text of it under the tag `v1`.
fn repository(dir: &Path) -> String {
    let run = |words: &[&str]| {
        let mut git = std::process::Command::new("git");
        git.arg("-C").arg(dir).args(["-c", "user.name=t", "-c", "user.email=t@example.invalid"]).args(words);
        let done = git.env("GIT_CONFIG_GLOBAL", "/dev/null").output().unwrap();
        assert!(done.status.success(), "{words:?}: {}", String::from_utf8_lossy(&done.stderr));
    };
    run(&["init", "--quiet", "--initial-branch", "main"]);
    std::fs::create_dir(dir.join("deploy")).unwrap();
    for (text, tag) in [("old", Some("v1")), ("new", None)] {
        std::fs::write(dir.join("deploy/crds.yaml"), text).unwrap();
        run(&["add", "."]);
        run(&["commit", "--quiet", "-m", text]);
        if let Some(tag) = tag {
            run(&["tag", tag]);
        }
    }
    format!("file://{}", dir.display())
}

#[tokio::test]
async fn a_file_of_a_repository_is_that_of_the_named_branch_or_tag() {
    let dir = tempfile::tempdir().unwrap();
    let url = repository(dir.path());
    let mut texts = Texts::new().unwrap();
    let at = |reference: &str, path: &str| GitAddress {
        url: url.clone(),
        path: path.to_owned(),
        reference: reference.to_owned(),
    };

    let mut found = Vec::new();
    for reference in ["v1", "main", "HEAD"] {
        found.push(String::from_utf8(texts.git_text(&at(reference, "deploy/crds.yaml")).await.unwrap()).unwrap());
    }
    let file = texts.git_text(&at("main", "deploy/crd.yaml")).await.unwrap_err();
    let folder = texts.git_text(&at("main", "deploy")).await.unwrap_err();
    let branch = texts.git_text(&at("mian", "deploy/crds.yaml")).await.unwrap_err();

    assert_eq!(found, ["old", "new", "new"]);
    assert_eq!(texts.repositories.len(), 3);
    assert_eq!(file.to_string(), "`main` of the repository has no file `deploy/crd.yaml`; check the address");
    assert!(folder.to_string().starts_with("`deploy` of the repository is not a file"), "{folder}");
    assert!(branch.to_string().starts_with("cannot read `mian` of the repository: "), "{branch}");
}

#[tokio::test]
async fn an_address_that_git_would_take_for_an_option_is_refused() {
    for text in [
        "git::https://git.example/acme/app//a?ref=--upload-pack=x",
        "git::https://git.example/acme/app//a?ref=+main:main",
        "git::https://git.example/acme/app//-a",
        "git::https://git.example/acme/app//../secret",
        "git::--upload-pack=x//a",
        "git::ext::sh//a",
        "git::file:///etc//passwd",
    ] {
        let (kind, message) = refused(text).await;

        assert_eq!(kind, Kind::Invalid);
        assert!(message.contains("not an address of a file"), "{message}");
    }
}

#[test]
fn an_address_is_traced_to_the_file_that_names_it() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("components")).unwrap();
    std::fs::write(dir.path().join("metadata.toml"), "version = \"v2\"\n").unwrap();
    std::fs::write(dir.path().join("components/crds.toml"), "manifest = \"https://a.example/x\"\n").unwrap();

    assert_eq!(named_in(dir.path(), "https://a.example/x"), Some("components/crds.toml".into()));
    assert_eq!(named_in(dir.path(), "https://a.example/y"), None);
}

#[test]
fn no_part_of_an_address_that_may_be_a_token_is_shown() {
    for (address, expected) in [
        ("git::https://TOKEN@host.example/a.git?ref=v1&key=SECRET", "git::https://host.example/a.git?ref=v1"),
        ("https://user:SECRET@host.example/a#SECRET", "https://host.example/a"),
        ("ssh://git@host.example/a", "ssh://git@host.example/a"),
    ] {
        assert_eq!(without_secrets(address), expected);
    }
}
