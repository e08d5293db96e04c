//! Copies an image with all of its platforms into the tenant registry.

use aws_credential_types::provider::SharedCredentialsProvider;
use freehold_oci::{CopyOptions, Reference, RegistryError, Repository, Version};
use freehold_protocol::AccountId;
use freehold_protocol::order::{Artifact, BuildArtifact, Recipe, Signer};
use freehold_runner::aws;
use freehold_runner::job::failure::Failure;
use freehold_runner::job::{Job, sdk_config};
use freehold_runner::registry::{ecr_login, ecr_repository};

use crate::statement::Facts;
use crate::{private_source, signature};

/// The URI under which a statement lists the key that signed an image. The digest at this URI is the SHA-256 of the
/// key's `SubjectPublicKeyInfo`.
const SIGNER: &str = "urn:freehold:cosign-key";

/// Resolves `reference` once and copies the image that it names.
pub(crate) async fn copy(
    job: &Job,
    work: &BuildArtifact,
    reference: &str,
    facts: &mut Facts,
) -> Result<Artifact, Failure> {
    let reference: Reference = reference.parse().map_err(RegistryError::from)?;
    let sdk = sdk_config(job).await;
    let target = ecr_repository(&sdk, &work.repository).await?;
    // The build role can read the account's own registry. Every other registry is read with its stored login, or
    // anonymously.
    let own = target.address().starts_with(&format!("{}/", reference.host));
    let source = if own {
        ecr_repository(&sdk, &reference.repository).await?
    } else {
        let login = private_source::registry::login(job, &reference).await?;
        Repository::new(target.http().clone(), &reference.host, &reference.repository, login)?
    };
    copy_from(job, work, &source, &reference, &target, facts).await
}

/// Copies an image from a private Amazon ECR registry, which is read under the role `role_arn`.
pub(crate) async fn copy_private(
    job: &Job,
    work: &BuildArtifact,
    reference: &str,
    region: &str,
    role_arn: &str,
    facts: &mut Facts,
) -> Result<Artifact, Failure> {
    let reference: Reference = reference.parse().map_err(RegistryError::from)?;
    let target = ecr_repository(&sdk_config(job).await, &work.repository).await?;
    let role = assume(job, role_arn).await?;
    let (login, address) = ecr_login(&aws::sdk_config(region, Some(role)).await).await?;
    let given = freehold_oci::base_url(&address).map_err(RegistryError::from)?;
    let asked = freehold_oci::base_url(&reference.host).map_err(RegistryError::from)?;
    let place = |authority: &str| {
        authority.split_once('.').and_then(|(account, rest)| AccountId::SHAPE.accepts(account).then(|| rest.to_owned()))
    };
    // The login is valid for the registries of all accounts in the region. No other host may receive the login.
    if asked != given && (place(asked.authority()).is_none() || place(asked.authority()) != place(given.authority())) {
        return Err(Failure::new(format!(
            "`{role_arn}` can only log in to registries of the component's `region`, such as `{}`, but the image is in \
             `{}`; correct the image or the region",
            given.authority(),
            reference.host
        )));
    }
    let source = Repository::new(target.http().clone(), &reference.host, &reference.repository, login)?;
    copy_from(job, work, &source, &reference, &target, facts).await
}

async fn assume(job: &Job, role_arn: &str) -> Result<SharedCredentialsProvider, Failure> {
    let sts = aws_sdk_sts::Client::new(&sdk_config(job).await);
    let answer = sts.assume_role().role_arn(role_arn).role_session_name("freehold-build").send().await;
    let answer = answer.map_err(|error| {
        Failure::new(format!(
            "could not assume `{role_arn}`: {}; let its trust policy name the build runner's role, and let that role \
             assume it with `freehold tenant deploy --source-role {role_arn}`",
            aws::explain(&error)
        ))
    })?;
    let given = answer
        .credentials
        .ok_or_else(|| Failure::new(format!("AWS returned no credentials of `{role_arn}`; build again")))?;
    let expires = std::time::SystemTime::try_from(given.expiration).ok();
    let credentials = aws_credential_types::Credentials::new(
        given.access_key_id,
        given.secret_access_key,
        Some(given.session_token),
        expires,
        "source role",
    );
    Ok(SharedCredentialsProvider::new(credentials))
}

/// Returns the signers that the order accepts for the image, or `None` when the order does not require a signature.
pub(crate) fn signers(work: &BuildArtifact) -> Result<Option<&[Signer]>, Failure> {
    match &work.recipe {
        None => Ok(None),
        Some(Recipe::SignedImage { signers }) => Ok(Some(signers)),
        Some(
            Recipe::Dockerfile { .. }
            | Recipe::Manifest { .. }
            | Recipe::PackedManifest { .. }
            | Recipe::Kustomization { .. }
            | Recipe::ModuleAlone,
        ) => Err(Failure::new(
            "the order asks for the copy of an image, but contains instructions for another type of component; update \
             the tenant and run `freehold build` again",
        )),
    }
}

async fn copy_from(
    job: &Job,
    work: &BuildArtifact,
    source: &Repository,
    reference: &Reference,
    target: &Repository,
    facts: &mut Facts,
) -> Result<Artifact, Failure> {
    let (version, key) = match signers(work)? {
        None => (reference.version.clone(), None),
        // The tag is resolved only once, because it may move: the copied image must be the checked image.
        Some(signers) => {
            let found = source.manifest(&reference.version).await;
            let digest = found.map_err(|error| not_copied(work, source, error))?.digest;
            let key = signature::check(source, &digest, signers).await?;
            job.log.line(&format!("{} is signed by key {key}", source.image(&digest)));
            (Version::Digest(digest), Some(key))
        }
    };
    let named = match &version {
        Version::Tag(tag) => format!("{}:{tag}", source.address()),
        Version::Digest(digest) => source.image(digest),
    };
    job.log.line(&format!("copying {named} to {}", target.address()));
    let copied = freehold_oci::copy(source, &version, target, &CopyOptions::default()).await;
    let copied = copied.map_err(|error| not_copied(work, source, error))?;
    let (artifact, moved) = (&copied.artifact, copied.moved);
    // The statement lists the source image by the digest that was copied, because the tag may move later.
    facts.resolved(&format!("oci://{}", source.address()), "sha256", artifact.digest.hex());
    if let Some(key) = key {
        facts.resolved(SIGNER, "sha256", key.hex());
    }
    let (manifests, blobs) = (artifact.manifests.len(), artifact.blobs.len());
    job.log.line(&format!("{manifests} manifests, {blobs} blobs, {} bytes", artifact.blob_bytes()));
    let (sent, bytes, referrers) = (moved.sent, moved.sent_bytes, copied.referrers.len());
    job.log.line(&format!("sent {sent} blobs, {bytes} bytes; {referrers} manifests refer to the image"));
    Ok(copied.artifact)
}

/// Returns the failure of a copy from `source`. If the registry of the source lacks the image, the reason names the
/// component and the way out.
fn not_copied(work: &BuildArtifact, source: &Repository, error: RegistryError) -> Failure {
    match &error {
        RegistryError::NotFound { host, .. } if source.address().starts_with(&format!("{host}/")) => {
            Failure::of_component(
                &work.component,
                format!(
                    "{error}; correct `image_url` and `tag` in the config of the component, or push the image to this \
                     registry; then build again"
                ),
            )
        }
        _ => error.into(),
    }
}
