//! Describes the install to the proxy: the names and paths of its resources, their tags and their boundary.

use std::collections::{BTreeMap, BTreeSet};

use crate::home::Home;

/// The prefix of the keys of tags that only the runner may set. IAM ignores case when it compares tag keys of roles.
pub(crate) const RESERVED: &str = "freehold:";
/// The key of the tag whose value names the install of a resource.
pub const OWNER_TAG: &str = "freehold:owner";
/// The key of the tag on a role for which the module itself set the boundary. Reads of such a role show the boundary.
pub(crate) const SHOWN_BOUNDARY: &str = "freehold:boundary-shown";
/// The prefix of a tag key. The rest of the key is the name of a role of the install stack. Such a tag on a policy
/// records that a job asked to attach the policy to this role.
pub(crate) const HELD: &str = "freehold:held:";
/// The prefix of a tag key. The rest of the key is the key of one of the install's tags. Such a tag on a resource records
/// that a job itself set this tag of the install. Reads of the resource show the tag.
const ASKED: &str = "freehold:asked:";
/// The prefix of a tag key. The rest of the key is [`OWNER_TAG`]. Such a tag on an identity provider records that the
/// runner set the owner, because the job that made the provider did not. Reads of the provider hide the owner until a
/// job sets it itself.
const ADDED: &str = "freehold:added:";

/// The install, and the properties of each resource that its jobs make.
#[derive(Debug, Clone)]
pub struct Install {
    /// The partition, such as `aws` or `aws-cn`.
    pub partition: String,
    /// The account that the install is bound to, in 12 digits.
    pub account: String,
    pub region: String,
    /// The path of the resources that jobs make. It begins and ends with `/`.
    pub path: String,
    /// The name prefix of the install: a resource whose name begins with it belongs to the install under any path.
    pub prefix: String,
    /// The ARN of the boundary, the policy that no role of the install exceeds.
    pub boundary: String,
    /// The tags of every resource that jobs make. Their keys begin with `freehold:`.
    pub tags: BTreeMap<String, String>,
    /// The tags, beside the owner's, that the runner gives the programs of the job for everything that they make. Their
    /// keys begin with `freehold:`.
    pub given_tags: BTreeMap<String, String>,
    /// The names of the roles of the install stack. Their permissions are the customer's decision, so jobs cannot
    /// change them.
    pub stack_roles: BTreeSet<String>,
}

impl Install {
    /// Returns the path of a new resource, for the path `asked` in the request. The path stays unchanged if the name
    /// begins with the install's prefix: the module may have computed the ARN from this name.
    pub fn real_path(&self, name: &str, asked: Option<&str>) -> String {
        let asked = asked.unwrap_or("/");
        if name.starts_with(&self.prefix) { asked.to_owned() } else { self.below(asked) }
    }

    /// Returns the real path for the requested path `asked`.
    pub(crate) fn below(&self, asked: &str) -> String {
        format!("{}{}", self.path, asked.strip_prefix('/').unwrap_or(asked))
    }

    /// Returns the path that a job requested for the resource `name`, which has the path `real` in IAM; `None` if the
    /// resource does not belong to the install.
    pub fn shown_path(&self, name: &str, real: &str) -> Option<String> {
        if name.starts_with(&self.prefix) {
            return Some(real.to_owned());
        }
        real.strip_prefix(&self.path).map(|below| format!("/{below}"))
    }

    /// Returns whether `arn` is the ARN of a policy of the install.
    pub(crate) fn owns_policy(&self, arn: &str) -> bool {
        let Some(rest) = arn.strip_prefix(&format!("{}policy/", self.arn_prefix())) else { return false };
        let (path, name) =
            rest.rsplit_once('/').map_or(("/".to_owned(), rest), |(path, name)| (format!("/{path}/"), name));
        self.shown_path(name, &path).is_some()
    }

    /// Returns the prefix of every IAM ARN of the account.
    pub(crate) fn arn_prefix(&self) -> String {
        self.home().arn_prefix()
    }

    /// Returns the place of the install's roles.
    pub fn home(&self) -> Home<'_> {
        Home { partition: &self.partition, account: &self.account, region: &self.region }
    }

    /// Returns whether jobs may set the tag.
    pub(crate) fn may_be_set(&self, key: &str, value: &str) -> bool {
        self.is_owner_tag(key, value) || self.given_tags.get(key).is_some_and(|given| given == value)
    }

    /// Returns whether the tag marks a resource as one of the install. Jobs may set and read this tag.
    pub(crate) fn is_owner_tag(&self, key: &str, value: &str) -> bool {
        key == OWNER_TAG && self.owner() == Some(value)
    }

    /// Returns the value of the owner tag.
    fn owner(&self) -> Option<&str> {
        self.prefix.strip_suffix("--")
    }

    /// Returns the owner tag for a new identity provider, with its note; nothing if the job has `given` the tag.
    pub(crate) fn owner_to_add(&self, given: &[(String, String)]) -> Vec<(String, String)> {
        match self.owner() {
            Some(owner) if !given.iter().any(|(key, _)| key == OWNER_TAG) => {
                vec![(OWNER_TAG.to_owned(), owner.to_owned()), note(ADDED, OWNER_TAG)]
            }
            _ => Vec::new(),
        }
    }

    /// Returns whether the tag is left out of all responses to jobs. `keys` are the keys of all tags of the resource.
    pub(crate) fn hides_tag(&self, key: &str, value: &str, keys: &BTreeSet<String>) -> bool {
        let has_note = |prefix: &str| keys.contains(&format!("{prefix}{key}"));
        let is_set_by_runner =
            self.tags.get(key).is_some_and(|own| own == value) || self.is_owner_tag(key, value) && has_note(ADDED);
        is_internal(key) || is_set_by_runner && !has_note(ASKED)
    }

    /// Returns the note for the resource on which a job itself sets the tag `key`, as a tag; `None` unless the runner
    /// sets this tag on every resource, or it is the owner tag and `may_have_owner` says that the runner may have set it.
    pub(crate) fn note_of_asked(&self, key: &str, may_have_owner: bool) -> Option<(String, String)> {
        let is_noted = self.tags.contains_key(key) || may_have_owner && key == OWNER_TAG;
        is_noted.then(|| note(ASKED, key))
    }
}

/// Returns the tag that is the note about the tag `key`.
fn note(prefix: &str, key: &str) -> (String, String) {
    (format!("{prefix}{key}"), "true".to_owned())
}

/// Returns whether the tag is one that the runner sets for its own use. Only resources of the install have such tags.
fn is_internal(key: &str) -> bool {
    key == SHOWN_BOUNDARY || [HELD, ASKED, ADDED].iter().any(|prefix| key.starts_with(prefix))
}

/// Returns whether only the runner may set a tag with this key.
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
        given_tags: BTreeMap::from([
            tag("freehold:app", "shop"),
            tag("freehold:install", "globex"),
            tag("freehold:tenant", "acme"),
        ]),
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
    fn the_owner_tag_has_the_name_of_the_install_alone() {
        assert!(sample().is_owner_tag("freehold:owner", "acme--globex"));
        assert!(!sample().is_owner_tag("freehold:owner", "acme--globex-2"));
        assert!(!sample().is_owner_tag("freehold:Owner", "acme--globex"));
        assert!(!sample().is_owner_tag("freehold:install", "acme--globex"));
    }

    #[test]
    fn jobs_may_set_the_tags_that_they_are_given_and_no_other_value() {
        for (key, value) in
            [("freehold:owner", "acme--globex"), ("freehold:app", "shop"), ("freehold:install", "globex")]
        {
            assert!(sample().may_be_set(key, value), "{key}");
            assert!(!sample().may_be_set(key, "other"), "{key}");
        }
        assert!(!sample().may_be_set("Freehold:app", "shop") && !sample().may_be_set("freehold:part", "runner"));
    }

    #[test]
    fn the_keys_that_the_runner_keeps_are_compared_without_case() {
        assert!(is_reserved("Freehold:install") && is_reserved("freehold:"));
        assert!(!is_reserved("freehold") && !is_reserved("team"));
    }
}
