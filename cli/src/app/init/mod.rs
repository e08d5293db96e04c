//! `freehold app init`: writes a small app config that passes `freehold app check` and can be deployed unchanged.

use std::path::{Path, PathBuf};

use freehold_protocol::AppName;
use serde_json::json;

use super::Init;
use crate::context::Context;
use crate::error::{Error, Result, ResultExt};
use crate::output::described_commands;

/// The name of the app in the files; it is replaced by the new app's name.
const PLACEHOLDER: &str = "my-app";

macro_rules! files {
    ($($path:literal),+ $(,)?) => { [$(($path, include_str!(concat!("new-app/", $path)))),+] };
}

/// The new app's files.
const FILES: [(&str, &str); 14] = files![
    "README.md",
    "actions/health-check.toml",
    "components/naming.toml",
    "components/queue.toml",
    "inputs.toml",
    "metadata.toml",
    "modules/naming/main.tf",
    "permissions/deprovision.toml",
    "permissions/maintenance.toml",
    "permissions/provision.toml",
    "permissions/queue-removal.json",
    "permissions/queue.json",
    "runbooks/redeploy-queue.toml",
    "templates/queue.yaml",
];

impl Init {
    pub(super) fn run(&self, context: &Context) -> Result<()> {
        let app = name_of(&self.dir)?;
        empty(&self.dir)?;
        for (path, text) in FILES {
            write(&self.dir.join(path), &text.replace(PLACEHOLDER, app.as_str()))?;
        }
        let files: Vec<&str> = FILES.iter().map(|(path, _)| *path).collect();
        context.out.show(&json!({ "app": app, "dir": self.dir, "files": files }), |_| next_steps(&app, &self.dir))
    }
}

fn name_of(dir: &Path) -> Result<AppName> {
    // `.` and `..` must be resolved first, because they do not contain the directory's name.
    let whole: Option<PathBuf> = std::path::absolute(dir).ok().and_then(|dir| match dir.file_name() {
        Some(_) => Some(dir),
        None => dir.canonicalize().ok(),
    });
    let Some(name) = whole.as_deref().and_then(Path::file_name) else {
        let unnamed = format!("`{}` has no name, and the name of the directory is the name of the app", dir.display());
        return Err(Error::invalid(unnamed).or("name a new directory"));
    };
    name.to_string_lossy().parse().map_err(|e| {
        Error::invalid(format!("{e}; give the directory such a name, because its name is the name of the app"))
    })
}

/// Refuses a directory that is not empty, and a file.
fn empty(dir: &Path) -> Result<()> {
    match std::fs::read_dir(dir).map(|mut entries| entries.next().is_none()) {
        Ok(true) => Ok(()),
        Ok(false) => Err(Error::conflict(format!(
            "`{}` is not empty and nothing was written; name a new directory",
            dir.display()
        ))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(Error::invalid(format!("cannot use `{}`: {error}; name a new directory", dir.display()))),
    }
}

fn write(path: &Path, text: &str) -> Result<()> {
    let doing = || format!("write `{}`", path.display());
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory).doing(doing())?;
    }
    std::fs::write(path, text).doing(doing())
}

fn next_steps(app: &AppName, dir: &Path) -> String {
    let files: Vec<String> = FILES.iter().map(|(path, _)| format!("  {path}")).collect();
    let dir = dir.display();
    let steps = [
        (format!("freehold app check {dir}"), "shows every mistake, offline"),
        (format!("freehold app graph {dir}"), "shows the order of a deploy"),
        (format!("freehold app sync {dir}"), "makes a version of the app in your tenant"),
        (format!("freehold build {app}"), "makes the artifacts on your build runner"),
        (format!("freehold install create NAME --app {app} --account ACCOUNT --region REGION"), ""),
    ];
    format!(
        "wrote app `{app}` to `{dir}`:\n{}\n\nIts module runs in Terraform, which the machine of an install stack does not have. \
         \
         `freehold tools init {dir}` gives the app an image with the programs that its jobs need; without one, the runner has to \
         be on a machine that has them.\n\nnext:\n{}",
        files.join("\n"),
        described_commands(&steps)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files_below(dir: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_dir() { files_below(&entry, found) } else { found.push(entry) }
        }
    }

    #[test]
    fn every_file_of_the_new_app_is_written() {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/app/init/new-app");
        let mut found = Vec::new();
        files_below(&directory, &mut found);
        found.sort();

        let written: Vec<PathBuf> = FILES.iter().map(|(path, _)| directory.join(path)).collect();

        assert_eq!(written, found);
    }

    #[test]
    fn the_directorys_name_is_the_apps() {
        assert_eq!(name_of(Path::new("some/where/web-shop/")).unwrap().as_str(), "web-shop");
        let error = name_of(Path::new("Web Shop")).unwrap_err();
        assert!(error.to_string().starts_with("`Web Shop` is not an app name"), "{error}");
    }

    #[test]
    fn the_next_steps_are_aligned() {
        let steps = next_steps(&"web-shop".parse().unwrap(), Path::new("apps/web-shop"));

        insta::assert_snapshot!(steps.split_once("next:\n").unwrap().1, @r"
        freehold app check apps/web-shop  shows every mistake, offline
        freehold app graph apps/web-shop  shows the order of a deploy
        freehold app sync apps/web-shop   makes a version of the app in your tenant
        freehold build web-shop           makes the artifacts on your build runner
        freehold install create NAME --app web-shop --account ACCOUNT --region REGION
        ");
    }
}
