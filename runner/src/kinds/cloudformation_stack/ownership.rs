//! Decides whether a stack belongs to this install, by its name, its tags and its service role.
//!
//! An update of a stack acts with the stack's service role, and the caller does not need `iam:PassRole` for it
//! (CloudFormation user guide, "CloudFormation service role"). A stack that the customer made for other purposes may
//! have a role with all permissions, so the runner must not update it.

use freehold_protocol::names;
use freehold_protocol::order::Order;

use super::stack::{Stack, State};
use crate::job::failure::Failure;

/// The tags that a stack of the install must have.
const REQUIRED: [&str; 3] = [names::TENANT_TAG, names::INSTALL_TAG, names::OWNER_TAG];

/// Returns the tags for a stack, which CloudFormation copies to its resources. `stack` is the stack to update, or `None` for a
/// new one. An update adds no key: CloudFormation replaces resources of some types when they get another tag.
pub(super) fn tags(order: &Order, stack: Option<&Stack>) -> Vec<(&'static str, String)> {
    let is_set = |key: &str| stack.is_none_or(|stack| stack.tags.contains_key(key));
    order.tags().into_iter().filter(|(key, _)| is_set(key)).collect()
}

/// Refuses a name that does not begin with the install's prefix, or that CloudFormation would read as an ARN.
pub(super) fn check_name(order: &Order, name: &str) -> Result<(), Failure> {
    let prefix = names::app_prefix(&order.tenant, &order.install);
    let own = name.strip_prefix(&prefix).filter(|own| !own.is_empty());
    let is_name = |own: &str| own.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    if own.is_some_and(is_name) {
        return Ok(());
    }
    Err(Failure::new(format!(
        "stack `{name}` is not this install's: its name has to be `{prefix}` and then letters, digits and hyphens; write \
         `stack_name = \"{{{{ .nuon.install_stack.outputs.prefix }}}}...\"` in the component's config"
    )))
}

/// Refuses an existing stack that lacks this install's tags, or that has a service role of somebody else.
pub(super) fn check(order: &Order, name: &str, stack: &Stack) -> Result<(), Failure> {
    let path = format!(":role{}", names::app_path(&order.tenant, &order.install));
    let prefix = format!(":role/{}", names::app_prefix(&order.tenant, &order.install));
    let is_theirs = |role: &&str| !role.contains(&path) && !role.contains(&prefix);
    if let Some(role) = stack.role.as_deref().filter(is_theirs) {
        return Err(Failure::new(format!(
            "stack `{name}` has the service role `{role}`, and a change would use this role, which does not belong to \
             this install; delete the stack or give the component another `stack_name`"
        )));
    }
    // A stack for which only a change set exists does not have tags or resources yet.
    if stack.state() == State::Absent {
        return Ok(());
    }
    for (key, value) in order.tags().into_iter().filter(|(key, _)| REQUIRED.contains(key)) {
        if stack.tags.get(key) != Some(&value) {
            return Err(Failure::new(format!(
                "stack `{name}` exists and does not have the tag `{key}` = `{value}`, so this install did not make it; \
                 delete the stack or give the component another `stack_name`"
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::testing::order;

    fn stack(tags: &[(&str, &str)], role: Option<&str>) -> Stack {
        let tags = tags.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let role = role.map(str::to_owned);
        Stack { status: "UPDATE_COMPLETE".into(), outputs: BTreeMap::new(), tags, role, protected: false }
    }

    const OURS: [(&str, &str); 3] =
        [("freehold:tenant", "acme"), ("freehold:install", "globex-prod"), ("freehold:owner", "acme--globex-prod")];

    #[test]
    fn only_names_under_the_installs_prefix_are_taken() {
        let order = order(1, 1);

        assert!(check_name(&order, "acme--globex-prod--storage").is_ok());
        for name in [
            "CDKToolkit",
            "globex-prod-storage",
            "acme--globex-prod--",
            "acme--globex-prod-eu--storage",
            "acme--globex--storage",
            "arn:aws:cloudformation:eu-west-1:222222222222:stack/acme--globex-prod--storage/1",
            "acme--globex-prod--storage/1",
        ] {
            let Err(Failure::Failed { reason, partial }) = check_name(&order, name) else { panic!("{name}") };

            assert!(reason.contains(name) && reason.contains("`acme--globex-prod--`") && !partial, "{reason}");
        }
    }

    #[test]
    fn only_stacks_with_the_installs_tags_are_taken() {
        let order = order(1, 1);

        assert!(check(&order, "s", &stack(&OURS, None)).is_ok());
        assert!(check(&order, "s", &stack(&[], None)).is_err());
        assert!(check(&order, "s", &stack(&OURS[..2], None)).is_err());
        assert!(check(&order, "s", &stack(&[("freehold:tenant", "other"), OURS[1], OURS[2]], None)).is_err());
        let reserved = Stack { status: "REVIEW_IN_PROGRESS".into(), ..stack(&[], None) };
        assert!(check(&order, "s", &reserved).is_ok());
    }

    #[test]
    fn a_new_stack_gets_all_tags_and_an_update_adds_none() {
        let context = serde_json::json!({ "nuon": { "app": { "name": "shop" } } });
        let order = Order { context, ..order(1, 1) };
        let keys = |stack: Option<&Stack>| tags(&order, stack).into_iter().map(|(key, _)| key).collect::<Vec<_>>();

        assert_eq!(keys(None), ["freehold:app", "freehold:install", "freehold:owner", "freehold:tenant"]);
        assert_eq!(keys(Some(&stack(&OURS, None))), ["freehold:install", "freehold:owner", "freehold:tenant"]);
    }

    #[test]
    fn a_stack_with_a_service_role_of_the_customers_is_not_taken() {
        let order = order(1, 1);
        let ours = "arn:aws:iam::222222222222:role/freehold/acme--globex-prod/stacks";
        let cdk = "arn:aws:iam::222222222222:role/cdk-hnb659fds-cfn-exec-role-222222222222-eu-west-1";
        let reserved = Stack { status: "REVIEW_IN_PROGRESS".into(), ..stack(&[], Some(cdk)) };

        assert!(check(&order, "s", &stack(&OURS, Some(ours))).is_ok());
        let Err(Failure::Failed { reason, .. }) = check(&order, "s", &stack(&OURS, Some(cdk))) else { panic!() };
        assert!(reason.contains(cdk), "{reason}");
        assert!(check(&order, "s", &reserved).is_err());
    }
}
