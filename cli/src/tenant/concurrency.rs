//! Whether the tenant's functions reserve concurrency. This depends on the account's quota, which is low in a new account.

use aws_config::SdkConfig;

use crate::cloudformation::Stacks;
use crate::error::{Result, ResultExt};

/// The stack parameter.
pub(super) const PARAMETER: &str = "ReservedConcurrency";
/// The warning about an account without reserved concurrency.
pub(super) const NONE: &str = "the account's quota of concurrent Lambda executions is too low to reserve a part of it \
                               for the essential functions of the tenant: many reports at the same time can delay \
                               these functions. Ask AWS for a quota of 1000 and deploy again";
/// The lowest quota with which the stack reserves concurrency, as the description of the parameter states.
const QUOTA: i32 = 500;
/// The concurrency that must be unreserved in the account before the stack reserves 187: Lambda requires that at least
/// 100 stay unreserved.
const LEFT: i32 = 300;

/// Whether the stack reserves concurrency.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reserves {
    Yes,
    No,
}

impl Reserves {
    /// Returns the value of the stack parameter that switches the reservation on or off.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Yes => "yes",
            Self::No => "no",
        }
    }
}

/// Decides by the account's quota, and by the concurrency that other functions of the account have reserved.
pub(super) async fn reserves(config: &SdkConfig, stack: &str) -> Result<Reserves> {
    let has = Stacks::new(config).find(stack).await?.and_then(|stack| stack.parameters.get(PARAMETER).cloned());
    let found = aws_sdk_lambda::Client::new(config).get_account_settings().send().await;
    let found = found.doing("read the quota of concurrent executions of Lambda")?;
    let limit = found.account_limit();
    let quota = limit.map_or(0, |limit| limit.concurrent_executions());
    let left = limit.and_then(|limit| limit.unreserved_concurrent_executions()).unwrap_or_default();
    Ok(decided(quota, left, has.as_deref() == Some(Reserves::Yes.as_str())))
}

fn decided(quota: i32, left: i32, has: bool) -> Reserves {
    if quota >= QUOTA && (has || left >= LEFT) { Reserves::Yes } else { Reserves::No }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_reserves_what_the_account_has_and_others_have_left() {
        let [new, usual, crowded] = [(10, 10), (1000, 1000), (1000, 250)];

        let decided = |(quota, left), has| decided(quota, left, has) == Reserves::Yes;

        assert_eq!([decided(new, false), decided(usual, false), decided(crowded, false)], [false, true, false]);
        // Its own share is among what is gone.
        assert_eq!([decided(new, true), decided(crowded, true)], [false, true]);
    }

    #[test]
    fn the_template_has_the_parameter() {
        assert!(super::super::names::TEMPLATE.contains(&format!("\n  {PARAMETER}:\n")));
    }
}
