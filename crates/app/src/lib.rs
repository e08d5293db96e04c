//! The use cases. Each use case loads rows, decides with `domain`, commits, and then performs effects that may be
//! repeated. It reaches AWS through the ports only; `testing` holds in-memory doubles of the ports.
//!
//! The directories form layers. Each directory uses only directories in the lines above its own line:
//!
//! 1. `table`
//! 2. `app_version`, `new_workflow`, `notification`
//! 3. `contract`, `idempotency`, `part`, `read`
//! 4. `artifact`, `health`, `stack`
//! 5. `app_config`, `drift`
//! 6. `workflow`
//! 7. `release`, `runbook`
//! 8. `sweep`, `webhook`
//! 9. `install`

pub mod app_config;
pub mod app_version;
pub mod artifact;
pub mod contract;
pub mod drift;
pub mod error;
pub mod health;
pub mod idempotency;
pub mod install;
pub mod messages;
pub mod new_workflow;
pub mod notification;
mod part;
pub mod ports;
pub mod read;
mod reason;
pub mod release;
pub mod runbook;
pub mod stack;
pub mod sweep;
pub mod table;
#[cfg(feature = "testing")]
pub mod testing;
pub mod webhook;
pub mod workflow;

pub use error::{AppError, Kind};
