//! The sign-in with a browser, and the document of the issuer.

use freehold_sign_in::{Error, Issuer, Settings};
use serde_json::json;

use crate::client::{begin, http};
use crate::server::{CLIENT, Server};

#[tokio::test]
async fn a_person_signs_in_and_a_refresh_keeps_the_newest_refresh_token() {
    let server = Server::start();
    let issuer = server.issuer().await;

    let first = server.sign_in(&issuer).await.unwrap();
    let second = issuer.refresh(&first).await.unwrap();
    let again = issuer.refresh(&first).await.unwrap_err();

    assert_eq!((first.identity.subject.as_str(), first.identity.email.as_deref()), ("ana", Some("ana@example.com")));
    assert_eq!((first.access.expose(), second.access.expose()), ("access-0", "access-1"));
    assert_eq!(second.refresh.as_ref().unwrap().expose(), "refresh-1");
    assert!(!first.expire_within(3500) && first.expire_within(3601));
    assert!(matches!(again, Error::Ended), "{again}");
    assert_eq!(issuer.scopes(), "openid email offline_access");
}

#[tokio::test]
async fn an_answer_with_another_state_sends_no_code() {
    let server = Server::start();
    let issuer = server.issuer().await;
    let (mine, other) = (begin(&issuer), begin(&issuer));

    let ended = issuer.finish(&mine.attempt, &server.agree(&other.url)).await.unwrap_err();

    assert!(matches!(ended, Error::State), "{ended}");
    assert_eq!(server.state().asked, ["/.well-known/openid-configuration"]);
}

#[tokio::test]
async fn a_code_of_another_attempt_is_useless_without_its_verifier() {
    let server = Server::start();
    let issuer = server.issuer().await;
    let (mine, other) = (begin(&issuer), begin(&issuer));
    let mut mixed = mine.attempt.clone();
    mixed.state = other.attempt.state.clone();

    let ended = issuer.finish(&mixed, &server.agree(&other.url)).await.unwrap_err();

    assert_eq!(ended.to_string(), "the issuer refused the sign-in: `invalid_grant`");
}

#[tokio::test]
async fn a_person_who_declines_is_named_with_the_reason_of_the_issuer() {
    let server = Server::start();
    let issuer = server.issuer().await;
    let begun = begin(&issuer);
    let query = format!("error=access_denied&state={}", begun.attempt.state.expose());

    let ended = issuer.finish(&begun.attempt, &query).await.unwrap_err();

    assert_eq!(ended.to_string(), "the issuer refused the sign-in: `access_denied`");
}

#[tokio::test]
async fn a_revoked_refresh_token_renews_nothing() {
    let server = Server::start();
    let issuer = server.issuer().await;
    let tokens = server.sign_in(&issuer).await.unwrap();

    let is_revoked = issuer.revoke(&tokens).await.unwrap();
    let ended = issuer.refresh(&tokens).await.unwrap_err();

    assert!(is_revoked);
    assert!(matches!(ended, Error::Ended), "{ended}");
}

#[tokio::test]
async fn an_issuer_without_revocation_revokes_nothing() {
    let server = Server::start();
    server.state().document = json!({ "revocation_endpoint": null });
    let issuer = server.issuer().await;
    let tokens = server.sign_in(&issuer).await.unwrap();

    assert!(!issuer.revoke(&tokens).await.unwrap());
}

#[tokio::test]
async fn the_document_has_to_belong_to_the_issuer_wherever_it_is_read() {
    let server = Server::start();
    let address = server.state().address.clone();
    let settings = |issuer: &str| Settings {
        issuer: issuer.to_owned(),
        client_id: CLIENT.to_owned(),
        discovery_base: Some(address.parse().unwrap()),
    };
    let pool = "https://cognito-idp.eu-west-1.amazonaws.com/pool";

    let other = Issuer::discover(http(), settings(pool)).await.unwrap_err();
    server.state().document = json!({ "issuer": pool });
    server.state().claims = json!({ "iss": pool });
    let issuer = Issuer::discover(http(), settings(pool)).await.unwrap();
    let tokens = server.sign_in(&issuer).await.unwrap();

    assert!(matches!(other, Error::OtherIssuer { .. }), "{other}");
    assert_eq!(tokens.identity.subject, "ana");
}

#[tokio::test]
async fn an_endpoint_that_is_not_encrypted_is_refused() {
    let server = Server::start();
    server.state().document = json!({ "token_endpoint": "http://id.example.com/token" });

    let refused = Issuer::discover(http(), server.settings()).await.unwrap_err();

    assert!(matches!(refused, Error::Endpoint(_)), "{refused}");
}
