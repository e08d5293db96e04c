//! Terraform modules: built with the providers that they need, and applied with these providers alone.

mod iam;

use std::collections::BTreeMap;
use std::fs;

use freehold_builder::build::execute;
use freehold_protocol::Digest;
use freehold_protocol::order::{ApplyTerraform, Artifact, MODULE_LAYER, Package, Source, Work};
use freehold_protocol::provenance::Statement;
use freehold_protocol::report::Outcome;
use freehold_protocol::terraform::{MODULE_CONFIG, PLATFORMS, PROVIDER_LAYER, own_platform};
use freehold_skips::have;
use serde_json::json;

use crate::builds::{build_bench, built};
use crate::cloud::Cloud;
use crate::fixture::{Bench, outputs, reason};
use crate::mirror::{Certificates, Mirror, NOTE, package};

const MODULE: &str = r#"
terraform {
  required_providers {
    note = {
      source  = "providers.example/acme/note"
      version = "~> 1.0"
    }
  }
}
module "inner" { source = "./inner" }
resource "note" "this" { text = "hello" }
data "note_origin" "this" {}
output "text" { value = note.this.text }
output "program" { value = data.note_origin.this.program }
output "inner" { value = module.inner.name }
"#;

/// A mirror, and the local cloud in a process that trusts it.
struct Place {
    cloud: Cloud,
    mirror: Mirror,
}

impl Place {
    async fn here(test: &str) -> Option<Self> {
        if !have(&["bwrap", "terraform", "openssl"]) {
            return None;
        }
        let certificates = Certificates::new();
        let environment = certificates.environment();
        let more: Vec<_> = environment.iter().map(|(name, path)| (*name, path.as_path())).collect();
        let cloud = Cloud::here_under(test, &[], &more).await?;
        Some(Self { cloud, mirror: Mirror::start(&certificates).await })
    }

    async fn source(&self, files: &[(&str, &str)]) -> Source {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("inner")).unwrap();
        fs::write(directory.path().join("main.tf"), MODULE).unwrap();
        fs::write(directory.path().join("inner/main.tf"), "output \"name\" { value = \"inner\" }\n").unwrap();
        for (name, text) in files {
            fs::write(directory.path().join(name), text).unwrap();
        }
        self.cloud.upload(directory.path()).await
    }

    /// Builds the module with more files; returns what came of it, and the log.
    async fn build(&self, files: &[(&str, &str)]) -> (Outcome, String) {
        let mut bench = build_bench(Package::TerraformModule, self.source(files).await);
        bench.change_config(|config| config.provider_mirror = Some(self.mirror.url.clone()));
        let outcome = execute(&bench.job).await;
        (outcome, bench.log())
    }

    /// A runner that applies the module.
    fn runner(&self, artifact: &Artifact) -> Bench {
        let work = Work::TerraformModule(ApplyTerraform {
            component: "network".parse().unwrap(),
            artifact: artifact.clone(),
            terraform_version: String::new(),
            vars: BTreeMap::new(),
            // The provider of the tests speaks without TLS to the Terraform that starts it.
            env_vars: BTreeMap::from([("TF_DISABLE_PLUGIN_TLS".to_owned(), "1".to_owned())]),
            var_files: Vec::new(),
        });
        self.cloud.bench(work, artifact)
    }
}

async fn apply(bench: &Bench) -> (Outcome, String) {
    let outcome = freehold_runner::kinds::execute(&bench.job).await;
    (outcome, bench.log())
}

fn layers<'a>(artifact: &'a Artifact, media_type: &str) -> Vec<&'a str> {
    let found = artifact.blobs.iter().filter(|blob| blob.media_type == media_type);
    found.map(|blob| blob.digest.as_str()).collect()
}

#[tokio::test]
async fn a_module_brings_its_providers_and_is_applied_without_a_registry() {
    const TEST: &str = "terraform::a_module_brings_its_providers_and_is_applied_without_a_registry";
    let Some(place) = Place::here(TEST).await else { return };
    place.mirror.offer("1.0.0", &PLATFORMS);
    place.mirror.offer("2.0.0", &PLATFORMS);

    let (one, log) = place.build(&[]).await;
    println!("{log}");
    let (one, two) = (built(one), built(place.build(&[]).await.0));
    let asked = place.mirror.asked();
    let mut runner = place.runner(&one);
    let (first, log_of_first) = apply(&runner).await;
    println!("{log_of_first}");
    runner.next_attempt();
    let (second, log_of_second) = apply(&runner).await;

    assert!(log.contains(&format!("does not pin provider {NOTE}@1.0.0; this build chose the newest")), "{log}");
    assert_eq!(one.digest, two.digest, "the same providers give the same artifact");
    assert_eq!((layers(&one, MODULE_LAYER).len(), layers(&one, MODULE_CONFIG).len()), (1, 1));
    let packages = layers(&one, PROVIDER_LAYER);
    assert_eq!(packages.len(), 2);
    let statement: Statement = one.provenance.as_ref().unwrap().statement.peek().unwrap();
    let resolved = statement.predicate.build_definition.resolved_dependencies;
    for (platform, package) in PLATFORMS.into_iter().zip(&packages) {
        let uri = format!("terraform-provider:{NOTE}@1.0.0?platform={platform}");
        let found = resolved.iter().find(|one| one.uri == uri).expect("the provider in the statement");
        assert_eq!(format!("sha256:{}", found.digest["sha256"]), **package);
    }
    let made = json!({ "text": "hello", "inner": "inner", "program": "terraform-provider-note_v1.0.0" });
    assert_eq!(outputs(first), made);
    assert_eq!(outputs(second), made);
    assert!(log_of_second.contains("0 to create, 0 to update"), "{log_of_second}");
    assert_eq!(place.mirror.asked(), asked, "an apply asks no registry");
    let store = runner.directory.path().join("state/providers");
    let trees = fs::read_dir(store).unwrap().filter(|one| one.as_ref().unwrap().path().is_dir()).count();
    assert_eq!(trees, 1, "only the package of this platform is unpacked, and once");
}

#[tokio::test]
async fn components_with_the_same_provider_copy_it_once() {
    const TEST: &str = "terraform::components_with_the_same_provider_copy_it_once";
    let Some(place) = Place::here(TEST).await else { return };
    place.mirror.offer("1.0.0", &PLATFORMS);
    let one = built(place.build(&[]).await.0);
    let two = built(place.build(&[("more.tf", "output \"more\" { value = 1 }\n")]).await.0);

    outputs(apply(&place.runner(&one)).await.0);
    let mut runner = place.runner(&two);
    let grants = place.cloud.grants(&two, 0, "");
    runner.job.grants = grants.clone();
    outputs(apply(&runner).await.0);

    assert_ne!(one.digest, two.digest);
    assert_eq!(layers(&one, PROVIDER_LAYER), layers(&two, PROVIDER_LAYER));
    assert_eq!(*grants.rounds.lock().unwrap(), [(0, 1)], "only the module is asked for");
}

#[tokio::test]
async fn a_provider_whose_hash_the_lock_file_does_not_have_is_refused_by_name() {
    const TEST: &str = "terraform::a_provider_whose_hash_the_lock_file_does_not_have_is_refused_by_name";
    let Some(place) = Place::here(TEST).await else { return };
    place.mirror.offer("1.0.0", &PLATFORMS);
    let lock = |hashes: &[&str]| {
        let hashes: String = hashes.iter().map(|hash| format!("\"zh:{hash}\", ")).collect();
        format!("provider \"{NOTE}\" {{\n  version = \"1.0.0\"\n  hashes = [{hashes}]\n}}\n")
    };
    let zips = PLATFORMS.map(|platform| Digest::of(&package("1.0.0", platform)));

    let right = lock(&zips.each_ref().map(Digest::hex));
    let (pinned, log_of_pinned) = place.build(&[(".terraform.lock.hcl", &right)]).await;
    let other = lock(&["a".repeat(64).as_str()]);
    let (other_hash, partial) = reason(place.build(&[(".terraform.lock.hcl", &other)]).await.0);
    let runner = place.runner(&built(place.build(&[]).await.0));
    outputs(apply(&runner).await.0);
    let trees = fs::read_dir(runner.directory.path().join("state/providers")).unwrap();
    let tree = trees.map(|one| one.unwrap().path()).find(|path| path.is_dir()).unwrap();
    fs::write(tree.join("added"), "somebody changed it").unwrap();
    let mut runner = runner;
    runner.next_attempt();
    let (changed, partial_too) = reason(apply(&runner).await.0);

    assert_eq!(layers(&built(pinned), PROVIDER_LAYER), zips.each_ref().map(Digest::as_str));
    assert!(log_of_pinned.contains(&format!("lacks platforms of provider {NOTE}@1.0.0; added h1:")), "{log_of_pinned}");
    let name = format!("provider `{NOTE}@1.0.0`");
    assert!(
        other_hash.contains(&name) && other_hash.contains("has neither; the provider is not used") && !partial,
        "{other_hash}"
    );
    assert!(changed.contains("acme/note v1.0.0") && changed.contains("checksums") && !partial_too, "{changed}");
}

#[tokio::test]
async fn a_platform_that_a_provider_lacks_is_left_out_and_its_runners_say_so() {
    const TEST: &str = "terraform::a_platform_that_a_provider_lacks_is_left_out_and_its_runners_say_so";
    let Some(place) = Place::here(TEST).await else { return };
    let other = PLATFORMS.into_iter().find(|platform| *platform != own_platform()).unwrap();
    place.mirror.offer("1.0.0", &[other]);

    let (outcome, log) = place.build(&[]).await;
    let artifact = built(outcome);
    let (why, partial) = reason(apply(&place.runner(&artifact)).await.0);

    assert!(log.contains(&format!("has no package for {}", own_platform())), "{log}");
    assert_eq!(layers(&artifact, PROVIDER_LAYER).len(), 1);
    assert!(why.contains(&format!("are packed for `{other}`, and this runner is `{}`", own_platform())), "{why}");
    assert!(!partial);
}

#[tokio::test]
async fn a_provider_that_no_registry_has_is_named() {
    const TEST: &str = "terraform::a_provider_that_no_registry_has_is_named";
    let Some(place) = Place::here(TEST).await else { return };

    let (why, partial) = reason(place.build(&[]).await.0);

    assert!(why.contains("`terraform providers lock`") && why.contains(NOTE) && !partial, "{why}");
}
