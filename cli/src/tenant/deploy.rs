//! `freehold tenant deploy`: uploads code and definitions, applies the stack, and verifies the result.

use std::collections::BTreeMap;

use aws_config::SdkConfig;
use freehold_protocol::{AccountId, Digest, TenantName};
use serde_json::json;

use super::concurrency::{self, Reserves};
use super::names::{DEFINITIONS, NO_RUNNER, TEMPLATE, TENANT_TAG, bucket_name, code_parameter};
use super::{Architecture, Bucket, Deploy, build_machine, code, functions_directory, table_settings};
use crate::api::stack_name;
use crate::aws::Caller;
use crate::cloudformation::{Change, Outcome, Stack, Stacks, Template};
use crate::context::Context;
use crate::error::{Error, Kind, Result};
use crate::output::note;
use crate::progress::{Progress, or_stopped};

/// An object of the deploy bucket and the stack parameter that names it.
struct Object<'a> {
    key: String,
    bytes: &'a [u8],
    parameter: Option<String>,
}

impl Deploy {
    pub(super) async fn run(&self, context: &Context) -> Result<()> {
        let tenant = context.tenant(self.name.as_ref())?;
        let issuers = [
            (("--people-issuer", &self.people_issuer), ("--people-client-id", &self.people_client_id)),
            (("--pipeline-issuer", &self.pipeline_issuer), ("--pipeline-audience", &self.pipeline_audience)),
        ];
        issuers.into_iter().try_for_each(|(issuer, audience)| together(issuer, audience))?;
        let stopped = format!(
            "stopped; an update of stack `{}` that has begun continues; run the command again, which waits for it and does the rest",
            stack_name(&tenant)
        );
        or_stopped(self.deploy(tenant, context), stopped).await
    }

    async fn deploy(&self, tenant: TenantName, context: &Context) -> Result<()> {
        let code = functions_directory::code(self.functions.as_deref())?;
        let architecture = code::architecture(&code, self.architecture)?;
        let config = context.config().await?;
        let progress = Progress::start();
        progress.now("asking AWS who you are");
        let Caller { account, arn } = crate::aws::caller(&config).await?;
        if let Some(arn) = &self.build_runner_principal {
            super::principal::check(arn, &tenant, &account)?;
        }
        let bucket = Bucket::new(&config, bucket_name(&tenant, &account, &crate::aws::region(&config)));
        progress.now(format!("preparing bucket `{}`", bucket.name()));
        let made = bucket.ensure(&tenant).await.map_err(|error| too_weak(error, &arn))?;
        let objects = objects(&code);
        let uploaded = upload(&bucket, &objects, &progress).await.map_err(|error| too_weak(error, &arn))?;
        let template = objects.iter().find(|object| object.parameter.is_none()).map(|object| object.key.as_str());
        let mut parameters = self.parameters(&tenant, &bucket, architecture, &objects);
        let reserves = concurrency::reserves(&config, &stack_name(&tenant)).await;
        let reserves = reserves.map_err(|error| too_weak(error, &arn))?;
        parameters.insert(concurrency::PARAMETER.to_owned(), reserves.as_str().to_owned());
        let change = Change {
            stack: stack_name(&tenant),
            template: Template::Url(bucket.address(template.unwrap_or_default()).await?),
            parameters,
            tags: [(TENANT_TAG.to_owned(), tenant.to_string())].into(),
        };
        let applied = apply(&config, &tenant, &change, &progress).await;
        let (outcome, stack) = applied.map_err(|error| too_weak(error, &arn))?;
        progress.now("checking the table and the functions");
        let mended = table_settings::mend(&config, stack.output("TableName")?).await?;
        code::verify(&config, &tenant, &code).await?;
        drop(progress);
        if stack.parameters.get("RunnerSha256").is_none_or(String::is_empty) {
            note(NO_RUNNER);
        }
        if reserves == Reserves::No {
            note(concurrency::NONE);
        }
        let changed = made || uploaded > 0 || mended || outcome != Outcome::Unchanged;
        show(context, (&tenant, &account), &stack, (outcome, changed))
    }

    fn parameters(
        &self,
        tenant: &TenantName,
        bucket: &Bucket,
        architecture: Architecture,
        objects: &[Object<'_>],
    ) -> BTreeMap<String, String> {
        let fixed = [
            ("TenantName", Some(tenant.to_string())),
            ("DeployBucket", Some(bucket.name().to_owned())),
            ("Architecture", Some(architecture.as_str().to_owned())),
            ("AlarmEmail", self.alarm_email.clone()),
            ("Webhooks", self.webhooks.map(|webhooks| webhooks.as_str().to_owned())),
            ("InstallMetrics", self.install_metrics.map(|metrics| metrics.as_str().to_owned())),
            ("PeopleIssuer", self.people_issuer.clone()),
            ("PeopleClientId", self.people_client_id.clone()),
            ("PeopleSecondFactor", self.people_second_factor.map(|factor| factor.as_str().to_owned())),
            ("PipelineIssuer", self.pipeline_issuer.clone()),
            ("PipelineAudience", self.pipeline_audience.clone()),
            ("ConsoleAddress", self.console.map(|console| console.as_str().to_owned())),
            ("BuildRunnerPrincipal", self.build_runner_principal.clone()),
            ("SourceRoles", (!self.source_roles.is_empty()).then(|| self.source_roles.join(","))),
            (build_machine::SUBNETS, (!self.build_subnets.is_empty()).then(|| self.build_subnets.join(","))),
            ("BuildVpcId", self.build_vpc.clone()),
            ("BuildInstanceType", self.build_instance_type.clone()),
            ("BuildImageId", self.build_image.clone()),
            ("BuildIdleSecs", self.build_idle_secs.map(|secs| secs.to_string())),
            ("BuilderUrl", self.builder_url.as_ref().map(ToString::to_string)),
            ("BuilderSha256", self.builder_sha256.clone()),
            ("RunnerUrl", self.runner_url.as_ref().map(ToString::to_string)),
            ("RunnerSha256", self.runner_sha256.clone()),
            ("RolesBoundary", self.roles_boundary.clone()),
            ("TableKeyArn", self.table_key.clone()),
            ("LogRetentionDays", self.log_retention_days.map(|days| days.to_string())),
        ];
        let keys = objects.iter().filter_map(|object| Some((object.parameter.clone()?, object.key.clone())));
        fixed.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).chain(keys).collect()
    }
}

/// Refuses two options of which one has a value and the other is empty. The parser of arguments lets them be given together
/// only.
fn together(one: (&str, &Option<String>), other: (&str, &Option<String>)) -> Result<()> {
    let is_empty = |value: &Option<String>| value.as_ref().is_none_or(String::is_empty);
    let (empty, full) = match (is_empty(one.1), is_empty(other.1)) {
        (true, false) => (one.0, other.0),
        (false, true) => (other.0, one.0),
        (true, true) | (false, false) => return Ok(()),
    };
    Err(Error::invalid(format!("`{empty}` is empty, and `{full}` is not; give both a value, or leave both empty")))
}

/// Changes the stack. If the change removes the build runner's machine, this function also ends the machine, but only
/// after the update of the stack has succeeded: an update that is rolled back keeps the machine and its group.
async fn apply(
    config: &SdkConfig,
    tenant: &TenantName,
    change: &Change,
    progress: &Progress,
) -> Result<(Outcome, Stack)> {
    let stacks = Stacks::new(config);
    if change.parameters.get(build_machine::SUBNETS).is_none_or(|subnets| !subnets.is_empty()) {
        return stacks.apply(change, progress).await;
    }
    let former = stacks.find(&change.stack).await?;
    let applied = tokio::select! {
        applied = stacks.apply(change, progress) => applied?,
        error = build_machine::remove_in_cleanup(config, tenant, former.as_ref(), progress) => return Err(error),
    };
    build_machine::remove(config, tenant, former.as_ref(), progress).await?;
    Ok(applied)
}

/// Prints what the deploy changed, and after the first one the next steps.
fn show(
    context: &Context,
    (tenant, account): (&TenantName, &AccountId),
    stack: &Stack,
    (outcome, changed): (Outcome, bool),
) -> Result<()> {
    let api = stack.output("ApiUrl")?;
    let state = match (outcome, changed) {
        (Outcome::Created, _) => "is deployed",
        (Outcome::Updated, _) | (Outcome::Unchanged, true) => "is updated",
        (Outcome::Unchanged, false) => "is up to date",
    };
    let next = if outcome == Outcome::Created { next_steps(tenant) } else { Vec::new() };
    let console = stack.outputs.get("ConsoleUrl");
    let value = json!({
        "tenant": tenant, "account": account, "api_url": api, "console_url": console, "changed": changed,
        "stack": stack.name, "next": next,
    });
    context.out.show(&value, |_| {
        let steps = if next.is_empty() { String::new() } else { format!("\n\nnext:\n  {}", next.join("\n  ")) };
        let console = console.map(|url| format!("\nconsole: {url}")).unwrap_or_default();
        format!("tenant `{tenant}` {state}\n{api}{console}{steps}")
    })
}

/// Returns the commands to run after the first deploy of a tenant.
fn next_steps(tenant: &TenantName) -> Vec<String> {
    vec![
        format!("export FREEHOLD_TENANT={tenant}"),
        "freehold tenant build-runner".to_owned(),
        "freehold app init my-app && freehold app sync my-app".to_owned(),
    ]
}

/// Adds two facts to an error about missing permissions: the principal that lacks them, and a role that has them.
fn too_weak(error: Error, arn: &str) -> Error {
    if error.kind() != Kind::Denied {
        return error;
    }
    error
        .within(format!("`{arn}` may not deploy a tenant"))
        .or("use a role with the policy infra/deploy-policy.json, as docs/tenant-role.md describes")
}

/// Returns all objects that the stack is made from: code, definitions and the template.
fn objects(code: &[code::Code]) -> Vec<Object<'_>> {
    let functions = code.iter().map(|one| Object {
        key: one.key(),
        bytes: &one.bytes,
        parameter: Some(code_parameter(one.function)),
    });
    let definitions = DEFINITIONS.iter().map(|definition| Object {
        key: format!("statemachines/{}.json", Digest::of(definition.text.as_bytes()).hex()),
        bytes: definition.text.as_bytes(),
        parameter: Some(definition.parameter.to_owned()),
    });
    // The template is too large for a request, so CloudFormation reads it from the bucket.
    let template = Object {
        key: format!("templates/{}.yaml", Digest::of(TEMPLATE.as_bytes()).hex()),
        bytes: TEMPLATE.as_bytes(),
        parameter: None,
    };
    functions.chain(definitions).chain([template]).collect()
}

/// Uploads missing objects, and then checks that all objects exist. Returns the number of uploads.
async fn upload(bucket: &Bucket, objects: &[Object<'_>], progress: &Progress) -> Result<usize> {
    let mut put = 0;
    for (at, object) in objects.iter().enumerate() {
        let size = crate::output::bytes(object.bytes.len() as u64);
        progress.now(format!("uploading {} of {} ({size})", at + 1, objects.len()));
        put += usize::from(bucket.put(&object.key, object.bytes).await?);
    }
    for object in objects {
        bucket.check(&object.key, object.bytes.len()).await?;
    }
    Ok(put)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_that_may_not_make_the_stack_is_named_with_the_policy_that_suffices() {
        let refused = Error::denied("cannot make a change set: AccessDenied: not authorized; allow the action");

        let error = too_weak(refused, "arn:aws:sts::111111111111:assumed-role/ci/me");

        insta::assert_snapshot!(error, @"`arn:aws:sts::111111111111:assumed-role/ci/me` may not deploy a tenant: cannot make a change set: AccessDenied: not authorized; use a role with the policy infra/deploy-policy.json, as docs/tenant-role.md describes");
    }

    #[test]
    fn an_issuer_and_its_audience_are_given_and_emptied_together() {
        let text = |text: &str| Some(text.to_owned());
        let check = |issuer: Option<String>, audience: Option<String>| {
            together(("--pipeline-issuer", &issuer), ("--pipeline-audience", &audience))
        };

        let half = check(text("https://token.ci.example"), text("")).unwrap_err();

        insta::assert_snapshot!(half, @"`--pipeline-audience` is empty, and `--pipeline-issuer` is not; give both a value, or leave both empty");
        assert!(check(text(""), text("freehold-acme")).is_err());
        for (issuer, audience) in [(None, None), (text(""), text("")), (text("https://a.example"), text("b"))] {
            assert_eq!(check(issuer, audience), Ok(()));
        }
    }

    #[test]
    fn an_error_of_another_kind_is_not_blamed_on_the_role() {
        let throttled = Error::transient("ThrottlingException; try again");

        assert_eq!(too_weak(throttled.clone(), "arn"), throttled);
    }
}
