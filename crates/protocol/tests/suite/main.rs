//! The messages between the parties: how they are written, who signs them, and who believes them.

#![cfg(test)]

mod golden;
mod inputs;
mod key_uses;
mod licence;
mod lineage;
mod provenance;
mod succession;
mod time;
