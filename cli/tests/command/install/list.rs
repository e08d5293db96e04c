//! `freehold install list`: its table has the health of the installs once a component was checked.

use serde_json::{Value, json};

use crate::support::{tenant_api, text};

/// Returns an install with this health.
fn install(name: &str, health: &Value) -> Value {
    json!({
        "install": name, "app": "shop", "account": "222222222222", "region": "eu-west-1", "state": "ready",
        "version": format!("sha256:{}", "0".repeat(64)), "health": health,
    })
}

/// Lists these installs, and returns the rows of the table.
fn list(installs: &[Value]) -> Vec<String> {
    let api = tenant_api::of_answers(vec![("/v1/installs", json!({ "items": installs }))]);
    let place = tempfile::tempdir().unwrap();
    let done = tenant_api::freehold(&api, place.path(), &["install", "list"]).output().unwrap();
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    text(&done.stdout).lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn the_health_is_a_column_once_an_install_has_one() {
    let unhealthy = json!({ "state": "unhealthy", "since": 1_795_250_000_000_u64 });
    let [globex, initech] = [install("globex", &unhealthy), install("initech", &Value::Null)];

    let both = list(&[globex, initech.clone()]);
    let unchecked = list(&[initech]);

    assert_eq!(
        both,
        [
            "INSTALL APP STATE CONNECTION HEALTH VERSION ACCOUNT REGION LAST REPORT",
            "globex shop ready unhealthy 000000000000 222222222222 eu-west-1",
            "initech shop ready 000000000000 222222222222 eu-west-1",
        ]
    );
    assert_eq!(unchecked[0], "INSTALL APP STATE CONNECTION VERSION ACCOUNT REGION LAST REPORT");
}
