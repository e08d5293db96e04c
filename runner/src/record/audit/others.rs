//! What a process has noticed of the other machines that write to the chain of its install.

use tokio::time::Instant;

/// The other machines that write to the chain, as far as this process has noticed them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Others {
    /// How often this process found that the chain continues with records of another machine.
    pub noticed: u32,
    /// The last time at which this process found that other machines had written records, which it has not read; or its
    /// own start, if an earlier process found some after it had joined the chain; otherwise `None`. Records after this
    /// time are noticed when this process writes its next record.
    pub until: Option<Instant>,
}
