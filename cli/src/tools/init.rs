//! `freehold tools init`: writes an example list and the component of its image, and makes jobs use the image.

use std::path::Path;

use serde_json::json;

use super::{Init, LIST};
use crate::context::Context;
use crate::error::{Error, Result, ResultExt};
use crate::file;
use crate::output::described_commands;

const DEFAULT: &str = include_str!("default-tools.toml");
const COMPONENT: &str = "# The image that jobs run their programs in; `freehold tools build` makes it.\nname = \"tools\"\ntype = \
                         \"container_image\"\n\n[oci_layout]\npath = \"./tools/image\"\n";

/// The `runner.toml` of an app that has none yet.
const RUNNER: &str =
    "runner_type = \"aws\"\n# The component whose image jobs run their programs in.\ntool_image = \"tools\"\n";
const RUNNER_FILE: &str = "runner.toml";
const TOOL_IMAGE: &str = "tool_image";

impl Init {
    pub(super) fn run(&self, context: &Context) -> Result<()> {
        let metadata = self.app.join("metadata.toml");
        if !metadata.is_file() {
            let absent = format!("`{}` is not an app: there is no `{}`", self.app.display(), metadata.display());
            return Err(Error::invalid(absent).or("name the directory of an app; `freehold app init` writes a new one"));
        }
        let files = [(self.app.join("tools").join(LIST), DEFAULT), (self.app.join("components/tools.toml"), COMPONENT)];
        for (path, text) in &files {
            if let Some(directory) = path.parent() {
                std::fs::create_dir_all(directory).doing(format!("make `{}`", directory.display()))?;
            }
            file::may_create(path, text, false)
                .map_err(|error| error.or("edit the file, or remove it to start anew"))?;
        }
        let runner = self.app.join(RUNNER_FILE);
        let settings = settings(&runner)?;
        files.iter().try_for_each(|(path, text)| file::create(path, text, false))?;
        let remark = match &settings {
            Settings::New => file::create(&runner, RUNNER, false).map(|()| String::new())?,
            Settings::Completed(text) => {
                file::replace(&runner, text)?;
                format!("\nset `tool_image = \"tools\"` in `{}`", runner.display())
            }
            Settings::Kept(image) if image == "tools" => String::new(),
            Settings::Kept(image) => format!(
                "\n`{}` keeps `tool_image = \"{image}\"`; write `tool_image = \"tools\"` there to use this image",
                runner.display()
            ),
        };
        let mut paths: Vec<_> = files.iter().map(|(path, _)| path).collect();
        if matches!(settings, Settings::New) {
            paths.push(&runner);
        }
        let tools = self.app.join("tools");
        let next = next_commands(&self.app, &tools);
        let tools = tools.display();
        context.out.show(&json!({ "files": paths }), |_| {
            let written: Vec<String> = paths.iter().map(|path| format!("  {}", path.display())).collect();
            format!(
                "wrote:\n{}{remark}\n\nnext:\n  choose the versions in `{tools}/{LIST}`, and make the archives `base-...tar.gz` as it \
                 says\n{next}",
                written.join("\n"),
            )
        })
    }
}

/// Returns the commands that make the image and let the app use it, with what each of them does.
fn next_commands(app: &Path, tools: &Path) -> String {
    let (app, tools) = (app.display(), tools.display());
    described_commands(&[
        (format!("freehold tools pin {tools}"), "writes the checksums that are missing in the list"),
        (format!("freehold tools build {tools}"), "makes the image"),
        (format!("freehold app sync {app}"), "makes a version of the app with the image"),
        ("freehold build APP".to_owned(), "copies the image to your registry, with the other artifacts"),
    ])
}

/// The effect of this command on `runner.toml`.
#[derive(Debug, PartialEq, Eq)]
enum Settings {
    New,
    /// The text of the file with `tool_image` added.
    Completed(String),
    /// The image that the file names already; it stays.
    Kept(String),
}

/// Returns how the `runner.toml` at `path` has to change. A `tool_image` that the file already has stays.
fn settings(path: &Path) -> Result<Settings> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Settings::New),
        Err(error) => return Err(error).doing(format!("read `{}`", path.display())),
    };
    let mut file: toml_edit::DocumentMut = text.parse().map_err(|error: toml_edit::TomlError| {
        let error = error.to_string();
        let error = error.lines().next().unwrap_or_default().to_owned();
        Error::invalid(format!("`{}` is not TOML: {error}", path.display()))
            .or("correct the file, then run the command again")
    })?;
    if let Some(there) = file.get(TOOL_IMAGE) {
        return Ok(Settings::Kept(there.as_str().unwrap_or_default().to_owned()));
    }
    file.insert(TOOL_IMAGE, toml_edit::value("tools"));
    Ok(Settings::Completed(file.to_string()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::tools::list::List;

    #[test]
    fn the_default_list_is_valid_and_pins_everything_but_the_archives_that_a_vendor_makes() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join(LIST), DEFAULT).unwrap();

        let list = List::read(directory.path()).unwrap();

        for platform in ["linux/amd64", "linux/arm64"] {
            let names: Vec<&str> = list.of(platform).map(|item| item.name.as_str()).collect();
            for wanted in ["base", "terraform", "helm", "kubectl"] {
                assert!(names.contains(&wanted), "{platform}: {wanted}");
            }
        }
        for item in &list.item {
            assert_eq!(item.digest().is_ok(), item.url.is_some(), "{}", item.name);
        }
        let different: BTreeSet<&str> = list.item.iter().map(|item| item.sha256.as_str()).collect();
        assert_eq!(different.len(), 7, "one for each program and platform, and the archives have none");
    }

    #[test]
    fn a_runner_file_is_completed_and_keeps_what_it_has() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(RUNNER_FILE);
        let with = |text: &str| {
            std::fs::write(&path, text).unwrap();
            settings(&path)
        };

        assert_eq!(settings(&path).unwrap(), Settings::New);
        assert_eq!(
            with("# mine\nrunner_type = \"aws\"\n\n[env_vars]\nA = \"1\"\n").unwrap(),
            Settings::Completed(
                "# mine\nrunner_type = \"aws\"\ntool_image = \"tools\"\n\n[env_vars]\nA = \"1\"\n".into()
            )
        );
        assert_eq!(with("tool_image = \"own\"\n").unwrap(), Settings::Kept("own".into()));
        assert!(with("= 1").unwrap_err().to_string().contains("is not TOML"));
    }
}
