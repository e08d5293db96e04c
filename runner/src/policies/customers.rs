//! Reads the customer's own policies: the objects `policies/*.rego` of the install's bucket, which no mode may write.

use aws_sdk_s3::Client;
use freehold_protocol::policy::PolicyOrigin;

use super::guard::{Guard, Text};
use crate::aws;
use crate::config::Config;

/// The prefix of the customer's policies.
const PREFIX: &str = "policies/";
/// The maximum number of policies of a customer.
const MOST: usize = 100;

/// Returns the customer's policies, by name. An object that is too large or not UTF-8 is a policy that cannot be read.
///
/// # Errors
/// The reason why they cannot be listed or read. The job then stops, because a policy would not be evaluated.
pub(super) async fn read(config: &Config) -> Result<Vec<Guard>, String> {
    let Some(bucket) = config.bucket.as_ref().filter(|_| config.policies.customer) else { return Ok(Vec::new()) };
    let sdk = aws::sdk_config(&config.region, None).await;
    // A path-style address also works where a bucket does not have a host name.
    let client = Client::from_conf(aws_sdk_s3::config::Builder::from(&sdk).force_path_style(true).build());
    let cannot = |what: &str, error: String| {
        format!(
            "the customer's policies cannot be read, so nothing is changed: cannot {what} of bucket `{bucket}`: {error}"
        )
    };
    let mut pages = client.list_objects_v2().bucket(bucket).prefix(PREFIX).into_paginator().send();
    let mut names = Vec::new();
    while let Some(page) = pages.next().await {
        let page = page.map_err(|error| cannot("list `policies/`", aws::explain(&error)))?;
        names.extend(
            page.contents().iter().filter_map(|object| object.key()).filter(|key| is_policy(key)).map(str::to_owned),
        );
        if names.len() > MOST {
            return Err(format!(
                "bucket `{bucket}` has more than {MOST} policies in `policies/`; keep the needed ones"
            ));
        }
    }
    let mut found = Vec::new();
    for key in names {
        let text = text(&client, bucket, &key).await.map_err(|error| cannot(&format!("read `{key}`"), error))?;
        found.push(Guard { name: key, origin: PolicyOrigin::Customer, text, is_loosened: false });
    }
    Ok(found)
}

fn is_policy(key: &str) -> bool {
    key.ends_with(".rego") && !key.ends_with("_test.rego")
}

async fn text(client: &Client, bucket: &str, key: &str) -> Result<Text, String> {
    let answer = client.get_object().bucket(bucket).key(key).send().await.map_err(|error| aws::explain(&error))?;
    let (mut body, mut bytes) = (answer.body, Vec::new());
    while let Some(chunk) = aws::next_bytes(&mut body).await.map_err(|error| aws::explain(&error))? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > freehold_policy::MAX_POLICY_BYTES {
            let most = freehold_policy::MAX_POLICY_BYTES;
            return Ok(Text::Unreadable(format!("{key}: the policy is larger than {most} bytes")));
        }
    }
    Ok(String::from_utf8(bytes)
        .map_or_else(|_| Text::Unreadable(format!("{key}: the policy is not text")), Text::Known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_that_fits_into_an_order_is_one_that_is_evaluated() {
        assert_eq!(freehold_protocol::policy::MAX_POLICY_BYTES, freehold_policy::MAX_POLICY_BYTES);
    }

    #[test]
    fn only_files_with_policies_are_read() {
        assert!(is_policy("policies/a.rego") && is_policy("policies/team/b.rego"));
        assert!(!is_policy("policies/") && !is_policy("policies/readme.md") && !is_policy("policies/a_test.rego"));
    }
}
