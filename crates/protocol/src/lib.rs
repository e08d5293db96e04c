//! The messages that the control plane and the runners exchange: orders, reports and grants, their ids, and the signed
//! envelope around each of them. The crate uses no I/O, clock or randomness. `golden/` has examples of the messages as
//! JSON.

pub mod api;
pub mod app_version;
pub mod approval;
mod artifact;
pub mod audit;
mod build;
pub mod contract;
pub mod digest;
mod download_url;
pub mod envelope;
mod fence;
mod flag;
pub mod grant;
pub mod ids;
pub mod licence;
pub mod limits;
pub mod lineage;
mod mode;
pub mod notification;
pub mod order;
mod packed_text;
pub mod pem;
pub mod policy;
pub mod preflight;
pub mod provenance;
pub mod release;
pub mod report;
pub mod sealing;
pub mod shape;
pub mod source;
pub mod succession;
pub mod terraform;
pub mod time;
pub mod webhook;

pub use digest::{Digest, canonical};
pub use download_url::{DownloadUrl, NotDownloadUrl};
pub use envelope::{Delegated, Envelope, EnvelopeError, KeyId, KeyUse, KeyUses, Payload};
pub use ids::names;
pub use ids::{
    AccountId, ActionName, AppName, Arn, BuildId, ChannelName, CheckName, ComponentName, GrantId, Group, IamRoleName,
    IdError, InstallId, JobId, MemberName, NotificationId, Partition, ReleaseName, RoleKey, RunId, RunbookName,
    TenantName, TokenSubject, WebhookName, WorkflowId,
};
pub use packed_text::packed_len;
pub use shape::Shape;
pub use time::Timestamp;
