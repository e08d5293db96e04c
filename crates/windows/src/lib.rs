//! The customer's rules about the time of changes: change windows and freezes in a time zone, a hold, who may start
//! changes outside of the windows with `--now`, and which actions may always run. They come from the parameters of the
//! install stack. Callers pass times in, and nothing here reads a clock.

mod calendar;
mod decision;
mod freezes;
mod hours;
mod passes;
mod rules;
mod text;

pub use decision::{Closed, Decision, Opening, Openings, Why};
pub use freezes::Freeze;
pub use rules::{ACTIONS, FREEZES, HELD, NOW_BY, PARAMETERS, Rules, WINDOWS, is_change};
pub use text::RulesError;
