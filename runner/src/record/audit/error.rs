//! The reason why an audit record was not written.

use std::path::PathBuf;

use freehold_protocol::{KeyId, Timestamp};

/// The reason why an audit record was not written.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    /// The local file cannot be used.
    #[error("cannot use the audit file `{path}`; check permissions and free space of `state_dir`")]
    Io { path: PathBuf, source: std::io::Error },
    /// The file has a line that the runner did not write.
    #[error("the audit file `{path}` has a line that cannot be read; move the file away and keep it: it is evidence")]
    Damaged { path: PathBuf },
    /// Too many events wait for the customer's bucket.
    #[error(
        "{waiting} audit events wait in `{path}` for the customer's bucket, and no more are taken; the runner's log \
         states why the bucket does not take them"
    )]
    Full { path: PathBuf, waiting: u64 },
    /// The event is too long: nobody could read its record.
    #[error(
        "an audit event has {bytes} bytes, and a record takes at most {most}; shorten the texts that the event quotes"
    )]
    TooLong { bytes: usize, most: usize },
    /// The customer's bucket has not taken all records in time.
    #[error(
        "the customer's bucket has not taken the audit record within {secs} s: {waiting} records wait for it; try again \
         later"
    )]
    Slow { secs: u64, waiting: u64 },
    /// The customer's bucket has not given the records in time.
    #[error("the customer's bucket has not given the audit records within {secs} s; try again later")]
    SlowRead { secs: u64 },
    /// The record cannot be signed.
    #[error("cannot sign an audit record: {0}")]
    Seal(#[from] freehold_protocol::EnvelopeError),
    /// The customer's bucket does not accept the record.
    #[error("cannot write the audit record to bucket `{bucket}`: {reason}; allow `{action}` on `audit/*`")]
    Bucket { bucket: String, action: &'static str, reason: String },
    /// A record of the customer's bucket is not one that this version reads.
    #[error("audit record {seq} in the customer's bucket cannot be read; `freehold customer audit verify` shows why")]
    Unreadable { seq: u64 },
    /// An object of the customer's bucket is larger than any that a runner writes.
    #[error(
        "object `{object}` of bucket `{bucket}` has more than {most} bytes, so no runner wrote it; find out who did, \
         and move it out of `audit/`"
    )]
    TooLarge { bucket: String, object: String, most: usize, written_at: Option<Timestamp> },
    /// A machine with a newer version of the runner recorded something that may decide whether an order starts.
    #[error(
        "audit record {seq} in the customer's bucket has an event of a newer version, `{event}`, which may be about \
         this order; give this machine the newer version of the runner"
    )]
    NewerEvent { seq: u64, event: String },
    /// Another machine has the key of this runner.
    #[error(
        "audit record {seq} has a signature of runner key `{key}`, which is the key of this machine, but this machine \
         did not write the record: the state directory was copied to another machine, or restored from an older copy; \
         stop the other machine or this one; to continue with this one, remove `runner.key` from its state directory \
         and start the runner again, which makes a new key"
    )]
    SharedKey { seq: u64, key: KeyId },
    /// Other machines wrote records again and again.
    #[error(
        "cannot write the audit record: {0} times in a row, other machines of the install wrote the next record first"
    )]
    Contended(u32),
}
