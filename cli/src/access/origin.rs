//! Where the policies come from, as text.

use freehold_protocol::api::PoliciesView;

use crate::output::time;

/// Returns where the policies come from, and their digest.
pub(super) fn of(view: &PoliciesView) -> String {
    let PoliciesView { number, changed_at, changed_by, digest, .. } = view;
    match (changed_at, changed_by) {
        (Some(at), Some(by)) => format!("change {number} of the policies, at {} by {by}; digest {digest}", time(*at)),
        _ => format!("the policies that a new tenant has; digest {digest}"),
    }
}
