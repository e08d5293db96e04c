//! What a process has noticed of the other machines that write to the chain of its install.

use tokio::time::Instant;

/// The other machines that write to the chain, as far as this process has noticed them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Others {
    /// How often this process found that the chain continues with records of another machine.
    pub noticed: u32,
    /// No record of another machine was written after this time, except for those that are noticed when this process
    /// writes its next record. Before this time, another machine may have written records that nobody here has read.
    pub until: Instant,
}
