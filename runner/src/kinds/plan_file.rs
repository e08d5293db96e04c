//! Copies the plan of Terraform or Pulumi out of the workspace. Programs of the app have run in the workspace and could
//! change the plan between two reads. So the runner copies the plan once, and then hashes, stores and applies this copy.

use std::fs::File;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use freehold_protocol::Digest;

use crate::files;
use crate::job::Job;
use crate::job::bucket::{JobBucket, open_digest};
use crate::job::failure::Failure;
use crate::workspace;

/// The name of the copy.
const COPY: &str = "plan.bin";
/// The size limit of a plan file, in bytes.
const MAX_PLAN: u64 = 1024 * 1024 * 1024;

/// The copy of a plan beside the workspace. Programs of the job may only read it. Dropping this value removes it.
#[derive(Debug)]
pub(super) struct PlanFile {
    directory: Directory,
    file: Arc<File>,
    digest: Digest,
}

#[derive(Debug)]
struct Directory(PathBuf);

impl PlanFile {
    /// Copies a plan out of the workspace, in which a program wrote it, into a directory beside the workspace. `path` is
    /// relative to the workspace.
    pub(super) async fn copy(job: &Job, path: &Path) -> Result<Self, Failure> {
        let unreadable = |error: io::Error| Failure::because("could not read the plan", &error);
        let plan = workspace::open(&job.workspace, path, MAX_PLAN).await?;
        let directory = Directory::beside(&job.workspace).map_err(unreadable)?;
        let to = directory.plan();
        let copied = tokio::task::spawn_blocking(move || copy(&plan, &to)).await;
        let file = Arc::new(copied.map_err(|error| unreadable(io::Error::other(error)))?.map_err(unreadable)?);
        let digest = open_digest(&file).await.map_err(unreadable)?;
        Ok(Self { directory, file, digest })
    }

    /// Fetches a plan that an earlier attempt made, and compares it with `digest`. Returns `None` if the object has other bytes.
    pub(super) async fn fetch(
        job: &Job,
        bucket: &JobBucket,
        object: &str,
        digest: &Digest,
    ) -> Result<Option<Self>, Failure> {
        let unwritable = |error: io::Error| Failure::because("could not write the plan", &error);
        let directory = Directory::beside(&job.workspace).map_err(unwritable)?;
        let path = directory.plan();
        if bucket.download(object, MAX_PLAN, &path).await? != *digest {
            return Ok(None);
        }
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).map_err(unwritable)?;
        let file = Arc::new(File::open(&path).map_err(unwritable)?);
        // The digest is computed from the open file, which is also the file that is applied.
        let found = open_digest(&file).await.map_err(unwritable)?;
        Ok((found == *digest).then_some(Self { directory, file, digest: found }))
    }

    pub(super) const fn digest(&self) -> &Digest {
        &self.digest
    }

    pub(super) fn file(&self) -> &File {
        &self.file
    }

    pub(super) fn path(&self) -> PathBuf {
        self.directory.plan()
    }

    /// Returns the directory that the program must be able to read.
    pub(super) fn directory(&self) -> &Path {
        &self.directory.0
    }
}

impl Directory {
    fn beside(workspace: &Path) -> io::Result<Self> {
        let mut name = workspace.file_name().unwrap_or_default().to_owned();
        name.push(".plan");
        let made = Self(workspace.with_file_name(name));
        // An earlier try of the same attempt may have left its copy.
        let _ = files::remove_tree(&made.0);
        std::fs::DirBuilder::new().mode(0o755).create(&made.0)?;
        Ok(made)
    }

    fn plan(&self) -> PathBuf {
        self.0.join(COPY)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = files::remove_tree(&self.0);
    }
}

/// Copies at most [`MAX_PLAN`] bytes, even if the file grows meanwhile. Returns the copy.
fn copy(from: &File, to: &Path) -> io::Result<File> {
    use std::io::Read as _;
    let mut copy = File::options().read(true).write(true).create_new(true).mode(0o644).open(to)?;
    io::copy(&mut from.take(MAX_PLAN), &mut copy)?;
    Ok(copy)
}
