//! App configs on disk, as a person writes them.

#![cfg(test)]

mod actions;
mod addresses;
mod components;
mod config;
mod effects;
mod faults;
mod ignored_files;
mod inputs;
mod installs;
mod links;
mod loading;
mod memory;
mod missing_programs;
mod modules;
mod outputs;
mod permissions;
mod policies;
mod policy_answers;
mod real_apps;
mod robustness;
mod run_inputs;
mod schemas;
mod settings;
mod sources;
mod templates;
mod unused_keys;
