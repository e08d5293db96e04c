//! The side effects of a report: to store its log, to record the contact, and to send a heartbeat to the waiting state.

use freehold_domain::install::connection::{self, Sign};
use freehold_domain::job::Job;
use freehold_domain::reports::head::ReportedHead;
use freehold_protocol::{InstallId, Timestamp};

use super::{AcceptReport, Arrival};
use crate::AppError;
use crate::notification::runner_watch;
use crate::ports::Expect;
use crate::table::{
    self, Contact, Decided, InstallSender, KnownSender, LogRecord, Phase, QueueTurn, Record as _, Stored, TaskToken,
    change, load, put, token_key,
};

impl AcceptReport {
    /// Records once that the sender's role is a role of the install's runner, which the sender's hello has proven. A
    /// signed report alone proves nothing about its sender, because anybody who has the report's bytes can send it.
    pub(super) async fn note_sender(&self, install: &InstallId, arrival: &Arrival) -> Result<(), AppError> {
        let (Some(sender), None) = (&arrival.sender, &arrival.install) else { return Ok(()) };
        let sender = KnownSender { sender: sender.clone(), install: install.clone() };
        let known: Option<Stored<KnownSender>> = load(&*self.store, &sender.key()).await?;
        if known.as_ref().is_some_and(|known| known.value == sender) {
            return Ok(());
        }
        let expect = known.map_or(Expect::Absent, |known| Expect::Rev(known.rev));
        let entry = put(&InstallSender(sender.clone()), Expect::Any)?;
        // A conflict means that another report of the sender records the role at this moment.
        let _ = self.store.commit(vec![put(&sender, expect)?, entry]).await?;
        Ok(())
    }

    pub(super) async fn store_log(&self, log: Option<&LogRecord>, now: Timestamp) -> Result<(), AppError> {
        if let Some(log) = log {
            let _ = self.store.commit(vec![log.write(now)?]).await?;
        }
        Ok(())
    }

    /// Records that the runner sent a report at `sent_at`. The time at which the report is handled does not count: it
    /// may be much later, and the runner may have stopped meanwhile. A job's reports are frequent and their times are
    /// in the job's row, so this row is written when the recorded time is `after_secs` old. The row also keeps the newest
    /// audit record that a report named, for the next receipt.
    pub(super) async fn note_contact_at(
        &self,
        install: &InstallId,
        sent_at: Timestamp,
        after_secs: u64,
        head: Option<ReportedHead>,
    ) -> Result<(), AppError> {
        self.note(install, (sent_at, &Sign::Report, after_secs), head).await
    }

    /// Records a hello, or the report of a runner that goes away, that the queue took at `sent_at`. If the runner lost
    /// its access, or has it again, the sweep closes or opens the orders queue. `head` is the audit record that the
    /// report named.
    pub(super) async fn note_sign(
        &self,
        install: &InstallId,
        sent_at: Timestamp,
        sign: &Sign,
        head: Option<ReportedHead>,
    ) -> Result<(), AppError> {
        self.note(install, (sent_at, sign, 0), head).await
    }

    /// Records a sign of life. Reports are handled at the same time and out of order, but the recorded time never goes
    /// backward.
    async fn note(
        &self,
        install: &InstallId,
        (sent_at, sign, after_secs): (Timestamp, &Sign, u64),
        head: Option<ReportedHead>,
    ) -> Result<(), AppError> {
        let at = self.clock.now().min(sent_at);
        let says_enough = |known: &connection::Contact| known.at >= at || at.since(known.at) < after_secs * 1000;
        change(&*self.store, ("the contact of install", install), || async {
            let known: Option<Stored<Contact>> = load(&*self.store, &table::contact_key(install)).await?;
            if *sign == Sign::Report && known.as_ref().is_some_and(|known| says_enough(&known.value.contact)) {
                return Ok(Decided::Keep(()));
            }
            let (before, expect) = match known {
                Some(Stored { value, rev }) => (Some(value), Expect::Rev(rev)),
                None => (None, Expect::Absent),
            };
            let known_head = before.as_ref().and_then(|before| before.head.clone());
            let contact = match &before {
                Some(before) => before.contact.after(at, sign.clone()),
                None => connection::Contact::first(at, sign.clone()),
            };
            if let (Some(known), Some(head)) = (&known_head, &head)
                && known.contradicts(head)
            {
                tracing::error!(
                    install.id = %install,
                    "Two audit records of install `{install}` have the number {}: the chain in the customer's bucket was \
                     forked, or a runner's key was stolen",
                    head.head.seq
                );
            }
            let newest = ReportedHead::newest(known_head.clone(), head.clone());
            if before.as_ref().is_some_and(|before| before.contact == contact) && newest == known_head {
                return Ok(Decided::Keep(()));
            }
            let was_cut_off = before.as_ref().is_some_and(|before| before.contact.is_cut_off());
            let mut next = Contact {
                install: install.clone(),
                contact,
                head: newest,
                watched: before.as_ref().is_some_and(|before| before.watched),
                notified_away_since: before.as_ref().and_then(|before| before.notified_away_since),
            };
            let now = self.clock.now();
            let mut writes = runner_watch::on_contact(&*self.store, before.as_ref(), &mut next, now).await?;
            if was_cut_off != next.contact.is_cut_off() {
                writes.push(put(&QueueTurn { install: install.clone() }, Expect::Any)?);
            }
            writes.push(put(&next, expect)?);
            Ok(Decided::Commit(writes, ()))
        })
        .await
    }

    pub(super) async fn heartbeat(&self, job: &Job) -> Result<(), AppError> {
        let token: Option<Stored<TaskToken>> = load(&*self.store, &token_key(&job.workflow, Phase::Run)).await?;
        if let Some(token) = token {
            self.callbacks.heartbeat(&token.value.token).await?;
        }
        Ok(())
    }
}
