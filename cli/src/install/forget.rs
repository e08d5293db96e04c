//! `freehold install forget`: removes everything that the tenant stores about an install.

use std::time::Duration;

use freehold_client::calls;
use freehold_protocol::api::{ForgetInstallRequest, ForgetStarted, InstallView};
use serde_json::json;

use super::Forget;
use crate::api::Api;
use crate::confirm;
use crate::context::Context;
use crate::error::{Kind, Result};
use crate::progress::{Progress, or_stopped};

/// The pause between two requests for the install.
const POLL_INTERVAL: Duration = Duration::from_secs(3);

impl Forget {
    pub(super) async fn run(&self, context: &Context) -> Result<()> {
        let api = context.api().await?;
        let view = api.install(&self.install).await?;
        self.confirmed(&view)?;
        let request = ForgetInstallRequest { customer_gone: self.customer_gone };
        let started: ForgetStarted = api.send(calls::forget_install(&self.install, &request)).await?;
        if !self.no_wait {
            let progress = Progress::start();
            let what =
                format!("removing everything that the tenant stores about `{}`; this takes some minutes", self.install);
            progress.waiting(&what, true);
            self.until_gone(&api).await?;
        }
        let value = json!({ "install": started.install, "account": started.account, "region": started.region,
            "stack_name": started.stack_name, "forgotten": !self.no_wait });
        context.out.show(&value, |_| render(&started, !self.no_wait))
    }

    /// Waits until the API does not find the install any more. Ctrl-c ends only the command.
    async fn until_gone(&self, api: &Api) -> Result<()> {
        let stopped = format!(
            "stopped waiting; install `{0}` is forgotten in some minutes, and then `freehold install show {0}` does not \
             find it",
            self.install
        );
        or_stopped(self.look(api), stopped).await
    }

    async fn look(&self, api: &Api) -> Result<()> {
        loop {
            match api.send(calls::show_install(&self.install)).await {
                Err(error) if error.kind() == Kind::NotFound => return Ok(()),
                Err(error) => return Err(error),
                Ok(_) => tokio::time::sleep(POLL_INTERVAL).await,
            }
        }
    }

    /// Asks for the install's name unless `--confirm` gives it.
    fn confirmed(&self, view: &InstallView) -> Result<()> {
        confirm::install(&self.install, self.confirm.as_deref(), &consequences(view))
    }
}

/// Returns the text about the parts that are removed and the parts that stay, for the person who confirms.
fn consequences(view: &InstallView) -> String {
    let InstallView { install, account, region, .. } = view;
    let deployed = match view.components.len() {
        0 => String::new(),
        _ => {
            let names: Vec<String> = view.components.iter().map(|one| format!("`{}`", one.component)).collect();
            format!("\nLeft in the customer's account, where nobody operates it any more: {}.", names.join(", "))
        }
    };
    format!(
        "This removes everything that the tenant stores about install `{install}` (account {account}, {region}), \
         for ever: its orders queue and dead letters, its inputs, workflows, jobs and logs, the signed orders and \
         reports, and the record of which artifacts it used.{deployed}\n\
         Kept by the customer: their account, and the audit records in their bucket.\n\
         Kept by you: the app, its versions, builds and releases. Until they expire: lines in the functions' logs, the \
         history of executions (90 days) and the table's backups (35 days)."
    )
}

fn render(started: &ForgetStarted, gone: bool) -> String {
    let ForgetStarted { install, account, region, stack_name, .. } = started;
    let result = if gone {
        format!("install `{install}` is forgotten; nothing of it is left in the tenant, and its name is free again")
    } else {
        format!(
            "install `{install}` is being forgotten; in some minutes `freehold install show {install}` does not find it"
        )
    };
    format!(
        "{result}\nif the customer has not deleted stack `{stack_name}` in account {account}, region {region}, ask them to \
         delete it"
    )
}

#[cfg(test)]
mod tests {
    use freehold_protocol::Timestamp;

    use super::*;

    fn view() -> InstallView {
        serde_json::from_value(json!({
            "install": "globex", "account": "222222222222", "region": "eu-west-1", "state": "idle",
            "components": [{ "component": "api", "artifact": format!("sha256:{}", "0".repeat(64)),
                "version": format!("sha256:{}", "1".repeat(64)), "job": format!("job_{}", "0".repeat(20)), "at": 0 }],
        }))
        .unwrap()
    }

    #[test]
    fn what_goes_and_what_stays_is_said_before_the_confirmation() {
        let text = consequences(&view());

        for part in [
            "about install `globex` (account 222222222222, eu-west-1), for ever: its orders queue",
            "Left in the customer's account, where nobody operates it any more: `api`.",
            "Kept by the customer: their account, and the audit records in their bucket.",
            "Kept by you: the app, its versions, builds and releases.",
        ] {
            assert!(text.contains(part), "{text}");
        }
    }

    #[test]
    fn only_the_installs_name_confirms() {
        let forget = |confirm: &str| Forget {
            install: "globex".parse().unwrap(),
            customer_gone: false,
            confirm: Some(confirm.to_owned()),
            no_wait: false,
        };

        let refused = forget("globe").confirmed(&view()).unwrap_err().to_string();

        assert!(forget("globex").confirmed(&view()).is_ok());
        assert!(refused.contains("nothing was removed, because `globe` is not the install's name; run"), "{refused}");
    }

    #[test]
    fn the_stack_that_may_be_left_is_named_with_its_place() {
        let started = ForgetStarted {
            install: "globex".parse().unwrap(),
            account: "222222222222".parse().unwrap(),
            region: "eu-west-1".into(),
            stack_name: "freehold-acme--globex".into(),
            since: Timestamp::default(),
        };

        insta::assert_snapshot!(render(&started, true), @r"
        install `globex` is forgotten; nothing of it is left in the tenant, and its name is free again
        if the customer has not deleted stack `freehold-acme--globex` in account 222222222222, region eu-west-1, ask them to delete it
        ");
    }
}
