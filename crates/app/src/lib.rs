//! The use cases. Each use case loads rows, decides with `domain`, commits, and then performs effects that may be
//! repeated. It reaches AWS through the ports only; `testing` holds in-memory doubles of the ports.
//!
//! The modules form layers. Each module uses only modules in the lines above its own line:
//!
//! 1. `messages`, `metrics`, `subject`
//! 2. `ports`
//! 3. `error`, `testing`
//! 4. `reason`, `table`, `text_limit`
//! 5. `app_version`, `new_workflow`, `notification`
//! 6. `contract`, `idempotency`, `part`, `read`
//! 7. `access`, `artifact`, `health`, `stack`
//! 8. `app_config`, `drift`
//! 9. `workflow`
//! 10. `release`, `runbook`
//! 11. `sweep`, `webhook`
//! 12. `install`

pub mod access;
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
pub mod metrics;
pub mod new_workflow;
pub mod notification;
mod part;
pub mod ports;
pub mod read;
mod reason;
pub mod release;
pub mod runbook;
pub mod stack;
pub mod subject;
pub mod sweep;
pub mod table;
#[cfg(feature = "testing")]
pub mod testing;
mod text_limit;
pub mod webhook;
pub mod workflow;

pub use error::{AppError, Kind};
