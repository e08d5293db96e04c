//! `freehold app check`: reports all mistakes in a config, without a network.

use std::path::{Path, PathBuf};

use clap::Args;
use freehold_appconfig::{Diagnostics, Elsewhere, Severity};
use serde_json::json;

use crate::context::Context;
use crate::error::{Error, Result};
use crate::output::plural;

/// Read an app config and show every mistake in it.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  freehold app check ./my-app\n\nThe command also reads the app's own modules, templates and charts, and \
                  checks whether the policies of the roles allow what the components need. It needs no account and no network. Exit code 2 when there are errors, \
                  and with `--deny-warnings` also when there are warnings.",
    aliases = ["lint", "validate"]
)]
pub(crate) struct Check {
    /// The directory of the app config; its name is the name of the app.
    #[arg(value_name = "DIR")]
    pub(super) dir: PathBuf,
    /// Treat warnings as errors, for instance in CI.
    #[arg(long)]
    pub(super) deny_warnings: bool,
}

impl Check {
    pub(super) fn run(&self, context: &Context) -> Result<()> {
        let dir = checked_dir(&self.dir)?;
        let found = freehold_appconfig::check(dir);
        let (errors, warnings) = (found.count(Severity::Error), found.count(Severity::Warning));
        let value = json!({ "dir": dir, "errors": errors, "warnings": warnings, "found": found,
            "not_looked_at": found.not_looked_at() });
        // The excerpts of files are aligned, so only sentences are wrapped. If there are errors, the command's error
        // counts them.
        context.out.show_verbatim(&value, |_| {
            let counts = format!("{}{}", counted(errors, warnings), elsewhere(found.not_looked_at()));
            let report = || context.out.findings(&found.render(context.out.colours()));
            match (found.is_empty(), errors) {
                (true, _) => format!("`{}`: {counts}", dir.display()),
                (false, 0) => format!("{}\n\n{counts}", report()),
                (false, _) => report(),
            }
        })?;
        if errors > 0 {
            return Err(has_errors(dir, &found));
        }
        if warnings > 0 && self.deny_warnings {
            let counted = plural(warnings, "warning");
            let error = Error::invalid(format!("the app config in `{}` has {counted}", dir.display()));
            return Err(error.or("correct the config, or leave out `--deny-warnings`"));
        }
        Ok(())
    }
}

/// Returns the error about a config that cannot be used.
pub(crate) fn has_errors(dir: &Path, found: &Diagnostics) -> Error {
    let counts = counted(found.count(Severity::Error), found.count(Severity::Warning));
    let error = Error::invalid(format!("the app config in `{}` cannot be used: {counts}", dir.display()));
    if is_app(dir) {
        return error;
    }
    let apps: Vec<String> = apps_nearby(dir).iter().map(|app| format!("`{}`", app.display())).collect();
    let apps: Vec<&str> = apps.iter().map(String::as_str).collect();
    match apps.as_slice() {
        [] => error,
        [app] => error.or(format!("{app} looks like the directory of an app; pass it")),
        [..] => error.or(format!("{} look like the directories of apps; pass one of them", list(&apps))),
    }
}

/// Returns the first entries of `all`, and the number of the other entries.
fn list(all: &[&str]) -> String {
    const NAMED: usize = 3;
    let named = all.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
    match all.len().saturating_sub(NAMED) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

/// Returns whether `dir` contains a file or directory that only the directory of an app contains.
fn is_app(dir: &Path) -> bool {
    dir.join("metadata.toml").is_file() || dir.join("components").is_dir()
}

/// Returns the directory of an app above `dir`, or else the directories of apps in `dir`, sorted. The paths begin where
/// `dir` begins.
fn apps_nearby(dir: &Path) -> Vec<PathBuf> {
    let Ok(whole) = dir.canonicalize() else { return Vec::new() };
    if let Some(steps) = whole.ancestors().skip(1).position(is_app) {
        let named = dir.ancestors().nth(steps + 1).filter(|above| is_app(above));
        let above = named.map_or_else(|| (0..=steps).fold(dir.to_path_buf(), |at, _| at.join("..")), Path::to_path_buf);
        return vec![above];
    }
    let entries = std::fs::read_dir(dir).into_iter().flatten().filter_map(Result::ok).map(|entry| entry.path());
    let mut apps: Vec<PathBuf> = entries.filter(|path| is_app(path)).collect();
    apps.sort();
    apps
}

/// Returns `dir`, or an error when `dir` is not a directory.
pub(super) fn checked_dir(dir: &Path) -> Result<&Path> {
    if dir.is_dir() {
        return Ok(dir);
    }
    let (shown, exists) = (dir.display(), dir.symlink_metadata().is_ok());
    let what =
        if exists { format!("`{shown}` is not a directory") } else { format!("there is no directory `{shown}`") };
    Err(Error::invalid(what).or("pass the directory with the app config; `freehold app init DIR` writes a new one"))
}

fn counted(errors: usize, warnings: usize) -> String {
    let count = |count: usize, noun: &str| if count == 0 { format!("no {noun}s") } else { plural(count, noun) };
    format!("{}, {}", count(errors, "error"), count(warnings, "warning"))
}

/// Returns the line about the parts whose sources are in other repositories.
fn elsewhere(parts: &[Elsewhere]) -> String {
    if parts.is_empty() {
        return String::new();
    }
    let parts: Vec<&str> = parts.iter().map(|one| one.part.as_str()).collect();
    format!("\nnot checked, because their sources are in repositories: {}", list(&parts))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_that_are_elsewhere_are_named_and_not_all_of_them() {
        let part = |at: usize| Elsewhere { part: format!("component `c{at}`"), source: "https://x.example/y".into() };
        let parts: Vec<Elsewhere> = (0..5).map(part).collect();

        assert_eq!(elsewhere(&[]), "");
        assert_eq!(
            elsewhere(&parts),
            "\nnot checked, because their sources are in repositories: component `c0`, component `c1`, component `c2` and \
             2 more"
        );
    }

    #[test]
    fn the_app_above_or_below_a_directory_without_one_is_named() {
        let place = tempfile::tempdir().unwrap();
        let app = place.path().canonicalize().unwrap().join("my-app");
        std::fs::create_dir_all(app.join("components")).unwrap();

        assert_eq!(apps_nearby(place.path()), [place.path().join("my-app")]);
        assert_eq!(apps_nearby(&app.join("components")), std::slice::from_ref(&app));
        assert_eq!(apps_nearby(&app.join("components/."))[0].canonicalize().unwrap(), app);
        let error = has_errors(place.path(), &freehold_appconfig::check(place.path()));
        assert!(error.way_out().unwrap().ends_with("my-app` looks like the directory of an app; pass it"), "{error}");
        for other in ["a", "b", "other"] {
            std::fs::create_dir_all(place.path().join(other).join("components")).unwrap();
        }
        let error = has_errors(place.path(), &freehold_appconfig::check(place.path()));
        let way_out = error.way_out().unwrap();
        assert!(
            way_out.contains("/a`, ") && way_out.contains("/my-app` and 1 more look like the directories"),
            "{way_out}"
        );
    }

    #[test]
    fn counts_read_as_a_sentence() {
        assert_eq!(counted(0, 0), "no errors, no warnings");
        assert_eq!(counted(1, 2), "1 error, 2 warnings");
    }
}
