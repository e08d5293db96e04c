//! Hard caps, checked before anything is parsed.

/// The largest envelope that is read, in bytes. SQS takes 1 MiB a message
/// (Amazon SQS quotas, "Message size").
pub const MAX_ENVELOPE_BYTES: usize = 1024 * 1024;

/// The largest payload carried inside a message, in bytes; a larger one travels by reference with its digest.
pub const MAX_INLINE_PAYLOAD_BYTES: usize = 200 * 1024;

/// The largest API request body, in bytes, except for a request that carries an app version. The HTTP API itself
/// accepts 10 MiB.
pub const MAX_REQUEST_BYTES: usize = 1024 * 1024;

/// The largest request body that carries an app version, in bytes: the document and what is around it.
pub const MAX_VERSION_REQUEST_BYTES: usize = MAX_APP_VERSION_BYTES + 64 * 1024;

/// The largest packed source directory, in bytes.
pub const MAX_SOURCE_BYTES: u64 = 512 * 1024 * 1024;

/// The largest canonical app version, in bytes; an answer of a function holds 6 MB (AWS Lambda quotas, "Invocation
/// payload").
pub const MAX_APP_VERSION_BYTES: usize = 4 * 1024 * 1024;

/// The largest canonical app version as a JSON string, in bytes: requests and answers travel through Lambda as strings,
/// where every quote and backslash takes two bytes. The rest of the 6 MB is for the other fields of the answer.
pub const MAX_QUOTED_VERSION_BYTES: usize = 5 * 1024 * 1024;

/// The largest canonical app version kept in the table, in bytes; a DynamoDB item holds 400 KB. A larger one lives in
/// the tenant's bucket, by digest.
pub const MAX_TABLE_VERSION_BYTES: usize = 300 * 1024;

/// The most log bytes that one report carries.
pub const MAX_LOG_BYTES_PER_REPORT: usize = 16 * 1024;

/// The largest set of outputs that a job may report, in bytes of JSON.
pub const MAX_OUTPUTS_BYTES: usize = 64 * 1024;

/// The most answers of a customer that a runner announces; a CloudFormation template has at most 200 parameters.
pub const MAX_ANSWERS: usize = 200;

/// The largest set of a customer's answers, in bytes of names and values together.
pub const MAX_ANSWERS_BYTES: usize = 64 * 1024;

/// Seconds of SQS visibility that a received order starts with: the lease.
pub const LEASE_SECS: u64 = 30;

/// Seconds between two renewals of the lease.
pub const LEASE_RENEW_SECS: u64 = 10;

/// The time limit of one job, in seconds: SQS limits the visibility of a message to 12 h.
pub const MAX_JOB_SECS: u32 = 11 * 60 * 60;

/// How long an order may wait for its runner before it expires, in seconds.
pub const CLAIM_WINDOW_SECS: u64 = 60 * 60;

/// How long after `not_after` a job without a result is marked as lost, in seconds: one lease and a margin for late
/// reports.
pub const LOST_GRACE_SECS: u64 = 120;

/// The largest canonical terms, in bytes: a signed contract holds them in one envelope.
pub const MAX_TERMS_BYTES: usize = 512 * 1024;

/// The most bytes that the accepted and the requested terms take in one order, compressed and added up.
pub const MAX_ORDER_TERMS_BYTES: usize = 96 * 1024;
