//! Requests and responses of the API about the caller, and about the members of the tenant and their invitations.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::order::AskedBy;
use crate::{AppName, InstallId, MemberName, Shape, Timestamp};

/// The form of the code of an invitation: 32 random bytes.
pub const INVITATION_CODE: Shape = Shape::Hex { prefix: "", digits: 64 };

/// `GET /v1/caller`: who the caller is to the tenant, and what the caller may do in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CallerView {
    /// `iam:` and the ARN of an IAM principal, or `person:` or `pipeline:` and the subject of a token.
    pub who: String,
    /// The name of the member; for a caller who is not a member, the caller's own name.
    pub name: String,
    /// The groups of the member, by name.
    pub groups: Vec<String>,
    /// The apps that the member is limited to.
    pub apps: BTreeSet<AppName>,
    /// The installs that the member is limited to.
    pub installs: BTreeSet<InstallId>,
    pub is_member: bool,
    /// The actions that the policies permit the caller on the whole tenant, by name.
    pub permissions: Vec<String>,
}

/// A member of the tenant, or somebody who is invited.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MemberView {
    pub member: MemberName,
    /// `person:` and the subject of the person's tokens, or `iam:` and an ARN; absent until somebody accepts the
    /// invitation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub who: Option<String>,
    pub groups: BTreeSet<String>,
    /// The apps that the member is limited to.
    pub apps: BTreeSet<AppName>,
    /// The installs that the member is limited to.
    pub installs: BTreeSet<InstallId>,
    pub invited_at: Timestamp,
    pub invited_by: AskedBy,
    /// Absent until somebody accepts the invitation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted_at: Option<Timestamp>,
    /// When the invitation expires; absent once it is accepted, and for an IAM principal, who needs no code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
}

/// `POST /v1/members`: invites a member. Another invitation of somebody who has not accepted yet replaces the first
/// one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct InviteMemberRequest {
    /// The name for the member, such as an e-mail address. The tenant sends no e-mail.
    pub member: MemberName,
    /// The groups of the member, such as `developer`.
    pub groups: BTreeSet<String>,
    /// The apps that the member is limited to.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub apps: BTreeSet<AppName>,
    /// The installs that the member is limited to.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub installs: BTreeSet<InstallId>,
    /// The ARN of an IAM user or role, which becomes the member at once and needs no code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iam: Option<String>,
}

/// The response to `POST /v1/members`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MemberInvited {
    pub member: MemberView,
    /// The code of the invitation, for the invited person alone. The tenant does not store it and shows it once. It is
    /// absent for an IAM principal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "maybe_code"))]
    pub code: Option<String>,
}

/// `POST /v1/members/{member}`: replaces the groups, apps and installs of a member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SetMemberRequest {
    pub groups: BTreeSet<String>,
    /// The apps that the member is limited to; absent for none.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub apps: BTreeSet<AppName>,
    /// The installs that the member is limited to; absent for none.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub installs: BTreeSet<InstallId>,
}

/// The response to `POST /v1/members/{member}/remove`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MemberRemoved {
    pub member: MemberName,
}

/// `POST /v1/invitations/accept`: makes the signed-in caller the member whom the invitation names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct AcceptInvitationRequest {
    /// The code of the invitation. Each code is accepted once, within seven days.
    #[cfg_attr(feature = "schema", schemars(schema_with = "code"))]
    pub code: String,
}

#[cfg(feature = "schema")]
fn code(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    INVITATION_CODE.schema()
}

#[cfg(feature = "schema")]
fn maybe_code(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": ["string", "null"], "pattern": "^[0-9a-f]{64}$" })
}
