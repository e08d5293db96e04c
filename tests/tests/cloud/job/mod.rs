//! Jobs and their workflows: faults, failures, retries and what continues them, health, required checks, drift, runbooks,
//! sandboxes and schedules.

mod continuation;
mod drift;
mod faults;
mod health;
mod killed_runner;
mod required_checks;
mod retries;
mod runbook;
mod sandbox;
mod schedule;
