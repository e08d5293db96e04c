//! How a job waits until its plan is approved. The runner has made the plan and ended its attempt, and no order is in the queue.
//! When both sides that have to approve exactly this plan have done so, the job is ordered again.

use freehold_protocol::approval::{OrderApproval, ProposedPlan, Side};
use freehold_protocol::limits::{APPROVAL_SECS, LOST_GRACE_SECS};
use freehold_protocol::order::AskedBy;
use freehold_protocol::report::{Block, Fence, Outcome};
use freehold_protocol::time::rfc3339;
use freehold_protocol::{Digest, KeyId, Timestamp};

use super::{ApprovalEvent, Job, JobEvent, JobState, MAX_RETURNS, Rejected, Step};

/// The maximum time by which a runner's clock may be ahead of the control plane's, in seconds.
const CLOCK_TOLERANCE_SECS: u64 = 60 * 60;

impl Job {
    /// Returns whether the job waits for an approval, and each side that has to approve its plan has done so.
    pub fn is_approved(&self) -> bool {
        let JobState::WaitingForApproval { plan, vendor, customer, .. } = &self.state else { return false };
        plan.asks.iter().all(|side| match side {
            Side::Vendor => vendor.is_some(),
            Side::Customer => customer.is_some(),
        })
    }

    /// Returns who still has to approve the plan for which the job waits.
    pub fn waits_for(&self) -> Vec<Side> {
        let JobState::WaitingForApproval { plan, vendor, customer, .. } = &self.state else { return Vec::new() };
        let is_missing = |side: &Side| match side {
            Side::Vendor => vendor.is_none(),
            Side::Customer => customer.is_none(),
        };
        plan.asks.iter().copied().filter(is_missing).collect()
    }

    /// Returns the state of the job after the attempt with this fence made a plan that has to be approved. `None` if
    /// the event is not about an attempt.
    pub(super) fn with_plan(
        &self,
        event: &JobEvent,
        fence: Fence,
        plan: ProposedPlan,
        now: Timestamp,
    ) -> Option<JobState> {
        let blocked = |reason: &str| {
            Some(JobState::Blocked { fence, ended_at: now, block: Block::NotApproved, reason: reason.to_owned() })
        };
        if self.cancel_requested.is_some() {
            return Some(JobState::Cancelled { dispatch: fence.dispatch, ended_at: now, unclaimed: false });
        }
        if self.state.is_terminal() {
            return blocked("the job had ended before its plan could be approved; start it again");
        }
        // A plan that needs nobody's approval would be ordered again at once, in an endless loop.
        if plan.asks.is_empty() {
            let reason = "the runner made a plan that has to be approved, and asked nobody to approve it".to_owned();
            return Some(JobState::Failed { fence, ended_at: now, reason, partial: false });
        }
        if self.returned >= MAX_RETURNS {
            return blocked(
                "the job was ordered again too often, and its plan still has to be approved; start it again",
            );
        }
        let (_, runner) = event.attempt()?;
        Some(self.waiting_for_approval(fence, runner, plan, now))
    }

    /// Returns the state in which the job waits until `plan` is approved. A side that has approved the same plan before
    /// does not have to approve it again: a later delivery of an order reports its plan again.
    fn waiting_for_approval(&self, fence: Fence, runner: &KeyId, plan: ProposedPlan, now: Timestamp) -> JobState {
        let (runner, until) = (runner.clone(), plan.until.min(now.plus_secs(APPROVAL_SECS + CLOCK_TOLERANCE_SECS)));
        let (since, vendor, customer) =
            if let JobState::WaitingForApproval { plan: known, since, vendor, customer, .. } = &self.state
                && known.plan == plan.plan
            {
                (*since, vendor.clone(), customer.clone())
            } else {
                (now, None, None)
            };
        let plan = Box::new(ProposedPlan { until, ..plan });
        JobState::WaitingForApproval { fence, runner, since, plan, vendor, customer }
    }

    /// Returns the effect of an event on a job that waits for an approval.
    pub(super) fn while_waiting_for_approval(
        &self,
        (current, holder): (Fence, &KeyId),
        event: &JobEvent,
        now: Timestamp,
    ) -> Result<Step, Rejected> {
        if let Some(step) = self.after_attempt((current, holder), event, now)? {
            return Ok(step);
        }
        match event {
            JobEvent::Expire | JobEvent::Wait => Ok(self.waited_for_approval(current, event, now)),
            JobEvent::Approval(approval) => self.on_approval(approval, event, now),
            _ => Ok(Step::Already),
        }
    }

    /// Returns the effect of a decision about a plan on a job that does not wait for an approval.
    pub(super) fn approval_elsewhere(&self, event: &ApprovalEvent) -> Result<Step, Rejected> {
        let known = |plan: &Digest| self.approval.as_ref().is_some_and(|approval| approval.plan == *plan);
        match event {
            ApprovalEvent::Approve { plan, .. } if known(plan) => Ok(Step::Already),
            ApprovalEvent::Approve { .. } | ApprovalEvent::Reject { .. } => {
                Err(Rejected::NotWaiting { job: self.id.clone(), state: self.state.as_str() })
            }
            ApprovalEvent::Customer(_) | ApprovalEvent::Proceed => Ok(Step::Already),
        }
    }

    fn on_approval(&self, approval: &ApprovalEvent, event: &JobEvent, now: Timestamp) -> Result<Step, Rejected> {
        let JobState::WaitingForApproval { fence, plan, vendor, customer, .. } = &self.state else {
            return self.approval_elsewhere(approval);
        };
        match approval {
            ApprovalEvent::Approve { plan: named, .. } | ApprovalEvent::Reject { plan: named, .. }
                if *named != plan.plan =>
            {
                Err(Rejected::OtherPlan { job: self.id.clone(), waits: plan.plan.clone(), named: named.clone() })
            }
            ApprovalEvent::Approve { .. } if now > plan.until => {
                Err(Rejected::ExpiredPlan { job: self.id.clone(), plan: plan.plan.clone(), until: plan.until })
            }
            ApprovalEvent::Approve { .. } if vendor.is_some() => Ok(Step::Already),
            ApprovalEvent::Approve { by, .. } => {
                let state = self.with_approvals(Some((by.clone(), now)), customer.clone());
                Ok(self.change(state, event, now))
            }
            ApprovalEvent::Reject { by, reason, .. } => {
                Ok(self.rejected_plan(*fence, &format!("{by} (vendor)"), reason, event, now))
            }
            // The decision is about a plan that was replaced.
            ApprovalEvent::Customer(decision) if decision.plan != plan.plan => Ok(Step::Already),
            ApprovalEvent::Customer(decision) if !decision.approved => {
                let by = format!("{} (customer)", decision.by);
                Ok(self.rejected_plan(*fence, &by, &decision.reason, event, now))
            }
            ApprovalEvent::Customer(_) if customer.is_some() => Ok(Step::Already),
            ApprovalEvent::Customer(decision) => {
                let state = self.with_approvals(vendor.clone(), Some((decision.by.clone(), decision.at)));
                Ok(self.change(state, event, now))
            }
            ApprovalEvent::Proceed => {
                if self.cancel_requested.is_some() || !self.is_approved() {
                    return Ok(Step::Already);
                }
                Ok(self.order_approved(*fence, plan, vendor.as_ref(), event, now))
            }
        }
    }

    fn with_approvals(
        &self,
        by_vendor: Option<(AskedBy, Timestamp)>,
        by_customer: Option<(String, Timestamp)>,
    ) -> JobState {
        let mut state = self.state.clone();
        if let JobState::WaitingForApproval { vendor, customer, .. } = &mut state {
            (*vendor, *customer) = (by_vendor, by_customer);
        }
        state
    }

    /// Orders the job again with its approved plan.
    fn order_approved(
        &self,
        fence: Fence,
        plan: &ProposedPlan,
        vendor: Option<&(AskedBy, Timestamp)>,
        event: &JobEvent,
        now: Timestamp,
    ) -> Step {
        let wait_secs = self.runner_wait_until().since(self.created_at) / 1000;
        let approval = OrderApproval {
            plan: plan.plan.clone(),
            by: vendor.map(|(by, _)| by.clone()),
            at: vendor.map_or(now, |(_, at)| *at),
            until: plan.until,
            policies: plan.policies.clone(),
        };
        let again = Self {
            wait_until: now.plus_secs(wait_secs),
            // An order after an approval does not count as a try.
            returned: self.returned + 1,
            approval: Some(approval),
            ..self.with_new_order(now)
        };
        again.change(JobState::Queued { dispatch: fence.dispatch + 1 }, event, now)
    }

    fn rejected_plan(&self, fence: Fence, by: &str, why: &str, event: &JobEvent, now: Timestamp) -> Step {
        let why = if why.is_empty() { String::new() } else { format!(": {why}") };
        let reason = format!("{by} rejected the plan{why}; nothing was changed");
        self.ended(event, fence, &Outcome::Blocked { block: Block::NotApproved, reason }, now)
    }

    /// Ends the job if somebody has asked to cancel it, or if its plan was not approved in time.
    fn waited_for_approval(&self, fence: Fence, event: &JobEvent, now: Timestamp) -> Step {
        let JobState::WaitingForApproval { plan, .. } = &self.state else { return Step::Already };
        if self.cancel_requested.is_some() {
            return self.ended(event, fence, &Outcome::Cancelled, now);
        }
        if now < plan.until.plus_secs(LOST_GRACE_SECS) {
            return Step::NotYet;
        }
        let missing: Vec<&str> = self.waits_for().into_iter().map(Side::as_str).collect();
        let until = rfc3339::text(plan.until).unwrap_or_default();
        let reason = format!(
            "not all approvals of the plan came before {until} (missing: {}), so nothing was changed; start the job again",
            missing.join(", ")
        );
        self.ended(event, fence, &Outcome::Blocked { block: Block::NotApproved, reason }, now)
    }
}

#[cfg(test)]
mod tests;
