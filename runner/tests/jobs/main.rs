//! Jobs of every kind with the real programs: bubblewrap, Terraform, git, a registry, and the local cloud. What is not
//! installed is skipped, and the output says so.

#![cfg(test)]

mod action;
mod build;
mod chart;
mod cloud;
mod cloudformation_stack;
mod container_image;
mod docker_build;
mod fixture;
mod manifest;
mod preflight;
#[path = "../../../crates/oci/tests/suite/registry.rs"]
mod registry;
mod sandbox;
mod signed_image;
mod terraform_module;
