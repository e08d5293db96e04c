//! A client for the runner's bucket. Jobs read and write small objects in memory and large objects through files.

use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use aws_sdk_s3::Client;
use aws_sdk_s3::config::timeout::TimeoutConfig;
use aws_sdk_s3::error::ProvideErrorMetadata;
use aws_sdk_s3::presigning::PresigningConfig;
use aws_sdk_s3::primitives::ByteStream;
use aws_sdk_s3::types::Object;
use aws_types::SdkConfig;
use freehold_aws_errors::code_and_message;
use freehold_protocol::{Digest, Timestamp};
use sha2::{Digest as _, Sha256};
use tokio::io::AsyncWriteExt as _;

use crate::config::Role;
use crate::files;
use crate::job::Job;
use crate::job::failure::Failure;
use crate::{aws, bucket_object};

/// The time limit for the upload of one object.
const TRANSFER: Duration = Duration::from_secs(600);
/// The largest number of objects in a listing.
const MAX_LISTED: i32 = 100;

/// The bucket that the config names, with a client under the job's role.
#[derive(Debug, Clone)]
pub struct JobBucket {
    client: Client,
    bucket: String,
}

impl JobBucket {
    /// Returns the bucket for a job.
    ///
    /// The client uses path-style addresses. They also work where a bucket does not have a host name, as on the local
    /// cloud.
    ///
    /// # Errors
    /// When the config names no bucket.
    pub fn of(job: &Job, sdk: &SdkConfig) -> Result<Self, Failure> {
        let bucket = job.config.bucket.clone().ok_or_else(|| Failure::new(no_bucket(job.config.role)))?;
        let config = aws_sdk_s3::config::Builder::from(sdk).force_path_style(true).build();
        Ok(Self { client: Client::from_conf(config), bucket })
    }

    pub(crate) fn bucket(&self) -> &str {
        &self.bucket
    }

    /// Returns an object of at most `max` bytes, or `None` when it does not exist.
    pub(crate) async fn get(&self, key: &str, max: usize) -> Result<Option<Vec<u8>>, Failure> {
        let read = bucket_object::read(&self.client, &self.bucket, key, max).await;
        read.map_err(|error| {
            let (verb, bucket) = (error.verb(), &self.bucket);
            Failure::new(format!("could not {verb} `{key}` of bucket `{bucket}`: {}", aws::explain(&error)))
        })
    }

    /// Returns the names of the objects that begin with `prefix`, with the time at which each was written. Returns the
    /// first [`MAX_LISTED`] objects in the order of their names.
    pub(crate) async fn list(&self, prefix: &str) -> Result<Vec<(String, Option<Timestamp>)>, Failure> {
        let listed =
            self.client.list_objects_v2().bucket(&self.bucket).prefix(prefix).max_keys(MAX_LISTED).send().await;
        let listed = listed.map_err(|error| self.failure("look for", prefix, &error))?;
        let written = |object: &Object| {
            let millis = object.last_modified()?.to_millis().ok()?;
            u64::try_from(millis).ok().map(Timestamp::from_millis)
        };
        let found = listed.contents().iter().filter_map(|object| Some((object.key()?.to_owned(), written(object))));
        Ok(found.collect())
    }

    /// Removes an object, if it exists.
    pub(crate) async fn delete(&self, key: &str) -> Result<(), Failure> {
        let request = self.client.delete_object().bucket(&self.bucket).key(key);
        request.send().await.map(|_| ()).map_err(|error| self.failure("remove", key, &error))
    }

    /// Uploads `bytes` as an object.
    pub(crate) async fn put(&self, key: &str, bytes: impl Into<Vec<u8>>) -> Result<(), Failure> {
        self.upload(key, ByteStream::from(bytes.into())).await
    }

    /// Uploads an open file as an object, in a stream.
    pub(crate) async fn put_file(&self, key: &str, file: &File) -> Result<(), Failure> {
        // A retry of the request reads the file again. This path always opens the same file, even when a program has
        // replaced the file in the workspace.
        let open = format!("/proc/self/fd/{}", file.as_raw_fd());
        self.upload(key, ByteStream::from_path(open).await.map_err(|error| self.failure("write", key, &error))?).await
    }

    async fn upload(&self, key: &str, body: ByteStream) -> Result<(), Failure> {
        let long = TimeoutConfig::builder().operation_attempt_timeout(TRANSFER).operation_timeout(TRANSFER).build();
        let request = self.client.put_object().bucket(&self.bucket).key(key).body(body).customize();
        let request = request.config_override(aws_sdk_s3::config::Config::builder().timeout_config(long));
        request.send().await.map(|_| ()).map_err(|error| self.failure("write", key, &error))
    }

    /// Streams an object into a new file and checks its digest.
    ///
    /// # Errors
    /// When the object cannot be read, is larger than `max` bytes or has another digest, or the file cannot be written.
    pub async fn fetch(&self, key: &str, digest: &Digest, max: u64, path: &Path) -> Result<(), Failure> {
        let found = self.download(key, max, path).await?;
        if found == *digest {
            return Ok(());
        }
        Err(Failure::new(format!("object `{key}` has digest `{found}` instead of `{digest}`; it is not used")))
    }

    /// Streams an object into a new file, and returns its digest.
    ///
    /// # Errors
    /// When the object cannot be read or is larger than `max` bytes, or the file cannot be written.
    pub(crate) async fn download(&self, key: &str, max: u64, path: &Path) -> Result<Digest, Failure> {
        let local = |error: std::io::Error| Failure::because("could not write into the workspace", &error);
        let answer = self.client.get_object().bucket(&self.bucket).key(key).send().await;
        let mut body = answer.map_err(|error| self.failure("read", key, &error))?.body;
        let mut file = tokio::fs::File::create(path).await.map_err(local)?;
        let (mut hash, mut size) = (Sha256::new(), 0_u64);
        while let Some(chunk) = aws::next_bytes(&mut body).await.map_err(|error| self.failure("read", key, &error))? {
            size += chunk.len() as u64;
            if size > max {
                return Err(Failure::new(format!(
                    "object `{key}` of bucket `{}` is larger than {max} bytes",
                    self.bucket
                )));
            }
            hash.update(&chunk);
            file.write_all(&chunk).await.map_err(local)?;
        }
        file.flush().await.map_err(local)?;
        Ok(Digest::from_sha256(hash.finalize().as_slice()))
    }

    /// Returns a pre-signed URL by which `key` can be read for one hour.
    pub(crate) async fn url(&self, key: &str) -> Result<String, Failure> {
        let hour = PresigningConfig::expires_in(Duration::from_secs(3600))
            .map_err(|error| Failure::because("could not sign a URL", &error))?;
        let request = self.client.get_object().bucket(&self.bucket).key(key).presigned(hour).await;
        request.map(|url| url.uri().to_owned()).map_err(|error| self.failure("sign a URL for", key, &error))
    }

    fn failure<E: std::error::Error>(&self, verb: &str, key: &str, error: &E) -> Failure {
        Failure::new(format!("could not {verb} object `{key}` of bucket `{}`: {}", self.bucket, aws::explain(error)))
    }
}

/// Returns the digest of a file.
///
/// # Errors
/// When the file cannot be read.
pub fn file_digest(path: &Path) -> std::io::Result<Digest> {
    files::digest(&File::open(path)?)
}

/// Returns the digest of an open file. It reads the file on a blocking thread.
pub(crate) async fn open_digest(file: &Arc<File>) -> std::io::Result<Digest> {
    let file = Arc::clone(file);
    tokio::task::spawn_blocking(move || files::digest(&file)).await.map_err(std::io::Error::other)?
}

/// Returns the code and message of an error of the service. They name the cause better than the message of the client.
pub(crate) fn explain<E>(error: &E) -> String
where
    E: std::error::Error + ProvideErrorMetadata,
{
    code_and_message(error).unwrap_or_else(|| aws::explain(error))
}

/// Returns the message for a config without a bucket: the problem, and how to fix it on a runner of `role`.
fn no_bucket(role: Role) -> String {
    let way_out = match role {
        Role::Install => "write the install stack's `BucketName` into the key `bucket`",
        Role::Build => "write the file again with `freehold tenant build-runner --force`",
    };
    format!("this runner's config names no bucket; {way_out}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_runner_without_a_bucket_is_told_where_its_config_comes_from() {
        let [install, build] = [Role::Install, Role::Build].map(no_bucket);

        assert!(install.ends_with("; write the install stack's `BucketName` into the key `bucket`"), "{install}");
        assert!(build.ends_with("; write the file again with `freehold tenant build-runner --force`"), "{build}");
    }
}
