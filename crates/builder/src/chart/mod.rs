//! Packages Helm charts, with their dependencies inside, in the form that Helm stores in a registry.

mod files;
mod ignore;
mod metadata;
mod repository;
mod vendor;
mod versions;
pub(crate) mod yaml;

use std::path::{Path, PathBuf};

use freehold_protocol::order::{Artifact, BuildArtifact, CHART_CONFIG, CHART_LAYER, Source};
use freehold_runner::job::failure::{Failure, until_stopped};
use freehold_runner::job::{Job, sdk_config};
use freehold_runner::kinds::archive;
use freehold_runner::registry::ecr_repository;

use self::vendor::{Chart, Vendor};
use crate::package;
use crate::source;
use crate::statement::Facts;

/// Builds the chart of a directory, a commit or a chart repository, and pushes it. Records every archive that it
/// fetches.
pub(crate) async fn build(job: &Job, work: &BuildArtifact, facts: &mut Facts) -> Result<Artifact, Failure> {
    let directory = match &work.source {
        Source::Chart { .. } => None,
        other => Some(source::fetch(job, other).await?),
    };
    until_stopped(job, async {
        let (chart, layer) = match (&work.source, directory) {
            (Source::Chart { repo_url, chart, version }, _) => {
                fetch_published(job, repo_url, chart, version, facts).await?
            }
            (_, Some(directory)) => of_directory(job, directory, facts).await?,
            (other, None) => {
                return Err(Failure::new(format!("a Helm chart cannot be built from {}", other.describe())));
            }
        };
        push(job, work, &chart, &layer).await
    })
    .await
}

/// Packs the chart in `directory` and its dependencies.
async fn of_directory(job: &Job, directory: PathBuf, facts: &mut Facts) -> Result<(Chart, PathBuf), Failure> {
    let root = job.workspace.join(source::SOURCE);
    let mut chart = load(&directory, &root, false).await?;
    let mut vendor = Vendor { job, facts, root, brought: 0 };
    vendor.complete(&mut chart, &directory, 0).await?;
    let layer = job.workspace.join("layer.tgz");
    let chart = pack(chart, layer.clone()).await?;
    Ok((chart, layer))
}

/// Fetches a published chart. The archive is packed again only if the chart lacks a dependency. Otherwise the archive
/// keeps the digest that the repository names.
async fn fetch_published(
    job: &Job,
    address: &str,
    name: &str,
    asked: &str,
    facts: &mut Facts,
) -> Result<(Chart, PathBuf), Failure> {
    let archive = job.workspace.join("chart.tgz");
    let expected = if address.starts_with("oci://") {
        let digest = vendor::from_registry(job, address, name, asked, &archive).await?;
        job.log.line(&format!("fetched chart `{name}` {asked} from {address}: {digest}"));
        facts.resolved(&format!("{address}/{name}"), "sha256", digest.hex());
        asked.to_owned()
    } else {
        let found = repository::find(address, name, asked).await?;
        let digest = repository::fetch(&found, &archive).await?;
        job.log.line(&format!("fetched chart `{name}` {} from {}: {digest}", found.version, found.url));
        facts.resolved(found.url.as_str(), "sha256", digest.hex());
        found.version
    };
    let root = job.workspace.join(source::SOURCE);
    let directory = unpack(&archive, &root).await?;
    let mut chart = load(&directory, &root, true).await?;
    let (is, version) = (&chart.metadata.name, &chart.metadata.version);
    if is != name || versions::version(version) != versions::version(&expected) {
        return Err(Failure::new(format!(
            "`{address}` returned chart `{is}` {version} instead of `{name}` {expected}"
        )));
    }
    let mut vendor = Vendor { job, facts, root, brought: 0 };
    if vendor.complete(&mut chart, &directory, 0).await? == 0 {
        return Ok((chart, archive));
    }
    let layer = job.workspace.join("layer.tgz");
    let chart = pack(chart, layer.clone()).await?;
    Ok((chart, layer))
}

async fn load(directory: &Path, root: &Path, packaged: bool) -> Result<Chart, Failure> {
    let (directory, root) = (directory.to_owned(), root.to_owned());
    let loaded = tokio::task::spawn_blocking(move || Chart::load(&directory, &root, packaged)).await;
    loaded.map_err(|error| Failure::because("could not read the chart", &error))?.map_err(Failure::new)
}

async fn pack(chart: Chart, into: PathBuf) -> Result<Chart, Failure> {
    let packed =
        tokio::task::spawn_blocking(move || files::pack(&chart.metadata.name, &chart.files, &into).map(|()| chart));
    let unpacked = |error: &dyn std::error::Error| Failure::because("could not pack the chart", error);
    packed.await.map_err(|error| unpacked(&error))?.map_err(|error| unpacked(&error))
}

/// Unpacks a chart's archive into the new directory `into`. Returns the only directory at the top of the archive.
async fn unpack(archive: &Path, into: &Path) -> Result<PathBuf, Failure> {
    let (archive, to) = (archive.to_owned(), into.to_owned());
    let unusable = |error: &dyn std::error::Error| Failure::because("the chart's archive cannot be used", error);
    let unpacked = tokio::task::spawn_blocking(move || archive::unpack(&archive, &to)).await;
    unpacked.map_err(|error| unusable(&error))?.map_err(|error| unusable(&error))?;
    let entries = std::fs::read_dir(into).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let charts = entries.map_err(|error| unusable(&error))?.into_iter().map(|entry| entry.path());
    let charts: Vec<PathBuf> = charts.filter(|path| path.join("Chart.yaml").is_file()).collect();
    match <[PathBuf; 1]>::try_from(charts) {
        Ok([chart]) => Ok(chart),
        Err(found) => {
            Err(Failure::new(format!("the chart's archive holds {} charts; expected exactly one", found.len())))
        }
    }
}

async fn push(job: &Job, work: &BuildArtifact, chart: &Chart, layer: &Path) -> Result<Artifact, Failure> {
    let metadata = &chart.metadata;
    let config = serde_json::to_vec(metadata);
    let config = config.map_err(|error| Failure::because("could not write the chart's config", &error))?;
    // The annotations that Helm writes, except the creation time.
    let annotations = [
        ("org.opencontainers.image.title", metadata.name.as_str()),
        ("org.opencontainers.image.version", &metadata.version),
        ("org.opencontainers.image.description", &metadata.description),
    ];
    let annotations = annotations.into_iter().filter(|(_, text)| !text.is_empty()).collect();
    let repository = ecr_repository(&sdk_config(job).await, &work.repository).await?;
    let config = package::Config { media_type: CHART_CONFIG, bytes: config.into() };
    let layers = [package::Layer { path: layer, media_type: CHART_LAYER }];
    package::push_with(&repository, config, &layers, None, &annotations).await
}
