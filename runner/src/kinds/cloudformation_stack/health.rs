//! Returns the health of a stack: whether its last change succeeded. The health of the stack's resources is not
//! checked.

use aws_sdk_cloudformation::Client;
use freehold_protocol::order::health::{Health, HealthState};

use super::ownership;
use super::stack::{Stack, describe};
use crate::job::failure::Failure;
use crate::job::{Job, sdk_config};
use crate::kinds::templates::Templates;

/// Returns the health of the stack whose name the template `stack_name` gives.
pub(in crate::kinds) async fn health(job: &Job, stack_name: &str) -> Result<Health, Failure> {
    let name = Templates::of(job).text("stack name", stack_name)?;
    ownership::check_name(&job.order, &name)?;
    let found = describe(&Client::new(&sdk_config(job).await), &name).await?;
    Ok(of_stack(&name, found.as_ref()))
}

fn of_stack(name: &str, found: Option<&Stack>) -> Health {
    match found {
        Some(stack) if stack.is_done() => Health::new(HealthState::Healthy, ""),
        Some(stack) => Health::new(HealthState::Unhealthy, &format!("stack `{name}` is `{}`", stack.status)),
        None => Health::new(HealthState::Unhealthy, &format!("stack `{name}` does not exist")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_is_healthy_while_its_last_change_succeeded() {
        let of = |status: &str| of_stack("web", Some(&Stack::with_status(status)));

        assert_eq!(of("UPDATE_COMPLETE").state, HealthState::Healthy);
        assert_eq!(of("UPDATE_ROLLBACK_COMPLETE").reason, "stack `web` is `UPDATE_ROLLBACK_COMPLETE`");
        assert_eq!(of("UPDATE_IN_PROGRESS").state, HealthState::Unhealthy);
        assert_eq!(of_stack("web", None).reason, "stack `web` does not exist");
    }
}
