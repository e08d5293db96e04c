//! One attempt to sign in with a browser: what is sent with it, and what the issuer's answer has to match.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use url::{Url, form_urlencoded};

use crate::error::{Error, Refusal};
use crate::secret::Secret;

/// What belongs to one attempt until the browser returns. Whoever stores it, as in a cookie, has to seal it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Attempt {
    /// Ties the answer to this attempt.
    pub state: Secret,
    /// Ties the identity token to this attempt.
    pub nonce: Secret,
    /// Proves at the exchange of the code that this attempt began here (PKCE, RFC 7636).
    pub verifier: Secret,
    /// The address that the browser returns to.
    pub redirect: String,
}

/// The beginning of a sign-in: the page of the issuer to open, and the attempt to keep for its answer.
#[derive(Debug, Clone)]
pub struct Begun {
    pub url: Url,
    pub attempt: Attempt,
}

impl Attempt {
    /// # Errors
    /// Random.
    pub(crate) fn new(redirect: &Url) -> Result<Self, Error> {
        Ok(Self {
            state: Secret::random()?,
            nonce: Secret::random()?,
            verifier: Secret::random()?,
            redirect: redirect.to_string(),
        })
    }

    /// Returns the S256 challenge of the verifier.
    pub(crate) fn challenge(&self) -> String {
        URL_SAFE_NO_PAD.encode(digest(&SHA256, self.verifier.expose().as_bytes()))
    }

    /// Returns whether the query of a redirect has the state of this attempt.
    pub fn is_answered_by(&self, query: &str) -> bool {
        value(query, "state").is_some_and(|state| state == self.state.expose())
    }

    /// Returns the code in the query of a redirect.
    ///
    /// # Errors
    /// State, OtherIssuer, Refused or NoCode.
    pub(crate) fn code(&self, query: &str, issuer: &str) -> Result<Secret, Error> {
        if !self.is_answered_by(query) {
            return Err(Error::State);
        }
        // An issuer that names itself in its answer has to be the one that was asked (RFC 9207).
        if let Some(named) = value(query, "iss").filter(|named| named != issuer) {
            let (address, wanted) = (self.redirect.clone(), issuer.to_owned());
            return Err(Error::OtherIssuer { address, named, wanted });
        }
        if let Some(code) = value(query, "error") {
            return Err(Error::Refused(Refusal { code, description: value(query, "error_description") }));
        }
        value(query, "code").filter(|code| !code.is_empty()).map(Secret::from).ok_or(Error::NoCode)
    }
}

/// Returns the first value of a parameter of a query.
fn value(query: &str, name: &str) -> Option<String> {
    form_urlencoded::parse(query.as_bytes()).find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ISSUER: &str = "https://id.example.com";

    fn attempt() -> Attempt {
        let text = |text: &str| Secret::from(text.to_owned());
        Attempt {
            state: text("st/ate"),
            nonce: text("nonce"),
            // The example of RFC 7636, appendix B.
            verifier: text("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"),
            redirect: "http://localhost:8976/callback".to_owned(),
        }
    }

    #[test]
    fn the_challenge_is_that_of_the_standard() {
        assert_eq!(attempt().challenge(), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
    }

    #[test]
    fn only_an_answer_with_the_state_has_a_code() {
        let code = |query: &str| attempt().code(query, ISSUER).map(|code| code.expose().to_owned());

        assert_eq!(code("code=c%2B1&state=st%2Fate").unwrap(), "c+1");
        assert_eq!(code("code=c&state=st%2Fate&iss=https%3A%2F%2Fid.example.com").unwrap(), "c");
        for query in ["code=c&state=other", "code=c", "", "error=access_denied&state=other"] {
            assert!(matches!(code(query), Err(Error::State)), "{query}");
        }
        for query in ["state=st%2Fate", "state=st%2Fate&code="] {
            assert!(matches!(code(query), Err(Error::NoCode)), "{query}");
        }
        assert!(matches!(code("code=c&state=st%2Fate&iss=https://other"), Err(Error::OtherIssuer { .. })));
    }

    #[test]
    fn an_error_of_the_issuer_has_its_code_and_text() {
        let query = "error=access_denied&error_description=not+you&state=st%2Fate";

        let refused = attempt().code(query, ISSUER).unwrap_err();

        assert_eq!(refused.to_string(), "the issuer refused the sign-in: `access_denied` (not you)");
    }
}
