//! The connection of an install: whether its runner takes orders, and since when. The control plane knows only what the
//! runner reported and when: a customer who deletes everything without notice looks like a machine without a network.

use freehold_protocol::Timestamp;
use freehold_protocol::report::{Away, AwayReason};
use serde::{Deserialize, Serialize};

/// The time in seconds after which a runner without a report counts as silent. An idle runner reports once an hour.
pub const SILENT_SECS: u64 = 2 * 60 * 60;

/// A job is lost when its runner is still in contact this many seconds after the job's order expired, and has sent no
/// report about the job. The time is an hour longer than [`SILENT_SECS`], so that a runner whose shorter absence nobody
/// noticed had an hour to receive the order.
const LOST_AFTER_SECS: u64 = SILENT_SECS + 60 * 60;

/// The contact with an install's runner, as far as it is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contact {
    /// The time of the last contact. Contacts by reports of jobs are written once in ten minutes.
    pub at: Timestamp,
    /// The time since which the runner was neither silent nor away; 0 in rows of earlier versions.
    #[serde(default)]
    pub since: Timestamp,
    /// The time of the last hello; 0 in rows of earlier versions.
    #[serde(default)]
    pub announced: Timestamp,
    /// The absence that the runner announced. A later hello removes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub away: Option<Absence>,
}

/// The time at which a runner went away, and its reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Absence {
    /// The first time that the runner reported its absence.
    pub at: Timestamp,
    /// The last time that the runner reported its absence.
    pub last: Timestamp,
    #[serde(flatten)]
    pub away: Away,
}

/// A sign of life of a runner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sign {
    /// A report about a job.
    Report,
    Hello,
    Away(Away),
}

/// The state of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ConnectionState {
    Connected,
    /// The runner sent no report for [`SILENT_SECS`].
    Silent,
    /// The customer has switched the runner off or stopped it.
    Paused,
    /// The runner has lost its orders queue, or its install stack is deleted.
    CutOff,
}

impl ConnectionState {
    /// Returns the state's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Connected => "connected",
            Self::Silent => "silent",
            Self::Paused => "paused",
            Self::CutOff => "cut_off",
        }
    }
}

/// A connection's state, the time since which it has this state, and the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Connection {
    pub state: ConnectionState,
    pub since: Timestamp,
    /// The reason as a sentence of the runner or of the control plane; empty for a connected runner.
    pub reason: String,
}

impl Contact {
    /// Returns the contact after the first sign of life.
    pub fn first(at: Timestamp, sign: Sign) -> Self {
        Self { at, since: at, announced: Timestamp::default(), away: None }.after(at, sign)
    }

    /// Returns the contact after a sign of life that the reports queue took at `at`. Signs may arrive in any order.
    #[must_use]
    pub fn after(&self, at: Timestamp, sign: Sign) -> Self {
        let mut next = self.clone();
        if at.since(self.at) > SILENT_SECS * 1000 {
            next.since = at;
        }
        next.at = self.at.max(at);
        match sign {
            Sign::Report => {}
            Sign::Hello => {
                next.announced = self.announced.max(at);
                if next.away.take_if(|away| away.last < at).is_some() {
                    next.since = next.since.max(at);
                }
                if let Some(away) = next.away.as_mut().filter(|away| away.at < at) {
                    away.at = away.last;
                }
            }
            Sign::Away(away) if at > self.announced => {
                next.away = Some(match &self.away {
                    // A runner that stays away repeats its report. The time of the first report counts.
                    Some(known) if known.away.reason == away.reason => {
                        Absence { at: known.at.min(at), last: known.last.max(at), away }
                    }
                    Some(known) if known.last > at => known.clone(),
                    Some(_) | None => Absence { at, last: at, away },
                });
            }
            Sign::Away(_) => {}
        }
        next
    }

    /// Returns the state of the connection at the time `now`. `heard` is the time of the last report, if the caller
    /// knows it more exactly.
    pub fn connection(&self, heard: Option<Timestamp>, now: Timestamp) -> Connection {
        let at = self.at.max(heard.unwrap_or_default());
        if let Some(Absence { at, away, .. }) = &self.away {
            let state = match away.reason {
                AwayReason::SwitchedOff | AwayReason::Stopped => ConnectionState::Paused,
                AwayReason::StackDeleted | AwayReason::NoOrders => ConnectionState::CutOff,
            };
            return Connection { state, since: *at, reason: away.detail.clone() };
        }
        if now.since(at) < SILENT_SECS * 1000 {
            let since = if self.since == Timestamp::default() { at } else { self.since };
            return Connection { state: ConnectionState::Connected, since, reason: String::new() };
        }
        let reason = "no report came from the runner, which reports once an hour: its machine, its network or its install \
                      stack is gone, or the customer has stopped it";
        Connection { state: ConnectionState::Silent, since: at, reason: reason.to_owned() }
    }

    /// Returns whether the runner must have received an order that expired at `expired`, if the order still exists: the
    /// runner has been in contact for long enough since then.
    pub fn must_have_received(&self, expired: Timestamp) -> bool {
        self.away.is_none() && self.at >= expired.max(self.since).plus_secs(LOST_AFTER_SECS)
    }

    /// Returns whether the runner has reported that its access is gone, so that nobody may act for the install until
    /// the next hello.
    pub fn is_cut_off(&self) -> bool {
        self.away.as_ref().is_some_and(|known| match known.away.reason {
            AwayReason::StackDeleted | AwayReason::NoOrders => true,
            AwayReason::SwitchedOff | AwayReason::Stopped => false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 3600;

    fn at(secs: u64) -> Timestamp {
        Timestamp::from_millis(1_000_000_000).plus_secs(secs)
    }

    fn away(reason: AwayReason) -> Sign {
        Sign::Away(Away { reason, detail: "because".into() })
    }

    fn after(signs: &[(u64, Sign)]) -> Contact {
        let ((first, sign), rest) = signs.split_first().unwrap();
        rest.iter().fold(Contact::first(at(*first), sign.clone()), |contact, (secs, sign)| {
            contact.after(at(*secs), sign.clone())
        })
    }

    fn permutations<T: Clone>(items: &[T]) -> Vec<Vec<T>> {
        let Some((first, rest)) = items.split_first() else { return vec![Vec::new()] };
        let longer = |shorter: Vec<T>| {
            (0..=shorter.len()).map(move |at| [&shorter[..at], std::slice::from_ref(first), &shorter[at..]].concat())
        };
        permutations(rest).into_iter().flat_map(longer).collect()
    }

    fn shown(contact: &Contact, now: u64) -> (&'static str, u64) {
        let Connection { state, since, .. } = contact.connection(None, at(now));
        (state.as_str(), since.since(at(0)) / 1000)
    }

    #[test]
    fn a_runner_is_connected_for_two_hours_after_each_sign_and_then_silent_since_the_last_one() {
        let contact = after(&[(0, Sign::Hello), (HOUR, Sign::Report)]);

        assert_eq!(shown(&contact, 3 * HOUR - 1), ("connected", 0));
        assert_eq!(shown(&contact, 3 * HOUR), ("silent", HOUR));
        assert_eq!(contact.connection(Some(at(2 * HOUR)), at(3 * HOUR)).state, ConnectionState::Connected);
    }

    #[test]
    fn a_connection_begins_anew_after_silence_and_after_absence() {
        let silent = after(&[(0, Sign::Hello), (5 * HOUR, Sign::Report)]);
        let absent = after(&[(0, Sign::Hello), (60, away(AwayReason::Stopped)), (120, Sign::Hello)]);

        assert_eq!(shown(&silent, 5 * HOUR), ("connected", 5 * HOUR));
        assert_eq!(shown(&absent, 120), ("connected", 120));
    }

    #[test]
    fn a_word_of_absence_holds_since_its_first_time_until_the_next_hello() {
        let off = after(&[
            (0, Sign::Hello),
            (60, away(AwayReason::SwitchedOff)),
            (61, Sign::Report),
            (HOUR, away(AwayReason::SwitchedOff)),
        ]);

        assert_eq!(shown(&off, 90 * HOUR), ("paused", 60));
        assert_eq!(shown(&off.after(at(2 * HOUR), away(AwayReason::StackDeleted)), 90 * HOUR), ("cut_off", 2 * HOUR));
        assert_eq!(shown(&off.after(at(2 * HOUR), Sign::Hello), 2 * HOUR), ("connected", 2 * HOUR));
        for (reason, cut) in [
            (AwayReason::SwitchedOff, false),
            (AwayReason::Stopped, false),
            (AwayReason::StackDeleted, true),
            (AwayReason::NoOrders, true),
        ] {
            let gone = after(&[(0, Sign::Hello), (1, away(reason))]);
            assert_eq!((gone.is_cut_off(), shown(&gone, 1).0 == "cut_off"), (cut, cut), "{reason:?}");
        }
    }

    #[test]
    fn the_order_of_arrival_of_hellos_and_absences_does_not_matter() {
        for last in [AwayReason::SwitchedOff, AwayReason::StackDeleted] {
            let signs = [(0, Sign::Hello), (10, away(AwayReason::SwitchedOff)), (20, Sign::Hello), (30, away(last))];
            let ends = if last == AwayReason::SwitchedOff { "paused" } else { "cut_off" };
            let expected = [("connected", 0), ("paused", 10), ("connected", 20), (ends, 30)];
            for (taken, expected) in (1..=signs.len()).zip(expected) {
                for order in permutations(&signs[..taken]) {
                    assert_eq!(shown(&after(&order), 40).0, expected.0, "{order:?}");
                    assert!(expected.0 == "connected" || shown(&after(&order), 40) == expected, "{order:?}");
                }
            }
        }
    }

    #[test]
    fn only_a_runner_that_was_there_for_an_hour_after_an_expiry_must_have_received_the_order() {
        let idle = |until: u64| -> Contact {
            (1..=until)
                .fold(Contact::first(at(0), Sign::Hello), |contact, hour| contact.after(at(hour * HOUR), Sign::Hello))
        };

        assert!(!idle(3).must_have_received(at(1)));
        assert!(idle(4).must_have_received(at(1)));
        // Away for just less than it takes to notice: it had an hour before.
        assert!(idle(1).after(at(3 * HOUR), Sign::Hello).must_have_received(at(0)));
        assert!(!idle(1).after(at(3 * HOUR + 1), Sign::Hello).must_have_received(at(0)));
        assert!(!idle(9).after(at(9 * HOUR + 1), away(AwayReason::SwitchedOff)).must_have_received(at(0)));
    }
}
