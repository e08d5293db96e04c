//! Reads the revisions of a release from the cluster, and decides how to recover a release that a killed attempt left.
//!
//! Helm stores each revision in an object (a Secret or a ConfigMap) with the labels `owner`, `name`, `version` and
//! `status` (Helm documentation, "Storage backends"). While Helm changes a release, the status of the newest revision
//! is `pending-*`, and every other `helm` refuses to change the release: this is Helm's lock. After a killed `helm`,
//! the lock stays. The labels `createdAt` and `modifiedAt` have the time of Helm's machine at which Helm created the
//! object or last changed it; a change removes `createdAt` (Helm, `pkg/storage/driver`).

use serde_json::Value;

use super::release::Release;
use crate::job::failure::Failure;
use crate::kubernetes::Api;

/// One revision of a release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Revision {
    pub(super) number: u32,
    /// The status as Helm names it, such as `deployed` or `pending-upgrade`.
    pub(super) status: String,
    /// The time at which Helm made the revision, in seconds, if it has not changed it since.
    created_at: Option<u64>,
    /// The time at which Helm last changed the revision, in seconds.
    modified_at: Option<u64>,
}

impl Revision {
    /// Returns whether Helm lists the revision as deployed. It became ready when it was installed or upgraded.
    pub(super) fn is_deployed(&self) -> bool {
        self.status == "deployed"
    }
}

/// The action that is necessary before a release can be upgraded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Recovery {
    Nothing,
    /// Roll back to `to`: the revision that is deployed or was before the killed change, or if there is none, the last one
    /// that was or that failed. A release that failed may run and have data, which an uninstall would delete (decision
    /// 0104).
    RollBack {
        from: Revision,
        to: Revision,
    },
    /// Uninstall the release: its first install or its uninstall was interrupted.
    Uninstall {
        from: Revision,
    },
    /// Refuse to work, because somebody else is changing the release.
    Refuse {
        by: Revision,
    },
}

/// Returns the revisions of a release, the oldest first.
pub(super) async fn read(api: &Api, release: &Release) -> Result<Vec<Revision>, Failure> {
    let labels = format!("owner=helm,name={}", release.name);
    let found = api.list_metadata(release.driver.plural(), &release.namespace, &labels).await?;
    let mut revisions: Vec<Revision> = found.iter().filter_map(revision).collect();
    revisions.sort_by_key(|revision| revision.number);
    Ok(revisions)
}

fn revision(object: &Value) -> Option<Revision> {
    let label = |name: &str| object.pointer(&format!("/metadata/labels/{name}")).and_then(Value::as_str);
    let seconds = |name: &str| label(name).and_then(|text| text.parse().ok());
    Some(Revision {
        number: label("version")?.parse().ok()?,
        status: label("status")?.to_owned(),
        created_at: seconds("createdAt"),
        modified_at: seconds("modifiedAt"),
    })
}

/// Returns whether one of the revisions is deployed.
pub(super) fn is_deployed(revisions: &[Revision]) -> bool {
    revisions.iter().any(Revision::is_deployed)
}

/// Returns the revision from which Helm upgrades: it deletes the objects of this revision that the chart no longer has.
/// Helm takes the newest one that is `deployed`; without one, the last one if it is `failed` or `superseded`.
pub(super) fn upgraded(revisions: &[Revision]) -> Option<u32> {
    let deployed = revisions.iter().rev().find(|one| one.is_deployed());
    let failed = revisions.last().filter(|last| ["failed", "superseded"].contains(&last.status.as_str()));
    deployed.or(failed).map(|one| one.number)
}

/// Returns the recovery for a release. `inherits` is true if the previous attempt did not end cleanly; a pending state
/// then comes from that attempt.
#[must_use]
pub(super) fn recovery(revisions: &[Revision], inherits: bool) -> Recovery {
    let Some(last) = revisions.last() else { return Recovery::Nothing };
    let is_uninstalling = last.status == "uninstalling";
    if !last.status.starts_with("pending-") && !is_uninstalling {
        return Recovery::Nothing;
    }
    let from = last.clone();
    if !inherits {
        return Recovery::Refuse { by: from };
    }
    if is_uninstalling {
        return Recovery::Uninstall { from };
    }
    // A rollback that fails marks the pending revision that it leaves as superseded, also one that never ran (Helm,
    // `pkg/action/rollback.go`). The failed revision of that rollback is newer.
    let to = newest(revisions, &["deployed"]).or_else(|| deployed_before(revisions, last));
    match to.or_else(|| newest(revisions, &["superseded", "failed"])) {
        Some(to) => Recovery::RollBack { from, to: to.clone() },
        None => Recovery::Uninstall { from },
    }
}

fn newest<'a>(revisions: &'a [Revision], statuses: &[&str]) -> Option<&'a Revision> {
    revisions.iter().rev().find(|one| statuses.contains(&one.status.as_str()))
}

/// Returns the revision with the content of the one that was deployed when the change `last` began, or to which `last`
/// rolls back. Helm stores two revisions at the end of a change, so it may be killed in between: the former revision is
/// superseded then, and the new one is still pending.
fn deployed_before<'a>(revisions: &'a [Revision], last: &'a Revision) -> Option<&'a Revision> {
    // A pending rollback is a copy of the revision to which it goes.
    if last.status == "pending-rollback" {
        return Some(last);
    }
    let began = last.created_at?;
    let is_left = |one: &&Revision| one.status == "superseded" && one.modified_at.is_some_and(|at| at >= began);
    revisions.iter().rev().find(is_left)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn revisions(statuses: &[&str]) -> Vec<Revision> {
        let numbered = (1..).zip(statuses);
        let revision = |(number, status): (u32, &&str)| Revision {
            number,
            status: (*status).to_owned(),
            created_at: None,
            modified_at: None,
        };
        numbered.map(revision).collect()
    }

    fn decided(revisions: &[Revision]) -> String {
        match recovery(revisions, true) {
            Recovery::Nothing => "nothing".to_owned(),
            Recovery::RollBack { to, .. } if to.is_deployed() => format!("back to {}", to.number),
            Recovery::RollBack { to, .. } => format!("back to {}, and wait", to.number),
            Recovery::Uninstall { .. } => "uninstall".to_owned(),
            Recovery::Refuse { .. } => "refuse".to_owned(),
        }
    }

    #[test]
    fn a_release_that_a_killed_attempt_left_is_recovered() {
        for (statuses, expected) in [
            (&[][..], "nothing"),
            (&["deployed"], "nothing"),
            (&["superseded", "deployed"], "nothing"),
            (&["failed"], "nothing"),
            (&["deployed", "failed"], "nothing"),
            (&["pending-install"], "uninstall"),
            (&["failed", "pending-upgrade"], "back to 1, and wait"),
            (&["failed", "failed", "pending-upgrade"], "back to 2, and wait"),
            (&["failed", "pending-upgrade", "pending-rollback"], "back to 3, and wait"),
            // Helm was killed while it recorded that a rollback had failed: revision 2 never ran.
            (&["failed", "superseded", "pending-rollback"], "back to 3, and wait"),
            // Helm keeps ten revisions, and each killed rollback leaves one.
            (&["pending-rollback", "pending-rollback"], "back to 2, and wait"),
            (&["failed", "superseded", "failed"], "nothing"),
            (&["failed", "superseded", "failed", "pending-upgrade"], "back to 3, and wait"),
            (&["failed", "superseded", "failed", "pending-upgrade", "pending-rollback"], "back to 5, and wait"),
            (&["deployed", "superseded", "failed", "pending-upgrade"], "back to 1"),
            (&["superseded", "failed", "superseded", "failed", "pending-upgrade"], "back to 4, and wait"),
            (&["failed", "uninstalling"], "uninstall"),
            (&["deployed", "pending-upgrade"], "back to 1"),
            (&["superseded", "deployed", "failed", "pending-upgrade"], "back to 2"),
            (&["deployed", "pending-upgrade", "pending-rollback"], "back to 1"),
            (&["superseded", "failed", "pending-rollback"], "back to 3, and wait"),
            (&["uninstalling"], "uninstall"),
            (&["superseded", "uninstalling"], "uninstall"),
        ] {
            assert_eq!(decided(&revisions(statuses)), expected, "{statuses:?}");
        }
    }

    /// Helm was killed between the two changes that end an upgrade, or much later.
    #[test]
    fn what_was_deployed_when_the_killed_upgrade_began_comes_before_a_later_one_that_failed() {
        let decided = |modified_at| {
            let mut all = revisions(&["superseded", "failed", "pending-upgrade"]);
            (all[0].modified_at, all[2].created_at) = (modified_at, Some(100));
            decided(&all)
        };

        assert_eq!([Some(100), Some(101)].map(decided), ["back to 1, and wait"; 2]);
        assert_eq!([None, Some(99)].map(decided), ["back to 2, and wait"; 2]);
    }

    #[test]
    fn an_upgrade_starts_from_what_is_deployed_or_else_from_the_last_revision() {
        for (statuses, expected) in [
            (&[][..], None),
            (&["deployed"], Some(1)),
            (&["superseded", "deployed", "failed"], Some(2)),
            (&["failed", "failed"], Some(2)),
            (&["superseded", "uninstalled"], None),
        ] {
            assert_eq!(upgraded(&revisions(statuses)), expected, "{statuses:?}");
        }
    }

    #[test]
    fn what_somebody_else_does_is_left_alone() {
        let pending = revisions(&["deployed", "pending-upgrade"]);

        assert_eq!(recovery(&pending, false), Recovery::Refuse { by: pending[1].clone() });
        assert_eq!(recovery(&revisions(&["deployed"]), false), Recovery::Nothing);
    }

    #[test]
    fn a_revision_is_read_from_its_labels() {
        let object = json!({ "metadata": { "labels": {
            "owner": "helm", "name": "web", "version": "12", "status": "deployed", "modifiedAt": "1700000000",
        } } });

        let (created_at, modified_at) = (None, Some(1_700_000_000));
        let expected = Revision { number: 12, status: "deployed".into(), created_at, modified_at };
        assert_eq!(revision(&object), Some(expected));
        assert_eq!(revision(&json!({ "metadata": {} })), None);
    }
}
