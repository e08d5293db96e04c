//! The build runner, a separate program in the tenant's account. Its jobs make artifacts from their sources.

mod archive;
pub mod build;
mod chart;
pub mod dockerfile;
pub mod doctor;
mod download;
mod image;
mod layout;
pub mod machine;
mod manifests;
mod package;
mod private_source;
mod pulumi;
mod signature;
mod source;
mod statement;
mod step;
mod terraform;
