//! The names of a tenant's resources. `infra/tenant.yaml` creates them; a test below compares the two.

pub(super) use freehold_protocol::names::{INSTALL_TAG, TENANT_TAG};
use freehold_protocol::{AccountId, TenantName, names};

/// The warning to a vendor whose templates name no runner for the stack's own machine.
pub(crate) const NO_RUNNER: &str = "warning: the tenant names no runner for customers' machines, so a customer cannot launch a \
     stack with a machine of its own; build the runner for arm64, put it where customers can download it, and run `freehold \
     tenant deploy` with `--runner-url` and `--runner-sha256`. A customer who runs the runner elsewhere sets `RunnerPrincipal`.";

/// The template of a tenant's stack.
pub(super) const TEMPLATE: &str = include_str!("../../../infra/tenant.yaml");

/// The names of the functions, in the order of uploads and output. A test below compares them with `functions/src/bin`.
pub(super) const FUNCTIONS: [&str; 10] = [
    "api",
    "register-install",
    "plan-workflow",
    "dispatch-job",
    "accept-report",
    "grant-artifact",
    "finish-workflow",
    "sweep",
    "prune-artifacts",
    "console",
];

/// Returns the stack parameter that names the code of a function: `ApiCode` for `api`.
pub(super) fn code_parameter(function: &str) -> String {
    let mut parameter: String = function.split('-').map(capitalized).collect();
    parameter.push_str("Code");
    parameter
}

fn capitalized(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters).collect()
}

/// A definition of one or more state machines and the stack parameter that names it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Definition {
    pub(super) parameter: &'static str,
    pub(super) text: &'static str,
}

/// The definitions of all state machines.
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

/// The names of the stack's queues, without the prefix `fh-<tenant>--`.
pub(super) const QUEUES: [&str; 7] =
    ["reports", "dispatch", "grants", "build.fifo", "dead", "dead.fifo", "dead--notifications"];

/// The beginnings of the names of a tenant's log groups; `fh-<tenant>` follows.
pub(super) const LOG_PREFIXES: [&str; 3] = ["/aws/lambda/", "/aws/vendedlogs/states/", "/aws/vendedlogs/apis/"];

/// Returns the name of the tenant's table and of its registry.
pub(super) fn prefix(tenant: &TenantName) -> String {
    names::tenant(tenant)
}

/// Returns the name of a function, queue or role.
pub(super) fn named(tenant: &TenantName, part: &str) -> String {
    names::tenant_part(tenant, part)
}

/// Returns the name of the bucket with code and sources.
pub(crate) fn bucket_name(tenant: &TenantName, account: &AccountId, region: &str) -> String {
    names::tenant_bucket(tenant, account, region)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_template_knows_every_name() {
        let definitions = DEFINITIONS.iter().map(|definition| definition.parameter.to_owned());
        for parameter in FUNCTIONS.into_iter().map(code_parameter).chain(definitions) {
            assert!(TEMPLATE.contains(&format!("\n  {parameter}: {{")), "{parameter}");
        }
        for function in FUNCTIONS {
            assert!(TEMPLATE.contains(&format!("FunctionName: !Sub fh-${{TenantName}}--{function}\n")), "{function}");
        }
        for queue in QUEUES {
            assert!(TEMPLATE.contains(&format!("QueueName: !Sub fh-${{TenantName}}--{queue}\n")), "{queue}");
        }
    }

    #[test]
    fn every_program_of_the_functions_crate_is_a_function() {
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../functions/src/bin");
        let programs = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
        let mut programs: Vec<String> =
            programs.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect();
        let mut functions = FUNCTIONS;

        programs.sort();
        functions.sort_unstable();

        assert_eq!(programs, functions);
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
