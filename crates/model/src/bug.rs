//! Protocol mistakes that the model can be seeded with, to show that its rules would notice them.

/// One mistake; compiled in only for tests and with the feature `mutants`.
#[cfg(any(test, feature = "mutants"))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Bug {
    /// A report with a lower receive count still changes the job.
    FenceNotCompared,
    /// Of two equal fences the second one takes the job over.
    EqualFenceSecondWins,
    /// A report of an earlier dispatch changes the job.
    OldDispatchAccepted,
    /// A repeated or late sequence number changes the job.
    SequenceIgnored,
    /// A report changes a job that has ended.
    EndDoesNotAbsorb,
    /// An outcome that comes after the job was called lost is refused.
    LateOutcomeDropped,
    /// Asking to cancel a queued job ends it at once, though a runner may have started it.
    CancelEndsQueued,
    /// A job is called lost before its order has expired.
    LostBeforeExpiry,
    /// The sweep forgets jobs that have started.
    RunningNeverExpires,
    /// A job that has not ended is dispatched again.
    RetryBeforeEnd,
    /// There is no limit to dispatches.
    RetriesUnbounded,
    /// Reports of a replaced runner's key are taken.
    RetiredKeyAccepted,
    /// A report is acknowledged before its change is committed.
    AcknowledgedBeforeCommit,
    /// An order sent twice stands in the queue twice.
    DeduplicationIgnored,
    /// The FIFO group is the job, not the thing being changed.
    GroupPerJob,
    /// The runner continues when its lease ends.
    LeaseNotStopped,
    /// The lease is counted from the arrival of the answer, not from before the request.
    LateAnswerStarts,
    /// An attempt runs on past `not_after`.
    RunsPastExpiry,
    /// An order is started after `not_after`.
    ExpiredOrderStarts,
    /// A job that must not start a second time is started at redelivery.
    InterruptedStartsAgain,
    /// The same delivery received twice starts the job twice.
    DuplicateStarts,
    /// A redelivered order whose work is done is started again.
    FinishedForgotten,
    /// The journal is written after the start.
    JournalAfterStart,
    /// An older order of the group is started after a newer one.
    SerialNotChecked,
    /// The order is deleted before the `finished` report is durable.
    DeletedBeforeDurable,
    /// The spool does not survive a crash.
    SpoolInMemory,
    /// A cancel that came before its order is not remembered.
    CancelForgotten,
    /// A runner that puts an order back forgets that an attempt had begun.
    PutBackForgetsStart,
    /// A runner that once put an order back takes it for unstarted, although another machine had it since.
    PutBackCountsForOthers,
    /// A note of any earlier delivery counts, not only that of the last one.
    AnyNoteCounts,
    /// A runner gives an order back whose attempt may have begun, although the job must not start twice.
    StartedIsGivenBack,
    /// A runner gives an order back and starts it nevertheless.
    GivenBackStarts,
    /// An old order that comes back counts although a newer one is out.
    StaleReturnCounts,
    /// An order that comes back revives a job that has ended.
    ReturnOverridesEnd,
    /// A job that somebody wants cancelled is ordered again when its order comes back.
    CancelledIsOrderedAgain,
    /// A report of the end of a job that waits for its runner is refused.
    WaitingIgnoresOutcome,
    /// A job is called lost while its order waits for the runner.
    LostWhileItWaits,
    /// A runner that is switched off continues to work.
    WorksWhilePaused,
    /// A machine treats an order that somebody kept as a delivery by SQS, although the audit chain has it.
    KeptOrderIsTakenForDelivery,
    /// A machine does not look into the audit chain for an order that was made for its key.
    OwnOrderIsNotLookedUp,
    /// A copy of an order in flight takes over the attempt: the lease of the first message is not renewed any more.
    CopyTakesOverLease,
    /// A machine does not look into the audit chain between the record of a start and the start.
    StartIsNotLookedUp,
    /// The recorded start of a delivery excludes the next delivery too, as if it could not have been interrupted.
    StartExcludesRedelivery,
    /// The refusal of a message as a copy excludes the other message too.
    RefusalExcludesOthers,
    /// A recorded start counts although an earlier record excludes it.
    ExcludedStartCounts,
    /// An outcome counts that was recorded after the start of a later delivery.
    SupersededOutcomeCounts,
    /// A recorded outcome does not exclude the next delivery.
    OutcomeIsForgotten,
    /// A second message is refused while the first one may still be refused.
    CopyIsRefusedBeforeStart,
    /// A machine ends its own order as interrupted without a look into the audit chain.
    InterruptedIsNotLookedUp,
    /// The start of a message counts although its machine has continued its attempt under the other message.
    ContinuedStartCounts,
    /// A start that was put back counts like one that happened.
    PutBackCountsAsStart,
    /// A start that was put back excludes the other message, although that one had started the order before.
    PutBackExcludesStarted,
    /// A start that was put back counts although its message was refused after that.
    PutBackOfRefusedCounts,
    /// A machine does not look into the audit chain between the record that it gives an order back and the report.
    GivenBackIsNotLookedUp,
    /// An order that was given back excludes only later messages, like an order that was refused.
    GivenBackCountsAsRefused,
    /// A machine does not compare the message group of an order with the group of the order.
    GroupIsNotCompared,
    /// The journal does not name the message that was put back.
    JournalNamesNoMessage,
    /// The note for other machines does not name the message that was put back.
    NoteNamesNoMessage,
    /// A job that has not ended is dispatched again because somebody resumes its workflow.
    ResumeBeforeEnd,
    /// A resumed job keeps its dispatch number.
    ResumeReusesDispatch,
    /// An approval of another plan counts.
    ApprovalOfAnyPlan,
    /// A plan is approved after its expiry.
    ExpiredPlanApproved,
    /// A rejection changes nothing.
    RejectionIgnored,
    /// The approval of one side is enough where two are asked.
    OneApprovalSuffices,
    /// A job that somebody wants cancelled is ordered when its plan is approved.
    CancelledIsApproved,
    /// A hello of a replaced key is accepted.
    RetiredKeyReturns,
    /// A hello that is older than the one that is believed replaces it.
    LateHelloWins,
    /// The key of a hello that comes too late does not count as replaced.
    LateKeyIsForgotten,
    /// A runner whose key was replaced is not told.
    ReplacedIsNotTold,
    /// The machine retries a job that is blocked.
    BlockedIsRetried,
    /// The machine retries a job after somebody cancelled it.
    CancelledIsRetried,
    /// The machine retries the job of a node more often than it may.
    NodeRetriesUnbounded,
    /// A report of a job's end that comes again ends and retries the job again.
    RepeatedEndRetriesAgain,
    /// A node runs although one that it needs has failed.
    FailedCountsAsDone,
    /// A node that needs a failed one waits for ever.
    UnreachableWaits,
    /// A workflow that is resumed runs the nodes again that had succeeded.
    SucceededRunsAgain,
    /// A job runs again that was lost and, as its report said later, had succeeded.
    LateSuccessRunsAgain,
    /// A workflow is continued although another one has changed the install since.
    ContinuedAfterOther,
    /// A workflow begins while another one holds the install.
    HeldInstallIsTaken,
    /// The call that ends an execution also ends the next execution of the workflow.
    LateFinishEndsNext,
    /// Who found that the last job has ended resumes whichever execution waits by then.
    CallbackOfAnyExecution,
    /// The sweep does not ask again for an order that was not sent.
    LostOrderIsNotSentAgain,
    /// The sweep does not resume an execution whose jobs have all ended.
    SettledIsForgotten,
    /// A deploy that a person cancelled is rolled back.
    CancelledIsRolledBack,
    /// A call that was due when a deploy failed rolls it back although a person has continued it since.
    LateCallRollsBack,
    /// A call that rolls a deploy back does not look whether an earlier call did.
    RepeatedCallBeginsAnew,
    /// A roll back that fails is rolled back.
    RollBackIsRolledBack,
    /// A deploy is rolled back although another workflow has changed the install since.
    RollBackAfterOther,
    /// A deploy is rolled back while one of its jobs is open.
    RollBackBesideOpenJob,
    /// Only a call after the end of a deploy rolls it back, and no stored task.
    RollBackTaskIsNotStored,
    /// The task that rolls a deploy back is removed before it is done.
    RollBackTaskIsRemovedFirst,
}

#[cfg(any(test, feature = "mutants"))]
impl Bug {
    /// Every mistake.
    pub const ALL: [Self; 42] = [
        Self::FenceNotCompared,
        Self::EqualFenceSecondWins,
        Self::OldDispatchAccepted,
        Self::SequenceIgnored,
        Self::EndDoesNotAbsorb,
        Self::LateOutcomeDropped,
        Self::CancelEndsQueued,
        Self::LostBeforeExpiry,
        Self::RunningNeverExpires,
        Self::RetryBeforeEnd,
        Self::RetriesUnbounded,
        Self::RetiredKeyAccepted,
        Self::AcknowledgedBeforeCommit,
        Self::DeduplicationIgnored,
        Self::GroupPerJob,
        Self::LeaseNotStopped,
        Self::LateAnswerStarts,
        Self::RunsPastExpiry,
        Self::ExpiredOrderStarts,
        Self::InterruptedStartsAgain,
        Self::DuplicateStarts,
        Self::FinishedForgotten,
        Self::JournalAfterStart,
        Self::SerialNotChecked,
        Self::DeletedBeforeDurable,
        Self::SpoolInMemory,
        Self::CancelForgotten,
        Self::PutBackForgetsStart,
        Self::PutBackCountsForOthers,
        Self::AnyNoteCounts,
        Self::StartedIsGivenBack,
        Self::GivenBackStarts,
        Self::StaleReturnCounts,
        Self::ReturnOverridesEnd,
        Self::CancelledIsOrderedAgain,
        Self::WaitingIgnoresOutcome,
        Self::LostWhileItWaits,
        Self::WorksWhilePaused,
        Self::KeptOrderIsTakenForDelivery,
        Self::OwnOrderIsNotLookedUp,
        Self::ResumeBeforeEnd,
        Self::ResumeReusesDispatch,
    ];

    /// Every mistake about approvals, which have a model of their own.
    pub const OF_APPROVALS: [Self; 5] = [
        Self::ApprovalOfAnyPlan,
        Self::ExpiredPlanApproved,
        Self::RejectionIgnored,
        Self::OneApprovalSuffices,
        Self::CancelledIsApproved,
    ];

    /// Every mistake about copies of orders, which have a model of their own.
    pub const OF_COPIES: [Self; 18] = [
        Self::CopyTakesOverLease,
        Self::StartIsNotLookedUp,
        Self::StartExcludesRedelivery,
        Self::RefusalExcludesOthers,
        Self::ExcludedStartCounts,
        Self::SupersededOutcomeCounts,
        Self::OutcomeIsForgotten,
        Self::CopyIsRefusedBeforeStart,
        Self::InterruptedIsNotLookedUp,
        Self::ContinuedStartCounts,
        Self::PutBackCountsAsStart,
        Self::PutBackExcludesStarted,
        Self::PutBackOfRefusedCounts,
        Self::GivenBackIsNotLookedUp,
        Self::GivenBackCountsAsRefused,
        Self::GroupIsNotCompared,
        Self::JournalNamesNoMessage,
        Self::NoteNamesNoMessage,
    ];

    /// Every mistake about hellos, which have a model of their own.
    pub const OF_HELLOS: [Self; 4] =
        [Self::RetiredKeyReturns, Self::LateHelloWins, Self::LateKeyIsForgotten, Self::ReplacedIsNotTold];

    /// Every mistake about workflows, which have a model of their own.
    pub const OF_WORKFLOWS: [Self; 22] = [
        Self::BlockedIsRetried,
        Self::CancelledIsRetried,
        Self::NodeRetriesUnbounded,
        Self::RepeatedEndRetriesAgain,
        Self::FailedCountsAsDone,
        Self::UnreachableWaits,
        Self::SucceededRunsAgain,
        Self::LateSuccessRunsAgain,
        Self::ContinuedAfterOther,
        Self::HeldInstallIsTaken,
        Self::LateFinishEndsNext,
        Self::CallbackOfAnyExecution,
        Self::LostOrderIsNotSentAgain,
        Self::SettledIsForgotten,
        Self::CancelledIsRolledBack,
        Self::LateCallRollsBack,
        Self::RepeatedCallBeginsAnew,
        Self::RollBackIsRolledBack,
        Self::RollBackAfterOther,
        Self::RollBackBesideOpenJob,
        Self::RollBackTaskIsNotStored,
        Self::RollBackTaskIsRemovedFirst,
    ];
}

/// Whether the model in `$seed` carries the mistake `$bug`; the constant `false` without the feature.
#[cfg(any(test, feature = "mutants"))]
macro_rules! seeded {
    ($seed:expr, $bug:ident) => {
        $seed.bug == Some($crate::bug::Bug::$bug)
    };
}

/// Whether the model in `$seed` carries the mistake `$bug`; the constant `false` without the feature.
#[cfg(not(any(test, feature = "mutants")))]
macro_rules! seeded {
    ($seed:expr, $bug:ident) => {{
        let _ = &$seed;
        false
    }};
}

pub(crate) use seeded;

/// Which mistake a model carries; nothing at all without the feature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Seed {
    #[cfg(any(test, feature = "mutants"))]
    pub bug: Option<Bug>,
}

#[cfg(any(test, feature = "mutants"))]
impl From<Bug> for Seed {
    fn from(bug: Bug) -> Self {
        Self { bug: Some(bug) }
    }
}
