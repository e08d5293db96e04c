//! Finds resources that an earlier launch of an install left in the account. Resources that contain data are not
//! deleted with the stack, and a new launch cannot create resources with the same names.

use aws_config::SdkConfig;
use freehold_protocol::{AccountId, InstallId, TenantName, names};

use crate::error::{Error, Result};

/// Refuses a first launch if resources of an earlier launch exist. A resource that the credentials cannot read counts
/// as absent.
pub(super) async fn check(
    config: &SdkConfig,
    tenant: &TenantName,
    install: &InstallId,
    account: &AccountId,
) -> Result<()> {
    let bucket = names::install_bucket(tenant, install, account);
    let repository = names::install_registry(tenant, install);
    let s3 = aws_sdk_s3::Client::from_conf(aws_sdk_s3::config::Builder::from(config).force_path_style(true).build());
    let ecr = aws_sdk_ecr::Client::new(config);
    let mut left = Vec::new();
    if s3.head_bucket().bucket(&bucket).send().await.is_ok() {
        left.push(format!("bucket `{bucket}` (Terraform's state, plans, logs and the audit log)"));
    }
    if ecr.describe_repositories().repository_names(&repository).send().await.is_ok() {
        left.push(format!("registry `{repository}` (images)"));
    }
    if left.is_empty() { Ok(()) } else { Err(refused(install, &left)) }
}

fn refused(install: &InstallId, left: &[String]) -> Error {
    Error::conflict(format!(
        "an earlier launch of install `{install}` left {}, and a new stack cannot use these names; copy the data that \
         you need, delete them (empty an S3 bucket first, with all versions), and run the command again",
        left.join(" and ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_named_with_the_way_out() {
        let left = ["bucket `b`".to_owned(), "registry `r`".to_owned()];

        let text = refused(&"globex".parse().unwrap(), &left).to_string();

        assert!(text.contains("install `globex` left bucket `b` and registry `r`"), "{text}");
        assert!(text.contains("delete them"), "{text}");
    }
}
