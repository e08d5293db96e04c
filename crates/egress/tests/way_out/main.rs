//! Outgoing connections of a job over real sockets: which of them reach their destination and which do not.

#![cfg(test)]

mod account;
mod addresses;
mod forward;
mod limits;
mod stage;
mod tunnels;
mod upstream;
