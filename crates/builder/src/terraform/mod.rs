//! Makes the artifact of a Terraform module. It contains the module, all modules that it calls, a lock file that pins
//! every provider, and the packages of these providers for each platform of runners. A runner needs no registry to
//! apply it.
//!
//! `terraform` or `tofu` chooses the versions of the providers; no code of a provider runs. Each package is a layer and
//! has the same bytes as in the provider's registry, so modules that need the same package share the layer.

mod lock;
mod modules;
mod package;
mod plain_files;
mod program;

use std::collections::BTreeMap;
use std::path::PathBuf;

use freehold_protocol::order::{Artifact, BuildArtifact, MODULE_ARTIFACT, MODULE_LAYER, Recipe};
use freehold_protocol::terraform::{MODULE_CONFIG, ModuleConfig, PROVIDER_LAYER, ProviderPackage};
use freehold_runner::job::failure::{Failure, until_stopped};
use freehold_runner::job::{Job, sdk_config};
use freehold_runner::registry::ecr_repository;

use crate::package::{Config, Layer, push_layer, push_with};
use crate::statement::Facts;
use crate::{archive, source};
use lock::{LOCK, Locked};
use package::Registries;
use program::Terraform;

/// Builds the module and pushes it.
pub(crate) async fn build(job: &Job, work: &BuildArtifact, facts: &mut Facts) -> Result<Artifact, Failure> {
    let directory = source::fetch(job, &work.source).await?;
    if work.recipe == Some(Recipe::ModuleAlone) {
        modules::clear(&directory)?;
        let module = pack_module(job, directory).await?;
        return until_stopped(job, push_layer(job, work, &module, MODULE_LAYER, MODULE_ARTIFACT)).await;
    }
    let before = lock::read(&directory)?;
    modules::clear(&directory)?;
    let terraform = Terraform::find(job, &directory).await?;
    let (name, version) = terraform.version().await?;
    facts.took_part(name, &version);
    terraform.get_modules().await?;
    modules::tidy(&directory)?;
    let platforms = terraform.lock_providers().await?;
    let locked = lock::read(&directory)?;
    for line in lock::choices(&before, &locked) {
        job.log.line(&line);
    }
    let (config, packages) = until_stopped(job, pack_providers(job, (&before, &locked), &platforms)).await?;
    for provider in &config.providers {
        facts.resolved(&provider.uri(), "sha256", provider.digest.hex());
    }
    let module = pack_module(job, directory).await?;
    let mut layers = vec![Layer { path: &module, media_type: MODULE_LAYER }];
    layers.extend(packages.iter().map(|path| Layer { path, media_type: PROVIDER_LAYER }));
    until_stopped(job, async {
        let repository = ecr_repository(&sdk_config(job).await, &work.repository).await?;
        push_with(&repository, written(&config)?, &layers, Some(MODULE_ARTIFACT), &BTreeMap::new()).await
    })
    .await
}

/// Fetches the packages of all providers in the lock file `locked`. Returns the config of the artifact and the paths of
/// the packages. `own` is the lock file in the source: a provider that it pins must have one of its hashes.
async fn pack_providers(
    job: &Job,
    (own, locked): (&[Locked], &[Locked]),
    platforms: &[&str],
) -> Result<(ModuleConfig, Vec<PathBuf>), Failure> {
    let registries = Registries::of(job)?;
    let (mut providers, mut packages): (Vec<ProviderPackage>, Vec<PathBuf>) = (Vec::new(), Vec::new());
    for provider in locked {
        for platform in platforms {
            let path = job.workspace.join(format!("provider-{}.zip", packages.len()));
            match registries.fetch(provider, own, platform, &path).await? {
                Some(package) => {
                    job.log.line(&format!("packed provider {} for {platform}: {}", package.name(), package.digest));
                    providers.push(package);
                    packages.push(path);
                }
                None => job.log.line(&format!(
                    "`{LOCK}` names provider {}@{}, which the module does not need; it is not packed for {platform}",
                    provider.address, provider.version
                )),
            }
        }
    }
    Ok((ModuleConfig { platforms: platforms.iter().map(|one| (*one).to_owned()).collect(), providers }, packages))
}

fn written(config: &ModuleConfig) -> Result<Config, Failure> {
    let bytes = serde_json::to_vec(config);
    let bytes = bytes.map_err(|error| Failure::because("could not write the config of the module", &error))?;
    Ok(Config { media_type: MODULE_CONFIG, bytes: bytes.into() })
}

async fn pack_module(job: &Job, directory: PathBuf) -> Result<PathBuf, Failure> {
    let layer = job.workspace.join("layer.tar.gz");
    let into = layer.clone();
    let packed = tokio::task::spawn_blocking(move || archive::pack(&directory, &into)).await;
    packed
        .map_err(|error| Failure::because("could not pack the module", &error))?
        .map_err(|error| Failure::because("could not pack the module", &error))?;
    Ok(layer)
}
