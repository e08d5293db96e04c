//! `freehold teardown`: removes deployed components and the sandbox from a customer's account.

use clap::Args;
use freehold_protocol::api::{TeardownInstallRequest, WorkflowStarted};
use freehold_protocol::{ComponentName, InstallId};

use crate::api::follow;
use crate::confirm;
use crate::context::Context;
use crate::error::Result;

/// Remove from an install everything that is deployed, one component, or the sandbox.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  freehold teardown globex                       all components, then the sandbox; asks first
  freehold teardown globex --component api       api and the components that depend on it
  freehold teardown globex --sandbox             the sandbox, when no component is deployed any more
  freehold teardown globex --destroy-data        also databases, volumes, and buckets with their contents
  freehold teardown globex --confirm globex      for scripts

Each part is planned and then removed; the parts that depend on it are removed before it. Jobs run under the mode
`deprovision`, which the customer switches on with the parameter `EnableDeprovision` of the install stack. Resources that
hold data are removed only with `--destroy-data`. When a failed teardown is started again, it continues where it stopped.

Exit code 1 when the teardown fails. Ctrl-c stops watching; the teardown continues.")]
pub(crate) struct Teardown {
    /// Name of the install.
    install: InstallId,
    /// Remove only this component and the components that depend on it.
    #[arg(long, value_name = "NAME", conflicts_with = "sandbox")]
    component: Option<ComponentName>,
    /// Remove only the sandbox; refused while components are deployed.
    #[arg(long)]
    sandbox: bool,
    /// Also remove resources that hold data, such as databases, file systems, volumes, keys, secrets, and buckets with
    /// `force_destroy`.
    #[arg(long)]
    destroy_data: bool,
    /// The role to run under, instead of the role that the app config chooses: a mode such as `deprovision`, or the key
    /// of a role as `freehold contract show` lists it.
    #[arg(long, value_name = "ROLE")]
    role: Option<String>,
    /// The install's name, to confirm without being asked.
    #[arg(long, value_name = "NAME")]
    confirm: Option<String>,
    /// Start the teardown and return at once.
    #[arg(long)]
    no_wait: bool,
}

impl Teardown {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        self.confirmed()?;
        let api = context.api().await?;
        let body = TeardownInstallRequest {
            component: self.component.clone(),
            sandbox: self.sandbox,
            destroy_data: self.destroy_data,
            role: self.role.clone(),
        };
        let path = ["v1", "installs", self.install.as_str(), "teardown"];
        let started: WorkflowStarted = api.post(&path, &body).await?;
        let subject = format!("teardown of `{}`", self.install);
        follow(&api, context.out, &started.workflow, &subject, !self.no_wait).await
    }

    /// Asks for the install's name unless `--confirm` gives it.
    fn confirmed(&self) -> Result<()> {
        let consequences = format!("This removes {} from the account of install `{}`.", self.what(), self.install);
        confirm::install(&self.install, self.confirm.as_deref(), &consequences)
    }

    fn what(&self) -> String {
        let what = match (&self.component, self.sandbox) {
            (Some(component), _) => format!("component `{component}` and the components that depend on it"),
            (None, true) => "the sandbox".to_owned(),
            (None, false) => "everything that was deployed".to_owned(),
        };
        if self.destroy_data { format!("{what}, with the data in it,") } else { what }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn teardown(confirm: &str) -> Teardown {
        Teardown {
            install: "globex".parse().unwrap(),
            component: None,
            sandbox: false,
            destroy_data: true,
            role: None,
            confirm: Some(confirm.to_owned()),
            no_wait: false,
        }
    }

    #[test]
    fn only_the_installs_name_confirms() {
        let refused = teardown("globe").confirmed().unwrap_err().to_string();

        assert!(teardown("globex").confirmed().is_ok());
        assert!(refused.contains("nothing was removed, because `globe` is not the install's name; run"), "{refused}");
        assert_eq!(teardown("").what(), "everything that was deployed, with the data in it,");
    }
}
