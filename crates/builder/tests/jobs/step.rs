//! Directories that steps of actions run in: of a real git repository, with their modes, and what is refused.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::Command;

use freehold_builder::build::execute;
use freehold_oci::BlobSource;
use freehold_protocol::order::{Artifact, Package, STEP_LAYER, Source, Work};
use freehold_protocol::report::Outcome;
use freehold_runner::registry::ecr_repository;
use freehold_skips::have;

use crate::builds::{build_bench, built};
use crate::cloud::{Cloud, TENANT_REPOSITORY};
use crate::fixture::reason;

fn git(directory: &Path, arguments: &[&str]) -> String {
    let mut git = Command::new("git");
    git.args(["-c", "user.name=test", "-c", "user.email=test@example.com", "-c", "init.defaultBranch=main"]);
    let output = git.args(arguments).current_dir(directory).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Makes a repository: a script and a text in `checks`, and a link in `links` that leads out of it. Returns its commit.
fn repository(root: &Path) -> String {
    fs::create_dir_all(root.join("checks/lib")).unwrap();
    fs::create_dir(root.join("links")).unwrap();
    fs::write(root.join("checks/run.sh"), "#!/bin/sh\ncat lib/text\n").unwrap();
    fs::set_permissions(root.join("checks/run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(root.join("checks/lib/text"), "hello\n").unwrap();
    symlink("lib/text", root.join("checks/inside")).unwrap();
    symlink("../checks/lib/text", root.join("links/out")).unwrap();
    fs::write(root.join("secret"), "not in the directory").unwrap();
    git(root, &["init", "-q"]);
    git(root, &["add", "."]);
    git(root, &["commit", "-q", "-m", "one"]);
    git(root, &["rev-parse", "HEAD"])
}

/// Builds `directory` of a repository that is made for this build.
async fn build(directory: &str) -> Outcome {
    let mut bench = build_bench(Package::StepDirectory, Source::Version);
    let commit = repository(&bench.job.workspace.join("upstream"));
    bench.change_order(|order| {
        let Work::Build(build) = &mut order.work else { panic!("a build") };
        let (url, directory, branch) = ("/workspace/upstream".to_owned(), directory.to_owned(), "main".to_owned());
        build.source = Source::Git { url, commit, directory, branch };
    });
    let outcome = execute(&bench.job).await;
    println!("{}", bench.log());
    outcome
}

/// Returns the mode and the text of each file in the artifact, and the target of each link.
pub(crate) async fn files(cloud: &Cloud, artifact: &Artifact) -> BTreeMap<String, (u32, String)> {
    let repository = ecr_repository(&cloud.tenant, TENANT_REPOSITORY).await.unwrap();
    let (into, layer) = (tempfile::NamedTempFile::new().unwrap(), artifact.blobs.last().unwrap());
    assert_eq!(layer.media_type, STEP_LAYER);
    freehold_oci::fetch(&BlobSource::Repository(repository), layer, into.path()).await.unwrap();
    let mut tar = tar::Archive::new(flate2::read::GzDecoder::new(fs::File::open(into.path()).unwrap()));
    let mut found = BTreeMap::new();
    for entry in tar.entries().unwrap() {
        let mut entry = entry.unwrap();
        let link = entry.link_name().unwrap().map(|target| target.display().to_string());
        let (path, mode, mut text) =
            (entry.path().unwrap().display().to_string(), entry.header().mode().unwrap(), String::new());
        entry.read_to_string(&mut text).unwrap();
        if !entry.header().entry_type().is_dir() {
            found.insert(path, (mode, link.unwrap_or(text)));
        }
    }
    found
}

#[tokio::test]
async fn the_directory_of_a_commit_is_packed_alone_with_its_modes_and_the_same_bytes() {
    if !have(&["bwrap", "git"]) {
        return;
    }
    let test = "step::the_directory_of_a_commit_is_packed_alone_with_its_modes_and_the_same_bytes";
    let Some(cloud) = Cloud::here(test).await else { return };

    let one = built(build("checks").await);
    let two = built(build("checks").await);

    assert_eq!(one.digest, two.digest);
    assert!(one.provenance.is_some());
    let expected = [
        ("inside", (0o777, "lib/text")),
        ("lib/text", (0o644, "hello\n")),
        ("run.sh", (0o755, "#!/bin/sh\ncat lib/text\n")),
    ];
    let expected = expected.map(|(path, (mode, text))| (path.to_owned(), (mode, text.to_owned())));
    assert_eq!(files(&cloud, &one).await, BTreeMap::from(expected));
}

#[tokio::test]
async fn a_directory_that_is_absent_too_large_or_has_a_link_that_leads_out_is_refused() {
    if !have(&["bwrap", "git"]) {
        return;
    }
    let test = "step::a_directory_that_is_absent_too_large_or_has_a_link_that_leads_out_is_refused";
    let Some(cloud) = Cloud::here(test).await else { return };
    let large = tempfile::tempdir().unwrap();
    fs::File::create(large.path().join("zeros")).unwrap().set_len((256 << 20) + 1).unwrap();
    let large = cloud.upload(large.path()).await;

    let absent = reason(build("absent").await).0;
    let outside = reason(build("links").await).0;
    let large = reason(cloud.build(Package::StepDirectory, large).await).0;
    let image = Source::Image { reference: "example/api:1".into() };
    let image = reason(cloud.build(Package::StepDirectory, image).await).0;

    assert_eq!(absent, "the commit has no directory `absent`; correct `directory` in the app config");
    assert!(outside.contains("`out` is a link out of the directory"), "{outside}");
    assert!(large.contains("more than the maximum of 268435456; name a smaller `directory`"), "{large}");
    assert_eq!(image, "the directory of a step cannot be built from an image");
}
