//! The entries about the install stack: its settings, events, template, change windows and machines.

use aws_sdk_autoscaling::Client;
use aws_sdk_autoscaling::types::{Activity, Instance};
use aws_sdk_cloudformation::types::StackEvent;
use aws_smithy_types::DateTime;
use aws_smithy_types::date_time::Format;
use freehold_protocol::{Digest, Timestamp, names};
use freehold_stackcheck::{Checked, verify};
use serde_json::{Map, Value, json};

use super::entry::Entry;
use crate::cloudformation::{ACCEPTED_CONTRACT, Stack, Stacks};
use crate::customer::{OwnInstall, change_windows};
use crate::error::{Error, Kind, Result, ResultExt as _};

/// The text in place of a value that CloudFormation shows to nobody.
const HIDDEN: &str = "[hidden]";
/// The maximum number of activities of the Auto Scaling group.
const ACTIVITIES: i32 = 20;

/// Returns the state of the stack, its parameters without hidden values, and its outputs.
pub(super) async fn settings(stacks: &Stacks, stack: &Stack) -> Result<Entry> {
    let hidden = stacks.hidden_parameters(&stack.name).await?;
    let parameters = stack.parameters.iter().map(|(name, value)| {
        let shown = if hidden.contains(name) { HIDDEN } else { value.as_str() };
        (name.clone(), Value::from(shown))
    });
    let settings = json!({
        "stack": stack.name, "state": stack.status.as_str(), "reason": stack.reason, "changed_at": stack.changed_at,
        "parameters": parameters.collect::<Map<_, _>>(), "outputs": stack.outputs,
    });
    Entry::document("stack/settings.json", "state, parameters and outputs of the stack", settings)
}

/// Returns the newest events of the stack, without the properties of resources.
pub(super) async fn events(stacks: &Stacks, stack: &Stack) -> Result<Entry> {
    let (mut events, has_older) = stacks.newest_events(&stack.id).await?;
    events.reverse();
    let events = events.iter().map(event).collect();
    Entry::lines("stack/events.jsonl", "newest events of the stack", events, has_older)
}

fn event(event: &StackEvent) -> Value {
    json!({
        "at": event.timestamp().and_then(time), "resource": event.logical_resource_id(), "type": event.resource_type(),
        "state": event.resource_status().map(|status| status.as_str()), "reason": event.resource_status_reason(),
    })
}

/// Returns the differences between the launched template and the one that this program renders, the accepted contract, and
/// the roles of the app with their switches.
pub(super) async fn template(stacks: &Stacks, stack: &Stack) -> Result<Entry> {
    let text = stacks.template(&stack.name).await?;
    let Checked { findings, left_out, names, overview, .. } = verify(&text, &[], None).map_err(|wrong| {
        Error::quoting(Kind::Failed, format!("the template of stack `{}` is not a template: {wrong}", stack.name))
    })?;
    let contract = stack.parameters.get(ACCEPTED_CONTRACT).cloned();
    let contract = contract.or_else(|| Some(names.as_ref()?.contract.to_string()));
    let roles = overview.map(|overview| {
        let roles = overview.roles.into_iter().map(|role| {
            let on = stack.parameters.get(&role.switch).map_or(role.on, |value| value == "true");
            json!({ "role": role.role, "switch": role.switch, "on": on, "managed": role.managed })
        });
        roles.collect::<Vec<Value>>()
    });
    let contract = json!({
        "template": Digest::of(text.as_bytes()), "findings": findings, "more_findings": left_out,
        "accepted_contract": contract, "names": names, "roles": roles,
    });
    Entry::document("stack/contract.json", "accepted contract, and findings about the launched template", contract)
}

/// Returns when changes may start.
pub(super) fn windows(stack: &Stack, now: Timestamp) -> Result<Entry> {
    Entry::document("stack/windows.json", "change windows, freezes and hold", change_windows(stack, now)?)
}

/// Returns the machines of the stack, and the newest activities of their group.
pub(super) async fn machines(own: &OwnInstall) -> Result<Entry> {
    let group = names::install_part(&own.tenant, &own.install, "runner");
    let client = Client::new(&own.config);
    let about = || format!("look up the group `{group}`");
    let found = client.describe_auto_scaling_groups().auto_scaling_group_names(&group).send().await;
    let found = found.doing(about())?;
    let Some(described) = found.auto_scaling_groups().first() else {
        let none = json!({ "group": null });
        return Entry::document("stack/machines.json", "machines of the runner", none);
    };
    let recent = client.describe_scaling_activities().auto_scaling_group_name(&group).max_records(ACTIVITIES);
    let recent = recent.send().await.doing(about())?;
    let machines = json!({
        "group": group, "desired": described.desired_capacity(),
        "machines": described.instances().iter().map(machine).collect::<Vec<Value>>(),
        "activities": recent.activities().iter().map(activity).collect::<Vec<Value>>(),
    });
    Entry::document("stack/machines.json", "machines of the runner", machines)
}

fn machine(instance: &Instance) -> Value {
    json!({
        "id": instance.instance_id(), "type": instance.instance_type(), "zone": instance.availability_zone(),
        "state": instance.lifecycle_state().map(|state| state.as_str()), "health": instance.health_status(),
    })
}

fn activity(activity: &Activity) -> Value {
    json!({
        "at": activity.start_time().and_then(time), "what": activity.description(), "cause": activity.cause(),
        "state": activity.status_code().map(|state| state.as_str()), "reason": activity.status_message(),
    })
}

fn time(at: &DateTime) -> Option<String> {
    at.fmt(Format::DateTime).ok()
}
