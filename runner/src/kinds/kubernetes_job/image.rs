//! Finds the image of a job. A cluster gets images of the install registry only, by digest.

use freehold_oci::Version;
use freehold_protocol::order::{JobImage, RunKubernetesJob};

use crate::job::Job;
use crate::job::failure::Failure;
use crate::kinds::sync_artifact::sync_artifact;
use crate::kinds::templates::Templates;

/// Checks that the install registry has the image of the job, and returns the image as `host/name@digest`.
pub(super) async fn find(job: &Job, work: &RunKubernetesJob, templates: &Templates) -> Result<String, Failure> {
    let repository = sync_artifact(job, &work.artifact).await?;
    match &work.image {
        JobImage::Artifact => Ok(repository.image(&work.artifact.digest)),
        JobImage::Component { image_url, tag } => {
            let (url, tag) = (templates.text("`image_url`", image_url)?, templates.text("`tag`", tag)?);
            let named = if url.contains('@') { url } else { format!("{url}:{tag}") };
            let refused = || {
                Failure::new(format!(
                    "component `{}` runs image `{named}`, which is not in the install registry; add the image to the \
                     app as a component of type `container_image` or `docker_build`, and write the outputs \
                     `image.repository` and `image.tag` of that component into `image_url` and `tag`",
                    work.component
                ))
            };
            let version = version(&repository.address(), &named).ok_or_else(refused)?;
            let digest = repository.manifest_digest(&version).await?.ok_or_else(refused)?;
            Ok(repository.image(&digest))
        }
    }
}

/// Returns the tag or the digest of the image `named` in the repository `address`; `None` for an image of another
/// repository.
fn version(address: &str, named: &str) -> Option<Version> {
    let rest = named.strip_prefix(address)?;
    match rest.strip_prefix('@') {
        Some(digest) => digest.parse().ok().map(Version::Digest),
        None => rest.strip_prefix(':').filter(|tag| !tag.is_empty()).map(|tag| Version::Tag(tag.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use freehold_protocol::Digest;

    use super::*;

    #[test]
    fn only_images_of_the_install_registry_have_a_version() {
        let digest = Digest::of(b"image");
        let of = |named: &str| version("registry.example/fh", named);

        assert_eq!(of("registry.example/fh:sha256-012"), Some(Version::Tag("sha256-012".into())));
        assert_eq!(of(&format!("registry.example/fh@{digest}")), Some(Version::Digest(digest)));
        for other in ["registry.example/fh", "registry.example/fh:", "registry.example/fhx:1", "docker.io/a:1"] {
            assert_eq!(of(other), None, "{other}");
        }
    }
}
