//! A chart and a manifest in the customer's cluster after their first deploy: drift is found and repaired, and a
//! verified deploy that fails is rolled back.

mod drift;
mod roll_back;

use freehold_tests::harness::{Capability, Needs};

const NEEDS: Needs = Needs {
    cloud: &[Capability::HttpApi, Capability::Registry, Capability::IamEnforced, Capability::Clusters],
    programs: &["bwrap", "helm", "terraform|tofu"],
};
