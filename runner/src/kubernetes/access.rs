//! Gives a job access to one cluster: the runner calls the API with a token of the job, and the job's programs get a
//! kubeconfig and a connection to the endpoint.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use aws_credential_types::provider::SharedCredentialsProvider;
use freehold_protocol::order::ClusterOf;

use super::api::Api;
use super::cluster::{self, Cluster};
use super::error::ClusterError;
use super::kubeconfig::Kubeconfig;
use super::token::Tokens;
use crate::job::Job;
use crate::sandbox::{Service, own_loopback};

/// The access of one job to one cluster.
#[derive(Debug)]
pub(crate) struct ClusterAccess {
    cluster: Cluster,
    tokens: Tokens,
    kubeconfig: Kubeconfig,
}

impl ClusterAccess {
    /// Finds the cluster that `of` names, and makes a token and a kubeconfig for it under the job's role.
    pub(crate) async fn of(job: &Job, of: &ClusterOf) -> Result<Self, ClusterError> {
        let cluster = cluster::find(job, of).await?;
        let tokens = tokens(job, &cluster, job.credentials.clone());
        let token = tokens.current().await?;
        let kubeconfig = Kubeconfig::write(&job.workspace, &cluster, &token, tokens.clone());
        let kubeconfig =
            kubeconfig.map_err(|source| ClusterError::Kubeconfig { cluster: cluster.name.clone(), source })?;
        job.log.line(&format!("cluster `{}` is at {}", cluster.name, cluster.endpoint));
        Ok(Self { cluster, tokens, kubeconfig })
    }

    /// Returns the ARN of the cluster.
    pub(crate) fn arn(&self) -> &str {
        &self.cluster.arn
    }

    /// Returns a client for the API of the cluster.
    pub(crate) fn api(&self) -> Result<Api, ClusterError> {
        Api::new(&self.cluster, self.tokens.clone())
    }

    /// Returns the environment variables that a program needs to find the cluster.
    pub(crate) fn environment(&self) -> BTreeMap<String, String> {
        BTreeMap::from([("KUBECONFIG".to_owned(), self.kubeconfig.file().display().to_string())])
    }

    /// Returns the directories that a program must be able to read.
    pub(crate) fn readable(&self) -> Vec<PathBuf> {
        vec![self.kubeconfig.directory().to_owned()]
    }

    /// Returns the host of the cluster's endpoint, which a program reaches through the runner's proxy. The list is
    /// empty for a cluster of the local cloud, which [`ClusterAccess::services`] covers.
    pub(crate) fn hosts(&self, job: &Job) -> Vec<String> {
        let endpoint = &self.cluster.endpoint;
        if !self.services(job).is_empty() {
            return Vec::new();
        }
        let port = endpoint.port().map(|port| format!(":{port}")).unwrap_or_default();
        endpoint.host_str().map(|host| format!("{host}{port}")).into_iter().collect()
    }

    /// Returns the service that makes a cluster of the local cloud, which is on the machine's loopback, reachable in
    /// the box.
    pub(crate) fn services(&self, job: &Job) -> Vec<Service> {
        own_loopback(job, self.cluster.endpoint.as_str()).into_iter().collect()
    }
}

/// Returns clients for the API of the cluster called `name`, one for each of `credentials`. The job's own credentials look
/// the cluster up; a cluster that does not exist has no client.
pub(crate) async fn apis_of(
    job: &Job,
    name: &str,
    credentials: Vec<SharedCredentialsProvider>,
) -> Result<Option<Vec<Api>>, ClusterError> {
    let cluster = match cluster::find_by_name(job, name).await {
        Err(ClusterError::Absent { .. }) => return Ok(None),
        found => found?,
    };
    let api = |credentials| Api::new(&cluster, tokens(job, &cluster, credentials));
    credentials.into_iter().map(api).collect::<Result<_, _>>().map(Some)
}

fn tokens(job: &Job, cluster: &Cluster, credentials: SharedCredentialsProvider) -> Tokens {
    Tokens {
        cluster: cluster.name.clone(),
        region: cluster.region.clone(),
        sts: sts_host(&cluster.region),
        credentials,
        log: job.log.clone(),
        held: Arc::default(),
    }
}

/// Returns the host of STS in a region. It has the same domain as the endpoint of EKS.
fn sts_host(region: &str) -> String {
    let eks = freehold_iam_proxy::Endpoint::eks(region).ok();
    let domain = eks.as_ref().and_then(|eks| eks.url.host_str()?.strip_prefix("eks."));
    format!("sts.{}", domain.unwrap_or("amazonaws.com"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sts_is_the_one_of_the_region_in_its_partition() {
        assert_eq!(sts_host("eu-west-1"), "sts.eu-west-1.amazonaws.com");
        assert_eq!(sts_host("cn-north-1"), "sts.cn-north-1.amazonaws.com.cn");
    }
}
