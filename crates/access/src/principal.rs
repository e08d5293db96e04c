//! The principal and the resource of a decision, as the caller of this crate knows them.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use freehold_protocol::{AppName, InstallId, Shape};
use serde::{Deserialize, Serialize};

use crate::actions::About;
use crate::who::Who;

/// A caller with the groups and limits that it has as a member. A caller who is not a member has none of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    pub who: Who,
    /// The member's name; the ARN or the subject of a caller who is not a member.
    pub name: String,
    pub groups: BTreeSet<Group>,
    /// The apps to which the member is limited. Without apps and installs, the member has no limits.
    pub apps: BTreeSet<AppName>,
    /// The installs to which the member is limited.
    pub installs: BTreeSet<InstallId>,
}

impl Principal {
    /// Returns a caller who is not a member.
    pub fn without_groups(who: Who) -> Self {
        let name = who.id().to_owned();
        Self { who, name, groups: BTreeSet::new(), apps: BTreeSet::new(), installs: BTreeSet::new() }
    }
}

/// A group of members: one of the ready-made groups, or any other that the policies name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Group(Cow<'static, str>);

/// A text is not the name of a group.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{value}` is not a group; expected 1 to 64 letters, digits, dashes or underscores, starting with a letter or digit"
)]
pub struct NotGroup {
    value: String,
}

impl Group {
    /// The form of a group's name.
    pub const SHAPE: Shape = Shape::Label { max: 64, also: "_-" };

    /// May do everything.
    pub const OWNER: Self = Self(Cow::Borrowed("owner"));
    /// Reads everything, operates every install, and approves plans.
    pub const OPERATOR: Self = Self(Cow::Borrowed("operator"));
    /// Reads everything, builds apps, and may do everything in installs outside of production but administer them.
    pub const DEVELOPER: Self = Self(Cow::Borrowed("developer"));
    /// Reads the results of installs, and runs their actions whose names begin with `report-`.
    pub const DATA_SCIENTIST: Self = Self(Cow::Borrowed("data_scientist"));
    /// Reads everything.
    pub const AUDITOR: Self = Self(Cow::Borrowed("auditor"));
    /// Reads its own installs.
    pub const CUSTOMER: Self = Self(Cow::Borrowed("customer"));
    /// The groups that the policies of a new tenant know.
    pub const READY_MADE: [Self; 6] =
        [Self::OWNER, Self::OPERATOR, Self::DEVELOPER, Self::DATA_SCIENTIST, Self::AUDITOR, Self::CUSTOMER];

    /// Returns the group's name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Group {
    type Err = NotGroup;

    fn from_str(text: &str) -> Result<Self, NotGroup> {
        if Self::SHAPE.accepts(text) {
            return Ok(Self(Cow::Owned(text.to_owned())));
        }
        Err(NotGroup { value: text.chars().filter(|c| !c.is_control()).take(80).collect() })
    }
}

impl TryFrom<String> for Group {
    type Error = NotGroup;

    fn try_from(text: String) -> Result<Self, NotGroup> {
        text.parse()
    }
}

impl From<Group> for String {
    fn from(group: Group) -> Self {
        group.0.into_owned()
    }
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a request is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resource {
    /// The whole tenant, and its build runner.
    Tenant,
    /// An app, and its builds with their workflows and jobs.
    App { app: AppName },
    /// An install, and its workflows, jobs and runs. `environment` is its own label `environment`, or
    /// [`Resource::PRODUCTION`] if it has none.
    Install { install: InstallId, app: AppName, environment: String },
}

impl Resource {
    /// The environment of an install without the label `environment`. Without a label, the stricter rules apply.
    pub const PRODUCTION: &'static str = "production";

    /// Returns the kind of the resource.
    pub const fn about(&self) -> About {
        match self {
            Self::Tenant => About::Tenant,
            Self::App { .. } => About::App,
            Self::Install { .. } => About::Install,
        }
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tenant => f.write_str("the tenant"),
            Self::App { app } => write!(f, "app `{app}`"),
            Self::Install { install, environment, .. } => {
                write!(f, "install `{install}` (environment `{environment}`)")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ready_made_group_equals_the_group_with_its_name() {
        for group in Group::READY_MADE {
            assert_eq!(group.as_str().parse(), Ok(group.clone()));
        }
    }

    #[test]
    fn the_name_of_a_group_is_checked() {
        let error = "on call\n".parse::<Group>().unwrap_err().to_string();

        assert!(error.starts_with("`on call` is not a group; expected 1 to 64 letters, digits,"), "{error}");
    }

    #[test]
    fn a_resource_is_named_for_people() {
        let (app, install): (AppName, InstallId) = ("web".parse().unwrap(), "globex".parse().unwrap());
        let environment = Resource::PRODUCTION.to_owned();

        assert_eq!(Resource::Tenant.to_string(), "the tenant");
        assert_eq!(Resource::App { app: app.clone() }.to_string(), "app `web`");
        assert_eq!(
            Resource::Install { install, app, environment }.to_string(),
            "install `globex` (environment `production`)"
        );
    }
}
