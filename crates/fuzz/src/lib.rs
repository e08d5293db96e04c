//! Fuzzes the readers of app configs and templates: each broken input is either accepted or refused, and none crashes.
//!
//! A seed and a number decide each input, so that it can be repeated. Everything runs in one process; a panic is caught
//! and counted as a crash, and so is a result that breaks a promise.

#![expect(clippy::indexing_slicing, reason = "not shipped; its places are drawn below the length")]

mod appconfig;
mod draw;
mod mutate;
mod run;
mod seeds;
mod template;

pub use appconfig::Configs;
pub use draw::Draw;
pub use run::{Crash, Outcome, Target, run};
pub use template::Templates;

#[cfg(test)]
mod tests;
