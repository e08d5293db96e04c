//! Which apps need the network of the install stack, and what the stack hands out of it.

use super::components::Reference;
use super::version::AppVersion;

/// What the install stack hands out of its network: the key below `.nuon.install_stack.outputs`, and the stack's output. Several
/// subnets are separated by commas.
pub const NETWORK_OUTPUTS: [(&str, &str); 4] = [
    ("vpc_id", "VpcId"),
    ("runner_subnet", "RunnerSubnet"),
    ("public_subnets", "PublicSubnets"),
    ("private_subnets", "PrivateSubnets"),
];

/// Returns the availability zones, by number, that a new network spans. A new account has only two in `us-west-1` (Amazon EC2
/// user guide, "Regions and Zones").
pub fn network_zones(region: &str) -> &'static [u8] {
    if region == "us-west-1" { &[0, 1] } else { &[0, 1, 2] }
}

impl AppVersion {
    /// Returns whether the app works in a network of the install stack: what a sandbox makes needs one, and a part may read it.
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
