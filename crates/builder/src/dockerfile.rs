//! Builds an image from a Dockerfile with Buildah or, where Buildah is absent, with `buildctl` and a BuildKit daemon.
//!
//! The program runs outside of the job's sandbox: the files of an image belong to many users, and the sandbox has only
//! one. Buildah gives the steps of a Dockerfile a separate root directory and, for a runner that is not root, a user
//! namespace; the steps have the network access of the runner. The image is for the runner's own platform.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use freehold_protocol::order::{Artifact, BuildArtifact, Recipe};
use freehold_runner::kinds::failure::Failure;
use freehold_runner::kinds::result::{sdk_config, until_stopped};
use freehold_runner::registry::ecr_repository;
use freehold_runner::sandbox::{self, Ended, Interrupt, Output, Program};
use freehold_runner::work::job::Job;

use crate::archive;
use crate::layout;
use crate::source;

/// The programs that can build, in order of preference.
pub(crate) const BUILDERS: [&str; 2] = ["buildah", "buildctl"];

/// Removes the files that Buildah kept; they belong to users that exist only in its own namespace.
const BUILDAH: &str = r#"
clean() { "$0" unshare rm -rf "$STORAGE" 2>/dev/null || rm -rf "$STORAGE"; }
trap clean EXIT
trap 'exit 143' TERM INT
"$0" "$@"
"#;
/// Resolves a short image name at Docker Hub, as other programs do.
const REGISTRIES: &str = "unqualified-search-registries = [\"docker.io\"]\nshort-name-mode = \"permissive\"\n";
/// Accepts base images as the Dockerfile names them; pin them by digest.
const POLICY: &str = r#"{"default":[{"type":"insecureAcceptAnything"}]}"#;

/// The arguments of one build.
#[derive(Debug)]
struct Request<'a> {
    /// Absolute paths.
    context: &'a Path,
    dockerfile: &'a Path,
    workspace: &'a Path,
    args: &'a BTreeMap<String, String>,
    target: &'a str,
}

/// Builds the image and pushes it.
pub(crate) async fn build(job: &Job, work: &BuildArtifact) -> Result<Artifact, Failure> {
    let Some(Recipe::Dockerfile { dockerfile, args, target }) = &work.recipe else {
        return Err(Failure::new("the order names no Dockerfile; build again with this release"));
    };
    let builder = sandbox::find_program(&BUILDERS).ok_or_else(|| {
        Failure::new(
            "neither `buildah` nor `buildctl` is on this runner's `PATH`; install the package `buildah` on the build \
             runner's machine",
        )
    })?;
    let context = source::fetch(job, &work.source).await?;
    // The files in `.git` differ between clones and are not part of the source.
    let kept = job.workspace.join(source::SOURCE).join(".git");
    if kept.is_dir() {
        std::fs::remove_dir_all(&kept).map_err(|error| Failure::because("could not clean the source", &error))?;
    }
    let context = context.canonicalize().map_err(|error| Failure::because("could not read the source", &error))?;
    let dockerfile = inside(&context, dockerfile)?;
    let workspace = job.workspace.canonicalize();
    let workspace = workspace.map_err(|error| Failure::because("could not read the workspace", &error))?;
    let request = Request { context: &context, dockerfile: &dockerfile, workspace: &workspace, args, target };
    let image = if builder.ends_with("buildah") {
        buildah(job, &builder, &request).await?
    } else {
        buildctl(job, &builder, &request).await?
    };
    until_stopped(job, async {
        let repository = ecr_repository(&sdk_config(job).await, &work.repository).await?;
        layout::push(&repository, &image).await
    })
    .await
}

/// Returns the path of the Dockerfile; refuses to follow a link out of the source.
fn inside(context: &Path, dockerfile: &str) -> Result<PathBuf, Failure> {
    let found = context.join(dockerfile).canonicalize().ok();
    found.filter(|path| path.starts_with(context) && path.is_file()).ok_or_else(|| {
        Failure::new(format!("the source has no file `{dockerfile}`; name the Dockerfile relative to the source"))
    })
}

async fn buildah(job: &Job, program: &Path, request: &Request<'_>) -> Result<PathBuf, Failure> {
    let shell = sandbox::find_program(&["sh"]).ok_or_else(|| Failure::new("`sh` is not on this runner's `PATH`"))?;
    let workspace = request.workspace;
    let local = |error: std::io::Error| Failure::because("could not write into the workspace", &error);
    std::fs::create_dir_all(workspace.join("storage/tmp")).map_err(local)?;
    std::fs::write(workspace.join("registries.conf"), REGISTRIES).map_err(local)?;
    std::fs::write(workspace.join("policy.json"), POLICY).map_err(local)?;
    let mut arguments = vec!["-c".to_owned(), BUILDAH.to_owned(), program.display().to_string()];
    arguments.extend(buildah_arguments(request));
    run(job, &shell, arguments, &[("STORAGE", "storage"), ("TMPDIR", "storage/tmp")], workspace).await?;
    Ok(workspace.join("image"))
}

fn buildah_arguments(request: &Request<'_>) -> Vec<String> {
    let at = |path: &str| request.workspace.join(path).display().to_string();
    let mut words = vec!["--root".to_owned(), at("storage/root"), "--runroot".to_owned(), at("storage/run")];
    words.extend(["--storage-driver", "vfs", "--registries-conf"].map(str::to_owned));
    words.extend([at("registries.conf"), "bud".to_owned(), "--signature-policy".to_owned(), at("policy.json")]);
    // A layer for each step would contain times; a single layer without times is the same for the same files.
    words.extend(["--isolation", "chroot", "--layers=false", "--timestamp", "0"].map(str::to_owned));
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

async fn buildctl(job: &Job, program: &Path, request: &Request<'_>) -> Result<PathBuf, Failure> {
    let workspace = request.workspace;
    let daemon = std::env::var("BUILDKIT_HOST").unwrap_or_default();
    let more: &[(&str, &str)] = if daemon.is_empty() { &[] } else { &[("BUILDKIT_HOST", &daemon)] };
    run(job, program, buildctl_arguments(request), more, workspace).await?;
    let (packed, image) = (workspace.join("image.tar"), workspace.join("image"));
    let into = image.clone();
    let unpacked = tokio::task::spawn_blocking(move || archive::unpack_plain(&packed, &into)).await;
    unpacked
        .map_err(|error| Failure::because("could not unpack the image", &error))?
        .map_err(|error| Failure::because("could not unpack the image", &error))?;
    Ok(image)
}

fn buildctl_arguments(request: &Request<'_>) -> Vec<String> {
    let dockerfile = request.dockerfile;
    let folder = dockerfile.parent().unwrap_or(request.context).display();
    let name = dockerfile.file_name().unwrap_or_default().to_string_lossy();
    let mut words: Vec<String> =
        ["build", "--progress", "plain", "--no-cache", "--frontend", "dockerfile.v0"].map(str::to_owned).to_vec();
    words.extend(["--local".to_owned(), format!("context={}", request.context.display())]);
    words.extend(["--local".to_owned(), format!("dockerfile={folder}")]);
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

/// Runs a program in the workspace and writes its output to the job's log.
async fn run(
    job: &Job,
    executable: &Path,
    arguments: Vec<String>,
    more: &[(&str, &str)],
    workspace: &Path,
) -> Result<(), Failure> {
    let mut environment = sandbox::base_environment(job);
    environment.insert("HOME".to_owned(), workspace.display().to_string());
    for (name, value) in more {
        let value =
            if *name == "BUILDKIT_HOST" { (*value).to_owned() } else { workspace.join(value).display().to_string() };
        environment.insert((*name).to_owned(), value);
    }
    let program = Program {
        executable,
        arguments,
        environment,
        directory: "",
        output: Output::log(),
        interrupt: Interrupt::Terminate,
        writable: Vec::new(),
        readable: Vec::new(),
        services: Vec::new(),
        hosts: Vec::new(),
    };
    match sandbox::run_outside(job, program).await? {
        Ended::Code { code: 0, .. } => Ok(()),
        Ended::Code { code, last_words } => {
            let why = last_words.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it gave no reason");
            Err(Failure::new(format!("the Dockerfile could not be built (exit code {code}): {why}")))
        }
        Ended::Stopped(reason) => Err(Failure::stopped(reason)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(args: &BTreeMap<String, String>) -> (Vec<String>, Vec<String>) {
        let request = Request {
            context: Path::new("/w/source"),
            dockerfile: Path::new("/w/source/docker/api.Dockerfile"),
            workspace: Path::new("/w"),
            args,
            target: "final",
        };
        (buildah_arguments(&request), buildctl_arguments(&request))
    }

    #[test]
    fn both_programs_are_asked_for_the_same() {
        let args = BTreeMap::from([("VERSION".to_owned(), "1 2".to_owned())]);

        let (buildah, buildctl) = request(&args);

        assert_eq!(
            buildah.get(8..).unwrap().join(" "),
            "bud --signature-policy /w/policy.json --isolation chroot --layers=false --timestamp 0 --build-arg VERSION=1 2 \
             --target final --tag oci:/w/image --file /w/source/docker/api.Dockerfile /w/source"
        );
        assert_eq!(
            buildctl.join(" "),
            "build --progress plain --no-cache --frontend dockerfile.v0 --local context=/w/source --local \
             dockerfile=/w/source/docker --opt filename=api.Dockerfile --opt build-arg:SOURCE_DATE_EPOCH=0 --opt \
             build-arg:VERSION=1 2 --opt target=final --output type=oci,rewrite-timestamp=true,dest=/w/image.tar"
        );
    }

    #[test]
    fn a_dockerfile_is_a_file_of_the_source() {
        let directory = tempfile::tempdir().unwrap();
        let context = directory.path().canonicalize().unwrap().join("source");
        std::fs::create_dir(&context).unwrap();
        std::fs::write(context.join("Dockerfile"), "FROM scratch\n").unwrap();
        std::fs::write(directory.path().join("Dockerfile"), "").unwrap();

        assert!(inside(&context, "Dockerfile").is_ok());
        for name in ["../Dockerfile", "/etc/passwd", "api.Dockerfile", "."] {
            assert!(inside(&context, name).is_err(), "{name}");
        }
    }
}
