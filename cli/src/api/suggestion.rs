//! Suggests the most similar name when an install or an app does not exist.

use freehold_client::calls;
use freehold_template::nearest;

use super::Api;
use crate::error::{Error, Kind};

impl Api {
    /// Adds the most similar name to the error about an install or app that does not exist. The path or the body of the
    /// request names this install or app.
    pub(super) async fn with_nearest(&self, error: Error) -> Error {
        let text = error.to_string();
        let Some((noun, name)) = absent(&text).filter(|_| error.kind() == Kind::NotFound) else { return error };
        let names = self.names(noun).await;
        let noun = noun.as_str();
        match nearest(name, names.iter().map(String::as_str)) {
            Some(near) => error.or(format!("did you mean `{near}`? `freehold {noun} list` shows all names")),
            None => error,
        }
    }

    /// Returns the names of all installs or apps. Returns none after an error, so that the user sees the error about the
    /// name.
    async fn names(&self, noun: Noun) -> Vec<String> {
        match noun {
            Noun::Install => {
                let all = self.client.all(calls::list_installs()).await;
                all.map(|all| all.items.iter().map(|one| one.install.to_string()).collect()).unwrap_or_default()
            }
            Noun::App => {
                let all = self.client.all(calls::list_apps()).await;
                all.map(|all| all.items.iter().map(|one| one.app.to_string()).collect()).unwrap_or_default()
            }
        }
    }
}

/// A kind of resource that has a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Noun {
    Install,
    App,
}

impl Noun {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Install => "install",
            Self::App => "app",
        }
    }
}

/// Returns the install or app that, according to this message, does not exist.
fn absent(message: &str) -> Option<(Noun, &str)> {
    [Noun::Install, Noun::App].into_iter().find_map(|noun| {
        let (name, rest) = message.strip_prefix(noun.as_str())?.strip_prefix(" `")?.split_once('`')?;
        rest.starts_with(" does not exist").then_some((noun, name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_absent_install_or_app_has_a_nearest_name() {
        let message = "app `my-ap` does not exist; sync it with `freehold app sync DIR`";

        assert_eq!(absent(message), Some((Noun::App, "my-ap")));
        assert_eq!(absent("install `globx` does not exist; `x`"), Some((Noun::Install, "globx")));
        assert_eq!(absent("app `web` has no version `9`"), None);
        assert_eq!(absent("release `1` of app `web` does not exist"), None);
    }
}
