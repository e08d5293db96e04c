//! The rule about images in the cluster itself: a `ValidatingAdmissionPolicy`, which API servers of Kubernetes 1.30 and
//! later evaluate without further programs. The rule also checks objects that the runner does not see in advance: those
//! of a hook or of a second rendering of a chart, and those that a step of an action makes with `kubectl`.
//!
//! The rule checks requests of this install's sessions only. So it cannot refuse what the customer, another app or AWS
//! runs in the same cluster.

use freehold_aws_errors::chain;
use freehold_protocol::names;
use serde_json::{Value, json};

use super::DIGEST_TAG;
use crate::config::ClusterImages;
use crate::job::failure::Failure;
use crate::job::{Job, sdk_config};
use crate::kubernetes::{Api, Applied, ClusterError, Id, Object};
use crate::registry::ecr_repository;

const GROUP: &str = "admissionregistration.k8s.io/v1";
const POLICY: &str = "ValidatingAdmissionPolicy";
const BINDING: &str = "ValidatingAdmissionPolicyBinding";

/// Applies the rule if the customer wants it. `registry` is the address of the install registry; without it, the
/// address is looked up. Only logs a line when the cluster does not support such rules, or the role may not make them:
/// the runner itself checks charts and manifests in any case.
pub(in crate::kinds) async fn admit(job: &Job, api: &Api, registry: Option<&str>) -> Result<(), Failure> {
    if job.config.cluster_images == ClusterImages::Any {
        return Ok(());
    }
    let name = name(job);
    let registry = match registry {
        Some(registry) => registry.to_owned(),
        None => ecr_repository(&sdk_config(job).await, &job.config.repository).await?.address(),
    };
    match install(job, api, &name, &registry).await {
        Ok(true) => job.log.line(&format!("`{POLICY}` `{name}` refuses images that are not in the install registry")),
        Ok(false) => job.log.line(&format!(
            "the cluster has no `{POLICY}` of `{GROUP}`, which Kubernetes has from 1.30: the runner checks images \
             only in charts and manifests"
        )),
        Err(error) => job.log.line(&format!(
            "`{POLICY}` `{name}` could not be applied, so the runner checks images only in charts and manifests: {}",
            chain(&error)
        )),
    }
    Ok(())
}

/// Removes the rule if the customer no longer wants it. Must run before objects are compared: the rule would also
/// refuse the dry run of a change, and the rollback of a release.
pub(in crate::kinds) async fn withdraw_unwanted(job: &Job, api: &Api) {
    if job.config.cluster_images == ClusterImages::Any {
        withdraw(job, api).await;
    }
}

/// Removes the rule, if the cluster has it.
pub(in crate::kinds) async fn withdraw(job: &Job, api: &Api) {
    let name = name(job);
    // A role that may not read the rule has not made it either.
    if !matches!(api.get(&id(POLICY, &name)).await, Ok(Some(_))) {
        return;
    }
    // Without its binding, a policy has no effect.
    for kind in [BINDING, POLICY] {
        if let Err(error) = api.delete(&id(kind, &name)).await {
            job.log.line(&format!("`{kind}` `{name}` could not be removed: {}", chain(&error)));
            return;
        }
    }
    job.log.line(&format!("removed `{POLICY}` `{name}`"));
}

/// Applies the rule. Returns whether the cluster has such rules.
async fn install(job: &Job, api: &Api, name: &str, registry: &str) -> Result<bool, ClusterError> {
    if api.resource(GROUP, POLICY).await?.is_none() {
        return Ok(false);
    }
    for (kind, spec) in [(POLICY, policy(&sessions(job), registry)), (BINDING, binding(name))] {
        let metadata = json!({ "name": name, "labels": job.order.shared_labels() });
        let value = json!({ "apiVersion": GROUP, "kind": kind, "metadata": metadata, "spec": spec });
        let object = Object { place: format!("the rule `{name}`"), id: id(kind, name), value };
        api.apply(&object, Applied::Done).await?;
    }
    Ok(true)
}

fn name(job: &Job) -> String {
    names::install_part(&job.config.tenant, &job.config.install, "images")
}

/// Returns a text that the ARN of each session of this install's roles contains, and the ARN of no other session.
fn sessions(job: &Job) -> String {
    format!(":assumed-role/{}", names::install_part(&job.config.tenant, &job.config.install, ""))
}

fn id(kind: &str, name: &str) -> Id {
    Id { api_version: GROUP.to_owned(), kind: kind.to_owned(), namespace: None, name: name.to_owned() }
}

fn binding(name: &str) -> Value {
    json!({ "policyName": name, "validationActions": ["Deny"] })
}

/// Returns the policy. Its expressions are in the Common Expression Language; a string of JSON is also a string of that
/// language.
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
        // EKS uses the ARN of a session as its user name. An access entry may set another name, so the ARN in `extra` is read too.
        "matchConditions": [{ "name": "session-of-the-install", "expression": format!(
            "request.userInfo.username.contains({sessions}) || (has(request.userInfo.extra) && \
             'arn' in request.userInfo.extra && request.userInfo.extra['arn'].exists(arn, arn.contains({sessions})))"
        ) }],
        "variables": [
            { "name": "pod", "expression": pod_of("object") },
            { "name": "images", "expression": images_of("variables.pod") },
            // A variable is evaluated when an expression uses it. Without an old object, no expression uses this one.
            { "name": "oldPod", "expression": pod_of("oldObject") },
            { "name": "oldImages", "expression":
                format!("request.operation == 'UPDATE' ? {} : []", images_of("variables.oldPod")) },
        ],
        "validations": [{
            "expression": format!(
                "variables.images.all(image, image.startsWith({by_digest}) || image.startsWith({by_tag}) || \
                 (image.startsWith({tagged}) && image.contains('@sha256:')) || image in variables.oldImages)"
            ),
            "message": "an image is new in this object and not in the install registry, and the customer lets no other image into the cluster \
                        (`ClusterImages` of the install stack)",
        }],
    })
}

/// Returns the expression of the pod spec in an object.
fn pod_of(object: &str) -> String {
    format!(
        "{object}.kind == 'Pod' ? {object}.spec : ({object}.kind == 'PodTemplate' ? {object}.template.spec : \
         ({object}.kind == 'CronJob' ? {object}.spec.jobTemplate.spec.template.spec : {object}.spec.template.spec))"
    )
}

/// Returns the expression of the images that a pod spec names.
fn images_of(pod: &str) -> String {
    format!(
        "({pod}.containers + (has({pod}.initContainers) ? {pod}.initContainers : []) \
         + (has({pod}.ephemeralContainers) ? {pod}.ephemeralContainers : []))\
         .map(one, has(one.image) ? one.image : '') \
         + (has({pod}.volumes) ? {pod}.volumes : []).filter(one, has(one.image))\
         .map(one, has(one.image.reference) ? one.image.reference : '')"
    )
}

#[cfg(test)]
mod tests {
    use cel::{Context, Program, to_value};

    use super::*;

    const REGISTRY: &str = "registry.example/fh-acme/globex";
    const SESSIONS: &str = ":assumed-role/fh-acme--globex--";

    fn own(name: &str) -> String {
        format!("{REGISTRY}@sha256:{name}")
    }

    fn pod(images: &[&str]) -> Value {
        let containers: Vec<Value> = images.iter().map(|image| json!({ "name": "a", "image": image })).collect();
        json!({ "containers": containers })
    }

    fn evaluated(expression: &Value, context: &Context<'_, '_>) -> Option<cel::Value> {
        Program::compile(expression.as_str().unwrap()).unwrap().execute(context).ok()
    }

    /// Returns whether an API server admits the change, from `old` to `object`, by the expressions of the policy.
    fn admits(old: &Value, object: &Value) -> bool {
        let policy = policy(SESSIONS, REGISTRY);
        let operation = if old.is_null() { "CREATE" } else { "UPDATE" };
        let mut context = Context::default();
        for (name, value) in [("object", object), ("oldObject", old), ("request", &json!({ "operation": operation }))] {
            context.add_variable_from_value(name, to_value(value).unwrap());
        }
        let mut variables = std::collections::HashMap::<String, cel::Value>::new();
        for variable in policy["variables"].as_array().unwrap() {
            context.add_variable_from_value("variables", variables.clone());
            // An API server finds the value of a variable when it is needed, and fails then.
            if let Some(value) = evaluated(&variable["expression"], &context) {
                variables.insert(variable["name"].as_str().unwrap().to_owned(), value);
            }
        }
        context.add_variable_from_value("variables", variables);
        evaluated(&policy["validations"][0]["expression"], &context) == Some(cel::Value::Bool(true))
    }

    #[test]
    fn the_pod_of_every_kind_that_the_rule_is_for_is_judged() {
        for (kind, place) in [
            ("Pod", "/spec"),
            ("PodTemplate", "/template/spec"),
            ("Deployment", "/spec/template/spec"),
            ("CronJob", "/spec/jobTemplate/spec/template/spec"),
        ] {
            let of = |pod: Value| {
                let value =
                    place.rsplit('/').filter(|key| !key.is_empty()).fold(pod, |inner, key| json!({ key: inner }));
                let mut object = json!({ "kind": kind });
                object.as_object_mut().unwrap().extend(value.as_object().unwrap().clone());
                object
            };
            let (own_pod, foreign) = (of(pod(&[&own("1")])), of(pod(&[&own("1"), "nginx:1"])));

            assert!(admits(&Value::Null, &own_pod) && !admits(&Value::Null, &foreign), "{kind}");
            assert!(admits(&foreign, &own_pod) && !admits(&own_pod, &foreign), "{kind}");
        }
    }

    #[test]
    fn every_image_of_a_pod_is_judged() {
        let of = |more: Value| {
            let mut spec = pod(&[&own("1")]);
            spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            json!({ "kind": "Pod", "spec": spec })
        };
        let tagged = |tag: &str| of(json!({ "initContainers": [{ "image": format!("{REGISTRY}:{tag}") }] }));

        for (more, is_own) in [
            (json!({}), true),
            (json!({ "volumes": [{ "emptyDir": {} }, { "image": { "reference": own("2") } }] }), true),
            (json!({ "initContainers": [{ "image": "busybox" }] }), false),
            (json!({ "ephemeralContainers": [{ "image": "busybox" }] }), false),
            (json!({ "volumes": [{ "image": { "reference": "busybox" } }] }), false),
            (json!({ "initContainers": [{ "name": "without" }] }), false),
        ] {
            assert_eq!(admits(&Value::Null, &of(more.clone())), is_own, "{more}");
        }
        assert!(admits(&Value::Null, &tagged("sha256-0123")) && admits(&Value::Null, &tagged("1@sha256:0123")));
        assert!(!admits(&Value::Null, &tagged("1")));
    }

    #[test]
    fn a_change_is_refused_for_its_new_images_only() {
        let deployment = |replicas: u32, images: &[&str]| json!({ "kind": "Deployment", "spec": { "replicas": replicas, "template": { "spec": pod(images) } } });
        let before = deployment(1, &["coredns:1", "proxy:1"]);

        assert!(admits(&before, &deployment(2, &["coredns:1", "proxy:1"])), "no image changes");
        assert!(admits(&before, &deployment(1, &["coredns:1"])), "an image is removed");
        assert!(admits(&before, &deployment(1, &["coredns:1", &own("1")])), "an image of the install comes");
        assert!(!admits(&before, &deployment(1, &["coredns:2", "proxy:1"])), "an image changes");
        assert!(!admits(&Value::Null, &before));
    }

    #[test]
    fn requests_of_this_installs_sessions_are_judged_and_no_others() {
        let condition = &policy(SESSIONS, REGISTRY)["matchConditions"][0]["expression"];
        let arn = |role: &str| format!("arn:aws:sts::222222222222:assumed-role/{role}/job");

        for (user, is_judged) in [
            (json!({ "username": arn("fh-acme--globex--provision") }), true),
            (json!({ "username": "deployer", "extra": { "arn": [arn("fh-acme--globex--provision")] } }), true),
            (json!({ "username": arn("fh-acme--other--provision") }), false),
            (json!({ "username": "system:serviceaccount:kube-system:deployment-controller", "extra": {} }), false),
        ] {
            let mut context = Context::default();
            context.add_variable_from_value("request", to_value(json!({ "userInfo": user })).unwrap());

            assert_eq!(evaluated(condition, &context), Some(cel::Value::Bool(is_judged)), "{user}");
        }
        assert_eq!(binding("x"), json!({ "policyName": "x", "validationActions": ["Deny"] }));
    }
}
