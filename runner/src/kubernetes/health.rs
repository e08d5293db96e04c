//! Decides whether an object is healthy, by rules for its kind.

use serde_json::Value;

use super::object::text;
use super::pod;

/// The health of one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Health {
    Healthy,
    /// The object is not healthy yet, for this reason.
    Waiting(String),
    /// The object has failed for this reason and will not become healthy by itself.
    Failed(String),
}

/// Returns the health of a live object. A kind without a rule is healthy unless its condition `Ready` is not true.
pub(crate) fn health(object: &Value) -> Health {
    let kind = object.get("kind").and_then(Value::as_str).unwrap_or_default();
    if number(object, "/status/observedGeneration")
        .is_some_and(|seen| Some(seen) < number(object, "/metadata/generation"))
    {
        return Health::Waiting("its controller has not seen the change yet".to_owned());
    }
    match kind {
        "Deployment" => deployment(object),
        "StatefulSet" => replicas(object, wanted(object), ["readyReplicas", "updatedReplicas"]),
        "ReplicaSet" | "ReplicationController" => {
            replicas(object, wanted(object), ["readyReplicas", "availableReplicas"])
        }
        "DaemonSet" => {
            let wanted = number(object, "/status/desiredNumberScheduled").unwrap_or(0);
            replicas(object, wanted, ["numberReady", "updatedNumberScheduled"])
        }
        "Job" => job(object),
        "Pod" => match object.pointer("/status/phase").and_then(Value::as_str) {
            Some("Succeeded") => Health::Healthy,
            Some("Failed") => {
                Health::Failed(pod::reason(object).unwrap_or_else(|| "a container ended with an error".to_owned()))
            }
            _ => condition(object, "Ready", true),
        },
        "CustomResourceDefinition" => condition(object, "Established", true),
        "APIService" => condition(object, "Available", true),
        "Namespace" => match object.pointer("/status/phase").and_then(Value::as_str) {
            Some("Terminating") => Health::Waiting("it is being deleted".to_owned()),
            _ => Health::Healthy,
        },
        _ => condition(object, "Ready", false),
    }
}

fn number(object: &Value, path: &str) -> Option<u64> {
    object.pointer(path).and_then(Value::as_u64)
}

fn wanted(object: &Value) -> u64 {
    number(object, "/spec/replicas").unwrap_or(1)
}

fn deployment(object: &Value) -> Health {
    if let Some(progressing) = of_type(object, "Progressing")
        && text(progressing, "reason") == "ProgressDeadlineExceeded"
    {
        return Health::Failed(text(progressing, "message").to_owned());
    }
    if object.pointer("/status/observedGeneration").is_none() {
        return Health::Waiting("its controller has not seen it yet".to_owned());
    }
    replicas(object, wanted(object), ["availableReplicas", "updatedReplicas"])
}

fn replicas(object: &Value, wanted: u64, counts: [&str; 2]) -> Health {
    let least = counts.iter().map(|count| number(object, &format!("/status/{count}")).unwrap_or(0)).min().unwrap_or(0);
    if least >= wanted { Health::Healthy } else { Health::Waiting(format!("{least} of {wanted} are ready")) }
}

fn job(object: &Value) -> Health {
    if let Some(failed) = of_type(object, "Failed").filter(|failed| text(failed, "status") == "True") {
        return Health::Failed(text(failed, "message").to_owned());
    }
    match of_type(object, "Complete").filter(|done| text(done, "status") == "True") {
        Some(_) => Health::Healthy,
        None => Health::Waiting("the job is not complete".to_owned()),
    }
}

/// Returns the health by one condition. An object without the condition is healthy unless the condition is `needed`.
fn condition(object: &Value, name: &str, needed: bool) -> Health {
    match of_type(object, name) {
        Some(found) if text(found, "status") == "True" => Health::Healthy,
        Some(found) => {
            let why = [text(found, "reason"), text(found, "message")]
                .iter()
                .filter(|text| !text.is_empty())
                .copied()
                .collect::<Vec<_>>()
                .join(": ");
            Health::Waiting(if why.is_empty() { format!("its condition `{name}` is not true") } else { why })
        }
        None if needed => Health::Waiting(format!("it has no condition `{name}` yet")),
        None => Health::Healthy,
    }
}

fn of_type<'a>(object: &'a Value, name: &str) -> Option<&'a Value> {
    let all = object.pointer("/status/conditions")?.as_array()?;
    all.iter().find(|condition| text(condition, "type") == name)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn waiting(object: &Value) -> String {
        match health(object) {
            Health::Waiting(why) => why,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn workloads_are_healthy_when_all_replicas_are_the_new_ones() {
        let deployment = |available: u32, updated: u32, seen: u32| {
            json!({ "kind": "Deployment", "metadata": { "generation": 2 }, "spec": { "replicas": 2 },
                "status": { "observedGeneration": seen, "availableReplicas": available, "updatedReplicas": updated } })
        };

        assert_eq!(health(&deployment(2, 2, 2)), Health::Healthy);
        assert_eq!(waiting(&deployment(2, 1, 2)), "1 of 2 are ready");
        assert_eq!(waiting(&deployment(2, 2, 1)), "its controller has not seen the change yet");
        assert_eq!(waiting(&json!({ "kind": "StatefulSet", "spec": {} })), "0 of 1 are ready");
        let none = json!({ "kind": "Deployment", "spec": { "replicas": 0 }, "status": { "observedGeneration": 1 } });
        assert_eq!(health(&none), Health::Healthy);
    }

    #[test]
    fn conditions_decide_where_a_kind_has_them() {
        let with = |kind: &str, name: &str, status: &str| json!({ "kind": kind, "status": { "conditions": [{ "type": name, "status": status, "message": "why" }] } });

        assert_eq!(health(&with("Job", "Complete", "True")), Health::Healthy);
        assert_eq!(health(&with("Job", "Failed", "True")), Health::Failed("why".into()));
        assert_eq!(waiting(&with("Mattermost", "Ready", "False")), "why");
        assert_eq!(health(&json!({ "kind": "ConfigMap" })), Health::Healthy);
        assert!(waiting(&json!({ "kind": "CustomResourceDefinition" })).contains("`Established`"));
    }
}
