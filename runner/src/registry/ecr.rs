//! Repositories of Amazon ECR: the address and the login come from `ecr:GetAuthorizationToken`.

use aws_types::SdkConfig;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use zeroize::Zeroizing;

use freehold_oci::{Login, RegistryError, Repository, client};

/// Returns the repository `name` in the registry of the account of `sdk`'s credentials. The login is valid for 12
/// hours, which is longer than any job.
///
/// # Errors
/// [`RegistryError::Login`] when ECR does not return a login.
pub async fn repository(sdk: &SdkConfig, name: &str) -> Result<Repository, RegistryError> {
    let (login, address) = login(sdk).await?;
    Repository::new(client()?, &address, name, login)
}

/// Returns the login to the registry of the account of `sdk`'s credentials, and the address of that registry.
///
/// # Errors
/// [`RegistryError::Login`] when ECR does not return a login.
pub async fn login(sdk: &SdkConfig) -> Result<(Login, String), RegistryError> {
    let answer = aws_sdk_ecr::Client::new(sdk)
        .get_authorization_token()
        .send()
        .await
        .map_err(|error| RegistryError::Login(crate::aws::explain(&error)))?;
    let data = answer.authorization_data().first().ok_or_else(|| missing("login"))?;
    let address = data.proxy_endpoint().ok_or_else(|| missing("address"))?;
    let login = decode(data.authorization_token().ok_or_else(|| missing("token"))?)?;
    Ok((login, address.to_owned()))
}

fn missing(what: &str) -> RegistryError {
    RegistryError::Login(format!("the response has no {what}"))
}

/// Returns the login in `token`: base64 of `user:password` (Amazon ECR API, `AuthorizationData`).
fn decode(token: &str) -> Result<Login, RegistryError> {
    let bytes = Zeroizing::new(STANDARD.decode(token).map_err(|_| missing("readable token"))?);
    let text = std::str::from_utf8(&bytes).map_err(|_| missing("readable token"))?;
    let (user, password) = text.split_once(':').ok_or_else(|| missing("readable token"))?;
    Ok(Login::Basic { user: user.to_owned(), password: Zeroizing::new(password.to_owned()), token_hosts: Vec::new() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_a_user_and_a_password() {
        let login = decode(&STANDARD.encode("AWS:a:b")).expect("login");

        let Login::Basic { user, password, .. } = login else { panic!("basic") };
        assert_eq!((user.as_str(), password.as_str()), ("AWS", "a:b"));
    }
}
