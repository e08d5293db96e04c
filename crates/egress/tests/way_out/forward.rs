//! Plain `http://` requests in absolute form.

use std::collections::BTreeSet;

use crate::stage::{Stage, server};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nKeep-Alive: timeout=5\r\nX-Kept: 1\r\n\r\nok";

#[tokio::test]
async fn a_request_is_written_anew_for_its_host() {
    let stage = Stage::new(&["example.org"]).await;
    let (address, mut requests) = server(OK).await;
    stage.hosts("example.org", 80, address);

    let answer = stage
        .ask(
            "GET http://EXAMPLE.org/a?b=c HTTP/1.1\r\nHost: example.org\r\nProxy-Authorization: Basic c2VjcmV0\r\nConnection: \
             close, X-Own\r\nX-Own: 1\r\nAccept: */*\r\n\r\n",
        )
        .await;

    let got = requests.recv().await.unwrap().to_lowercase();
    let (line, headers) = got.trim_end().split_once("\r\n").unwrap();
    let headers: BTreeSet<&str> = headers.split("\r\n").collect();
    assert_eq!(line, "get /a?b=c http/1.1");
    assert_eq!(headers, BTreeSet::from(["accept: */*", "host: example.org"]));
    assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.ends_with("ok"), "{answer}");
    assert!(answer.contains("x-kept: 1") && !answer.contains("keep-alive"), "{answer}");
}

#[tokio::test]
async fn a_request_that_names_two_hosts_is_refused() {
    let stage = Stage::new(&["example.org", "other.example"]).await;

    for request in [
        "GET http://example.org/ HTTP/1.1\r\nHost: other.example\r\n\r\n",
        "GET http://example.org/ HTTP/1.1\r\nHost: example.org\r\nHost: other.example\r\n\r\n",
        "GET http://example.org/ HTTP/1.1\r\n\r\n",
        "GET http://example.org@other.example/ HTTP/1.1\r\nHost: example.org\r\n\r\n",
        "GET /path HTTP/1.1\r\nHost: example.org\r\n\r\n",
        "GET https://example.org/ HTTP/1.1\r\nHost: example.org\r\n\r\n",
        "GET ftp://example.org/ HTTP/1.1\r\nHost: example.org\r\n\r\n",
        "OPTIONS * HTTP/1.1\r\nHost: example.org\r\n\r\n",
    ] {
        let request = request.replacen("\r\n", "\r\nConnection: close\r\n", 1);
        let answer = stage.ask(&request).await;
        assert!(answer.starts_with("HTTP/1.1 400"), "{request}{answer}");
    }

    assert!(stage.connected().is_empty());
}

#[tokio::test]
async fn a_second_request_hidden_behind_the_first_goes_nowhere() {
    let stage = Stage::new(&["example.org"]).await;
    let (address, mut requests) = server(OK).await;
    stage.hosts("example.org", 80, address);

    // By its length the first request ends within `0\r\n\r\n`; by its encoding, which counts, before `GET`.
    let answer = stage
        .ask(
            "POST http://example.org/ HTTP/1.1\r\nHost: example.org\r\nContent-Length: 4\r\nTransfer-Encoding: \
             chunked\r\n\r\n0\r\n\r\nGET http://evil.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n",
        )
        .await;

    let got = requests.recv().await.unwrap().to_lowercase();
    assert!(!got.contains("evil") && got.contains("chunked") && !got.contains("content-length"), "{got}");
    assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "the connection closes after such a request: {answer}");
}

#[tokio::test]
async fn a_body_is_passed_on_with_its_length_or_in_chunks() {
    for (head, body) in [("Content-Length: 5", "hello"), ("Transfer-Encoding: chunked", "5\r\nhello\r\n0\r\n\r\n")] {
        let stage = Stage::new(&["example.org:8080"]).await;
        let (address, mut requests) = server(OK).await;
        stage.hosts("example.org", 8080, address);

        stage
            .ask(&format!(
                "PUT http://example.org:8080/ HTTP/1.1\r\nHost: example.org:8080\r\nConnection: close\r\n{head}\r\n\r\n{body}"
            ))
            .await;

        let got = requests.recv().await.unwrap();
        assert!(got.to_lowercase().contains(&head.to_lowercase()) && got.contains("hello"), "{got}");
    }
}

#[tokio::test]
async fn other_methods_do_not_pass() {
    let stage = Stage::new(&["example.org"]).await;

    for method in ["TRACE", "PROPFIND", "get"] {
        let answer = stage
            .ask(&format!("{method} http://example.org/ HTTP/1.1\r\nHost: example.org\r\nConnection: close\r\n\r\n"))
            .await;
        assert!(answer.starts_with("HTTP/1.1 405"), "{method}: {answer}");
    }
}

#[tokio::test]
async fn a_host_that_does_not_answer_is_a_sentence() {
    let stage = Stage::new(&["gone.example", "silent.example"]).await;
    stage.resolves("silent.example", &[&["198.51.100.9"]]);

    let gone = stage.ask("GET http://gone.example/ HTTP/1.1\r\nHost: gone.example\r\nConnection: close\r\n\r\n").await;
    let silent =
        stage.ask("GET http://silent.example/ HTTP/1.1\r\nHost: silent.example\r\nConnection: close\r\n\r\n").await;

    assert!(gone.starts_with("HTTP/1.1 502") && gone.contains("could not resolve `gone.example:80`"), "{gone}");
    assert!(
        silent.starts_with("HTTP/1.1 502") && silent.contains("could not connect to `silent.example:80`"),
        "{silent}"
    );
}
