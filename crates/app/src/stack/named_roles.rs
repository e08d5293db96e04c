//! The part of the install stack for the roles that an app defines: custom roles and break-glass roles. The permissions
//! of a break-glass role end at a time that the customer sets.

use std::collections::BTreeMap;

use freehold_domain::install::Install;
use freehold_protocol::app_version::{AppVersion, NamedRole};
use freehold_protocol::{RoleKey, TenantName};
use serde::Serialize;

use crate::AppError;
use crate::stack::escape::{DESCRIPTION_CHARS, Quoted, TITLE_CHARS, one_line};
use crate::stack::role_policy::{Granted, granted};

/// A role that the app defines, in the form that the install stack's template reads.
#[derive(Serialize)]
pub(crate) struct Role {
    /// The prefix of the role's logical names in the stack.
    name: String,
    key: String,
    /// The name of the stack parameter that switches the role on.
    switch: String,
    /// Whether the role is on by default, until the customer changes the parameter.
    on: bool,
    break_glass: bool,
    /// The text of the comment above the role in the template.
    about: String,
    label: Quoted,
    description: Quoted,
    granted: Granted,
}

/// Returns the roles that the app defines.
///
/// # Errors
/// Invalid for two roles that have the same key, or for a policy that cannot be rendered.
pub(crate) fn roles(tenant: &TenantName, version: &AppVersion, install: &Install) -> Result<Vec<Role>, AppError> {
    let roles: Vec<(&NamedRole, RoleKey)> = version.named_roles.iter().map(|role| (role, role.key())).collect();
    check_names(&roles, version)?;
    roles.into_iter().map(|(named, key)| role(named, &key, tenant, version, install)).collect()
}

/// Returns the prefixes of the logical names of the break-glass roles.
pub(crate) fn break_glass(roles: &[Role]) -> Vec<String> {
    roles.iter().filter(|role| role.break_glass).map(|role| role.name.clone()).collect()
}

fn check_names(roles: &[(&NamedRole, RoleKey)], version: &AppVersion) -> Result<(), AppError> {
    let mut seen: BTreeMap<String, &str> = BTreeMap::new();
    for (role, key) in roles {
        if let Some(first) = seen.insert(key.camel().to_ascii_lowercase(), &role.name) {
            return Err(AppError::invalid(format!(
                "roles `{first}` and `{}` of app `{}` would both be called `{key}` in the install stack; rename one",
                role.name, version.app
            )));
        }
    }
    Ok(())
}

fn role(
    named: &NamedRole,
    key: &RoleKey,
    tenant: &TenantName,
    version: &AppVersion,
    install: &Install,
) -> Result<Role, AppError> {
    let title = if named.display_name.is_empty() { key.as_str() } else { &named.display_name };
    let description = if named.description.is_empty() { title } else { &named.description };
    Ok(Role {
        name: key.camel(),
        key: key.to_string(),
        switch: key.switch(),
        // A break-glass role is off until the customer switches it on, even if the app config enables it.
        on: named.enabled && !named.break_glass,
        break_glass: named.break_glass,
        about: one_line(title, TITLE_CHARS),
        label: Quoted(one_line(title, TITLE_CHARS)),
        description: Quoted(one_line(description, DESCRIPTION_CHARS)),
        granted: granted(
            &named.policies,
            named.boundary.as_deref(),
            &format!("role `{}`", named.name),
            tenant,
            version,
            install,
        )?,
    })
}
