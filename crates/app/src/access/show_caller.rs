//! Shows who the caller is to the tenant, and what the caller may do in it.

use freehold_access::{Policies, Principal, Resource, Who};
use freehold_protocol::api::CallerView;

use super::caller::Access;

/// Returns the caller of a request.
pub async fn show_caller(access: &Access) -> CallerView {
    view(&access.policies, &access.principal, access.member.is_some())
}

/// Returns the API's view of a principal.
pub(super) fn view(policies: &Policies, principal: &Principal, is_member: bool) -> CallerView {
    // Somebody who has only signed in may do nothing, whatever the policies permit to people.
    let is_stranger = !is_member && matches!(principal.who, Who::Person { .. });
    let permissions = if is_stranger { Vec::new() } else { policies.permitted_actions(principal, &Resource::Tenant) };
    CallerView {
        who: principal.who.to_string(),
        name: principal.name.clone(),
        groups: principal.groups.iter().map(ToString::to_string).collect(),
        apps: principal.apps.clone(),
        installs: principal.installs.clone(),
        is_member,
        permissions: permissions.into_iter().map(str::to_owned).collect(),
    }
}
