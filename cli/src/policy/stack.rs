//! The customer's settings of policies in the install stack, in the form of a runner's config file.

use std::collections::BTreeMap;

use toml_edit::{Array, Table, value};

/// The customer's settings of policies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Policies {
    loosened: Vec<String>,
    maintenance_creates: bool,
    maintenance_components: Vec<String>,
}

impl Policies {
    /// Returns the settings in the outputs of a stack. Returns `None` for the stack of an earlier release, which does
    /// not permit the runner to read the customer's policies either.
    pub(crate) fn of(outputs: &BTreeMap<String, String>) -> Option<Self> {
        let list = |text: &str| text.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect();
        let text = |name: &str| outputs.get(name).map(String::as_str).unwrap_or_default();
        let loosened = list(outputs.get("LoosenedPolicies")?);
        let maintenance_creates = text("MaintenanceCreates") != "false";
        Some(Self { loosened, maintenance_creates, maintenance_components: list(text("MaintenanceComponents")) })
    }

    /// Returns the table `policies` of a runner's config file.
    pub(crate) fn table(&self) -> Table {
        let mut table = Table::new();
        table.insert("customer", value(true));
        table.insert("loosened", value(self.loosened.iter().collect::<Array>()));
        table.insert("maintenance_creates", value(self.maintenance_creates));
        table.insert("maintenance_components", value(self.maintenance_components.iter().collect::<Array>()));
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_of_an_earlier_release_says_nothing_about_policies() {
        let outputs = |pairs: &[(&str, &str)]| {
            pairs.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect::<BTreeMap<_, _>>()
        };

        let found = Policies::of(&outputs(&[
            ("LoosenedPolicies", "no-strangers"),
            ("MaintenanceCreates", "false"),
            ("MaintenanceComponents", ""),
        ]));

        assert_eq!(Policies::of(&outputs(&[("ClusterImages", "any")])), None);
        assert_eq!(
            found.unwrap().table().to_string(),
            "customer = true\nloosened = [\"no-strangers\"]\nmaintenance_creates = false\nmaintenance_components = []\n"
        );
    }
}
