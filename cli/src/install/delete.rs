//! `freehold install delete`: deletes an install in which no job ever ran.

use freehold_client::calls;
use freehold_protocol::api::InstallDeleted;

use super::Delete;
use crate::confirm;
use crate::context::Context;
use crate::error::Result;

impl Delete {
    pub(super) async fn run(&self, context: &Context) -> Result<()> {
        if let Some(name) = &self.confirm {
            confirm::install(&self.install, Some(name), "")?;
        }
        let deleted: InstallDeleted = context.api().await?.send(calls::delete_install(&self.install)).await?;
        context.out.show(&deleted, render)
    }
}

fn render(deleted: &InstallDeleted) -> String {
    let InstallDeleted { install, account, region, stack_name } = deleted;
    format!(
        "install `{install}` is deleted; its name is free again\nif the customer has launched its stack already, ask them to \
         delete stack `{stack_name}` in account {account}, region {region}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stack_that_the_customer_may_have_launched_is_named_with_its_place() {
        let (install, account) = ("globex".parse().unwrap(), "222222222222".parse().unwrap());

        let (region, stack_name) = ("eu-west-1".to_owned(), "freehold-acme--globex".to_owned());

        let text = render(&InstallDeleted { install, account, region, stack_name });

        insta::assert_snapshot!(text, @r"
        install `globex` is deleted; its name is free again
        if the customer has launched its stack already, ask them to delete stack `freehold-acme--globex` in account 222222222222, region eu-west-1
        ");
    }
}
