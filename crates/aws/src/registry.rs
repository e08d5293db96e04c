//! The tenant registry on ECR: manifests by digest and pre-signed URLs of blobs. A separate type removes manifests.

use async_trait::async_trait;
use aws_config::SdkConfig;
use aws_sdk_ecr::Client;
use aws_sdk_ecr::types::{ImageFailureCode, ImageIdentifier};
use freehold_app::ports::{ArtifactRemover, PortError, Registry};
use freehold_protocol::Digest;
use freehold_protocol::order::Descriptor;

use crate::error::port_error;

/// The tenant's repository.
#[derive(Debug, Clone)]
pub struct EcrRegistry {
    client: Client,
    repository: String,
}

impl EcrRegistry {
    /// Returns the registry in the ECR repository `repository`.
    pub fn new(config: &SdkConfig, repository: impl Into<String>) -> Self {
        Self { client: Client::new(config), repository: repository.into() }
    }
}

#[async_trait]
impl Registry for EcrRegistry {
    async fn manifest(&self, manifest: &Descriptor) -> Result<Vec<u8>, PortError> {
        let answer = self
            .client
            .batch_get_image()
            .repository_name(&self.repository)
            .image_ids(ImageIdentifier::builder().image_digest(manifest.digest.as_str()).build())
            .accepted_media_types(&manifest.media_type)
            .send()
            .await
            .map_err(|e| port_error("tenant registry", e))?;
        let image = answer.images().first().and_then(|image| image.image_manifest());
        image.map(|text| text.as_bytes().to_vec()).ok_or_else(|| {
            let why = answer.failures().first().and_then(|failure| failure.failure_reason());
            let reason = format!("manifest `{}`: {}", manifest.digest, why.unwrap_or("it does not exist"));
            PortError::Failed { what: "tenant registry".into(), reason }
        })
    }

    async fn blob_url(&self, blob: &Descriptor) -> Result<String, PortError> {
        let answer = self
            .client
            .get_download_url_for_layer()
            .repository_name(&self.repository)
            .layer_digest(blob.digest.as_str())
            .send()
            .await
            .map_err(|e| port_error("tenant registry", e))?;
        answer.download_url.ok_or_else(|| PortError::Failed {
            what: "tenant registry".into(),
            reason: format!("the response of ECR has no URL for blob `{}`", blob.digest),
        })
    }
}

/// The tenant's repository, for the removal of manifests. Only one function has the permission to remove.
#[derive(Debug, Clone)]
pub struct EcrRemover {
    client: Client,
    repository: String,
}

impl EcrRemover {
    /// Returns the remover for the ECR repository `repository`.
    pub fn new(config: &SdkConfig, repository: impl Into<String>) -> Self {
        Self { client: Client::new(config), repository: repository.into() }
    }

    async fn remove_one(&self, manifest: &Digest) -> Result<(), PortError> {
        let answer = self
            .client
            .batch_delete_image()
            .repository_name(&self.repository)
            .image_ids(ImageIdentifier::builder().image_digest(manifest.as_str()).build())
            .send()
            .await
            .map_err(|e| port_error("tenant registry", e))?;
        match answer.failures().first() {
            None => Ok(()),
            Some(failure) => match failure.failure_code() {
                // `ImageReferencedByManifestList`: an index that is not removed still names this manifest.
                Some(ImageFailureCode::ImageNotFound | ImageFailureCode::ImageReferencedByManifestList) => Ok(()),
                Some(_) | None => Err(PortError::Failed {
                    what: "tenant registry".into(),
                    reason: format!("manifest `{manifest}`: {}", failure.failure_reason().unwrap_or("not removed")),
                }),
            },
        }
    }
}

#[async_trait]
impl ArtifactRemover for EcrRemover {
    // One call per manifest, because an index must be removed before the manifests that it names.
    async fn remove(&self, manifests: &[Digest]) -> Result<(), PortError> {
        for manifest in manifests {
            self.remove_one(manifest).await?;
        }
        Ok(())
    }
}
