//! The work of one sweep, in numbers.

/// The numbers of workflows and jobs that one sweep handled, by result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Swept {
    /// The number of workflows that were due.
    pub due: u32,
    /// The number of due workflows for which this sweep had no time.
    pub postponed: u32,
    pub resent: u32,
    pub lost: u32,
    /// The number of jobs that began to wait for their runner past the expiry of their order.
    pub waiting: u32,
    /// The number of jobs that were ordered because the customer's window has opened, or their plan was approved.
    pub opened: u32,
    pub stuck: u32,
    /// The number of builds that need the build runner and have not changed for a minute.
    pub builds: u32,
    /// The number of builds that were lost and are not tried again.
    pub lost_builds: u32,
    /// The number of workflows that could not be handled; the next sweep tries them again.
    pub failed: u32,
}

impl Swept {
    pub(super) fn add(&mut self, one: Self) {
        self.due += one.due;
        self.postponed += one.postponed;
        self.resent += one.resent;
        self.lost += one.lost;
        self.waiting += one.waiting;
        self.opened += one.opened;
        self.stuck += one.stuck;
        self.builds += one.builds;
        self.lost_builds += one.lost_builds;
        self.failed += one.failed;
    }
}
