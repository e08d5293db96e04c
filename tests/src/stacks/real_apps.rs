//! Finds real apps in a folder beside the project, if there is one.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use freehold_appconfig::Fetched;
use freehold_appconfig::Loaded;
use freehold_appconfig::load_files;

use super::Case;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/appconfigs")
}

/// Returns whether there are real apps beside the project.
pub fn real_apps_are_here() -> bool {
    root().is_dir()
}

/// Returns every app of the folder beside the project, by name.
///
/// # Errors
/// When one cannot be read.
pub fn real_apps() -> anyhow::Result<Vec<Case>> {
    let mut folders: Vec<PathBuf> =
        fs::read_dir(root())?.map(|entry| entry.map(|e| e.path())).collect::<Result<_, _>>()?;
    folders.retain(|folder| folder.is_dir());
    folders.sort();
    folders.iter().map(|folder| case(folder)).collect()
}

fn case(folder: &Path) -> anyhow::Result<Case> {
    let name = folder.file_name().and_then(|name| name.to_str()).context("a folder's name is not UTF-8 text")?;
    let mut found = BTreeMap::new();
    files(folder, folder, &mut found)?;
    Case::new(name.to_owned(), load(name, found)?.version, "eu-west-1", None)
}

fn files(root: &Path, folder: &Path, into: &mut BTreeMap<String, Vec<u8>>) -> anyhow::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            files(root, &path, into)?;
        } else {
            let name = path.strip_prefix(root)?.to_str().context("a file's name is not UTF-8 text")?.to_owned();
            into.insert(name, fs::read(&path)?);
        }
    }
    Ok(())
}

/// Loads an app with any text behind its addresses and in the files that the collection leaves out.
fn load(app: &str, mut files: BTreeMap<String, Vec<u8>>) -> anyhow::Result<Loaded> {
    let mut fetched = Fetched::new();
    for _ in 0..100 {
        match load_files(app, &files, &fetched) {
            Ok(loaded) if loaded.addresses.is_empty() => return Ok(loaded),
            Ok(loaded) => fetched
                .extend(loaded.addresses.into_iter().map(|address| (address, "apiVersion: v1\nkind: X\n".to_owned()))),
            Err(found) => {
                let left_out = |message: &str| {
                    let path =
                        message.strip_prefix('`')?.strip_suffix("` cannot be read: directory `src` does not exist")?;
                    Some(path.trim_start_matches("./").to_owned())
                };
                let added: Vec<String> = found.iter().filter_map(|one| left_out(&one.message)).collect();
                ensure!(!added.is_empty(), "{app}: {found}");
                files.extend(added.into_iter().map(|path| (path, b"x\n".to_vec())));
            }
        }
    }
    bail!("{app} is never whole")
}
