//! Finds the root of this checkout, the names of its functions, and the programs of a Kubernetes cluster.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;

/// Returns the directory of this checkout.
///
/// # Errors
/// When the crate was moved out of it.
pub fn workspace_root() -> anyhow::Result<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("the tests crate is not in a workspace")?;
    Ok(root.to_owned())
}

/// Returns the names of a tenant's functions, sorted: each is a program in `functions/src/bin`.
///
/// # Errors
/// When that folder cannot be read.
pub fn functions() -> anyhow::Result<Vec<String>> {
    let folder = workspace_root()?.join("functions/src/bin");
    let programs = std::fs::read_dir(&folder).with_context(|| format!("reading `{}`", folder.display()))?;
    let name = |path: PathBuf| Some(path.file_stem()?.to_str()?.to_owned());
    let mut names = Vec::new();
    for program in programs {
        names.extend(name(program?.path()));
    }
    names.sort();
    Ok(names)
}

/// Returns the folder with the programs of a Kubernetes cluster, whether it is there or not.
///
/// # Errors
/// When `localstack/kubernetes/build` cannot be run.
pub fn kubernetes_programs() -> anyhow::Result<PathBuf> {
    if let Some(named) = std::env::var_os("FREEHOLD_KUBERNETES") {
        return Ok(named.into());
    }
    let build = Command::new(workspace_root()?.join("localstack/kubernetes/build")).arg("--where").output();
    Ok(String::from_utf8(build.context("running `localstack/kubernetes/build`")?.stdout)?.trim().into())
}
