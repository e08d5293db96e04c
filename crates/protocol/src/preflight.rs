//! Preflight: what a runner checks before anything of an app is created in a customer's account, and what it found.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// Looks for what would stop the jobs that follow, and changes nothing. Its output [`FINDINGS`] is a list of [`Finding`].
/// What every runner needs for any work (its queues, its registry, its region) is not listed here.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CheckInstall {
    /// The Terraform versions that components ask for; an empty text stands for any version. Empty when no component uses
    /// Terraform.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub terraform_versions: BTreeSet<String>,
    /// The programs beside Terraform that components need: [`HELM`], [`KUSTOMIZE`].
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub tools: BTreeSet<String>,
    /// The names of CloudFormation stacks; each a template.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub stacks: BTreeSet<String>,
    /// Whether programs of the vendor run, which need the sandbox.
    #[serde(default)]
    pub programs: bool,
    /// What artifacts take on the runner's disk when all are unpacked at once, in bytes.
    #[serde(default)]
    pub disk_bytes: u64,
    /// Hosts that what follows names, with a port where it is not 443; the runner may have to reach them.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub hosts: BTreeSet<String>,
    /// What the policies of the mode's role allow, as far as it can be asked for one by one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub permissions: Vec<Permission>,
    /// How many more actions these policies allow: by a pattern, under a condition, or beyond what an order carries.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub permissions_left_out: u32,
}

/// The program that installs charts.
pub const HELM: &str = "helm";
/// The program that renders kustomizations; `kubectl` has it too.
pub const KUSTOMIZE: &str = "kustomize";

/// The calls of a job that deploys a stack which change nothing, so that a preflight can try them.
pub const STACK_READS: [&str; 2] = ["cloudformation:DescribeStacks", "cloudformation:DescribeChangeSet"];
/// The calls of a job that deploys a stack which a preflight lets IAM simulate.
pub const STACK_CHANGES: [&str; 3] =
    ["cloudformation:CreateChangeSet", "cloudformation:DescribeStackEvents", "cloudformation:ExecuteChangeSet"];

/// Actions on resources, as a policy's statement allows them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Permission {
    /// Such as `s3:CreateBucket`, without patterns.
    pub actions: BTreeSet<String>,
    /// ARNs or patterns of them; each a template.
    pub resources: BTreeSet<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// The output that holds what was found.
pub const FINDINGS: &str = "findings";

/// What was found about one thing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// What was checked.
    pub check: String,
    pub state: Verdict,
    /// What was seen, for people.
    pub detail: String,
    /// The way out; empty when nothing needs to be done.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub fix: String,
}

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Pass,
    /// It may cause a problem, or could not be checked; the deploy continues.
    Warn,
    /// The work that follows cannot succeed.
    Fail,
}

impl Verdict {
    /// Returns the word in tables and logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }
}
