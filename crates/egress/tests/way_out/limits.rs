//! The limits of a job's outgoing connections, and that the connections end when their owner is dropped.

use std::time::Duration;

use freehold_egress::{Limits, Upstream};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::stage::{Stage, all, echo, exactly};

/// Shorter than the test waits, and longer than a busy machine takes to hand on some bytes.
const SHORT: Duration = Duration::from_secs(2);

async fn limited(limits: Limits) -> Stage {
    let stage = Stage::with(&["db.example:8443", "tls.example", "example.org"], Upstream::none(), limits).await;
    stage.hosts("db.example", 8443, echo().await);
    stage.hosts("tls.example", 443, echo().await);
    stage
}

#[tokio::test]
async fn a_connection_above_the_limit_is_refused_and_a_later_one_is_served() {
    let stage = limited(Limits { connections: 2, ..Limits::default() }).await;
    let (first, _) = stage.connect("db.example:8443").await;
    let (_second, _) = stage.connect("db.example:8443").await;

    let mut third = TcpStream::connect(stage.proxy).await.unwrap();
    let refused = all(&mut third).await;
    drop(first);
    let mut answer = String::new();
    while !answer.starts_with("HTTP/1.1 200") {
        (_, answer) = stage.connect("db.example:8443").await;
    }

    assert!(refused.starts_with("HTTP/1.1 503") && refused.contains("2 connections open"), "{refused}");
    assert_eq!(stage.refused()[0].0, "too_many");
}

#[tokio::test]
async fn a_head_that_does_not_come_in_time_ends_the_connection() {
    let stage = limited(Limits { head: SHORT, ..Limits::default() }).await;

    let mut slow = TcpStream::connect(stage.proxy).await.unwrap();
    slow.write_all(b"GET http://example.org/ HTTP/1.1\r\nHost: exam").await.unwrap();

    let answer = all(&mut slow).await;
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 408"), "{answer}");
}

#[tokio::test]
async fn a_hello_that_does_not_come_in_time_ends_the_tunnel() {
    let stage = limited(Limits { hello: SHORT, ..Limits::default() }).await;

    let (mut tunnel, _) = stage.connect("tls.example:443").await;
    tunnel.write_all(&[0x16]).await.unwrap();

    all(&mut tunnel).await;
    assert_eq!(stage.refused()[0].0, "no_hello");
}

#[tokio::test]
async fn a_tunnel_over_which_nothing_moves_is_closed() {
    let stage = limited(Limits { idle: SHORT, ..Limits::default() }).await;

    let (mut tunnel, _) = stage.connect("db.example:8443").await;
    tunnel.write_all(b"hello").await.unwrap();

    assert_eq!(all(&mut tunnel).await, "hello");
}

#[tokio::test]
async fn a_host_that_accepts_and_says_nothing_does_not_hold_a_request_for_ever() {
    let stage = limited(Limits { idle: SHORT, ..Limits::default() }).await;
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    stage.hosts("example.org", 80, silent.local_addr().unwrap());

    let answer = stage.ask("GET http://example.org/ HTTP/1.1\r\nHost: example.org\r\nConnection: close\r\n\r\n").await;

    assert!(answer.starts_with("HTTP/1.1 502"), "{answer}");
}

#[tokio::test]
async fn a_large_head_and_a_large_body_are_refused() {
    let stage = limited(Limits { head_bytes: 8 * 1024, body_bytes: 10, ..Limits::default() }).await;

    let long = "a".repeat(9_000);
    let head = stage.ask(&format!("GET http://example.org/{long} HTTP/1.1\r\nHost: example.org\r\n\r\n")).await;
    let body =
        "POST http://example.org/ HTTP/1.1\r\nHost: example.org\r\nConnection: close\r\nContent-Length: 11\r\n\r\n";
    let body = stage.ask(body).await;

    assert!(head.starts_with("HTTP/1.1 431") || head.starts_with("HTTP/1.1 414"), "{head}");
    assert!(body.starts_with("HTTP/1.1 413") && body.contains("10 bytes"), "{body}");
}

#[tokio::test]
async fn everything_closes_with_its_owner() {
    let mut stage = limited(Limits::default()).await;
    let (mut tunnel, _) = stage.connect("db.example:8443").await;
    tunnel.write_all(b"hello").await.unwrap();
    exactly(&mut tunnel, 5).await;

    stage.serving.clear();

    assert_eq!(all(&mut tunnel).await, "");
    assert!(TcpStream::connect(stage.proxy).await.is_err());
}
