//! Builds as the build runner would do them, and how a test gets at what they made.

use std::path::Path;
use std::process::Command;

use freehold_builder::build::execute;
use freehold_protocol::Digest;
use freehold_protocol::order::{Artifact, BuildArtifact, Package, Recipe, Source, Work};
use freehold_protocol::report::Outcome;

use crate::cloud::{Cloud, TENANT_ACCOUNT, TENANT_BUCKET, TENANT_REPOSITORY, credentials, s3};
use crate::fixture::Bench;

impl Cloud {
    /// Builds as the build runner does; returns the artifact in the tenant registry.
    pub(crate) async fn build(&self, package: Package, source: Source) -> Outcome {
        self.build_by(package, source, None).await
    }

    /// The same, with what the app version says of it.
    pub(crate) async fn build_by(&self, package: Package, source: Source, recipe: Option<Recipe>) -> Outcome {
        let bench = recipe_bench(package, source, recipe);
        let outcome = execute(&bench.job).await;
        println!("{}", bench.log());
        outcome
    }

    /// Packs a directory and puts it where app sync does.
    pub(crate) async fn upload(&self, directory: &Path) -> Source {
        let packed = tempfile::NamedTempFile::new().unwrap();
        let status = Command::new("tar").arg("-czf").arg(packed.path()).arg("-C").arg(directory).arg(".").status();
        assert!(status.unwrap().success());
        let bytes = std::fs::read(packed.path()).unwrap();
        let digest = Digest::of(&bytes);
        let key = format!("sources/{}.tar.gz", digest.hex());
        s3(&self.tenant).put_object().bucket(TENANT_BUCKET).key(key).body(bytes.into()).send().await.unwrap();
        Source::Directory { digest }
    }
}

pub(crate) fn build_bench(package: Package, source: Source) -> Bench {
    recipe_bench(package, source, None)
}

/// A bench of the build runner.
pub(crate) fn recipe_bench(package: Package, source: Source, recipe: Option<Recipe>) -> Bench {
    let mut bench = Bench::new(Work::Build(BuildArtifact {
        build: "bld_00000000000000000001".parse().unwrap(),
        component: "network".parse().unwrap(),
        package,
        source,
        recipe,
        repository: TENANT_REPOSITORY.into(),
    }));
    bench.change_config(|config| config.bucket = Some(TENANT_BUCKET.into()));
    bench.job.credentials = credentials(TENANT_ACCOUNT);
    bench
}

pub(crate) fn built(outcome: Outcome) -> Artifact {
    match outcome {
        Outcome::Succeeded { artifact: Some(artifact), .. } => artifact,
        other => panic!("{other:?}"),
    }
}
