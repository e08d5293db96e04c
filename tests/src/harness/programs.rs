//! Finds the programs under test. A test never builds them, and refuses those that are older than their sources.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context as _, ensure};

use crate::workspace::{functions as function_names, workspace_root};

const BUILD: &str = "run `cargo build --workspace --bins && infra/package --local`";

/// The paths of the programs.
#[derive(Debug, Clone)]
pub(super) struct Programs {
    pub(super) freehold: PathBuf,
    pub(super) runner: PathBuf,
    pub(super) builder: PathBuf,
    /// The folder with one zip per function.
    pub(super) functions: PathBuf,
}

impl Programs {
    /// Finds the programs beside this process's own binary, and the functions' zips in `functions` or where
    /// `infra/package --local` writes them.
    ///
    /// # Errors
    /// When a program is missing or old; the error says how to build it.
    pub(super) fn find(functions: Option<&Path>) -> anyhow::Result<Self> {
        let own = std::env::current_exe()?;
        let in_target = || own.ancestors().skip(1).filter(|folder| !folder.ends_with("deps"));
        let (profile, target) =
            in_target().next().zip(in_target().nth(1)).context("this program is not in a target folder")?;
        let found = Self {
            freehold: profile.join("freehold"),
            runner: profile.join("freehold-runner"),
            builder: profile.join("freehold-builder"),
            functions: functions.map_or_else(|| Ok(target.join("lambda/local")), std::path::absolute)?,
        };
        let zips: Vec<PathBuf> =
            function_names()?.iter().map(|name| found.functions.join(format!("{name}.zip"))).collect();
        let newest_source = newest_source(&workspace_root()?)?;
        for program in [&found.freehold, &found.runner, &found.builder].into_iter().chain(&zips) {
            let made = std::fs::metadata(program).and_then(|metadata| metadata.modified());
            let made = made.with_context(|| format!("`{}` is not there; {BUILD}", program.display()))?;
            // A zip is as old as the program in it, which is not built again when a change elsewhere leaves it the same.
            let old = program.extension().is_none() && cargo_would_build(program, made, newest_source);
            ensure!(!old, "`{}` is older than its sources; {BUILD}", program.display());
        }
        Ok(found)
    }
}

/// Returns whether Cargo would build the program again; Cargo lists the sources beside each program.
fn cargo_would_build(program: &Path, made: SystemTime, newest_source: SystemTime) -> bool {
    if newest_source <= made {
        return false;
    }
    let list = std::fs::read_to_string(program.with_extension("d")).unwrap_or_default();
    let sources = list.split_once(": ").map(|(_, sources)| sources).unwrap_or_default();
    sources.split_whitespace().filter_map(|path| modified(Path::new(path))).any(|changed| changed > made)
}

fn newest_source(root: &Path) -> anyhow::Result<SystemTime> {
    let mut folders: Vec<PathBuf> = ["cli", "runner", "functions", "crates"].map(|name| root.join(name)).into();
    let mut newest = SystemTime::UNIX_EPOCH;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|kind| kind == "rs") {
                newest = newest.max(modified(&path).unwrap_or(newest));
            }
        }
    }
    Ok(newest)
}

fn modified(path: &Path) -> Option<SystemTime> {
    std::fs::metadata(path).and_then(|metadata| metadata.modified()).ok()
}
