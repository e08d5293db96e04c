//! Makes artifacts from Kubernetes manifests and kustomizations. The text of a manifest becomes one layer and stays a
//! template. The directory of a kustomization is packed into one layer.
//!
//! Kustomize does not run in a build but when the component is deployed, for two reasons. Its patches are templates,
//! and a build does not know their values. Its output depends on its version, so one source would have several digests.

use std::path::{Path, PathBuf};

use freehold_protocol::order::{
    Artifact, BuildArtifact, KUSTOMIZATION_ARTIFACT, KUSTOMIZATION_LAYER, MANIFEST_ARTIFACT, MANIFEST_LAYER, Recipe,
    Source,
};
use freehold_runner::job::Job;
use freehold_runner::job::failure::{Failure, until_stopped};

use crate::archive;
use crate::package::push_layer;
use crate::source;

/// The file names of a kustomization (Kubernetes documentation, "Declarative Management of Kubernetes Objects Using
/// Kustomize").
const KUSTOMIZATIONS: [&str; 3] = ["kustomization.yaml", "kustomization.yml", "Kustomization"];

/// Builds the manifest of an app version, or the kustomization of a directory or commit.
pub(crate) async fn build(job: &Job, work: &BuildArtifact) -> Result<Artifact, Failure> {
    let recipe = work.recipe.as_ref().map(Recipe::unpacked).transpose();
    let recipe = recipe.map_err(|error| Failure::because("could not unpack the manifest", &error))?;
    match (recipe.as_deref(), &work.source) {
        (Some(Recipe::Manifest { text }), Source::Version) => text_layer(job, work, text).await,
        (Some(Recipe::Kustomization { options }), Source::Directory { .. } | Source::Git { .. }) => {
            let directory = source::fetch(job, &work.source).await?;
            let path = options.get("path").and_then(serde_json::Value::as_str).unwrap_or_default();
            described(&directory, path)?;
            let options = serde_json::to_vec(options);
            let options = options.map_err(|error| Failure::because("could not encode the kustomization", &error))?;
            let layer = pack(job, directory, options).await?;
            until_stopped(job, push_layer(job, work, &layer, KUSTOMIZATION_LAYER, KUSTOMIZATION_ARTIFACT)).await
        }
        (
            None
            | Some(
                Recipe::Manifest { .. }
                | Recipe::PackedManifest { .. }
                | Recipe::Kustomization { .. }
                | Recipe::Dockerfile { .. }
                | Recipe::SignedImage { .. }
                | Recipe::ModuleAlone,
            ),
            source,
        ) => Err(Failure::new(format!(
            "the order has no manifest or kustomization that can be built from {}; update the tenant with `freehold \
             tenant deploy`, and then run `freehold build` again",
            source.describe()
        ))),
    }
}

async fn text_layer(job: &Job, work: &BuildArtifact, text: &str) -> Result<Artifact, Failure> {
    if text.trim().is_empty() {
        return Err(Failure::new("the manifest is empty"));
    }
    let layer = job.workspace.join("manifest.yaml");
    std::fs::write(&layer, text).map_err(|error| Failure::because("could not write into the workspace", &error))?;
    until_stopped(job, push_layer(job, work, &layer, MANIFEST_LAYER, MANIFEST_ARTIFACT)).await
}

/// Refuses `path` when it contains no kustomization file, or is outside of `directory`.
fn described(directory: &Path, path: &str) -> Result<(), Failure> {
    let inside = directory.join(path.trim_start_matches("./").trim_start_matches('/'));
    let found = KUSTOMIZATIONS.iter().any(|name| inside.join(name).is_file());
    if found
        && inside.canonicalize().is_ok_and(|path| directory.canonicalize().is_ok_and(|root| path.starts_with(root)))
    {
        return Ok(());
    }
    let place = if path.is_empty() { "the source".to_owned() } else { format!("`{path}` of the source") };
    Err(Failure::new(format!("{place} holds no `kustomization.yaml`; name the directory that contains it")))
}

async fn pack(job: &Job, directory: PathBuf, options: Vec<u8>) -> Result<PathBuf, Failure> {
    let layer = job.workspace.join("layer.tar.gz");
    let into = layer.clone();
    let together = job.workspace.join("together");
    let packed = tokio::task::spawn_blocking(move || {
        std::fs::create_dir(&together)?;
        std::fs::rename(&directory, together.join("kustomization"))?;
        std::fs::write(together.join("options.json"), options)?;
        archive::pack(&together, &into)
    });
    let unpackable = |error: &dyn std::error::Error| Failure::because("could not pack the kustomization", error);
    packed.await.map_err(|error| unpackable(&error))?.map_err(|error| unpackable(&error))?;
    Ok(layer)
}
