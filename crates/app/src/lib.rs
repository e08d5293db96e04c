//! The use cases: each one loads rows, decides with `domain`, commits, then performs effects that may be repeated. AWS
//! is behind the ports; `testing` holds in-memory doubles.

pub mod app_version;
pub mod artifact;
pub mod contract;
pub mod error;
pub mod install;
pub mod messages;
pub mod ports;
pub mod read;
mod reason;
pub mod stack;
pub mod table;
#[cfg(feature = "testing")]
pub mod testing;
pub mod workflow;

pub use error::{AppError, Kind};
