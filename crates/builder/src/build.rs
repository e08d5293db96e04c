//! `build`: makes an artifact from its source and pushes it to the tenant registry: first the blobs, then the
//! manifests. A second build of the same source gives the same digest and changes nothing.

use async_trait::async_trait;
use freehold_protocol::order::{Artifact, BuildArtifact, Package, Source, TEMPLATE_ARTIFACT, TEMPLATE_LAYER, Work};
use freehold_protocol::report::Outcome;
use freehold_runner::job::failure::{Failure, until_stopped};
use freehold_runner::job::{Execute, Job, sdk_config};
use freehold_runner::kinds::result::{self, Done};
use freehold_runner::registry::ecr_repository;

use crate::package::push_layer;
use crate::statement::{self, Facts};
use crate::{chart, dockerfile, image, layout, manifests, package, pulumi, source, step, terraform};

/// The only kind of job that a build runner executes.
#[derive(Debug)]
pub struct BuildKind;

#[async_trait]
impl Execute for BuildKind {
    async fn execute(&self, job: &Job) -> Outcome {
        execute(job).await
    }
}

/// Builds the artifact and returns the outcome. After `job.stop`, the build ends soon and leaves no process running.
pub async fn execute(job: &Job) -> Outcome {
    let ended = match &job.order.work {
        Work::Build(work) => build(job, work).await,
        Work::ContainerImage(_)
        | Work::TerraformModule(_)
        | Work::Sandbox(_)
        | Work::Pulumi(_)
        | Work::PulumiSandbox(_)
        | Work::Remove(_)
        | Work::DetectDrift(_)
        | Work::CloudformationStack(_)
        | Work::HelmChart(_)
        | Work::KubernetesManifest(_)
        | Work::KubernetesJob(_)
        | Work::CopySecrets(_)
        | Work::Action(_)
        | Work::Preflight(_)
        | Work::Leftovers(_)
        | Work::Health(_)
        | Work::Upgrade(_) => {
            let kind = job.order.work.kind();
            Err(Failure::new(format!("a build runner does not run `{kind}` jobs; an install runner runs them")))
        }
    };
    result::outcome(job, ended)
}

async fn build(job: &Job, work: &BuildArtifact) -> Result<Done, Failure> {
    let mut facts = Facts::begin();
    let artifact = match (&work.package, &work.source) {
        (Package::Image, Source::Image { reference }) => {
            until_stopped(job, image::copy(job, work, reference, &mut facts)).await?
        }
        (Package::Image, Source::EcrImage { reference, region, role_arn }) => {
            until_stopped(job, image::copy_private(job, work, reference, region, role_arn, &mut facts)).await?
        }
        (Package::Image, Source::Directory { .. } | Source::Git { .. }) => image_on_disk(job, work).await?,
        (Package::TerraformModule, Source::Directory { .. } | Source::Git { .. }) => {
            terraform::build(job, work, &mut facts).await?
        }
        (Package::CloudformationTemplate, Source::Directory { .. } | Source::Git { .. }) => template(job, work).await?,
        (Package::HelmChart, _) => chart::build(job, work, &mut facts).await?,
        (Package::DockerImage, Source::Directory { .. } | Source::Git { .. }) => {
            dockerfile::build(job, work, &mut facts).await?
        }
        (Package::KubernetesManifest, _) => manifests::build(job, work).await?,
        (Package::PulumiProgram, Source::Directory { .. } | Source::Git { .. }) => pulumi::build(job, work).await?,
        (Package::StepDirectory, Source::Directory { .. } | Source::Git { .. }) => step::build(job, work).await?,
        (
            package,
            source @ (Source::Image { .. } | Source::EcrImage { .. } | Source::Chart { .. } | Source::Version),
        ) => {
            let (package, source) = (package.describe(), source.describe());
            return Err(Failure::new(format!("{package} cannot be built from {source}")));
        }
    };
    if let Source::Git { url, commit, .. } = &work.source {
        facts.resolved(&format!("git+{url}"), "gitCommit", commit);
    }
    if let Source::Directory { digest } = &work.source {
        facts.resolved(&format!("urn:freehold:source:{}", digest.hex()), "sha256", digest.hex());
    }
    let artifact = until_stopped(job, async {
        let repository = ecr_repository(&sdk_config(job).await, &work.repository).await?;
        statement::attest(job, work, &repository, artifact, facts).await
    })
    .await?;
    job.log.line(&format!("built `{}` as {}", work.component, artifact.digest));
    Ok(Done { artifact: Some(artifact), ..Done::default() })
}

/// Pushes an image that its source has as an OCI image layout.
async fn image_on_disk(job: &Job, work: &BuildArtifact) -> Result<Artifact, Failure> {
    if image::signers(work)?.is_some() {
        return Err(Failure::new(
            "the signatures of an image on disk cannot be checked: they are in its registry; take the image \
             from its registry, with `public` or `aws_ecr`, or remove `require_signature`",
        ));
    }
    let directory = source::fetch(job, &work.source).await?;
    until_stopped(job, async {
        let repository = ecr_repository(&sdk_config(job).await, &work.repository).await?;
        layout::push(&repository, &directory).await
    })
    .await
}

/// Pushes the CloudFormation template of the source.
async fn template(job: &Job, work: &BuildArtifact) -> Result<Artifact, Failure> {
    let directory = source::fetch(job, &work.source).await?;
    let template = package::find_template(&directory).map_err(Failure::new)?;
    until_stopped(job, push_layer(job, work, &template, TEMPLATE_LAYER, TEMPLATE_ARTIFACT)).await
}
