//! Jobs of every kind with the real programs: bubblewrap, Terraform, a registry, and the local cloud. What is not
//! installed is skipped, and the output says so.

#![cfg(test)]

mod action;
mod approvals;
mod artifacts;
mod bare_machine;
mod cloud;
mod cloudformation_stack;
mod cluster;
mod container_image;
mod copy_secrets;
mod fixture;
mod health;
mod helm_chart;
mod killed_runner;
mod kubernetes_job;
mod kubernetes_manifest;
mod leftovers;
mod policies;
mod preflight;
#[path = "../../../tests/tests/cloud_secrets/processes.rs"]
mod processes;
mod pulumi;
#[path = "../../../crates/oci/tests/suite/registry.rs"]
mod registry;
mod sandbox;
mod terraform_module;
mod tool_image;
mod upgrade;
mod walls;
