//! Where the pages come from: the stack and the bucket of the install, and the files and keys that the person named.

use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, Instant};

use tokio::sync::Mutex;

use super::super::answer::Answer;
use super::super::changes::ChangedFiles;
use super::super::log::evidence::{Evidence, KnownRecords};
use super::super::own_install::OwnInstall;
use super::super::permissions::{self, Launched};
use crate::error::{Error, Result};
use crate::inputs::Input;
use crate::output::Output;

/// The time for which pages use the records that were read from the bucket. An install has thousands of records.
const RECORDS_TIME: Duration = Duration::from_secs(60);

/// The source of all pages.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) own: OwnInstall,
    known: KnownRecords,
    /// The contract, and the values of its inputs.
    agreed: (Option<PathBuf>, Vec<Input>),
    files: ChangedFiles,
    records: Mutex<Option<(Instant, Rc<Evidence>)>>,
}

impl Source {
    pub(super) fn new(
        own: OwnInstall,
        known: KnownRecords,
        agreed: (Option<PathBuf>, Vec<Input>),
        files: ChangedFiles,
    ) -> Self {
        Self { own, known, agreed, files, records: Mutex::new(None) }
    }

    /// Returns the command that gives the same answer as a page: `words` without the install and the vendor.
    pub(super) fn command(&self, words: &str, more: &str) -> String {
        format!("freehold customer {words} {}{more} --tenant {}", self.own.install, self.own.tenant)
    }

    /// Returns the verified records of the bucket. They are at most a minute old.
    pub(super) async fn records(&self) -> Result<Rc<Evidence>> {
        let mut kept = self.records.lock().await;
        if let Some((_, evidence)) = kept.as_ref().filter(|(at, _)| at.elapsed() < RECORDS_TIME) {
            return Ok(Rc::clone(evidence));
        }
        let evidence = Rc::new(self.known.read_bucket(&self.own).await?);
        *kept = Some((Instant::now(), Rc::clone(&evidence)));
        Ok(evidence)
    }

    /// Returns what the vendor may do by the launched stack.
    pub(super) async fn permissions(&self) -> Result<Answer> {
        let (contract, inputs) = &self.agreed;
        permissions::answer(&Launched::of_install(&self.own).await?, contract.as_deref(), inputs)
    }

    /// Returns the differences between the launched stack and the files that the person named.
    pub(super) async fn changes(&self) -> Result<Answer> {
        if self.files.are_absent() {
            return Err(Error::not_found("no new template and no new contract is given").or(
                "start `freehold customer ui` with `--new-template FILE`, or with `--agreed FILE` and `--new-contract \
                 FILE`, or with all three",
            ));
        }
        self.files.answer(&Launched::of_install(&self.own).await?, Output::plain())
    }

    /// Returns the options by which the command names the files of the page about changes.
    pub(super) fn changes_options(&self) -> String {
        self.files.options()
    }

    /// Returns the options by which the page about permissions and its command name the contract.
    pub(super) fn contract_option(&self) -> String {
        self.agreed.0.as_ref().map(|path| format!(" --contract {}", path.display())).unwrap_or_default()
    }
}
