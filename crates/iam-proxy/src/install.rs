//! The install for which IAM is answered: where its resources live, and what they carry.

use std::collections::{BTreeMap, BTreeSet};

use crate::home::Home;

/// What begins the key of a tag that the runner keeps for itself. IAM compares keys of roles without case.
pub(crate) const RESERVED: &str = "freehold:";
/// The key of the tag of a role whose module asked for the boundary itself, and so reads it.
pub(crate) const SHOWN_BOUNDARY: &str = "freehold:boundary-shown";
/// What begins the key of a tag that says to which role of the stack a policy was to be attached.
pub(crate) const HELD: &str = "freehold:held:";

/// The install, and what each resource that its jobs make has to carry.
#[derive(Debug, Clone)]
pub struct Install {
    /// Such as `aws` or `aws-cn`.
    pub partition: String,
    /// The account that the install is bound to, in 12 digits.
    pub account: String,
    pub region: String,
    /// The path of what jobs make; begins and ends with `/`.
    pub path: String,
    /// A resource whose name begins with this prefix also belongs to the install, under any path.
    pub prefix: String,
    /// The ARN of the policy that no role of the install exceeds.
    pub boundary: String,
    /// The tags of everything that jobs make; their keys begin with `freehold:`.
    pub tags: BTreeMap<String, String>,
    /// The names of the roles of the install stack: the customer decides what these may do, and no job.
    pub stack_roles: BTreeSet<String>,
}

impl Install {
    /// Returns the path that a new resource gets for which `asked` was asked. One whose name has the install's prefix needs
    /// none, so that its ARN is what a module may have made from its name.
    pub fn real_path(&self, name: &str, asked: Option<&str>) -> String {
        let asked = asked.unwrap_or("/");
        if name.starts_with(&self.prefix) { asked.to_owned() } else { self.below(asked) }
    }

    /// Returns where things are that were asked for under `asked`.
    pub(crate) fn below(&self, asked: &str) -> String {
        format!("{}{}", self.path, asked.strip_prefix('/').unwrap_or(asked))
    }

    /// Returns the path that was asked for, if the resource `name` at `real` is the install's.
    pub fn shown_path(&self, name: &str, real: &str) -> Option<String> {
        if name.starts_with(&self.prefix) {
            return Some(real.to_owned());
        }
        real.strip_prefix(&self.path).map(|below| format!("/{below}"))
    }

    /// Whether `arn` names a policy of the install's.
    pub(crate) fn owns_policy(&self, arn: &str) -> bool {
        let Some(rest) = arn.strip_prefix(&format!("{}policy/", self.arn_prefix())) else { return false };
        let (path, name) =
            rest.rsplit_once('/').map_or(("/".to_owned(), rest), |(path, name)| (format!("/{path}/"), name));
        self.shown_path(name, &path).is_some()
    }

    /// Returns what every IAM ARN of the account begins with.
    pub(crate) fn arn_prefix(&self) -> String {
        self.home().arn_prefix()
    }

    /// Returns where the roles of the install are.
    pub fn home(&self) -> Home<'_> {
        Home { partition: &self.partition, account: &self.account, region: &self.region }
    }

    /// Whether no read shows the tag.
    pub(crate) fn hides_tag(&self, key: &str, value: &str) -> bool {
        is_internal(key) || self.tags.get(key).is_some_and(|own| own == value)
    }
}

/// Whether the tag is the runner's own note, which is on a resource of the install only.
fn is_internal(key: &str) -> bool {
    key == SHOWN_BOUNDARY || key.starts_with(HELD)
}

/// Whether the key of a tag is the runner's to set.
pub(crate) fn is_reserved(key: &str) -> bool {
    key.get(..RESERVED.len()).is_some_and(|start| start.eq_ignore_ascii_case(RESERVED))
}

#[cfg(test)]
pub(crate) fn sample() -> Install {
    let tag = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    Install {
        partition: "aws".into(),
        account: "222222222222".into(),
        region: "eu-west-1".into(),
        path: "/freehold/acme--globex/".into(),
        prefix: "acme--globex--".into(),
        boundary: "arn:aws:iam::222222222222:policy/fh-acme--globex--boundary".into(),
        tags: BTreeMap::from([tag("freehold:install", "globex"), tag("freehold:tenant", "acme")]),
        stack_roles: BTreeSet::from(["fh-acme--globex--maintenance".to_owned()]),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_path_is_read_as_it_was_asked_for(name in "(acme--globex--)?[a-z]{1,9}", segments in proptest::collection::vec("[!-.0-~]{1,12}", 0..4)) {
            let asked = segments.iter().fold("/".to_owned(), |path, segment| format!("{path}{segment}/"));

            let real = sample().real_path(&name, Some(&asked));

            prop_assert!(name.starts_with("acme--globex--") || real.starts_with("/freehold/acme--globex/"));
            prop_assert_eq!(sample().shown_path(&name, &real), Some(asked));
        }
    }

    #[test]
    fn a_neighbours_path_is_not_the_installs() {
        assert_eq!(sample().shown_path("a", "/freehold/acme--globex-2/"), None);
        assert_eq!(sample().shown_path("acme--globex-2--a", "/"), None);
        assert!(!sample().owns_policy("arn:aws:iam::222222222222:policy/freehold/acme--globex-2/p"));
        assert!(!sample().owns_policy("arn:aws:iam::333333333333:policy/freehold/acme--globex/p"));
        assert!(!sample().owns_policy("arn:aws:iam::222222222222:policy/acme--globex--x/p"));
        assert!(sample().owns_policy("arn:aws:iam::222222222222:policy/freehold/acme--globex/p"));
        assert!(sample().owns_policy("arn:aws:iam::222222222222:policy/freehold/acme--globex/team/p"));
        assert!(sample().owns_policy("arn:aws:iam::222222222222:policy/acme--globex--p"));
    }

    #[test]
    fn the_keys_that_the_runner_keeps_are_compared_without_case() {
        assert!(is_reserved("Freehold:install") && is_reserved("freehold:"));
        assert!(!is_reserved("freehold") && !is_reserved("team"));
    }
}
