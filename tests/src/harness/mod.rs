//! The harness for tests of whole programs: a cloud with a tenant, real commands, runners and customers.
//!
//! The cloud is one of three forms behind [`cloud::Cloud`], chosen by `FREEHOLD_CLOUD`; a test names the capabilities
//! that it needs and is skipped with a message where they are missing. Each test has a cloud and a tenant of its own.

pub mod app;
mod aws;
mod chosen_cloud;
pub mod clients;
pub mod cloud;
mod clusters;
pub mod command;
mod disturbance;
mod emulator;
pub mod forger;
#[cfg(feature = "localstack")]
mod localstack;
mod ministack;
mod programs;
mod proxies;
pub mod runner;
mod running_localstack;
pub mod wait;
pub mod web;
mod world;

pub use cloud::Capability;
pub use clusters::Cluster;
pub use command::CommandOutput;
pub use disturbance::MovableClock;
pub use proxies::Proxies;
pub use runner::Runner;
pub use world::{Install, Needs, World};
