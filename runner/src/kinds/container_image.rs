//! `container_image`: evaluates the policies on an image, and copies it into the install registry. The outputs are the
//! names of the image there.

use freehold_oci::digest_tag;
use freehold_protocol::order::SyncImage;
use serde_json::{Value, json};

use crate::job::Job;
use crate::job::failure::{Failure, until_stopped};
use crate::kinds::guard;
use crate::kinds::provenance;
use crate::kinds::result::Done;
use crate::kinds::sync_artifact::sync_artifact;

pub(super) async fn run(job: &Job, work: &SyncImage) -> Result<Done, Failure> {
    let (name, metadata) = provenance::image(job, &work.component, &work.artifact)?;
    guard::image(job, &name, &work.artifact.digest, metadata).await?;
    let repository = until_stopped(job, sync_artifact(job, &work.artifact)).await?;
    let digest = &work.artifact.digest;
    let reference = repository.image(digest);
    // The object `image` has the keys that existing app configs read.
    let image = json!({
        "repository": repository.address(), "tag": digest_tag(digest), "digest": digest, "ref": reference,
    });
    let outputs = [
        ("image", image),
        ("reference", Value::String(reference)),
        ("repository", Value::String(repository.address())),
        ("digest", Value::String(digest.to_string())),
    ];
    let outputs = outputs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    Ok(Done { outputs, ..Done::default() })
}
