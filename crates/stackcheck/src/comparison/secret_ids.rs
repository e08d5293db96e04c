//! Logical ids of the inputs and secrets of an app: a prefix, then letters and digits.

use freehold_protocol::app_version::parameter_id;

use crate::node::Node;

/// Returns whether `id` is the prefix, followed only by letters and digits.
pub(super) fn is_id(id: &str, prefix: &str) -> bool {
    let rest = id.strip_prefix(prefix);
    rest.is_some_and(|rest| (1..=220).contains(&rest.len()) && rest.bytes().all(|byte| byte.is_ascii_alphanumeric()))
}

/// Returns the name of the input or secret whose parameter is `id`. It is the last part of the `Name` of the resource
/// `Secret<id>`. Returns `None` if the parameter of that name would have another id.
pub(super) fn name_of_secret<'t>(root: &'t Node, id: &str, prefix: &str) -> Option<&'t str> {
    let name = root.at(&["Resources", &format!("Secret{id}"), "Properties", "Name"])?.text()?.rsplit('/').next()?;
    let is_name =
        (1..=200).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b));
    (is_name && parameter_id(prefix, name) == id).then_some(name)
}
