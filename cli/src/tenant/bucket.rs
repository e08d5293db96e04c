//! The deploy bucket, which is private, encrypted and versioned. Objects are named by their digest and put only once.

use std::time::Duration;

use aws_config::SdkConfig;
use aws_sdk_s3::Client;
use aws_sdk_s3::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_s3::presigning::PresigningConfig;
use aws_sdk_s3::types::{
    AbortIncompleteMultipartUpload, BucketLifecycleConfiguration, BucketLocationConstraint, BucketVersioningStatus,
    CreateBucketConfiguration, Delete, ExpirationStatus, LifecycleRule, LifecycleRuleFilter,
    NoncurrentVersionExpiration, ObjectIdentifier, PublicAccessBlockConfiguration, ServerSideEncryption,
    ServerSideEncryptionByDefault, ServerSideEncryptionConfiguration, ServerSideEncryptionRule, Tag, Tagging,
    VersioningConfiguration,
};
use freehold_protocol::TenantName;

use super::names::TENANT_TAG;
use crate::error::{Error, Kind, Result, ResultExt};

/// The way out of a denial for which AWS returns only a status.
const WAY_OUT: &str = "allow the action, or use other credentials";
/// The number of days after which noncurrent versions and incomplete uploads are deleted.
const FORGOTTEN_AFTER_DAYS: i32 = 30;

/// A bucket for the files of a deploy: the tenant's, or one for the template of an install stack.
#[derive(Debug)]
pub(crate) struct Bucket {
    client: Client,
    name: String,
    region: String,
}

impl Bucket {
    pub(crate) fn new(config: &SdkConfig, name: String) -> Self {
        // CloudFormation reads templates from the addresses that this client makes ([`Bucket::address`]), and accepts
        // the path style in every partition.
        let settings = aws_sdk_s3::config::Builder::from(config).force_path_style(true).build();
        Self { client: Client::from_conf(settings), name, region: crate::aws::region(config) }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Creates the bucket unless it exists, and applies all its settings. Returns whether the bucket was created.
    pub(super) async fn ensure(&self, tenant: &TenantName) -> Result<bool> {
        let made = self.create().await?;
        let (client, name) = (&self.client, &self.name);
        let what = |part: &str| format!("set the {part} of bucket `{name}`");
        let block = PublicAccessBlockConfiguration::builder()
            .block_public_acls(true)
            .block_public_policy(true)
            .ignore_public_acls(true)
            .restrict_public_buckets(true)
            .build();
        let block = client.put_public_access_block().bucket(name).public_access_block_configuration(block);
        block.send().await.doing(what("public access block"))?;
        let encryption = client.put_bucket_encryption().bucket(name).server_side_encryption_configuration(encrypted()?);
        encryption.send().await.doing(what("encryption"))?;
        let versioning = VersioningConfiguration::builder().status(BucketVersioningStatus::Enabled).build();
        let versioning = client.put_bucket_versioning().bucket(name).versioning_configuration(versioning);
        versioning.send().await.doing(what("versioning"))?;
        let lifecycle = client.put_bucket_lifecycle_configuration().bucket(name).lifecycle_configuration(lifecycle()?);
        lifecycle.send().await.doing(what("lifecycle"))?;
        let tag = Tag::builder().key(TENANT_TAG).value(tenant.as_str()).build().map_err(broken)?;
        let tags = Tagging::builder().tag_set(tag).build().map_err(broken)?;
        client.put_bucket_tagging().bucket(name).tagging(tags).send().await.doing(what("tags"))?;
        Ok(made)
    }

    /// Creates the bucket unless it exists. Returns whether the bucket was created.
    pub(crate) async fn create(&self) -> Result<bool> {
        if self.exists().await? {
            return Ok(false);
        }
        let create = self.client.create_bucket().bucket(&self.name);
        // S3 does not accept us-east-1 as a location constraint.
        let create = match self.region.as_str() {
            "us-east-1" => create,
            region => create.create_bucket_configuration(
                CreateBucketConfiguration::builder()
                    .location_constraint(BucketLocationConstraint::from(region))
                    .build(),
            ),
        };
        match create.send().await {
            Ok(_) => Ok(true),
            Err(error) if error.code() == Some("BucketAlreadyOwnedByYou") => Ok(false),
            Err(error) => Err(error).doing(format!("make bucket `{}`", self.name)),
        }
    }

    /// Returns whether the bucket exists. A bucket to which AWS denies access is an error.
    pub(super) async fn exists(&self) -> Result<bool> {
        match self.client.head_bucket().bucket(&self.name).send().await {
            Ok(_) => Ok(true),
            Err(error) if is_absent(&error) => Ok(false),
            // S3 returns only a status, which does not show whether another account owns the bucket.
            Err(error) if status(&error) == Some(403) => {
                Err(Error::denied(format!("AWS does not let you use bucket `{}` (403 for s3:ListBucket)", self.name))
                    .or(WAY_OUT))
            }
            Err(error) => Err(error).doing(format!("look up bucket `{}`", self.name)),
        }
    }

    /// Puts the object unless an object of the same key and size exists (keys contain digests). Returns whether the
    /// object was put.
    pub(crate) async fn put(&self, key: &str, bytes: &[u8]) -> Result<bool> {
        if self.size(key).await? == Some(bytes.len() as u64) {
            return Ok(false);
        }
        let put = self.client.put_object().bucket(&self.name).key(key).body(bytes.to_vec().into());
        put.send().await.doing(format!("upload `{key}` to bucket `{}`", self.name))?;
        Ok(true)
    }

    /// Checks that an object of this key and size exists. CloudFormation would treat a missing object as an empty
    /// function.
    pub(super) async fn check(&self, key: &str, size: usize) -> Result<()> {
        match self.size(key).await? {
            Some(found) if found == size as u64 => Ok(()),
            Some(found) => Err(Error::failed(format!(
                "object `{key}` of bucket `{}` has {found} bytes instead of {size}; deploy again",
                self.name
            ))),
            None => Err(Error::failed(format!("bucket `{}` has no object `{key}`; deploy again", self.name))),
        }
    }

    async fn size(&self, key: &str) -> Result<Option<u64>> {
        match self.client.head_object().bucket(&self.name).key(key).send().await {
            Ok(head) => Ok(head.content_length().and_then(|length| u64::try_from(length).ok())),
            Err(error) if is_absent(&error) => Ok(None),
            // The response to a HEAD has no body, and so no error code.
            Err(error) => match status(&error) {
                Some(403) => Err(Error::denied(format!(
                    "AWS does not let you read `{key}` in bucket `{}` (403 for s3:GetObject)",
                    self.name
                ))
                .or(WAY_OUT)),
                Some(status @ (429 | 500..)) => Err(Error::transient(format!(
                    "S3 could not look up `{key}` in bucket `{}` ({status}); try again",
                    self.name
                ))),
                Some(_) | None => Err(error).doing(format!("look up `{key}` in bucket `{}`", self.name)),
            },
        }
    }

    /// Returns the address of an object in the form that CloudFormation accepts.
    pub(crate) async fn address(&self, key: &str) -> Result<String> {
        let mut url = self.presign(key, Duration::from_secs(60)).await?;
        url.truncate(url.find('?').unwrap_or(url.len()));
        Ok(url)
    }

    /// Returns a presigned address. Whoever has the address can read the object during `life`.
    pub(crate) async fn presign(&self, key: &str, life: Duration) -> Result<String> {
        let settings =
            PresigningConfig::expires_in(life).map_err(|e| Error::internal(format!("cannot presign: {e}")))?;
        let signed = self.client.get_object().bucket(&self.name).key(key).presigned(settings).await;
        Ok(signed.doing(format!("make an address of `{key}`"))?.uri().to_owned())
    }

    /// Deletes the bucket with every version of every object. Returns whether the bucket existed.
    pub(crate) async fn delete(&self) -> Result<bool> {
        if !self.exists().await? {
            return Ok(false);
        }
        while self.delete_some_versions().await? {}
        match self.client.delete_bucket().bucket(&self.name).send().await {
            Err(error) if is_absent(&error) => {}
            deleted => drop(deleted.doing(format!("delete bucket `{}`", self.name))?),
        }
        Ok(true)
    }

    /// Deletes up to a thousand versions. Returns whether there were versions to delete.
    async fn delete_some_versions(&self) -> Result<bool> {
        let page = self.client.list_object_versions().bucket(&self.name).send().await;
        let page = page.doing(format!("list bucket `{}`", self.name))?;
        let versions = page.versions().iter().map(|v| (v.key(), v.version_id()));
        let markers = page.delete_markers().iter().map(|m| (m.key(), m.version_id()));
        let ids = versions.chain(markers).filter_map(|(key, version)| {
            ObjectIdentifier::builder().key(key?).set_version_id(version.map(str::to_owned)).build().ok()
        });
        let ids: Vec<ObjectIdentifier> = ids.collect();
        if ids.is_empty() {
            return Ok(false);
        }
        let delete = Delete::builder().set_objects(Some(ids)).quiet(true).build().map_err(broken)?;
        let answer = self.client.delete_objects().bucket(&self.name).delete(delete).send().await;
        let answer = answer.doing(format!("empty bucket `{}`", self.name))?;
        match answer.errors().first() {
            None => Ok(true),
            Some(error) => {
                let (key, why) = (error.key().unwrap_or_default(), error.message().unwrap_or_default());
                let message = format!("object `{key}` of bucket `{}` cannot be deleted: {why}", self.name);
                Err(Error::quoting(Kind::Failed, message)
                    .or("allow `s3:DeleteObjectVersion` on it, and run the command again"))
            }
        }
    }
}

fn encrypted() -> Result<ServerSideEncryptionConfiguration> {
    let by_default = ServerSideEncryptionByDefault::builder().sse_algorithm(ServerSideEncryption::Aes256);
    let by_default = by_default.build().map_err(broken)?;
    let rule = ServerSideEncryptionRule::builder().apply_server_side_encryption_by_default(by_default).build();
    ServerSideEncryptionConfiguration::builder().rules(rule).build().map_err(broken)
}

fn lifecycle() -> Result<BucketLifecycleConfiguration> {
    let rule = LifecycleRule::builder()
        .id("forget")
        .status(ExpirationStatus::Enabled)
        .filter(LifecycleRuleFilter::builder().prefix("").build())
        .noncurrent_version_expiration(
            NoncurrentVersionExpiration::builder().noncurrent_days(FORGOTTEN_AFTER_DAYS).build(),
        )
        .abort_incomplete_multipart_upload(
            AbortIncompleteMultipartUpload::builder().days_after_initiation(FORGOTTEN_AFTER_DAYS).build(),
        )
        .build()
        .map_err(broken)?;
    BucketLifecycleConfiguration::builder().rules(rule).build().map_err(broken)
}

fn broken(error: impl std::fmt::Display) -> Error {
    Error::internal(format!("a request to S3 could not be made: {error}"))
}

fn status<E>(error: &SdkError<E>) -> Option<u16> {
    error.raw_response().map(|response| response.status().as_u16())
}

fn is_absent<E>(error: &SdkError<E>) -> bool {
    status(error) == Some(404)
}
