//! Finds roles and policies of the customer that the vendor could use after a first launch: IAM recognizes the roles
//! and policies of an install by their names and paths, which begin with names that the vendor chooses.

use aws_config::SdkConfig;
use aws_sdk_iam::Client;
use aws_sdk_iam::types::{PolicyScopeType, Tag};
use freehold_protocol::{InstallId, TenantName, names};

use crate::error::{Error, Kind, Result, ResultExt};

/// The maximum number of roles and policies in the error.
const NAMED: usize = 5;

/// The names and marks of an install's roles and policies.
struct Marks {
    path: String,
    prefix: String,
    owner: String,
    /// The end of the ARN of the boundary.
    boundary: String,
}

/// Refuses a first launch if a role or a policy has a name or a path of the install, and neither the install's boundary
/// nor its tag. An earlier launch of the same install may have left roles with the boundary, and policies with the tag.
pub(super) async fn check(config: &SdkConfig, tenant: &TenantName, install: &InstallId) -> Result<()> {
    let (client, marks) = (Client::new(config), Marks::of(tenant, install));
    let mut taken = roles(&client, &marks).await.map_err(unread)?;
    taken.extend(policies(&client, &marks).await.map_err(unread)?);
    if taken.is_empty() { Ok(()) } else { Err(refused(install, &marks, &taken)) }
}

async fn roles(client: &Client, marks: &Marks) -> Result<Vec<String>> {
    let mut pages = client.list_roles().max_items(1_000).into_paginator().send();
    let mut taken = Vec::new();
    while let Some(page) = pages.next().await {
        for role in page.doing("list roles")?.roles() {
            let name = role.role_name();
            if !marks.claim(role.path(), name) {
                continue;
            }
            // The list has neither boundaries nor tags.
            let read = client.get_role().role_name(name).send().await.doing(format!("read role `{name}`"))?;
            let boundary = read.role().and_then(|role| role.permissions_boundary()?.permissions_boundary_arn());
            let tags = read.role().map(|role| role.tags()).unwrap_or_default();
            if !marks.are_on(boundary, tags) {
                taken.push(format!("role `{}`", role.arn()));
            }
        }
    }
    Ok(taken)
}

async fn policies(client: &Client, marks: &Marks) -> Result<Vec<String>> {
    let mut pages = client.list_policies().scope(PolicyScopeType::Local).max_items(1_000).into_paginator().send();
    let mut taken = Vec::new();
    while let Some(page) = pages.next().await {
        for policy in page.doing("list policies")?.policies() {
            let (path, name) = (policy.path().unwrap_or_default(), policy.policy_name().unwrap_or_default());
            let Some(arn) = policy.arn().filter(|_| marks.claim(path, name)) else { continue };
            let tags = client.list_policy_tags().policy_arn(arn).send().await;
            let tags = tags.doing(format!("read the tags of policy `{name}`"))?;
            if !marks.are_on(None, tags.tags()) {
                taken.push(format!("policy `{arn}`"));
            }
        }
    }
    Ok(taken)
}

/// Returns the error of a call that the credentials may not make.
fn unread(error: Error) -> Error {
    if error.kind() != Kind::Denied {
        return error;
    }
    error.or(
        "allow this call for your credentials: a first launch looks for roles and policies of yours that have names of \
              the install",
    )
}

fn refused(install: &InstallId, marks: &Marks, taken: &[String]) -> Error {
    let more = match taken.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let shown: Vec<&str> = taken.iter().take(NAMED).map(String::as_str).collect();
    Error::conflict(format!(
        "in this account, {}{more} would belong to install `{install}` by its name, so the vendor could change and use it",
        shown.join(", ")
    ))
    .or(format!(
        "ask the vendor for an install with another name, or give your role or policy another name; if it is left from an \
         earlier launch of this install, give it the tag `{}` = `{}`",
        names::OWNER_TAG,
        marks.owner
    ))
}

impl Marks {
    fn of(tenant: &TenantName, install: &InstallId) -> Self {
        Self {
            path: names::app_path(tenant, install),
            prefix: names::app_prefix(tenant, install),
            owner: names::owner(tenant, install),
            boundary: format!(":policy/{}", names::install_part(tenant, install, "boundary")),
        }
    }

    /// Returns whether IAM would count a role or a policy as the install's. The boundary compares the path and the name as
    /// one text, so the prefix may also be the beginning of the path.
    fn claim(&self, path: &str, name: &str) -> bool {
        let below_root = path.strip_prefix('/').unwrap_or(path);
        path.starts_with(&self.path) || name.starts_with(&self.prefix) || below_root.starts_with(&self.prefix)
    }

    /// Returns whether a role or a policy has the install's boundary or its tag.
    fn are_on(&self, boundary: Option<&str>, tags: &[Tag]) -> bool {
        let is_owned = |tag: &Tag| tag.key() == names::OWNER_TAG && tag.value() == self.owner;
        boundary.is_some_and(|arn| arn.ends_with(&self.boundary)) || tags.iter().any(is_owned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marks() -> Marks {
        Marks::of(&"acme".parse().unwrap(), &"globex".parse().unwrap())
    }

    fn tag(value: &str) -> Tag {
        Tag::builder().key(names::OWNER_TAG).value(value).build().unwrap()
    }

    #[test]
    fn a_name_or_a_path_of_the_install_is_claimed_and_no_neighbours() {
        let claimed = |path, name| marks().claim(path, name);

        assert!(claimed("/", "acme--globex--deployer"));
        assert!(claimed("/freehold/acme--globex/", "api"));
        assert!(claimed("/acme--globex--x/", "api"));
        for (path, name) in [
            ("/", "acme--globex-eu--x"),
            ("/", "fh-acme--globex--runner"),
            ("/", "globex"),
            ("/freehold/acme--glob/", "x"),
        ] {
            assert!(!claimed(path, name), "{path}{name}");
        }
    }

    #[test]
    fn what_an_earlier_launch_left_is_known_by_its_boundary_or_its_tag() {
        let ours = "arn:aws:iam::222222222222:policy/fh-acme--globex--boundary";
        let theirs = "arn:aws:iam::222222222222:policy/company";

        assert!(marks().are_on(Some(ours), &[]));
        assert!(marks().are_on(Some(theirs), &[tag("acme--globex")]));
        assert!(!marks().are_on(Some(theirs), &[tag("acme--globex-eu")]));
        assert!(!marks().are_on(None, &[]));
    }

    #[test]
    fn what_is_taken_is_named_with_the_way_out() {
        let taken: Vec<String> = (0..7).map(|at| format!("role `r{at}`")).collect();

        let error = refused(&"globex".parse().unwrap(), &marks(), &taken);

        let text = error.to_string();
        assert!(text.contains("role `r4` and 2 more would belong to install `globex` by its name"), "{text}");
        assert!(error.way_out().is_some_and(|way| way.contains("tag `freehold:owner` = `acme--globex`")), "{error:?}");
    }
}
