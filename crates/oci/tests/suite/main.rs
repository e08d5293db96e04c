//! The engine against real registries, a registry that misbehaves, and connections that break.

#![cfg(test)]

mod copies;
mod cuts;
mod faulty_registry;
mod image;
mod lies;
mod memory;
mod platforms;
mod proxy;
mod random;
mod referrers;
mod registry;
mod signatures;
mod skopeo;
