//! The sign-in with a code on another device.

use std::time::Duration;

use freehold_sign_in::Error;
use serde_json::{Value, json};

use crate::server::Server;

fn refusal(code: &str) -> (u16, Value) {
    (400, json!({ "error": code }))
}

#[tokio::test]
async fn a_device_waits_slows_down_and_gets_tokens() {
    let server = Server::start();
    server.state().claims = json!({ "nonce": null });
    server.state().device.extend([refusal("authorization_pending"), refusal("slow_down")]);
    let issuer = server.issuer().await;
    let mut device = issuer.device().await.unwrap();

    let pending = issuer.poll(&mut device).await.unwrap();
    let before = device.interval;
    let slower = issuer.poll(&mut device).await.unwrap();
    let tokens = issuer.poll(&mut device).await.unwrap().unwrap();

    assert_eq!((device.user_code.as_str(), device.valid), ("ABCD-EFGH", Duration::from_secs(600)));
    assert!(pending.is_none() && slower.is_none());
    assert_eq!((before, device.interval), (Duration::from_secs(1), Duration::from_secs(6)));
    assert_eq!(tokens.identity.subject, "ana");
}

#[tokio::test]
async fn a_device_ends_when_the_person_declines_or_the_code_expires() {
    let server = Server::start();
    server.state().device.extend([refusal("access_denied"), refusal("expired_token")]);
    let issuer = server.issuer().await;
    let mut device = issuer.device().await.unwrap();

    let declined = issuer.poll(&mut device).await.unwrap_err();
    let expired = issuer.poll(&mut device).await.unwrap_err();

    assert_eq!(declined.to_string(), "the issuer refused the sign-in: `access_denied`");
    assert!(matches!(expired, Error::CodeExpired), "{expired}");
}

#[tokio::test]
async fn an_issuer_without_codes_for_devices_is_named() {
    let server = Server::start();
    server.state().document = json!({ "device_authorization_endpoint": null });
    let issuer = server.issuer().await;

    let refused = issuer.device().await.unwrap_err();

    assert!(matches!(refused, Error::NoDevice(_)), "{refused}");
    assert!(refused.to_string().ends_with("does not offer codes for other devices; sign in with a browser"));
}
