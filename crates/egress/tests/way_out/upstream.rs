//! Through the runner's own proxy.

use freehold_egress::{Limits, Upstream};
use tokio::io::AsyncWriteExt as _;

use crate::stage::{Stage, all, echo, server};

async fn behind(proxy: std::net::SocketAddr, rules: &[&str]) -> Stage {
    let upstream = Upstream::new("http://user:secret@proxy.corp:3128", "direct.example");
    let stage = Stage::with(rules, upstream, Limits::default()).await;
    // The runner's configuration names the proxy: it may be on this machine.
    stage.resolves("proxy.corp", &[&["127.0.0.1"]]);
    stage.plays("127.0.0.1:3128", proxy);
    stage
}

#[tokio::test]
async fn a_tunnel_is_chained_with_the_runners_credentials_and_the_name_is_left_to_the_proxy() {
    let (proxy, mut requests) = server("HTTP/1.1 200 Connection established\r\n\r\nwelcome").await;
    let stage = behind(proxy, &["example.org:8443"]).await;

    let (mut tunnel, answer) = stage.connect("example.org:8443").await;
    tunnel.write_all(b"through").await.unwrap();
    tunnel.shutdown().await.unwrap();

    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert_eq!(all(&mut tunnel).await, "welcome");
    let got = requests.recv().await.unwrap();
    assert!(got.starts_with("CONNECT example.org:8443 HTTP/1.1\r\n"), "{got}");
    assert!(got.to_lowercase().contains("proxy-authorization: basic dxnlcjpzzwnyzxq="), "{got}");
    assert!(got.ends_with("\r\n\r\nthrough"), "{got}");
    assert_eq!(*stage.network.resolved.lock().unwrap(), ["proxy.corp"]);
}

#[tokio::test]
async fn a_request_is_passed_on_in_absolute_form() {
    let (proxy, mut requests) = server("HTTP/1.1 204 No Content\r\n\r\n").await;
    let stage = behind(proxy, &["example.org"]).await;

    let answer = stage.ask("GET http://example.org/a HTTP/1.1\r\nHost: example.org\r\nConnection: close\r\n\r\n").await;

    let got = requests.recv().await.unwrap().to_lowercase();
    assert!(answer.starts_with("HTTP/1.1 204"), "{answer}");
    assert!(got.starts_with("get http://example.org/a http/1.1\r\n"), "{got}");
    assert!(got.contains("proxy-authorization: basic dxnlcjpzzwnyzxq="), "{got}");
}

#[tokio::test]
async fn rules_and_written_addresses_are_checked_before_the_proxy_is_asked() {
    let (proxy, _told) = server("HTTP/1.1 200 OK\r\n\r\n").await;
    let stage = behind(proxy, &["169.254.169.254:8443"]).await;

    for to in ["169.254.169.254:8443", "example.org:8443"] {
        let (_, answer) = stage.connect(to).await;
        assert!(answer.starts_with("HTTP/1.1 403"), "{to}: {answer}");
    }

    assert!(stage.connected().is_empty());
}

#[tokio::test]
async fn what_no_proxy_names_is_resolved_and_checked_here() {
    let (proxy, _told) = server("HTTP/1.1 200 OK\r\n\r\n").await;
    let stage = behind(proxy, &["direct.example:8443"]).await;
    stage.hosts("direct.example", 8443, echo().await);

    let (_, reached) = stage.connect("direct.example:8443").await;
    stage.resolves("direct.example", &[&["127.0.0.1"]]);
    let (_, refused) = stage.connect("direct.example:8443").await;

    assert!(reached.starts_with("HTTP/1.1 200") && refused.starts_with("HTTP/1.1 403"), "{reached}{refused}");
}

#[tokio::test]
async fn a_proxy_that_refuses_is_named_in_the_answer() {
    let (proxy, _told) = server("HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n").await;
    let stage = behind(proxy, &["example.org:8443"]).await;

    let to = "CONNECT example.org:8443 HTTP/1.1\r\nHost: example.org:8443\r\nConnection: close\r\n\r\n";
    let answer = stage.ask(to).await;

    assert!(answer.starts_with("HTTP/1.1 502"), "{answer}");
    assert!(
        answer.contains("the runner's proxy did not connect to `example.org:8443`: it returned status 407"),
        "{answer}"
    );
}
