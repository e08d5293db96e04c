//! Builds an image with Buildah. The steps of the Dockerfile run inside the box, in a separate root directory.

use std::path::{Path, PathBuf};

use freehold_runner::job::Job;
use freehold_runner::job::failure::Failure;
use freehold_runner::sandbox;

use super::request::Request;
use super::run::run;

/// A shell script that runs Buildah and then removes Buildah's storage. If the storage stayed, the box would have to
/// change the owner of each stored file. Without a box, the files belong to users of Buildah's own namespace, so
/// `buildah unshare` removes them.
const BUILDAH: &str = r#"
clean() { rm -rf "$STORAGE" 2>/dev/null || "$0" unshare rm -rf "$STORAGE"; }
trap clean EXIT
trap 'exit 143' TERM INT
"$0" "$@"
"#;
/// The registry config: Buildah resolves a short image name at Docker Hub, as other programs do.
const REGISTRIES: &str = "unqualified-search-registries = [\"docker.io\"]\nshort-name-mode = \"permissive\"\n";
/// The signature policy, which accepts every image: the runner has already checked the digests of the fetched images.
const POLICY: &str = r#"{"default":[{"type":"insecureAcceptAnything"}]}"#;
/// Capabilities that no step gets. Buildah grants the first capability by default, and a step that has it could leave
/// its root directory.
const DROPPED: [&str; 4] = ["CAP_SYS_CHROOT", "CAP_MKNOD", "CAP_NET_RAW", "CAP_SYS_ADMIN"];

/// Builds the image; returns the directory of its layout.
pub(super) async fn build(job: &Job, program: &Path, request: &Request<'_>) -> Result<PathBuf, Failure> {
    let shell = sandbox::find_program(&["sh"]).ok_or_else(|| Failure::new("`sh` is not on this runner's `PATH`"))?;
    // The shell starts Buildah, so the runner does not compare Buildah's digest when it starts the shell.
    sandbox::check_program(&job.config, program).await?;
    let local = |error: std::io::Error| Failure::because("could not write into the workspace", &error);
    std::fs::create_dir_all(job.workspace.join("storage/tmp")).map_err(local)?;
    std::fs::write(job.workspace.join("registries.conf"), REGISTRIES).map_err(local)?;
    std::fs::write(job.workspace.join("policy.json"), POLICY).map_err(local)?;
    let mut words = vec!["-c".to_owned(), BUILDAH.to_owned(), program.display().to_string()];
    words.extend(arguments(request));
    let at = |path: &str| request.workspace.join(path).display().to_string();
    run(job, &shell, words, &[("STORAGE", at("storage")), ("TMPDIR", at("storage/tmp"))], request).await?;
    Ok(job.workspace.join("image"))
}

pub(super) fn arguments(request: &Request<'_>) -> Vec<String> {
    let at = |path: &str| request.workspace.join(path).display().to_string();
    let mut words = vec!["--root".to_owned(), at("storage/root"), "--runroot".to_owned(), at("storage/run")];
    words.extend(["--storage-driver", "vfs", "--registries-conf"].map(str::to_owned));
    words.extend([at("registries.conf"), "bud".to_owned(), "--signature-policy".to_owned(), at("policy.json")]);
    // Layers for each step would contain times. A single layer without times is identical for identical files.
    words.extend(["--isolation", "chroot", "--layers=false", "--timestamp", "0"].map(str::to_owned));
    words.extend(DROPPED.into_iter().flat_map(|capability| ["--cap-drop".to_owned(), capability.to_owned()]));
    for (word, directory) in request.bases {
        words.extend(["--build-context".to_owned(), format!("{word}=container-image://oci:{}", at(directory))]);
    }
    for (name, value) in request.args {
        words.extend(["--build-arg".to_owned(), format!("{name}={value}")]);
    }
    if !request.target.is_empty() {
        words.extend(["--target".to_owned(), request.target.to_owned()]);
    }
    words.extend(["--tag".to_owned(), format!("oci:{}", at("image"))]);
    words.extend(["--file".to_owned(), request.dockerfile.display().to_string()]);
    words.push(request.context.display().to_string());
    words
}
