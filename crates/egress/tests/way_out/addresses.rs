//! A permitted name leads to no address of the machine or its link.

use freehold_egress::Way;
use tokio::net::TcpStream;

use crate::stage::{PUBLIC, Stage, all, echo};

#[tokio::test]
async fn a_name_that_resolves_to_the_machine_or_its_link_is_refused_before_anything_connects() {
    let stage = Stage::new(&["trap.example:8443"]).await;

    for address in [
        "127.0.0.1",
        "169.254.169.254",
        "169.254.170.2",
        "0.0.0.0",
        "::1",
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
        "64:ff9b::a9fe:a9fe",
        "2002:7f00:1::",
        "fd00:ec2::254",
        "fe80::1",
        "10.0.0.99",
    ] {
        stage.resolves("trap.example", &[&[address]]);
        let (_, answer) = stage.connect("trap.example:8443").await;
        assert!(answer.starts_with("HTTP/1.1 403"), "{address}: {answer}");
    }

    assert!(stage.connected().is_empty(), "{:?}", stage.connected());
    assert_eq!(stage.refused()[0].0, "address");
}

#[tokio::test]
async fn one_forbidden_address_among_good_ones_refuses_the_name() {
    let stage = Stage::new(&["trap.example:8443"]).await;
    stage.resolves("trap.example", &[&[PUBLIC, "127.0.0.1"]]);

    let (_, answer) = stage.connect("trap.example:8443").await;

    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
    assert!(stage.connected().is_empty());
}

#[tokio::test]
async fn the_address_that_was_checked_is_the_address_that_is_connected_to() {
    let stage = Stage::new(&["rebind.example:8443"]).await;
    stage.plays(&format!("{PUBLIC}:8443"), echo().await);
    stage.resolves("rebind.example", &[&[PUBLIC], &["127.0.0.1"]]);

    let (_first, answer) = stage.connect("rebind.example:8443").await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let (_second, answer) = stage.connect("rebind.example:8443").await;
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");

    assert_eq!(stage.connected(), [format!("{PUBLIC}:8443")]);
    assert_eq!(stage.network.resolved.lock().unwrap().len(), 2, "a connection resolves its name once");
}

#[tokio::test]
async fn a_private_address_is_reached_by_a_name_that_is_marked_as_inside() {
    let stage = Stage::inside(&["vpce.example:8443"], &["vpce.example:8443"]).await;
    stage.resolves("vpce.example", &[&["10.0.0.7"]]);
    stage.plays("10.0.0.7:8443", echo().await);

    let (_, answer) = stage.connect("vpce.example:8443").await;

    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

#[tokio::test]
async fn a_private_address_is_refused_for_every_other_name_and_port() {
    let stage =
        Stage::inside(&["api.example:8443", "api.example:80"], &["api.example:9000", "other.example:8443"]).await;

    for address in ["10.0.0.7", "172.16.0.1", "192.168.1.1", "100.64.0.1", "fd00:aaaa::1", "64:ff9b::a00:7"] {
        stage.resolves("api.example", &[&[PUBLIC, address]]);
        let (_, tunnel) = stage.connect("api.example:8443").await;
        let plain = stage.ask("GET http://api.example/ HTTP/1.1\r\nHost: api.example\r\n\r\n").await;
        for answer in [tunnel, plain] {
            assert!(answer.starts_with("HTTP/1.1 403"), "{address}: {answer}");
        }
    }

    assert!(stage.connected().is_empty(), "{:?}", stage.connected());
    let (word, sentence) = &stage.refused()[0];
    assert_eq!(*word, "inside");
    assert!(sentence.contains("name it in `inside_hosts` of `runner.toml`"), "{sentence}");
}

#[tokio::test]
async fn a_mark_as_inside_permits_neither_a_host_nor_the_machine_itself() {
    let stage = Stage::inside(&["api.example:8443"], &["api.example:8443", "db.example:8443"]).await;
    stage.resolves("db.example", &[&["10.0.0.7"]]);

    for address in ["127.0.0.1", "169.254.169.254", "fd00:ec2::254", "10.0.0.99"] {
        stage.resolves("api.example", &[&[address]]);
        let (_, answer) = stage.connect("api.example:8443").await;
        assert!(answer.starts_with("HTTP/1.1 403"), "{address}: {answer}");
    }
    let (_, answer) = stage.connect("db.example:8443").await;

    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
    assert!(stage.connected().is_empty());
}

#[tokio::test]
async fn a_name_that_turns_private_between_lookup_and_connect_stays_at_its_public_address() {
    let mut stage = Stage::new(&["rebind.example:8443"]).await;
    let pair = stage.serve(Way::Pair("rebind.example:8443".parse().unwrap())).await;
    stage.plays(&format!("{PUBLIC}:8443"), echo().await);
    stage.plays("10.0.0.7:8443", echo().await);
    stage.resolves("rebind.example", &[&[PUBLIC], &["10.0.0.7"]]);

    let (_first, answer) = stage.connect("rebind.example:8443").await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let (_second, answer) = stage.connect("rebind.example:8443").await;
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
    let closed = all(&mut TcpStream::connect(pair).await.unwrap()).await;

    assert_eq!(closed, "");
    assert_eq!(stage.connected(), [format!("{PUBLIC}:8443")]);
}

#[tokio::test]
async fn an_address_is_reached_when_a_rule_names_it_and_never_one_of_the_machine() {
    let stage = Stage::new(&["10.0.0.7:5432", "169.254.169.254:80", "127.0.0.1:80", "*.example.org"]).await;
    stage.plays("10.0.0.7:5432", echo().await);

    let statuses = [
        ("10.0.0.7:5432", "200"),
        ("10.0.0.7:443", "403"),
        ("[::ffff:10.0.0.7]:5432", "403"),
        ("169.254.169.254:80", "403"),
        ("127.0.0.1:80", "403"),
        ("127.1:80", "400"),
        ("2130706433:80", "400"),
    ];
    for (to, status) in statuses {
        let (_, answer) = stage.connect(to).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{to}: {answer}");
    }
}

#[tokio::test]
async fn a_host_that_is_not_permitted_is_not_even_resolved() {
    let stage = Stage::new(&["example.org"]).await;

    let answer =
        stage.ask("CONNECT secret-data.evil.example:443 HTTP/1.1\r\nHost: secret-data.evil.example:443\r\n\r\n").await;

    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
    let sentence = "`secret-data.evil.example:443` is not among the hosts of the accepted contract";
    assert!(answer.contains(sentence) && stage.refused()[0].1.starts_with(sentence), "{answer}");
    assert!(stage.network.resolved.lock().unwrap().is_empty());
}
