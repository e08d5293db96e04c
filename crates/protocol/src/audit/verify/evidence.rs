//! Compares the chain with the messages that name its records: the heads in reports, and the receipts of the control
//! plane. A chain that lacks a named record was cut. A chain that has another record in its place was forked.

use std::collections::BTreeMap;

use super::{Chain, RecordsCopy};
use crate::audit::{ChainHead, Receipt, message_name, record_number};
use crate::order::Order;
use crate::report::Report;
use crate::succession::Roots;
use crate::{Digest, Envelope, InstallId, TenantName};

/// The words about a record that a receipt names.
const CONFIRMED: &str = "that the control plane confirmed";

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
            let found = receipt_in(bytes, roots).and_then(|receipt| self.own_receipt(receipt));
            match found.and_then(|receipt| in_place(seq, receipt)) {
                Ok(receipt) => {
                    if self.compare(&receipt.head, records, |why| format!("receipt {seq}: {why} {CONFIRMED}")) {
                        self.verified.receipts += 1;
                        self.verified.confirmed = self.verified.confirmed.max(Some(seq));
                    }
                }
                Err(problem) => self.note(Some(seq), format!("receipt {seq}: {problem}")),
            }
        }
    }

    /// Compares the receipts that orders brought, because somebody who forks the chain may remove the receipts. Adds a
    /// problem for each order that is not the one that arrived. Whether the vendor signed an order is verified with the
    /// record that names the order.
    pub(super) fn compare_orders(&mut self, copy: &RecordsCopy, records: &BTreeMap<u64, &[u8]>, roots: Option<&Roots>) {
        let last = records.keys().next_back().copied();
        for (name, bytes) in &copy.orders {
            let found = Digest::of(bytes);
            if message_name(&found) != *name {
                self.note(None, format!("order `{name}` is not the one that arrived: its digest is {found}"));
                continue;
            }
            let Some(envelope) = brought_by(bytes) else { continue };
            // A receipt that is not valid proves nothing. The runner does not store it either.
            let own = receipt(&envelope, roots).and_then(|receipt| self.own_receipt(receipt));
            let Ok(Receipt { head, .. }) = own else { continue };
            // Orders are copied after the records, so the receipt may be for a record that arrived in between.
            if Some(head.seq) > last {
                continue;
            }
            let about = |why: &str| format!("the receipt in order `{name}`: {why} {CONFIRMED}");
            if self.compare(&head, records, about) {
                self.verified.confirmed = self.verified.confirmed.max(Some(head.seq));
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
            self.compare(&head, records, |why| format!("{why} that report `{name}` names"));
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

    /// Compares a record that a message names with the chain. Returns whether the chain has the record.
    fn compare(&mut self, head: &ChainHead, records: &BTreeMap<u64, &[u8]>, text: impl FnOnce(&str) -> String) -> bool {
        match has(records, head) {
            Ok(()) => {
                self.confirmed.insert(head.seq);
                true
            }
            Err(why) => {
                self.contradictions.push((head.seq, text(&why)));
                false
            }
        }
    }

    fn own_receipt(&self, receipt: Receipt) -> Result<Receipt, String> {
        self.is_own(&receipt.tenant, &receipt.install).map(|()| receipt)
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

fn receipt_in(bytes: &[u8], roots: Option<&Roots>) -> Result<Receipt, String> {
    receipt(&Envelope::parse(bytes).map_err(|error| error.to_string())?, roots)
}

/// Returns a receipt. With root keys, checks that the control plane signed the receipt.
fn receipt(envelope: &Envelope, roots: Option<&Roots>) -> Result<Receipt, String> {
    let claimed: Receipt = envelope.peek().map_err(|error| error.to_string())?;
    match roots {
        Some(roots) => roots
            .open_delegated(envelope, claimed.issued_at)
            .map_err(|error| format!("the control plane did not sign it: {error}")),
        None => Ok(claimed),
    }
}

/// Returns the receipt that an order brought.
fn brought_by(order: &[u8]) -> Option<Box<Envelope>> {
    Envelope::parse(order).ok()?.peek::<Order>().ok()?.receipt
}

fn in_place(seq: u64, receipt: Receipt) -> Result<Receipt, String> {
    if receipt.head.seq != seq {
        return Err(format!("it is the receipt of record {}, stored in place of this one", receipt.head.seq));
    }
    Ok(receipt)
}

/// Checks that the chain has a record. The error is the beginning of a sentence.
fn has(records: &BTreeMap<u64, &[u8]>, head: &ChainHead) -> Result<(), String> {
    match records.get(&head.seq) {
        Some(bytes) if Digest::of(bytes) == head.digest => Ok(()),
        Some(_) => Err(format!("the chain was forked: record {} is not the one", head.seq)),
        None => Err(format!("the chain was cut: it lacks record {}", head.seq)),
    }
}
