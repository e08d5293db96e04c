//! `freehold teardown`: removes deployed components and the sandbox from a customer's account.

use clap::Args;
use freehold_client::calls;
use freehold_protocol::api::{InstallView, LeftoversView, TeardownInstallRequest, WorkflowStarted};
use freehold_protocol::order::leftovers::type_and_name;
use freehold_protocol::{ComponentName, InstallId};

use crate::api::follow;
use crate::confirm;
use crate::context::Context;
use crate::error::Result;
use crate::output::{note, plural, time};

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
`deprovision`, which the customer switches on with the parameter `EnableDeprovision` of the install stack. Resources
that contain data are removed only with `--destroy-data`. When a failed teardown is started again, it continues where it
stopped. After a teardown of everything the runner lists what still exists with the install's tag, such as a volume that
was kept. When nothing is deployed any more, the command removes nothing and makes this list again; AWS may list a
resource for some time after its deletion.

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
    /// Also remove resources that contain data, such as databases, file systems, volumes, keys, secrets, and buckets
    /// with `force_destroy`.
    #[arg(long)]
    destroy_data: bool,
    /// The role to run under, instead of the role that the app config chooses: a mode such as `deprovision`, or the key
    /// of a role as `freehold contract show` lists it.
    #[arg(long, value_name = "ROLE")]
    role: Option<String>,
    /// Start also while the customer's change windows are closed. This works only for callers whom the customer has named
    /// (`ChangesNowBy` of the install stack).
    #[arg(long)]
    now: bool,
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
            now: self.now,
        };
        let started: WorkflowStarted = api.send(calls::teardown_install(&self.install, &body)).await?;
        let subject = format!("teardown of `{}`", self.install);
        follow(&api, context.out, &started.workflow, &subject, !self.no_wait).await?;
        if self.no_wait || context.out.is_json() || self.component.is_some() || self.sandbox {
            return Ok(());
        }
        // An error of this list is not the command's result, because everything was removed.
        match api.send(calls::show_install(&self.install)).await {
            Ok(InstallView { leftovers: Some(leftovers), .. }) => context.out.line(&still_there(&leftovers)),
            Ok(_) => {}
            Err(error) => {
                note(&format!("cannot read what is left ({error}); `freehold install show {}` lists it", self.install))
            }
        }
        Ok(())
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

/// Returns the text about what still existed after a teardown: a sentence, and a line for each resource.
pub(crate) fn still_there(leftovers: &LeftoversView) -> String {
    let LeftoversView { at, found, job } = leftovers;
    let at = time(*at);
    let count = found.resources.len() + usize::try_from(found.more).unwrap_or(usize::MAX);
    let mut lines = Vec::new();
    match count {
        0 if found.unknown.is_some() => {}
        0 => lines.push(format!("nothing with the install's tag was left at {at}")),
        _ => lines.push(format!(
            "{} with the install's tag still existed at {at}; AWS may list a resource for some time after its deletion:",
            plural(count, "resource")
        )),
    }
    lines.extend(found.resources.iter().map(|arn| {
        let (kind, name) = type_and_name(arn);
        format!("  {kind} {name}")
    }));
    if found.more > 0 {
        lines.push(format!("  and {} more", found.more));
    }
    if let Some(reason) = &found.unknown {
        lines.push(format!("the list of what still exists is not complete ({job}): {reason}"));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use freehold_protocol::Timestamp;
    use freehold_protocol::order::leftovers::Leftovers;

    use super::*;

    #[test]
    fn what_still_exists_is_told_with_the_time_and_what_is_not_known() {
        let message_of = |found: Leftovers| {
            let at = Timestamp::from_millis(1_795_250_000_000);
            still_there(&LeftoversView { at, job: "job_00000000000000000001".parse().unwrap(), found })
        };
        let arns = ["arn:aws:ec2:eu-west-1:222222222222:volume/vol-1", "arn:aws:sqs:eu-west-1:222222222222:jobs"];
        let some = Leftovers { more: 2, ..Leftovers::of(arns.map(str::to_owned).to_vec()) };
        let denied = Leftovers { unknown: Some("AccessDenied".to_owned()), ..Leftovers::default() };

        let at = time(Timestamp::from_millis(1_795_250_000_000));
        assert_eq!(
            message_of(some),
            format!(
                "4 resources with the install's tag still existed at {at}; AWS may list a resource for some time after its \
                 deletion:\n  ec2 volume vol-1\n  sqs jobs\n  and 2 more"
            )
        );
        assert_eq!(message_of(Leftovers::default()), format!("nothing with the install's tag was left at {at}"));
        assert_eq!(
            message_of(denied),
            "the list of what still exists is not complete (job_00000000000000000001): AccessDenied"
        );
    }

    fn teardown(confirm: &str) -> Teardown {
        Teardown {
            install: "globex".parse().unwrap(),
            component: None,
            sandbox: false,
            destroy_data: true,
            role: None,
            now: false,
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
