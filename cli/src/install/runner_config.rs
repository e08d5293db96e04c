//! `freehold install runner-config`: writes a runner's config file from the outputs of the launched stack.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::PathBuf;
use std::str::FromStr;

use aws_config::SdkConfig;
use freehold_protocol::app_version::NETWORK_OUTPUTS;
use freehold_protocol::{Digest, InstallId, TenantName, names};
use serde_json::json;

use super::RunnerConfig as Command;
use crate::cloudformation::{ACCEPTED_CONTRACT, Stack, Stacks};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::policy::Policies;
use crate::runner_config_file::RunnerConfig;

/// The modes, and the stack outputs with their roles. The runner checks whether a mode is on when it assumes the role.
const MODES: [(&str, &str); 3] =
    [("provision", "ProvisionRoleArn"), ("maintenance", "MaintenanceRoleArn"), ("deprovision", "DeprovisionRoleArn")];

impl Command {
    pub(super) async fn run(&self, context: &Context) -> Result<()> {
        let path = self.out.clone().unwrap_or_else(|| PathBuf::from(format!("{}-runner.toml", self.install)));
        let config = context.config().await?;
        let stack = install_stack(context, &config, &self.install).await?;
        let runner = RunnerConfig {
            tenant: parsed(&stack, "TenantName")?,
            install: parsed(&stack, "InstallName")?,
            region: crate::aws::region(&config),
            orders_queue_url: stack.output("OrdersQueueUrl")?.to_owned(),
            reports_queue_url: stack.output("ReportsQueueUrl")?.to_owned(),
            tenant_key: parsed(&stack, "TenantKey")?,
            tenant_second_key: stack.outputs.get("TenantSecondKey").cloned(),
            repository: stack.output("RepositoryName")?.to_owned(),
            bucket: stack.output("BucketName")?.to_owned(),
            modes: modes(&stack),
            roles: named_roles(&stack, &parsed(&stack, "TenantName")?, &self.install),
            boundary: stack.outputs.get("BoundaryArn").cloned(),
            cluster_images: stack.outputs.get("ClusterImages").cloned(),
            audit_lock: audit_lock(&stack),
            policies: Policies::of(&stack.outputs),
            release_key: stack.outputs.get("RunnerReleaseKey").cloned(),
            inputs: answers(&stack),
            outputs: network(&stack),
            app_secrets: app_secrets(&stack),
            accepted_contract: accepted(&stack)?,
        };
        runner.write(&self.machine, &path, self.force)?;
        let role = stack.output("RunnerRoleArn")?;
        let out = path.display();
        context.out.show(&json!({ "config": path, "role": role }), |_| {
            format!(
                "the runner's config is in `{out}`\nrun the runner with the credentials of {role}:\n  \
                     freehold-runner run --config {out}"
            )
        })
    }
}

/// Returns the mode and the days of the lock of audit records, or `None` for a stack of an earlier release.
fn audit_lock(stack: &Stack) -> Option<String> {
    Some(format!("{} {}", stack.outputs.get("AuditLock")?, stack.outputs.get("AuditLockDays")?))
}

/// Returns the stack of the install of the vendor that `--tenant` names. Without `--tenant`, only one vendor may have
/// an install of this name in the account.
async fn install_stack(context: &Context, config: &SdkConfig, install: &InstallId) -> Result<Stack> {
    let stacks = Stacks::new(config);
    let name = match context.named_tenant()? {
        Some(tenant) => Some(names::install_stack(&tenant, install)),
        None => only_one(install, stacks.names().await?.there)?,
    };
    if let Some(name) = &name
        && let Some(stack) = stacks.find(name).await?
    {
        return Ok(stack);
    }
    let name = name.unwrap_or_else(|| format!("freehold-...--{install}"));
    let place = crate::aws::place(config).await?;
    Err(Error::not_found(format!("there is no stack `{name}` in {place}"))
        .or(format!(
            "check AWS_PROFILE and the region (`--aws-region`, or else AWS_REGION), or run `freehold install launch {install} \
             --template FILE` first"
        )))
}

/// Returns the name of the install's stack among `stacks`, if there is one. Returns an error if several vendors have an
/// install of this name.
fn only_one(install: &InstallId, stacks: Vec<String>) -> Result<Option<String>> {
    let tenant = |stack: &str| {
        let (tenant, found) = stack.strip_prefix("freehold-")?.split_once("--")?;
        (found == install.as_str()).then(|| tenant.to_owned())
    };
    let tenants: Vec<String> = stacks.iter().filter_map(|stack| tenant(stack)).collect();
    match tenants.as_slice() {
        [] => Ok(None),
        [tenant] => Ok(Some(format!("freehold-{tenant}--{install}"))),
        several => Err(Error::invalid(format!(
            "vendors {} have an install `{install}` in this account; choose one with `--tenant`",
            several.iter().map(|tenant| format!("`{tenant}`")).collect::<Vec<_>>().join(" and ")
        ))),
    }
}

fn modes(stack: &Stack) -> BTreeMap<String, String> {
    let role = |output: &str| stack.outputs.get(output).filter(|arn| !arn.is_empty()).cloned();
    MODES.iter().filter_map(|(mode, output)| Some(((*mode).to_owned(), role(output)?))).collect()
}

/// Returns the ARNs of the custom and break-glass roles that the app config defines, by the last part of the role's
/// name.
fn named_roles(stack: &Stack, tenant: &TenantName, install: &InstallId) -> BTreeMap<String, String> {
    let ours = format!(":role/{}", names::install_part(tenant, install, ""));
    let key = |arn: &String| arn.split_once(&ours).map(|(_, key)| key.to_owned());
    let outputs = stack.outputs.iter().filter(|(name, _)| name.ends_with("RoleArn"));
    let named = outputs.filter_map(|(_, arn)| Some((key(arn)?, arn.clone())));
    named.filter(|(key, _)| key.starts_with("custom") || key.starts_with("break-glass")).collect()
}

/// Returns the contract that the customer agreed to, or nothing for a stack without the output [`ACCEPTED_CONTRACT`].
fn accepted(stack: &Stack) -> Result<Option<Digest>> {
    if stack.outputs.contains_key(ACCEPTED_CONTRACT) { parsed(stack, ACCEPTED_CONTRACT).map(Some) } else { Ok(None) }
}

/// Returns the names of the app's secrets.
fn app_secrets(stack: &Stack) -> Vec<String> {
    let names = stack.outputs.get("AppSecrets").map(String::as_str).unwrap_or_default();
    names.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// Returns the values that the customer gave for inputs: the outputs that have the same name as a parameter.
fn answers(stack: &Stack) -> BTreeMap<String, String> {
    let asked = |name: &String| name.starts_with("Input") && stack.parameters.contains_key(name);
    stack.outputs.iter().filter(|(name, _)| asked(name)).map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Returns the stack's outputs about its network.
fn network(stack: &Stack) -> BTreeMap<String, String> {
    let found = NETWORK_OUTPUTS.iter().filter_map(|(key, output)| Some((*key, stack.outputs.get(*output)?)));
    found.filter(|(_, text)| !text.is_empty()).map(|(key, text)| (key.to_owned(), text.clone())).collect()
}

fn parsed<T: FromStr<Err: Display>>(stack: &Stack, key: &str) -> Result<T> {
    let text = stack.output(key)?;
    text.parse().map_err(|e| {
        Error::invalid(format!(
            "output `{key}` of stack `{}` is not valid: {e}; launch the current template of the vendor again",
            stack.name
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stack_of_an_install_is_found_by_its_name_unless_two_vendors_have_one() {
        let install: InstallId = "globex".parse().unwrap();
        let find = |names: &[&str]| only_one(&install, names.iter().map(|name| (*name).to_owned()).collect());

        assert_eq!(find(&["freehold-globex", "freehold-acme--globex-2", "acme--globex--queue"]).unwrap(), None);
        assert_eq!(find(&["freehold-acme--globex"]).unwrap().as_deref(), Some("freehold-acme--globex"));
        assert_eq!(
            find(&["freehold-acme--globex", "freehold-initech--globex"]).unwrap_err().to_string(),
            "vendors `acme` and `initech` have an install `globex` in this account; choose one with `--tenant`"
        );
    }
}
