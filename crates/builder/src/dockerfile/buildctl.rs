//! Builds an image with `buildctl` and a BuildKit daemon. The daemon runs the steps outside of the box.

use std::path::{Path, PathBuf};

use freehold_runner::job::Job;
use freehold_runner::job::failure::Failure;

use super::request::Request;
use super::run::run;
use crate::archive;

/// Builds the image; returns the directory of its layout.
pub(super) async fn build(job: &Job, program: &Path, request: &Request<'_>) -> Result<PathBuf, Failure> {
    let daemon = std::env::var("BUILDKIT_HOST").unwrap_or_default();
    let more = if daemon.is_empty() { Vec::new() } else { vec![("BUILDKIT_HOST", daemon)] };
    run(job, program, arguments(request), &more, request).await?;
    let (packed, image) = (job.workspace.join("image.tar"), job.workspace.join("image"));
    let into = image.clone();
    let unpacked = tokio::task::spawn_blocking(move || archive::unpack_plain(&packed, &into)).await;
    unpacked
        .map_err(|error| Failure::because("could not unpack the image", &error))?
        .map_err(|error| Failure::because("could not unpack the image", &error))?;
    Ok(image)
}

pub(super) fn arguments(request: &Request<'_>) -> Vec<String> {
    let dockerfile = request.dockerfile;
    let directory = dockerfile.parent().unwrap_or(request.context).display();
    let name = dockerfile.file_name().unwrap_or_default().to_string_lossy();
    let mut words: Vec<String> =
        ["build", "--progress", "plain", "--no-cache", "--frontend", "dockerfile.v0"].map(str::to_owned).to_vec();
    words.extend(["--local".to_owned(), format!("context={}", request.context.display())]);
    words.extend(["--local".to_owned(), format!("dockerfile={directory}")]);
    let args = request.args.iter().map(|(name, value)| format!("build-arg:{name}={value}"));
    let target = (!request.target.is_empty()).then(|| format!("target={}", request.target));
    // All times of files and of the image are set to this value.
    let fixed = [format!("filename={name}"), "build-arg:SOURCE_DATE_EPOCH=0".to_owned()];
    for option in fixed.into_iter().chain(args).chain(target) {
        words.extend(["--opt".to_owned(), option]);
    }
    let output = request.workspace.join("image.tar");
    words.extend(["--output".to_owned(), format!("type=oci,rewrite-timestamp=true,dest={}", output.display())]);
    words
}
