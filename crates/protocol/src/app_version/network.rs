//! The network of the install stack: the apps that need it, and the outputs that describe it.

use super::components::Reference;
use super::version::AppVersion;

/// The outputs of the install stack that describe its network: the key below `.nuon.install_stack.outputs`, and the
/// name of the stack's output. Commas separate several subnets.
pub const NETWORK_OUTPUTS: [(&str, &str); 4] = [
    ("vpc_id", "VpcId"),
    ("runner_subnet", "RunnerSubnet"),
    ("public_subnets", "PublicSubnets"),
    ("private_subnets", "PrivateSubnets"),
];

/// Returns the indexes of the availability zones that a new network spans. In `us-west-1`, a new account has only two
/// zones (Amazon EC2 user guide, "Regions and Zones").
pub fn network_zones(region: &str) -> &'static [u8] {
    if region == "us-west-1" { &[0, 1] } else { &[0, 1, 2] }
}

impl AppVersion {
    /// Returns whether the install stack needs a network: when the app has a sandbox, or a component reads a network
    /// output.
    pub fn needs_network(&self) -> bool {
        let is_network = |name: &str| NETWORK_OUTPUTS.iter().any(|(key, _)| *key == name);
        let reads = |reference: &Reference| matches!(reference, Reference::InstallStack(name) if is_network(name));
        self.sandbox.is_some() || self.components.iter().flat_map(|component| &component.references).any(reads)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_app_needs_a_network_for_its_sandbox_or_when_a_component_reads_it() {
        let plain = AppVersion::empty("demo".parse().unwrap());
        let (mut with_sandbox, mut reader, mut other) = (plain.clone(), plain.clone(), plain.clone());
        with_sandbox.sandbox = serde_json::from_value(json!({
            "tool": { "tool": "terraform", "version": "1.11.3" }, "source": { "from": "version" },
        }))
        .unwrap();
        let component = |output: &str| {
            serde_json::from_value(json!([{
                "name": "api", "deploy_timeout_secs": 60, "source": { "from": "version" },
                "references": [{ "to": "install_stack", "name": output }],
                "spec": { "kind": "terraform_module", "terraform_version": "1.11.3" },
            }]))
            .unwrap()
        };
        reader.components = component("vpc_id");
        other.components = component("region");

        let needs = [plain, with_sandbox, reader, other].map(|version| version.needs_network());

        assert_eq!(needs, [false, true, true, false]);
    }
}
