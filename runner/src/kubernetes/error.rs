//! The errors of a cluster. Each message names the cluster and how to fix the problem.

use freehold_aws_errors::chain;
use serde_json::Value;

use crate::job::failure::Failure;

/// The reason why a cluster cannot be used or refuses a request.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    #[error(
        "the outputs of {of} name no cluster: the runner looks for `cluster.name` and `cluster_name`; add one of these \
         outputs, or name another cluster with `kubernetes_context`"
    )]
    Unnamed { of: String },
    #[error("`{0}` is not a name that a cluster can have; it comes from the output `cluster.name` or `cluster_name`")]
    Name(String),
    #[error(
        "there is no EKS cluster `{cluster}` in region `{region}` of this account; deploy the component that makes it \
         first"
    )]
    Absent { cluster: String, region: String },
    #[error("cluster `{cluster}` is `{status}`; start the job again when it is `ACTIVE`")]
    NotActive { cluster: String, status: String },
    #[error("EKS could not describe cluster `{cluster}`: {why}; the job's role needs `eks:DescribeCluster` on it")]
    NotDescribed { cluster: String, why: String },
    #[error("could not make a token for cluster `{cluster}`: {why}")]
    NoToken { cluster: String, why: String },
    #[error("could not write the kubeconfig of cluster `{cluster}`")]
    Kubeconfig {
        cluster: String,
        #[source]
        source: std::io::Error,
    },
    #[error(
        "cluster `{cluster}` does not answer at `{endpoint}` ({why}); check that it is up, and that the runner's subnets \
         and security groups let the runner reach this endpoint; then start the job again"
    )]
    Silent { cluster: String, endpoint: String, why: String },
    #[error(
        "cluster `{cluster}` refuses the token of this job: the job's role has no access entry there; add an access entry \
         for the role to the cluster (`eks:CreateAccessEntry`)"
    )]
    Unauthorized { cluster: String },
    #[error(
        "cluster `{cluster}` forbids a request of this job: {message}; give the access entry of the job's role a \
         policy that allows it"
    )]
    Forbidden { cluster: String, message: String },
    #[error("cluster `{cluster}` refuses {what}: {message}")]
    Refused { cluster: String, what: String, status: u16, message: String, owners: Vec<Owner> },
    #[error("the response of cluster `{cluster}` is not a Kubernetes document; the request was: {what}")]
    Malformed { cluster: String, what: String },
}

impl From<ClusterError> for Failure {
    fn from(error: ClusterError) -> Self {
        Self::new(chain(&error))
    }
}

/// A field of an object, and the field manager that it belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    pub field: String,
    pub manager: String,
    /// Whether the manager has written the field by an update, and not by a server-side apply.
    pub is_update: bool,
}

impl Owner {
    /// Returns whether a person edited the field by a command of `kubectl` such as `kubectl edit`. An apply is not an
    /// edit: whoever applies an object has a file of it, and wants to keep the object as the file says.
    fn is_edit_by_kubectl(&self) -> bool {
        let is_kubectl = self.manager == "kubectl" || self.manager.starts_with("kubectl-");
        self.is_update && is_kubectl && self.manager != "kubectl-client-side-apply"
    }
}

impl ClusterError {
    /// Returns the error for an unsuccessful response of the API server. `body` is the response's JSON.
    pub(super) fn of_answer(cluster: &str, what: &str, status: u16, body: &Value) -> Self {
        let cluster = cluster.to_owned();
        let reason = body.get("message").and_then(Value::as_str).unwrap_or("it gives no reason");
        let message = reason.chars().take(1_000).collect();
        match status {
            401 => Self::Unauthorized { cluster },
            403 => Self::Forbidden { cluster, message },
            _ => Self::Refused { cluster, what: what.to_owned(), status, message, owners: owners(body) },
        }
    }

    /// Returns the HTTP status with which the API server refused, or `None` for other errors.
    pub(crate) const fn status(&self) -> Option<u16> {
        match self {
            Self::Unauthorized { .. } => Some(401),
            Self::Forbidden { .. } => Some(403),
            Self::Refused { status, .. } => Some(*status),
            Self::Unnamed { .. }
            | Self::Name(_)
            | Self::Absent { .. }
            | Self::NotActive { .. }
            | Self::NotDescribed { .. }
            | Self::NoToken { .. }
            | Self::Kubeconfig { .. }
            | Self::Silent { .. }
            | Self::Malformed { .. } => None,
        }
    }

    /// Returns the fields that other field managers own, if the error is a conflict about them; otherwise nothing.
    pub(crate) fn owners(&self) -> &[Owner] {
        if let Self::Refused { status: 409, owners, .. } = self { owners } else { &[] }
    }

    /// Returns whether the error is a conflict about nothing but fields that people edited by commands of `kubectl`.
    pub(crate) fn is_about_edits_by_kubectl(&self) -> bool {
        let owners = self.owners();
        !owners.is_empty() && owners.iter().all(Owner::is_edit_by_kubectl)
    }
}

/// Reads the causes of a conflict (Kubernetes API, `StatusDetails`). A message is `conflict with "kubectl-edit" using
/// apps/v1`, or `conflict with "kubectl" with subresource "scale" using apps/v1`, and `conflict with "kubectl"` when the
/// manager has applied the field.
fn owners(body: &Value) -> Vec<Owner> {
    let causes = body.pointer("/details/causes").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let conflicts =
        causes.iter().filter(|cause| cause.get("reason").and_then(Value::as_str) == Some("FieldManagerConflict"));
    conflicts
        .map(|cause| {
            let text = |key: &str| cause.get(key).and_then(Value::as_str).unwrap_or_default();
            let message = text("message");
            let manager = message.split('"').nth(1).unwrap_or("another field manager").to_owned();
            let is_update = message.rsplit('"').next().is_some_and(|end| end.starts_with(" using "));
            Owner { field: text("field").trim_start_matches('.').to_owned(), manager, is_update }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_conflict_names_its_owners() {
        let body = json!({ "kind": "Status", "message": "Apply failed with 1 conflict", "details": { "causes": [
            { "reason": "FieldManagerConflict", "message": "conflict with \"kubectl\" using apps/v1", "field": ".spec.replicas" },
        ] } });

        let error = ClusterError::of_answer("one", "Deployment `web`", 409, &body);

        let owner = Owner { field: "spec.replicas".into(), manager: "kubectl".into(), is_update: true };
        assert_eq!(error.owners(), [owner]);
        assert_eq!(error.to_string(), "cluster `one` refuses Deployment `web`: Apply failed with 1 conflict");
    }

    #[test]
    fn an_edit_by_kubectl_is_told_apart_from_an_apply_and_from_other_managers() {
        let conflict = |messages: &[&str]| {
            let cause = |message: &&str| {
                json!({ "reason": "FieldManagerConflict", "field": ".data.text",
                    "message": format!("conflict with {message}") })
            };
            let causes: Vec<Value> = messages.iter().map(cause).collect();
            let body = json!({ "kind": "Status", "details": { "causes": causes } });
            ClusterError::of_answer("one", "ConfigMap `a`", 409, &body)
        };
        let is_edit = |messages: &[&str]| conflict(messages).is_about_edits_by_kubectl();
        let scale = "with subresource \"scale\" using apps/v1";
        let edits = ["\"kubectl-edit\" using v1 at 2026-11-30T19:05:21Z", &format!("\"kubectl\" {scale}")];

        assert!(is_edit(&edits[..1]) && is_edit(&edits));
        for other in [
            "\"kubectl\"",
            "\"kubectl-client-side-apply\" using v1",
            "\"kubectlx\" using v1",
            "\"kube-controller-manager\" using apps/v1",
            &format!("\"kube-controller-manager\" {scale}"),
            "somebody",
        ] {
            assert!(!is_edit(&[other]) && !is_edit(&[edits[0], other]), "{other}");
        }
        assert!(!is_edit(&[]));
    }

    #[test]
    fn a_refused_token_and_a_refused_right_are_told_apart() {
        let body = json!({ "kind": "Status", "message": "secrets is forbidden" });
        let message_of = |status| ClusterError::of_answer("one", "Secret `a`", status, &body).to_string();

        assert!(message_of(401).contains("has no access entry"));
        assert!(message_of(403).contains("secrets is forbidden; give the access entry"));
    }
}
