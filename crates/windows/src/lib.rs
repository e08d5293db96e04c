//! When a customer lets changes start: change windows and freezes in a time zone, a hold, and who may pass with `--now`, as
//! the parameters of the install stack say. Times are passed in; nothing here reads a clock.

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
