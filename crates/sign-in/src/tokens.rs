//! The tokens of a person who is signed in.

use std::time::{SystemTime, UNIX_EPOCH};

use freehold_protocol::Timestamp;
use serde::{Deserialize, Serialize};

use crate::secret::Secret;

/// How long an access token is used whose answer does not state how long it is valid.
const UNSTATED_SECS: u64 = 300;

/// The person as the identity token describes them. Only `subject` identifies them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The claim `sub`: unique and constant at its issuer.
    pub subject: String,
    /// The mail address, only to show it to people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
}

/// The tokens of a person who is signed in.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Tokens {
    /// The token that the API takes.
    pub access: Secret,
    /// The token that renews the others; `None` when the issuer gave none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refresh: Option<Secret>,
    /// The end of the access token.
    pub expires_at: Timestamp,
    pub identity: Identity,
}

impl Tokens {
    /// Returns whether the access token expires within `secs` seconds.
    pub fn expire_within(&self, secs: u64) -> bool {
        self.expires_at <= now().plus_secs(secs)
    }
}

/// The answer of the token endpoint.
#[derive(Deserialize)]
pub(crate) struct TokenAnswer {
    pub(crate) access_token: Secret,
    #[serde(default)]
    pub(crate) refresh_token: Option<Secret>,
    #[serde(default)]
    pub(crate) id_token: Option<Secret>,
    #[serde(default)]
    expires_in: Option<u64>,
    token_type: String,
}

impl TokenAnswer {
    /// Returns the end of the access token, if the answer came now.
    pub(crate) fn expires_at(&self) -> Timestamp {
        now().plus_secs(self.expires_in.unwrap_or(UNSTATED_SECS))
    }

    /// Returns whether whoever has the access token may use it.
    pub(crate) fn is_bearer(&self) -> bool {
        self.token_type.eq_ignore_ascii_case("bearer")
    }
}

/// Returns the current time.
pub(crate) fn now() -> Timestamp {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_millis(u64::try_from(now.as_millis()).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_debug_text_contains_no_token() {
        let secret = |text: &str| Secret::from(text.to_owned());
        let identity = Identity { subject: "ana".to_owned(), email: None };
        let tokens =
            Tokens { access: secret("a-1"), refresh: Some(secret("r-1")), expires_at: Timestamp::default(), identity };

        let text = format!("{tokens:?}");

        assert!(!text.contains("a-1") && !text.contains("r-1"), "{text}");
        assert!(text.contains("ana") && tokens.expire_within(0));
    }
}
