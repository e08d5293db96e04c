//! App configs on disk, as a person writes them.

mod config;
mod faults;
mod loading;
mod real_apps;
mod robustness;
mod schema_samples;
mod schemas;
