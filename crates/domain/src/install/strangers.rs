//! The roles of an install's app that trust a principal outside of the customer's account, as the install's runner
//! reported them.

use std::collections::BTreeSet;

use freehold_protocol::{IamRoleName, Timestamp};
use serde::{Deserialize, Serialize};

/// The roles that trusted a stranger when the runner last checked the trust policies.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StrangerTrusts {
    /// The time at which the reports queue took the report that first named exactly these roles.
    pub at: Timestamp,
    pub roles: BTreeSet<IamRoleName>,
}

impl StrangerTrusts {
    /// Returns the trusts after a report with the roles `found` that the reports queue took at `at`, and the roles
    /// among them that trusted no stranger before; `None` if the report changes nothing or is older than what is known.
    #[must_use]
    pub fn after(&self, at: Timestamp, found: &BTreeSet<IamRoleName>) -> Option<(Self, BTreeSet<IamRoleName>)> {
        if *found == self.roles || at < self.at {
            return None;
        }
        let new = found.difference(&self.roles).cloned().collect();
        Some((Self { at, roles: found.clone() }, new))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn roles(names: &[&str]) -> BTreeSet<IamRoleName> {
        names.iter().map(|name| name.parse().unwrap()).collect()
    }

    /// Returns the roles that are new in each of these reports, with the second at which the queue took it.
    fn new_roles(reports: &[(u64, &[&str])]) -> Vec<Option<BTreeSet<IamRoleName>>> {
        let mut known = StrangerTrusts::default();
        let step = |(secs, found): &(u64, &[&str])| {
            let (next, new) = known.after(Timestamp::from_millis(secs * 1000), &roles(found))?;
            known = next;
            Some(new)
        };
        reports.iter().map(step).collect()
    }

    #[test]
    fn a_role_is_new_until_a_report_without_it_comes() {
        let found = new_roles(&[(1, &["api"]), (2, &["api"]), (3, &["api", "db"]), (4, &[]), (5, &["api"])]);

        let [first, again, more, clean, back] = &found[..] else { panic!("{found:?}") };
        assert_eq!((first, again), (&Some(roles(&["api"])), &None));
        assert_eq!((more, clean, back), (&Some(roles(&["db"])), &Some(roles(&[])), &Some(roles(&["api"]))));
    }

    #[test]
    fn an_older_report_that_is_handled_later_changes_nothing() {
        assert_eq!(new_roles(&[(2, &["api"]), (1, &[])])[1], None);
    }

    #[test]
    fn a_first_report_without_such_a_role_changes_nothing() {
        assert_eq!(new_roles(&[(1, &[])]), [None]);
    }
}
