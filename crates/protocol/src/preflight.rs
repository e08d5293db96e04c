//! Preflight: the checks of a runner before anything of an app is created in a customer's account, and their findings.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// The work of a preflight: looks for problems that would stop the jobs that follow, and changes nothing. Its output
/// [`FINDINGS`] is a list of [`Finding`]. Things that every job needs (queues, registry, region) are not listed here.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CheckInstall {
    /// The Terraform versions that components require. An empty text means that any version is good. The set is empty
    /// when no component uses Terraform.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub terraform_versions: BTreeSet<String>,
    /// The programs that components need in addition to Terraform: [`HELM`], [`KUSTOMIZE`], [`PULUMI`].
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub tools: BTreeSet<String>,
    /// The names of CloudFormation stacks. Each name is a template.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub stacks: BTreeSet<String>,
    /// Whether later jobs run programs of the vendor, which the runner executes in a box.
    #[serde(default)]
    pub programs: bool,
    /// The disk space of the runner that all artifacts need when they are unpacked at the same time, in bytes.
    #[serde(default)]
    pub disk_bytes: u64,
    /// The hosts that later jobs name and that the runner may have to reach. A host has a port unless the port is 443.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub hosts: BTreeSet<String>,
    /// The permissions that the policies of the mode's role allow, as far as IAM can simulate them one by one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub permissions: Vec<Permission>,
    /// The number of actions that these policies allow and that `permissions` leaves out: the policy names them by a
    /// pattern, or under a condition, or the order has no space for them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub permissions_left_out: u32,
    /// The clusters that the customer may already have, and that later jobs change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clusters: Vec<ExistingCluster>,
}

/// A cluster that the app's sandbox takes by its name. The runner finds out whether the cluster exists before the
/// deploy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExistingCluster {
    /// The name of the EKS cluster, as a template.
    pub name: String,
    /// The namespaces in which components have objects. Each of them is a template.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub namespaces: BTreeSet<String>,
}

/// The program that installs charts.
pub const HELM: &str = "helm";
/// The program that renders kustomizations; `kubectl` has it too.
pub const KUSTOMIZE: &str = "kustomize";
/// The program that updates the stacks of Pulumi programs.
pub const PULUMI: &str = "pulumi";

/// The read-only calls in the deploy of a stack. A preflight makes these calls.
pub const STACK_READS: [&str; 2] = ["cloudformation:DescribeStacks", "cloudformation:DescribeChangeSet"];
/// The other calls in the deploy of a stack. A preflight does not make them: IAM simulates them.
pub const STACK_CHANGES: [&str; 3] =
    ["cloudformation:CreateChangeSet", "cloudformation:DescribeStackEvents", "cloudformation:ExecuteChangeSet"];

/// The calls in the removal of a stack, in the order in which a job makes them.
pub const STACK_REMOVALS: [&str; 4] = [
    "cloudformation:DescribeStacks",
    "cloudformation:ListStackResources",
    "cloudformation:DeleteStack",
    "cloudformation:DescribeStackEvents",
];

/// Actions on resources, as a policy's statement allows them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Permission {
    /// The actions, such as `s3:CreateBucket`, without patterns.
    pub actions: BTreeSet<String>,
    /// ARNs or patterns of ARNs. Each of them is a template.
    pub resources: BTreeSet<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// The name of the job's output that contains the findings.
pub const FINDINGS: &str = "findings";

/// The result of one check, with an explanation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The subject of the check.
    pub check: String,
    pub state: Verdict,
    /// The observation as a text for people.
    pub detail: String,
    /// The instruction that solves the problem; empty when nothing needs to be done.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub fix: String,
}

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Pass,
    /// The subject may cause a problem, or could not be checked. The deploy continues.
    Warn,
    /// The jobs that follow cannot succeed.
    Fail,
}

impl Verdict {
    /// Returns the word for tables and logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }
}
