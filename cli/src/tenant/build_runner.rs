//! `freehold tenant build-runner`: registers the build runner and writes its config file.

use std::collections::BTreeMap;
use std::path::Path;

use freehold_client::calls;
use freehold_protocol::api::TenantView;
use freehold_protocol::{InstallId, TenantName, names};
use serde_json::json;

use super::BuildRunner;
use crate::api::tenant_stack;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::runner_config_file::{Former, RunnerConfig};

impl BuildRunner {
    pub(super) async fn run(&self, context: &Context) -> Result<()> {
        let tenant = context.tenant(self.name.as_ref())?;
        let install: InstallId = "build".parse().map_err(|e| Error::internal(format!("{e}")))?;
        let config = context.config().await?;
        let stack = tenant_stack(&config, &tenant).await?;
        let api = context.api_of(&tenant, &config).await?;
        let view: TenantView = api.send(calls::show_tenant()).await?;
        if view.tenant != tenant {
            return Err(Error::invalid(format!(
                "the API at {} belongs to tenant `{}`, not to `{tenant}`; correct `--api` or `--name`",
                api.base(),
                view.tenant
            )));
        }
        let runner = RunnerConfig {
            tenant: tenant.clone(),
            install,
            region: crate::aws::region(&config),
            orders_queue_url: stack.output("BuildQueueUrl")?.to_owned(),
            reports_queue_url: view.reports_queue_url,
            tenant_key: view.tenant_key,
            tenant_second_key: None,
            repository: stack.output("RepositoryName")?.to_owned(),
            bucket: stack.output("DeployBucket")?.to_owned(),
            modes: BTreeMap::new(),
            roles: BTreeMap::new(),
            boundary: None,
            cluster_images: None,
            audit_lock: None,
            policies: None,
            release_key: None,
            inputs: BTreeMap::new(),
            outputs: BTreeMap::new(),
            app_secrets: Vec::new(),
            accepted_contract: None,
        };
        let former = if self.force { Former::of(&runner, &self.out)? } else { Former::default() };
        let text = runner.to_toml(&self.machine, &former)?;
        crate::file::may_create(&self.out, &text, self.force)?;
        let _: TenantView = api.send(calls::enrol_build_runner()).await?;
        crate::file::create(&self.out, &text, self.force)?;
        let role = stack.output("BuildRoleArn")?;
        let principal = stack.parameters.get("BuildRunnerPrincipal").filter(|arn| !arn.is_empty());
        let group = stack.outputs.get("BuildGroupName");
        let value = json!({ "config": self.out, "role": role, "principal": principal, "group": group });
        context.out.show(&value, |_| registered(&tenant, &self.out, role, (principal, group)))
    }
}

/// Returns the text for people. With a `group`, a build starts a machine for the build runner; without a `group`, the
/// vendor starts the build runner.
fn registered(
    tenant: &TenantName,
    out: &Path,
    role: &str,
    (principal, group): (Option<&String>, Option<&String>),
) -> String {
    let out = out.display();
    if let Some(group) = group {
        return format!(
            "the build runner of tenant `{tenant}` is registered\n\
             nothing has to be started: a build starts a machine in the group `{group}`, with the config of the stack \
             (`{out}` is for a machine of yours)"
        );
    }
    let who = principal.map_or_else(
        || {
            format!(
                "an EC2 instance with the instance profile `{}` has that role; for any other machine, name who may \
                 assume the role:\n  \
                 freehold tenant deploy --name {tenant} --build-runner-principal ARN",
                names::name_of_arn(role)
            )
        },
        |arn| {
            format!("EC2 instances with that role's instance profile and `{arn}` may assume the role (sts:AssumeRole)")
        },
    );
    format!(
        "the build runner of tenant `{tenant}` is registered; its config is in `{out}`\n\
         run the build runner with the credentials of {role}:\n  freehold-builder run --config {out}\n{who}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_may_take_the_build_runners_role_is_said() {
        let (tenant, out) = ("acme".parse().unwrap(), Path::new("build-runner.toml"));
        let role = "arn:aws:iam::111111111111:role/fh-acme--build-runner";

        insta::assert_snapshot!(registered(&tenant, out, role, (None, None)), @r"
        the build runner of tenant `acme` is registered; its config is in `build-runner.toml`
        run the build runner with the credentials of arn:aws:iam::111111111111:role/fh-acme--build-runner:
          freehold-builder run --config build-runner.toml
        an EC2 instance with the instance profile `fh-acme--build-runner` has that role; for any other machine, name who may assume the role:
          freehold tenant deploy --name acme --build-runner-principal ARN
        ");
        let group = Some(&"fh-acme--build-runner".to_owned());
        insta::assert_snapshot!(registered(&tenant, out, role, (None, group)), @r"
        the build runner of tenant `acme` is registered
        nothing has to be started: a build starts a machine in the group `fh-acme--build-runner`, with the config of the stack (`build-runner.toml` is for a machine of yours)
        ");
        let principal = Some(&"arn:aws:iam::111111111111:role/ci".to_owned());
        insta::assert_snapshot!(registered(&tenant, out, role, (principal, None)), @r"
        the build runner of tenant `acme` is registered; its config is in `build-runner.toml`
        run the build runner with the credentials of arn:aws:iam::111111111111:role/fh-acme--build-runner:
          freehold-builder run --config build-runner.toml
        EC2 instances with that role's instance profile and `arn:aws:iam::111111111111:role/ci` may assume the role (sts:AssumeRole)
        ");
    }
}
