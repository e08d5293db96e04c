//! `freehold install stack`: prints the template with its SHA-256, or a link to launch it.

use std::path::Path;
use std::time::Duration;

use freehold_client::calls;
use freehold_protocol::Digest;
use freehold_protocol::api::{InstallStack, InstallView, TenantView};
use serde::Serialize;
use serde_json::json;
use similar::TextDiff;
use url::Url;

use super::Stack;
use super::template::{self, Facts};
use crate::api::{Api, until_ready};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::output::{note, print, print_exactly};
use crate::progress::Progress;
use crate::tenant::{Bucket, NO_RUNNER, bucket_name};

/// The lifetime of a link. The link expires earlier when temporary credentials that signed it expire.
const LINK_LIFE: Duration = Duration::from_secs(12 * 60 * 60);

#[derive(Debug, Serialize)]
struct Published {
    #[serde(flatten)]
    stack: InstallStack,
    #[serde(skip_serializing_if = "Option::is_none")]
    link: Option<String>,
}

impl Stack {
    pub(super) async fn run(&self, context: &Context) -> Result<()> {
        let api = context.api().await?;
        let progress = Progress::start();
        let ask = async || api.send(calls::render_stack(&self.install)).await;
        let stack: InstallStack = until_ready(&progress, ask).await?;
        drop(progress);
        check(&stack)?;
        if let Some(other) = &self.diff {
            return self.differing(context, &api, &stack, other.as_deref()).await;
        }
        if let Some(path) = &self.output {
            crate::file::create(path, &stack.template, self.force)?;
        }
        let link = if self.link { Some(self.publish(&api, &stack).await?) } else { None };
        if context.out.is_json() {
            return context.out.show(&Published { stack, link }, |_| String::new());
        }
        match (&self.output, &link) {
            (None, None) => print_exactly(&stack.template),
            (None, Some(_)) => {}
            (Some(path), _) => {
                context.out.line(&format!("template of stack `{}` is in `{}`", stack.stack_name, path.display()));
            }
        }
        note(&format!("SHA-256: {}", stack.digest.hex()));
        for text in for_people(&stack) {
            note(&text);
        }
        if !names_its_runner(&stack.template) {
            note(NO_RUNNER);
        }
        if let Some(link) = link {
            note(
                "The link is for the console of the customer's account. It is valid for 12 hours, or until your AWS credentials expire.",
            );
            print(&link);
        }
        Ok(())
    }

    /// Shows the lines in which the template differs from `file`, or from the template of the deployed version.
    async fn differing(&self, context: &Context, api: &Api, stack: &InstallStack, file: Option<&Path>) -> Result<()> {
        let (from, before) = match file {
            Some(path) => {
                let text = crate::file::read_text(path, template::WAY_OUT)?;
                (path.display().to_string(), text)
            }
            None => {
                let install: InstallView = api.send(calls::show_install(&self.install)).await?;
                let deployed = install.version.ok_or_else(|| {
                    Error::conflict(format!(
                        "nothing is deployed to install `{}` yet; pass `--diff FILE` with a template to compare with",
                        self.install
                    ))
                })?;
                let call = calls::render_stack_of_version(&self.install, &deployed);
                let before: InstallStack = api.send(call).await?;
                check(&before)?;
                (format!("version {}", before.version.short()), before.template)
            }
        };
        let to = format!("version {}", stack.version.short());
        let lines = TextDiff::from_lines(&before, &stack.template);
        let text = lines.unified_diff().context_radius(2).header(&from, &to).to_string();
        let value = json!({ "from": from, "to": to, "equal": text.is_empty(), "diff": text });
        context.out.show_verbatim(&value, |_| {
            if text.is_empty() { "the templates are equal".to_owned() } else { text.clone() }
        })
    }

    async fn publish(&self, api: &Api, stack: &InstallStack) -> Result<String> {
        let tenant: TenantView = api.send(calls::show_tenant()).await?;
        let install: InstallView = api.send(calls::show_install(&self.install)).await?;
        let config = crate::aws::config(Some(&tenant.region)).await?;
        let bucket = Bucket::new(&config, bucket_name(&tenant.tenant, &tenant.account, &tenant.region));
        let key = format!("templates/{}.yaml", stack.digest.hex());
        bucket.put(&key, stack.template.as_bytes()).await?;
        let address = bucket.presign(&key, LINK_LIFE).await?;
        quick_create(&install.region, &stack.stack_name, &address)
    }
}

/// Returns the description of the stack in the app config, for the vendor to send to the customer with the template.
fn for_people(stack: &InstallStack) -> impl Iterator<Item = String> {
    let line = |what: &str, text: &str| (!text.is_empty()).then(|| format!("{what}: {text}"));
    [line("name for people", &stack.title), line("description", &stack.description)].into_iter().flatten()
}

/// Refuses a template whose digest is not the digest that the API returned with it.
fn check(stack: &InstallStack) -> Result<()> {
    let found = Digest::of(stack.template.as_bytes());
    if found == stack.digest {
        return Ok(());
    }
    Err(Error::internal(format!("the template has the digest {found}, not {}; do not use it", stack.digest)))
}

/// Returns whether the template names the runner program for the stack's machine. Returns false for a template that
/// cannot be parsed.
fn names_its_runner(template: &str) -> bool {
    Facts::of(template).is_ok_and(|facts| facts.default("RunnerSha256").is_some_and(|sha256| !sha256.is_empty()))
}

/// Returns the address of the page in the AWS console that creates the stack (AWS CloudFormation user guide, "Create
/// quick-create links for stacks").
fn quick_create(region: &str, stack: &str, template: &str) -> Result<String> {
    let mut parameters = Url::parse("https://parameters.invalid").map_err(|e| Error::internal(e.to_string()))?;
    parameters.query_pairs_mut().append_pair("templateURL", template).append_pair("stackName", stack);
    let parameters = parameters.query().unwrap_or_default();
    Ok(format!(
        "https://{region}.console.aws.amazon.com/cloudformation/home?region={region}#/stacks/quickcreate?{parameters}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_without_the_sha_256_of_the_runner_is_noticed() {
        let template = |sha256| format!("Parameters:\n  RunnerSha256:\n    Type: String\n    Default: \"{sha256}\"\n");

        assert!(!names_its_runner(&template("")));
        assert!(names_its_runner(&template(&"0".repeat(64))));
    }

    #[test]
    fn a_quick_create_link_escapes_the_templates_address() {
        let link = quick_create("eu-west-1", "freehold-acme--globex", "https://s3.example/b/t.yaml?sig=a&x=1").unwrap();

        assert_eq!(
            link,
            "https://eu-west-1.console.aws.amazon.com/cloudformation/home?region=eu-west-1#/stacks/quickcreate?templateURL=https%3A%2F%2Fs3.example%2Fb%2Ft.yaml%3Fsig%3Da%26x%3D1&stackName=freehold-acme--globex"
        );
    }
}
