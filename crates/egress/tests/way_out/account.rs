//! Hosts of the customer's account, which no rule names.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use freehold_egress::{AccountHosts, Scope};

use crate::stage::{PUBLIC, Stage, echo};

/// An account with one private host and one public one. It keeps the names that it was asked for.
#[derive(Debug, Default, Clone)]
struct Account {
    asked: Arc<Mutex<Vec<String>>>,
}

#[async_trait]
impl AccountHosts for Account {
    async fn find(&self, name: &str) -> Result<Option<Scope>, String> {
        self.asked.lock().unwrap().push(name.to_owned());
        match name {
            "own.example" => Ok(Some(Scope::Private)),
            "other.example" => Ok(Some(Scope::Public)),
            "unknown.example" => Err("EKS did not answer; try again".to_owned()),
            _ => Ok(None),
        }
    }
}

#[tokio::test]
async fn a_host_of_the_account_is_reached_in_the_networks_in_which_it_may_be() {
    let stage = Stage::of_account(Account::default()).await;
    for address in ["10.0.0.7:443".to_owned(), format!("{PUBLIC}:443")] {
        stage.plays(&address, echo().await);
    }

    for (name, address, answer) in [
        ("own.example", "10.0.0.7", "HTTP/1.1 200"),
        ("own.example", "127.0.0.1", "HTTP/1.1 403"),
        ("other.example", PUBLIC, "HTTP/1.1 200"),
        ("other.example", "10.0.0.7", "HTTP/1.1 403"),
        ("stranger.example", PUBLIC, "HTTP/1.1 403"),
    ] {
        stage.resolves(name, &[&[address]]);
        let (_, head) = stage.connect(&format!("{name}:443")).await;
        assert!(head.starts_with(answer), "{name} at {address}: {head}");
    }

    assert_eq!(stage.connected(), ["10.0.0.7:443".to_owned(), format!("{PUBLIC}:443")]);
}

#[tokio::test]
async fn an_account_that_cannot_be_asked_refuses_with_its_reason() {
    let stage = Stage::of_account(Account::default()).await;

    let (_, head) = stage.connect("unknown.example:443").await;

    assert!(head.starts_with("HTTP/1.1 502"), "{head}");
    let (word, reason) = stage.refused().remove(0);
    assert_eq!(word, "account");
    assert!(reason.contains("`unknown.example:443`") && reason.contains("EKS did not answer"), "{reason}");
}

#[tokio::test]
async fn the_account_is_asked_only_about_names_behind_tls() {
    let account = Account::default();
    let stage = Stage::of_account(account.clone()).await;

    let _ = stage.connect("own.example:8443").await;
    let _ = stage.connect("10.0.0.7:443").await;
    let plain = stage.ask("GET http://own.example/ HTTP/1.1\r\nHost: own.example\r\n\r\n").await;

    assert!(plain.starts_with("HTTP/1.1 403"), "{plain}");
    assert_eq!(stage.refused().len(), 3);
    assert!(account.asked.lock().unwrap().is_empty());
}
