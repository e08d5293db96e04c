//! Shows an app version with its document and with the commit or digest of each source.

use std::collections::BTreeMap;

use freehold_domain::build::{Build, BuildState};
use freehold_protocol::api::{ResolvedSource, VersionDocument};
use freehold_protocol::app_version::Action;
use freehold_protocol::order::{Package, Source};
use freehold_protocol::{AppName, ComponentName, Digest};

use crate::AppError;
use crate::app_version::builds::builds_of;
use crate::app_version::versions::{Version, Versions};

/// Returns a version with its document.
///
/// # Errors
/// The errors of [`Versions::load`].
pub async fn show_version(versions: &Versions, app: &AppName, version: &Digest) -> Result<VersionDocument, AppError> {
    let version = versions.load(app, Some(version)).await?;
    let builds = builds_of(&*versions.store, &version.document).await?;
    let resolved = resolved(&version, &builds);
    Ok(VersionDocument { view: version.view(), resolved, document: (*version.document).clone() })
}

/// Returns the commit or digest of each source: of the sandbox, of the components and of the directories of steps. The
/// sync command resolves a branch to a commit; the build runner resolves a tag to a digest.
fn resolved(version: &Version, builds: &BTreeMap<ComponentName, Build>) -> Vec<ResolvedSource> {
    let one = |component: ComponentName, source: &Source| {
        let build = builds.get(&component);
        let (asked, resolved) = match source {
            Source::Directory { digest } => (source.describe().to_owned(), Some(digest.to_string())),
            Source::Git { url, commit, branch, .. } if branch.is_empty() => {
                (format!("{url} at {commit}"), Some(commit.clone()))
            }
            Source::Git { url, commit, branch, .. } => (format!("{url} at {branch}"), Some(commit.clone())),
            Source::Image { reference } | Source::EcrImage { reference, .. } => (reference.clone(), copied(build)),
            Source::Chart { repo_url, chart, version } if version.is_empty() => {
                (format!("{chart} of {repo_url}"), copied(build))
            }
            Source::Chart { repo_url, chart, version } => (format!("{chart} {version} of {repo_url}"), copied(build)),
            Source::Version => (source.describe().to_owned(), Some(version.version.to_string())),
        };
        ResolvedSource { component, asked, resolved, build: build.map(|build| build.id.clone()) }
    };
    let parts = version.document.parts().map(|part| one(part.name.clone(), &part.source));
    let steps = version.document.actions.iter().flat_map(Action::sources);
    parts.chain(steps.map(|step| one(step.name, &step.source))).collect()
}

/// Returns the digest of an image or a chart that a build copied unchanged; `None` for other packages.
fn copied(build: Option<&Build>) -> Option<String> {
    let build = build?;
    match (&build.state, build.package) {
        (BuildState::Built { artifact, .. }, Package::Image | Package::HelmChart) => Some(artifact.digest.to_string()),
        (
            BuildState::Built { .. },
            Package::TerraformModule
            | Package::CloudformationTemplate
            | Package::DockerImage
            | Package::KubernetesManifest
            | Package::StepDirectory
            | Package::PulumiProgram,
        )
        | (BuildState::Building { .. } | BuildState::Failed { .. } | BuildState::Removed { .. }, _) => None,
    }
}
