//! Decides which orders an event may be about that only a newer version of the runner can read.

use freehold_protocol::audit::NewerEvent;
use freehold_protocol::order::Order;
use serde_json::Value;

/// A refused message that names no job is about no job.
const NO_JOB: &Value = &Value::Null;

/// Returns whether the event may exclude the order, or may take back what another record excludes. This is so unless
/// the event names another job, no job or an earlier dispatch, as every later version does for an event that decides
/// nothing about the order.
pub(super) fn may_be_about(event: &NewerEvent, order: &Order) -> bool {
    match named(event) {
        (Some(Value::Null), _) => false,
        (Some(Value::String(job)), dispatch) if job == order.job.as_str() => {
            dispatch.and_then(Value::as_u64).is_none_or(|dispatch| dispatch >= u64::from(order.dispatch))
        }
        (Some(Value::String(_)), _) => may_be_later_of_group(event, order),
        (Some(_) | None, _) => true,
    }
}

/// Returns the job that the event names, and the dispatch of the job.
fn named(event: &NewerEvent) -> (Option<&Value>, Option<&Value>) {
    let field = |name: &str| event.fields.get(name);
    if event.event != "refused" {
        let of_fence = field("fence").and_then(|fence| fence.get("dispatch"));
        return (field("job"), of_fence.or_else(|| field("dispatch")));
    }
    match field("refusal").and_then(Value::as_object).map(|refusal| refusal.get("job")) {
        None => (None, None),
        Some(None) => (Some(NO_JOB), None),
        Some(Some(attempt)) => (attempt.get(0), attempt.get(1).and_then(|fence| fence.get("dispatch"))),
    }
}

/// Returns whether the event may be the start of a later order of the group, which excludes the order.
fn may_be_later_of_group(event: &NewerEvent, order: &Order) -> bool {
    let is_of_group = match event.fields.get("group") {
        None | Some(Value::Null) => false,
        Some(Value::String(group)) => group == order.group.as_str(),
        Some(_) => true,
    };
    let serial = event.fields.get("serial").and_then(Value::as_u64);
    is_of_group && serial.is_none_or(|serial| serial > order.serial)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{job_id, order};

    /// Returns whether the event may be about dispatch 2 of job 1, whose group is `action:check` and whose serial is 7.
    fn is_about(event: Value) -> bool {
        may_be_about(&serde_json::from_value(event).unwrap(), &Order { dispatch: 2, ..order(1, 7) })
    }

    #[test]
    fn an_event_of_an_unknown_kind_may_be_about_its_job_and_without_one_about_every_order() {
        assert!(is_about(json!({ "event": "resumed", "job": job_id(1) })));
        assert!(is_about(json!({ "event": "resumed" })));
        assert!(is_about(json!({ "event": "resumed", "job": [job_id(2)] })));
        assert!(!is_about(json!({ "event": "resumed", "job": job_id(2) })));
        assert!(!is_about(json!({ "event": "resumed", "job": null })));
    }

    #[test]
    fn an_event_of_an_earlier_dispatch_is_not_about_the_order() {
        for (dispatch, expected) in [(json!(1), false), (json!(2), true), (json!(3), true), (json!("1"), true)] {
            let (job, fence) = (job_id(1), json!({ "dispatch": dispatch, "receive": 1 }));
            let refusal = json!({ "job": [job, fence] });

            assert_eq!(is_about(json!({ "event": "ended", "job": job, "fence": fence })), expected, "{dispatch}");
            assert_eq!(is_about(json!({ "event": "cancelled", "job": job, "dispatch": dispatch })), expected);
            assert_eq!(is_about(json!({ "event": "refused", "refusal": refusal })), expected);
        }
    }

    #[test]
    fn an_event_about_another_job_may_be_about_the_order_if_it_may_be_a_later_start_of_the_group() {
        let started = |group: Value, serial: Value| {
            is_about(json!({ "event": "started", "job": job_id(2), "group": group, "serial": serial }))
        };

        assert_eq!([6, 7, 8].map(|serial| started(json!("action:check"), json!(serial))), [false, false, true]);
        assert!(started(json!("action:check"), Value::Null) && started(json!(["action:check"]), Value::Null));
        assert!(!started(json!("action:other"), json!(8)) && !started(Value::Null, json!(8)));
    }

    #[test]
    fn a_refusal_is_about_the_job_that_its_message_named() {
        let refused = |refusal: Value| is_about(json!({ "event": "refused", "refusal": refusal }));

        assert!(refused(json!({ "job": [job_id(1), {}] })) && refused(json!("a text")) && refused(json!({ "job": 1 })));
        assert!(!refused(json!({ "job": [job_id(2), {}] })) && !refused(json!({ "reason": "a newer one" })));
    }
}
