//! Reads from the pods of a Kubernetes Job why they wait or failed, and the termination messages of their programs.

use serde_json::Value;

use super::object::text;

/// Returns the reason why a pod waits or has failed, such as `exit code 1 (Error)`; `None` when it has no reason.
pub(crate) fn reason(pod: &Value) -> Option<String> {
    terminated(pod)
        .and_then(|state| match state.get("exitCode").and_then(Value::as_i64) {
            Some(0) | None => None,
            Some(code) => Some(format!("exit code {code}{}", in_brackets(text(state, "reason")))),
        })
        .or_else(|| of_status(pod.get("status")?))
        .or_else(|| container(pod)?.pointer("/state/waiting").and_then(of_status))
        .or_else(|| {
            let conditions = pod.pointer("/status/conditions")?.as_array()?;
            let scheduled = conditions.iter().find(|one| text(one, "type") == "PodScheduled")?;
            of_status(scheduled).filter(|_| text(scheduled, "status") == "False")
        })
}

/// Returns the termination message of a pod's program (Kubernetes documentation, "Determine the Reason for Pod
/// Failure"). After a failure without a message, Kubernetes uses the last lines of the program's log.
pub(crate) fn message(pod: &Value) -> Option<&str> {
    terminated(pod)?.get("message")?.as_str().filter(|message| !message.trim().is_empty())
}

/// Returns the name of a pod.
pub(crate) fn name(pod: &Value) -> &str {
    pod.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default()
}

fn container(pod: &Value) -> Option<&Value> {
    pod.pointer("/status/containerStatuses")?.as_array()?.first()
}

fn terminated(pod: &Value) -> Option<&Value> {
    container(pod)?.pointer("/state/terminated")
}

/// Returns the keys `reason` and `message` as one text; `None` when there is no reason.
fn of_status(status: &Value) -> Option<String> {
    let (reason, message) = (text(status, "reason"), text(status, "message"));
    match (reason, message) {
        ("", _) => None,
        (reason, "") => Some(reason.to_owned()),
        (reason, message) => Some(format!("{reason}: {message}")),
    }
}

fn in_brackets(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(" ({text})") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn with_state(state: &Value) -> Value {
        json!({ "metadata": { "name": "a" }, "status": { "containerStatuses": [{ "name": "job", "state": state }] } })
    }

    #[test]
    fn a_program_that_ended_says_its_exit_code_and_its_message() {
        let ended = |code: u8, reason: &str| {
            with_state(&json!({ "terminated": { "exitCode": code, "reason": reason, "message": "last line\n" } }))
        };

        assert_eq!(reason(&ended(137, "OOMKilled")).unwrap(), "exit code 137 (OOMKilled)");
        assert_eq!(reason(&ended(1, "")).unwrap(), "exit code 1");
        assert_eq!(reason(&ended(0, "Completed")), None);
        assert_eq!(message(&ended(0, "Completed")), Some("last line\n"));
        assert_eq!(message(&with_state(&json!({ "running": {} }))), None);
    }

    #[test]
    fn a_pod_that_waits_or_is_evicted_says_why() {
        let pulling = with_state(&json!({ "waiting": { "reason": "ImagePullBackOff", "message": "Back-off" } }));
        let evicted = json!({ "status": { "reason": "Evicted", "message": "low on memory" } });
        let unplaced = json!({ "status": { "conditions": [
            { "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes" } ] } });

        assert_eq!(reason(&pulling).unwrap(), "ImagePullBackOff: Back-off");
        assert_eq!(reason(&evicted).unwrap(), "Evicted: low on memory");
        assert_eq!(reason(&unplaced).unwrap(), "Unschedulable: 0/3 nodes");
        assert_eq!(reason(&json!({ "status": { "phase": "Pending" } })), None);
    }
}
