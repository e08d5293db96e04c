//! The access token of a login, which is renewed before it expires.

use async_trait::async_trait;
use freehold_client::{Error as ClientError, Token, TokenSource};
use freehold_sign_in::{Error as SignInError, Login, Store, StoreError};
use tokio::sync::Mutex;

use crate::error::chain;

/// The login of a person, and the files that it is kept in.
#[derive(Debug)]
pub(super) struct LoginToken {
    store: Store,
    login: Mutex<Login>,
}

impl LoginToken {
    pub(super) fn new(store: Store, login: Login) -> Self {
        Self { store, login: Mutex::new(login) }
    }
}

#[async_trait]
impl TokenSource for LoginToken {
    async fn token(&self) -> Result<Token, ClientError> {
        let mut login = self.login.lock().await;
        let endpoint = std::env::var("AWS_ENDPOINT_URL").ok();
        let fresh = self.store.fresh(&login, crate::api::http_builder(), endpoint.as_deref()).await;
        *login = fresh.map_err(|error| match error {
            StoreError::Issuer(SignInError::Unreachable { address, reason }) => {
                ClientError::Unreachable { address, reason }
            }
            other => ClientError::Token(chain(&other)),
        })?;
        Token::new(login.tokens.access.expose())
    }
}
