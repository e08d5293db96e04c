//! App configs on disk, as a person writes them.

mod config;
mod faults;
mod inputs;
mod installs;
mod loading;
mod permissions;
mod policies;
mod real_apps;
mod robustness;
mod settings;
