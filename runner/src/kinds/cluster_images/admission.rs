//! The rule about images in the cluster itself: a `ValidatingAdmissionPolicy`, which API servers of Kubernetes 1.30 and
//! later evaluate without further programs. It also judges what the runner does not see before: what a hook or a
//! second rendering of a chart makes, and what a step of an action makes with `kubectl`.
//!
//! It judges requests of this install's sessions only. So it cannot refuse what the customer, another app or AWS runs in
//! the same cluster.

use freehold_aws_errors::chain;
use freehold_protocol::names;
use serde_json::{Value, json};

use super::DIGEST_TAG;
use crate::config::ClusterImages;
use crate::kinds::failure::Failure;
use crate::kubernetes::{Api, Applied, ClusterError, Id, Object};
use crate::work::job::Job;

const GROUP: &str = "admissionregistration.k8s.io/v1";
const POLICY: &str = "ValidatingAdmissionPolicy";
const BINDING: &str = "ValidatingAdmissionPolicyBinding";

/// Makes sure that the cluster has the rule if the customer wants it, and does not have it otherwise. A cluster without
/// such rules, or a role that may not make them, is a line in the log: the runner itself looks at charts and manifests
/// in any case. `registry` is the address of the install registry.
pub(in crate::kinds) async fn admit(job: &Job, api: &Api, registry: &str) -> Result<(), Failure> {
    if job.config.cluster_images == ClusterImages::Any {
        return Ok(());
    }
    let name = name(job);
    match install(api, &name, &sessions(job), registry).await {
        Ok(true) => job.log.line(&format!("`{POLICY}` `{name}` refuses images that are not in the install registry")),
        Ok(false) => job.log.line(&format!(
            "the cluster has no `{POLICY}` of `{GROUP}`, which Kubernetes has from 1.30: only charts and manifests are \
             looked at, by the runner"
        )),
        Err(error) => job.log.line(&format!(
            "`{POLICY}` `{name}` could not be applied, so only charts and manifests are looked at, by the runner: {}",
            chain(&error)
        )),
    }
    Ok(())
}

/// Removes the rule if the customer no longer wants it. This is done before anything is compared: the rule would also
/// refuse the dry run of a change, and the roll back of a release.
pub(in crate::kinds) async fn open(job: &Job, api: &Api) -> Result<(), Failure> {
    if job.config.cluster_images == ClusterImages::Any {
        withdraw(job, api).await;
    }
    Ok(())
}

/// Removes the rule, if the cluster has it.
pub(in crate::kinds) async fn withdraw(job: &Job, api: &Api) {
    let name = name(job);
    // A role that may not read the rule has not made it either.
    if !matches!(api.get(&id(POLICY, &name)).await, Ok(Some(_))) {
        return;
    }
    // Without its binding, a policy judges nothing.
    for kind in [BINDING, POLICY] {
        if let Err(error) = api.delete(&id(kind, &name)).await {
            job.log.line(&format!("`{kind}` `{name}` could not be removed: {}", chain(&error)));
            return;
        }
    }
    job.log.line(&format!("removed `{POLICY}` `{name}`"));
}

/// Applies the rule. Returns whether the cluster has such rules.
async fn install(api: &Api, name: &str, sessions: &str, registry: &str) -> Result<bool, ClusterError> {
    if api.resource(GROUP, POLICY).await?.is_none() {
        return Ok(false);
    }
    for (kind, spec) in [(POLICY, policy(sessions, registry)), (BINDING, binding(name))] {
        let value = json!({ "apiVersion": GROUP, "kind": kind, "metadata": { "name": name }, "spec": spec });
        let object = Object { place: format!("the rule `{name}`"), id: id(kind, name), value };
        api.apply(&object, Applied::Done).await?;
    }
    Ok(true)
}

fn name(job: &Job) -> String {
    names::install_part(&job.config.tenant, &job.config.install, "images")
}

/// Returns the part of the ARN of each session of this install's roles that no other session has.
fn sessions(job: &Job) -> String {
    format!(":assumed-role/{}", names::install_part(&job.config.tenant, &job.config.install, ""))
}

fn id(kind: &str, name: &str) -> Id {
    Id { api_version: GROUP.to_owned(), kind: kind.to_owned(), namespace: None, name: name.to_owned() }
}

fn binding(name: &str) -> Value {
    json!({ "policyName": name, "validationActions": ["Deny"] })
}

/// Returns the policy. Its expressions are in the Common Expression Language; a text of JSON is one of that language too.
fn policy(sessions: &str, registry: &str) -> Value {
    let rule = |group: &str, resources: &[&str]| json!({ "apiGroups": [group], "apiVersions": ["*"], "operations": ["CREATE", "UPDATE"], "resources": resources });
    let (sessions, by_digest, by_tag, tagged) = (
        Value::from(sessions),
        Value::from(format!("{registry}@sha256:")),
        Value::from(format!("{registry}:{DIGEST_TAG}")),
        Value::from(format!("{registry}:")),
    );
    json!({
        "failurePolicy": "Fail",
        "matchConstraints": { "resourceRules": [
            rule("", &["pods", "pods/ephemeralcontainers", "podtemplates", "replicationcontrollers"]),
            rule("apps", &["deployments", "daemonsets", "statefulsets", "replicasets"]),
            rule("batch", &["jobs", "cronjobs"]),
        ] },
        // EKS names a session by its ARN, and repeats the ARN beside the name, which an access entry may change.
        "matchConditions": [{ "name": "session-of-the-install", "expression": format!(
            "request.userInfo.username.contains({sessions}) || (has(request.userInfo.extra) && \
             'arn' in request.userInfo.extra && request.userInfo.extra['arn'].exists(arn, arn.contains({sessions})))"
        ) }],
        "variables": [
            { "name": "pod", "expression":
                "object.kind == 'Pod' ? object.spec : (object.kind == 'PodTemplate' ? object.template.spec : \
                 (object.kind == 'CronJob' ? object.spec.jobTemplate.spec.template.spec : object.spec.template.spec))" },
            { "name": "images", "expression":
                "(variables.pod.containers \
                 + (has(variables.pod.initContainers) ? variables.pod.initContainers : []) \
                 + (has(variables.pod.ephemeralContainers) ? variables.pod.ephemeralContainers : []))\
                 .map(one, has(one.image) ? one.image : '') \
                 + (has(variables.pod.volumes) ? variables.pod.volumes : []).filter(one, has(one.image))\
                 .map(one, has(one.image.reference) ? one.image.reference : '')" },
        ],
        "validations": [{
            "expression": format!(
                "variables.images.all(image, image.startsWith({by_digest}) || image.startsWith({by_tag}) || \
                 (image.startsWith({tagged}) && image.contains('@sha256:')))"
            ),
            "message": "an image is not in the install registry, and the customer lets no other image into the cluster \
                        (`ClusterImages` of the install stack)",
        }],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policy_names_this_installs_sessions_and_registry() {
        let policy = policy(":assumed-role/fh-acme--globex--", "registry.example/fh-acme/globex");

        let text = |path: &str| policy.pointer(path).and_then(Value::as_str).unwrap().to_owned();
        let condition = text("/matchConditions/0/expression");
        assert!(condition.starts_with("request.userInfo.username.contains(\":assumed-role/fh-acme--globex--\") || "));
        assert_eq!(
            text("/validations/0/expression"),
            "variables.images.all(image, image.startsWith(\"registry.example/fh-acme/globex@sha256:\") || \
             image.startsWith(\"registry.example/fh-acme/globex:sha256-\") || \
             (image.startsWith(\"registry.example/fh-acme/globex:\") && image.contains('@sha256:')))"
        );
        assert_eq!(binding("x"), json!({ "policyName": "x", "validationActions": ["Deny"] }));
    }
}
