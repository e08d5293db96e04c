//! Makes the object of a Kubernetes Job, and its name.

use freehold_protocol::JobId;
use freehold_protocol::order::RunKubernetesJob;
use serde_json::{Value, json};

use crate::job::Job;
use crate::job::failure::Failure;
use crate::kinds::templates::Templates;
use crate::kubernetes::{COMPONENT, Id, Object};

/// The difference between the time limits of the attempt and of the Kubernetes Job, so that the attempt can report the
/// end.
const REST_SECS: u32 = 30;
/// The maximum length of the component in a name. With the id of a job and a dispatch number, a name then has at most
/// the 63 characters of a label's value (Kubernetes documentation, "Object Names and IDs").
const MAX_COMPONENT: usize = 30;

/// Returns the Kubernetes Job that runs the program of `work` with `image`. Kubernetes does not start a program again
/// that has failed (`restartPolicy: Never`, `backoffLimit: 0`). In rare cases it starts a pod twice.
pub(super) fn make(job: &Job, work: &RunKubernetesJob, templates: &Templates, image: &str) -> Result<Object, Failure> {
    let texts = |key: &str, all: &[String]| -> Result<Vec<String>, Failure> {
        let all = all.iter().enumerate();
        all.map(|(at, text)| templates.text(&format!("`{key}`, item {}", at + 1), text)).collect()
    };
    let env = templates.map("`env_vars`", &work.env_vars)?;
    let env: Vec<Value> = env.iter().map(|(name, value)| json!({ "name": name, "value": value })).collect();
    let mut container = json!({
        "name": "job",
        "image": image,
        "env": env,
        "terminationMessagePolicy": "FallbackToLogsOnError",
    });
    for (key, words) in [("command", texts("cmd", &work.cmd)?), ("args", texts("args", &work.args)?)] {
        if let (Some(container), false) = (container.as_object_mut(), words.is_empty()) {
            container.insert(key.to_owned(), Value::from(words));
        }
    }
    let annotations = json!({ COMPONENT: owner(job, work) });
    let labels = job.order.labels();
    let value = json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": format!("{}{}", prefix(work, &job.order.job), job.fence.dispatch),
            "namespace": job.order.install.as_str(),
            "annotations": annotations,
            "labels": labels,
        },
        "spec": {
            "backoffLimit": 0,
            "completions": 1,
            "parallelism": 1,
            "activeDeadlineSeconds": job.order.timeout_secs.saturating_sub(REST_SECS).max(1),
            "template": {
                "metadata": { "annotations": annotations, "labels": labels },
                "spec": { "restartPolicy": "Never", "containers": [container] },
            },
        },
    });
    Object::new(format!("component `{}`", work.component), value).map_err(Failure::new)
}

/// Returns the value of the annotation [`COMPONENT`] for the objects of `work`.
pub(super) fn owner(job: &Job, work: &RunKubernetesJob) -> String {
    format!("{}/{}", job.order.install, work.component)
}

/// Returns whether `id` is the Kubernetes Job of a dispatch of `job`.
pub(super) fn is_of(id: &Id, work: &RunKubernetesJob, job: &JobId) -> bool {
    id.name.starts_with(&prefix(work, job))
}

/// Returns the name of a Kubernetes Job without the dispatch number.
fn prefix(work: &RunKubernetesJob, job: &JobId) -> String {
    let named: String = work.component.as_str().to_lowercase().replace('_', "-").chars().take(MAX_COMPONENT).collect();
    let job = job.to_string();
    format!("{}-{}-", named.trim_end_matches('-'), job.rsplit('_').next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use freehold_protocol::order::{Artifact, ClusterOf, JobImage};

    use super::*;

    fn work(component: &str) -> RunKubernetesJob {
        let digest = freehold_protocol::Digest::of(b"image");
        let artifact =
            Artifact { media_type: String::new(), digest, manifests: Vec::new(), blobs: Vec::new(), provenance: None };
        RunKubernetesJob {
            component: component.parse().unwrap(),
            artifact,
            cluster: ClusterOf::Sandbox,
            image: JobImage::Artifact,
            cmd: Vec::new(),
            args: Vec::new(),
            env_vars: Default::default(),
        }
    }

    #[test]
    fn a_name_fits_into_a_label_whatever_the_component_is_called() {
        let job = crate::testing::job_id(7);
        let long = prefix(&work(&"a".repeat(64)), &job);
        let odd = prefix(&work("DB_Migrate_"), &job);

        assert_eq!(odd, "db-migrate-00000000000000000007-");
        assert!(long.len() + "4294967295".len() <= 63, "{long}");
    }

    #[test]
    fn the_dispatches_of_one_job_are_told_from_those_of_another() {
        let id = |name: &str| Id {
            api_version: "batch/v1".into(),
            kind: "Job".into(),
            namespace: Some("globex".into()),
            name: name.into(),
        };
        let (one, two) = (crate::testing::job_id(1), crate::testing::job_id(2));

        assert!(is_of(&id("db-00000000000000000001-3"), &work("db"), &one));
        assert!(!is_of(&id("db-00000000000000000001-3"), &work("db"), &two));
    }
}
