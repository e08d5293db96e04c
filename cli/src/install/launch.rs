//! `freehold install launch`: creates or updates the install stack in the customer's account.

use std::collections::BTreeMap;

use aws_config::SdkConfig;
use freehold_protocol::{AccountId, Digest, InstallId, names};
use serde_json::json;

use super::template::temporary_bucket::TemporaryBucket;
use super::template::{self, Facts};
use super::{Launch, consent, leftovers, taken_names};
use crate::cloudformation::{Change, Outcome, Stack, Stacks, Template};
use crate::context::Context;
use crate::error::{Error, Kind, Result};
use crate::output::Table;
use crate::progress::{Progress, or_stopped};
use crate::tenant::Bucket;

/// The maximum size of a template inside a request, in bytes (AWS CloudFormation quotas, "Template body size in a
/// request").
const MOST_IN_A_REQUEST: usize = 51_200;

impl Launch {
    pub(super) async fn run(&self, context: &Context) -> Result<()> {
        let template = self.checked_template()?;
        let file = self.template.display().to_string();
        let facts = Facts::of(&template).map_err(|wrong| {
            Error::invalid(format!("`{file}` is not a template: {wrong}; ask the vendor for it again"))
        })?;
        template::check_is_template(&facts, &file)?;
        let mut parameters = self.parameters()?;
        template::check_install(&facts, &file, &self.install)?;
        template::check_parameters(&facts, &file, parameters.keys())?;
        let tenant = template::vendor(&facts, &file)?;
        let name = names::install_stack(&tenant, &self.install);
        let config = context.config().await?;
        let (account, region) = (crate::aws::account(&config).await?, crate::aws::region(&config));
        template::check_place(&facts, &file, &account, &region)?;
        let stacks = Stacks::new(&config);
        let (offered, former) = (consent::offered(&template), stacks.find(&name).await?);
        let none = BTreeMap::new();
        let kept = former.as_ref().and_then(Stack::kept_parameters).unwrap_or(&none);
        template::check_given(&facts, &file, &parameters, kept)?;
        // The consent of a stack that will be replaced does not count. The consent of a stack that is being created
        // counts, because this stack may remain.
        let agreed = former.as_ref().filter(|stack| stack.kept_parameters().is_some() || stack.is_being_created());
        self.add_consent(offered.as_deref(), agreed, &mut parameters)?;
        if former.is_none() {
            leftovers::check(&config, &tenant, &self.install, &account).await?;
            taken_names::check(&config, &tenant, &self.install).await?;
        }
        template::check_values(&facts, &file, &parameters.keys().chain(kept.keys()).collect())?;
        let launched = former.as_ref().map(|_| name.as_str());
        self.check_as_rendered(&template, &file, &stacks, launched).await?;
        // The messages of the rules come from the template. Only in a template that Freehold renders are they texts of
        // Freehold.
        template::check_rules(&facts, &file, &parameters, kept)?;
        let (template, bucket) = self.handed_over(&config, &account, template).await?;
        let change = Change { stack: name.clone(), template, parameters, tags: BTreeMap::new() };
        let progress = Progress::start();
        let stopped = format!(
            "stopped waiting for stack `{name}`, whose launch continues if it has begun; run the command again to wait for it"
        );
        let applied = or_stopped(stacks.apply(&change, &progress), stopped).await;
        if let Some(bucket) = bucket {
            bucket.remove().await;
        }
        let (outcome, stack) = applied?;
        drop(progress);
        self.show(context, &name, (outcome, &stack), (former.as_ref(), agreed))
    }

    /// Refuses a template that Freehold does not render, unless it is the template of the stack `launched`.
    async fn check_as_rendered(
        &self,
        template: &str,
        file: &str,
        stacks: &Stacks,
        launched: Option<&str>,
    ) -> Result<()> {
        if self.unverified {
            return Ok(());
        }
        let Err(wrong) = template::check_as_rendered(template, file, &self.own.all()) else { return Ok(()) };
        // An earlier release of Freehold may have rendered the launched template. Another launch of this template changes
        // parameters only.
        let is_launched = match launched {
            Some(name) => stacks.template(name).await.is_ok_and(|text| text == template),
            None => false,
        };
        if is_launched { Ok(()) } else { Err(wrong) }
    }

    /// Prints what the launch changed, and what to do next. `former` is the stack before the launch, and `agreed` is
    /// that stack if its consent counts.
    fn show(
        &self,
        context: &Context,
        name: &str,
        (outcome, stack): (Outcome, &Stack),
        (former, agreed): (Option<&Stack>, Option<&Stack>),
    ) -> Result<()> {
        let state = match outcome {
            Outcome::Created => "is launched",
            Outcome::Updated => "is updated",
            Outcome::Unchanged => "is up to date",
        };
        let value = json!({ "stack": name, "changed": outcome != Outcome::Unchanged, "outputs": stack.outputs });
        context.out.show(&value, |_| {
            let changed = former.is_none_or(|former| config_of(&former.outputs) != config_of(&stack.outputs));
            let next = next(outcome, &self.install, &stack.parameters, changed);
            let consent = consent::about_consent(agreed, stack);
            let consent = consent.map(|sentence| format!("\n{sentence}")).unwrap_or_default();
            let is_other = former.is_none_or(|former| former.outputs != stack.outputs);
            let outputs = if is_other { outputs(&stack.outputs, context) } else { String::new() };
            format!("{outputs}stack `{name}` {state}{consent}\nnext: {next}")
        })
    }

    fn checked_template(&self) -> Result<String> {
        let path = self.template.display();
        let template = crate::file::read_text(&self.template, template::WAY_OUT)?;
        let found = Digest::of(template.as_bytes());
        match &self.digest {
            Some(wanted) if *wanted != found => Err(Error::invalid(format!(
                "`{path}` has the digest {found}, not {wanted}; ask the vendor for the right template"
            ))),
            Some(_) | None => Ok(template),
        }
    }

    /// Returns the template in the form that CloudFormation accepts. CloudFormation reads a large template only from a
    /// bucket. If the customer names no bucket, this makes a temporary bucket, which the caller removes after the
    /// launch.
    async fn handed_over(
        &self,
        config: &SdkConfig,
        account: &AccountId,
        template: String,
    ) -> Result<(Template, Option<TemporaryBucket>)> {
        let key = format!("freehold/{}.yaml", Digest::of(template.as_bytes()).hex());
        match &self.template_bucket {
            Some(name) => {
                let bucket = Bucket::new(config, name.clone());
                bucket.put(&key, template.as_bytes()).await.map_err(|error| absent_bucket(error, name))?;
                Ok((Template::Object { address: bucket.address(&key).await?, body: template }, None))
            }
            None if template.len() > MOST_IN_A_REQUEST => {
                let made = TemporaryBucket::with(config, account, &key, template.as_bytes()).await;
                let (bucket, address) = made.map_err(|error| no_bucket(error, template.len()))?;
                Ok((Template::Object { address, body: template }, Some(bucket)))
            }
            None => Ok((Template::Body(template), None)),
        }
    }

    fn parameters(&self) -> Result<BTreeMap<String, String>> {
        let mut all = BTreeMap::new();
        for one in &self.parameters {
            if all.insert(one.name.clone(), one.value.clone()).is_some() {
                return Err(Error::invalid(format!("parameter `{}` is given twice; give it once", one.name)));
            }
        }
        Ok(all)
    }
}

/// Returns the error of a launch whose `--template-bucket` cannot be written to.
fn absent_bucket(error: Error, name: &str) -> Error {
    if error.kind() != Kind::NotFound {
        return error.or("pass a bucket that you may write to, or leave `--template-bucket` out");
    }
    Error::not_found(format!("there is no bucket `{name}`, which `--template-bucket` names"))
        .or("pass a bucket of this account, or leave out `--template-bucket`: then the command makes a temporary \
             bucket")
}

/// Returns the error of a launch that cannot make the bucket for a template of this many bytes.
fn no_bucket(error: Error, size: usize) -> Error {
    let why = format!(
        "the template has {size} bytes, and CloudFormation reads more than {MOST_IN_A_REQUEST} only from a bucket"
    );
    error.within(why).or(
        "pass `--template-bucket NAME` with a bucket that you may write to, or launch the template in the CloudFormation console",
    )
}

/// Returns the outputs that are in a runner's config file. The runner reads the rules about changes from the stack itself.
fn config_of(outputs: &BTreeMap<String, String>) -> BTreeMap<&String, &String> {
    outputs.iter().filter(|(name, _)| *name != "Changes").collect()
}

/// Returns the table of the stack's outputs, with an empty line below it.
fn outputs(outputs: &BTreeMap<String, String>, context: &Context) -> String {
    let mut table = Table::new(&["OUTPUT", "VALUE"]);
    for (key, value) in outputs {
        table.row([key.clone(), value.clone()]);
    }
    format!("{}\n\n", context.out.table(&table))
}

/// Returns the user's next step after the launch. The stack's own machine reads the stack's outputs automatically. A
/// runner on another machine reads a config file when it starts, and needs a new file only after the outputs have
/// changed.
fn next(outcome: Outcome, install: &InstallId, parameters: &BTreeMap<String, String>, changed: bool) -> String {
    let is_elsewhere = parameters.get("RunnerPrincipal").is_some_and(|principal| !principal.is_empty());
    match (is_elsewhere, outcome) {
        (false, Outcome::Created) => "nothing; the stack's machine starts the runner within minutes".to_owned(),
        (false, Outcome::Updated | Outcome::Unchanged) => {
            "nothing; parameters such as `EnableProvision` take effect at the next request, and the runner of the stack's \
             machine reads the stack's other values within ten minutes"
                .to_owned()
        }
        (true, Outcome::Created) => format!("freehold install runner-config {install}"),
        (true, _) if changed => format!(
            "freehold install runner-config {install} --force, then start the runner again, because it reads its \
             config only when it starts"
        ),
        (true, Outcome::Updated | Outcome::Unchanged) => "nothing; no output of the stack changed, so the runner's \
             config stays right, and parameters such as `EnableProvision` take effect at the next request"
            .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_that_does_not_exist_is_named_with_the_option() {
        let raw =
            Error::not_found("cannot upload `x` to bucket `nix`: NoSuchBucket: The specified bucket does not exist");

        insta::assert_snapshot!(absent_bucket(raw, "nix"), @"there is no bucket `nix`, which `--template-bucket` names; pass a bucket of this account, or leave out `--template-bucket`: then the command makes a temporary bucket");
        assert_eq!(absent_bucket(Error::denied("x"), "nix").kind(), Kind::Denied);
    }

    #[test]
    fn after_changed_outputs_the_next_step_names_the_restart_of_a_runner_elsewhere() {
        let install = "globex".parse().unwrap();
        let elsewhere = [("RunnerPrincipal".to_owned(), "arn:aws:iam::222222222222:root".to_owned())].into();

        let first = next(Outcome::Created, &install, &elsewhere, true);
        assert_eq!(first, "freehold install runner-config globex");
        let changed = next(Outcome::Updated, &install, &elsewhere, true);
        assert!(changed.starts_with("freehold install runner-config globex --force, then start"), "{changed}");
        assert!(next(Outcome::Updated, &install, &elsewhere, false).starts_with("nothing; "));
        assert!(next(Outcome::Updated, &install, &BTreeMap::new(), true).starts_with("nothing; "));
    }
}
