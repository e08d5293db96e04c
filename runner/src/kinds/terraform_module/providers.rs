//! Makes the providers that come with a module available to jobs. The runner unpacks each provider once on this
//! machine, and jobs can only read it. Terraform finds the providers in a mirror that contains no other providers, and
//! does not ask a registry.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use freehold_oci::{BlobSource, Repository, fetch};
use freehold_protocol::order::{Artifact, Descriptor};
use freehold_protocol::terraform::{MODULE_CONFIG, ModuleConfig, PROVIDER_LAYER, ProviderPackage, own_platform};

use super::provider_zip::{self, MAX_PACKED, ProviderZipError};
use crate::job::Job;
use crate::job::failure::Failure;
use crate::kinds::sync_artifact::{parts, unusable};
use crate::sandbox;
use crate::unpacked_trees::{UnpackedTree, UnpackedTrees};

/// The size limit of the config of a module's artifact, in bytes.
const MAX_CONFIG: u64 = 1024 * 1024;
/// The total size of the unpacked providers that stay on the machine while no job uses them, in bytes.
pub(super) const KEPT: u64 = 6 * 1024 * 1024 * 1024;
/// The directory of the mirror in the workspace, and the file that tells Terraform to use it.
const MIRROR: &str = "mirror";
const CLI_CONFIG: &str = "terraform.rc";

/// The providers of one module.
#[derive(Debug)]
pub(super) struct Providers {
    trees: Vec<UnpackedTree>,
    cli_config: String,
}

impl Providers {
    /// Returns the directories of the unpacked providers. The mirror consists of links to them.
    pub(super) fn directories(&self) -> Vec<PathBuf> {
        self.trees.iter().map(|tree| tree.path.clone()).collect()
    }

    /// Returns the path of Terraform's CLI configuration file, as the job sees it.
    pub(super) fn cli_config(&self) -> String {
        self.cli_config.clone()
    }
}

/// Makes a mirror of the providers of `artifact` in the workspace. Returns `None` when the artifact contains no
/// providers.
pub(super) async fn unpack(
    job: &Job,
    repository: &Repository,
    artifact: &Artifact,
) -> Result<Option<Providers>, Failure> {
    let parts = parts(repository, artifact).await?;
    let Some(config) = parts.iter().find(|part| part.media_type == MODULE_CONFIG) else { return Ok(None) };
    let config = read(job, repository, config).await?;
    let platform = own_platform();
    if !config.platforms.iter().any(|packed| packed == platform) {
        let packed = config.platforms.join("`, `");
        return Err(unusable(
            artifact,
            &format!(
                "the module's providers are packed for `{packed}`, and this runner is `{platform}`; pin versions of \
                 the providers that have a package for the runner's platform, or use a runner of another platform"
            ),
        ));
    }
    let wrong = |error: &dyn std::error::Error| Failure::because("could not store the providers", error);
    let store = store(job)?;
    let mut trees = Vec::new();
    for provider in config.providers.iter().filter(|provider| provider.platform == platform) {
        let layer = parts.iter().find(|part| part.media_type == PROVIDER_LAYER && part.digest == provider.digest);
        let layer = layer.ok_or_else(|| unusable(artifact, &format!("it lacks provider `{}`", provider.name())))?;
        let tree = tree(job, repository, &store, provider, layer).await?;
        link(&job.workspace.join(MIRROR), provider, &tree.path)?;
        job.log.line(&format!("provider {} {}", provider.name(), provider.digest));
        trees.push(tree);
    }
    let pruned = tokio::task::spawn_blocking(move || store.prune(KEPT)).await;
    pruned.map_err(|error| wrong(&error))?.map_err(|error| wrong(&error))?;
    Ok(Some(Providers { trees, cli_config: write_cli_config(job)? }))
}

/// Returns the store of unpacked providers.
pub(super) fn store(job: &Job) -> Result<UnpackedTrees, Failure> {
    let store = UnpackedTrees::open(job.config.state_dir.join("providers"));
    store.map_err(|error| Failure::because("could not store the providers", &error))
}

async fn read(job: &Job, repository: &Repository, config: &Descriptor) -> Result<ModuleConfig, Failure> {
    if config.size > MAX_CONFIG {
        return Err(Failure::new(format!("the config of the module is larger than {MAX_CONFIG} bytes")));
    }
    let path = job.workspace.join("module.json");
    fetch(&BlobSource::Repository(repository.clone()), config, &path).await?;
    let unreadable = |error: &dyn std::error::Error| Failure::because("could not read the config of the module", error);
    let config = std::fs::read(&path).map_err(|error| unreadable(&error))?;
    let _ = std::fs::remove_file(&path);
    serde_json::from_slice(&config).map_err(|error| unreadable(&error))
}

/// Returns the unpacked provider. Fetches and unpacks it if this machine does not have it yet.
async fn tree(
    job: &Job,
    repository: &Repository,
    store: &UnpackedTrees,
    provider: &ProviderPackage,
    layer: &Descriptor,
) -> Result<UnpackedTree, Failure> {
    let wrong = |error: &dyn std::error::Error| {
        Failure::because(&format!("could not unpack provider `{}`", provider.name()), error)
    };
    let (known, digest) = (store.clone(), layer.digest.clone());
    let found = tokio::task::spawn_blocking(move || known.find(&digest)).await;
    if let Some(tree) = found.map_err(|error| wrong(&error))?.map_err(|error| wrong(&error))? {
        return Ok(tree);
    }
    if layer.size > MAX_PACKED {
        return Err(Failure::new(format!("provider `{}` has more than {MAX_PACKED} bytes", provider.name())));
    }
    let zip = job.workspace.join("provider.zip");
    fetch(&BlobSource::Repository(repository.clone()), layer, &zip).await?;
    let (store, digest, from) = (store.clone(), layer.digest.clone(), zip.clone());
    let unpacked =
        tokio::task::spawn_blocking(move || store.find_or_unpack(&digest, |into| provider_zip::unpack(&from, into)));
    let tree = unpacked.await.map_err(|error| wrong(&error))?;
    let tree = tree.map_err(|error: ProviderZipError| wrong(&error))?;
    let _ = std::fs::remove_file(&zip);
    Ok(tree)
}

/// Links `tree` into the directory `mirror`, in the layout in which Terraform looks for unpacked providers.
pub(super) fn link(mirror: &Path, provider: &ProviderPackage, tree: &Path) -> Result<(), Failure> {
    let path = provider.mirror_path().ok_or_else(|| {
        Failure::new(format!("`{}` for `{}` is not the name of a provider", provider.name(), provider.platform))
    })?;
    let path = mirror.join(path);
    let made = path.parent().map_or(Ok(()), std::fs::create_dir_all).and_then(|()| symlink(tree, &path));
    made.map_err(|error| Failure::because("could not make the mirror of the providers", &error))
}

/// Writes Terraform's CLI configuration and returns its path as the job sees it. Because it has no `direct` block,
/// Terraform does not ask a registry (Terraform CLI documentation, "Provider Installation").
fn write_cli_config(job: &Job) -> Result<String, Failure> {
    let unwritten = |error: std::io::Error| Failure::because("could not write into the workspace", &error);
    std::fs::create_dir_all(job.workspace.join(MIRROR)).map_err(unwritten)?;
    let mirror = sandbox::inside(job, MIRROR);
    let mirror = quoted(&mirror);
    let text = format!("provider_installation {{\n  filesystem_mirror {{\n    path = {mirror}\n  }}\n}}\n");
    std::fs::write(job.workspace.join(CLI_CONFIG), text).map_err(unwritten)?;
    Ok(sandbox::inside(job, CLI_CONFIG))
}

/// Returns a text as a quoted string of HCL, in which `${` and `%{` would begin a template (HCL native syntax
/// specification, "Template Expressions").
fn quoted(text: &str) -> String {
    let escaped = text.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n");
    format!("\"{}\"", escaped.replace("${", "$${").replace("%{", "%%{"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_part_of_a_quoted_path_is_a_template() {
        assert_eq!(quoted("/var/lib/freehold"), r#""/var/lib/freehold""#);
        assert_eq!(quoted(r#"/a"b\c/${d}/%{e}"#), r#""/a\"b\\c/$${d}/%%{e}""#);
    }
}
