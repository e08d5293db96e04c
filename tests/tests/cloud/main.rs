//! Scenarios with real programs, each on a local cloud of its own. Those of the adapters, which run on LocalStack too, are in
//! `cloud_adapters`, and those that watch every process of the machine in `cloud_secrets`.

#![cfg(test)]

mod app;
mod install;
mod job;
mod people;
mod runner;
mod tenant;
