//! Installs: what a customer agrees to, decides, permits and sees, from the first deploy until nothing is left.

mod approvals;
mod contract;
mod customer;
mod demo_cluster;
mod forget;
mod in_cluster;
mod inputs;
mod kubernetes;
mod licence;
mod path;
mod policies;
mod preflight;
mod roles;
mod secrets;
mod toggles;
mod windows;
