//! Handles a runner's hello, which announces its key.

use std::collections::BTreeMap;

use freehold_domain::install::connection::Sign;
use freehold_domain::install::{HelloStep, Install, InstallError};
use freehold_domain::reports::head::ReportedHead;
use freehold_protocol::limits::{MAX_ANSWERS, MAX_ANSWERS_BYTES, MAX_HELLO_BYTES};
use freehold_protocol::report::{Hello, Report};
use freehold_protocol::{Envelope, KeyId, Timestamp};
use serde_json::json;

use super::role::Role;
use super::{AcceptReport, Accepted, Arrival, reported_head, unbelievable};
use crate::AppError;
use crate::ports::Expect;
use crate::table::evidence::{self, Evidence, Signed};
use crate::table::{self, Decided, Phase, Stored, TaskToken, load, put, token_key};

impl AcceptReport {
    pub(super) async fn hello(
        &self,
        envelope: &Envelope,
        install: &Install,
        (hello, arrival): (&Hello, &Arrival),
        body: &str,
    ) -> Result<Accepted, AppError> {
        if body.len() > MAX_HELLO_BYTES {
            let message = format!("a hello has {} bytes, more than the limit of {MAX_HELLO_BYTES}", body.len());
            return Err(AppError::invalid(message));
        }
        let report: Report = envelope.open(&hello.public_key).map_err(unbelievable)?;
        if let Role::Unproven(reason) = self.role_of(install, hello, arrival.taken_at).await? {
            // The refusal is not recorded, because the runner repeats its hello with a new proof.
            tracing::warn!(install.id = %install.id, "Refused a hello: {reason}");
            return Ok(Accepted::Refused(reason));
        }
        self.note_sender(&install.id, arrival).await?;
        let too_much = too_much(hello);
        if let Some(reason) = &too_much {
            tracing::warn!(install.id = %install.id, "Refused the customer's answers in a hello: {reason}");
            let runner = Some(hello.public_key.key_id());
            self.record(table::install_pk(&install.id), body, runner, reason.clone()).await?;
        }
        match self.announce(envelope, install, (hello, arrival), too_much.is_some()).await? {
            Ok((next, changed)) => {
                if changed {
                    tracing::info!(install.id = %next.id, "Runner of `{}` announced itself", next.id);
                }
                self.note_changes(&next, hello.changes.as_ref(), arrival.sent_at).await?;
                self.note_decisions(&next, &hello.decisions).await?;
                self.note_roles(&next, hello.roles.as_ref(), arrival.sent_at).await?;
                self.after_hello(&next, arrival.sent_at, reported_head(&report, arrival.sent_at)).await
            }
            Err(reason) => {
                tracing::warn!(install.id = %install.id, "Refused a hello: {reason}");
                let runner = Some(hello.public_key.key_id());
                self.record(table::install_pk(&install.id), body, runner, reason.clone()).await?;
                self.notify_retired(install, &hello.public_key.key_id()).await?;
                Ok(Accepted::Refused(reason))
            }
        }
    }

    /// Makes the install accept the key of a hello. Returns the install and whether it has changed, or the reason of a
    /// refusal. With `keeps_answers`, the install keeps the customer's answers that it has.
    async fn announce(
        &self,
        envelope: &Envelope,
        install: &Install,
        (hello, arrival): (&Hello, &Arrival),
        keeps_answers: bool,
    ) -> Result<Result<(Install, bool), String>, AppError> {
        let announced = table::change(&*self.store, ("install", &install.id), || async {
            let current = table::install(&*self.store, &install.id).await?;
            let mut hello = hello.clone();
            if keeps_answers {
                hello.inputs.clone_from(&current.value.answers);
                hello.secrets = None;
            }
            let (next, late) = match current.value.on_hello(&hello, arrival.sent_at, self.clock.now()) {
                Ok(HelloStep::Changed(next)) => (Some(*next), false),
                Ok(HelloStep::Late(next)) => (Some(*next), true),
                Ok(HelloStep::Already) => (None, false),
                Err(error @ InstallError::Retired { .. }) => {
                    return Ok(Decided::Keep(Err(error.to_string())));
                }
                Err(error) => return Err(error.into()),
            };
            // The hello is stored before the install accepts its key. Every later report under that key can then be
            // proven.
            self.keep_hello(envelope, install, &hello).await?;
            let Some(next) = next else { return Ok(Decided::Keep(Ok((current.value, false)))) };
            let write = put(&next, Expect::Rev(current.rev))?;
            let answer = if late { Err(too_late(&hello.public_key.key_id())) } else { Ok((next, true)) };
            Ok(Decided::Commit(vec![write], answer))
        });
        announced.await
    }

    /// Stores the first announcement of a runner's key.
    pub(super) async fn keep_hello(
        &self,
        envelope: &Envelope,
        install: &Install,
        hello: &Hello,
    ) -> Result<(), AppError> {
        let evidence = Evidence::Hello {
            install: install.id.clone(),
            runner: hello.public_key.key_id(),
            signed: Signed::of(envelope)?,
        };
        evidence::keep_first(&*self.store, &evidence).await?;
        Ok(())
    }

    /// Records the contact, and resumes the workflow that waits for the runner, if there is one and it waits for nothing
    /// else.
    pub(super) async fn after_hello(
        &self,
        install: &Install,
        sent_at: Timestamp,
        head: Option<ReportedHead>,
    ) -> Result<Accepted, AppError> {
        self.note_sign(&install.id, sent_at, &Sign::Hello, head).await?;
        if let Some(live) = &install.live {
            let token: Option<Stored<TaskToken>> = load(&*self.store, &token_key(live, Phase::AwaitRunner)).await?;
            if let Some(token) = token.filter(|token| !token.value.waits_for_inputs(install)) {
                self.callbacks.succeed(&token.value.token, &json!({ "result": "announced" })).await?;
            }
        }
        Ok(Accepted::Taken)
    }
}

/// Returns the reason why a hello that is older than the current runner's hello is refused.
fn too_late(key: &KeyId) -> String {
    format!("the hello with runner key `{key}` is older than the hello of the current runner, but arrived after it")
}

/// Returns the reason why the answers in a hello are refused: they are more, or larger, than is accepted. `None`
/// if they are accepted. A deploy checks later whether an answer fits its input.
fn too_much(hello: &Hello) -> Option<String> {
    let answers: usize = hello.inputs.iter().map(|(name, value)| name.len() + value.len()).sum();
    let bytes = answers + hello.secrets.iter().flatten().map(|(name, _)| name.len()).sum::<usize>();
    let count = hello.inputs.len().max(hello.secrets.as_ref().map_or(0, BTreeMap::len));
    (count > MAX_ANSWERS || bytes > MAX_ANSWERS_BYTES).then(|| {
        format!(
            "the install stack has {count} answers of {bytes} bytes in all, which is more than the {MAX_ANSWERS} \
             answers or {MAX_ANSWERS_BYTES} bytes that are accepted; the earlier answers stay in use"
        )
    })
}
