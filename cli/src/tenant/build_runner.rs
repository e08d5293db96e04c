//! `freehold tenant build-runner`: the enrolment secret, the registered key, the config file.

use std::collections::BTreeMap;

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
use crate::api::stack_name;
use crate::cloudformation::Stacks;
use crate::context::Context;
use crate::error::{Error, Result, ResultExt};
use crate::runner_config::{Enrolment, RunnerConfig};

impl BuildRunner {
    pub(super) async fn run(&self, context: &Context) -> Result<()> {
        let tenant = context.tenant(self.name.as_ref())?;
        let install: InstallId = "build".parse().map_err(|e| Error::internal(format!("{e}")))?;
        let config = context.config().await?;
        let name = stack_name(&tenant);
        let stack = Stacks::new(&config).find(&name).await?.ok_or_else(|| {
            Error::not_found(format!("there is no stack `{name}`; run `freehold tenant deploy --name {tenant}` first"))
        })?;
        let api = context.api_of(&tenant, &config).await?;
        let view: TenantView = api.get(&["v1", "tenant"]).await?;
        if view.tenant != tenant {
            return Err(Error::invalid(format!(
                "the API at {} is of tenant `{}`, not `{tenant}`",
                api.base(),
                view.tenant
            )));
        }
        let (arn, secret) = stored_secret(&config, &tenant).await?;
        let key = enrolment_key(&tenant, &install, &secret).verifying_key().into();
        let _: Value = api.post(&["v1", "build-runner"], &EnrolBuildRunnerRequest { enrolment_key: key }).await?;
        let enrolment = match &self.secret_file {
            None => Enrolment::Arn(arn.clone()),
            Some(path) => {
                crate::secret::replace(path, &secret)?;
                Enrolment::File(path.clone())
            }
        };
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
            inputs: BTreeMap::new(),
            accepted_contract: None,
        };
        runner.write(&self.machine, &self.out)?;
        let role = stack.output("BuildRoleArn")?;
        let out = self.out.display();
        let value = json!({ "config": self.out, "role": role, "secret": arn });
        context.out.show(&value, |_| {
            format!(
                "the build runner of tenant `{tenant}` is registered; its config is in `{out}`\nwith the credentials of {role}:\n  freehold-builder run --config {out}"
            )
        })
    }
}

/// Returns the ARN and the value of the tenant's enrolment secret, which is made when it is not there.
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
