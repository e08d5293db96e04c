//! Makes boxes before jobs need them, so that the start of a job's first program is only one message.
//!
//! A waiting box has an empty workspace directory. An attempt that takes the box renames this directory to the path of
//! its own workspace. The mount inside the box is not affected by the new name. The boxes have the image of the last
//! job.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use freehold_protocol::Digest;

use super::box_handle::{Boxed, remove};
use super::bubblewrap::Spec;
use super::users::JobUser;
use crate::config::{Config, SandboxKind};
use crate::files;
use crate::job::first_box::FirstBox;
use crate::tool_image::ToolImage;

/// The number of waiting boxes: one for the next job, and one for a job that comes before the first box is replaced.
const WAITING: usize = 2;

/// The delay between the use of a box and the making of the next one.
const AFTER_START: Duration = Duration::from_millis(30);

/// The file in the state directory with the digest of the image that the last job had.
const LAST_IMAGE: &str = "tool-image";

/// The boxes that wait for a job.
#[derive(Debug, Clone)]
pub struct WarmBoxes(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    config: Arc<Config>,
    waiting: Mutex<VecDeque<WaitingBox>>,
    /// The image of the next boxes, if the last job had one.
    image: Mutex<Option<Digest>>,
    /// The lock of the task that makes boxes. Two such tasks would make more boxes than needed, and delay jobs
    /// meanwhile.
    filling: tokio::sync::Mutex<()>,
    /// The number for the name of the next workspace directory.
    next: AtomicU64,
}

/// A waiting box, its workspace directory, and its image, which stays on the machine meanwhile.
#[derive(Debug)]
pub(super) struct WaitingBox {
    pub(super) made: Boxed,
    workspace: PathBuf,
    image: Option<ToolImage>,
}

impl WaitingBox {
    /// Returns whether the box shows `image`.
    pub(super) fn shows(&self, image: Option<&ToolImage>) -> bool {
        self.image.as_ref().map(ToolImage::digest) == image.map(ToolImage::digest)
    }
}

/// Returns the digest of the image that the last job had.
pub(super) fn last_image(state_dir: &Path) -> Option<Digest> {
    let last = std::fs::read_to_string(state_dir.join(LAST_IMAGE)).ok();
    last.and_then(|digest| digest.parse().ok())
}

impl WarmBoxes {
    /// Returns an empty set of boxes for a runner with `config`.
    pub fn new(config: Arc<Config>) -> Self {
        let image = Mutex::new(last_image(&config.state_dir));
        let filling = tokio::sync::Mutex::default();
        Self(Arc::new(Inner { config, waiting: Mutex::default(), image, filling, next: AtomicU64::new(0) }))
    }

    /// Makes an empty directory at `workspace` for a job. If a box with `image` was waiting, the directory comes with
    /// that box, which is returned too.
    ///
    /// # Errors
    /// When the directory cannot be made, or exists already: a job never starts in the files of another attempt.
    pub fn take(&self, workspace: &Path, image: Option<&Digest>) -> std::io::Result<FirstBox> {
        self.0.follow(image);
        let Some(warm) = self.next_alive(image) else {
            files::make_private_dir(workspace.parent().unwrap_or(workspace))?;
            files::make_new_private_dir(workspace)?;
            return Ok(FirstBox::default());
        };
        if let Err(error) = std::fs::rename(&warm.workspace, workspace) {
            // Something is at `workspace`. The box is still good for another job.
            self.0.waiting().push_front(warm);
            return Err(error);
        }
        Ok(FirstBox::new(warm))
    }

    /// Returns the next waiting box with `image`. Removes the directories of boxes with another image, and of boxes
    /// that have ended, for example because a person killed them.
    fn next_alive(&self, image: Option<&Digest>) -> Option<WaitingBox> {
        loop {
            let warm = self.0.waiting().pop_front()?;
            if warm.image.as_ref().map(ToolImage::digest) == image && warm.made.is_alive() {
                return Some(warm);
            }
            let inner = Arc::clone(&self.0);
            tokio::spawn(async move {
                let workspace = warm.workspace.clone();
                drop(warm);
                if let Err(error) = remove(&workspace, &inner.config).await {
                    tracing::warn!("The directory of an unused box was not removed: {error}");
                }
            });
        }
    }

    /// Returns the number of waiting boxes.
    pub fn len(&self) -> usize {
        self.0.waiting().len()
    }

    /// Returns whether no box is waiting.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Makes the missing boxes in the background.
    pub fn refill(&self) {
        if self.0.config.sandbox == SandboxKind::Bubblewrap {
            let boxes = self.clone();
            tokio::spawn(async move {
                // The delay lets the job that has just taken a box start first.
                tokio::time::sleep(AFTER_START).await;
                boxes.fill().await;
            });
        }
    }

    /// Makes boxes until enough are waiting. Two calls at the same time make no more boxes than one call.
    pub async fn fill(&self) {
        let _alone = self.0.filling.lock().await;
        while self.len() < WAITING {
            match self.0.make().await {
                Ok(warm) => self.0.waiting().push_back(warm),
                // A job without a waiting box makes a box itself, and reports the error if that fails.
                Err(error) => return tracing::debug!("Cannot make a box in advance: {error}"),
            }
        }
    }
}

impl Inner {
    async fn make(&self) -> Result<WaitingBox, Box<dyn std::error::Error + Send + Sync>> {
        let image = match self.image.lock().unwrap_or_else(PoisonError::into_inner).clone() {
            Some(digest) => Some(ToolImage::find(&self.config.state_dir, &digest)?.ok_or("its image is not unpacked")?),
            None => None,
        };
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let workspace = self.config.state_dir.join("work").join(format!("next-{number}"));
        files::make_private_dir(&workspace)?;
        let spec = Spec::plain(&workspace, image.as_ref().map(ToolImage::root), &self.config.limits);
        let made = Boxed::make(&spec, &JobUser::find(), &self.config.limits).await?;
        Ok(WaitingBox { made, workspace, image })
    }

    /// Makes the next boxes with `image`, also after a restart.
    fn follow(&self, image: Option<&Digest>) {
        let mut known = self.image.lock().unwrap_or_else(PoisonError::into_inner);
        if known.as_ref() != image {
            *known = image.cloned();
            let text = image.map(Digest::to_string).unwrap_or_default();
            if let Err(error) = files::write_atomic_relaxed(&self.config.state_dir.join(LAST_IMAGE), text.as_bytes()) {
                tracing::debug!("Cannot write which image the last job had: {error}");
            }
        }
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<WaitingBox>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
