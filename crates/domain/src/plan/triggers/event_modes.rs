//! The modes of the workflows whose events start an action, besides `maintenance`.

use std::collections::BTreeSet;

use freehold_protocol::app_version::{Action, Trigger};
use freehold_protocol::order::Mode;

/// Returns the modes other than `maintenance` in which an event can start the action: in the first deploy of an install, and
/// in a removal.
pub fn event_modes(action: &Action) -> BTreeSet<Mode> {
    action.triggers.iter().filter_map(of_trigger).collect()
}

fn of_trigger(trigger: &Trigger) -> Option<Mode> {
    match trigger {
        Trigger::Manual | Trigger::Cron { .. } => None,
        Trigger::PostProvision | Trigger::PostDeployComponent { .. } | Trigger::PostDeployAllComponents => {
            Some(Mode::Provision)
        }
        Trigger::Event { event, .. } => of_event(event.strip_prefix("pre-").or_else(|| event.strip_prefix("post-"))?),
    }
}

/// Returns the mode of the event with this name ([`super::EVENTS`]).
fn of_event(name: &str) -> Option<Mode> {
    match name {
        "provision"
        | "provision-sandbox"
        | "deploy-all-components"
        | "deploy-component"
        | "enable-component"
        | "secrets-sync" => Some(Mode::Provision),
        "deprovision"
        | "deprovision-sandbox"
        | "teardown-all-components"
        | "teardown-component"
        | "disable-component" => Some(Mode::Deprovision),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::triggers::EVENTS;

    #[test]
    fn every_event_but_a_change_of_what_is_deployed_already_has_a_mode() {
        let without: Vec<&str> = EVENTS.into_iter().filter(|name| of_event(name).is_none()).collect();

        assert_eq!(without, ["reprovision", "reprovision-sandbox", "update-inputs"]);
    }

    #[test]
    fn what_a_person_or_a_schedule_starts_has_no_other_mode() {
        let event = |event: &str| Trigger::Event { event: event.to_owned(), component: None };

        let modes =
            [Trigger::Manual, event("pre-teardown-component"), event("post-provision"), event("post-reprovision")];

        let expected = [None, Some(Mode::Deprovision), Some(Mode::Provision), None];
        assert_eq!(modes.map(|trigger| of_trigger(&trigger)), expected);
    }
}
