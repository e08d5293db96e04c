//! `freehold app check`: reports all mistakes in a config, without a network.

use std::num::NonZero;
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
    /// Take warnings for errors, for instance in CI.
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
            return Err(error.or("correct what they name, or leave `--deny-warnings` out"));
        }
        Ok(())
    }
}

/// Returns the error about a config that cannot be used.
pub(crate) fn has_errors(dir: &Path, found: &Diagnostics) -> Error {
    let counts = counted(found.count(Severity::Error), found.count(Severity::Warning));
    let error = Error::invalid(format!("the app config in `{}` cannot be used: {counts}", dir.display()));
    match app_nearby(dir) {
        Some(app) if !is_app(dir) => {
            error.or(format!("`{}` looks like the directory of an app; pass it", app.display()))
        }
        Some(_) | None => error,
    }
}

/// Returns whether `dir` has what only the directory of an app has.
fn is_app(dir: &Path) -> bool {
    dir.join("metadata.toml").is_file() || dir.join("components").is_dir()
}

/// Returns the directory of an app above `dir`, or the only one in it, as a path that begins where `dir` begins.
fn app_nearby(dir: &Path) -> Option<PathBuf> {
    let whole = dir.canonicalize().ok()?;
    if let Some(steps) = whole.ancestors().skip(1).position(is_app) {
        let named = dir.ancestors().nth(steps + 1).filter(|above| is_app(above));
        return Some(
            named.map_or_else(|| (0..=steps).fold(dir.to_path_buf(), |at, _| at.join("..")), Path::to_path_buf),
        );
    }
    let entries = std::fs::read_dir(dir).ok()?.filter_map(Result::ok).map(|entry| entry.path());
    let mut apps = entries.filter(|path| is_app(path));
    apps.next().filter(|_| apps.next().is_none())
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
    const NAMED: usize = 3;
    let Some(count) = NonZero::new(parts.len()) else { return String::new() };
    let named = parts.iter().take(NAMED).map(|one| one.part.as_str()).collect::<Vec<_>>().join(", ");
    let more = match count.get().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("\nnot checked, because their sources are in repositories: {named}{more}")
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

        assert_eq!(app_nearby(place.path()).unwrap(), place.path().join("my-app"));
        assert_eq!(app_nearby(&app.join("components")).unwrap(), app);
        assert_eq!(app_nearby(&app.join("components/.")).unwrap().canonicalize().unwrap(), app);
        let error = has_errors(place.path(), &freehold_appconfig::check(place.path()));
        assert!(error.way_out().unwrap().ends_with("my-app` looks like the directory of an app; pass it"), "{error}");
        std::fs::create_dir_all(place.path().join("other/components")).unwrap();
        assert_eq!(app_nearby(place.path()), None);
    }

    #[test]
    fn counts_read_as_a_sentence() {
        assert_eq!(counted(0, 0), "no errors, no warnings");
        assert_eq!(counted(1, 2), "1 error, 2 warnings");
    }
}
