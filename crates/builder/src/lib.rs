//! The builder: a separate runner, whose jobs make artifacts from their sources in the tenant's account.

mod archive;
pub mod build;
mod chart;
pub mod dockerfile;
pub mod doctor;
mod download;
mod image;
mod layout;
mod manifests;
mod package;
mod signature;
mod source;
mod statement;
mod terraform;
