//! The calls that a fault can meet, by the rules of the proxies, and the work that makes them.

/// The work that a try disturbs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Work {
    Deploy,
    /// A deploy that copies every artifact.
    CopyingDeploy,
    /// The action that may be run again.
    Again,
    /// The action that must not be run again.
    Note,
}

/// The side whose calls fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Side {
    Functions,
    Runner,
}

/// The calls that a fault can meet: a rule of a proxy without its fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Calls {
    pub(super) side: Side,
    operation: &'static str,
    options: &'static str,
}

impl Calls {
    const fn of_functions(operation: &'static str, options: &'static str) -> Self {
        Self { side: Side::Functions, operation, options }
    }

    const fn of_runner(operation: &'static str, options: &'static str) -> Self {
        Self { side: Side::Runner, operation, options }
    }

    /// Returns the rule that lets each of these calls fail that the options `which` choose.
    pub(super) fn rule(self, fault: &str, which: &str) -> String {
        format!("{} 1 {fault} {} {which}", self.operation, self.options)
    }

    /// Returns the rule that never fires, and only counts.
    pub(super) fn counting(self) -> String {
        format!("{} 0 error {}", self.operation, self.options)
    }
}

pub(super) const ORDERS: Calls = Calls::of_functions("sqs.SendMessage", "about=.fifo stubborn");
pub(super) const CALLBACKS: Calls = Calls::of_functions("states.SendTaskSuccess", "");
pub(super) const OF_FUNCTIONS: Calls = Calls::of_functions("*", "");
pub(super) const TRANSACTIONS: Calls = Calls::of_functions("dynamodb.TransactWriteItems", "stubborn");
pub(super) const UPDATES: Calls = Calls::of_functions("dynamodb.UpdateItem", "stubborn");
pub(super) const DELETIONS: Calls = Calls::of_functions("dynamodb.DeleteItem", "stubborn");
pub(super) const TABLE: Calls = Calls::of_functions("dynamodb.*", "stubborn");
pub(super) const KEYS: Calls = Calls::of_functions("kms.*", "stubborn");
pub(super) const MESSAGES: Calls = Calls::of_functions("sqs.SendMessage", "stubborn");
pub(super) const MACHINES: Calls = Calls::of_functions("states.*", "stubborn");
/// The calls that store the token of a state, or send the message that does it.
pub(super) const TOKENS: Calls = Calls::of_functions("dynamodb.*", "about=token");
pub(super) const DISPATCHES: Calls = Calls::of_functions("sqs.SendMessage*", "about=dispatch");
pub(super) const OF_RUNNER: Calls = Calls::of_runner("*", "");
pub(super) const REPORTS: Calls = Calls::of_runner("sqs.SendMessage*", "stubborn");
pub(super) const UPLOADS: Calls = Calls::of_runner("registry.*Upload*", "");
pub(super) const MANIFESTS: Calls = Calls::of_runner("registry.PutManifest", "");
/// The calls of a job under the role of its mode.
pub(super) const STACKS: Calls = Calls::of_runner("cloudformation.*", "by=*--maintenance");

const ALL: [Calls; 17] = [
    ORDERS,
    CALLBACKS,
    OF_FUNCTIONS,
    TRANSACTIONS,
    UPDATES,
    DELETIONS,
    TABLE,
    KEYS,
    MESSAGES,
    MACHINES,
    TOKENS,
    DISPATCHES,
    OF_RUNNER,
    REPORTS,
    UPLOADS,
    MANIFESTS,
    STACKS,
];

/// Returns all kinds of calls of a side.
pub(super) fn of_side(side: Side) -> impl Iterator<Item = Calls> {
    ALL.into_iter().filter(move |calls| calls.side == side)
}

/// Returns the rules that count them.
pub(super) fn rules_of(side: Side) -> String {
    of_side(side).map(Calls::counting).collect::<Vec<_>>().join(";")
}
