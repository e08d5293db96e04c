//! A client of the issuer, and a person who signs in with it.

use freehold_sign_in::{Begun, Error, Issuer, Settings, Tokens};
use reqwest::ClientBuilder;

use crate::server::{CLIENT, Server};

impl Server {
    pub(crate) fn settings(&self) -> Settings {
        let issuer = self.state().address.clone();
        Settings { issuer, client_id: CLIENT.to_owned(), discovery_base: None }
    }

    pub(crate) async fn issuer(&self) -> Issuer {
        Issuer::discover(http(), self.settings()).await.unwrap()
    }

    /// Signs in as a browser does: the person agrees at the page of the issuer.
    pub(crate) async fn sign_in(&self, issuer: &Issuer) -> Result<Tokens, Error> {
        let begun = begin(issuer);
        let query = self.agree(&begun.url);
        issuer.finish(&begun.attempt, &query).await
    }
}

pub(crate) fn begin(issuer: &Issuer) -> Begun {
    issuer.begin(&"http://localhost:8976/callback".parse().unwrap()).unwrap()
}

pub(crate) fn http() -> ClientBuilder {
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder()
}
