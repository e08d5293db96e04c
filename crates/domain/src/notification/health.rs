//! Notifications about the health of a component.

use freehold_protocol::notification::{Notification, NotificationKind};
use freehold_protocol::order::health::HealthState;
use freehold_protocol::{AppName, InstallId, Timestamp};

use super::draft::{draft, utc};
use crate::health::LastHealth;

/// What people know of the health of a component.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KnownHealth {
    /// Whether people know that the component is unhealthy.
    pub unhealthy: bool,
    /// Whether people know that the health checks of the component end without a result.
    pub unchecked: bool,
}

/// What changed the health of a component.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangedBy {
    /// A health check with a result.
    Check,
    /// A health check whose job ended without a result. `is_news` is true if no other notification is about this end.
    Unchecked { is_news: bool },
    /// The report of a required check at this time.
    Report(Timestamp),
}

impl KnownHealth {
    /// Returns what people know after the component was found in the state `found`.
    #[must_use]
    pub const fn after(self, found: HealthState, by: ChangedBy) -> Self {
        match (found, by) {
            (HealthState::Healthy, _) => Self { unhealthy: false, unchecked: false },
            (HealthState::Unhealthy, ChangedBy::Check) => Self { unhealthy: true, unchecked: false },
            (HealthState::Unhealthy, _) => Self { unhealthy: true, unchecked: self.unchecked },
            (HealthState::Unknown, ChangedBy::Unchecked { is_news: true }) => {
                Self { unhealthy: self.unhealthy, unchecked: true }
            }
            (HealthState::Unknown, _) => self,
        }
    }
}

/// Returns the notification about a component that became unhealthy or healthy again, or whose health check ended without
/// a result; `None` for every other change, and for what people know already. There is none if the check has the result
/// that the health is unknown, because the next check may determine it.
pub fn of_health(
    install: &InstallId,
    app: Option<&AppName>,
    known: KnownHealth,
    after: &LastHealth,
    by: ChangedBy,
) -> Option<Notification> {
    let word = match (after.state, by) {
        (HealthState::Healthy, _) if known.unhealthy => "is healthy again",
        (HealthState::Healthy, _) if known.unchecked => "is healthy",
        (HealthState::Unhealthy, _) if !known.unhealthy => "is unhealthy",
        (HealthState::Unhealthy, ChangedBy::Check) if known.unchecked => "is unhealthy",
        (HealthState::Unknown, ChangedBy::Unchecked { is_news: true }) if !known.unchecked => {
            return Some(without_result(install, app, after));
        }
        _ => return None,
    };
    let LastHealth { component, since, job, .. } = after;
    let reported_at = match by {
        ChangedBy::Check | ChangedBy::Unchecked { .. } => None,
        ChangedBy::Report(at) => Some(at.as_millis().to_string()),
    };
    let cause = [install.as_str(), component.as_str(), word, job.as_str()];
    let cause: Vec<&str> = cause.into_iter().chain(reported_at.as_deref()).collect();
    let text = format!("Component {component} of install {install} {word} since {}.", utc(*since));
    let subject = format!("Freehold: {install}: {component} {word}");
    let notification = draft(NotificationKind::HealthChanged, &cause, (Some(install), app), (*since, subject, text));
    let command = format!("freehold install show {install}");
    Some(Notification { job: Some(job.clone()), command, ..notification }.limited())
}

/// Returns the notification about a health check whose job ended without a result.
fn without_result(install: &InstallId, app: Option<&AppName>, after: &LastHealth) -> Notification {
    let LastHealth { component, at, job, .. } = after;
    let cause = [install.as_str(), component.as_str(), "without a result", job.as_str()];
    let subject = format!("Freehold: {install}: the health of {component} is unknown");
    let text = format!(
        "The health check of component {component} of install {install} ended without a result: job {job}. The health of \
         the component is unknown until a check has a result."
    );
    let notification = draft(NotificationKind::HealthChanged, &cause, (Some(install), app), (*at, subject, text));
    Notification { job: Some(job.clone()), command: format!("freehold job show {job}"), ..notification }.limited()
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

    const RESULT: ChangedBy = ChangedBy::Check;
    const UNCHECKED: ChangedBy = ChangedBy::Unchecked { is_news: true };
    const LOST: ChangedBy = ChangedBy::Unchecked { is_news: false };
    const NOTHING: KnownHealth = KnownHealth { unhealthy: false, unchecked: false };

    fn subject_of(known: KnownHealth, after: HealthState, by: ChangedBy) -> Option<String> {
        let install: InstallId = "globex".parse().unwrap();
        of_health(&install, None, known, &found(after), by).map(|notification| notification.subject)
    }

    #[test]
    fn a_component_that_becomes_unhealthy_or_healthy_again_is_told_and_nothing_else() {
        let ill = KnownHealth { unhealthy: true, unchecked: false };
        let (healthy, unknown, unhealthy) = (HealthState::Healthy, HealthState::Unknown, HealthState::Unhealthy);
        let subject_of = |known, after| subject_of(known, after, RESULT);

        assert_eq!(subject_of(NOTHING, unhealthy).as_deref(), Some("Freehold: globex: web is unhealthy"));
        assert_eq!(subject_of(ill, healthy).as_deref(), Some("Freehold: globex: web is healthy again"));
        assert_eq!(subject_of(NOTHING, healthy), None);
        assert_eq!(subject_of(ill, unhealthy), None);
        for known in [NOTHING, ill] {
            assert_eq!(subject_of(known, unknown), None, "{known:?}");
        }
    }

    #[test]
    fn checks_without_a_result_are_told_once_and_so_is_the_next_result() {
        let (healthy, unknown, unhealthy) = (HealthState::Healthy, HealthState::Unknown, HealthState::Unhealthy);
        let mut known = NOTHING;

        for (nth, (after, by, notices)) in [
            (unknown, UNCHECKED, Some("the health of web is unknown")),
            (unknown, UNCHECKED, None),
            (unknown, RESULT, None),
            // A required check failed, and the health check still has no result.
            (unhealthy, UNCHECKED, Some("web is unhealthy")),
            (unhealthy, RESULT, Some("web is unhealthy")),
            (unhealthy, RESULT, None),
            (unknown, UNCHECKED, Some("the health of web is unknown")),
            (healthy, RESULT, Some("web is healthy again")),
            (unknown, UNCHECKED, Some("the health of web is unknown")),
            (healthy, RESULT, Some("web is healthy")),
            (healthy, RESULT, None),
        ]
        .into_iter()
        .enumerate()
        {
            let expected = notices.map(|words| format!("Freehold: globex: {words}"));
            assert_eq!(subject_of(known, after, by), expected, "{nth}");
            known = known.after(after, by);
        }
    }

    #[test]
    fn a_check_without_a_result_that_is_not_news_changes_nothing_that_people_know_of_it() {
        for (unhealthy, unchecked) in [(false, false), (false, true), (true, false), (true, true)] {
            let known = KnownHealth { unhealthy, unchecked };

            assert_eq!(subject_of(known, HealthState::Unknown, LOST), None, "{known:?}");
            assert_eq!(known.after(HealthState::Unknown, LOST), known);
            // A required check failed.
            assert_eq!(subject_of(known, HealthState::Unhealthy, LOST).is_some(), !unhealthy, "{known:?}");
            assert_eq!(known.after(HealthState::Unhealthy, LOST), KnownHealth { unhealthy: true, unchecked });
        }
    }

    #[test]
    fn a_check_without_a_result_names_the_job_that_has_the_reason() {
        let install: InstallId = "globex".parse().unwrap();
        let notification = of_health(&install, None, NOTHING, &found(HealthState::Unknown), UNCHECKED).unwrap();

        assert_eq!(notification.at, Timestamp::from_millis(120_000));
        assert_eq!(
            notification.text,
            "The health check of component web of install globex ended without a result: job job_0123456789abcdef0123. The \
             health of the component is unknown until a check has a result."
        );
        assert_eq!(notification.command, "freehold job show job_0123456789abcdef0123");
    }

    #[test]
    fn each_recovery_after_the_same_health_check_has_its_own_id() {
        let install: InstallId = "globex".parse().unwrap();
        let known = KnownHealth { unhealthy: true, ..NOTHING };
        let id_of = |by: ChangedBy| of_health(&install, None, known, &found(HealthState::Healthy), by).unwrap().id;
        let [first, second] = [1, 2].map(|at| ChangedBy::Report(Timestamp::from_millis(at)));

        assert_eq!(id_of(first), id_of(first));
        assert_ne!(id_of(first), id_of(second));
        assert_ne!(id_of(first), id_of(RESULT));
    }

    #[test]
    fn the_reason_is_not_told_because_a_program_may_have_written_it() {
        let globex = "globex".parse().unwrap();
        let notification = of_health(&globex, None, NOTHING, &found(HealthState::Unhealthy), RESULT).unwrap();

        assert_eq!(notification.text, "Component web of install globex is unhealthy since 1970-01-01T00:01:00.000Z.");
        assert_eq!(notification.command, "freehold install show globex");
    }
}
