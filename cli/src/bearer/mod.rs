//! The token that commands call the tenant API with instead of AWS credentials: that of a pipeline, or else that of the
//! login of a person.

mod login_token;
pub(crate) mod logins;
mod pipeline_token;

use std::sync::Arc;

use freehold_client::{TokenKind, TokenSource};
use url::Url;

use crate::api::Profile;
use crate::error::{Error, Result};
use login_token::LoginToken;
use pipeline_token::PipelineToken;

/// A token, and the address of the API that takes it.
#[derive(Debug)]
pub(crate) struct Bearer {
    /// Whose token it is, for people.
    pub(crate) name: String,
    pub(crate) api: Url,
    pub(crate) kind: TokenKind,
    pub(crate) source: Arc<dyn TokenSource>,
}

impl Bearer {
    /// Returns the token for the API of `profile`. Returns `None` when there is neither a token of a pipeline nor a
    /// login for this API: then AWS credentials sign the requests.
    pub(crate) fn find(profile: &Profile) -> Result<Option<Self>> {
        if let Some(token) = PipelineToken::of_environment(|name| std::env::var(name).ok())? {
            let api = profile.api.clone().ok_or_else(|| {
                Error::invalid("with the token of a pipeline, the address of the tenant API has to be given")
                    .or("pass `--api URL`, or set FREEHOLD_API")
            })?;
            let name = "token of a pipeline".to_owned();
            return Ok(Some(Self { name, api, kind: TokenKind::Pipeline, source: Arc::new(token) }));
        }
        let Some(store) = logins::store() else { return Ok(None) };
        let Some(login) = logins::find(&store, profile)? else { return Ok(None) };
        let api = logins::api_of(&login)?;
        let person = &login.tokens.identity;
        let name = format!("login of {}", person.email.as_ref().unwrap_or(&person.subject));
        Ok(Some(Self { name, api, kind: TokenKind::Person, source: Arc::new(LoginToken::new(store, login)) }))
    }
}
