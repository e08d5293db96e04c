//! The work on one order, from the poll that receives it to the report about its end.

pub mod admission;
pub mod agent;
pub mod attempt;
pub mod change_rules;
pub mod control;
pub mod hand_over;
pub mod in_flight;
pub mod journal;
pub mod lease;
mod not_understood;
pub mod poll;
pub mod presence;
pub mod role_switches;
pub mod standby;
pub mod supervise;
