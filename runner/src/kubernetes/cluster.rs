//! Finds the cluster of a job: its name is in the tree that the order carries, and EKS returns its endpoint.

use std::time::{Duration, SystemTime};

use aws_credential_types::provider::ProvideCredentials as _;
use freehold_iam_proxy::Endpoint;
use freehold_protocol::order::ClusterOf;
use serde::Deserialize;
use serde_json::Value;
use url::Url;

use super::error::ClusterError;
use super::signature::{Scope, headers};
use crate::identity::job_aws::eks;
use crate::job::Job;

/// The time limit of the call `DescribeCluster` of EKS.
const CALL: Duration = Duration::from_secs(30);

/// An EKS cluster of this account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cluster {
    pub(super) name: String,
    pub(super) region: String,
    /// The cluster's ARN. It identifies the cluster among all clusters that exist at the same time.
    pub(super) arn: String,
    pub(super) endpoint: Url,
    /// The certificate authority of the endpoint, as PEM in base64.
    pub(super) authority: String,
}

/// Finds the cluster that `of` names.
pub(super) async fn find(job: &Job, of: &ClusterOf) -> Result<Cluster, ClusterError> {
    let name = name(&job.order.context, of)?;
    describe(job, name).await
}

/// Returns the cluster's name, which is an output of the sandbox or of a component.
fn name(context: &Value, of: &ClusterOf) -> Result<String, ClusterError> {
    let tree = context.get("nuon").unwrap_or(context);
    let outputs = match of {
        ClusterOf::Sandbox => tree.pointer("/sandbox/outputs").or_else(|| tree.pointer("/install/sandbox/outputs")),
        ClusterOf::Component(name) => {
            let component = tree.get("components").and_then(|all| all.get(name.as_str()));
            component.and_then(|one| one.get("outputs"))
        }
    };
    let named = outputs.and_then(|outputs| {
        let found = outputs.pointer("/cluster/name").or_else(|| outputs.get("cluster_name"));
        // The output `cluster` may be the name itself instead of an object.
        found.or_else(|| outputs.get("cluster")).and_then(Value::as_str)
    });
    checked(named.ok_or_else(|| ClusterError::Unnamed { of: part_with_cluster(of) })?)
}

/// Returns the part of the app whose outputs name the cluster, as messages name it.
pub(crate) fn part_with_cluster(of: &ClusterOf) -> String {
    match of {
        ClusterOf::Sandbox => "the sandbox".to_owned(),
        ClusterOf::Component(name) => format!("component `{name}`"),
    }
}

/// Finds the cluster called `name`.
pub(super) async fn find_by_name(job: &Job, name: &str) -> Result<Cluster, ClusterError> {
    describe(job, checked(name)?).await
}

fn checked(name: &str) -> Result<String, ClusterError> {
    // The characters that EKS permits (EKS API reference, `CreateCluster`, `name`). The name becomes a part of a URL.
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if name.is_empty() || name.len() > 100 || !name.bytes().all(is_name) {
        return Err(ClusterError::Name(name.to_owned()));
    }
    Ok(name.to_owned())
}

#[derive(Deserialize)]
struct Described {
    cluster: Description,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Description {
    arn: String,
    status: String,
    #[serde(default)]
    endpoint: Option<String>,
    #[serde(default)]
    certificate_authority: Option<Authority>,
}

#[derive(Deserialize)]
struct Authority {
    #[serde(default)]
    data: String,
}

async fn describe(job: &Job, name: String) -> Result<Cluster, ClusterError> {
    let region = job.config.region.clone();
    let failed = |why: String| ClusterError::NotDescribed { cluster: name.clone(), why };
    let credentials = job.credentials.provide_credentials().await;
    let credentials = credentials.map_err(|error| failed(crate::aws::explain(&error)))?;
    let Endpoint { url, region: signed } = eks(&region).map_err(|error| failed(error.to_string()))?;
    let url = url.join(&format!("/clusters/{name}")).map_err(|error| failed(error.to_string()))?;
    let scope = Scope { service: "eks", region: &signed };
    let http = crate::aws::request_client().map_err(|error| failed(error.to_string()))?;
    let mut request = http.get(url.clone()).timeout(CALL);
    for (header, value) in headers(scope, &url, &credentials, SystemTime::now()).map_err(failed)? {
        request = request.header(header, value);
    }
    let answer = request.send().await.map_err(|error| failed(crate::aws::explain(&error)))?;
    let status = answer.status().as_u16();
    let body: Value = answer.json().await.map_err(|error| failed(crate::aws::explain(&error)))?;
    match status {
        404 => Err(ClusterError::Absent { cluster: name, region }),
        200..300 => {
            described(name.clone(), region, body).unwrap_or_else(|| Err(failed("its response is incomplete".into())))
        }
        _ => Err(failed(body.get("message").and_then(Value::as_str).unwrap_or("it gives no reason").to_owned())),
    }
}

fn described(name: String, region: String, body: Value) -> Option<Result<Cluster, ClusterError>> {
    let Described { cluster } = serde_json::from_value(body).ok()?;
    // A cluster continues to work during its update.
    if !matches!(cluster.status.as_str(), "ACTIVE" | "UPDATING") {
        return Some(Err(ClusterError::NotActive { cluster: name, status: cluster.status }));
    }
    let authority = cluster.certificate_authority?.data;
    let endpoint = cluster.endpoint?.parse().ok()?;
    Some(Ok(Cluster { name, region, arn: cluster.arn, endpoint, authority }))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_sandbox_and_components_name_clusters() {
        let component = ClusterOf::Component("eks".parse().unwrap());
        let tree = json!({ "nuon": {
            "sandbox": { "outputs": { "cluster": { "name": "one" } } },
            "components": { "eks": { "outputs": { "cluster_name": "two" } }, "bad": { "outputs": { "cluster": "a/../b" } } },
        } });

        assert_eq!(name(&tree, &ClusterOf::Sandbox).unwrap(), "one");
        assert_eq!(name(&tree, &component).unwrap(), "two");
        assert!(
            name(&tree, &ClusterOf::Component("bad".parse().unwrap())).unwrap_err().to_string().contains("`a/../b`")
        );
        assert_eq!(
            name(&json!({ "nuon": {} }), &ClusterOf::Sandbox).unwrap_err().to_string(),
            "the outputs of the sandbox name no cluster: the runner looks for `cluster.name` and `cluster_name`; add one of \
             these outputs, or name another cluster with `kubernetes_context`"
        );
    }

    #[test]
    fn only_a_cluster_that_works_is_used() {
        let body = |status: &str| {
            json!({ "cluster": { "arn": "arn:x", "status": status, "endpoint": "https://a.eks.amazonaws.com",
                "certificateAuthority": { "data": "QQ==" } } })
        };
        let of = |body| described("one".into(), "eu-west-1".into(), body);

        assert_eq!(of(body("ACTIVE")).unwrap().unwrap().endpoint.host_str(), Some("a.eks.amazonaws.com"));
        assert_eq!(
            of(body("CREATING")).unwrap().unwrap_err().to_string(),
            "cluster `one` is `CREATING`; start the job again when it is `ACTIVE`"
        );
        assert!(of(json!({ "cluster": { "arn": "a", "status": "ACTIVE" } })).is_none());
    }
}
