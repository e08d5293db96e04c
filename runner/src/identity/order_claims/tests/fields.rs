//! The names of all fields of an order, and of each kind of work that a runner of an install does.

use freehold_protocol::order::health::CheckHealth;
use freehold_protocol::order::leftovers::FindLeftovers;
use freehold_protocol::order::{
    ApplyManifest, ApplyTerraform, CopySecrets, DeployStack, DetectDrift, InstallChart, Order, RemovePart, RunAction,
    RunKubernetesJob, RunPulumi, StepDirectory, SyncImage, UpgradeRunner, Work,
};
use freehold_protocol::preflight::CheckInstall;

/// Returns the names of all fields of a type. A new field makes this fail to compile until it is listed.
macro_rules! fields {
    ($type:ident { $($field:ident),* $(,)? }) => {{
        fn _all($type { $($field: _),* }: &$type) {}
        (stringify!($type), vec![$(stringify!($field)),*])
    }};
}

/// Returns the names of all fields of each kind of work. A new kind, or a new field of a kind, makes this fail to
/// compile until it is listed. A runner of an install does no builds.
macro_rules! kinds {
    ($($kind:ident($type:ident { $($field:ident),* $(,)? })),* $(,)?) => {{
        fn _all(work: &Work) {
            match work {
                Work::Build(_) => {}
                $(Work::$kind($type { $($field: _),* }) => {})*
            }
        }
        vec![$((stringify!($kind), vec![$(stringify!($field)),*])),*]
    }};
}

/// Returns the names of the fields of an order, of a directory of an action, and of each kind of work.
pub(super) fn all_fields() -> Vec<(&'static str, Vec<&'static str>)> {
    let mut all = vec![
        fields!(Order {
            tenant,
            install,
            workflow,
            job,
            dispatch,
            group,
            serial,
            issued_at,
            start_by,
            not_after,
            timeout_secs,
            mode,
            role,
            asked_by,
            asker,
            asked_why,
            now,
            runner,
            redelivery,
            skip_noops,
            work,
            context,
            sensitive_inputs,
            sealed_inputs,
            secrets,
            kept_outputs,
            tool_image,
            policies,
            approval,
            approved,
            must_understand,
            terms,
            receipt,
        }),
        fields!(StepDirectory { steps, component, artifact }),
    ];
    all.extend(kinds! {
        ContainerImage(SyncImage { component, artifact }),
        TerraformModule(ApplyTerraform { component, artifact, terraform_version, vars, env_vars, var_files }),
        Sandbox(ApplyTerraform { component, artifact, terraform_version, vars, env_vars, var_files }),
        Pulumi(RunPulumi { component, artifact, pulumi_version, config, env_vars }),
        PulumiSandbox(RunPulumi { component, artifact, pulumi_version, config, env_vars }),
        CloudformationStack(DeployStack { component, artifact, stack_name, parameters, capabilities }),
        HelmChart(InstallChart {
            component, artifact, cluster, release, namespace, storage_driver, take_ownership, values, values_files,
        }),
        KubernetesManifest(ApplyManifest { component, artifact, cluster, namespace }),
        KubernetesJob(RunKubernetesJob { component, artifact, cluster, image, cmd, args, env_vars }),
        CopySecrets(CopySecrets { cluster, copies, keeps_others }),
        Remove(RemovePart { what, destroy_data, removes_policies }),
        DetectDrift(DetectDrift { what }),
        Action(RunAction { action, steps, directories, env_vars, idempotent, cluster, image }),
        Preflight(CheckInstall {
            terraform_versions, tools, stacks, programs, disk_bytes, hosts, permissions, permissions_left_out, clusters,
        }),
        Leftovers(FindLeftovers {}),
        Health(CheckHealth { component, asks, probes, hold_secs, limit_secs, gate }),
        Upgrade(UpgradeRunner { version, program, archive, archive_size, release, health_secs }),
    });
    all
}
