//! Checks the principal that may assume the build runner's role, when the build runner is not an EC2 instance. It must
//! be a principal of the tenant's account.

use freehold_protocol::{AccountId, Arn, TenantName};

use crate::error::{Error, Result};

/// Refuses an ARN that does not name a user, a role or the root of `account`. `tenant` is deployed in this account.
pub(super) fn check(arn: &str, tenant: &TenantName, account: &AccountId) -> Result<()> {
    let way_out = format!(
        "name a user, a role or the root of account {account}, such as `arn:aws:iam::{account}:role/builder`; a \
         principal of another account can assume such a role first"
    );
    let Some(Arn { service: "iam", region: "", account: of, resource, .. }) = Arn::parse(arn) else {
        return Err(Error::invalid(format!(
            "`--build-runner-principal {arn}` is not the ARN of a principal; {way_out}"
        )));
    };
    if !(resource == "root" || resource.starts_with("user/") || resource.starts_with("role/")) {
        return Err(Error::invalid(format!(
            "`--build-runner-principal {arn}` is not a user, a role or the root of an account; {way_out}"
        )));
    }
    if of == account.as_str() {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "`--build-runner-principal {arn}` belongs to account {of}, and tenant `{tenant}` is deployed in account {account}; {way_out}"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(arn: &str) -> Result<()> {
        check(arn, &"acme".parse().unwrap(), &"111111111111".parse().unwrap())
    }

    #[test]
    fn a_principal_of_the_tenants_account_is_taken() {
        for arn in ["root", "user/me", "role/ci/builder"] {
            checked(&format!("arn:aws:iam::111111111111:{arn}")).unwrap();
        }
    }

    #[test]
    fn a_principal_of_another_account_is_refused_with_both_accounts_and_the_way_out() {
        let error = checked("arn:aws:iam::222222222222:root").unwrap_err();

        assert_eq!(
            error.to_string(),
            "`--build-runner-principal arn:aws:iam::222222222222:root` belongs to account 222222222222, and tenant `acme` \
             is deployed in account 111111111111; name a user, a role or the root of account 111111111111, such as \
             `arn:aws:iam::111111111111:role/builder`; a principal of another account can assume such a role first"
        );
    }

    #[test]
    fn what_is_not_a_principal_is_refused() {
        for arn in
            ["root", "arn:aws:s3:::bucket", "arn:aws:iam::111111111111:group/builders", "arn:aws:iam::*:root", "*"]
        {
            checked(arn).unwrap_err();
        }
    }
}
