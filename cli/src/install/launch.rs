//! `freehold install launch`: the customer makes or updates the install stack.

use std::collections::BTreeMap;

use aws_config::SdkConfig;
use freehold_protocol::Digest;
use serde_json::json;

use super::{Launch, stack_name};
use crate::cloudformation::{Change, Outcome, Stacks, Template};
use crate::context::Context;
use crate::error::{Error, Result, ResultExt};
use crate::output::Table;
use crate::progress::Progress;
use crate::tenant::Bucket;

/// The stack parameter with the enrolment secret.
const SECRET: &str = "EnrolmentSecret";
/// The largest template that a request carries, in bytes (AWS CloudFormation quotas, "Template body size in a request").
const MOST_IN_A_REQUEST: usize = 51_200;
/// The stack parameter, and output, with the contract that the customer agrees to.
pub(super) const ACCEPTED: &str = "AcceptedContract";

impl Launch {
    pub(super) async fn run(&self, context: &Context) -> Result<()> {
        let template = self.checked_template()?;
        let name = stack_name(&self.install);
        let config = context.config().await?;
        let stacks = Stacks::new(&config);
        let mut parameters = self.parameters()?;
        // An update would keep the consent to what was launched before.
        if let Some(offered) = offered(&template) {
            parameters.entry(ACCEPTED.to_owned()).or_insert(offered);
        }
        let accepted = parameters.get(ACCEPTED).cloned();
        if !parameters.contains_key(SECRET) && stacks.find(&name).await?.is_none() {
            return Err(Error::invalid("the first launch needs the enrolment secret; pass `--secret-file FILE`"));
        }
        let template = self.handed_over(&config, template).await?;
        let change = Change { stack: name.clone(), template, parameters, tags: BTreeMap::new() };
        let progress = Progress::start();
        let (outcome, stack) = stacks.apply(&change, &progress).await?;
        drop(progress);
        let state = match outcome {
            Outcome::Created => "is launched",
            Outcome::Updated => "is updated",
            Outcome::Unchanged => "is up to date",
        };
        let value = json!({ "stack": name, "changed": outcome != Outcome::Unchanged, "outputs": stack.outputs });
        context.out.show(&value, |_| {
            let mut table = Table::new(&["OUTPUT", "VALUE"]);
            for (key, value) in &stack.outputs {
                table.row([key.clone(), value.clone()]);
            }
            let install = &self.install;
            let consent = accepted.map(|digest| format!("\nagreed to the contract {digest}")).unwrap_or_default();
            format!(
                "{}\n\nstack `{name}` {state}{consent}\nnext: freehold install runner-config {install}",
                context.out.table(&table)
            )
        })
    }

    fn checked_template(&self) -> Result<String> {
        let path = self.template.display();
        let template = std::fs::read_to_string(&self.template).doing(format!("read the template `{path}`"))?;
        let found = Digest::of(template.as_bytes());
        match &self.digest {
            Some(wanted) if *wanted != found => Err(Error::invalid(format!(
                "`{path}` has the digest {found}, not {wanted}; ask the vendor for the right template"
            ))),
            Some(_) | None => Ok(template),
        }
    }

    /// Returns the template as CloudFormation takes it: a large one from the bucket.
    async fn handed_over(&self, config: &SdkConfig, template: String) -> Result<Template> {
        match &self.template_bucket {
            Some(name) => {
                let bucket = Bucket::new(config, name.clone());
                let key = format!("freehold/{}.yaml", Digest::of(template.as_bytes()).hex());
                bucket.put(&key, template.as_bytes()).await?;
                Ok(Template::Object { address: bucket.address(&key).await?, body: template })
            }
            None if template.len() > MOST_IN_A_REQUEST => Err(Error::invalid(format!(
                "the template has {} bytes, and CloudFormation takes more than {MOST_IN_A_REQUEST} from S3 only; pass \
                 `--template-bucket` with a bucket of this account",
                template.len()
            ))),
            None => Ok(Template::Body(template)),
        }
    }

    fn parameters(&self) -> Result<BTreeMap<String, String>> {
        let mut all = BTreeMap::new();
        if let Some(path) = &self.secret_file {
            all.insert(SECRET.to_owned(), crate::secret::read(path)?);
        }
        for one in &self.parameters {
            if all.insert(one.name.clone(), one.value.clone()).is_some() {
                return Err(Error::invalid(format!("parameter `{}` is given twice; give it once", one.name)));
            }
        }
        Ok(all)
    }
}

/// Returns the contract that a template asks consent to: the default of its parameter.
fn offered(template: &str) -> Option<String> {
    let mut lines = template.lines().skip_while(|line| line.trim_end() != format!("  {ACCEPTED}:")).skip(1);
    let default = lines
        .by_ref()
        .take_while(|line| line.starts_with("    "))
        .find_map(|line| line.strip_prefix("    Default: "))?;
    Some(default.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_contract_of_a_template_is_its_parameters_default() {
        let template = "Parameters:\n  EnrolmentSecret:\n    Default: no\n  AcceptedContract:\n    Type: String\n    \
                        Description: >-\n      which\n    Default: sha256:abc\n  Other:\n    Default: x\n";

        assert_eq!(offered(template).as_deref(), Some("sha256:abc"));
        assert_eq!(offered(&template.replace("    Default: sha256:abc\n", "")), None);
        assert_eq!(offered("Parameters: {}\n"), None);
    }
}
