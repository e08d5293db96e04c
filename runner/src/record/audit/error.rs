//! The reason why an audit record was not written.

use std::path::PathBuf;

/// The reason why an audit record was not written.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    /// The local file cannot be used.
    #[error("cannot use the audit file `{path}`; check permissions and free space of `state_dir`")]
    Io { path: PathBuf, source: std::io::Error },
    /// The file has a line that the runner did not write.
    #[error("the audit file `{path}` has a line that cannot be read; move the file away and keep it: it is evidence")]
    Damaged { path: PathBuf },
    /// The record cannot be signed.
    #[error("cannot sign an audit record: {0}")]
    Seal(#[from] freehold_protocol::EnvelopeError),
    /// The customer's bucket does not accept the record.
    #[error("cannot write the audit record to bucket `{bucket}`: {reason}; allow `{action}` on `audit/*`")]
    Bucket { bucket: String, action: &'static str, reason: String },
    /// Other machines wrote records again and again.
    #[error(
        "cannot write the audit record: {0} times in a row, other machines of the install wrote the next record first"
    )]
    Contended(u32),
}
