//! What a process has noticed of the other machines that write to the chain of its install.

use tokio::time::Instant;

/// The other machines that write to the chain, as far as this process has noticed them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Others {
    /// How often this process found that the chain continues with records of another machine.
    pub noticed: u32,
    /// Before this time, other machines wrote records that nobody here has read; `None` if no other machine has written
    /// since this one joined the chain. Records after this time are noticed when this process writes its next record.
    pub until: Option<Instant>,
}
