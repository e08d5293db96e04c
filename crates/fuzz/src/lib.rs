//! Broken app configs and templates by the million: each either works or is refused, and nothing crashes.
//!
//! Inputs are made from good ones by a seed and a number, so that any of them can be made again. Everything runs inside
//! of one process; a panic is caught and counted as a crash, and so is an answer that breaks its promise.

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
