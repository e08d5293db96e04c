//! A Kubernetes cluster in an account of the cloud, and which roles get in.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};

use super::clients::REGION;
use super::command::{CommandOutput, run};
use super::wait::until;
use super::web::send_signed_for;
use super::world::World;
use crate::workspace::kubernetes_programs;

/// How long a cluster may take to start on a busy machine.
const START: Duration = Duration::from_secs(120);

/// A cluster whose API server answers.
#[derive(Debug, Clone)]
pub struct Cluster {
    pub name: String,
    pub account: String,
    pub endpoint: String,
    /// The certificate of its authority, PEM in base64, as EKS shows it.
    pub authority: String,
    /// The kubeconfig of an administrator who is not a principal of AWS, to look behind what is tested.
    pub kubeconfig: PathBuf,
}

impl World {
    /// Makes a cluster in `account`. A test asks for [`Capability::Clusters`](super::Capability::Clusters) first.
    ///
    /// # Errors
    /// When the cluster does not start.
    pub async fn cluster(&self, account: &str, name: &str) -> anyhow::Result<Cluster> {
        let role = self.role_for_clusters(account).await?;
        let body =
            json!({"name": name, "roleArn": role, "resourcesVpcConfig": {"subnetIds": ["subnet-1", "subnet-2"]}});
        self.eks(account, "POST", "/clusters", &body).await?;
        self.started_cluster(account, name).await
    }

    /// Returns the cluster `name` of `account` once it has started, whoever makes it.
    ///
    /// # Errors
    /// When there is no such cluster, or it does not start.
    pub async fn started_cluster(&self, account: &str, name: &str) -> anyhow::Result<Cluster> {
        let path = format!("/clusters/{name}");
        let started = until("the cluster is made", START, || async {
            let view = self.eks(account, "GET", &path, &Value::Null).await?;
            Ok((view["cluster"]["status"] != "CREATING").then_some(view))
        });
        let view = started.await?;
        let cluster = &view["cluster"];
        ensure!(cluster["status"] == "ACTIVE", "the cluster did not start: {cluster}");
        let text = |value: &Value| value.as_str().map(str::to_owned).context("the cluster lacks a property");
        Ok(Cluster {
            name: name.to_owned(),
            account: account.to_owned(),
            endpoint: text(&cluster["endpoint"])?,
            authority: text(&cluster["certificateAuthority"]["data"])?,
            kubeconfig: self
                .directory()
                .join(format!("cloud/tmp/eks/ministack-eks-{account}-{REGION}-{name}/kubeconfig")),
        })
    }

    /// Lets the role `name` of the cluster's account in, with an access policy for the whole cluster such as
    /// `AmazonEKSClusterAdminPolicy`. It counts about a second later.
    ///
    /// # Errors
    /// When EKS refuses.
    pub async fn admit(&self, cluster: &Cluster, role: &str, policy: &str) -> anyhow::Result<()> {
        let role = format!("arn:aws:iam::{}:role/{role}", cluster.account);
        let entries = format!("/clusters/{}/access-entries", cluster.name);
        self.eks(&cluster.account, "POST", &entries, &json!({"principalArn": role})).await?;
        let policies = format!("{entries}/{}/access-policies", role.replace(':', "%3A").replace('/', "%2F"));
        let policy = format!("arn:aws:eks::aws:cluster-access-policy/{policy}");
        let body = json!({"policyArn": policy, "accessScope": {"type": "cluster"}});
        self.eks(&cluster.account, "POST", &policies, &body).await.map(drop)
    }

    /// Calls the API of EKS as the administrator of `account`.
    async fn eks(&self, account: &str, method: &str, path: &str, body: &Value) -> anyhow::Result<Value> {
        let endpoint = self.endpoint().context("clusters are made on the local cloud only")?;
        let bytes = if body.is_null() { Vec::new() } else { serde_json::to_vec(body)? };
        let headers = [("content-type", "application/json")];
        let url = format!("{endpoint}{path}");
        let answer = send_signed_for("eks", &self.administrator_keys(account)?, method, &url, &headers, &bytes).await?;
        ensure!(answer.status < 300, "EKS answers {} to {method} {path}: {}", answer.status, answer.body);
        Ok(serde_json::from_str(&answer.body)?)
    }

    /// Returns the ARN of the role that clusters of an account have; makes it for the first one.
    async fn role_for_clusters(&self, account: &str) -> anyhow::Result<String> {
        let trust = r#"{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "sts:AssumeRole",
            "Principal": {"Service": "eks.amazonaws.com"}}]}"#;
        let iam = aws_sdk_iam::Client::new(&self.administrator(account)?);
        let made = iam.create_role().role_name("cluster").assume_role_policy_document(trust).send().await;
        if let Err(error) = made {
            let error = error.into_service_error();
            ensure!(error.is_entity_already_exists_exception(), "making the role of clusters: {error}");
        }
        Ok(format!("arn:aws:iam::{account}:role/cluster"))
    }
}

impl Cluster {
    /// Runs `kubectl` as the administrator of the cluster.
    ///
    /// # Errors
    /// When it cannot be run.
    pub async fn kubectl(&self, arguments: &[&str]) -> anyhow::Result<CommandOutput> {
        let folder = self.kubeconfig.parent().context("a kubeconfig without a folder")?;
        let kubeconfig = [("KUBECONFIG", self.kubeconfig.display().to_string())];
        run(&kubernetes_programs()?.join("kubectl"), folder, &kubeconfig, arguments).await
    }
}
