//! A cluster on the local cloud for one test, roles that get into it or not, and how a test looks into it.

mod access;
pub(crate) mod barrier;
mod contexts;
mod drift;
mod images;
pub(crate) mod killed_runner;
mod policies;
mod removal;
mod silence;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use aws_credential_types::Credentials;
use aws_credential_types::provider::SharedCredentialsProvider;
use aws_sdk_cloudformation::config::timeout::TimeoutConfig;
use aws_sdk_cloudformation::types::{Capability, StackStatus};
use freehold_protocol::order::{Artifact, Work};
use freehold_skips::{find_program, skip};
use serde_json::{Value, json};

use crate::cloud::{Cloud, workspace};
use crate::fixture::{ACCOUNT, Bench};

/// How long a cluster may take to start where other things run.
const START: Duration = Duration::from_secs(180);
/// The cluster's name, as the outputs of the sandbox say it.
pub(crate) const NAME: &str = "one";
/// A role with an access entry, of an administrator.
pub(crate) const DEPLOYER: &str = "deployer";
/// A role that may do everything in AWS and has no access entry.
pub(crate) const STRANGER: &str = "stranger";
/// A role whose access entry lets it read only.
pub(crate) const READER: &str = "reader";

/// The label that the local cloud gives to what it makes of an access policy.
const OF_POLICIES: &str = "ministack.org/eks-access-policy=true";

/// A cluster with pods that a fake kubelet reports as ready.
pub(crate) struct Cluster {
    kubectl: PathBuf,
    kubeconfig: PathBuf,
}

/// Returns whether this machine has the programs of a cluster and `helm`. Otherwise the running test is skipped.
fn have_programs() -> bool {
    if !programs().is_some_and(|folder| folder.join("kube-apiserver").exists()) {
        skip("there are no programs of a Kubernetes cluster; run `localstack/kubernetes/build`");
        return false;
    }
    if helm().is_none() {
        skip("there is no `helm`; run `tests/setup/tool helm`");
        return false;
    }
    true
}

/// Returns the `kubectl` of the cluster's version.
pub(crate) fn kubectl_path() -> String {
    programs().unwrap().join("kubectl").display().to_string()
}

/// As [`Cloud::here`], for a test that makes a cluster; without the programs of one the test is skipped.
pub(crate) async fn with_clusters(test: &str) -> Option<Cloud> {
    if !have_programs() {
        return None;
    }
    let helm = helm().and_then(|helm| Some(helm.parent()?.to_owned()));
    let programs: Vec<PathBuf> = programs().into_iter().chain(helm).collect();
    Cloud::here_with(test, &programs).await
}

fn programs() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("FREEHOLD_KUBERNETES") {
        return Some(named.into());
    }
    let build = Command::new(workspace().join("localstack/kubernetes/build")).arg("--where").output().ok()?;
    Some(String::from_utf8(build.stdout).ok()?.trim().into())
}

/// Finds the Helm of `tests/setup/tool`, or one on `PATH`.
fn helm() -> Option<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(Path::new(&std::env::var_os("HOME")?).join(".cache")))?;
    let tools = std::fs::read_dir(cache.join("freehold/tools")).into_iter().flatten().flatten();
    let own = tools.filter(|entry| entry.file_name().to_string_lossy().starts_with("helm-"));
    own.map(|entry| entry.path().join("helm")).find(|helm| helm.is_file()).or_else(|| find_program("helm"))
}

impl Cluster {
    /// Makes the cluster and the roles by a stack, and waits for them.
    pub(crate) async fn make(cloud: &Cloud) -> Self {
        Self::of_stack(cloud, NAME, &template()).await
    }

    /// Makes a second cluster with the same access entries.
    async fn make_another(cloud: &Cloud, name: &str) -> Self {
        Self::of_stack(cloud, name, &json!({ "Resources": resources(name) })).await
    }

    async fn of_stack(cloud: &Cloud, name: &str, template: &Value) -> Self {
        let stacks = aws_sdk_cloudformation::Client::new(&cloud.customer);
        let stack_name = format!("cluster-{name}");
        let request = stacks.create_stack().stack_name(&stack_name).template_body(template.to_string());
        let long = TimeoutConfig::builder().operation_timeout(START).operation_attempt_timeout(START).build();
        let patient = aws_sdk_cloudformation::config::Builder::new().timeout_config(long);
        let request = request.capabilities(Capability::CapabilityNamedIam).customize().config_override(patient);
        request.send().await.unwrap();
        let deadline = tokio::time::Instant::now() + START;
        loop {
            let found = stacks.describe_stacks().stack_name(&stack_name).send().await.unwrap();
            let stack = &found.stacks()[0];
            match stack.stack_status() {
                Some(StackStatus::CreateComplete) => break,
                Some(StackStatus::CreateInProgress) => {}
                other => panic!("{other:?}: {:?}", stack.stack_status_reason()),
            }
            assert!(tokio::time::Instant::now() < deadline, "the cluster is not there within {START:?}");
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        let state = PathBuf::from(std::env::var_os("FREEHOLD_TEST_CLOUD_STATE").unwrap());
        let folder = format!("tmp/eks/ministack-eks-{ACCOUNT}-eu-west-1-{name}");
        let made =
            Self { kubectl: programs().unwrap().join("kubectl"), kubeconfig: state.join(folder).join("kubeconfig") };
        made.wait_for_policies(deadline).await;
        made
    }

    /// Waits until the policies of both access entries are in force, which takes a second or more.
    async fn wait_for_policies(&self, deadline: tokio::time::Instant) {
        let of_policies = ["get", "clusterrolebindings", "--output=name", "--selector", OF_POLICIES];
        while self.kubectl(&of_policies).map_or(0, |found| found.lines().count()) < 2 {
            assert!(tokio::time::Instant::now() < deadline, "the access policies are not in force within {START:?}");
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    /// A bench under the role `role`, whose tree names the cluster.
    pub(crate) async fn bench(cloud: &Cloud, role: &str, work: Work, artifact: &Artifact) -> Bench {
        let mut bench = cloud.bench(work, artifact);
        Self::enter(cloud, role, &mut bench).await;
        bench
    }

    /// Gives a bench the role `role` and a tree that names the cluster.
    pub(crate) async fn enter(cloud: &Cloud, role: &str, bench: &mut Bench) {
        bench.job.credentials = session(cloud, role).await;
        bench.change_order(|order| {
            order.context["nuon"]["sandbox"] = json!({ "outputs": { "cluster": { "name": NAME } } })
        });
    }

    /// Runs `kubectl` as an administrator and returns what it prints.
    pub(crate) fn kubectl(&self, arguments: &[&str]) -> Result<String, String> {
        let mut command = Command::new(&self.kubectl);
        command.args(arguments).env("KUBECONFIG", &self.kubeconfig).env("HOME", self.kubeconfig.parent().unwrap());
        let output = command.output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap().trim().to_owned();
        if output.status.success() { Ok(text(output.stdout)) } else { Err(text(output.stderr)) }
    }

    /// Returns an object; null when there is none.
    pub(crate) fn object(&self, kind: &str, namespace: &str, name: &str) -> Value {
        let found = self.kubectl(&["get", kind, name, "--namespace", namespace, "--output=json", "--ignore-not-found"]);
        match found.unwrap().as_str() {
            "" => Value::Null,
            text => serde_json::from_str(text).unwrap(),
        }
    }

    /// Returns all objects of a kind in a namespace, which may be absent.
    pub(crate) fn objects(&self, kind: &str, namespace: &str) -> Vec<Value> {
        let found = self.kubectl(&["get", kind, "--namespace", namespace, "--output=json"]).unwrap();
        let found: Value = serde_json::from_str(&found).unwrap();
        found["items"].as_array().unwrap().clone()
    }

    /// Applies objects as an administrator, under a field manager.
    pub(crate) fn apply(&self, manager: &str, objects: &Value) {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), objects.to_string()).unwrap();
        let (manager, path) = (format!("--field-manager={manager}"), file.path().display().to_string());
        self.kubectl(&["apply", "--server-side", &manager, "--filename", &path]).unwrap();
    }

    /// Waits until the newest revision of a release is `status`; asks seldom, since each look is a program.
    pub(crate) async fn until_revision(&self, kind: &str, release: (&str, &str), status: &str) {
        let deadline = tokio::time::Instant::now() + START;
        while self.revisions(kind, release.0, release.1).last().map(String::as_str) != Some(status) {
            assert!(tokio::time::Instant::now() < deadline, "{release:?} is not `{status}` within {START:?}");
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    /// Returns the status words of a release's revisions, in order.
    pub(crate) fn revisions(&self, kind: &str, namespace: &str, release: &str) -> Vec<String> {
        let labels = format!("--selector=owner=helm,name={release}");
        let found = self.kubectl(&["get", kind, "--namespace", namespace, &labels, "--output=json"]).unwrap();
        let found: Value = serde_json::from_str(&found).unwrap();
        let label = |item: &Value, name: &str| item["metadata"]["labels"][name].as_str().unwrap().to_owned();
        let mut all: Vec<(u32, String)> = found["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| (label(item, "version").parse().unwrap(), label(item, "status")))
            .collect();
        all.sort();
        all.into_iter().map(|(_, status)| status).collect()
    }
}

/// Returns credentials of a session of a role.
pub(crate) async fn session(cloud: &Cloud, role: &str) -> SharedCredentialsProvider {
    let arn = format!("arn:aws:iam::{ACCOUNT}:role/{role}");
    let sts = aws_sdk_sts::Client::new(&cloud.customer);
    let answer = sts.assume_role().role_arn(arn).role_session_name("job").send().await.unwrap();
    let session = answer.credentials.unwrap();
    SharedCredentialsProvider::new(Credentials::new(
        session.access_key_id,
        session.secret_access_key,
        Some(session.session_token),
        None,
        "test",
    ))
}

fn template() -> Value {
    let trust = |principal: Value| json!({ "Version": "2012-10-17", "Statement": [{ "Effect": "Allow", "Principal": principal, "Action": "sts:AssumeRole" }] });
    let all = json!({ "Version": "2012-10-17", "Statement": [{ "Effect": "Allow", "Action": "*", "Resource": "*" }] });
    let role = |name: &str| {
        let trust = trust(json!({ "AWS": format!("arn:aws:iam::{ACCOUNT}:root") }));
        let policies = [json!({ "PolicyName": "all", "PolicyDocument": all })];
        json!({ "Type": "AWS::IAM::Role",
            "Properties": { "RoleName": name, "AssumeRolePolicyDocument": trust, "Policies": policies } })
    };
    let mut all = resources(NAME);
    all["Cluster"]["DependsOn"] = json!("Eks");
    all["DeployerEntry"]["DependsOn"] = json!(["Cluster", DEPLOYER]);
    all["ReaderEntry"]["DependsOn"] = json!(["Cluster", READER]);
    all["Eks"] = json!({ "Type": "AWS::IAM::Role", "Properties": {
        "RoleName": "eks", "AssumeRolePolicyDocument": trust(json!({ "Service": "eks.amazonaws.com" })) } });
    for name in [DEPLOYER, STRANGER, READER] {
        all[name] = role(name);
    }
    json!({ "Resources": all })
}

/// Returns the resources of a cluster with its access entries, for roles that exist.
fn resources(cluster: &str) -> Value {
    let entry = |role: &str, policy: &str| {
        json!({ "Type": "AWS::EKS::AccessEntry", "DependsOn": "Cluster", "Properties": {
            "ClusterName": cluster, "PrincipalArn": format!("arn:aws:iam::{ACCOUNT}:role/{role}"),
            "AccessPolicies": [{ "PolicyArn": format!("arn:aws:eks::aws:cluster-access-policy/{policy}"),
                "AccessScope": { "Type": "cluster" } }] } })
    };
    json!({
        "Cluster": { "Type": "AWS::EKS::Cluster", "Properties": {
            "Name": cluster, "RoleArn": format!("arn:aws:iam::{ACCOUNT}:role/eks"),
            "ResourcesVpcConfig": { "SubnetIds": ["subnet-1", "subnet-2"] } } },
        "DeployerEntry": entry(DEPLOYER, "AmazonEKSClusterAdminPolicy"),
        "ReaderEntry": entry(READER, "AmazonEKSViewPolicy"),
    })
}
