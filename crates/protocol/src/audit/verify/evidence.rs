//! Compares the chain with the messages that name its records: the heads in reports, and the receipts of the control
//! plane. A chain that lacks a named record was cut. A chain that has another record in its place was forked.

use std::collections::BTreeMap;

use super::{Chain, RecordsCopy};
use crate::audit::{ChainHead, Receipt, message_name, record_number};
use crate::report::Report;
use crate::succession::Roots;
use crate::{Digest, Envelope, InstallId, TenantName};

impl Chain<'_> {
    /// Adds a problem for each receipt that is not valid or that the chain contradicts.
    pub(super) fn compare_receipts(
        &mut self,
        copy: &RecordsCopy,
        records: &BTreeMap<u64, &[u8]>,
        roots: Option<&Roots>,
    ) {
        for (name, bytes) in &copy.receipts {
            let Some(seq) = record_number(name) else {
                self.note(None, format!("`receipts/{name}` is not the name of a receipt"));
                continue;
            };
            let agrees = receipt(bytes, roots)
                .and_then(|receipt| self.is_own(&receipt.tenant, &receipt.install).map(|()| receipt))
                .and_then(|receipt| compared(seq, &receipt, records));
            match agrees {
                Ok(()) => {
                    self.verified.receipts += 1;
                    self.verified.confirmed = self.verified.confirmed.max(Some(seq));
                }
                Err(problem) => self.note(Some(seq), format!("receipt {seq}: {problem}")),
            }
        }
    }

    /// Adds a problem for each report that is not as its runner signed it, or whose head the chain contradicts.
    pub(super) fn compare_reports(&mut self, copy: &RecordsCopy, records: &BTreeMap<u64, &[u8]>) {
        for (name, bytes) in &copy.reports {
            let found = Digest::of(bytes);
            if message_name(&found) != *name {
                self.note(None, format!("report `{name}` is not the one that was sent: its digest is {found}"));
                continue;
            }
            let report = match self.report(bytes) {
                Ok(report) => report,
                Err(problem) => {
                    self.note(None, format!("report `{name}`: {problem}"));
                    continue;
                }
            };
            let Some(head) = report.head else { continue };
            if let Err(problem) = has(records, &head) {
                self.note(Some(head.seq), format!("{problem} that report `{name}` names"));
            }
        }
    }

    /// Returns a report that a runner of the chain signed.
    fn report(&self, bytes: &[u8]) -> Result<Report, String> {
        let envelope = Envelope::parse(bytes).map_err(|error| error.to_string())?;
        let claimed: Report = envelope.peek().map_err(|error| error.to_string())?;
        let runner = claimed.runner.as_str();
        let key = match self.keys.get(runner) {
            Some(Ok(key)) => key,
            Some(Err(problem)) => return Err(problem.clone()),
            None => return Err(format!("it is signed by key {runner}, whose public key `{runner}.pub` is missing")),
        };
        let report: Report = envelope.open(key).map_err(|error| error.to_string())?;
        self.is_own(&report.tenant, &report.install)?;
        Ok(report)
    }

    fn is_own(&self, tenant: &TenantName, install: &InstallId) -> Result<(), String> {
        let own = (self.verified.tenant.as_ref(), self.verified.install.as_ref());
        match own {
            (Some(own_tenant), Some(own_install)) if (own_tenant, own_install) != (tenant, install) => {
                Err(format!("it belongs to install `{install}` of tenant `{tenant}`"))
            }
            (_, _) => Ok(()),
        }
    }
}

/// Returns a receipt. With root keys, checks that the control plane signed the receipt.
fn receipt(bytes: &[u8], roots: Option<&Roots>) -> Result<Receipt, String> {
    let envelope = Envelope::parse(bytes).map_err(|error| error.to_string())?;
    let claimed: Receipt = envelope.peek().map_err(|error| error.to_string())?;
    match roots {
        Some(roots) => roots
            .open_delegated(&envelope, claimed.issued_at)
            .map_err(|error| format!("the control plane did not sign it: {error}")),
        None => Ok(claimed),
    }
}

fn compared(seq: u64, receipt: &Receipt, records: &BTreeMap<u64, &[u8]>) -> Result<(), String> {
    if receipt.head.seq != seq {
        return Err(format!("it is the receipt of record {}, stored in place of this one", receipt.head.seq));
    }
    has(records, &receipt.head).map_err(|problem| format!("{problem} that the control plane confirmed"))
}

/// Checks that the chain has a record. The error is the beginning of a sentence.
fn has(records: &BTreeMap<u64, &[u8]>, head: &ChainHead) -> Result<(), String> {
    match records.get(&head.seq) {
        Some(bytes) if Digest::of(bytes) == head.digest => Ok(()),
        Some(_) => Err(format!("the chain was forked: record {} is not the one", head.seq)),
        None => Err(format!("the chain was cut: it lacks record {}", head.seq)),
    }
}
