//! The token that commands call the tenant API with instead of AWS credentials: that of a pipeline, or else that of the
//! login of a person.

mod login_token;
pub(crate) mod logins;
mod pipeline_token;

use std::sync::Arc;

use freehold_client::{TokenKind, TokenSource};
use freehold_sign_in::is_private;
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
        let found = Self::of(profile)?;
        if let Some(found) = &found {
            check_privacy(&found.api, std::env::var("AWS_ENDPOINT_URL").ok().as_deref())?;
        }
        Ok(found)
    }

    fn of(profile: &Profile) -> Result<Option<Self>> {
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

/// Refuses to send a token where others on the network can read it. A local cloud may have addresses without TLS;
/// `endpoint` is the address that all calls to AWS then go to.
fn check_privacy(api: &Url, endpoint: Option<&str>) -> Result<()> {
    if is_private(api) || endpoint.is_some_and(|endpoint| endpoint.starts_with("http://")) {
        return Ok(());
    }
    Err(Error::invalid(format!("a token is not sent to `{api}`, because others on the network can read it there"))
        .or("pass the address of the API that begins with `https://`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_sent_by_tls_or_stays_on_this_machine() {
        let is_sent = |api: &str, endpoint| check_privacy(&api.parse().unwrap(), endpoint).is_ok();

        for api in ["https://api.example", "http://127.0.0.1:8080", "http://abc.execute-api.localhost:4566"] {
            assert!(is_sent(api, None), "{api}");
        }
        for api in ["http://api.example", "http://localhost.evil.example", "http://10.0.0.1:4566"] {
            assert!(!is_sent(api, None) && !is_sent(api, Some("https://vpce.example")), "{api}");
        }
        assert!(is_sent("http://cloud:4566", Some("http://cloud:4566")));
    }
}
