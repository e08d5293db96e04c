//! Where the logins of a person are on this machine, and which of them is for the API that a command calls.

use std::path::PathBuf;

use freehold_sign_in::{Login, Store};
use url::Url;

use crate::api::Profile;
use crate::error::{Error, Result};

/// Returns the logins of this person; `None` when the environment names no directory for them.
pub(crate) fn store() -> Option<Store> {
    directory(|name| std::env::var(name).ok()).map(Store::new)
}

/// Returns the logins of this person.
///
/// # Errors
/// When the environment names no directory for them.
pub(crate) fn required_store() -> Result<Store> {
    store().ok_or_else(|| {
        Error::invalid("there is no directory for a login").or("set HOME, or XDG_STATE_HOME to an absolute path")
    })
}

/// Returns the directory of the logins: below `XDG_STATE_HOME`, or else below `~/.local/state`.
fn directory(variable: impl Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let path = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = path("XDG_STATE_HOME").or_else(|| path("HOME").map(|home| home.join(".local/state")));
    state.map(|state| state.join("freehold/logins"))
}

/// Returns the login for the API or the tenant of `profile`.
pub(crate) fn find(store: &Store, profile: &Profile) -> Result<Option<Login>> {
    let Some(tenant) = &profile.tenant else {
        return Ok(profile.api.as_ref().map(|api| store.load(api)).transpose()?.flatten());
    };
    if let Some(api) = &profile.api {
        return Ok(store.load(api)?);
    }
    let mut logins: Vec<Login> = store.all()?;
    logins.retain(|login| login.tenant.as_ref() == Some(tenant));
    if logins.len() > 1 {
        let wrong = Error::conflict(format!("there are {} logins for tenants called `{tenant}`", logins.len()));
        return Err(wrong.or("pass the address of the API in `--api`, or `--as-aws` to use AWS credentials"));
    }
    Ok(logins.pop())
}

/// Returns the address of the API that a login is for.
pub(crate) fn api_of(login: &Login) -> Result<Url> {
    login.api.parse().map_err(|_| {
        Error::invalid(format!("a login is for `{}`, which is not the address of an API", login.api))
            .or("run `freehold login` again")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logins_are_below_the_state_directory_of_the_person() {
        let of = |xdg: Option<&str>, home: Option<&str>| {
            let variable = |name: &str| match name {
                "HOME" => home.map(str::to_owned),
                _ => xdg.map(str::to_owned),
            };
            directory(variable).map(|path| path.display().to_string())
        };

        assert_eq!(of(Some("/state"), Some("/home/ana")).as_deref(), Some("/state/freehold/logins"));
        assert_eq!(of(None, Some("/home/ana")).as_deref(), Some("/home/ana/.local/state/freehold/logins"));
        assert_eq!(of(Some("state"), Some("/home/ana")).as_deref(), Some("/home/ana/.local/state/freehold/logins"));
        assert_eq!(of(None, None), None);
    }
}
