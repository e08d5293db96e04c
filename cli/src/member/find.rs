//! Finds a member by name.

use freehold_client::calls;
use freehold_protocol::MemberName;
use freehold_protocol::api::MemberView;

use crate::api::Api;
use crate::error::{Error, Result};

/// Finds a member or an invitation by name.
///
/// # Errors
/// NotFound, and the errors of the API.
pub(super) async fn find(api: &Api, member: &MemberName) -> Result<MemberView> {
    let all: Vec<MemberView> = api.list(calls::list_members()).await?;
    all.into_iter().find(|one| one.member == *member).ok_or_else(|| {
        Error::not_found(format!("member `{member}` does not exist")).or("`freehold member list` shows all members")
    })
}
