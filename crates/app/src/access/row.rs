//! The rows of access: members, their invitations, the principals that are members, and the policies.

use std::collections::BTreeSet;

use freehold_protocol::api::MemberView;
use freehold_protocol::order::AskedBy;
use freehold_protocol::{AppName, Digest, InstallId, MemberName, Timestamp};
use serde::{Deserialize, Serialize};

use crate::AppError;
use crate::ports::{Key, Store};
use crate::table::{Record, Stored, load, load_all};

/// The partition of the members, by name.
pub(super) const MEMBERS: &str = "members";
/// The partition of the policies and of the last change of access.
const ACCESS: &str = "access";
/// The partition of the invitations, by the digest of their codes.
const INVITATIONS: &str = "invitations";

/// The groups of a member, and the apps and installs that the member is assigned to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Assignment {
    pub(super) groups: BTreeSet<String>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(super) apps: BTreeSet<AppName>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(super) installs: BTreeSet<InstallId>,
}

/// A member of the tenant, or somebody who is invited.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Member {
    pub(super) name: MemberName,
    pub(super) assignment: Assignment,
    pub(super) invited_at: Timestamp,
    pub(super) invited_by: AskedBy,
    pub(super) state: MemberState,
}

/// Whether somebody has accepted the invitation of a member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum MemberState {
    /// Nobody has accepted the invitation, whose code has the digest `code`.
    Invited { code: Digest, expires_at: Timestamp },
    /// The principal `who` is the member. `code` is absent for an IAM principal, who needs no code.
    Accepted {
        who: String,
        at: Timestamp,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<Digest>,
    },
}

impl Member {
    /// Returns the principal that is the member; `None` until somebody accepts the invitation.
    pub(super) fn who(&self) -> Option<&str> {
        match &self.state {
            MemberState::Accepted { who, .. } => Some(who),
            MemberState::Invited { .. } => None,
        }
    }

    /// Returns the digest of the code by which the member was invited.
    pub(super) const fn code(&self) -> Option<&Digest> {
        match &self.state {
            MemberState::Invited { code, .. } => Some(code),
            MemberState::Accepted { code, .. } => code.as_ref(),
        }
    }

    /// Returns the row by which the principal of the member is found; `None` until somebody accepts the invitation.
    pub(super) fn known_principal(&self) -> Option<KnownPrincipal> {
        let (member, assignment) = (self.name.clone(), self.assignment.clone());
        self.who().map(|who| KnownPrincipal { who: who.to_owned(), member, assignment })
    }
}

/// Returns the API's view of a member.
pub(super) fn view(member: Member) -> MemberView {
    let Member { name, assignment: Assignment { groups, apps, installs }, invited_at, invited_by, state } = member;
    let (who, accepted_at, expires_at) = match state {
        MemberState::Invited { code: _, expires_at } => (None, None, Some(expires_at)),
        MemberState::Accepted { who, at, code: _ } => (Some(who), Some(at), None),
    };
    MemberView { member: name, who, groups, apps, installs, invited_at, invited_by, accepted_at, expires_at }
}

/// The invitation with a code, of which the tenant stores the digest alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Invitation {
    pub(super) code: Digest,
    pub(super) member: MemberName,
    pub(super) expires_at: Timestamp,
}

/// The member that a principal is. The row repeats the assignment of the member's row, so that a request reads one row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct KnownPrincipal {
    pub(super) who: String,
    pub(super) member: MemberName,
    pub(super) assignment: Assignment,
}

/// The policies of the tenant. A tenant without the row has the ready-made policies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PoliciesRecord {
    pub(super) policies: String,
    /// How often the policies were changed.
    pub(super) number: u64,
    pub(super) changed_at: Timestamp,
    pub(super) changed_by: AskedBy,
}

/// The last change of who may do what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LastChange {
    /// How many changes there were.
    pub(super) number: u64,
    /// What was changed, such as `member ana`. Two changes at one moment write different rows, because a commit takes
    /// an equal row for its own earlier try.
    pub(super) of: String,
    pub(super) at: Timestamp,
    pub(super) by: AskedBy,
}

impl Record for Member {
    fn key(&self) -> Key {
        member_key(&self.name)
    }
}

impl Record for Invitation {
    fn key(&self) -> Key {
        invitation_key(&self.code)
    }

    fn kept_until(&self) -> Option<Timestamp> {
        Some(self.expires_at)
    }
}

impl Record for KnownPrincipal {
    fn key(&self) -> Key {
        principal_key(&self.who)
    }
}

impl Record for PoliciesRecord {
    fn key(&self) -> Key {
        policies_key()
    }
}

impl Record for LastChange {
    fn key(&self) -> Key {
        last_change_key()
    }
}

/// Returns the key of a member's row.
pub(super) fn member_key(name: &MemberName) -> Key {
    Key { pk: MEMBERS.to_owned(), sk: name.to_string() }
}

/// Returns the key of the invitation whose code has this digest.
pub(super) fn invitation_key(code: &Digest) -> Key {
    Key { pk: INVITATIONS.to_owned(), sk: code.to_string() }
}

/// Returns the key of the row by which a principal is found.
pub(super) fn principal_key(who: &str) -> Key {
    Key { pk: format!("principal#{who}"), sk: "member".to_owned() }
}

/// Returns the key of the policies.
pub(super) fn policies_key() -> Key {
    Key { pk: ACCESS.to_owned(), sk: "policies".to_owned() }
}

/// Returns the key of the last change of access.
pub(super) fn last_change_key() -> Key {
    Key { pk: ACCESS.to_owned(), sk: "last-change".to_owned() }
}

/// Loads all members, by name.
///
/// # Errors
/// The store's errors.
pub(super) async fn members(store: &dyn Store) -> Result<Vec<Member>, AppError> {
    load_all(store, MEMBERS, "").await
}

/// Loads a member, if there is one with this name.
///
/// # Errors
/// The store's errors.
pub(super) async fn find_member(store: &dyn Store, name: &MemberName) -> Result<Option<Stored<Member>>, AppError> {
    load(store, &member_key(name)).await
}

/// Loads a member that must exist.
///
/// # Errors
/// NotFound, or the store's errors.
pub(super) async fn member(store: &dyn Store, name: &MemberName) -> Result<Stored<Member>, AppError> {
    find_member(store, name).await?.ok_or_else(|| {
        AppError::not_found(format!("member `{name}` does not exist; `freehold member list` shows all members"))
    })
}

#[cfg(test)]
mod tests {
    use serde::de::DeserializeOwned;
    use serde_json::Value;

    use super::*;

    fn read_and_write<T: Record + DeserializeOwned>(row: &Value) -> (Key, Value) {
        let record: T = serde_json::from_value(row["body"].clone()).unwrap();
        (record.key(), serde_json::to_value(record).unwrap())
    }

    #[test]
    fn the_rows_are_read_and_written_as_in_the_golden_rows() {
        let rows: Vec<Value> = serde_json::from_str(include_str!("../../golden/rows.json")).unwrap();
        let mut read = 0;
        for row in rows {
            let (key, body) = match row["type"].as_str().unwrap() {
                "Member" => read_and_write::<Member>(&row),
                "Invitation" => read_and_write::<Invitation>(&row),
                "KnownPrincipal" => read_and_write::<KnownPrincipal>(&row),
                "PoliciesRecord" => read_and_write::<PoliciesRecord>(&row),
                "LastChange" => read_and_write::<LastChange>(&row),
                _ => continue,
            };
            read += 1;

            assert_eq!((Value::from(key.pk), Value::from(key.sk)), (row["pk"].clone(), row["sk"].clone()));
            assert_eq!(body, row["body"]);
        }

        assert_eq!(read, 6);
    }
}
