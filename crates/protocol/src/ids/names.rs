//! Names of the AWS resources of a tenant and of an install. The templates of the stacks contain the same names.
//!
//! A name of a tenant, an install or a role never contains `--` and never ends in a dash, and `--` joins two of them.
//! So a joined name can be split in only one way, and a wildcard directly after `--` in a policy matches names of one
//! owner only.
//! Names of registries are joined by `/`, because ECR refuses `--` (ECR API Reference, `CreateRepository`).

use crate::{AccountId, InstallId, TenantName};

/// The key of the tag on resources that the app creates, whose value is [`owner`].
pub const OWNER_TAG: &str = "freehold:owner";
/// The key of the tag with the tenant, on all AWS resources of the tenant and of its installs.
pub const TENANT_TAG: &str = "freehold:tenant";
/// The key of the tag with the app, on the AWS resources of an install.
pub const APP_TAG: &str = "freehold:app";
/// The key of the tag with the install, on all AWS resources of the install.
pub const INSTALL_TAG: &str = "freehold:install";
/// The key of the tag with the component, on the AWS resources that a component made.
pub const COMPONENT_TAG: &str = "freehold:component";

/// Returns the name of the tenant's table and registry. It is also the prefix of all other names of the tenant.
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

/// Returns the name of the reports queue with the number `shard`. The first one is part of the tenant stack.
pub fn reports_queue(tenant: &TenantName, shard: u32) -> String {
    match shard {
        0 | 1 => tenant_part(tenant, "reports"),
        later => format!("fh-{tenant}--reports--{later}"),
    }
}

/// Returns the name of the queue with this URL.
pub fn queue_of(url: &str) -> &str {
    url.rsplit('/').next().unwrap_or(url)
}

/// Returns the account of the queue with this URL.
pub fn account_of_queue(url: &str) -> Option<&str> {
    url.rsplit('/').nth(1)
}

/// Returns the name of the role or policy with this ARN, without its path.
pub fn name_of_arn(arn: &str) -> &str {
    arn.rsplit('/').next().unwrap_or(arn)
}

/// Returns whether `name` is the name of one of the tenant's reports queues.
pub fn is_reports_queue(tenant: &TenantName, name: &str) -> bool {
    let number = name.strip_prefix(&reports_queue(tenant, 1)).and_then(|rest| rest.strip_prefix("--"));
    let shard = number.and_then(|number| number.parse().ok()).unwrap_or(1);
    reports_queue(tenant, shard) == name
}

/// Returns the prefix of the names of all resources in an install stack.
pub fn install(tenant: &TenantName, install: &InstallId) -> String {
    format!("fh-{tenant}--{install}")
}

/// Returns the name of a role or policy of an install stack.
pub fn install_part(tenant: &TenantName, install: &InstallId, part: &str) -> String {
    format!("fh-{tenant}--{install}--{part}")
}

/// Returns the name of the stack that the customer creates for an install.
pub fn install_stack(tenant: &TenantName, install: &InstallId) -> String {
    format!("freehold-{tenant}--{install}")
}

/// Returns the name of an install's registry.
pub fn install_registry(tenant: &TenantName, install: &InstallId) -> String {
    format!("fh-{tenant}/{install}")
}

/// Returns the name of an install's bucket. It does not contain the region, because an install has only one.
pub fn install_bucket(tenant: &TenantName, install: &InstallId, account: &AccountId) -> String {
    format!("fh-{tenant}--{install}--{account}")
}

/// Returns the prefix that IAM resources created by the app must have in their names.
pub fn app_prefix(tenant: &TenantName, install: &InstallId) -> String {
    format!("{tenant}--{install}--")
}

/// Returns the name of an app's secret in AWS Secrets Manager in the customer's account.
pub fn app_secret(tenant: &TenantName, install: &InstallId, secret: &str) -> String {
    format!("fh-{tenant}--{install}--secret/{secret}")
}

/// Returns the name, in AWS Secrets Manager, of the HMAC key with which the runner makes digests of the app's secrets.
pub fn secrets_key(tenant: &TenantName, install: &InstallId) -> String {
    format!("fh-{tenant}--{install}/secrets-key")
}

/// Returns the value of the tag [`OWNER_TAG`] on resources that the app creates. Each install has its own value.
pub fn owner(tenant: &TenantName, install: &InstallId) -> String {
    format!("{tenant}--{install}")
}

/// Returns the IAM path under which the runner puts the roles, policies and instance profiles that the app creates.
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
    fn the_name_of_a_reports_queue_has_one_form() {
        let acme: TenantName = "acme".parse().unwrap();

        assert_eq!(
            [1, 2, 10].map(|shard| reports_queue(&acme, shard)),
            ["fh-acme--reports", "fh-acme--reports--2", "fh-acme--reports--10"]
        );
        for name in ["fh-acme--reports", "fh-acme--reports--2", "fh-acme--reports--10"] {
            assert!(is_reports_queue(&acme, name), "{name}");
        }
        for name in [
            "fh-acme--reports--1",
            "fh-acme--reports--0",
            "fh-acme--reports--02",
            "fh-acme--reports--+2",
            "fh-acme--reports--",
            "fh-acme--reports--x",
            "fh-acme--reports.fifo",
            "fh-initech--reports",
        ] {
            assert!(!is_reports_queue(&acme, name), "{name}");
        }
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
