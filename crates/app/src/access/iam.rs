//! The names of IAM principals in policies and rows. All sessions of a role are one principal, and the ARN of a session
//! does not contain the path of its role, so a role is named without its path.

use freehold_access::Who;
use freehold_protocol::order::{CallerArn, Principal};
use freehold_protocol::{Arn, Partition};

use crate::AppError;

/// Returns the principal of a caller: `arn:aws:iam::111111111111:role/deployer` for each session of this role, and
/// otherwise the caller's own ARN.
pub fn who_of_caller(arn: &CallerArn) -> Who {
    let partition = Arn::parse(arn.as_str()).map(|parts| parts.partition);
    let arn = match (partition, arn.parts()) {
        (Some(partition), Some((account, Principal::Session { role, .. }))) => {
            format!("arn:{partition}:iam::{account}:role/{role}")
        }
        _ => arn.to_string(),
    };
    Who::Iam { arn }
}

/// Returns the principal with the ARN of an IAM role, of one of its sessions, or of an IAM user.
///
/// # Errors
/// Invalid for any other text.
pub(super) fn who_of_arn(text: &str) -> Result<Who, AppError> {
    let session = Arn::parse(text).and_then(session_of_role).and_then(|session| session.parse::<CallerArn>().ok());
    if let Some(session) = session {
        return Ok(who_of_caller(&session));
    }
    let arn: CallerArn = text.parse().map_err(|_| {
        let shown: String = text.chars().take(80).flat_map(char::escape_default).collect();
        AppError::invalid(format!(
            "`{shown}` is not the ARN of an IAM role or user, such as `arn:aws:iam::111111111111:role/deployer`"
        ))
    })?;
    Ok(who_of_caller(&arn))
}

/// Returns the ARN of a session of a role; `None` for the ARN of anything else.
fn session_of_role(arn: Arn<'_>) -> Option<String> {
    let Arn { partition, service, region, account, resource, .. } = arn;
    let is_iam = service == "iam" && region.is_empty() && Partition::named(partition).is_some();
    let name = resource.strip_prefix("role/").filter(|_| is_iam)?.rsplit('/').next()?;
    Some(format!("arn:{partition}:sts::{account}:assumed-role/{name}/any"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(arn: &str) -> String {
        who_of_arn(arn).map_or_else(|error| error.to_string(), |who| who.to_string())
    }

    #[test]
    fn a_role_its_path_and_its_sessions_are_one_principal() {
        let role = "iam:arn:aws:iam::111111111111:role/deployer";

        for arn in [
            "arn:aws:iam::111111111111:role/deployer",
            "arn:aws:iam::111111111111:role/team/shop/deployer",
            "arn:aws:sts::111111111111:assumed-role/deployer/ana",
        ] {
            assert_eq!(named(arn), role, "{arn}");
        }
        assert_eq!(named("arn:aws:iam::111111111111:user/team/ana"), "iam:arn:aws:iam::111111111111:user/team/ana");
    }

    #[test]
    fn what_is_neither_a_role_nor_a_user_is_refused() {
        for arn in [
            "",
            "ana",
            "arn:aws:iam::1:role/deployer",
            "arn:evil:iam::111111111111:role/a",
            "arn:aws:iam::111111111111:role/a\nb",
        ] {
            assert!(named(arn).contains("is not the ARN of an IAM role or user"), "{arn}");
        }
    }
}
