//! Removes the dead letters of an install: of its orders, of its runner's reports, and of messages about its jobs.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use freehold_domain::Job;
use freehold_protocol::{Envelope, InstallId, JobId};
use serde::Deserialize;

use crate::AppError;
use crate::messages::{DispatchMessage, GrantMessage};
use crate::ports::{DeadLetters, Store};
use crate::table::{job_key, load};

/// The maximum number of batches of messages that one run looks at.
const MAX_BATCHES: u32 = 100;

/// The part of a signed message that names its install.
#[derive(Deserialize)]
struct Named {
    install: InstallId,
}

/// Removes the dead letters of `install` from `letters`. Rows of jobs must still be there, because a message of the
/// dispatch queue names only its job.
///
/// # Errors
/// The errors of the queue and the store.
pub(in crate::install) async fn remove_letters(
    store: &dyn Store,
    letters: &dyn DeadLetters,
    install: &InstallId,
) -> Result<(), AppError> {
    for _ in 0..MAX_BATCHES {
        let messages = letters.look().await?;
        if messages.is_empty() {
            return Ok(());
        }
        for message in &messages {
            if install_of(store, &message.body).await?.as_ref() == Some(install) {
                letters.remove(message).await?;
            }
        }
    }
    Ok(())
}

/// Returns the install that a message is about; `None` for a message that names none.
async fn install_of(store: &dyn Store, body: &str) -> Result<Option<InstallId>, AppError> {
    if let Ok(envelope) = Envelope::parse(body.as_bytes()) {
        let payload = BASE64.decode(&envelope.payload).unwrap_or_default();
        return Ok(serde_json::from_slice::<Named>(&payload).ok().map(|named| named.install));
    }
    if let Ok(message) = serde_json::from_str::<GrantMessage>(body) {
        return Ok(Some(message.install));
    }
    match serde_json::from_str::<DispatchMessage>(body) {
        Ok(DispatchMessage::Order { job, .. } | DispatchMessage::Cancel { job, .. }) => {
            install_of_job(store, &job).await
        }
        Ok(DispatchMessage::Retired { install, .. }) => Ok(Some(install)),
        Ok(DispatchMessage::Contract { .. }) | Err(_) => Ok(None),
    }
}

async fn install_of_job(store: &dyn Store, job: &JobId) -> Result<Option<InstallId>, AppError> {
    Ok(load::<Job>(store, &job_key(job)).await?.map(|job| job.value.install))
}
