//! Builds an image from a Dockerfile with Buildah. The build's steps run in a box and have no rights on the machine.
//!
//! Before the first step, the runner fetches the images that the Dockerfile names, by digest. Without a box
//! (`sandbox = "none"`) and without Buildah, `buildctl` with a BuildKit daemon builds the image. The image is for the
//! runner's own platform.

mod base_images;
mod buildah;
mod buildctl;
mod instructions;
mod read;
mod request;
mod run;

use std::path::{Path, PathBuf};

use freehold_egress::Rule;
use freehold_protocol::order::{Artifact, BuildArtifact, Recipe};
use freehold_runner::config::SandboxKind;
use freehold_runner::job::failure::{Failure, until_stopped};
use freehold_runner::job::{Job, sdk_config};
use freehold_runner::registry::ecr_repository;
use freehold_runner::sandbox;
use request::Request;

use crate::statement::Facts;
use crate::{layout, source};

/// Returns the programs that can build, in order of preference. BuildKit is only used without a box, because its daemon
/// runs the steps outside of the box.
pub(crate) const fn builders(sandbox: SandboxKind) -> &'static [&'static str] {
    match sandbox {
        SandboxKind::Bubblewrap => &["buildah"],
        SandboxKind::None => &["buildah", "buildctl"],
    }
}

/// Builds the image and pushes it.
pub(crate) async fn build(job: &Job, work: &BuildArtifact, facts: &mut Facts) -> Result<Artifact, Failure> {
    let Some(recipe @ Recipe::Dockerfile { dockerfile, args, .. }) = &work.recipe else {
        return Err(Failure::new(
            "the order names no Dockerfile; update the tenant with `freehold tenant deploy`, and then run \
             `freehold build` again",
        ));
    };
    let context = source::fetch(job, &work.source).await?;
    // The files in `.git` differ between clones and are not part of the source.
    let kept = job.workspace.join(source::SOURCE).join(".git");
    if kept.is_dir() {
        std::fs::remove_dir_all(&kept)
            .map_err(|error| Failure::because("could not remove `.git` from the source", &error))?;
    }
    let text = std::fs::read_to_string(inside(&context, dockerfile)?);
    let text = text.map_err(|error| Failure::because("could not read the Dockerfile", &error))?;
    let named = read::images(&text, args).map_err(Failure::new)?;
    let bases = until_stopped(job, base_images::fetch(job, work, &named, facts)).await?;
    let image = make(job, recipe, &context, &bases).await?;
    until_stopped(job, async {
        let repository = ecr_repository(&sdk_config(job).await, &work.repository).await?;
        layout::push(&repository, &image).await
    })
    .await
}

/// Makes the image of `recipe` from `context`, a directory of the workspace; returns the directory of its layout.
///
/// `bases` holds pairs: the name of an image in the Dockerfile, and the directory of the image's layout, relative to
/// the workspace.
///
/// # Errors
/// Fails when the recipe is not a Dockerfile, when this machine has no program that can build it, or when a step fails.
pub async fn make(job: &Job, recipe: &Recipe, context: &Path, bases: &[(String, String)]) -> Result<PathBuf, Failure> {
    let Recipe::Dockerfile { dockerfile, args, target, hosts } = recipe else {
        return Err(Failure::new("the recipe is not a Dockerfile"));
    };
    for host in hosts {
        host.parse::<Rule>().map_err(|error| Failure::because("`hosts` of the component cannot be used", &error))?;
    }
    let builder = find_builder(job.config.sandbox)?;
    let absolute = |path: &Path| {
        path.canonicalize().map_err(|error| Failure::because(&format!("could not read `{}`", path.display()), &error))
    };
    let (workspace, context) = (absolute(&job.workspace)?, absolute(context)?);
    // Returns the path at which the program sees a path of the workspace.
    let seen = |path: &Path| {
        let relative = path.strip_prefix(&workspace).unwrap_or(path).display().to_string();
        PathBuf::from(sandbox::inside(job, &relative))
    };
    let (dockerfile, context, workspace) = (seen(&inside(&context, dockerfile)?), seen(&context), seen(&workspace));
    let request =
        Request { context: &context, dockerfile: &dockerfile, workspace: &workspace, args, target, hosts, bases };
    if builder.ends_with("buildah") {
        buildah::build(job, &builder, &request).await
    } else {
        buildctl::build(job, &builder, &request).await
    }
}

fn find_builder(sandbox: SandboxKind) -> Result<PathBuf, Failure> {
    let names = builders(sandbox);
    sandbox::find_program(names).ok_or_else(|| {
        Failure::new(format!(
            "`{}` is not on this runner's `PATH`; install the package `buildah` on the build runner's machine",
            names.join("` or `")
        ))
    })
}

/// Returns the path of the Dockerfile. Refuses a link that leads out of the source.
fn inside(context: &Path, dockerfile: &str) -> Result<PathBuf, Failure> {
    let context = context.canonicalize().unwrap_or_else(|_| context.to_owned());
    let found = context.join(dockerfile).canonicalize().ok();
    found.filter(|path| path.starts_with(&context) && path.is_file()).ok_or_else(|| {
        Failure::new(format!("the source has no file `{dockerfile}`; name the Dockerfile relative to the source"))
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn request(args: &BTreeMap<String, String>) -> (Vec<String>, Vec<String>) {
        let request = Request {
            context: Path::new("/w/source"),
            dockerfile: Path::new("/w/source/docker/api.Dockerfile"),
            workspace: Path::new("/w"),
            args,
            target: "final",
            hosts: &[],
            bases: &[("alpine:${V}".to_owned(), "bases/0".to_owned())],
        };
        (buildah::arguments(&request), buildctl::arguments(&request))
    }

    #[test]
    fn both_programs_are_asked_for_the_same() {
        let args = BTreeMap::from([("VERSION".to_owned(), "1 2".to_owned())]);

        let (buildah, buildctl) = request(&args);

        assert_eq!(
            buildah.get(8..).unwrap().join(" "),
            "bud --signature-policy /w/policy.json --isolation chroot --layers=false --timestamp 0 \
             --cap-drop CAP_SYS_CHROOT --cap-drop CAP_MKNOD --cap-drop CAP_NET_RAW --cap-drop CAP_SYS_ADMIN \
             --build-context alpine:${V}=container-image://oci:/w/bases/0 --build-arg VERSION=1 2 --target final --tag oci:/w/image --file /w/source/docker/api.Dockerfile /w/source"
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
