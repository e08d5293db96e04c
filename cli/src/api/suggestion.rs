//! Suggests the most similar name when an install or an app does not exist.

use freehold_protocol::api::{AppView, InstallView};
use freehold_template::nearest;

use super::Api;
use crate::error::{Error, Kind};

impl Api {
    /// Adds the most similar name to the error about an install or app that does not exist. `path` is the path of the
    /// request.
    pub(super) async fn with_nearest(&self, error: Error, path: &[&str]) -> Error {
        let ["v1", kind @ ("installs" | "apps"), name, ..] = path else {
            return error;
        };
        let noun = kind.trim_end_matches('s');
        if error.kind() != Kind::NotFound || !error.to_string().starts_with(&format!("{noun} `{name}` does not exist"))
        {
            return error;
        }
        let names: Vec<String> = match *kind {
            "installs" => {
                self.list_of(kind).await.into_iter().map(|one: InstallView| one.install.to_string()).collect()
            }
            _ => self.list_of(kind).await.into_iter().map(|one: AppView| one.app.to_string()).collect(),
        };
        match nearest(name, names.iter().map(String::as_str)) {
            Some(near) => error.or(format!("did you mean `{near}`? `freehold {noun} list` shows all")),
            None => error,
        }
    }

    /// Returns the list of installs or apps. It is empty after an error: the user must see the error about the name
    /// instead.
    async fn list_of<T: serde::de::DeserializeOwned>(&self, kind: &str) -> Vec<T> {
        Box::pin(self.list(&["v1", kind])).await.unwrap_or_default()
    }
}
