//! Bounds that keep the model's space finite: how many faults, requests and repetitions may happen.

#[cfg(any(test, feature = "mutants"))]
use crate::bug::Bug;
use crate::bug::{Seed, seeded};
use crate::runner::{JOBS, Redelivery};

/// The bounds of one check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    pub name: &'static str,
    pub jobs: usize,
    /// The jobs change the same thing: one FIFO group.
    pub one_thing: bool,
    /// What the jobs' kinds say of redelivery; one initial state each.
    pub kinds: &'static [[Redelivery; JOBS]],
    /// Dispatches of one job.
    pub dispatches: u8,
    /// Receives of one order before the dead-letter queue.
    pub receives: u8,
    /// Leases that end although their runner lives.
    pub lapses: u8,
    /// Times that a runner dies and comes back with its disk.
    pub crashes: u8,
    /// Machines lost with their disk.
    pub losses: u8,
    /// A second machine may take over, with or without the first one being gone.
    pub replacement: bool,
    /// Reports handled whose acknowledgement is lost.
    pub acks: u8,
    /// Wishes to cancel.
    pub cancels: u8,
    /// Jobs given up while a report of theirs is still on its way.
    pub lates: u8,
    /// Deliveries that reach both runners with one receive count, which SQS rules out for FIFO queues.
    pub twins: u8,
    /// Attempts also report progress.
    pub progress: bool,
    /// A runner may put an order back that it has not started. Each time costs a receive.
    pub puts_back: bool,
    /// Jobs wait for their runner past the expiry of their order.
    pub waits: bool,
    /// Orders of one job that a runner may give back.
    pub returns: u8,
    /// Times that the customer switches the runner off and on again.
    pub pauses: u8,
    /// People let a job run again that was blocked or cancelled.
    pub resumes: bool,
    /// Orders that somebody kept, and sends again when the queue no longer has them.
    pub kept: u8,
    pub seed: Seed,
}

const RESUME: Redelivery = Redelivery::Resume;
const INTERRUPTED: Redelivery = Redelivery::Interrupted;

impl Bounds {
    /// One job of either kind that may be dispatched twice, on one runner, with every fault but the loss of its disk.
    pub const ONE_JOB: Self = Self {
        name: "one_job",
        jobs: 1,
        one_thing: true,
        kinds: &[[RESUME, RESUME], [INTERRUPTED, INTERRUPTED]],
        dispatches: 2,
        receives: 2,
        lapses: 1,
        crashes: 1,
        losses: 0,
        replacement: false,
        acks: 1,
        cancels: 1,
        lates: 1,
        twins: 0,
        progress: false,
        puts_back: false,
        waits: false,
        returns: 0,
        pauses: 0,
        resumes: false,
        kept: 0,
        seed: NO_BUG,
    };

    /// One job of either kind that a person lets run again, also after it was blocked or cancelled; it waits for its runner.
    pub const RESUMED: Self = Self { name: "resumed", resumes: true, waits: true, acks: 0, lates: 0, ..Self::ONE_JOB };

    /// One job, dispatched once; a second machine takes over, before or after the first one is gone or beside it.
    pub const REPLACEMENT: Self =
        Self { name: "replacement", dispatches: 1, losses: 1, replacement: true, ..Self::ONE_JOB };

    /// One job that may be dispatched twice, and a second machine; nobody cancels, and reports come once and in time.
    pub const RETRY_ELSEWHERE: Self =
        Self { name: "retry_elsewhere", dispatches: 2, acks: 0, cancels: 0, lates: 0, ..Self::REPLACEMENT };

    /// One job with a third receive, and progress reports.
    pub const MANY_RECEIVES: Self = Self {
        name: "many_receives",
        dispatches: 1,
        receives: 3,
        lapses: 2,
        crashes: 2,
        progress: true,
        ..Self::ONE_JOB
    };

    /// One job that must not start twice, whose order runners put back unstarted, on two machines; reports come once and in
    /// time.
    pub const PUT_BACK: Self = Self {
        name: "put_back",
        kinds: &[[INTERRUPTED, INTERRUPTED]],
        dispatches: 1,
        receives: 3,
        puts_back: true,
        acks: 0,
        lates: 0,
        ..Self::REPLACEMENT
    };

    /// One job whose delivery may reach both runners with the same fence: what the control plane makes of it. That two
    /// attempts then work at once cannot be helped, so some rules are excused.
    pub const TWINS: Self = Self {
        name: "twins",
        twins: 1,
        lapses: 0,
        crashes: 0,
        cancels: 0,
        lates: 0,
        progress: true,
        ..Self::REPLACEMENT
    };

    /// Two jobs that change the same thing.
    pub const ONE_THING: Self = Self {
        name: "one_thing",
        jobs: 2,
        kinds: &[[RESUME, RESUME], [INTERRUPTED, RESUME]],
        lapses: 1,
        crashes: 0,
        acks: 0,
        cancels: 0,
        lates: 0,
        ..Self::ONE_JOB
    };

    /// Two jobs that change different things, so that they run beside each other.
    pub const TWO_THINGS: Self = Self {
        name: "two_things",
        one_thing: false,
        kinds: &[[RESUME, INTERRUPTED]],
        dispatches: 1,
        crashes: 1,
        ..Self::ONE_THING
    };

    /// One job of either kind that waits for its runner, and whose order comes back once.
    pub const WAITING: Self =
        Self { name: "waiting", waits: true, returns: 1, dispatches: 1, acks: 0, ..Self::ONE_JOB };

    /// One job whose order comes back twice, on two machines: the customer replaces the machine meanwhile.
    pub const WAITING_ELSEWHERE: Self = Self {
        name: "waiting_elsewhere",
        waits: true,
        returns: 2,
        lapses: 0,
        crashes: 0,
        lates: 0,
        acks: 0,
        ..Self::REPLACEMENT
    };

    /// One job during whose life the customer switches the runner off and on again, and may replace its machine.
    pub const PAUSE: Self = Self {
        name: "pause",
        waits: true,
        returns: 1,
        pauses: 1,
        lapses: 0,
        crashes: 0,
        lates: 0,
        acks: 0,
        cancels: 0,
        ..Self::REPLACEMENT
    };

    /// One job of either kind whose order somebody keeps and sends again, on two machines.
    pub const KEPT_ORDERS: Self =
        Self { name: "kept_orders", kept: 1, acks: 0, cancels: 0, lates: 0, ..Self::REPLACEMENT };

    /// Every space that must hold.
    pub const ALL: [Self; 13] = [
        Self::ONE_JOB,
        Self::RESUMED,
        Self::REPLACEMENT,
        Self::RETRY_ELSEWHERE,
        Self::MANY_RECEIVES,
        Self::PUT_BACK,
        Self::TWINS,
        Self::ONE_THING,
        Self::TWO_THINGS,
        Self::WAITING,
        Self::WAITING_ELSEWHERE,
        Self::PAUSE,
        Self::KEPT_ORDERS,
    ];

    /// Returns a space in which `bug` must break a rule.
    #[cfg(any(test, feature = "mutants"))]
    pub fn ground_of(bug: Bug) -> Self {
        let ground = match bug {
            Bug::EqualFenceSecondWins => Self::TWINS,
            Bug::RetiredKeyAccepted | Bug::DeduplicationIgnored => Self::REPLACEMENT,
            Bug::GroupPerJob | Bug::SerialNotChecked => Self::ONE_THING,
            Bug::PutBackForgetsStart | Bug::PutBackCountsForOthers | Bug::AnyNoteCounts => Self::PUT_BACK,
            Bug::StartedIsGivenBack | Bug::GivenBackStarts | Bug::LostWhileItWaits | Bug::WaitingIgnoresOutcome => {
                Self::WAITING
            }
            Bug::StaleReturnCounts | Bug::CancelledIsOrderedAgain => Self::WAITING,
            Bug::ReturnOverridesEnd => Self::WAITING_ELSEWHERE,
            Bug::WorksWhilePaused => Self::PAUSE,
            Bug::KeptOrderIsTakenForDelivery | Bug::OwnOrderIsNotLookedUp => Self::KEPT_ORDERS,
            Bug::ResumeBeforeEnd | Bug::ResumeReusesDispatch => Self::RESUMED,
            // These worlds have no approvals, hellos or workflows, and copies only of orders that are gone; the tests of
            // these hunt for them.
            Bug::CopyTakesOverLease
            | Bug::StartIsNotLookedUp
            | Bug::StartExcludesRedelivery
            | Bug::RefusalExcludesOthers
            | Bug::ExcludedStartCounts
            | Bug::SupersededOutcomeCounts
            | Bug::OutcomeIsForgotten
            | Bug::CopyIsRefusedBeforeStart
            | Bug::InterruptedIsNotLookedUp
            | Bug::ContinuedStartCounts
            | Bug::PutBackCountsAsStart
            | Bug::PutBackExcludesStarted
            | Bug::PutBackOfRefusedCounts
            | Bug::GroupIsNotCompared
            | Bug::JournalNamesNoMessage
            | Bug::NoteNamesNoMessage
            | Bug::GivenBackIsNotLookedUp
            | Bug::GivenBackCountsAsRefused => Self::KEPT_ORDERS,
            Bug::RetiredKeyReturns | Bug::LateHelloWins | Bug::LateKeyIsForgotten | Bug::ReplacedIsNotTold => {
                Self::ONE_JOB
            }
            Bug::BlockedIsRetried
            | Bug::CancelledIsRetried
            | Bug::NodeRetriesUnbounded
            | Bug::RepeatedEndRetriesAgain
            | Bug::FailedCountsAsDone
            | Bug::UnreachableWaits
            | Bug::SucceededRunsAgain
            | Bug::LateSuccessRunsAgain
            | Bug::ContinuedAfterOther
            | Bug::HeldInstallIsTaken
            | Bug::LateFinishEndsNext
            | Bug::CallbackOfAnyExecution
            | Bug::LostOrderIsNotSentAgain
            | Bug::SettledIsForgotten
            | Bug::CancelledIsRolledBack
            | Bug::LateCallRollsBack
            | Bug::RepeatedCallBeginsAnew
            | Bug::RollBackIsRolledBack
            | Bug::RollBackAfterOther
            | Bug::RollBackBesideOpenJob
            | Bug::RollBackTaskIsNotStored
            | Bug::RollBackTaskIsRemovedFirst
            | Bug::ApprovalOfAnyPlan
            | Bug::ExpiredPlanApproved
            | Bug::RejectionIgnored
            | Bug::OneApprovalSuffices
            | Bug::CancelledIsApproved
            | Bug::FenceNotCompared
            | Bug::OldDispatchAccepted
            | Bug::SequenceIgnored
            | Bug::EndDoesNotAbsorb
            | Bug::LateOutcomeDropped
            | Bug::CancelEndsQueued
            | Bug::LostBeforeExpiry
            | Bug::RunningNeverExpires
            | Bug::RetryBeforeEnd
            | Bug::RetriesUnbounded
            | Bug::AcknowledgedBeforeCommit
            | Bug::LeaseNotStopped
            | Bug::LateAnswerStarts
            | Bug::RunsPastExpiry
            | Bug::ExpiredOrderStarts
            | Bug::InterruptedStartsAgain
            | Bug::DuplicateStarts
            | Bug::FinishedForgotten
            | Bug::JournalAfterStart
            | Bug::DeletedBeforeDurable
            | Bug::SpoolInMemory
            | Bug::CancelForgotten => Self::ONE_JOB,
        };
        Self { seed: bug.into(), ..ground }
    }

    /// Returns whether two jobs stand in one FIFO group.
    pub fn same_group(&self, a: usize, b: usize) -> bool {
        a == b || (self.one_thing && !seeded!(self.seed, GroupPerJob))
    }
}

const NO_BUG: Seed = Seed {
    #[cfg(any(test, feature = "mutants"))]
    bug: None,
};
