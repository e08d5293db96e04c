//! Jobs and their workflows: faults, failures and what continues them, health, required checks, drift, runbooks, sandboxes and
//! schedules.

mod continuation;
mod drift;
mod faults;
mod health;
mod required_checks;
mod runbook;
mod sandbox;
mod schedule;
