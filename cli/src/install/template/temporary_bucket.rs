//! A temporary bucket from which CloudFormation reads a template that is too large for a request.

use aws_config::SdkConfig;
use freehold_protocol::AccountId;

use crate::error::Result;
use crate::output::note;
use crate::tenant::Bucket;

/// A bucket with one template in it.
pub(in crate::install) struct TemporaryBucket(Bucket);

impl TemporaryBucket {
    /// Creates a bucket with `template` in it. Returns the bucket and the template's address. The bucket's name is
    /// random, so nobody else can have created a bucket of this name before.
    pub(in crate::install) async fn with(
        config: &SdkConfig,
        account: &AccountId,
        key: &str,
        template: &[u8],
    ) -> Result<(Self, String)> {
        let random: String = crate::random::hex()?.chars().take(16).collect();
        let bucket = Bucket::new(config, format!("freehold-template-{account}-{random}"));
        bucket.create().await?;
        let made = Self(bucket);
        let address = async {
            made.0.put(key, template).await?;
            made.0.address(key).await
        };
        match address.await {
            Ok(address) => Ok((made, address)),
            Err(error) => {
                made.remove().await;
                Err(error)
            }
        }
    }

    /// Removes the bucket. A failure is not an error of the launch: the command only prints the failure and the way
    /// out.
    pub(in crate::install) async fn remove(&self) {
        if let Err(error) = self.0.delete().await {
            let name = self.0.name();
            note(&format!(
                "bucket `{name}`, which the command made for the template, could not be removed ({error}); \
                           delete the bucket"
            ));
        }
    }
}
