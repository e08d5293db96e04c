//! In-memory doubles of the ports: a table, a bucket, queues that record their messages, state machines, and a clock
//! that tests set. The tests of this crate and the simulated control plane use them.

mod faults;
mod lock;
mod machines;
mod memory;
mod notifications;
mod objects;
mod queues;
mod store;
mod sts;

pub use faults::{Fault, Faults};
pub use memory::Memory;
pub use sts::prove;
