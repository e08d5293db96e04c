//! The local cloud for one test, with a tenant's and a customer's account, and how a test looks into it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use aws_credential_types::Credentials;
use aws_credential_types::provider::SharedCredentialsProvider;
use aws_types::SdkConfig;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use freehold_oci::Version;
use freehold_protocol::Digest;
use freehold_protocol::grant::{BlobUrl, GrantAnswer, ManifestBytes};
use freehold_protocol::order::{Artifact, Work};
use freehold_protocol::provenance::BuildFacts;
use freehold_runner::aws::sdk_config;
use freehold_runner::job::{GrantError, Grants, Job};
use freehold_runner::registry::ecr_repository;
use freehold_runner::secrets::sensitive_outputs::SensitiveOutputs;
use freehold_skips::skip;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::fixture::{ACCOUNT, BUCKET, Bench, NoGrants, REPOSITORY};

pub(crate) const TENANT_ACCOUNT: &str = "111111111111";
pub(crate) const TENANT_REPOSITORY: &str = "fh-acme";
pub(crate) const TENANT_BUCKET: &str = "fh-acme--111111111111--eu-west-1";

/// The cloud of this process.
pub(crate) struct Cloud {
    pub(crate) tenant: SdkConfig,
    pub(crate) customer: SdkConfig,
}

impl Cloud {
    /// Runs the test called `test` once more in a process whose environment names a cloud of its own, and returns nothing
    /// to this one. In that process it returns the cloud. Without an installed local cloud the test is skipped.
    pub(crate) async fn here(test: &str) -> Option<Self> {
        Self::here_with(test, &[]).await
    }

    /// As [`Cloud::here`], with further directories on the `PATH` of that process.
    pub(crate) async fn here_with(test: &str, programs: &[PathBuf]) -> Option<Self> {
        Self::here_under(test, programs, &[]).await
    }

    /// As [`Cloud::here_with`], with further variables in the environment of that process.
    pub(crate) async fn here_under(test: &str, programs: &[PathBuf], more: &[(&str, &Path)]) -> Option<Self> {
        if std::env::var_os("FREEHOLD_TEST_IN_CLOUD").is_none() {
            again_in_a_cloud(test, programs, more);
            return None;
        }
        let cloud = Self::joined().await;
        for (sdk, repository, bucket) in
            [(&cloud.tenant, TENANT_REPOSITORY, TENANT_BUCKET), (&cloud.customer, REPOSITORY, BUCKET)]
        {
            let ecr = aws_sdk_ecr::Client::new(sdk).create_repository().repository_name(repository);
            let immutable = aws_sdk_ecr::types::ImageTagMutability::Immutable;
            ecr.image_tag_mutability(immutable).send().await.unwrap();
            let place = aws_sdk_s3::types::CreateBucketConfiguration::builder().location_constraint("eu-west-1".into());
            s3(sdk).create_bucket().bucket(bucket).create_bucket_configuration(place.build()).send().await.unwrap();
        }
        Some(cloud)
    }

    /// Returns the cloud of the process that started this one.
    pub(crate) async fn joined() -> Self {
        Self { tenant: account(TENANT_ACCOUNT).await, customer: account(ACCOUNT).await }
    }

    /// A bench in the customer's account, whose requests for artifacts are answered.
    pub(crate) fn bench(&self, work: Work, artifact: &Artifact) -> Bench {
        let mut bench = Bench::new(work);
        bench.job.grants = self.grants(artifact, 0, "");
        bench.job.sensitive_outputs = SensitiveOutputs::new(&self.customer, Some(BUCKET.to_owned()));
        bench
    }

    /// Grants whose URLs are expired in the first `expired_rounds` rounds: the server at `expired_url` says 403.
    pub(crate) fn grants(&self, artifact: &Artifact, expired_rounds: u32, expired_url: &str) -> Arc<Tenant> {
        let (sdk, artifact) = (self.tenant.clone(), artifact.clone());
        let expired_url = expired_url.to_owned();
        Arc::new(Tenant { sdk, artifact, rounds: Mutex::default(), expired_rounds, expired_url })
    }

    pub(crate) async fn object(&self, key: &str) -> Option<Vec<u8>> {
        let answer = s3(&self.customer).get_object().bucket(BUCKET).key(key).send().await.ok()?;
        Some(answer.body.collect().await.unwrap().to_vec())
    }

    pub(crate) async fn put_object(&self, key: &str, text: &str) {
        let body = text.as_bytes().to_vec().into();
        s3(&self.customer).put_object().bucket(BUCKET).key(key).body(body).send().await.unwrap();
    }
}

/// Returns the names of all objects of the bucket that begin with `prefix`.
pub(crate) async fn objects(sdk: &SdkConfig, prefix: &str) -> Vec<String> {
    let answer = s3(sdk).list_objects_v2().bucket(BUCKET).prefix(prefix).send().await.unwrap();
    answer.contents().iter().map(|object| object.key().unwrap().to_owned()).collect()
}

/// Answers every request with this status, as storage does to an expired URL, say; returns its address.
pub(crate) async fn storage_that_says(status: &'static str) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = [0; 4096];
            let _ = stream.read(&mut request).await.unwrap();
            let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    format!("http://{address}/blob?signature=secret")
}

/// Answers as the control plane does: manifests, and one short-lived URL per blob that was asked for.
#[derive(Debug)]
pub(crate) struct Tenant {
    sdk: SdkConfig,
    artifact: Artifact,
    /// Each request's round, and how many blobs it asked for.
    pub(crate) rounds: Mutex<Vec<(u32, usize)>>,
    /// The URLs of this many rounds are expired ones.
    expired_rounds: u32,
    expired_url: String,
}

#[async_trait]
impl Grants for Tenant {
    async fn request(
        &self,
        _: &Job,
        artifact: &Digest,
        missing: Vec<Digest>,
        round: u32,
    ) -> Result<GrantAnswer, GrantError> {
        self.rounds.lock().unwrap().push((round, missing.len()));
        let expires = round < self.expired_rounds;
        assert_eq!(*artifact, self.artifact.digest);
        let repository = ecr_repository(&self.sdk, TENANT_REPOSITORY).await.unwrap();
        let mut manifests = Vec::new();
        for descriptor in &self.artifact.manifests {
            let found = repository.manifest(&Version::Digest(descriptor.digest.clone())).await.unwrap();
            let bytes = STANDARD.encode(&found.bytes);
            manifests.push(ManifestBytes { media_type: found.media_type, digest: found.digest, bytes });
        }
        let mut blobs = Vec::new();
        for digest in missing {
            let url = aws_sdk_ecr::Client::new(&self.sdk).get_download_url_for_layer();
            let url = url.repository_name(TENANT_REPOSITORY).layer_digest(digest.as_str()).send().await.unwrap();
            let size = self.artifact.blobs.iter().find(|blob| blob.digest == digest).unwrap().size;
            let url = if expires { self.expired_url.clone() } else { url.download_url().unwrap().to_owned() };
            blobs.push(BlobUrl { digest, size, url });
        }
        Ok(GrantAnswer::Granted { manifests, blobs })
    }

    async fn attest(&self, job: &Job, artifact: &Artifact, facts: BuildFacts) -> Result<GrantAnswer, GrantError> {
        NoGrants.attest(job, artifact, facts).await
    }
}

pub(crate) fn credentials(account: &str) -> SharedCredentialsProvider {
    SharedCredentialsProvider::new(Credentials::new(account, "secret", None, None, "test"))
}

async fn account(account: &str) -> SdkConfig {
    sdk_config("eu-west-1", Some(credentials(account))).await
}

pub(crate) fn s3(sdk: &SdkConfig) -> aws_sdk_s3::Client {
    aws_sdk_s3::Client::from_conf(aws_sdk_s3::config::Builder::from(sdk).force_path_style(true).build())
}

/// Returns the top of the workspace; the crate of a test is somewhere below.
pub(crate) fn workspace() -> PathBuf {
    let mut above = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    above.find(|folder| folder.join("localstack/cloud").is_file()).unwrap().to_owned()
}

fn again_in_a_cloud(test: &str, programs: &[PathBuf], more: &[(&str, &Path)]) {
    let root = workspace();
    let venv = std::env::var_os("FREEHOLD_LOCAL_VENV").map_or_else(|| root.join("target/local/venv"), PathBuf::from);
    if !venv.join("bin/ministack").exists() {
        return skip("the local cloud is not installed; run `localstack/cloud up` once");
    }
    let state = tempfile::tempdir().unwrap();
    let cloud = |command: &str, options: &[&str]| {
        let mut process = Command::new(root.join("localstack/cloud"));
        process.arg(command).arg("--state").arg(state.path()).arg("--venv").arg(&venv).args(options);
        process.stdout(Stdio::null()).status().unwrap()
    };
    let own = std::process::id().to_string();
    assert!(cloud("up", &["--port", "0", "--detach", "--until-pid", &own]).success());
    let endpoint = std::fs::read_to_string(state.path().join("endpoint")).unwrap();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(std::env::split_paths(&path).chain(programs.iter().cloned())).unwrap();
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env("FREEHOLD_TEST_IN_CLOUD", "1")
        .env("AWS_ENDPOINT_URL", &endpoint)
        .env("FREEHOLD_TEST_CLOUD_STATE", state.path())
        .env("PATH", path)
        .env("AWS_REGION", "eu-west-1")
        // What the runner itself is, beside the credentials of its jobs.
        .env("AWS_ACCESS_KEY_ID", ACCOUNT)
        .env("AWS_SECRET_ACCESS_KEY", "secret")
        .env("NO_PROXY", "127.0.0.1,localhost,.localhost")
        .envs(more.iter().copied())
        .status()
        .unwrap();
    let log = std::fs::read_to_string(state.path().join("cloud.log")).unwrap_or_default();
    cloud("down", &[]);
    let warnings = log.lines().filter(|line| line.contains("WARN") || line.contains("ERROR") || line.contains("Error"));
    let tail: String = warnings.take(15).map(|line| format!("{line}\n")).collect();
    assert!(status.success(), "`{test}` failed in the cloud at {endpoint}; warnings of the cloud:\n{tail}");
}
