//! App configs on disk, as a person writes them.

mod config;
mod faults;
mod loading;
mod memory;
mod real_apps;
mod robustness;
