//! Sensitive outputs, whose values the runner keeps in the customer's account.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::fence::Fence;
use crate::flag::is_false;
use crate::{ComponentName, Digest, JobId};

/// The sensitive outputs of one component or of the sandbox, and the attempt that made them: the attempt whose success the
/// control plane recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptOutputs {
    pub part: ComponentName,
    /// Whether the part is the app's sandbox.
    #[serde(default, skip_serializing_if = "is_false")]
    pub sandbox: bool,
    /// The other name by which templates refer to the component; empty when there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub var_name: String,
    /// The serial of the job.
    pub serial: u64,
    pub job: JobId,
    pub fence: Fence,
    /// The keyed digest of each output, as the attempt reported it.
    pub digests: BTreeMap<String, Digest>,
}
