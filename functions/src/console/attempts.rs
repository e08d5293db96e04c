//! Sign-ins that have begun. The browser's cookie names the row of an attempt and opens it, once and for ten minutes.

use std::sync::Arc;

use freehold_app::AppError;
use freehold_app::ports::{Clock, Committed, Expect, Key, Store, Write};
use freehold_protocol::Timestamp;
use freehold_sign_in::Attempt;
use serde::{Deserialize, Serialize};

use super::sealing::Secret;

/// The time for signing in at the issuer.
pub(crate) const ATTEMPT_SECS: u64 = 600;

/// All attempts.
#[derive(Clone)]
pub(crate) struct Attempts {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
}

/// An attempt to sign in, and the page to show after it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Started {
    pub(crate) attempt: Attempt,
    pub(crate) page: String,
}

#[derive(Debug, Serialize, Deserialize)]
struct AttemptRow {
    ends_at: Timestamp,
    sealed: String,
}

impl Attempts {
    /// Stores an attempt, and returns the secret that names and opens it.
    pub(crate) async fn start(&self, started: &Started) -> Result<Secret, AppError> {
        let secret = Secret::random()?;
        let (key, ends_at) = (key_of(&secret), self.clock.now().plus_secs(ATTEMPT_SECS));
        let sealed = secret.seal(&serde_json::to_vec(started)?, &key.pk)?;
        let body = serde_json::to_string(&AttemptRow { ends_at, sealed })?;
        let write = Write::Put { key, body, expect: Expect::Absent, expires: Some(ends_at) };
        match self.store.commit(vec![write]).await? {
            Committed::Done => Ok(secret),
            Committed::Conflict(_) => Err(AppError::internal("another attempt has the same id")),
        }
    }

    /// Removes the attempt of a cookie's value and returns it; `None` when there is none, or its time is over.
    pub(crate) async fn take(&self, cookie: Option<&str>) -> Result<Option<Started>, AppError> {
        let Some(secret) = cookie.and_then(Secret::parse) else { return Ok(None) };
        let key = key_of(&secret);
        let Some(found) = self.store.get(&key).await? else { return Ok(None) };
        let removed = Write::DeleteAt { key: key.clone(), rev: found.rev };
        if !matches!(self.store.commit(vec![removed]).await?, Committed::Done) {
            return Ok(None);
        }
        let Ok(row) = serde_json::from_str::<AttemptRow>(&found.body) else { return Ok(None) };
        if self.clock.now() >= row.ends_at {
            return Ok(None);
        }
        Ok(secret.open(&row.sealed, &key.pk).and_then(|plain| serde_json::from_slice(&plain).ok()))
    }
}

fn key_of(secret: &Secret) -> Key {
    Key { pk: format!("console-session#sign-in#{}", secret.id()), sk: "sign-in".to_owned() }
}

#[cfg(test)]
mod tests {
    use freehold_app::testing::Memory;

    use super::*;

    fn started() -> Started {
        let text = |text: &str| text.to_owned().into();
        let attempt = Attempt {
            state: text("state-1"),
            nonce: text("nonce-1"),
            verifier: text("verifier-1"),
            redirect: "https://console.example/callback".to_owned(),
        };
        Started { attempt, page: "/apps".to_owned() }
    }

    fn attempts() -> (Arc<Memory>, Attempts) {
        let memory = Arc::new(Memory::default());
        let attempts = Attempts { store: memory.clone(), clock: memory.clone() };
        (memory, attempts)
    }

    #[tokio::test]
    async fn an_attempt_is_taken_once() {
        let (memory, attempts) = attempts();
        let cookie = attempts.start(&started()).await.unwrap().text();

        let rows = format!("{:?}", memory.rows());
        let taken = attempts.take(Some(&cookie)).await.unwrap().unwrap();

        assert_eq!((taken.page.as_str(), taken.attempt.verifier.expose()), ("/apps", "verifier-1"));
        assert!(!rows.contains("verifier-1") && !rows.contains(&cookie), "{rows}");
        assert!(attempts.take(Some(&cookie)).await.unwrap().is_none());
    }

    #[tokio::test]
    async fn an_attempt_ends_after_ten_minutes_and_is_that_of_its_cookie() {
        let (memory, attempts) = attempts();
        let cookie = attempts.start(&started()).await.unwrap().text();

        let other = Secret::random().unwrap().text();
        assert!(attempts.take(Some(&other)).await.unwrap().is_none());
        assert!(attempts.take(None).await.unwrap().is_none());
        memory.advance_secs(ATTEMPT_SECS);
        assert!(attempts.take(Some(&cookie)).await.unwrap().is_none());
    }
}
