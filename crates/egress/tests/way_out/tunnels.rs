//! Tunnels: by `CONNECT`, to the pairs of a contract, and to the runner's own endpoints.

use std::sync::Arc;

use freehold_egress::{Totals, Way};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::stage::{Stage, all, echo, exactly, server};

fn hello(name: &str) -> Vec<u8> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = builder.with_root_certificates(RootCertStore::empty()).with_no_client_auth();
    let mut client = ClientConnection::new(Arc::new(config), ServerName::try_from(name.to_owned()).unwrap()).unwrap();
    let mut bytes = Vec::new();
    client.write_tls(&mut bytes).unwrap();
    bytes
}

#[tokio::test]
async fn a_tunnel_carries_bytes_both_ways_and_counts_them() {
    let stage = Stage::new(&["db.example:8443"]).await;
    stage.hosts("db.example", 8443, echo().await);

    let (mut tunnel, answer) = stage.connect("db.example:8443").await;
    let sent: Vec<u8> = (0..1_000_000_u32).map(|number| number.to_le_bytes()[1]).collect();
    let (mut read, mut write) = tunnel.split();
    let mut got = Vec::new();
    let both = async {
        write.write_all(&sent).await.unwrap();
        write.shutdown().await.unwrap();
    };
    let (copied, ()) = tokio::join!(tokio::io::copy(&mut read, &mut got), both);

    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert_eq!(copied.unwrap(), 1_000_000);
    assert!(got == sent, "the bytes changed on the way");
    let totals = Totals { connections: 1, refused: 0, sent_bytes: 1_000_000, received_bytes: 1_000_000 };
    assert_eq!(stage.egress.totals(), totals);
}

#[tokio::test]
async fn tls_to_the_host_of_the_tunnel_passes_as_it_was_sent() {
    let stage = Stage::new(&["*.example.org"]).await;
    stage.hosts("www.example.org", 443, echo().await);

    let (mut tunnel, _) = stage.connect("WWW.example.org:443").await;
    let hello = hello("www.example.org");
    for piece in hello.chunks(100) {
        tunnel.write_all(piece).await.unwrap();
    }

    assert!(exactly(&mut tunnel, hello.len()).await == hello);
}

#[tokio::test]
async fn tls_to_another_host_behind_a_permitted_one_is_refused_before_a_byte_arrives() {
    let stage = Stage::new(&["front.example", "b.example"]).await;
    let (address, mut requests) = server("").await;
    stage.hosts("front.example", 443, address);

    let (mut tunnel, _) = stage.connect("front.example:443").await;
    tunnel.write_all(&hello("b.example")).await.unwrap();
    let answer = all(&mut tunnel).await;

    assert_eq!(answer.as_bytes(), [0x15, 3, 3, 0, 2, 2, 0x31], "an alert: access denied");
    assert_eq!(stage.refused()[0].0, "other_server_name");
    assert_eq!(requests.recv().await.unwrap(), "");
}

#[tokio::test]
async fn what_is_not_tls_does_not_go_to_port_443() {
    let stage = Stage::new(&["front.example"]).await;
    stage.hosts("front.example", 443, echo().await);

    let (mut tunnel, _) = stage.connect("front.example:443").await;
    tunnel.write_all(b"GET / HTTP/1.1\r\nHost: hidden.example\r\n\r\n").await.unwrap();

    assert!(!all(&mut tunnel).await.contains("hidden"));
    assert_eq!(stage.refused()[0].0, "no_hello");
}

#[tokio::test]
async fn bytes_that_come_with_the_connect_are_not_lost() {
    let stage = Stage::new(&["db.example:8443"]).await;
    stage.hosts("db.example", 8443, echo().await);

    let mut stream = TcpStream::connect(stage.proxy).await.unwrap();
    stream.write_all(b"CONNECT db.example:8443 HTTP/1.1\r\nHost: db.example:8443\r\n\r\nearly").await.unwrap();
    let answer = crate::stage::head(&mut stream).await;

    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert_eq!(exactly(&mut stream, 5).await, b"early");
}

#[tokio::test]
async fn a_connect_whose_host_header_names_another_host_is_refused() {
    let stage = Stage::new(&["db.example:8443"]).await;

    let other = stage.ask("CONNECT db.example:8443 HTTP/1.1\r\nHost: evil.example:8443\r\n\r\n").await;
    let body =
        stage.ask("CONNECT db.example:8443 HTTP/1.1\r\nHost: db.example:8443\r\nContent-Length: 3\r\n\r\nabc").await;
    let user = stage.ask("CONNECT user@db.example:8443 HTTP/1.1\r\nHost: db.example:8443\r\n\r\n").await;

    for answer in [other, body, user] {
        assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    }
}

#[tokio::test]
async fn a_pair_goes_to_its_one_host() {
    let mut stage = Stage::new(&["db.example:5432"]).await;
    stage.hosts("db.example", 5432, echo().await);
    let pair = stage.serve(Way::Pair("db.example:5432".parse().unwrap())).await;

    let mut stream = TcpStream::connect(pair).await.unwrap();
    stream.write_all(b"hello").await.unwrap();

    assert_eq!(exactly(&mut stream, 5).await, b"hello");
}

#[tokio::test]
async fn a_pair_that_no_rule_permits_is_closed_before_anything_is_connected() {
    let mut stage = Stage::new(&["db.example:5433"]).await;
    stage.hosts("db.example", 5432, echo().await);
    let pair = stage.serve(Way::Pair("db.example:5432".parse().unwrap())).await;

    let mut stream = TcpStream::connect(pair).await.unwrap();

    assert_eq!(all(&mut stream).await, "");
    assert_eq!(stage.refused()[0].0, "not_permitted");
}

#[tokio::test]
async fn the_runner_itself_connects_as_the_rules_permit_and_only_to_what_accepts_it() {
    let stage = Stage::new(&["db.example:5432", "closed.example:5432"]).await;
    stage.hosts("db.example", 5432, echo().await);
    stage.resolves("closed.example", &[&["198.51.100.8"]]);
    let connect = async |to: &str| stage.egress.connect(&to.parse().unwrap()).await;

    let mut stream = connect("db.example:5432").await.unwrap();
    stream.write_all(b"hello").await.unwrap();
    let closed = connect("closed.example:5432").await.unwrap_err().to_string();
    let other = connect("db.example:22").await.unwrap_err().to_string();

    assert_eq!(exactly(&mut stream, 5).await, b"hello");
    assert!(closed.starts_with("the runner could not connect to `closed.example:5432`"), "{closed}");
    assert!(other.contains("is not among the hosts of the accepted contract"), "{other}");
    assert_eq!(stage.refused().len(), 2);
    assert_eq!(stage.connected(), ["198.51.100.7:5432", "198.51.100.8:5432"]);
}

#[tokio::test]
async fn whoever_only_connects_to_a_pair_on_the_port_of_tls_is_not_a_refusal() {
    let mut stage = Stage::new(&["front.example"]).await;
    let (address, mut requests) = server("").await;
    stage.hosts("front.example", 443, address);
    let pair = stage.serve(Way::Pair("front.example:443".parse().unwrap())).await;

    drop(TcpStream::connect(pair).await.unwrap());

    assert_eq!(requests.recv().await.unwrap(), "", "the destination was asked, and got nothing");
    assert!(stage.refused().is_empty());
}

#[tokio::test]
async fn a_pair_on_the_port_of_tls_leads_to_no_other_host_behind_its_own() {
    let mut stage = Stage::new(&["front.example"]).await;
    stage.hosts("front.example", 443, echo().await);
    let pair = stage.serve(Way::Pair("front.example:443".parse().unwrap())).await;
    let own = hello("front.example");

    let mut other = TcpStream::connect(pair).await.unwrap();
    other.write_all(&hello("b.example")).await.unwrap();
    let refused = all(&mut other).await;
    let mut stream = TcpStream::connect(pair).await.unwrap();
    stream.write_all(&own).await.unwrap();

    assert_eq!(refused.as_bytes(), [0x15, 3, 3, 0, 2, 2, 0x31], "an alert: access denied");
    assert_eq!(stage.refused()[0].0, "other_server_name");
    assert!(exactly(&mut stream, own.len()).await == own);
}

#[tokio::test]
async fn a_pair_that_resolves_to_the_machine_is_closed_and_an_endpoint_is_not() {
    let local = echo().await;
    let mut stage = Stage::new(&[&format!("local.example:{}", local.port())]).await;
    stage.resolves("local.example", &[&["127.0.0.1"]]);
    stage.plays(&local.to_string(), local);
    let pair = stage.serve(Way::Pair(format!("local.example:{}", local.port()).parse().unwrap())).await;
    let endpoint = stage.serve(Way::Endpoint(local.to_string().parse().unwrap())).await;

    let mut refused = TcpStream::connect(pair).await.unwrap();
    assert_eq!(all(&mut refused).await, "");
    let mut served = TcpStream::connect(endpoint).await.unwrap();
    served.write_all(b"hello").await.unwrap();

    assert_eq!(exactly(&mut served, 5).await, b"hello");
    assert_eq!(stage.refused()[0].0, "address");
}
