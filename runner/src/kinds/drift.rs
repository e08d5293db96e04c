//! Drift checks: compare a deployed part with its plan, and apply nothing. The session of such a job can only read
//! (`identity::session_policy`), and the result has names, without values.

use freehold_protocol::order::drift::{DriftFound, DriftedResource, OUTPUT};
use freehold_protocol::order::{DetectDrift, Work};

use crate::job::Job;
use crate::job::failure::Failure;
use crate::kinds::result::Done;
use crate::kinds::{helm_chart, kubernetes_manifest, terraform_module};

/// Finds what differs, and returns it as the output of the job.
pub(super) async fn check(job: &Job, work: &DetectDrift) -> Result<Done, Failure> {
    let found = match &*work.what {
        Work::TerraformModule(what) | Work::Sandbox(what) => Box::pin(terraform_module::drift::check(job, what)).await,
        Work::HelmChart(what) => Box::pin(helm_chart::drift::check(job, what)).await,
        Work::KubernetesManifest(what) => Box::pin(kubernetes_manifest::drift::check(job, what)).await,
        Work::ContainerImage(_)
        | Work::Pulumi(_)
        | Work::PulumiSandbox(_)
        | Work::CloudformationStack(_)
        | Work::KubernetesJob(_)
        | Work::CopySecrets(_)
        | Work::Remove(_)
        | Work::DetectDrift(_)
        | Work::Action(_)
        | Work::Build(_)
        | Work::Preflight(_)
        | Work::Leftovers(_)
        | Work::Health(_)
        | Work::Upgrade(_) => {
            Err(Failure::new(format!("the result of a job of kind `{}` cannot be checked for drift", work.what.kind())))
        }
    }?;
    let found = DriftFound::of(found.into_iter().map(|one| redacted(job, one)).collect());
    for line in lines(&found) {
        job.log.line(&line);
    }
    let value = serde_json::to_value(&found);
    let value = value.map_err(|error| Failure::because("could not write what differs as JSON", &error))?;
    Ok(Done { outputs: [(OUTPUT.to_owned(), value)].into(), ..Done::default() })
}

/// Returns the resource without secrets, which a key of `for_each` or of a map could contain. Must run before texts are
/// cut: a part of a secret would not be recognized.
fn redacted(job: &Job, one: DriftedResource) -> DriftedResource {
    DriftedResource {
        address: job.log.redacted(&one.address),
        kind: job.log.redacted(&one.kind),
        attributes: one.attributes.iter().map(|name| job.log.redacted(name)).collect(),
        ..one
    }
}

fn lines(found: &DriftFound) -> Vec<String> {
    let mut lines: Vec<String> = found
        .resources
        .iter()
        .map(|one| {
            let names =
                if one.attributes.is_empty() { String::new() } else { format!(": {}", one.attributes.join(", ")) };
            format!("drift: the next deploy would `{}` {}{names}", one.change.as_str(), one.address)
        })
        .collect();
    if found.more > 0 {
        lines.push(format!("and {} more", found.more));
    }
    if lines.is_empty() {
        lines.push("nothing differs from the last deploy".to_owned());
    }
    lines
}

#[cfg(test)]
mod tests {
    use freehold_protocol::approval::ChangeKind;

    use super::*;

    #[test]
    fn the_log_names_what_differs_and_says_when_nothing_does() {
        let one = DriftedResource {
            address: "aws_sqs_queue.jobs".to_owned(),
            kind: "aws_sqs_queue".to_owned(),
            change: ChangeKind::Update,
            attributes: vec!["delay_seconds".to_owned(), "tags.Owner".to_owned()],
            more_attributes: 0,
        };
        let gone = DriftedResource { change: ChangeKind::Create, attributes: Vec::new(), ..one.clone() };
        let found = DriftFound { resources: vec![one, gone], more: 1 };

        assert_eq!(
            lines(&found),
            [
                "drift: the next deploy would `update` aws_sqs_queue.jobs: delay_seconds, tags.Owner",
                "drift: the next deploy would `create` aws_sqs_queue.jobs",
                "and 1 more"
            ]
        );
        assert_eq!(lines(&DriftFound::default()), ["nothing differs from the last deploy"]);
    }
}
