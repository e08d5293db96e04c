//! Webhooks: which calls may still act, so that a repeated or late call does not undo a newer one.

use freehold_protocol::Timestamp;
use freehold_protocol::WebhookName;
use freehold_protocol::api::WebhookTask;
use freehold_protocol::envelope::PublicKey;
use freehold_protocol::order::AskedBy;
use serde::{Deserialize, Serialize};

/// The maximum number of webhooks of a tenant.
pub const MAX_WEBHOOKS: usize = 50;
/// The maximum number of calls that a webhook stores when its calls move a channel.
pub const TAKEN_CALLS: usize = 32;

/// A webhook of the tenant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Webhook {
    pub name: WebhookName,
    /// The key whose private half signs the calls.
    pub key: PublicKey,
    pub starts: WebhookTask,
    pub added_at: Timestamp,
    pub added_by: AskedBy,
    /// The last calls that moved a channel, the newest last; empty for webhooks that start something else.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taken: Vec<TakenCall>,
}

/// A call of a webhook that moves a channel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TakenCall {
    pub id: String,
    /// The time of the call, in seconds since the epoch.
    pub secs: u64,
    /// How often the channel had been moved before the call.
    pub moves: u64,
}

/// The decision about a call that moves a channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Call {
    /// The call is new: it is stored, and then it acts.
    New(Box<Webhook>),
    /// This call, or another call of the same event, came before. The call acts only if the number of the channel's
    /// moves is still the number before the first of these calls.
    Again { moves: u64 },
}

/// A call arrived after another call of the same second, or of a later one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "call `{newest}` of the time {newest_secs} was handled before this call of the time {secs}: calls that move a \
     channel must come in the order of their times, at most one per second; sign the call again if it should be the \
     newest"
)]
pub struct LateCall {
    pub newest: String,
    pub newest_secs: u64,
    pub secs: u64,
}

impl Webhook {
    /// Decides about the call `id` of the time `secs`, before which the channel had been moved `moves` times.
    ///
    /// # Errors
    /// [`LateCall`] when another call of the same second or a later one came before.
    pub fn call(&self, id: &str, secs: u64, moves: u64) -> Result<Call, LateCall> {
        if let Some(known) = self.taken.iter().find(|known| known.id == id) {
            return Ok(Call::Again { moves: known.moves });
        }
        match self.taken.last() {
            Some(newest) if newest.secs >= secs => {
                Err(LateCall { newest: newest.id.clone(), newest_secs: newest.secs, secs })
            }
            Some(_) | None => {
                let forgotten = (self.taken.len() + 1).saturating_sub(TAKEN_CALLS);
                let mut next = self.clone();
                next.taken.drain(..forgotten);
                next.taken.push(TakenCall { id: id.to_owned(), secs, moves });
                Ok(Call::New(Box::new(next)))
            }
        }
    }

    /// Returns whether a call of the time `secs` was signed before the webhook was added. Such a call was meant for an
    /// earlier webhook of the same name. Times of calls are whole seconds, so a call in the same second counts as
    /// later.
    pub const fn is_before_it(&self, secs: u64) -> bool {
        secs < self.added_at.as_secs()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn webhook() -> Webhook {
        let key = "A6EHv/POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg=".parse().unwrap();
        let starts = WebhookTask::MoveChannel { app: "shop".parse().unwrap(), channel: "stable".parse().unwrap() };
        Webhook {
            name: "ci".parse().unwrap(),
            key,
            starts,
            added_at: Timestamp::default(),
            added_by: AskedBy::Sweep,
            taken: Vec::new(),
        }
    }

    proptest! {
        /// However calls are repeated, signed again and mixed up, the channel moves once for each event, and never back to a call
        /// with an earlier time.
        #[test]
        fn a_channel_never_goes_back(calls in prop::collection::vec((0_u8..6, 0_u64..6), 1..40)) {
            let mut hook = webhook();
            let (mut moves, mut has, mut acted) = (0_u64, None, Vec::new());
            for (id, secs) in calls {
                let id = format!("id-{id}");
                let before = match hook.call(&id, secs, moves) {
                    Ok(Call::New(next)) => {
                        hook = *next;
                        moves
                    }
                    Ok(Call::Again { moves }) => moves,
                    Err(_) => continue,
                };
                if before == moves {
                    prop_assert!(has.is_none_or(|had| had < secs), "{has:?} and then {secs}");
                    prop_assert!(!acted.contains(&id), "{id} twice");
                    acted.push(id);
                    (moves, has) = (moves + 1, Some(secs));
                }
            }
        }
    }

    #[test]
    fn a_repeated_call_acts_unless_somebody_moved_the_channel_meanwhile() {
        let Ok(Call::New(called)) = webhook().call("a", 10, 3) else { panic!("the first call is new") };

        assert_eq!(called.call("a", 10, 4), Ok(Call::Again { moves: 3 }));
        assert!(called.call("b", 10, 4).is_err(), "another call of the same second");
        assert_eq!(called.call("a", 19, 4), Ok(Call::Again { moves: 3 }), "the same event, signed again");
        assert!(called.call("b", 9, 4).is_err());
        let Ok(Call::New(later)) = called.call("b", 11, 4) else { panic!("a later call is new") };
        assert_eq!(later.call("a", 12, 5), Ok(Call::Again { moves: 3 }), "an event before the newest, signed again");
    }

    #[test]
    fn the_last_calls_are_remembered_and_no_more() {
        let mut hook = webhook();
        for secs in 1..=100 {
            let Ok(Call::New(next)) = hook.call(&format!("id-{secs}"), secs, secs) else { panic!("{secs}") };
            hook = *next;
        }

        assert_eq!((hook.taken.len(), hook.taken[0].secs), (TAKEN_CALLS, 69));
    }
}
