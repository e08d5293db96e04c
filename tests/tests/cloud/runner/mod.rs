//! Runners: who is believed to be one, what one refuses, and what happens when one is killed, paused or replaced.

mod forged_messages;
mod identity;
mod kill;
mod outage;
mod pause;
mod upgrade;
