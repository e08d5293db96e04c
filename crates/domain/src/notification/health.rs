//! Notifications about the health of a component.

use freehold_protocol::notification::{Notification, NotificationKind};
use freehold_protocol::order::health::HealthState;
use freehold_protocol::{AppName, InstallId, Timestamp};

use super::draft::{draft, utc};
use crate::health::LastHealth;

/// Returns the notification about a component that became unhealthy, or healthy again; `None` for every other change.
/// `known_unhealthy` is whether people already know that the component is unhealthy. Unknown health leads to no
/// notification, because the next check may determine it. `reported_at` is the time of the report of a required check
/// that changed the health; `None` for a change that the job of a health check found.
pub fn of_health(
    install: &InstallId,
    app: Option<&AppName>,
    known_unhealthy: bool,
    after: &LastHealth,
    reported_at: Option<Timestamp>,
) -> Option<Notification> {
    let word = match (known_unhealthy, after.state) {
        (false, HealthState::Unhealthy) => "is unhealthy",
        (true, HealthState::Healthy) => "is healthy again",
        (true, HealthState::Unhealthy) | (false, HealthState::Healthy) | (_, HealthState::Unknown) => return None,
    };
    let LastHealth { component, since, job, .. } = after;
    let reported_at = reported_at.map(|at| at.as_millis().to_string());
    let cause = [install.as_str(), component.as_str(), word, job.as_str()];
    let cause: Vec<&str> = cause.into_iter().chain(reported_at.as_deref()).collect();
    let text = format!("Component {component} of install {install} {word} since {}.", utc(*since));
    let subject = format!("Freehold: {install}: {component} {word}");
    let notification = draft(NotificationKind::HealthChanged, &cause, (Some(install), app), (*since, subject, text));
    let command = format!("freehold install show {install}");
    Some(Notification { job: Some(job.clone()), command, ..notification }.limited())
}

#[cfg(test)]
mod tests {
    use freehold_protocol::{JobId, Timestamp};

    use super::*;

    fn found(state: HealthState) -> LastHealth {
        let (since, at) = (Timestamp::from_millis(60_000), Timestamp::from_millis(120_000));
        let job: JobId = "job_0123456789abcdef0123".parse().unwrap();
        let reason = "the answer has a secret".to_owned();
        LastHealth {
            component: "web".parse().unwrap(),
            state,
            reason,
            since,
            at,
            job,
            serial: 1,
            required: Default::default(),
            by_checks: false,
        }
    }

    #[test]
    fn a_component_that_becomes_unhealthy_or_healthy_again_is_told_and_nothing_else() {
        let install: InstallId = "globex".parse().unwrap();
        let subject_of = |known_unhealthy: bool, after: HealthState| {
            let notification = of_health(&install, None, known_unhealthy, &found(after), None);
            notification.map(|notification| notification.subject)
        };
        let (healthy, unknown, unhealthy) = (HealthState::Healthy, HealthState::Unknown, HealthState::Unhealthy);

        assert_eq!(subject_of(false, unhealthy).as_deref(), Some("Freehold: globex: web is unhealthy"));
        assert_eq!(subject_of(true, healthy).as_deref(), Some("Freehold: globex: web is healthy again"));
        assert_eq!(subject_of(false, healthy), None);
        assert_eq!(subject_of(true, unhealthy), None);
        for known_unhealthy in [false, true] {
            assert_eq!(subject_of(known_unhealthy, unknown), None, "{known_unhealthy}");
        }
    }

    #[test]
    fn each_recovery_after_the_same_health_check_has_its_own_id() {
        let install: InstallId = "globex".parse().unwrap();
        let id_of = |reported_at: Option<Timestamp>| {
            of_health(&install, None, true, &found(HealthState::Healthy), reported_at).unwrap().id
        };
        let [first, second] = [1, 2].map(|at| Some(Timestamp::from_millis(at)));

        assert_eq!(id_of(first), id_of(first));
        assert_ne!(id_of(first), id_of(second));
        assert_ne!(id_of(first), id_of(None));
    }

    #[test]
    fn the_reason_is_not_told_because_a_program_may_have_written_it() {
        let globex = "globex".parse().unwrap();
        let notification = of_health(&globex, None, false, &found(HealthState::Unhealthy), None).unwrap();

        assert_eq!(notification.text, "Component web of install globex is unhealthy since 1970-01-01T00:01:00.000Z.");
        assert_eq!(notification.command, "freehold install show globex");
    }
}
