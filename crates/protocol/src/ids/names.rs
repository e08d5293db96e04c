//! Names of the AWS resources of a tenant and of an install. The stacks' templates spell the same names.
//!
//! No name of a tenant, install or role holds `--` or ends in a dash, and `--` joins two of them. So each of these names can be
//! taken apart in one way only, and a policy's wildcard that comes directly after `--` matches names of one owner alone.
//! Names of registries are joined by `/`, because ECR refuses `--` (ECR API Reference, `CreateRepository`).

use crate::{AccountId, InstallId, TenantName};

/// Returns the name of the tenant's table and registry, which begins the names of everything else of the tenant.
pub fn tenant(tenant: &TenantName) -> String {
    format!("fh-{tenant}")
}

/// Returns the name of a function, queue, role or policy of the tenant stack.
pub fn tenant_part(tenant: &TenantName, part: &str) -> String {
    format!("fh-{tenant}--{part}")
}

/// Returns the name of the bucket with the tenant's code and sources.
pub fn tenant_bucket(tenant: &TenantName, account: &AccountId, region: &str) -> String {
    format!("fh-{tenant}--{account}--{region}")
}

/// Returns the name of the queue from which the runner of `install` receives orders.
pub fn orders_queue(tenant: &TenantName, install: &InstallId) -> String {
    format!("fh-{tenant}--{install}.fifo")
}

/// Returns the name that begins the names of all resources of an install stack.
pub fn install(tenant: &TenantName, install: &InstallId) -> String {
    format!("fh-{tenant}--{install}")
}

/// Returns the name of a role or policy of an install stack.
pub fn install_part(tenant: &TenantName, install: &InstallId, part: &str) -> String {
    format!("fh-{tenant}--{install}--{part}")
}

/// Returns the name of the stack that the customer makes for an install.
pub fn install_stack(tenant: &TenantName, install: &InstallId) -> String {
    format!("freehold-{tenant}--{install}")
}

/// Returns the name of an install's registry.
pub fn install_registry(tenant: &TenantName, install: &InstallId) -> String {
    format!("fh-{tenant}/{install}")
}

/// Returns the name of an install's bucket. An install is bound to one region, which the name therefore leaves out.
pub fn install_bucket(tenant: &TenantName, install: &InstallId, account: &AccountId) -> String {
    format!("fh-{tenant}--{install}--{account}")
}

/// Returns how the names of IAM resources that the app makes begin.
pub fn app_prefix(tenant: &TenantName, install: &InstallId) -> String {
    format!("{tenant}--{install}--")
}

/// Returns the name under which the customer's account keeps a secret of the app.
pub fn app_secret(tenant: &TenantName, install: &InstallId, secret: &str) -> String {
    format!("fh-{tenant}--{install}--secret/{secret}")
}

/// Returns the name of the secret with the key of the digests of secrets.
pub fn secrets_key(tenant: &TenantName, install: &InstallId) -> String {
    format!("fh-{tenant}--{install}/secrets-key")
}

/// Returns the value of the tag `freehold:owner` on what the app makes: one value for one install of one tenant.
pub fn owner(tenant: &TenantName, install: &InstallId) -> String {
    format!("{tenant}--{install}")
}

/// Returns the path in IAM under which the runner puts roles, policies and instance profiles that the app makes.
pub fn app_path(tenant: &TenantName, install: &InstallId) -> String {
    format!("/freehold/{tenant}--{install}/")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RoleKey;

    fn longest<T: std::str::FromStr>() -> T {
        (1..).map(|chars| "n".repeat(chars).parse()).skip(1).map_while(Result::ok).last().unwrap()
    }

    #[test]
    fn the_longest_names_fit_into_what_aws_takes() {
        let (vendor, id, role): (TenantName, InstallId, RoleKey) = (longest(), longest(), longest());
        let account: AccountId = "222222222222".parse().unwrap();

        // Quotas of IAM for the name of a role, of S3 for that of a bucket, of SQS for that of a queue.
        assert_eq!(install_part(&vendor, &id, role.as_str()).len(), 64);
        assert!(tenant_part(&vendor, "machine--provision-install").len() <= 64);
        assert!(install_bucket(&vendor, &id, &account).len() <= 63);
        assert!(tenant_bucket(&vendor, &account, "ap-southeast-1").len() <= 63);
        assert!(orders_queue(&vendor, &id).len() <= 80);
        // API reference of CloudFormation, `CreateStack`.
        assert!(install_stack(&vendor, &id).len() <= 128);
    }

    #[test]
    fn no_name_holds_two_dashes_in_a_row_or_ends_in_one() {
        for bad in ["a--b", "ab-", "-ab", "ab--"] {
            assert!(bad.parse::<TenantName>().is_err(), "{bad}");
            assert!(bad.parse::<InstallId>().is_err(), "{bad}");
            assert!(bad.parse::<RoleKey>().is_err(), "{bad}");
        }
    }
}
