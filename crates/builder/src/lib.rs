//! The builder: makes artifacts from their sources in the tenant's account, as the jobs of a runner of its own.

mod archive;
pub mod build;
mod chart;
mod dockerfile;
pub mod doctor;
mod image;
mod layout;
mod manifests;
mod package;
mod signature;
mod source;
mod statement;
