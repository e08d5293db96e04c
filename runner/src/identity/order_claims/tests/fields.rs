//! The names of all fields of an order, and of each kind of work that a runner of an install does.

use freehold_protocol::order::health::CheckHealth;
use freehold_protocol::order::leftovers::FindLeftovers;
use freehold_protocol::order::{
    ApplyManifest, ApplyTerraform, CopySecrets, DeployStack, InstallChart, Order, RemovePart, RunAction,
    RunKubernetesJob, RunPulumi, StepDirectory, SyncImage,
};
use freehold_protocol::preflight::CheckInstall;

/// Returns the names of all fields of a type. A new field makes this fail to compile until it is listed.
macro_rules! fields {
    ($type:ident { $($field:ident),* $(,)? }) => {{
        fn _all($type { $($field: _),* }: &$type) {}
        (stringify!($type), vec![$(stringify!($field)),*])
    }};
}

/// The fields of an order, and of each kind of work that a runner of an install does.
pub(super) fn all_fields() -> Vec<(&'static str, Vec<&'static str>)> {
    vec![
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
        fields!(RunAction { action, steps, directories, env_vars, idempotent, cluster, image }),
        fields!(StepDirectory { steps, component, artifact }),
        fields!(SyncImage { component, artifact }),
        fields!(ApplyTerraform { component, artifact, terraform_version, vars, env_vars, var_files }),
        fields!(RunPulumi { component, artifact, pulumi_version, config, env_vars }),
        fields!(DeployStack { component, artifact, stack_name, parameters, capabilities }),
        fields!(InstallChart {
            component,
            artifact,
            cluster,
            release,
            namespace,
            storage_driver,
            take_ownership,
            values,
            values_files,
        }),
        fields!(ApplyManifest { component, artifact, cluster, namespace }),
        fields!(RunKubernetesJob { component, artifact, cluster, image, cmd, args, env_vars }),
        fields!(CopySecrets { cluster, copies, keeps_others }),
        fields!(RemovePart { what, destroy_data, removes_policies }),
        fields!(CheckInstall {
            terraform_versions,
            tools,
            stacks,
            programs,
            disk_bytes,
            hosts,
            permissions,
            permissions_left_out,
            clusters,
        }),
        fields!(FindLeftovers {}),
        fields!(CheckHealth { component, asks, probes, hold_secs, limit_secs, gate }),
    ]
}
