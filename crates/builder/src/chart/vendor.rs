//! Vendors the dependencies of a chart into its `charts/`, as `helm dependency build` does.

use std::path::{Path, PathBuf};

use freehold_oci::{BlobSource, Reference, RegistryError, Repository, Version, client};
use freehold_protocol::order::CHART_LAYER;
use freehold_runner::job::Job;
use freehold_runner::job::failure::Failure;

use super::metadata::{self, Dependency, Metadata};
use super::versions::{Wanted, version};
use crate::chart::{files, repository};
use crate::private_source;
use crate::statement::Facts;

/// The maximum depth of dependencies between the charts of one source.
const MAX_DEPTH: usize = 8;

/// A chart that was read from a directory.
#[derive(Debug)]
pub(super) struct Chart {
    pub(super) metadata: Metadata,
    pub(super) files: files::Files,
    dependencies: Vec<Dependency>,
    /// The dependencies in the lock file, with resolved versions.
    lock: Vec<Dependency>,
}

impl Chart {
    /// Reads the chart in `directory`, which lies inside `root`.
    pub(super) fn load(directory: &Path, root: &Path, packaged: bool) -> Result<Self, String> {
        let files = files::find(directory, root, packaged)?;
        let read = |name: &str| files.get(name).map(|file| files::text(file)).transpose();
        let missing = || "the source has no `Chart.yaml`, so it is not a chart; name the chart's directory".to_owned();
        let metadata = metadata::metadata(&read("Chart.yaml")?.ok_or_else(missing)?)?;
        let listed = |name: &str| -> Result<Vec<Dependency>, String> {
            read(name)?.map_or_else(|| Ok(Vec::new()), |text| metadata::dependencies(name, &text))
        };
        let older = metadata.dependencies.is_empty() && files.contains_key("requirements.yaml");
        let (dependencies, lock) = if older {
            (listed("requirements.yaml")?, listed("requirements.lock")?)
        } else {
            (metadata.dependencies.clone(), listed("Chart.lock")?)
        };
        Ok(Self { metadata, files, dependencies, lock })
    }

    /// Returns whether the chart already contains the dependency in `charts/`, as a directory or an archive.
    fn has(&self, dependency: &Dependency) -> bool {
        let name = &dependency.name;
        self.files.iter().any(|(path, file)| {
            let Some(inside) = path.strip_prefix("charts/") else { return false };
            match inside.split_once('/') {
                Some((_, "Chart.yaml")) => {
                    files::text(file).and_then(|text| metadata::metadata(&text)).is_ok_and(|found| found.name == *name)
                }
                Some(_) => false,
                None => inside
                    .strip_suffix(".tgz")
                    .and_then(|rest| rest.strip_prefix(name.as_str())?.strip_prefix('-'))
                    .is_some_and(|rest| version(rest).is_some()),
            }
        })
    }

    /// Returns the dependency's version in the lock file. Without it, returns the constraint in `Chart.yaml`.
    fn asked(&self, dependency: &Dependency) -> String {
        let locked = self
            .lock
            .iter()
            .find(|locked| locked.name == dependency.name && locked.repository == dependency.repository);
        locked.map_or(&dependency.version, |locked| &locked.version).clone()
    }
}

/// The state while the dependencies of the charts in one source are vendored.
pub(super) struct Vendor<'a> {
    pub(super) job: &'a Job,
    pub(super) facts: &'a mut Facts,
    /// The root of the source. A `file://` address may not lead out of it.
    pub(super) root: PathBuf,
    /// The number of charts added so far.
    pub(super) brought: usize,
}

impl Vendor<'_> {
    /// Adds the missing dependencies of `chart`, which is in `directory`; returns how many charts it added.
    pub(super) async fn complete(
        &mut self,
        chart: &mut Chart,
        directory: &Path,
        depth: usize,
    ) -> Result<usize, Failure> {
        if depth > MAX_DEPTH {
            return Err(Failure::new(format!(
                "the charts depend on each other in a circle, or through more than {MAX_DEPTH} levels"
            )));
        }
        let before = self.brought;
        for dependency in chart.dependencies.clone() {
            if chart.has(&dependency) {
                continue;
            }
            self.bring(chart, directory, &dependency, depth).await.map_err(|failure| named(&dependency, failure))?;
            self.brought += 1;
        }
        Ok(self.brought - before)
    }

    async fn bring(
        &mut self,
        chart: &mut Chart,
        directory: &Path,
        dependency: &Dependency,
        depth: usize,
    ) -> Result<(), Failure> {
        let (name, from) = (&dependency.name, dependency.repository.as_str());
        let archive = self.job.workspace.join(format!("dependency-{}.tgz", self.brought));
        let asked = chart.asked(dependency);
        if let Some(path) = from.strip_prefix("file://") {
            return Box::pin(self.beside(chart, &directory.join(path), dependency, depth)).await;
        }
        let version = if from.starts_with("https://") || from.starts_with("http://") {
            let found = repository::find(from, name, &asked).await?;
            let digest = repository::fetch(&found, &archive).await?;
            self.job.log.line(&format!("fetched dependency `{name}` {} from {}: {digest}", found.version, found.url));
            self.facts.resolved(found.url.as_str(), "sha256", digest.hex());
            found.version
        } else if from.starts_with("oci://") {
            let digest = from_registry(self.job, from, name, &asked, &archive).await?;
            self.job.log.line(&format!("fetched dependency `{name}` {asked} from {from}: {digest}"));
            self.facts.resolved(&format!("{from}/{name}"), "sha256", digest.hex());
            asked
        } else if from.is_empty() {
            return Err(Failure::new(
                "it names no repository and is not in `charts/`; put the chart into `charts/`, or name its repository",
            ));
        } else {
            return Err(Failure::new(format!(
                "`{from}` is not an address; write the address of the repository (`https://`, `http://` or \
                 `oci://`), write `file://` and the path of a chart in another directory of the source, or put the \
                 chart into `charts/`"
            )));
        };
        chart.files.insert(format!("charts/{name}-{version}.tgz"), archive);
        Ok(())
    }

    /// Adds a chart from another directory of the same source (a `file://` address).
    async fn beside(
        &mut self,
        chart: &mut Chart,
        directory: &Path,
        dependency: &Dependency,
        depth: usize,
    ) -> Result<(), Failure> {
        let from = &dependency.repository;
        let found = directory.canonicalize().ok().filter(|path| path.is_dir());
        let found = found.ok_or_else(|| {
            Failure::new(format!(
                "there is no directory `{from}` in the source; correct the path, or take a directory or repository \
                 that holds both charts"
            ))
        })?;
        let root = self.root.canonicalize().map_err(|error| Failure::because("could not read the source", &error))?;
        if !found.starts_with(&root) {
            return Err(Failure::new(format!(
                "`{from}` is outside of the source; take a directory or repository that holds both charts, or put the \
                 chart into `charts/`"
            )));
        }
        let mut other = Chart::load(&found, &self.root, false).map_err(Failure::new)?;
        let wanted = Wanted::parse(&dependency.version).map_err(Failure::new)?;
        let (name, has) = (&other.metadata.name, &other.metadata.version);
        if *name != dependency.name || !version(has).is_some_and(|version| wanted.takes(&version)) {
            let asked = &dependency.version;
            return Err(Failure::new(format!(
                "`{from}` holds chart `{name}` {has}, but the dependency is `{}` {asked}",
                dependency.name
            )));
        }
        let name = name.clone();
        self.complete(&mut other, &found, depth + 1).await?;
        let files = other.files.into_iter().map(|(path, file)| (format!("charts/{name}/{path}"), file));
        chart.files.extend(files);
        Ok(())
    }
}

/// Fetches a chart from an OCI registry; returns the archive's digest.
pub(super) async fn from_registry(
    job: &Job,
    address: &str,
    name: &str,
    asked: &str,
    into: &Path,
) -> Result<freehold_protocol::Digest, Failure> {
    if asked.is_empty() || version(asked).is_none() {
        return Err(Failure::new(format!(
            "`{address}` is a registry, which has no list of charts; name one version instead of `{asked}`"
        )));
    }
    // A tag cannot contain `+`; Helm writes `_` instead.
    let reference =
        format!("{}/{name}:{}", address.trim_start_matches("oci://").trim_end_matches('/'), asked.replace('+', "_"));
    let reference: Reference = reference.parse().map_err(RegistryError::from)?;
    let login = private_source::registry::login(job, &reference).await?;
    let from = Repository::new(client()?, &reference.host, &reference.repository, login)?;
    let Version::Tag(_) = &reference.version else {
        return Err(Failure::new("a chart must be named by a version, not by a digest"));
    };
    let manifest = from.manifest(&reference.version).await?;
    let parts = manifest.parts().map_err(Failure::new)?;
    let layer = parts.blobs.into_iter().find(|blob| blob.media_type == CHART_LAYER);
    let layer = layer.ok_or_else(|| Failure::new(format!("`{address}/{name}` {asked} is not a chart")))?;
    repository::check_size(address, layer.size)?;
    freehold_oci::fetch(&BlobSource::Repository(from), &layer, into).await?;
    Ok(layer.digest)
}

fn named(dependency: &Dependency, failure: Failure) -> Failure {
    match failure {
        Failure::Failed { reason, partial } => {
            Failure::Failed { reason: format!("dependency `{}`: {reason}", dependency.name), partial }
        }
        other @ (Failure::Stopped { .. } | Failure::Waits(_) | Failure::NotApproved { .. }) => other,
    }
}
