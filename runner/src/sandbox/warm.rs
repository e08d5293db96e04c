//! Boxes that are made before there is a job: the start of a job then is one message.
//!
//! A box that waits has an empty workspace of its own. An attempt that takes it renames that directory to its own
//! workspace; what the box has mounted follows the directory.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::boxed::Boxed;
use super::bubblewrap::Spec;
use super::users::JobUser;
use crate::config::{Config, SandboxKind};
use crate::files;
use crate::work::first_box::FirstBox;

/// How many boxes wait: one for the next job, and one for the job that comes while its successor is made.
const WAITING: usize = 2;

/// How long after a box was taken the next one is made.
const AFTER_START: Duration = Duration::from_millis(30);

/// The boxes that wait for a job.
#[derive(Debug, Clone)]
pub struct WarmBoxes(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    config: Arc<Config>,
    waiting: Mutex<VecDeque<WarmBox>>,
    /// Held by the task that makes boxes: two tasks would make more than are needed, and delay the jobs between them.
    filling: tokio::sync::Mutex<()>,
    /// Names directories; each is used once.
    next: AtomicU64,
}

/// A box that waits, with its workspace.
#[derive(Debug)]
struct WarmBox {
    made: Boxed,
    workspace: PathBuf,
}

impl WarmBoxes {
    /// Returns the boxes of a runner with `config`; none waits yet.
    pub fn new(config: Arc<Config>) -> Self {
        let filling = tokio::sync::Mutex::default();
        Self(Arc::new(Inner { config, waiting: Mutex::default(), filling, next: AtomicU64::new(0) }))
    }

    /// Makes a fresh directory at `workspace` for a job, and returns the box that it belongs to, if one waited.
    ///
    /// # Errors
    /// When the directory cannot be made.
    pub fn take(&self, workspace: &Path) -> std::io::Result<FirstBox> {
        while let Some(warm) = self.0.waiting().pop_front() {
            // One that has ended meanwhile is no use: a person may have killed it.
            if warm.made.is_alive() && std::fs::rename(&warm.workspace, workspace).is_ok() {
                return Ok(FirstBox::new(warm.made));
            }
        }
        files::make_private_dir(workspace)?;
        Ok(FirstBox::default())
    }

    /// Returns how many boxes wait.
    pub fn len(&self) -> usize {
        self.0.waiting().len()
    }

    /// Returns whether no box waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Makes boxes until enough wait, in the background.
    pub fn refill(&self) {
        if self.0.config.sandbox == SandboxKind::Bubblewrap {
            let boxes = self.clone();
            tokio::spawn(async move {
                // The job that has just taken one starts first.
                tokio::time::sleep(AFTER_START).await;
                boxes.fill().await;
            });
        }
    }

    /// Makes boxes until enough wait. Calls at the same time make no more than one call.
    pub async fn fill(&self) {
        let _alone = self.0.filling.lock().await;
        while self.len() < WAITING {
            match self.0.make().await {
                Ok(warm) => self.0.waiting().push_back(warm),
                // The job that needs a box makes one itself, and then reports why it cannot.
                Err(error) => return tracing::debug!("Cannot make a box in advance: {error}"),
            }
        }
    }
}

impl Inner {
    async fn make(&self) -> Result<WarmBox, Box<dyn std::error::Error + Send + Sync>> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let workspace = self.config.state_dir.join("work").join(format!("next-{number}"));
        files::make_private_dir(&workspace)?;
        let spec = Spec::plain(&workspace, &self.config.limits);
        let made = Boxed::make(&spec, &JobUser::find(), &self.config.limits).await?;
        Ok(WarmBox { made, workspace })
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<WarmBox>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
