//! The checks of identity tokens.

use freehold_sign_in::{Error, IdTokenError};
use serde_json::{Value, json};

use crate::server::{Server, SigningKey};

/// Returns why a token with these claims and this header is refused.
async fn refused(claims: Value, header: Value) -> IdTokenError {
    let server = Server::start();
    server.state().claims = claims;
    server.state().header = header;
    let issuer = server.issuer().await;
    match server.sign_in(&issuer).await {
        Err(Error::IdToken(wrong)) => wrong,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("the token is accepted"),
    }
}

#[tokio::test]
async fn a_token_of_another_issuer_client_or_sign_in_is_refused() {
    let of = |claims: Value| refused(claims, json!({}));

    assert!(matches!(of(json!({ "iss": "https://other.example.com" })).await, IdTokenError::Issuer));
    assert!(matches!(of(json!({ "aud": "another" })).await, IdTokenError::Audience));
    assert!(matches!(of(json!({ "aud": ["another", "third"] })).await, IdTokenError::Audience));
    assert!(matches!(of(json!({ "azp": "another" })).await, IdTokenError::Audience));
    assert!(matches!(of(json!({ "nonce": "another" })).await, IdTokenError::Nonce));
    assert!(matches!(of(json!({ "nonce": null })).await, IdTokenError::Nonce));
}

#[tokio::test]
async fn a_token_that_has_expired_or_never_expires_is_refused() {
    let of = |claims: Value| refused(claims, json!({}));

    assert!(matches!(of(json!({ "exp": 1_700_000_000 })).await, IdTokenError::Expired));
    for claim in ["exp", "iss", "aud", "sub"] {
        assert!(matches!(of(json!({ claim: null })).await, IdTokenError::Unreadable(_)), "{claim}");
    }
    assert!(matches!(of(json!({ "exp": "tomorrow" })).await, IdTokenError::Unreadable(_)));
    assert!(matches!(of(json!({ "nbf": 9_000_000_000_u64 })).await, IdTokenError::Unreadable(_)));
}

#[tokio::test]
async fn a_token_without_a_signature_of_the_issuer_is_refused() {
    let of = |header: Value| refused(json!({}), header);

    assert!(matches!(of(json!({ "alg": "none" })).await, IdTokenError::Unreadable(_)));
    // The public key of the issuer as the secret of an HMAC, which anybody could compute.
    assert!(matches!(of(json!({ "alg": "HS256" })).await, IdTokenError::Key));
    assert!(matches!(of(json!({ "alg": "RS256" })).await, IdTokenError::Key));
    assert!(matches!(of(json!({ "kid": "unknown" })).await, IdTokenError::Key));
    assert!(matches!(of(json!({ "crit": ["exp"] })).await, IdTokenError::Unreadable(_)));
}

#[tokio::test]
async fn a_token_that_another_key_signed_under_the_same_name_is_refused() {
    let server = Server::start();
    let issuer = server.issuer().await;
    server.sign_in(&issuer).await.unwrap();
    let published = server.published();
    server.state().signer = SigningKey::new("one");
    server.state().published = Some(published);

    let ended = server.sign_in(&issuer).await.unwrap_err();

    assert!(matches!(ended, Error::IdToken(IdTokenError::Key)), "{ended}");
}

#[tokio::test]
async fn a_new_key_of_the_issuer_is_read_when_a_token_needs_it() {
    let server = Server::start();
    let issuer = server.issuer().await;
    server.sign_in(&issuer).await.unwrap();
    server.sign_in(&issuer).await.unwrap();
    server.state().signer = SigningKey::new("two");

    server.sign_in(&issuer).await.unwrap();

    let asked = server.state().asked.iter().filter(|path| *path == "/keys").count();
    assert_eq!(asked, 2);
}

#[tokio::test]
async fn a_key_of_an_unknown_kind_does_not_hide_the_others() {
    let server = Server::start();
    let mut keys = server.published();
    keys.as_array_mut().unwrap().insert(0, json!({ "kty": "future", "kid": "one", "strength": 9 }));
    server.state().published = Some(keys);
    let issuer = server.issuer().await;

    assert_eq!(server.sign_in(&issuer).await.unwrap().identity.subject, "ana");
}

#[tokio::test]
async fn a_token_without_the_name_of_its_key_is_checked_with_all_keys() {
    let server = Server::start();
    server.state().header = json!({ "kid": null });
    let issuer = server.issuer().await;

    assert_eq!(server.sign_in(&issuer).await.unwrap().identity.subject, "ana");
}

#[tokio::test]
async fn a_refresh_for_another_person_is_refused() {
    let server = Server::start();
    let issuer = server.issuer().await;
    let tokens = server.sign_in(&issuer).await.unwrap();
    server.state().claims = json!({ "sub": "ben" });

    let ended = issuer.refresh(&tokens).await.unwrap_err();

    assert!(matches!(ended, Error::OtherSubject), "{ended}");
}
