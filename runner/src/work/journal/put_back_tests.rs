//! What the journal makes of deliveries that were put back unstarted.

use freehold_protocol::Timestamp;
use freehold_protocol::order::{Order, Redelivery};
use freehold_protocol::report::Fence;

use super::{Accepted, Decision, Record, State};
use crate::testing::{job_id, order};

fn state(records: impl IntoIterator<Item = Record>) -> State {
    let mut state = State::default();
    for record in records {
        state.apply(record);
    }
    state
}

fn fence(dispatch: u32, receive: u32) -> Fence {
    Fence { dispatch, receive }
}

/// An order whose job must not start twice.
fn action() -> Order {
    Order { redelivery: Redelivery::Interrupted, ..order(1, 7) }
}

/// The record of a delivery that was put back, of a message that was sent at `sent_at`.
fn put_back(receive: u32, sent_at: Option<u64>) -> Record {
    Record::PutBack { job: job_id(1), fence: fence(1, receive), sent_at: sent_at.map(Timestamp::from_millis) }
}

#[test]
fn a_delivery_that_was_put_back_before_it_started_is_not_an_attempt() {
    let state = state([1, 2].map(|receive| put_back(receive, None)));
    let reopened = self::state(state.to_records());

    for state in [&state, &reopened] {
        assert_eq!(state.decide(&action(), 3, None), Decision::Start);
        // Another runner, of which this journal knows nothing, had the third delivery.
        assert_eq!(state.decide(&action(), 4, None), Decision::Interrupted);
    }
    let started = [put_back(1, None), Record::Started { job: job_id(1), fence: fence(1, 2) }];
    assert_eq!(self::state(started).decide(&action(), 3, None), Decision::Interrupted);
}

/// Another machine may have started the order from a copy whose first delivery it had.
#[test]
fn a_delivery_that_was_put_back_says_nothing_of_another_message_with_the_order() {
    let decided = |known: Option<u64>, own: Option<u64>| {
        let state = state([put_back(1, known)]);
        let reopened = self::state(state.to_records());
        let own = own.map(Timestamp::from_millis);
        assert_eq!(state.decide(&action(), 2, own), reopened.decide(&action(), 2, own));
        (state.decide(&action(), 2, own), state.unseen(&action(), 2, own))
    };

    assert_eq!(decided(Some(50), Some(50)), (Decision::Start, None));
    assert_eq!(decided(Some(50), Some(60)), (Decision::Interrupted, Some(fence(1, 1))));
    assert_eq!(decided(None, Some(60)), (Decision::Start, None), "a record of an earlier version");
    assert_eq!(decided(Some(50), None), (Decision::Start, None), "a queue that names no time");
}

#[test]
fn an_order_that_was_given_back_for_good_starts_nowhere_and_the_next_one_does() {
    let (action, sent_at) = (action(), Some(Timestamp::from_millis(50)));
    let next = Order { dispatch: 2, ..action.clone() };
    let mut state = state([Record::given_back(&action)]);
    let reopened = self::state(state.to_records());

    for state in [&state, &reopened] {
        assert!(state.is_given_back(&action) && !state.is_given_back(&next));
        let replayed = Decision::Replayed { accepted: Accepted::LaterDispatch(2) };
        assert_eq!(state.decide(&action, 1, sent_at), replayed);
        assert_eq!(state.decide(&next, 1, sent_at), Decision::Start);
        assert_eq!(state.decide(&next, 2, sent_at), Decision::Interrupted, "another machine may have started it");
    }
    state.apply(Record::Started { job: job_id(1), fence: fence(2, 1) });
    assert!(!state.is_given_back(&action));
}

#[test]
fn only_what_another_machine_had_is_asked_about() {
    let started = Record::Started { job: job_id(1), fence: fence(1, 1) };
    let after = |record: Record| state([record]);
    let put_back = put_back(1, None);

    assert_eq!(State::default().unseen(&action(), 1, None), None);
    assert_eq!(State::default().unseen(&action(), 2, None), Some(fence(1, 1)));
    assert_eq!(State::default().unseen(&order(1, 7), 2, None), None, "a job that may be resumed needs no note");
    assert_eq!(
        (after(put_back.clone()).unseen(&action(), 2, None), after(put_back).unseen(&action(), 3, None)),
        (None, Some(fence(1, 2)))
    );
    assert_eq!(after(started).unseen(&action(), 2, None), None);
}
