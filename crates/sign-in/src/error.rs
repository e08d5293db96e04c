//! Why a sign-in or a refresh failed.

use std::fmt;

use serde::Deserialize;

/// The maximum number of characters of a text that the issuer sent.
const LONGEST_TEXT: usize = 300;

/// Why a sign-in or a refresh failed. No message contains a token or a code.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address of the issuer cannot be used.
    #[error("`{0}` is not the address of an issuer; pass one that begins with `https://`")]
    Address(String),
    /// An address in the document of the issuer cannot be used.
    #[error("the issuer names `{0}`, which is not an address with `https://`; use another issuer")]
    Endpoint(String),
    /// The document belongs to another issuer.
    #[error("the document at {address} belongs to the issuer `{named}` and not to `{wanted}`; correct the issuer")]
    OtherIssuer { address: String, named: String, wanted: String },
    /// The HTTP client cannot be made.
    #[error("cannot make an HTTP client: {0}")]
    Http(String),
    /// No answer came.
    #[error("no server responds at {address} ({reason}); check the address and the network")]
    Unreachable { address: String, reason: String },
    /// The issuer answered with a status that is not a success, and without an OAuth error.
    #[error("the issuer answered with status {status} at {address}; check the issuer, or try again later")]
    Status { address: String, status: u16 },
    /// The issuer sent something else than the standard describes.
    #[error("the answer of the issuer at {address} cannot be read ({reason}); check the issuer")]
    Unreadable { address: String, reason: String },
    /// The answer does not have the state of this sign-in.
    #[error("this answer belongs to another sign-in, because its state differs; begin again")]
    State,
    /// The answer has neither a code nor an error.
    #[error("the answer of the issuer has no code; begin again")]
    NoCode,
    /// The issuer refused what was asked for.
    #[error("the issuer refused the sign-in: {0}")]
    Refused(Refusal),
    /// The issuer sent no identity token.
    #[error("the issuer sent no identity token; permit the scope `openid` for this client")]
    NoIdToken,
    /// The identity token is not valid.
    #[error("the identity token is not valid: {0}; begin again")]
    IdToken(IdTokenError),
    /// The refresh token is not valid any more.
    #[error("the login has ended, because the issuer refused to renew it; sign in again")]
    Ended,
    /// The issuer gave no refresh token.
    #[error("the login has expired, and the issuer gave nothing to renew it with; sign in again")]
    Expired,
    /// A refresh returned the token of somebody else.
    #[error("the issuer renewed the login for another person; sign in again")]
    OtherSubject,
    /// The issuer does not offer the device authorization of RFC 8628.
    #[error("the issuer `{0}` does not offer codes for other devices; sign in with a browser")]
    NoDevice(String),
    /// The person did not enter the code of the device in time.
    #[error("the code has expired before anybody entered it; begin again")]
    CodeExpired,
    /// The machine gives no random bytes.
    #[error("cannot read random bytes from this machine: {0}")]
    Random(String),
}

/// What is wrong with an identity token.
#[derive(Debug, thiserror::Error)]
pub enum IdTokenError {
    #[error("it is not signed with a key of the issuer")]
    Key,
    #[error("it has expired, so check the clock of this machine")]
    Expired,
    #[error("another issuer made it")]
    Issuer,
    #[error("it is for another client")]
    Audience,
    #[error("it belongs to another sign-in, because its nonce differs")]
    Nonce,
    #[error("it cannot be read ({0})")]
    Unreadable(String),
}

/// An error of OAuth 2.0 (RFC 6749, section 5.2), as the issuer sent it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Refusal {
    /// The error code, such as `access_denied`.
    #[serde(rename = "error")]
    pub code: String,
    /// The text for people.
    #[serde(rename = "error_description", default)]
    pub description: Option<String>,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", short(&self.code))?;
        self.description.as_ref().map_or(Ok(()), |text| write!(f, " ({})", short(text)))
    }
}

/// Returns the first characters of a text, without control characters.
fn short(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(LONGEST_TEXT).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_one_short_line() {
        let refusal = Refusal { code: "access_denied".to_owned(), description: Some("no\n\u{1b}[31m".to_owned()) };
        let long = Refusal { code: "x".repeat(5000), description: None };

        assert_eq!(refusal.to_string(), "`access_denied` (no[31m)");
        assert_eq!(long.to_string().len(), LONGEST_TEXT + 2);
    }
}
