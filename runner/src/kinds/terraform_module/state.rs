//! The state that a plan of Terraform is compared with: its lineage and its serial.

use serde::Deserialize;

use crate::job::bucket::JobBucket;
use crate::job::failure::Failure;
use crate::state_objects::StateObjects;

/// The size limit of a state, in bytes.
const MAX_STATE: usize = 256 * 1024 * 1024;

#[derive(Debug, Deserialize)]
struct State {
    #[serde(default)]
    serial: u64,
    #[serde(default)]
    lineage: String,
}

/// Returns the lineage and the serial of the state; `no state` before the first apply. Terraform itself refuses a plan if the
/// state has changed since. With this text, the runner sees the change earlier, and makes a new plan.
pub(super) async fn describe(bucket: &JobBucket, objects: &StateObjects) -> Result<String, Failure> {
    let key = objects.state();
    let Some(bytes) = bucket.get(&key, MAX_STATE).await? else { return Ok("no state".to_owned()) };
    let State { serial, lineage } = serde_json::from_slice(&bytes)
        .map_err(|error| Failure::because(&format!("could not read the state `{key}`"), &error))?;
    Ok(format!("lineage {lineage}, serial {serial}"))
}
