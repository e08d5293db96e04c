//! The job protocol as a state machine that a checker explores completely: jobs, two runners and two queues, with
//! crashes.
//!
//! # What is modelled
//!
//! - The control plane: the job aggregate ([`job::Control::on`], held equal to `freehold_domain::job::Job::on` by a
//!   property test), dispatch, reports, cancel, retry, the sweep, the runner key that is believed, and the
//!   message that stops an attempt which has lost.
//! - The orders queue: FIFO groups, receive counts, the lease and its end, redelivery, the dead-letter queue, answers
//!   that arrive after the lease they tell of, deduplication.
//! - The reports queue: any order, reports whose acknowledgement is lost and which come again.
//! - Two runners: decision on a delivery ([`runner::decide`], held equal to the runner's journal by a property test),
//!   journal, orders that are put back unstarted ([`runner::put_back`] and [`runner::learn`], in the same test), one attempt per job, spool, crash
//!   and restart with the disk, loss of the machine with its disk, a second machine that takes over while the first one may
//!   live on with a retired key.
//! - Time, as far as the protocol sees it: an order's `not_after`, the grace after it, the end of a lease.
//! - Orders that somebody keeps and sends again when they are gone, to either machine, and the audit chain in which a
//!   machine looks first for what the other one recorded.
//! - Copies of an order that is still there, in a model of their own ([`copies`]): both messages in the queue or in
//!   flight at once, orders that are put back or given back, processes that are killed around the record of a start, and
//!   what the order of the records decides.
//! - Hellos, in a model of their own ([`hellos`]): whose key is believed when they arrive late, twice and in any order, while
//!   machines are lost and live beside each other. In the model above, the second machine's hello is accepted in one step.
//!
//! - Approvals, in a model of their own ([`approvals`]): what both sides say about the plans of a job, in any order.
//! - Workflows, in a model of their own ([`workflow`]): nodes that fail, are blocked, retried, skipped and cancelled, continuations
//!   by people, and the roll back of a verified deploy that failed.
//!
//! [`rule::Rule`] lists what must hold. `bug::Bug` (feature `mutants`) lists mistakes that each break a rule, which
//! shows that the rules see something.
//!
//! # Bounds
//!
//! [`bounds::Bounds::ALL`] names the spaces; each is exhausted in the tests. One job: two dispatches, two or three
//! receives each, one or two lapsed leases and crashes, one lost machine, one repeated report, one cancel, one report
//! that comes after the grace. Orders are put back in a space of their own, with three receives. Two jobs on one thing or
//! on two: two receives, a lapsed lease, and a crash or a second dispatch. Every bound only falls and every step moves
//! forward, so that there are no cycles; a test looks for one. Hence "every job ends" is checked where a path ends: nothing
//! can happen any more, and every job has ended.
//!
//! # What is taken for granted
//!
//! - A runner's own timer works: it stops its job before the lease and before `not_after`, or is frozen with its job
//!   and can have no effect either. The step that would end a lease waits for the stop; the mistakes
//!   `LeaseNotStopped`, `LateAnswerStarts` and `RunsPastExpiry` show what hangs on it.
//! - SQS hands one delivery of a FIFO queue to one receiver. The space `twins` drops this and checks what the control
//!   plane then makes of two equal fences; that both may have worked cannot be helped.
//! - A finished report is durable when the reports queue has it. A spool survives a crash, but not its machine.
//! - Reports arrive before the grace is over; `Bounds::lates` allows one that does not. Its job is lost at first, and
//!   then has its outcome. Reports of a runner whose hello is not accepted yet wait for it.
//! - A retry is a person's request, so "once" means once per dispatch for jobs that must not start twice.
//!
//! # What is left out
//!
//! Signatures, contents of orders and reports, artifacts and grants, policies, the runner's slots, and
//! heartbeats. A report of a refused order changes no job, save that of a cancelled one, which counts as its end.
//! A blocked job ends like a failed one that cannot be tried again; only the property test knows it.

#![expect(
    clippy::indexing_slicing,
    reason = "indexes its own bounded tables; a panic would end the search, as it should"
)]

pub mod action;
pub mod approvals;
pub mod bounds;
pub mod bug;
mod carry;
mod control;
pub mod copies;
pub mod explore;
pub mod fence;
pub mod hellos;
pub mod job;
pub mod protocol;
pub mod report;
pub mod rule;
pub mod rules;
pub mod runner;
pub mod time;
pub mod word;
mod work;
pub mod workflow;
pub mod world;

#[cfg(test)]
mod tests;
