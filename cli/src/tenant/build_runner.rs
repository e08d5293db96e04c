//! `freehold tenant build-runner`: makes the enrolment secret, registers its key, and writes the config file.

use std::collections::BTreeMap;
use std::path::Path;

use aws_config::SdkConfig;
use aws_sdk_secretsmanager::Client;
use aws_sdk_secretsmanager::error::ProvideErrorMetadata;
use aws_sdk_secretsmanager::types::Tag;
use freehold_protocol::api::{EnrolBuildRunnerRequest, TenantView};
use freehold_protocol::envelope::enrolment_key;
use freehold_protocol::{InstallId, TenantName};
use serde_json::{Value, json};

use super::BuildRunner;
use super::names::{TENANT_TAG, enrolment_secret};
use crate::api::tenant_stack;
use crate::context::Context;
use crate::error::{Error, Result, ResultExt};
use crate::runner_config::{Enrolment, Former, RunnerConfig};

impl BuildRunner {
    pub(super) async fn run(&self, context: &Context) -> Result<()> {
        let tenant = context.tenant(self.name.as_ref())?;
        let install: InstallId = "build".parse().map_err(|e| Error::internal(format!("{e}")))?;
        let config = context.config().await?;
        let stack = tenant_stack(&config, &tenant).await?;
        let api = context.api_of(&tenant, &config).await?;
        let view: TenantView = api.get(&["v1", "tenant"]).await?;
        if view.tenant != tenant {
            return Err(Error::invalid(format!(
                "the API at {} is of tenant `{}`, not `{tenant}`; correct `--api` or `--name`",
                api.base(),
                view.tenant
            )));
        }
        let (arn, secret) = stored_secret(&config, &tenant).await?;
        let key = enrolment_key(&tenant, &install, &secret).verifying_key().into();
        let enrolment = self.secret_file.clone().map_or_else(|| Enrolment::Arn(arn.clone()), Enrolment::File);
        let runner = RunnerConfig {
            tenant: tenant.clone(),
            install,
            region: crate::aws::region(&config),
            orders_queue_url: stack.output("BuildQueueUrl")?.to_owned(),
            reports_queue_url: view.reports_queue_url,
            tenant_key: view.tenant_key,
            enrolment,
            repository: stack.output("RepositoryName")?.to_owned(),
            bucket: stack.output("DeployBucket")?.to_owned(),
            modes: BTreeMap::new(),
            roles: BTreeMap::new(),
            boundary: None,
            inputs: BTreeMap::new(),
            outputs: BTreeMap::new(),
            app_secrets: Vec::new(),
            accepted_contract: None,
        };
        let former = if self.force { Former::of(&runner, &self.out)? } else { Former::default() };
        let text = runner.to_toml(&self.machine, &former)?;
        crate::file::may_create(&self.out, &text, self.force)?;
        let _: Value = api.post(&["v1", "build-runner"], &EnrolBuildRunnerRequest { enrolment_key: key }).await?;
        if let Some(path) = &self.secret_file {
            crate::secret::create(path, &secret, self.force)?;
        }
        crate::file::create(&self.out, &text, self.force)?;
        let role = stack.output("BuildRoleArn")?;
        let principal = stack.parameters.get("BuildRunnerPrincipal").filter(|arn| !arn.is_empty());
        let group = stack.outputs.get("BuildGroupName");
        let value = json!({ "config": self.out, "role": role, "principal": principal, "secret": arn, "group": group });
        context.out.show(&value, |_| registered(&tenant, &self.out, role, (principal, group)))
    }
}

/// Returns the text for people. A `group` starts a machine for the build runner; without one, the vendor starts it.
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
                role.rsplit('/').next().unwrap_or(role)
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

/// Returns the ARN and the value of the tenant's enrolment secret. Creates the secret when it does not exist.
async fn stored_secret(config: &SdkConfig, tenant: &TenantName) -> Result<(String, String)> {
    let client = Client::new(config);
    let name = enrolment_secret(tenant);
    let tag = Tag::builder().key(TENANT_TAG).value(tenant.as_str()).build();
    let create = client.create_secret().name(&name).secret_string(crate::secret::new_secret()?).tags(tag);
    let create = create.description(format!("Freehold tenant {tenant}: enrols the build runner"));
    match create.send().await {
        Ok(_) => {}
        Err(error) if error.code() == Some("ResourceExistsException") => {}
        Err(error) => drop(Err::<(), _>(error).doing(format!("make secret `{name}`"))?),
    }
    let found = client.get_secret_value().secret_id(&name).send().await.doing(format!("read secret `{name}`"))?;
    match (found.arn(), found.secret_string()) {
        (Some(arn), Some(secret)) => Ok((arn.to_owned(), secret.to_owned())),
        _ => Err(Error::conflict(format!("secret `{name}` holds no text; delete it and run the command again"))),
    }
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
