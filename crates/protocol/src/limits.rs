//! Limits of sizes and times that the control plane and the runners enforce.

/// The largest envelope that is parsed, in bytes. An SQS message has at most 1 MiB (Amazon SQS quotas, "Message size").
pub const MAX_ENVELOPE_BYTES: usize = 1024 * 1024;

/// The maximum number of successions of root keys that a reader follows from the root that it was given.
pub const MAX_SUCCESSIONS: usize = 16;

/// The largest payload of an order, in bytes. The order of a job with a larger payload is not sent, and the job fails. In
/// base64, with the sealed values and the certificate, it fits into [`MAX_ENVELOPE_BYTES`].
pub const MAX_ORDER_BYTES: usize = 600 * 1024;

/// The largest payload of an order after compression, in bytes. Orders are stored in the tenant's table, compressed, and a
/// row has at most 400 KB.
pub const MAX_PACKED_ORDER_BYTES: usize = 320 * 1024;

/// The maximum size of the values that the vendor gives to the inputs of an install, as JSON and all together, in bytes.
/// They are part of the install's row, and a row has at most 400 KB.
pub const MAX_INPUTS_BYTES: usize = 200 * 1024;

/// The maximum size of the labels of an install, keys and values together, in bytes. The default labels of an app have
/// the same limit of their own. Lists of installs contain both.
pub const MAX_LABELS_BYTES: usize = 4 * 1024;

/// The maximum size of the facts of a licence, as JSON, in bytes.
pub const MAX_FACTS_BYTES: usize = 4 * 1024;

/// The largest signed licence that is parsed, in bytes. It has room for the facts and, in the certificate, for
/// [`MAX_SUCCESSIONS`] successions.
pub const MAX_LICENCE_BYTES: usize = 32 * 1024;

/// The largest API request body, in bytes, except for a request that carries an app version. The HTTP API itself
/// accepts 10 MiB.
pub const MAX_REQUEST_BYTES: usize = 1024 * 1024;

/// The largest request body that carries an app version, in bytes: the document and the JSON around it.
pub const MAX_VERSION_REQUEST_BYTES: usize = MAX_APP_VERSION_BYTES + 64 * 1024;

/// The time for which the answer to a request with an idempotency key is kept, in seconds.
pub const KEPT_ANSWER_SECS: u64 = 24 * 60 * 60;

/// The largest row of a request with an idempotency key that has the answer, in bytes. The table refuses rows of more
/// than 400 KB. In the row, each quotation mark of the answer has a backslash before it.
pub const MAX_KEPT_REQUEST_BYTES: usize = 256 * 1024;

/// The maximum length of a title in the form of an install stack, in characters. A longer title could hide the rest of
/// the form.
pub const MAX_TITLE_CHARS: usize = 120;

/// The maximum number of steps of a runbook. The state of all of them is in one row of the tenant's table.
pub const MAX_RUNBOOK_STEPS: usize = 100;

/// The maximum number of runbooks that run after a deploy. Their names are in the row of each deploy.
pub const MAX_POST_DEPLOY_RUNBOOKS: usize = 20;

/// The largest packed source directory, in bytes.
pub const MAX_SOURCE_BYTES: u64 = 512 * 1024 * 1024;

/// The largest canonical app version, in bytes. The response of a Lambda function has at most 6 MB (AWS Lambda quotas,
/// "Invocation payload").
pub const MAX_APP_VERSION_BYTES: usize = 4 * 1024 * 1024;

/// The largest JSON in a response as a JSON string, in bytes: a canonical app version, or the items of a page. Lambda
/// passes requests and responses as strings, in which every quote and backslash takes two bytes. The rest of the 6 MB
/// is for the other fields of the response.
pub const MAX_QUOTED_BYTES: usize = 5 * 1024 * 1024;

/// The largest canonical app version in the table, in bytes: a DynamoDB item has at most 400 KB. The tenant's bucket
/// stores larger versions by digest.
pub const MAX_TABLE_VERSION_BYTES: usize = 300 * 1024;

/// The maximum size of the log text in one report, in bytes.
pub const MAX_LOG_BYTES_PER_REPORT: usize = 16 * 1024;

/// The largest outputs that a job may report, in bytes of JSON for all of them together.
pub const MAX_OUTPUTS_BYTES: usize = 64 * 1024;

/// The maximum number of a customer's answers that a runner announces: a CloudFormation template has at most 200
/// parameters.
pub const MAX_ANSWERS: usize = 200;

/// The maximum size of a customer's answers, names and values together, in bytes.
pub const MAX_ANSWERS_BYTES: usize = 64 * 1024;

/// The maximum number of roles whose switches a runner announces: each switch is a parameter of the template.
pub const MAX_ROLE_SWITCHES: usize = MAX_ANSWERS;

/// The maximum number of roles that trust a stranger in the report of an attempt's end.
pub const MAX_ROLES_TRUSTING_STRANGERS: usize = 100;

/// The largest envelope of a runner's hello, in bytes: the answers, the digests of 200 secrets, and base64.
pub const MAX_HELLO_BYTES: usize = 256 * 1024;

/// The lease: the visibility timeout in SQS that an order has when a runner receives it, in seconds.
pub const LEASE_SECS: u64 = 30;

/// The time between two renewals of the lease, in seconds.
pub const LEASE_RENEW_SECS: u64 = 10;

/// The time limit of one job, in seconds: SQS limits the visibility of a message to 12 h.
pub const MAX_JOB_SECS: u32 = 11 * 60 * 60;

/// The time that one order may wait until it is started, in seconds. It is short, because whoever has a copy of an
/// order can send it again until this time. A job waits longer than its order ([`MAX_WAIT_SECS`]).
pub const CLAIM_WINDOW_SECS: u64 = 60 * 60;

/// The time that a job waits for its runner, in seconds. SQS deletes a message after 14 days. Before that, a runner
/// that is connected again receives the expired order and gives it back, so that the job gets a new order.
pub const MAX_WAIT_SECS: u64 = 13 * 24 * 60 * 60;

/// The time that a job waits for the customer's change window, in seconds. Nothing is in a queue meanwhile.
pub const MAX_WINDOW_WAIT_SECS: u64 = 60 * 24 * 60 * 60;

/// The time that a plan may be approved and applied after it was made, in seconds.
pub const APPROVAL_SECS: u64 = 7 * 24 * 60 * 60;

/// The time between `not_after` and the moment when a job without a result is marked as lost, in seconds: one lease and
/// a margin for late reports.
pub const LOST_GRACE_SECS: u64 = 120;

/// The time after its certification during which messages of a delegate key may be sent, in seconds. A stolen key can
/// be used for this long.
pub const DELEGATE_SEND_SECS: u64 = 20 * 60;

/// The minimum time for which the key of a new message may still send, in seconds, so that the message can be repeated.
pub const DELEGATE_SPARE_SECS: u64 = 10 * 60;

/// The largest canonical terms, in bytes: one envelope must be able to contain a signed contract.
pub const MAX_TERMS_BYTES: usize = 512 * 1024;

/// The maximum size of the accepted and the requested terms together in one order, after compression, in bytes.
pub const MAX_ORDER_TERMS_BYTES: usize = 96 * 1024;

/// The maximum size of the sealed values of all inputs of an install together, in bytes: they are part of the install's
/// row in the table, and travel with each order.
pub const MAX_SEALED_BYTES: usize = 96 * 1024;

/// The maximum size of a run's inputs, in bytes: all names and texts together. The orders of its actions contain them.
pub const MAX_RUN_INPUT_BYTES: usize = 16 * 1024;
