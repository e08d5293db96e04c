//! Connections through the way out of a job, over real sockets: what reaches its destination and what does not.

#![cfg(test)]

mod addresses;
mod forwarded;
mod limits;
mod stage;
mod tunnels;
mod upstream;
