//! The log files of attempts. They are in the state directory while they are written, then in the customer's bucket.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use aws_sdk_s3::primitives::ByteStream;
use freehold_protocol::report::Fence;
use freehold_protocol::{Digest, JobId};
use tracing::warn;

use crate::aws;
use crate::files;

/// The maximum number of logs in the state directory.
const KEPT: usize = 50;
/// The time limit for writing one log into the bucket.
const PUT_DEADLINE: Duration = Duration::from_secs(120);

/// Stores the log files of attempts.
#[derive(Debug)]
pub struct LogStore {
    directory: PathBuf,
    bucket: Option<(aws_sdk_s3::Client, String)>,
}

impl LogStore {
    /// Returns the store in `directory`, which it creates when missing, and in `bucket`.
    ///
    /// # Errors
    /// When the directory cannot be created.
    pub fn open(directory: PathBuf, bucket: Option<(aws_sdk_s3::Client, String)>) -> std::io::Result<Self> {
        files::make_private_dir(&directory)?;
        Ok(Self { directory, bucket })
    }

    /// Returns the path of the attempt's log file.
    pub fn path(&self, job: &JobId, fence: Fence) -> PathBuf {
        self.directory.join(format!("{job}.{fence}.log"))
    }

    /// Returns the digest of the attempt's log, if it has one.
    pub async fn digest(&self, job: &JobId, fence: Fence) -> Option<Digest> {
        let path = self.path(job, fence);
        let read = tokio::task::spawn_blocking(move || files::digest(&File::open(path)?));
        match read.await.unwrap_or_else(|error| Err(io::Error::other(error))) {
            Ok(digest) => Some(digest),
            // A job that was not started has no log.
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => {
                warn!(job.id = %job, "The audit trail does not name the log of job `{job}`: {error}");
                None
            }
        }
    }

    /// Moves the attempt's log into the bucket, if there is one. Removes all but the newest of the logs that stay in
    /// the directory.
    pub async fn store(&self, job: &JobId, fence: Fence) {
        let path = self.path(job, fence);
        // A job that was not started has no log.
        if !path.exists() {
            return;
        }
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

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use aws_config::{BehaviorVersion, Region, SdkConfig};

    use super::*;
    use crate::testing::job_id;

    /// Lines that were logged.
    #[derive(Debug, Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[tokio::test]
    async fn a_job_that_was_not_started_has_no_log_and_that_is_not_a_warning() {
        let (directory, lines) = (tempfile::tempdir().unwrap(), Lines::default());
        let region = Region::from_static("eu-west-1");
        let sdk = SdkConfig::builder().behavior_version(BehaviorVersion::latest()).region(region).build();
        let bucket = Some((aws_sdk_s3::Client::new(&sdk), "bucket".to_owned()));
        let store = LogStore::open(directory.path().join("logs"), bucket).unwrap();
        let written = lines.clone();
        let _logs =
            tracing::subscriber::set_default(tracing_subscriber::fmt().with_writer(move || written.clone()).finish());

        store.store(&job_id(1), Fence { dispatch: 1, receive: 1 }).await;

        assert_eq!(String::from_utf8_lossy(&lines.0.lock().unwrap()), "");
    }
}
