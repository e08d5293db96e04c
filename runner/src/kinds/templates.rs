//! Renders the templates of a job. Their values are the tree in the order, the outputs of the install stack, and the tags
//! and labels of the install.

use std::collections::BTreeMap;

use freehold_aws_errors::chain;
use freehold_protocol::app_version::Secret;
use freehold_protocol::order::Work;
use freehold_template::{Error, Limits, RenderErrorKind};
use serde_json::{Value, json};

use crate::identity::{install_values, stack_outputs};
use crate::job::Job;
use crate::job::failure::Failure;

/// The tree of values for one job's templates. Its root has the key `nuon`.
pub(super) struct Templates {
    tree: Value,
    /// The owner of the templates, as messages name it, such as ``component `api` ``.
    owner: String,
    /// A sentence for each secret of the app without a value, which explains how to enter the value. The keys are the
    /// paths in templates.
    empty: BTreeMap<String, String>,
}

impl Templates {
    pub(super) fn of(job: &Job) -> Self {
        let context = job.order.context.clone();
        let mut tree = if context.get("nuon").is_some() { context } else { json!({ "nuon": context }) };
        stack_outputs::add(&mut tree, &job.config);
        install_values::add(&mut tree, &job.order);
        let empty = ways_to_fill(&job.order.secrets, &tree);
        Self { tree, owner: owner(&job.order.work), empty }
    }

    fn failed(&self, what: &str, error: &Error) -> Failure {
        let place = format!("{}, {what}", self.owner);
        let message = chain(error);
        let of_secret = self.empty.iter().find(|(path, _)| message.contains(&format!("`{path}`")));
        match (of_secret, missing_output(error)) {
            (Some((_, way)), _) => Failure::new(format!("{place}: {message}; {way}")),
            (None, Some(output)) => Failure::new(format!("{place}: {message}; {}", stack_outputs::way_out(output))),
            (None, None) => match missing_output_of(error) {
                Some(part) => Failure::new(format!(
                    "{place}: {message}; {part} has no such output, or the output is sensitive and was deployed \
                     before this runner stored sensitive outputs: declare the output, and deploy {part} again"
                )),
                None if lacks_licence(error) => Failure::new(format!(
                    "{place}: {message}; the install has no licence: the vendor sets one with `freehold install \
                     set-licence`, or the template gives another value with the template function `default`"
                )),
                None => Failure::because(&place, error),
            },
        }
    }

    /// Renders `text`. The failure's message names the text by `what`.
    pub(super) fn text(&self, what: &str, text: &str) -> Result<String, Failure> {
        freehold_template::render(text, &self.tree, &Limits::default()).map_err(|error| self.failed(what, &error))
    }

    /// Renders every string in `value`. The failure's message names the value by `what`.
    pub(super) fn value(&self, what: &str, value: &Value) -> Result<Value, Failure> {
        freehold_template::render_value(value, &self.tree, &Limits::default())
            .map_err(|error| self.failed(what, &error))
    }

    /// Renders each value of a map. The failure's message names a value by `what` and its key.
    pub(super) fn map(&self, what: &str, map: &BTreeMap<String, String>) -> Result<BTreeMap<String, String>, Failure> {
        map.iter().map(|(name, text)| Ok((name.clone(), self.text(&format!("{what} `{name}`"), text)?))).collect()
    }
}

/// Returns the name of the missing output, if the error is that a template reads an output of the install stack that
/// does not exist.
fn missing_output(error: &Error) -> Option<&str> {
    match error {
        Error::Inside { source, .. } => missing_output(source),
        Error::Parse(_) => None,
        Error::Render(error) => match &error.kind {
            RenderErrorKind::MissingKey { path, .. } => {
                path.split_once(".install_stack.outputs.")?.1.split('.').next().filter(|output| !output.is_empty())
            }
            RenderErrorKind::NotAMap { .. }
            | RenderErrorKind::Null { .. }
            | RenderErrorKind::Function { .. }
            | RenderErrorKind::Misuse(_)
            | RenderErrorKind::Limit { .. } => None,
        },
    }
}

/// Returns the part whose output is missing, if the error is that a template reads an output of a component or of the
/// sandbox that does not exist.
fn missing_output_of(error: &Error) -> Option<String> {
    match error {
        Error::Inside { source, .. } => missing_output_of(source),
        Error::Parse(_) => None,
        Error::Render(error) => {
            let RenderErrorKind::MissingKey { path, .. } = &error.kind else { return None };
            if path.contains(".sandbox.outputs.") {
                return Some("the sandbox".to_owned());
            }
            let (name, rest) = path.split_once(".components.")?.1.split_once('.')?;
            rest.starts_with("outputs.").then(|| format!("component `{name}`"))
        }
    }
}

/// Returns whether the error is that a template reads the licence of an install without one.
fn lacks_licence(error: &Error) -> bool {
    match error {
        Error::Inside { source, .. } => lacks_licence(source),
        Error::Parse(_) => false,
        Error::Render(error) => {
            matches!(&error.kind, RenderErrorKind::MissingKey { path, .. } if path.ends_with(".install.licence"))
        }
    }
}

/// Returns a sentence for each secret without a value, which explains how to enter the value. Each sentence has two
/// keys: the paths in templates of the secret's value and of its ARN.
fn ways_to_fill(secrets: &[Secret], tree: &Value) -> BTreeMap<String, String> {
    let kept = tree.pointer("/nuon/secrets");
    let empty = secrets.iter().filter(|secret| kept.is_none_or(|kept| kept.get(&secret.name).is_none()));
    let ways = empty.flat_map(|secret| {
        let (name, parameter) = (&secret.name, secret.parameter());
        let way = format!("secret `{name}` was left empty: enter it as parameter `{parameter}` of the install stack");
        let paths = [format!(".nuon.secrets.{name}"), format!(".nuon.install_stack.outputs.{}", secret.arn_output())];
        paths.map(|path| (path, way.clone()))
    });
    ways.collect()
}

/// Returns the owner of the templates in `work`, as messages name it, such as ``component `api` ``.
pub(crate) fn owner(work: &Work) -> String {
    match work {
        Work::ContainerImage(work) => format!("component `{}`", work.component),
        Work::TerraformModule(work) => format!("component `{}`", work.component),
        Work::Sandbox(_) | Work::PulumiSandbox(_) => "the sandbox".to_owned(),
        Work::Pulumi(work) => format!("component `{}`", work.component),
        Work::CopySecrets(_) => "the copies of secrets".to_owned(),
        Work::Remove(work) => owner(&work.what),
        Work::DetectDrift(work) => owner(&work.what),
        Work::CloudformationStack(work) => format!("component `{}`", work.component),
        Work::HelmChart(work) => format!("component `{}`", work.component),
        Work::KubernetesManifest(work) => format!("component `{}`", work.component),
        Work::KubernetesJob(work) => format!("component `{}`", work.component),
        Work::Action(work) => format!("action `{}`", work.action),
        Work::Build(work) => format!("build of component `{}`", work.component),
        Work::Preflight(_) => "preflight".to_owned(),
        Work::Leftovers(_) => "the list of leftovers".to_owned(),
        Work::Health(work) => format!("health of component `{}`", work.component),
        Work::Upgrade(_) => "the upgrade of the runner".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_output_names_the_part_to_deploy_again() {
        let tree = json!({ "nuon": {
            "components": { "net": { "outputs": { "vpc": 1 } } },
            "sandbox": { "outputs": {} },
        } });
        let part = |path: &str| {
            let error = freehold_template::render(&format!("{{{{ {path} }}}}"), &tree, &Limits::default()).unwrap_err();
            missing_output_of(&error)
        };

        assert_eq!(part(".nuon.components.net.outputs.token.user").as_deref(), Some("component `net`"));
        assert_eq!(part(".nuon.sandbox.outputs.token").as_deref(), Some("the sandbox"));
        assert_eq!(part(".nuon.components.api.outputs.token"), None);
        assert_eq!(part(".nuon.inputs.inputs.size"), None);
    }

    #[test]
    fn a_missing_licence_differs_from_other_values_that_are_missing() {
        let tree = json!({ "nuon": { "install": { "id": "globex" } } });
        let lacks = |path: &str| {
            let error = freehold_template::render(&format!("{{{{ {path} }}}}"), &tree, &Limits::default()).unwrap_err();
            lacks_licence(&error)
        };

        assert!(lacks(".nuon.install.licence") && lacks(".freehold.install.licence"));
        assert!(!lacks(".nuon.install.sandbox"));
    }
}
