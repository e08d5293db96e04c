//! `freehold app readme`: prints the readme of an app or of one of its runbooks.

use clap::Args;
use freehold_client::calls;
use freehold_protocol::api::VersionDocument;
use freehold_protocol::{AppName, RunbookName};
use serde_json::json;

use super::VersionName;
use super::version::or_latest;
use crate::context::Context;
use crate::error::{Error, Result};

/// Print the readme of an app, or of one of its runbooks.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  freehold app readme my-app
  freehold app readme my-app --runbook restart
  freehold app readme my-app --version 3 > README.md

The text is Markdown, as the app config has it (`readme` in `metadata.toml` and in the files of runbooks). It is the same
for all installs: expressions such as `{{ .nuon.install.id }}` in it are not evaluated.")]
pub(crate) struct Readme {
    /// Name of the app.
    app: AppName,
    /// The version: its number, its digest or the beginning of its digest; the latest version when absent.
    #[arg(long, value_name = "VERSION")]
    version: Option<VersionName>,
    /// Print the readme of this runbook.
    #[arg(long, value_name = "NAME")]
    runbook: Option<RunbookName>,
}

impl Readme {
    pub(super) async fn run(&self, context: &Context) -> Result<()> {
        let api = context.api().await?;
        let version = or_latest(&api, &self.app, self.version.as_ref()).await?;
        let shown: VersionDocument = api.send(calls::show_version(&self.app, &version)).await?;
        let readme = readme(&shown, self.runbook.as_ref())?;
        let answer = json!({
            "app": self.app, "version": shown.view.version, "number": shown.view.number, "runbook": self.runbook,
            "readme": readme,
        });
        context.out.show_verbatim(&answer, |_| readme.to_owned())
    }
}

/// Returns the readme of a version, or of its runbook `runbook`.
fn readme<'a>(shown: &'a VersionDocument, runbook: Option<&RunbookName>) -> Result<&'a str> {
    let (number, document) = (shown.view.number, &shown.document);
    let app = &document.app;
    let (text, owner, file) = match runbook {
        None => (&document.readme, format!("version {number} of app `{app}`"), "`metadata.toml`"),
        Some(name) => {
            let found = document.runbooks.iter().find(|known| known.name == *name);
            let found = found.ok_or_else(|| {
                let error = Error::not_found(format!("version {number} of app `{app}` has no runbook `{name}`"));
                error.or(format!("`freehold app show {app}` lists its runbooks"))
            })?;
            let owner = format!("runbook `{name}` of version {number} of app `{app}`");
            (&found.readme, owner, "its file")
        }
    };
    if text.is_empty() {
        let error = Error::not_found(format!("{owner} has no readme"));
        return Err(error.or(format!("write `readme = \"./README.md\"` into {file}, and sync the app")));
    }
    Ok(text.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version() -> VersionDocument {
        serde_json::from_value(json!({
            "app": "demo", "version": format!("sha256:{}", "0".repeat(64)), "number": 3, "created_at": 1000,
            "components": 0,
            "document": {
                "format": 1, "app": "demo", "readme": "# Demo\n{{ .nuon.install.id }}\n",
                "runbooks": [
                    { "name": "restart", "readme": "# Restart\n", "steps": [] },
                    { "name": "drain", "steps": [] },
                ],
            },
        }))
        .unwrap()
    }

    /// Returns the readme, or the error and its way out.
    fn printed(version: &VersionDocument, runbook: Option<&str>) -> String {
        let runbook = runbook.map(|name| name.parse().unwrap());
        match readme(version, runbook.as_ref()) {
            Ok(text) => text.to_owned(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn the_readme_of_an_app_and_of_a_runbook_is_the_text_of_the_config() {
        let version = version();

        assert_eq!(printed(&version, None), "# Demo\n{{ .nuon.install.id }}\n");
        assert_eq!(printed(&version, Some("restart")), "# Restart\n");
    }

    #[test]
    fn what_has_no_readme_is_named_with_the_file_that_lacks_it() {
        let mut version = version();
        version.document.readme.clear();

        let all = [None, Some("drain"), Some("stop")].map(|runbook| printed(&version, runbook)).join("\n");

        insta::assert_snapshot!(all, @r#"
        version 3 of app `demo` has no readme; write `readme = "./README.md"` into `metadata.toml`, and sync the app
        runbook `drain` of version 3 of app `demo` has no readme; write `readme = "./README.md"` into its file, and sync the app
        version 3 of app `demo` has no runbook `stop`; `freehold app show demo` lists its runbooks
        "#);
    }
}
