//! Checks an identity token (OpenID Connect Core 1.0, section 3.1.3.7).

use jsonwebtoken::errors::{Error as JwtError, ErrorKind};
use jsonwebtoken::{Validation, decode, decode_header};
use serde::Deserialize;

use crate::error::IdTokenError;
use crate::keys::{Key, Keys, use_ring};
use crate::tokens::Identity;

/// The seconds by which the clocks of the issuer and of this machine may differ.
const LEEWAY_SECS: u64 = 60;

/// What an identity token has to state.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Expected<'a> {
    pub(crate) issuer: &'a str,
    pub(crate) client: &'a str,
    /// `None` after a refresh, whose token need not have the nonce of the sign-in.
    pub(crate) nonce: Option<&'a str>,
}

#[derive(Debug, Deserialize)]
struct Claims {
    sub: String,
    #[serde(default)]
    email: Option<String>,
    #[serde(default)]
    nonce: Option<String>,
    /// The client that the token was issued to, when the token names it.
    #[serde(default)]
    azp: Option<String>,
}

/// Returns the person whom a valid identity token describes.
///
/// # Errors
/// Key when none of `keys` signed it: the issuer may have newer keys. Each other error is final.
pub(crate) fn identity(token: &str, keys: &Keys, expected: Expected<'_>) -> Result<Identity, IdTokenError> {
    use_ring();
    let header = decode_header(token).map_err(|error| wrong(&error))?;
    if header.crit.is_some() {
        return Err(IdTokenError::Unreadable("its header has extensions".to_owned()));
    }
    for key in keys.matching(header.kid.as_deref(), header.alg) {
        match decode::<Claims>(token, &key.key, &validation(key, expected)) {
            Ok(data) => return checked(data.claims, expected),
            Err(error) if matches!(error.kind(), ErrorKind::InvalidSignature) => {}
            Err(error) => return Err(wrong(&error)),
        }
    }
    Err(IdTokenError::Key)
}

fn validation(key: &Key, expected: Expected<'_>) -> Validation {
    let mut validation = Validation::new(key.algorithm);
    validation.leeway = LEEWAY_SECS;
    validation.validate_nbf = true;
    validation.set_issuer(&[expected.issuer]);
    validation.set_audience(&[expected.client]);
    validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
    validation
}

fn checked(claims: Claims, expected: Expected<'_>) -> Result<Identity, IdTokenError> {
    if expected.nonce.is_some_and(|nonce| claims.nonce.as_deref() != Some(nonce)) {
        return Err(IdTokenError::Nonce);
    }
    if claims.azp.is_some_and(|client| client != expected.client) {
        return Err(IdTokenError::Audience);
    }
    if claims.sub.is_empty() {
        return Err(IdTokenError::Unreadable("its claim `sub` is empty".to_owned()));
    }
    Ok(Identity { subject: claims.sub, email: claims.email })
}

fn wrong(error: &JwtError) -> IdTokenError {
    match error.kind() {
        ErrorKind::ExpiredSignature => IdTokenError::Expired,
        ErrorKind::InvalidIssuer => IdTokenError::Issuer,
        ErrorKind::InvalidAudience => IdTokenError::Audience,
        _ => IdTokenError::Unreadable(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    // A key of RSA and a token that it signed, valid until 2100.
    const MODULUS: &str = concat!(
        "8bewi0gVh_kg9WAtf92Ck6E6CWF-3FqOU0jCTYhUAqNtsYBirFiFf6GPn6rJpQEuxBe-WTDpR3f95ysSf_kDbgVQSuZCWVV3",
        "rNKcASMU7wSjUu78NhHM7i4frJMCyIOzD7Im1owjDK1RLMrhJsoOYyHSbSvDauin8bylVMz-5qUqzRWR_-_FC-w3tvR4mI5t",
        "rZppRvayodBr94_Vh21uKM3v_64unOe2CzYNRre9fw0fl7rLVBZm0b0mGlenOgfKG6nq-soXzmPixy2NM3hMDyWbn45G7wKZ",
        "GD1zgkUWKzH9Q68qZwlKsFrYKwtGAklGZ8nFPBXr1c109dVaggtvYw",
    );
    const MESSAGE: &str = concat!(
        "eyJhbGciOiAiUlMyNTYiLCAia2lkIjogInIifQ.eyJpc3MiOiAiaHR0cHM6Ly9pZC5leGFtcGxlLmNvbSIsICJhdWQiOiAiY",
        "29tbWFuZCIsICJzdWIiOiAiYW5hIiwgIm5vbmNlIjogIm4iLCAiZXhwIjogNDEwMjQ0NDgwMH0",
    );
    const SIGNATURE: &str = concat!(
        "nLGEubnmnwsw1hBK1lKpvD9RUNgVtmyBRxnZlYOlDGC0DST9rEC18cfuvp03xdoPoxz8A-Y3hhGpck30mpfjWeL7whY__SCq",
        "Hlbog4PA0Zwnp6RKGc_tDSdaU-_chYrTQH-1MDD43zr016w2oevfhUNjWzyJftftQnQvJEIprZAwpAT_E9AK4DYlhsegAMpk",
        "nepfgkSnKPBpVNbOTG5REJ5d5-WCiTVj4coQbMWNLQz6K5GykhTVZLyCm6iPGbGbaMMIQzd4frepAY_BGINB0HirmejtqkqL",
        "NI5OJNaOSG_nsJ27-3eVorS2yK_eQRuQ_Ru0pGwUniAyIFJUbUQgSw",
    );

    const EXPECTED: Expected<'static> =
        Expected { issuer: "https://id.example.com", client: "command", nonce: Some("n") };

    fn keys(algorithm: &str) -> Keys {
        let key = json!({ "kty": "RSA", "kid": "r", "alg": algorithm, "n": MODULUS, "e": "AQAB" });
        Keys::of(serde_json::from_value(json!({ "keys": [key] })).unwrap())
    }

    #[test]
    fn a_token_that_a_key_of_rsa_signed_names_its_person() {
        let token = format!("{MESSAGE}.{SIGNATURE}");

        let person = identity(&token, &keys("RS256"), EXPECTED).unwrap();

        assert_eq!(person, Identity { subject: "ana".to_owned(), email: None });
    }

    #[test]
    fn a_changed_signature_and_a_key_for_something_else_are_refused() {
        let token = |signature: &str| format!("{MESSAGE}.{signature}");
        let changed = SIGNATURE.replacen('n', "o", 1);
        let of = |token: &str, algorithm: &str| identity(token, &keys(algorithm), EXPECTED);

        assert!(matches!(of(&token(&changed), "RS256"), Err(IdTokenError::Key)));
        assert!(matches!(of(&token(""), "RS256"), Err(IdTokenError::Key)));
        assert!(matches!(of(&token(SIGNATURE), "RSA-OAEP"), Err(IdTokenError::Key)));
        assert!(matches!(of("text", "RS256"), Err(IdTokenError::Unreadable(_))));
    }
}
