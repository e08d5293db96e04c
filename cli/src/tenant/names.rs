//! What a tenant is made of, by name. `infra/tenant.yaml` makes it; a test below holds the two together.

use freehold_protocol::{AccountId, TenantName};

/// The template of a tenant's stack.
pub(super) const TEMPLATE: &str = include_str!("../../../infra/tenant.yaml");

/// A function and the stack parameter that names its code.
#[derive(Debug, Clone, Copy)]
pub(super) struct Function {
    pub(super) name: &'static str,
    pub(super) parameter: &'static str,
}

/// All functions.
pub(super) const FUNCTIONS: [Function; 9] = [
    Function { name: "api", parameter: "ApiCode" },
    Function { name: "register-install", parameter: "RegisterInstallCode" },
    Function { name: "plan-workflow", parameter: "PlanWorkflowCode" },
    Function { name: "dispatch-job", parameter: "DispatchJobCode" },
    Function { name: "accept-report", parameter: "AcceptReportCode" },
    Function { name: "grant-artifact", parameter: "GrantArtifactCode" },
    Function { name: "finish-workflow", parameter: "FinishWorkflowCode" },
    Function { name: "sweep", parameter: "SweepCode" },
    Function { name: "prune-artifacts", parameter: "PruneArtifactsCode" },
];

/// A definition of one or more state machines and the stack parameter that names it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Definition {
    pub(super) parameter: &'static str,
    pub(super) text: &'static str,
}

/// All definitions.
pub(super) const DEFINITIONS: [Definition; 2] = [
    Definition {
        parameter: "ProvisionInstallDefinition",
        text: include_str!("../../../statemachines/provision-install.asl.json"),
    },
    Definition {
        parameter: "RunWorkflowDefinition",
        text: include_str!("../../../statemachines/run-workflow.asl.json"),
    },
];

/// The queues that the stack makes, without `fh-<tenant>-`.
pub(super) const QUEUES: [&str; 6] = ["reports", "dispatch", "grants", "build.fifo", "dead", "dead.fifo"];

/// Where log groups of a tenant begin, each followed by `fh-<tenant>`.
pub(super) const LOG_PREFIXES: [&str; 3] = ["/aws/lambda/", "/aws/vendedlogs/states/", "/aws/vendedlogs/apis/"];

/// The tag on everything that belongs to a tenant.
pub(super) const TENANT_TAG: &str = "freehold:tenant";
/// The tag on everything that belongs to an install.
pub(super) const INSTALL_TAG: &str = "freehold:install";

/// Returns the name of the tenant's table and of its registry.
pub(super) fn prefix(tenant: &TenantName) -> String {
    format!("fh-{tenant}")
}

/// Returns the name of a function, queue or role.
pub(super) fn named(tenant: &TenantName, part: &str) -> String {
    format!("fh-{tenant}-{part}")
}

/// Returns the name of the bucket with code and sources.
pub(crate) fn bucket_name(tenant: &TenantName, account: &AccountId, region: &str) -> String {
    format!("fh-{tenant}-{account}-{region}")
}

/// Returns the name of the build runner's enrolment secret.
pub(super) fn enrolment_secret(tenant: &TenantName) -> String {
    format!("fh-{tenant}/build-enrolment")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_template_knows_every_name() {
        for parameter in FUNCTIONS.iter().map(|f| f.parameter).chain(DEFINITIONS.iter().map(|d| d.parameter)) {
            assert!(TEMPLATE.contains(&format!("\n  {parameter}: {{")), "{parameter}");
        }
        for function in FUNCTIONS {
            assert!(
                TEMPLATE.contains(&format!("FunctionName: !Sub fh-${{TenantName}}-{}\n", function.name)),
                "{}",
                function.name
            );
        }
        for queue in QUEUES {
            assert!(TEMPLATE.contains(&format!("QueueName: !Sub fh-${{TenantName}}-{queue}\n")), "{queue}");
        }
    }

    #[test]
    fn every_log_group_of_the_template_is_found_by_a_prefix() {
        let groups = TEMPLATE.lines().filter_map(|line| line.trim().strip_prefix("LogGroupName: !Sub "));

        for group in groups {
            assert!(LOG_PREFIXES.iter().any(|p| group.starts_with(&format!("{p}fh-${{TenantName}}"))), "{group}");
        }
    }

    #[test]
    fn every_definition_is_json() {
        for definition in DEFINITIONS {
            assert!(serde_json::from_str::<serde_json::Value>(definition.text).is_ok(), "{}", definition.parameter);
        }
    }
}
