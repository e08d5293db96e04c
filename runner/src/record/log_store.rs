//! The full logs of attempts: in the state directory while they are written, then in the customer's bucket.

use std::path::PathBuf;
use std::time::Duration;

use aws_sdk_s3::primitives::ByteStream;
use freehold_protocol::JobId;
use freehold_protocol::report::Fence;
use tracing::warn;

use crate::aws;
use crate::files;

/// How many logs are kept in the state directory.
const KEPT: usize = 50;
/// How long putting one log into the bucket may take.
const PUT_DEADLINE: Duration = Duration::from_secs(120);

/// Stores full logs.
#[derive(Debug)]
pub struct LogStore {
    directory: PathBuf,
    bucket: Option<(aws_sdk_s3::Client, String)>,
}

impl LogStore {
    /// Returns the store in `directory`, which is created when it does not exist, and in `bucket`.
    ///
    /// # Errors
    /// When the directory cannot be made.
    pub fn open(directory: PathBuf, bucket: Option<(aws_sdk_s3::Client, String)>) -> std::io::Result<Self> {
        files::make_private_dir(&directory)?;
        Ok(Self { directory, bucket })
    }

    /// Returns where the attempt's log is written.
    pub fn path(&self, job: &JobId, fence: Fence) -> PathBuf {
        self.directory.join(format!("{job}.{fence}.log"))
    }

    /// Moves the attempt's log into the bucket; without a bucket the newest logs stay in the directory.
    pub async fn store(&self, job: &JobId, fence: Fence) {
        let path = self.path(job, fence);
        if let Some((client, bucket)) = &self.bucket {
            let key = format!("logs/{job}/{fence}.log");
            match put(client, bucket, key, &path).await {
                Ok(()) => {
                    let _ = std::fs::remove_file(&path);
                }
                Err(why) => warn!(job.id = %job, "The full log of job `{job}` stays on this machine: {why}"),
            }
        }
        self.forget_old();
    }

    fn forget_old(&self) {
        let Ok(entries) = std::fs::read_dir(&self.directory) else {
            return;
        };
        let mut logs: Vec<_> = entries
            .flatten()
            .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
            .collect();
        logs.sort();
        let surplus = logs.len().saturating_sub(KEPT);
        for (_, path) in logs.into_iter().take(surplus) {
            let _ = std::fs::remove_file(path);
        }
    }
}

async fn put(client: &aws_sdk_s3::Client, bucket: &str, key: String, path: &std::path::Path) -> Result<(), String> {
    let body = ByteStream::from_path(path).await.map_err(|error| aws::explain(&error))?;
    let call = client.put_object().bucket(bucket).key(key).content_type("text/plain; charset=utf-8").body(body);
    match tokio::time::timeout(PUT_DEADLINE, call.send()).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) => Err(format!("{}; allow `s3:PutObject` on `logs/*`", aws::explain(&error))),
        Err(_) => Err(format!("bucket `{bucket}` did not answer within {} s", PUT_DEADLINE.as_secs())),
    }
}
