//! The issuer of the tenant's people, as the console uses it. A copy of the function reads its document once.

use async_trait::async_trait;
use freehold_app::{AppError, Kind};
use freehold_client::http_builder;
use freehold_sign_in::{Attempt, Begun, Error, Issuer, Settings, Tokens};
use tokio::sync::OnceCell;
use url::Url;

/// Signs people in.
#[async_trait]
pub(crate) trait People: Send + Sync {
    /// Begins a sign-in after which the browser returns to `redirect`.
    async fn begin(&self, redirect: &Url) -> Result<Begun, AppError>;

    /// Ends a sign-in with the query that the browser returned with.
    async fn finish(&self, attempt: &Attempt, query: &str) -> Result<Tokens, AppError>;

    /// Renews tokens; `None` when the person has to sign in again.
    async fn refresh(&self, tokens: &Tokens) -> Result<Option<Tokens>, AppError>;

    /// Revokes the refresh token, where the issuer offers this.
    async fn revoke(&self, tokens: &Tokens) -> Result<(), AppError>;
}

/// The issuer that the tenant's stack names.
pub(crate) struct OidcPeople {
    settings: Settings,
    issuer: OnceCell<Issuer>,
}

impl OidcPeople {
    /// Returns the issuer of these settings, whose document is not read yet.
    pub(crate) const fn new(settings: Settings) -> Self {
        Self { settings, issuer: OnceCell::const_new() }
    }

    async fn issuer(&self) -> Result<&Issuer, AppError> {
        let discover = || Issuer::discover(http_builder(), self.settings.clone());
        self.issuer.get_or_try_init(discover).await.map_err(error_of)
    }
}

#[async_trait]
impl People for OidcPeople {
    async fn begin(&self, redirect: &Url) -> Result<Begun, AppError> {
        self.issuer().await?.begin(redirect).map_err(error_of)
    }

    async fn finish(&self, attempt: &Attempt, query: &str) -> Result<Tokens, AppError> {
        self.issuer().await?.finish(attempt, query).await.map_err(error_of)
    }

    async fn refresh(&self, tokens: &Tokens) -> Result<Option<Tokens>, AppError> {
        match self.issuer().await?.refresh(tokens).await {
            Ok(tokens) => Ok(Some(tokens)),
            Err(Error::Ended | Error::Expired | Error::OtherSubject) => Ok(None),
            Err(error) => Err(error_of(error)),
        }
    }

    async fn revoke(&self, tokens: &Tokens) -> Result<(), AppError> {
        self.issuer().await?.revoke(tokens).await.map(|_| ()).map_err(error_of)
    }
}

/// What the person did may be wrong (the kind Invalid), the issuer may be away, or the tenant's stack may name a wrong
/// issuer.
fn error_of(error: Error) -> AppError {
    let kind = match &error {
        Error::State | Error::NoCode | Error::Refused(_) => Kind::Invalid,
        Error::Unreachable { .. } | Error::Status { .. } => Kind::Transient,
        Error::Ended | Error::Expired | Error::OtherSubject | Error::IdToken(_) => Kind::Unauthorized,
        Error::Address(_)
        | Error::Endpoint(_)
        | Error::OtherIssuer { .. }
        | Error::Http(_)
        | Error::Unreadable { .. }
        | Error::NoIdToken
        | Error::NoDevice(_)
        | Error::CodeExpired
        | Error::Random(_) => Kind::Internal,
    };
    AppError::new(kind, error.to_string())
}
