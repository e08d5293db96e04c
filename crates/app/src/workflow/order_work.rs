//! Makes the work of an order from an action, a component, the sandbox or the secrets of an app version.

use std::collections::BTreeMap;

use freehold_domain::workflow::Workflow;
use freehold_protocol::api::ApprovalOption;
use freehold_protocol::app_version::{AppVersion, ComponentSpec, Input, SandboxTool, Secret, StepSource};
use freehold_protocol::approval::ApprovalRule;
use freehold_protocol::order::health::{Asks, CheckHealth, Probe, Times, checked};
use freehold_protocol::order::policy_scope::carries;
use freehold_protocol::order::{
    ApplyManifest, ApplyTerraform, Artifact, ClusterOf, CopySecrets, DeployStack, InstallChart, JobImage, RunAction,
    RunKubernetesJob, RunPulumi, SecretCopy, Source, StepDirectory, SyncImage, Work,
};
use freehold_protocol::policy::OrderPolicy;
use freehold_protocol::{ActionName, ComponentName, Digest};

use crate::AppError;
use crate::artifact::runner_program::program_of;

/// Returns the policies of the version that an order for `work` carries.
pub(super) fn policies(version: &AppVersion, work: &Work) -> Result<Vec<OrderPolicy>, AppError> {
    let carried =
        version.policies.iter().filter(|policy| carries(policy.engine, &policy.kind, &policy.components, work));
    let packed = carried.map(|policy| OrderPolicy::new(&policy.name, policy.engine, &policy.contents));
    packed.collect::<Result<_, _>>().map_err(|error| AppError::internal(format!("could not pack a policy: {error}")))
}

/// Returns the work that copies secrets into the cluster of the app's sandbox. With `keeps_others`, the work leaves
/// other copies in the cluster; otherwise it removes them.
pub(super) fn copies_of_secrets(version: &AppVersion, keeps_others: bool) -> Result<Work, AppError> {
    let copies = version.secrets.iter().filter_map(|secret| {
        let place = secret.kubernetes.as_ref()?;
        let (namespace, name) = (place.namespace.clone(), place.name.clone());
        Some(SecretCopy { secret: secret.name.clone(), namespace, name })
    });
    Ok(Work::CopySecrets(CopySecrets { cluster: cluster_of(version, "")?, copies: copies.collect(), keeps_others }))
}

/// Returns the work that removes all copies of secrets from the cluster of the app's sandbox.
pub(super) const fn no_copies_of_secrets() -> Work {
    Work::CopySecrets(CopySecrets { cluster: ClusterOf::Sandbox, copies: Vec::new(), keeps_others: false })
}

/// Returns the work that runs an action. `artifacts` are those of the directories that its steps run in, by name.
pub(super) fn action_work(
    version: &AppVersion,
    name: &ActionName,
    artifacts: &BTreeMap<ComponentName, Artifact>,
) -> Result<Work, AppError> {
    let action = version.action(name).ok_or_else(|| AppError::internal(format!("version has no action `{name}`")))?;
    let cluster = action.enable_kube_config.then(|| cluster_of(version, &action.kubernetes_context)).transpose()?;
    let directories = action.sources().into_iter().map(|StepSource { name: component, steps, .. }| {
        let artifact = artifacts.get(&component).cloned().ok_or_else(|| {
            // An earlier release of the control plane planned this workflow, and did not bind actions to builds.
            AppError::invalid(format!(
                "action `{name}` has steps in directory `{component}`, but its workflow names no build of this \
                 directory; start the workflow again"
            ))
        })?;
        Ok(StepDirectory { steps, component, artifact })
    });
    Ok(Work::Action(RunAction {
        action: name.clone(),
        cluster,
        steps: action.steps.clone(),
        directories: directories.collect::<Result<_, AppError>>()?,
        env_vars: action.env_vars.clone(),
        idempotent: action.idempotent,
        image: action.image.clone().unwrap_or_default(),
    }))
}

/// Returns the work that deploys a component.
pub(super) fn component_work(version: &AppVersion, name: &ComponentName, artifact: Artifact) -> Result<Work, AppError> {
    let found =
        version.component(name).ok_or_else(|| AppError::internal(format!("version has no component `{name}`")))?;
    let component = name.clone();
    let cluster = || cluster_of(version, &found.settings.kubernetes_context);
    Ok(match found.spec.clone() {
        ComponentSpec::ContainerImage { .. } | ComponentSpec::DockerBuild { .. } => {
            Work::ContainerImage(SyncImage { component, artifact })
        }
        ComponentSpec::TerraformModule { terraform_version, vars, env_vars, var_files, providers: _ } => {
            Work::TerraformModule(ApplyTerraform { component, artifact, terraform_version, vars, env_vars, var_files })
        }
        ComponentSpec::CloudformationStack { stack_name, parameters, capabilities } => {
            Work::CloudformationStack(DeployStack { component, artifact, stack_name, parameters, capabilities })
        }
        ComponentSpec::HelmChart { chart_name, namespace, storage_driver, take_ownership, values, values_files } => {
            Work::HelmChart(InstallChart {
                component,
                artifact,
                cluster: cluster()?,
                release: chart_name,
                namespace,
                storage_driver: driver_of(version, storage_driver),
                take_ownership,
                values,
                values_files,
            })
        }
        // The manifest itself is the artifact.
        ComponentSpec::KubernetesManifest { namespace, manifest: _, kustomize: _ } => {
            Work::KubernetesManifest(ApplyManifest { component, artifact, cluster: cluster()?, namespace })
        }
        ComponentSpec::Job { image_url, tag, cmd, args, env_vars } => {
            let (image, cluster) = (image_of(&found.source, image_url, tag), cluster()?);
            Work::KubernetesJob(RunKubernetesJob { component, artifact, cluster, image, cmd, args, env_vars })
        }
        ComponentSpec::Pulumi { runtime: _, pulumi_version, config, env_vars } => {
            Work::Pulumi(RunPulumi { component, artifact, pulumi_version, config, env_vars })
        }
    })
}

/// Returns the storage driver of a chart: its own, or the driver of the app's runner if it names none.
fn driver_of(version: &AppVersion, own: String) -> String {
    if !own.is_empty() {
        return own;
    }
    version.runner.as_ref().map(|runner| runner.helm_driver.clone()).unwrap_or_default()
}

/// Returns the image that a job runs: its own artifact if its source is an image, else the image of another component.
fn image_of(source: &Source, image_url: String, tag: String) -> JobImage {
    match source {
        Source::Image { .. } => JobImage::Artifact,
        Source::Version
        | Source::Directory { .. }
        | Source::Git { .. }
        | Source::EcrImage { .. }
        | Source::Chart { .. } => JobImage::Component { image_url, tag },
    }
}

/// Returns the work that checks the health of a component after its deploy.
pub(super) fn health_work(version: &AppVersion, name: &ComponentName, alone: bool) -> Result<Work, AppError> {
    let component = version.component(name);
    let (component, health) = component.and_then(|one| Some((one, checked(one)?))).ok_or_else(|| {
        // INVARIANT: the plan has a check only for components that have a health check.
        AppError::internal(format!("component `{name}` has no health check"))
    })?;
    let cluster = || cluster_of(version, &component.settings.kubernetes_context);
    let asks = match &component.spec {
        ComponentSpec::HelmChart { chart_name, namespace, storage_driver, .. } => {
            let (release, namespace) = (chart_name.clone(), namespace.clone());
            let storage_driver = driver_of(version, storage_driver.clone());
            Asks::Release { cluster: cluster()?, release, namespace, storage_driver }
        }
        ComponentSpec::KubernetesManifest { .. } => Asks::Objects { cluster: cluster()? },
        ComponentSpec::CloudformationStack { stack_name, .. } => Asks::Stack { stack_name: stack_name.clone() },
        ComponentSpec::ContainerImage { .. }
        | ComponentSpec::DockerBuild { .. }
        | ComponentSpec::TerraformModule { .. }
        | ComponentSpec::Pulumi { .. }
        | ComponentSpec::Job { .. } => Asks::Nothing,
    };
    let times = if alone { Times::alone(health) } else { Times::after_deploy(health) };
    let Times { hold_secs, limit_secs } = times;
    let probes = health.probes.iter().filter_map(Probe::of).collect();
    let (component, gate) = (name.clone(), health.block_deploy && !alone);
    Ok(Work::Health(CheckHealth { component, asks, probes, hold_secs, limit_secs, gate }))
}

/// Returns the part whose outputs describe the cluster of the Kubernetes context `context`: a component, or the sandbox
/// if `context` is empty.
fn cluster_of(version: &AppVersion, context: &str) -> Result<ClusterOf, AppError> {
    if context.is_empty() {
        return Ok(ClusterOf::Sandbox);
    }
    let found = version.kubernetes_contexts.iter().find(|known| known.name == context);
    let found = found.map(|known| ClusterOf::Component(known.component.clone()));
    found.ok_or_else(|| AppError::internal(format!("version has no Kubernetes context `{context}`")))
}

/// Returns the work that applies the sandbox's module or program.
pub(super) fn sandbox_work(version: &AppVersion, artifact: Artifact) -> Result<Work, AppError> {
    let sandbox = version.sandbox.clone().ok_or_else(|| {
        // INVARIANT: only a version with a sandbox has a node for it.
        AppError::internal("version has no sandbox")
    })?;
    let component = ComponentName::sandbox();
    Ok(match sandbox.tool {
        SandboxTool::Terraform { version, providers: _ } => Work::Sandbox(ApplyTerraform {
            component,
            artifact,
            terraform_version: version,
            vars: sandbox.vars,
            env_vars: sandbox.env_vars,
            var_files: sandbox.var_files,
        }),
        SandboxTool::Pulumi { runtime: _, version } => Work::PulumiSandbox(RunPulumi {
            component,
            artifact,
            pulumi_version: version,
            config: sandbox.vars,
            env_vars: sandbox.env_vars,
        }),
    })
}

/// Returns the work that replaces the program of the install's runner.
pub(super) fn upgrade_work(workflow: &Workflow) -> Result<Work, AppError> {
    Ok(Work::Upgrade(program_of(workflow)?.clone()))
}

/// Returns whether the config asks to skip the apply when the plan of `work` changes nothing. A removal is not skipped.
pub(super) fn skips_noops(version: &AppVersion, work: &Work) -> bool {
    let is_deploy = !matches!(work, Work::Remove(_) | Work::DetectDrift(_));
    let part = work.component().filter(|_| is_deploy).and_then(|name| version.part(name));
    part.is_some_and(|part| part.settings.skip_noops)
}

/// Returns whether somebody at the vendor has to approve the plan of `work`. Work without a plan, such as an action or the copy
/// of an image, waits for nobody at the vendor.
pub(super) fn approval(option: ApprovalOption, version: &AppVersion, work: &Work) -> Option<ApprovalRule> {
    match option {
        ApprovalOption::ApproveAll => return None,
        ApprovalOption::Prompt => {}
    }
    if !work.has_plan() {
        return None;
    }
    let part = work.component().and_then(|name| version.part(name));
    let by_policies = part.is_some_and(|part| part.settings.auto_approve_on_policies_passing);
    Some(if by_policies { ApprovalRule::PromptUnlessPoliciesPass } else { ApprovalRule::Prompt })
}

/// Returns the sensitive inputs, and those whose values are `sealed` because they are sensitive in another version. Their
/// descriptive texts are left out: the runner does not need them, and orders stay small.
pub(super) fn sensitive_inputs(version: &AppVersion, sealed: &BTreeMap<String, Digest>) -> Vec<Input> {
    let sensitive = version.inputs.iter().filter(|input| input.sensitive || sealed.contains_key(&input.name));
    sensitive
        .map(|input| Input {
            sensitive: true,
            display_name: String::new(),
            description: String::new(),
            group: String::new(),
            ..input.clone()
        })
        .collect()
}

/// Returns the app's secrets without their descriptive texts.
pub(super) fn secrets(version: &AppVersion) -> Vec<Secret> {
    let plain = |secret: &Secret| Secret {
        display_name: String::new(),
        description: String::new(),
        kubernetes: None,
        ..secret.clone()
    };
    version.secrets.iter().map(plain).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn version() -> AppVersion {
        let component = |name: &str, context: &str, spec: Value| {
            json!({ "name": name, "deploy_timeout_secs": 600, "source": { "from": "version" }, "spec": spec,
                "settings": { "kubernetes_context": context } })
        };
        let empty = serde_json::to_value(AppVersion::empty("demo".parse().unwrap())).unwrap();
        let mut version = empty;
        version["kubernetes_contexts"] = json!([{ "name": "data", "component": "cluster" }]);
        version["runner"] = json!({ "runner_type": "aws", "helm_driver": "configmap" });
        let chart = json!({ "kind": "helm_chart", "chart_name": "web", "namespace": "n", "values": { "a": "1" } });
        let own = json!({ "kind": "helm_chart", "chart_name": "web", "namespace": "n", "storage_driver": "secret" });
        let manifest = json!({ "kind": "kubernetes_manifest", "namespace": "n", "manifest": "kind: A" });
        let job = json!({ "kind": "job", "image_url": "a/b", "tag": "1", "cmd": ["migrate"] });
        let public = json!({ "from": "image", "reference": "a/b:1" });
        version["components"] = json!([
            component("chart", "data", chart),
            component("own", "", own),
            component("manifest", "", manifest),
            component("job", "data", job.clone()),
            component("public", "", job)
        ]);
        version["components"][4]["source"] = public;
        serde_json::from_value(version).unwrap()
    }

    fn work(name: &str) -> Work {
        let digest = freehold_protocol::Digest::of(b"artifact");
        let artifact =
            Artifact { media_type: String::new(), digest, manifests: Vec::new(), blobs: Vec::new(), provenance: None };
        component_work(&version(), &name.parse().unwrap(), artifact).unwrap()
    }

    #[test]
    fn a_chart_has_its_cluster_and_the_driver_of_the_app_unless_it_names_one() {
        let (Work::HelmChart(chart), Work::HelmChart(own)) = (work("chart"), work("own")) else { panic!("charts") };

        assert_eq!(chart.cluster, ClusterOf::Component("cluster".parse().unwrap()));
        assert_eq!((chart.storage_driver.as_str(), chart.release.as_str()), ("configmap", "web"));
        assert_eq!((own.cluster, own.storage_driver.as_str()), (ClusterOf::Sandbox, "secret"));
    }

    #[test]
    fn a_manifest_is_its_artifact() {
        let Work::KubernetesManifest(manifest) = work("manifest") else { panic!("a manifest") };

        assert_eq!((manifest.cluster, manifest.namespace.as_str()), (ClusterOf::Sandbox, "n"));
    }

    #[test]
    fn a_job_runs_its_artifact_or_the_image_of_a_component() {
        let (Work::KubernetesJob(job), Work::KubernetesJob(public)) = (work("job"), work("public")) else {
            panic!("jobs")
        };

        assert_eq!(job.cluster, ClusterOf::Component("cluster".parse().unwrap()));
        assert_eq!(job.image, JobImage::Component { image_url: "a/b".into(), tag: "1".into() });
        assert_eq!((public.image, public.cmd), (JobImage::Artifact, vec!["migrate".to_owned()]));
    }

    #[test]
    fn an_unknown_context_is_an_error() {
        assert!(cluster_of(&version(), "other").unwrap_err().message.contains("`other`"));
    }
}
