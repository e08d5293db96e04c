//! Decides whether the vendor may forget an install: nothing may run or be deployed there, and its runner must not have
//! reported for [`SILENT_SECS`].

use freehold_protocol::{ComponentName, InstallId, Timestamp, WorkflowId};

use crate::install::Install;

/// The time without a report after which a runner counts as gone, in seconds. A runner that works sends a hello at
/// least once an hour.
pub const SILENT_SECS: u64 = 2 * 3600;

/// The facts about an install that the control plane knows when the vendor asks to forget it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Standing {
    /// The components that are deployed; the sandbox is one of them.
    pub deployed: Vec<ComponentName>,
    /// The workflows that have not ended.
    pub open: Vec<WorkflowId>,
    /// The time of the last report of the runner.
    pub heard: Option<Timestamp>,
    /// Whether the runner has reported that its stack is being deleted, or that it has lost its queue, so that nobody
    /// receives its orders.
    pub cut_off: bool,
}

/// The reason why an install is not forgotten.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ForgetError {
    #[error(
        "`{0}` is the build runner and cannot be forgotten like an install; `freehold install list` shows the installs"
    )]
    Builds(InstallId),
    #[error(
        "install `{install}` cannot be forgotten while workflow `{workflow}` runs; wait for it, or stop it with \
         `freehold workflow cancel {workflow}`{}",
        once_silent(.silent_minutes)
    )]
    Running { install: InstallId, workflow: WorkflowId, silent_minutes: Option<u64> },
    #[error(
        "install `{install}` cannot be forgotten: {parts} deployed there; run `freehold teardown {install}` first, or \
         pass `--customer-gone` to leave the deployed parts in the customer's account"
    )]
    Deployed { install: InstallId, parts: String },
    #[error(
        "install `{install}` cannot be forgotten: its runner reported {minutes} min ago, so the install stack still \
         exists; let the customer delete the stack and try again two hours after the last report, or pass \
         `--customer-gone`"
    )]
    Heard { install: InstallId, minutes: u64 },
}

/// Returns the hint about the time from which `--customer-gone` ends the workflow; empty without `minutes`.
fn once_silent(minutes: &Option<u64>) -> String {
    minutes.map_or_else(String::new, |minutes| {
        format!(
            "; two hours after the last report of the runner, which came {minutes} min ago, `--customer-gone` ends it automatically"
        )
    })
}

/// Checks that `install` may be forgotten. With `customer_gone`, deployed components do not prevent it, nor does an
/// open workflow if the runner no longer reports, or has reported that it has lost its access. An install in which
/// nothing ever ran may always be forgotten.
///
/// # Errors
/// [`ForgetError`] with the first reason against it.
pub fn check_forgettable(
    install: &Install,
    standing: &Standing,
    customer_gone: bool,
    now: Timestamp,
) -> Result<(), ForgetError> {
    let id = || install.id.clone();
    if install.app().is_none() {
        return Err(ForgetError::Builds(id()));
    }
    if install.check_never_ran().is_ok() {
        return Ok(());
    }
    let silent_secs = standing.heard.map_or(u64::MAX, |at| now.since(at) / 1000);
    let is_silent = silent_secs >= SILENT_SECS;
    let is_away = is_silent || standing.cut_off;
    if let Some(workflow) = standing.open.first().filter(|_| !(customer_gone && is_away)) {
        let silent_minutes = customer_gone.then_some(silent_secs / 60);
        return Err(ForgetError::Running { install: id(), workflow: workflow.clone(), silent_minutes });
    }
    if customer_gone {
        return Ok(());
    }
    if !standing.deployed.is_empty() {
        return Err(ForgetError::Deployed { install: id(), parts: parts(&standing.deployed) });
    }
    if !is_silent {
        return Err(ForgetError::Heard { install: id(), minutes: silent_secs / 60 });
    }
    Ok(())
}

fn parts(deployed: &[ComponentName]) -> String {
    let names: Vec<String> = deployed.iter().map(|name| format!("`{name}`")).collect();
    let verb = if names.len() == 1 { "is" } else { "are" };
    format!("{} {verb}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use ed25519_dalek::SigningKey;

    use super::*;
    use crate::install::{Runner, Serves};

    const NOW: Timestamp = Timestamp::from_millis(100 * 3_600_000);

    fn install(serves: Serves) -> Install {
        let (id, account) = ("globex".parse().unwrap(), "222222222222".parse().unwrap());
        Install::new(id, serves, account, "eu-west-1".into(), Timestamp::default())
    }

    /// An install whose runner has announced itself.
    fn ran() -> Install {
        let mut install = install(Serves::App { app: "demo".parse().unwrap(), version: None });
        install.runner = Some(Runner {
            public_key: SigningKey::from_bytes(&[1; 32]).verifying_key().into(),
            version: "0.1.0".into(),
            slots: 1,
            host: "i-1".into(),
            since: Timestamp::default(),
            announced_at: Timestamp::default(),
            sealing_key: None,
        });
        install
    }

    fn heard(secs_ago: u64) -> Standing {
        let at = Timestamp::from_millis(NOW.as_millis() - secs_ago * 1000);
        Standing { heard: Some(at), ..Standing::default() }
    }

    fn refusal(standing: &Standing, customer_gone: bool) -> Option<String> {
        check_forgettable(&ran(), standing, customer_gone, NOW).err().map(|error| error.to_string())
    }

    #[test]
    fn an_empty_install_with_a_silent_runner_is_forgotten() {
        assert_eq!(refusal(&heard(SILENT_SECS), false), None);
        assert_eq!(refusal(&Standing::default(), false), None);
    }

    #[test]
    fn what_is_deployed_is_named_and_stays_with_a_customer_who_is_gone() {
        let parts = ["api", "sandbox"].map(|name| name.parse().unwrap()).to_vec();
        let standing = Standing { deployed: parts, ..heard(SILENT_SECS) };

        let refused = refusal(&standing, false).unwrap();

        assert!(
            refused.contains("`api`, `sandbox` are deployed there; run `freehold teardown globex` first"),
            "{refused}"
        );
        assert_eq!(refusal(&standing, true), None);
    }

    #[test]
    fn a_runner_that_was_heard_means_that_the_stack_is_there() {
        let refused = refusal(&heard(SILENT_SECS - 60), false).unwrap();

        assert!(refused.contains("its runner reported 119 min ago"), "{refused}");
        assert_eq!(refusal(&heard(60), true), None);
    }

    #[test]
    fn a_running_workflow_of_a_living_runner_is_in_the_way_even_if_the_vendor_says_that_the_customer_is_gone() {
        let workflow = WorkflowId::derive("globex", "deploy");
        let running = |secs| Standing { open: vec![workflow.clone()], ..heard(secs) };

        let refused = refusal(&running(60), true).unwrap();

        let cancel =
            format!("`freehold workflow cancel {workflow}`; two hours after the last report of the runner, which");
        assert!(refused.contains(&cancel) && refused.contains("came 1 min ago"), "{refused}");
        assert!(refusal(&running(SILENT_SECS), false).is_some());
        assert_eq!(refusal(&running(SILENT_SECS), true), None);
    }

    #[test]
    fn a_workflow_that_waits_for_a_runner_which_said_that_its_stack_is_deleted_is_not_in_the_way_of_a_customer_who_is_gone()
     {
        let open = vec![WorkflowId::derive("globex", "deploy")];
        let cut_off = Standing { open, cut_off: true, ..heard(60) };

        assert_eq!(refusal(&cut_off, true), None);
        assert!(refusal(&cut_off, false).is_some(), "the vendor has not said that the customer is gone");
    }

    #[test]
    fn an_install_in_which_nothing_ran_is_forgotten_and_the_build_runner_never() {
        let waiting = Standing { open: vec![WorkflowId::derive("globex", "provision")], ..Standing::default() };
        let app = install(Serves::App { app: "demo".parse().unwrap(), version: None });

        assert_eq!(check_forgettable(&app, &waiting, false, NOW), Ok(()));
        let builds = check_forgettable(&install(Serves::Builds), &Standing::default(), true, NOW);
        assert!(matches!(builds, Err(ForgetError::Builds(_))));
    }
}
