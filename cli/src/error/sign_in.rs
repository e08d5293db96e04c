//! Converts errors of a sign-in and of kept logins to errors of the command.

use freehold_sign_in::{Error as SignInError, StoreError};

use super::api::LOGIN;
use super::{Error, Kind, chain};

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Issuer(error) => error.into(),
            StoreError::SignedOut { .. } => Self::denied(error.to_string()).or(LOGIN),
            StoreError::File { .. } => Self::invalid(error.to_string()),
            StoreError::Exposed { .. } | StoreError::Unreadable { .. } => {
                let error = Self::invalid(error.to_string());
                error.or("remove it and run `freehold login`, or pass `--as-aws` to use AWS credentials")
            }
        }
    }
}

impl From<SignInError> for Error {
    fn from(error: SignInError) -> Self {
        let text = chain(&error);
        match error {
            SignInError::Unreachable { .. } => {
                Self::quoting(Kind::Transient, text.replace("; check the address and the network", ""))
                    .or("check the address of the issuer and the network")
            }
            SignInError::Status { status: 500.., .. } => Self::transient(text),
            // This text is that of another server.
            SignInError::Refused(_) => {
                Self::quoting(Kind::Denied, text).or("sign in again, or ask the person who administers the issuer")
            }
            SignInError::Ended | SignInError::Expired | SignInError::OtherSubject => Self::denied(text).or(LOGIN),
            SignInError::State | SignInError::NoCode | SignInError::IdToken(_) | SignInError::CodeExpired => {
                Self::denied(text).or("run `freehold login` again")
            }
            SignInError::NoDevice(_) => Self::invalid(text)
                .or("run `freehold login`, or on a machine without a browser `freehold login --no-browser`"),
            SignInError::Address(_)
            | SignInError::Endpoint(_)
            | SignInError::OtherIssuer { .. }
            | SignInError::NoIdToken
            | SignInError::Status { .. } => Self::invalid(text),
            SignInError::Unreadable { .. } | SignInError::Http(_) | SignInError::Random(_) => Self::internal(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_a_sign_in_has_a_kind_and_a_way_out_of_the_command() {
        let lost = SignInError::Unreachable { address: "https://a.com".to_owned(), reason: "refused".to_owned() };
        let api = "https://abc.example.com".to_owned();
        let path = std::path::PathBuf::from("/state/login.json");

        for (error, code) in [
            (Error::from(lost), 5),
            (Error::from(SignInError::Ended), 6),
            (Error::from(SignInError::State), 6),
            (Error::from(SignInError::NoDevice("https://a.com".to_owned())), 2),
            (Error::from(SignInError::Address("a".to_owned())), 2),
            (Error::from(StoreError::SignedOut { api }), 6),
            (Error::from(StoreError::Exposed { path }), 2),
        ] {
            assert_eq!(error.kind().exit_code(), code, "{error}");
            assert!(error.way_out().is_some(), "{error}");
        }
    }
}
