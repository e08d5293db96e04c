//! Requests with an idempotency key. A request that is repeated gets the answer of the first try, and another request
//! with the same key is refused.
//!
//! The row of a key is written before its request is performed, so that of two requests at the same time only one is
//! performed. It is written again with the answer. A function that is stopped between the change and this second write
//! leaves a request without an answer. When it is repeated, it is performed again. Its use case finds what the first try
//! started or set. But a repeated deletion finds nothing to delete.

mod row;

use std::sync::Arc;

use freehold_domain::install::Install;
use freehold_protocol::limits::{KEPT_ANSWER_SECS, MAX_KEPT_REQUEST_BYTES};
use freehold_protocol::{AppName, Digest, InstallId, JobId, RunId, Timestamp, WorkflowId};
use futures_util::future::try_join;
use serde_json::Value;

use crate::new_workflow::{digest_of, used_before};
use crate::ports::{Clock, Committed, Expect, Key, Store, Write};
use crate::table::{app_pk, install_key, install_pk, job_pk, load, run_key, workflow_pk};
use crate::{AppError, Kind};
use row::{KeyedRequest, RequestProgress};

pub(crate) use row::REQUESTS_PREFIX;

/// The time after which a request without an answer is performed again, in seconds: the time limit of the function
/// `api` in `infra/tenant.yaml`, and a second for clocks that differ.
pub const PERFORMING_SECS: u64 = 16;

/// The partition of the keys of requests that are about the tenant.
const TENANT_PK: &str = "requests";

/// The thing that a request is about. Its idempotency key counts for as long as the thing exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    Tenant,
    App(AppName),
    Install(InstallId),
    /// An install that the request creates.
    NewInstall(InstallId),
    Workflow(WorkflowId),
    Job(JobId),
    Run(RunId),
}

impl Subject {
    fn pk(&self) -> String {
        match self {
            Self::Tenant => TENANT_PK.to_owned(),
            Self::App(app) => app_pk(app),
            Self::Install(install) | Self::NewInstall(install) => install_pk(install),
            Self::Workflow(workflow) => workflow_pk(workflow),
            Self::Job(job) => job_pk(job),
            Self::Run(run) => run_key(run).pk,
        }
    }
}

/// A request with an idempotency key.
#[derive(Debug, Clone)]
pub struct Request<'a> {
    pub subject: Subject,
    /// The path of the request. The same key may be used again for another path.
    pub path: &'a str,
    pub key: &'a str,
    pub body: &'a str,
    /// The principal that sent the request. The same key of another principal is refused.
    pub caller: &'a str,
    /// The id of the HTTP request. A repeated request has another one.
    pub id: &'a str,
    /// Whether the answer is kept. Without an answer, a repeated request is performed again.
    pub keeps_answer: bool,
}

/// The decision about a request.
#[derive(Debug)]
#[must_use]
pub enum Begun {
    /// The request was performed before, with this answer.
    Before(String),
    /// The request has to be performed.
    Now(Attempt),
}

/// A request that is being performed.
#[derive(Debug)]
pub struct Attempt {
    /// The cause from which the ids of what the request starts are derived.
    pub cause: String,
    /// Absent for a request that leaves no row.
    claim: Option<Box<Claim>>,
}

/// The row of a request that is being performed.
#[derive(Debug)]
struct Claim {
    key: Key,
    rev: u64,
    row: KeyedRequest,
    /// The row of an earlier try that was performed. A refusal puts it back: the earlier try keeps its answer.
    earlier: Option<KeyedRequest>,
    /// Whether no earlier try may have had an effect.
    is_first: bool,
    keeps_answer: bool,
    creates: Option<InstallId>,
}

/// The install that a request is about.
struct Place {
    /// `None` for a request about something else, and while the install does not exist.
    generation: Option<u32>,
    /// Whether a row may be written.
    takes_rows: bool,
}

impl Place {
    /// Returns the cause of what the key starts at `path`. Another install of the same name gets other ids from the
    /// same key: Step Functions reserves the name of an execution for 90 days, even after the install was forgotten. No
    /// path and no key has a space.
    fn cause(&self, path: &str, key: &str) -> String {
        match self.generation {
            None | Some(0) => format!("{path} {key}"),
            Some(generation) => format!("{generation} {path} {key}"),
        }
    }
}

/// The requests with idempotency keys, with the ports that they need.
#[derive(Clone)]
pub struct IdempotentRequests {
    pub store: Arc<dyn Store>,
    pub clock: Arc<dyn Clock>,
}

impl IdempotentRequests {
    /// Returns the answer to the request if it was performed before. Otherwise claims the key for the request, which
    /// has to be performed and then passed to [`Self::end`].
    ///
    /// # Errors
    /// Conflict if the key came with another body or from another caller, Transient while another try of the request is
    /// performed, or the store's errors.
    pub async fn begin(&self, request: &Request<'_>) -> Result<Begun, AppError> {
        let (store, key) = (&*self.store, row_key(request)?);
        let (found, place) = try_join(load::<KeyedRequest>(store, &key), self.place(&request.subject)).await?;
        let now = self.clock.now();
        let row = claim_of(request, &place, now)?;
        let known = found.as_ref().map(|found| &found.value);
        let known = known.filter(|known| counts(known, (&request.subject, &place), now));
        if let Some(answer) = known.map(|known| answer_to(known, request.key, &row)).transpose()?.flatten() {
            return Ok(Begun::Before(answer));
        }
        let cause = place.cause(request.path, request.key);
        if !place.takes_rows {
            return Ok(Begun::Now(Attempt { cause, claim: None }));
        }
        let expect = found.as_ref().map_or(Expect::Absent, |found| Expect::Rev(found.rev));
        if let Committed::Conflict(_) = store.commit(vec![write(&key, &row, expect)?]).await? {
            return Err(being_performed(request.key));
        }
        let rev = found.as_ref().map_or(0, |found| found.rev) + 1;
        let (is_first, keeps_answer) = (known.is_none(), request.keeps_answer);
        let creates = if let Subject::NewInstall(install) = &request.subject { Some(install.clone()) } else { None };
        let earlier = known.filter(|known| matches!(known.progress, RequestProgress::Performed { .. })).cloned();
        let claim = Claim { key, rev, row, earlier, is_first, keeps_answer, creates };
        Ok(Begun::Now(Attempt { cause, claim: Some(Box::new(claim)) }))
    }

    /// Records how an attempt ended. A request that was refused frees its key, because an operation refuses a request
    /// before it changes anything; if an earlier try was performed, its answer counts again. Any other error keeps the
    /// key for the body, because the request may have had an effect.
    pub async fn end(&self, attempt: Attempt, answer: &Result<String, AppError>) {
        let Some(claim) = attempt.claim else { return };
        if let Err(error) = self.record(*claim, answer).await {
            tracing::warn!(
                "Could not store the answer to a request, which is performed again if it is repeated: {error}"
            );
        }
    }

    async fn record(&self, claim: Claim, answer: &Result<String, AppError>) -> Result<(), AppError> {
        let Claim { key, rev, mut row, earlier, is_first, keeps_answer, creates } = claim;
        if let (Some(earlier), Err(error)) = (&earlier, answer)
            && is_refused(error.kind)
        {
            let _ = self.store.commit(vec![write(&key, earlier, Expect::Rev(rev))?]).await?;
            return Ok(());
        }
        row.at = self.clock.now();
        row.progress = match answer {
            Err(error) if is_first && is_refused(error.kind) => {
                // In a conflict, a later try has taken over, because this one has taken too long.
                let _ = self.store.commit(vec![Write::DeleteAt { key, rev }]).await?;
                return Ok(());
            }
            Err(_) => RequestProgress::Failed,
            Ok(answer) => {
                if let Some(install) = &creates {
                    row.generation = self.install(install).await?.map(|install| install.generation);
                }
                RequestProgress::Performed { answer: keeps_answer.then(|| answer.clone()) }
            }
        };
        // The text of an answer is escaped once more in the row.
        if serde_json::to_string(&row)?.len() > MAX_KEPT_REQUEST_BYTES {
            row.progress = RequestProgress::Performed { answer: None };
        }
        let _ = self.store.commit(vec![write(&key, &row, Expect::Rev(rev))?]).await?;
        Ok(())
    }

    /// Returns what the tenant knows of the install that a request is about. A request about an install that does not
    /// exist, or that is being forgotten, leaves no row: nobody would remove it.
    async fn place(&self, subject: &Subject) -> Result<Place, AppError> {
        let (id, creates) = match subject {
            Subject::Install(id) => (id, false),
            Subject::NewInstall(id) => (id, true),
            Subject::Tenant | Subject::App(_) | Subject::Workflow(_) | Subject::Job(_) | Subject::Run(_) => {
                return Ok(Place { generation: None, takes_rows: true });
            }
        };
        let found = self.install(id).await?;
        let takes_rows = found.as_ref().map_or(creates, |install| install.forgetting.is_none());
        Ok(Place { generation: found.map(|install| install.generation), takes_rows })
    }

    async fn install(&self, id: &InstallId) -> Result<Option<Install>, AppError> {
        Ok(load::<Install>(&*self.store, &install_key(id)).await?.map(|found| found.value))
    }
}

/// Returns whether the row of a key still counts: for a day, and not for another install of the same name.
fn counts(known: &KeyedRequest, (subject, place): (&Subject, &Place), now: Timestamp) -> bool {
    let is_same = match (known.generation, place.generation) {
        (Some(before), Some(present)) => before == present,
        // The install is gone. The request that deleted it has its answer, and the one that created it creates it
        // again.
        (Some(_), None) => !matches!(subject, Subject::NewInstall(_)),
        (None, _) => true,
    };
    is_same && now.since(known.at) < KEPT_ANSWER_SECS * 1000
}

/// Returns the row that claims the key for the request.
fn claim_of(request: &Request<'_>, place: &Place, now: Timestamp) -> Result<KeyedRequest, AppError> {
    let (body, sealed) = digests_of_body(request.body)?;
    Ok(KeyedRequest {
        body,
        sealed,
        caller: request.caller.to_owned(),
        by: request.id.to_owned(),
        at: now,
        generation: place.generation,
        progress: RequestProgress::Performing { until: now.plus_secs(PERFORMING_SECS) },
    })
}

/// Returns the answer to a request that was performed before; `None` for a request that has to be performed again.
/// `claim` is the row with which the request would claim its key now.
///
/// A sealed value cannot be compared with an earlier one. A request with other ciphertexts is performed again, because
/// they may be of a corrected secret, which would be lost.
fn answer_to(known: &KeyedRequest, key: &str, claim: &KeyedRequest) -> Result<Option<String>, AppError> {
    if known.body != claim.body {
        return Err(used_before());
    }
    if !known.is_from(&claim.caller) {
        let message = format!("idempotency key was used by another caller, `{}`; use a new key", known.caller);
        return Err(AppError::conflict(message));
    }
    match &known.progress {
        RequestProgress::Performing { until } if claim.at < *until => Err(being_performed(key)),
        RequestProgress::Performing { .. } | RequestProgress::Failed => Ok(None),
        RequestProgress::Performed { .. } if known.sealed != claim.sealed => Ok(None),
        RequestProgress::Performed { answer } => Ok(answer.clone()),
    }
}

/// Returns the error about a request whose earlier try may still be performed, for at most [`PERFORMING_SECS`].
fn being_performed(key: &str) -> AppError {
    let message = format!("a request with idempotency key `{key}` is being performed; try again");
    AppError { soon: true, ..AppError::new(Kind::Transient, message) }
}

/// Returns whether an error of this kind means that the request had no effect.
const fn is_refused(kind: Kind) -> bool {
    match kind {
        Kind::Invalid | Kind::Unauthorized | Kind::Forbidden | Kind::NotFound | Kind::Conflict => true,
        Kind::Transient | Kind::Internal => false,
    }
}

fn row_key(request: &Request<'_>) -> Result<Key, AppError> {
    let name = Digest::of(&serde_json::to_vec(&(request.path, request.key))?);
    Ok(Key { pk: request.subject.pk(), sk: format!("{REQUESTS_PREFIX}{}", name.hex()) })
}

fn write(key: &Key, row: &KeyedRequest, expect: Expect) -> Result<Write, AppError> {
    let expires = Some(row.at.plus_secs(KEPT_ANSWER_SECS));
    Ok(Write::Put { key: key.clone(), body: serde_json::to_string(row)?, expect, expires })
}

/// Returns the digest of a body without the ciphertexts of its sealed values, and for a body with such values also the
/// digest with them. Bodies that differ only in white space, or in the order of their fields, have the same digests.
fn digests_of_body(body: &str) -> Result<(Digest, Option<Digest>), AppError> {
    let Ok(mut value) = serde_json::from_str::<Value>(body) else { return Ok((Digest::of(body.as_bytes()), None)) };
    value.sort_all_objects();
    let (plain, whole) = (digest_of(&value)?, Digest::of(&serde_json::to_vec(&value)?));
    let sealed = (whole != plain).then_some(whole);
    Ok((plain, sealed))
}
