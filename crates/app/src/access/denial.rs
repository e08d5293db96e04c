//! The errors for requests that are not permitted. They name the permission, the groups that have it, and who can give
//! it.

use freehold_access::{Policies, Resource, groups_with};
use freehold_protocol::TenantName;

use super::act::Act;
use super::caller::Access;
use super::principal;
use super::row::{self, Member};
use crate::AppError;
use crate::ports::Store;

/// The maximum number of members that a message names.
const MOST_NAMES: usize = 3;

/// Returns the error for a person who has signed in and is not a member.
pub(super) fn not_a_member(tenant: &TenantName) -> AppError {
    AppError::forbidden(format!(
        "you are signed in, and you are not a member of tenant `{tenant}`; ask for an invitation, and accept it with \
         `freehold member accept CODE`"
    ))
}

/// Returns the error for an action that the policies do not permit.
pub(super) async fn denied(
    store: &dyn Store,
    tenant: &TenantName,
    access: &Access,
    act: &Act<'_>,
    resource: &Resource,
) -> AppError {
    let whom = if access.may("list_members", &Resource::Tenant) {
        // The names are only a help, so the denial does not depend on them.
        whom_to_ask(&access.policies, row::members(store).await.unwrap_or_default())
    } else {
        // Pipelines of strangers get denials too, and members who are people of a customer.
        "an owner of the tenant".to_owned()
    };
    let groups = groups_with(&access.policies, act.action, resource);
    AppError::forbidden(format!(
        "`{}` may not {}: this needs the permission `{}`, which {}; ask somebody who may change members: {whom}",
        access.principal.name,
        phrase(act.action, resource, tenant),
        act.action,
        who_has(&groups.iter().map(|group| format!("`{group}`")).collect::<Vec<_>>()),
    ))
}

/// Returns what was asked for, such as `deploy components of install globex`.
fn phrase(action: &str, resource: &Resource, tenant: &TenantName) -> String {
    let words = action.replace('_', " ");
    let (noun, thing) = match resource {
        Resource::Tenant => ("tenant", format!("tenant `{tenant}`")),
        Resource::App { .. } => ("app", resource.to_string()),
        Resource::Install { .. } => ("install", resource.to_string()),
    };
    match words.strip_suffix(noun) {
        Some(verb) => format!("{verb}{thing}"),
        None => format!("{words} of {thing}"),
    }
}

fn who_has(groups: &[String]) -> String {
    match groups {
        [] => "no group has".to_owned(),
        [only] => format!("the group {only} has"),
        [first @ .., last] => format!("the groups {} and {last} have", first.join(", ")),
    }
}

/// Returns the names of some members who may change members.
fn whom_to_ask(policies: &Policies, members: Vec<Member>) -> String {
    let principals =
        members.iter().filter_map(Member::known_principal).filter_map(|one| principal::of_member(one).ok());
    let may = principals.filter(|one| policies.decide(one, "set_member", &Resource::Tenant).is_allowed);
    let names: Vec<String> = may.take(MOST_NAMES).map(|one| one.name).collect();
    if names.is_empty() { "an IAM principal of the tenant's account".to_owned() } else { names.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_asked_for_is_named_with_its_place() {
        let tenant: TenantName = "acme".parse().unwrap();
        let app = Resource::App { app: "demo".parse().unwrap() };
        let (install, environment) = ("globex".parse().unwrap(), "production".to_owned());
        let install = Resource::Install { install, app: "demo".parse().unwrap(), environment };

        assert_eq!(
            phrase("deploy_components", &install, &tenant),
            "deploy components of install `globex` (environment `production`)"
        );
        assert_eq!(phrase("delete_install", &install, &tenant), "delete install `globex` (environment `production`)");
        assert_eq!(phrase("sync_app", &app, &tenant), "sync app `demo`");
        assert_eq!(phrase("set_policies", &Resource::Tenant, &tenant), "set policies of tenant `acme`");
    }

    #[test]
    fn the_groups_that_have_a_permission_are_listed() {
        let named = |groups: &[&str]| who_has(&groups.iter().map(|&group| group.to_owned()).collect::<Vec<_>>());

        assert_eq!(named(&[]), "no group has");
        assert_eq!(named(&["`owner`"]), "the group `owner` has");
        assert_eq!(named(&["`a`", "`b`", "`c`"]), "the groups `a`, `b` and `c` have");
    }
}
