//! Every space is exhausted and no rule is broken in it.

use crate::bounds::Bounds;
use crate::explore::{check, find_cycle};
use crate::protocol::Protocol;

fn holds(bounds: Bounds, at_least: usize) {
    let checked = check(bounds);

    println!("{}: {} worlds, {} steps, {:.1?}", checked.name, checked.unique, checked.steps, checked.took);
    assert!(checked.broken.is_empty(), "{:#?}", checked.broken);
    assert_eq!(checked.missing, Vec::<&str>::new(), "never possible, so that rules hold for want of it");
    assert!(checked.exhausted);
    assert!(checked.unique >= at_least, "only {} worlds: something has stopped happening", checked.unique);
}

#[test]
fn one_job_holds_whatever_fails() {
    holds(Bounds::ONE_JOB, 1_000_000);
}

#[test]
fn one_job_holds_that_a_person_lets_run_again() {
    holds(Bounds::RESUMED, 100_000);
}

#[test]
fn one_job_holds_when_its_runner_is_replaced() {
    holds(Bounds::REPLACEMENT, 1_000_000);
}

#[test]
fn one_job_holds_when_it_is_tried_again_elsewhere() {
    holds(Bounds::RETRY_ELSEWHERE, 1_000_000);
}

#[test]
fn one_job_holds_over_many_receives() {
    holds(Bounds::MANY_RECEIVES, 1_000_000);
}

#[test]
fn an_order_that_was_put_back_unstarted_is_started_at_most_once() {
    holds(Bounds::PUT_BACK, 50_000);
}

#[test]
fn of_two_equal_fences_the_first_one_wins() {
    holds(Bounds::TWINS, 50_000);
}

#[test]
fn two_jobs_on_one_thing_hold() {
    holds(Bounds::ONE_THING, 1_000_000);
}

#[test]
fn two_jobs_on_two_things_hold() {
    holds(Bounds::TWO_THINGS, 1_000_000);
}

#[test]
fn a_job_that_waits_for_its_runner_holds() {
    holds(Bounds::WAITING, 100_000);
}

#[test]
fn a_job_that_waits_holds_when_its_runner_is_replaced_meanwhile() {
    holds(Bounds::WAITING_ELSEWHERE, 100_000);
}

#[test]
fn a_job_holds_over_a_pause() {
    holds(Bounds::PAUSE, 20_000);
}

#[test]
fn a_job_holds_whose_order_somebody_kept() {
    holds(Bounds::KEPT_ORDERS, 10_000);
}

#[test]
fn nothing_happens_in_circles() {
    let small = Bounds { acks: 0, lates: 0, cancels: 1, ..Bounds::REPLACEMENT };
    let two = Bounds { dispatches: 1, crashes: 1, ..Bounds::ONE_THING };
    let retried = Bounds { acks: 1, cancels: 0, ..Bounds::ONE_JOB };
    let put_back = Bounds { receives: 2, cancels: 0, losses: 0, ..Bounds::PUT_BACK };

    let waiting = Bounds { cancels: 0, lates: 0, ..Bounds::WAITING };
    let pause = Bounds { losses: 0, replacement: false, ..Bounds::PAUSE };
    let kept = Bounds { lapses: 0, ..Bounds::KEPT_ORDERS };

    for bounds in [small, two, retried, put_back, waiting, pause, kept] {
        assert_eq!(find_cycle(&Protocol::new(bounds)), None, "{bounds:?}");
    }
}
