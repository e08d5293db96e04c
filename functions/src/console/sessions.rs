//! The sessions in the tenant's table. A row has the times of its start and of its last use. Its tokens are sealed with
//! a key that only the browser's cookie gives.

use std::sync::Arc;

use freehold_app::AppError;
use freehold_app::ports::{Clock, Committed, Expect, Key, Store, Write};
use freehold_protocol::{Digest, Timestamp};
use freehold_sign_in::Tokens;
use serde::{Deserialize, Serialize};

use super::sealing::Secret;

/// A session that is not used for this long ends.
pub(crate) const IDLE_SECS: u64 = 30 * 60;
/// A session ends after this time, however much it is used.
pub(crate) const LONGEST_SECS: u64 = 12 * 60 * 60;
/// The time of the last use is written again after this time.
const NOTED_SECS: u64 = 60;
/// The console's role permits the partitions that begin with this.
const PARTITION: &str = "console-session#";

/// The row of a session, without the tokens themselves.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct SessionRow {
    /// The SHA-256 of the person's subject, in hex.
    person: String,
    created_at: Timestamp,
    used_at: Timestamp,
    sealed: String,
}

/// The row of a person who has ended all of their sessions.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct PersonRow {
    ended_at: Timestamp,
}

/// A session that has not ended.
#[derive(Debug, Clone)]
pub(crate) struct Session {
    pub(crate) secret: Secret,
    pub(crate) tokens: Tokens,
    row: SessionRow,
    rev: u64,
}

/// All sessions.
#[derive(Clone)]
pub(crate) struct Sessions {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
}

impl Sessions {
    /// Begins a session with a new secret, whatever cookie the browser has sent.
    pub(crate) async fn begin(&self, tokens: &Tokens) -> Result<Secret, AppError> {
        let (secret, now) = (Secret::random()?, self.clock.now());
        let row = SessionRow {
            person: person_of(&tokens.identity.subject),
            created_at: now,
            used_at: now,
            sealed: sealed(&secret, tokens)?,
        };
        match self.put(&secret, &row, Expect::Absent).await? {
            Committed::Done => Ok(secret),
            Committed::Conflict(_) => Err(AppError::internal("another session has the same id")),
        }
    }

    /// Returns the session of a cookie's value, unless it has ended.
    pub(crate) async fn find(&self, cookie: Option<&str>) -> Result<Option<Session>, AppError> {
        let Some(secret) = cookie.and_then(Secret::parse) else { return Ok(None) };
        let Some(found) = self.store.get(&key_of(&secret)).await? else { return Ok(None) };
        let Ok(row) = serde_json::from_str::<SessionRow>(&found.body) else { return Ok(None) };
        let now = self.clock.now();
        let is_over = now >= row.used_at.plus_secs(IDLE_SECS) || now >= row.created_at.plus_secs(LONGEST_SECS);
        if is_over || self.has_ended_all(&row).await? {
            return Ok(None);
        }
        let Some(tokens) = opened(&secret, &row.sealed) else { return Ok(None) };
        Ok(Some(Session { secret, tokens, row, rev: found.rev }))
    }

    /// Notes that a person uses the session now.
    pub(crate) async fn note_use(&self, session: &Session) -> Result<(), AppError> {
        let now = self.clock.now();
        if now < session.row.used_at.plus_secs(NOTED_SECS) {
            return Ok(());
        }
        let row = SessionRow { used_at: now, ..session.row.clone() };
        // After a conflict, another request has noted its use, or has ended the session.
        let _: Committed = self.put(&session.secret, &row, Expect::Rev(session.rev)).await?;
        Ok(())
    }

    /// Replaces the tokens of a session. This is not a use: a page that polls also renews them, and some issuers give
    /// tokens for a few minutes. Returns `None` if another request has replaced them or has ended the session.
    pub(crate) async fn renew(&self, session: Session, tokens: Tokens) -> Result<Option<Session>, AppError> {
        let sealed = sealed(&session.secret, &tokens)?;
        let row = SessionRow { sealed, ..session.row };
        let committed = self.put(&session.secret, &row, Expect::Rev(session.rev)).await?;
        let renewed = Session { tokens, row, rev: session.rev + 1, secret: session.secret };
        Ok(matches!(committed, Committed::Done).then_some(renewed))
    }

    /// Ends the session of a cookie's value. A session that has ended stays so.
    pub(crate) async fn end(&self, cookie: Option<&str>) -> Result<(), AppError> {
        let Some(secret) = cookie.and_then(Secret::parse) else { return Ok(()) };
        let _: Committed = self.store.commit(vec![Write::Delete { key: key_of(&secret) }]).await?;
        Ok(())
    }

    /// Ends all sessions that the person of this session has begun until now.
    pub(crate) async fn end_all(&self, session: &Session) -> Result<(), AppError> {
        let now = self.clock.now();
        let write = Write::Put {
            key: person_key(&session.row.person),
            body: serde_json::to_string(&PersonRow { ended_at: now })?,
            expect: Expect::Any,
            // By then, every session that this row ends is over.
            expires: Some(now.plus_secs(LONGEST_SECS)),
        };
        let _: Committed = self.store.commit(vec![write]).await?;
        self.end(Some(&session.secret.text())).await
    }

    async fn has_ended_all(&self, row: &SessionRow) -> Result<bool, AppError> {
        let Some(found) = self.store.get(&person_key(&row.person)).await? else { return Ok(false) };
        let person: PersonRow = serde_json::from_str(&found.body)?;
        Ok(row.created_at <= person.ended_at)
    }

    async fn put(&self, secret: &Secret, row: &SessionRow, expect: Expect) -> Result<Committed, AppError> {
        let write = Write::Put {
            key: key_of(secret),
            body: serde_json::to_string(row)?,
            expect,
            expires: Some(row.created_at.plus_secs(LONGEST_SECS)),
        };
        Ok(self.store.commit(vec![write]).await?)
    }
}

fn key_of(secret: &Secret) -> Key {
    Key { pk: format!("{PARTITION}{}", secret.id()), sk: "session".to_owned() }
}

fn person_key(person: &str) -> Key {
    Key { pk: format!("{PARTITION}person#{person}"), sk: "person".to_owned() }
}

fn person_of(subject: &str) -> String {
    Digest::of(subject.as_bytes()).hex().to_owned()
}

fn sealed(secret: &Secret, tokens: &Tokens) -> Result<String, AppError> {
    secret.seal(&serde_json::to_vec(tokens)?, &key_of(secret).pk)
}

fn opened(secret: &Secret, sealed: &str) -> Option<Tokens> {
    serde_json::from_slice(&secret.open(sealed, &key_of(secret).pk)?).ok()
}

#[cfg(test)]
mod tests {
    use freehold_app::testing::Memory;
    use freehold_sign_in::Identity;

    use super::*;

    fn sessions() -> (Arc<Memory>, Sessions) {
        let memory = Arc::new(Memory::default());
        let sessions = Sessions { store: memory.clone(), clock: memory.clone() };
        (memory, sessions)
    }

    fn tokens(subject: &str) -> Tokens {
        Tokens {
            access: "access-of-ana".to_owned().into(),
            refresh: Some("refresh-of-ana".to_owned().into()),
            expires_at: Timestamp::from_millis(1),
            identity: Identity { subject: subject.to_owned(), email: None },
        }
    }

    async fn is_live(sessions: &Sessions, secret: &Secret) -> bool {
        sessions.find(Some(&secret.text())).await.unwrap().is_some()
    }

    #[tokio::test]
    async fn a_session_is_found_by_its_cookie_and_by_nothing_else() {
        let (memory, sessions) = sessions();
        let secret = sessions.begin(&tokens("ana")).await.unwrap();

        let found = sessions.find(Some(&secret.text())).await.unwrap().unwrap();

        assert_eq!((found.tokens.access.expose(), found.tokens.identity.subject.as_str()), ("access-of-ana", "ana"));
        for wrong in [None, Some(""), Some(secret.id().as_str()), Some(Secret::random().unwrap().text().as_str())] {
            assert!(sessions.find(wrong).await.unwrap().is_none(), "{wrong:?}");
        }
        assert!(memory.rows().iter().all(|row| row.key.pk.starts_with("console-session#")));
    }

    #[tokio::test]
    async fn the_table_alone_has_neither_a_token_nor_the_cookie() {
        let (memory, sessions) = sessions();
        let secret = sessions.begin(&tokens("ana@example.com")).await.unwrap();

        let rows = format!("{:?}", memory.rows());

        for hidden in ["access-of-ana", "refresh-of-ana", "ana@example.com", secret.text().as_str()] {
            assert!(!rows.contains(hidden), "{hidden} is in {rows}");
        }
        // Whoever writes rows cannot give a session to another cookie.
        let row = memory.rows().swap_remove(0);
        let other = Secret::random().unwrap();
        let write = Write::Put { key: key_of(&other), body: row.body, expect: Expect::Absent, expires: None };
        assert_eq!(memory.commit(vec![write]).await.unwrap(), Committed::Done);
        assert!(!is_live(&sessions, &other).await);
    }

    #[tokio::test]
    async fn a_session_ends_half_an_hour_after_its_last_use() {
        let (memory, sessions) = sessions();
        let secret = sessions.begin(&tokens("ana")).await.unwrap();

        memory.advance_secs(IDLE_SECS - 1);
        let session = sessions.find(Some(&secret.text())).await.unwrap().unwrap();
        sessions.note_use(&session).await.unwrap();
        memory.advance_secs(IDLE_SECS - 1);
        assert!(is_live(&sessions, &secret).await);

        memory.advance_secs(1);
        assert!(!is_live(&sessions, &secret).await);
    }

    #[tokio::test]
    async fn a_session_whose_tokens_are_renewed_by_polls_alone_ends_as_idle() {
        let (memory, sessions) = sessions();
        let secret = sessions.begin(&tokens("ana")).await.unwrap();

        for _ in 0..IDLE_SECS / 300 {
            let session = sessions.find(Some(&secret.text())).await.unwrap().unwrap();
            assert!(sessions.renew(session, tokens("ana")).await.unwrap().is_some());
            memory.advance_secs(300);
        }

        assert!(!is_live(&sessions, &secret).await);
    }

    #[tokio::test]
    async fn a_session_ends_after_twelve_hours_however_much_it_is_used() {
        let (memory, sessions) = sessions();
        let secret = sessions.begin(&tokens("ana")).await.unwrap();

        for _ in 0..LONGEST_SECS / 600 {
            let session = sessions.find(Some(&secret.text())).await.unwrap().unwrap();
            sessions.note_use(&session).await.unwrap();
            memory.advance_secs(600);
        }

        assert!(!is_live(&sessions, &secret).await);
    }

    #[tokio::test]
    async fn a_session_that_was_ended_is_not_brought_back_by_a_use_or_by_new_tokens() {
        let (memory, sessions) = sessions();
        let secret = sessions.begin(&tokens("ana")).await.unwrap();
        let session = sessions.find(Some(&secret.text())).await.unwrap().unwrap();
        memory.advance_secs(NOTED_SECS);

        sessions.end(Some(&secret.text())).await.unwrap();
        sessions.note_use(&session).await.unwrap();
        let renewed = sessions.renew(session, tokens("ana")).await.unwrap();

        assert!(renewed.is_none());
        assert!(!is_live(&sessions, &secret).await);
    }

    #[tokio::test]
    async fn a_person_ends_all_of_their_sessions_and_nobody_elses() {
        let (memory, sessions) = sessions();
        let (one, two) = (sessions.begin(&tokens("ana")).await.unwrap(), sessions.begin(&tokens("ana")).await.unwrap());
        let ben = sessions.begin(&tokens("ben")).await.unwrap();

        let session = sessions.find(Some(&one.text())).await.unwrap().unwrap();
        sessions.end_all(&session).await.unwrap();

        assert!(!is_live(&sessions, &one).await && !is_live(&sessions, &two).await);
        assert!(is_live(&sessions, &ben).await);
        memory.advance_secs(1);
        let later = sessions.begin(&tokens("ana")).await.unwrap();
        assert!(is_live(&sessions, &later).await);
    }
}
