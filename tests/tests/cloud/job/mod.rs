//! Jobs and their workflows: faults, failures and what continues them, health, drift, runbooks and sandboxes.

mod continuation;
mod drift;
mod faults;
mod health;
mod runbook;
mod sandbox;
