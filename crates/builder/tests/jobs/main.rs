//! Builds of every package with the real programs: bubblewrap, git, Helm, Buildah, a registry, and the local cloud. What is
//! not installed is skipped, and the output says so.

#![cfg(test)]

mod build;
mod builds;
mod chart;
#[path = "../../../../runner/tests/jobs/cloud.rs"]
#[expect(dead_code, reason = "the tests of the runner need more of it")]
mod cloud;
mod docker_build;
mod escapes;
#[path = "../../../../runner/tests/jobs/fixture.rs"]
#[expect(dead_code, reason = "the tests of the runner need more of it")]
mod fixture;
mod manifest;
mod mirror;
mod private_git;
mod private_registry;
mod private_ssh;
#[path = "../../../oci/tests/suite/registry.rs"]
mod registry;
mod signed_image;
mod stand_in;
mod step;
mod terraform;
