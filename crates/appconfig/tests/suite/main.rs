//! App configs on disk, as a person writes them.

mod actions;
mod addresses;
mod components;
mod config;
mod faults;
mod links;
mod loading;
mod real_apps;
mod robustness;
