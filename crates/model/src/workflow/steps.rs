//! What each action does to a world.

use crate::bug::seeded;
use crate::workflow::install::Who;
use crate::workflow::nodes::{Act, End, Part, Starts, State};
use crate::workflow::rules::Rule;
use crate::workflow::world::{Action, Job, Message, Neighbour, SERIAL, Space, World};

/// One step. A method that returns `None` cannot happen in this world.
pub(super) struct Step<'a> {
    pub(super) space: &'a Space,
    pub(super) world: &'a mut World,
}

/// Takes one of the times that the bounds allow.
fn take(times: &mut u8, most: u8) -> Option<()> {
    (*times < most).then(|| *times += 1)
}

impl Step<'_> {
    pub(super) fn perform(&mut self, action: Action) -> Option<()> {
        match action {
            Action::Start { attempt, is_acknowledged } => self.start(attempt, is_acknowledged),
            Action::Callback { attempt } => self.callback(attempt),
            Action::Finish { attempt, has_error, is_acknowledged } => {
                self.receive(Message::Finish { attempt, has_error }, is_acknowledged)?;
                self.finish(attempt, has_error);
                Some(())
            }
            Action::Fail { attempt } => self.fail(attempt),
            Action::Lose(message) => {
                take(&mut self.world.times.lost, self.space.lost)?;
                self.receive(message, true)
            }
            Action::Order { node, dispatch, is_acknowledged } => self.order(node, dispatch, is_acknowledged),
            Action::Work { node, dispatch, end } => self.work(node, dispatch, end),
            Action::Report { node, dispatch, is_acknowledged } => self.report(node, dispatch, is_acknowledged),
            Action::Expire { node } => self.expire(node),
            Action::SweepOrder { node } => self.sweep_order(node),
            Action::SweepDeploy => self.sweep_deploy(),
            Action::DueTask { is_acknowledged } => self.due_task(is_acknowledged),
            Action::Call => {
                self.receive(Message::Call, true)?;
                let _ = self.roll_back();
                Some(())
            }
            Action::Cancel => self.cancel(),
            Action::Continue(act) => self.continue_by(act),
            Action::BeginOther => self.begin_other(),
            Action::EndOther => {
                (self.world.other == Neighbour::Live).then_some(())?;
                self.world.other = Neighbour::Ended;
                self.world.install = self.world.install.release(Who::Other);
                Some(())
            }
            Action::EndRollBack { has_failed } => self.end_roll_back(has_failed),
        }
    }

    /// Receives a message. One that is not acknowledged comes again.
    fn receive(&mut self, message: Message, is_acknowledged: bool) -> Option<()> {
        let is_there = match self.world.bits_of(message) {
            Some((bits, bit)) => *bits & bit != 0,
            None => self.world.is_called,
        };
        is_there.then_some(())?;
        if !is_acknowledged {
            return take(&mut self.world.times.repeated, self.space.repeated);
        }
        match self.world.bits_of(message) {
            Some((bits, bit)) => *bits &= !bit,
            None => self.world.is_called = false,
        }
        Some(())
    }

    fn break_rule(&mut self, rule: Rule, is_broken: bool) {
        if is_broken {
            self.world.broken |= rule.bit();
        }
    }

    // The executions of the deploy.

    /// Starts the graph, or asks again for the orders of a graph that was started.
    fn start(&mut self, attempt: u8, is_acknowledged: bool) -> Option<()> {
        self.receive(Message::Start { attempt }, is_acknowledged)?;
        let (deploy, bit) = (self.world.deploy, 1 << attempt);
        self.world.executions.started |= bit;
        if deploy.attempt != attempt {
            // It was replaced by the execution of a later attempt. The refusal ends it through its own failure.
            self.world.executions.failing |= bit;
            return Some(());
        }
        let has_nothing_to_run = deploy.is_cancelled || deploy.nodes.iter().all(|node| node.state.is_terminal());
        match deploy.state {
            State::Pending if !has_nothing_to_run => {
                self.world.executions.waiting |= bit;
                let (deploy, starts) = deploy.start(self.space.graph, self.space.seed);
                self.world.deploy = deploy;
                self.start_jobs(starts);
            }
            State::Running => {
                self.world.executions.waiting |= bit;
                self.ask_for_active();
            }
            State::Pending | State::Succeeded | State::Failed | State::Cancelled => {
                self.world.executions.finishing |= bit;
            }
        }
        Some(())
    }

    /// Resumes the execution that waits for the last job.
    fn callback(&mut self, attempt: u8) -> Option<()> {
        self.receive(Message::Callback { attempt }, true)?;
        let executions = &mut self.world.executions;
        // The mistake is to resume whichever execution waits now.
        let resumed = if seeded!(self.space.seed, CallbackOfAnyExecution) { u8::MAX } else { 1 << attempt };
        executions.finishing |= executions.waiting & resumed;
        executions.waiting &= !resumed;
        Some(())
    }

    fn fail(&mut self, attempt: u8) -> Option<()> {
        let (executions, bit) = (&mut self.world.executions, 1 << attempt);
        (executions.waiting & bit != 0).then_some(())?;
        take(&mut self.world.times.errors, self.space.errors)?;
        executions.waiting &= !bit;
        executions.failing |= bit;
        Some(())
    }

    fn finish(&mut self, attempt: u8, has_error: bool) {
        let (before, seed) = (self.world.deploy, self.space.seed);
        if before.attempt != attempt && !seeded!(seed, LateFinishEndsNext) {
            return;
        }
        for node in before.active() {
            self.world.jobs[node].is_cancelled = true;
        }
        if let Some(deploy) = before.finish(has_error) {
            let has_open = before.active().next().is_some();
            self.break_rule(Rule::EndsAfterItsJobs, before.attempt != attempt || (has_open && !has_error));
            self.world.deploy = deploy;
            self.world.install = self.world.install.release(Who::Deploy);
            self.world.is_due |= deploy.is_to_roll_back(seed) && !seeded!(seed, RollBackTaskIsNotStored);
        }
        self.world.is_called |= self.world.deploy.is_to_roll_back(seed);
    }

    // Jobs.

    fn start_jobs(&mut self, mut starts: Starts) {
        let (graph, seed) = (self.space.graph, self.space.seed);
        while starts.again != 0 {
            let node = starts.again.ilog2() as usize;
            starts.again &= !(1 << node);
            if self.world.jobs[node].end == Some(End::Succeeded) && !seeded!(seed, LateSuccessRunsAgain) {
                let (deploy, more) = self.world.deploy.on_job(graph, seed, node, End::Succeeded);
                self.world.deploy = deploy;
                starts = Starts { new: starts.new | more.new, again: starts.again | more.again };
                continue;
            }
            self.dispatch(node);
        }
        for node in (0..self.world.jobs.len()).filter(|node| starts.new & 1 << node != 0) {
            self.dispatch(node);
        }
    }

    /// Dispatches the job of a node, for the first time or again.
    fn dispatch(&mut self, node: usize) {
        let (deploy, job) = (self.world.deploy, self.world.jobs[node]);
        let mut needs = self.space.graph.needs(node);
        self.break_rule(Rule::NeededNodesFirst, needs.any(|need| !deploy.nodes[need].state.is_done()));
        self.break_rule(Rule::SucceededRunsOnce, job.end == Some(End::Succeeded));
        self.break_rule(Rule::NothingStartsAfterACancel, deploy.is_cancelled);
        self.world.jobs[node] = Job { dispatch: job.dispatch + 1, end: None, is_cancelled: false };
        self.ask(node);
    }

    fn ask(&mut self, node: usize) {
        self.world.asked[node] |= 1 << self.world.jobs[node].dispatch;
    }

    fn order(&mut self, node: usize, dispatch: u8, is_acknowledged: bool) -> Option<()> {
        self.receive(Message::Ask { node, dispatch }, is_acknowledged)?;
        let job = self.world.jobs[node];
        if !job.is_open() || job.dispatch < dispatch || self.world.sent[node] == job.dispatch {
            return Some(());
        }
        if job.is_cancelled {
            self.end_job(node, End::Cancelled);
            return Some(());
        }
        self.world.sent[node] = job.dispatch;
        self.world.at_work[node] |= 1 << job.dispatch;
        Some(())
    }

    fn work(&mut self, node: usize, dispatch: u8, end: End) -> Option<()> {
        (self.world.at_work[node] & 1 << dispatch != 0).then_some(())?;
        let is_gate = self.space.gates & 1 << node != 0;
        let is_possible = match end {
            End::Succeeded => true,
            End::Failed => !is_gate && self.take_failure().is_some(),
            End::Blocked => is_gate && self.take_failure().is_some(),
            End::Cancelled => self.world.jobs[node].is_cancelled,
            End::Lost => false,
        };
        is_possible.then_some(())?;
        self.world.at_work[node] &= !(1 << dispatch);
        self.world.reports[node][usize::from(dispatch)] = Some(end);
        Some(())
    }

    fn report(&mut self, node: usize, dispatch: u8, is_acknowledged: bool) -> Option<()> {
        let report = &mut self.world.reports[node][usize::from(dispatch)];
        let end = (*report)?;
        if is_acknowledged {
            *report = None;
        } else {
            take(&mut self.world.times.repeated, self.space.repeated)?;
        }
        let job = self.world.jobs[node];
        let is_new = dispatch == job.dispatch && job.end.is_none();
        if is_new || seeded!(self.space.seed, RepeatedEndRetriesAgain) {
            self.end_job(node, end);
        } else if dispatch == job.dispatch && matches!(job.end, Some(End::Lost | End::Cancelled)) {
            // The node keeps its state: the workflow has continued without the job.
            self.world.jobs[node].end = Some(end);
        }
        self.continue_after_end();
        Some(())
    }

    /// Ends a job that did not end by a report. Its report counts when it comes later.
    fn expire(&mut self, node: usize) -> Option<()> {
        let job = self.world.jobs[node];
        (job.is_open() && self.world.at_work[node] == 0).then_some(())?;
        self.take_failure()?;
        self.end_job(node, if job.is_cancelled { End::Cancelled } else { End::Lost });
        self.continue_after_end();
        Some(())
    }

    /// Ends a job and its node in one commit, or retries the job.
    fn end_job(&mut self, node: usize, end: End) {
        let (graph, seed, job) = (self.space.graph, self.space.seed, self.world.jobs[node]);
        self.world.jobs[node].end = Some(end);
        let Some(retried) = self.world.deploy.retry(graph, seed, node, (end, job.is_cancelled)) else {
            let (deploy, starts) = self.world.deploy.on_job(graph, seed, node, end);
            self.world.deploy = deploy;
            return self.start_jobs(starts);
        };
        self.world.deploy = retried;
        self.world.retried[node] += 1;
        self.break_rule(Rule::RetriesAreBounded, self.world.retried[node] > graph.retries[node]);
        self.break_rule(Rule::BlockedWaitsForAPerson, end == End::Blocked);
        self.break_rule(Rule::NothingStartsAfterACancel, job.is_cancelled);
        self.dispatch(node);
    }

    /// Performs what follows a commit that may have ended a job. It is performed again when the commit came before.
    fn continue_after_end(&mut self) {
        let deploy = self.world.deploy;
        if deploy.is_settled() {
            self.world.executions.callbacks |= 1 << deploy.attempt;
        }
        self.ask_for_active();
    }

    /// Asks for the orders of all open jobs that have none.
    fn ask_for_active(&mut self) {
        let deploy = self.world.deploy;
        for node in deploy.active().filter(|_| deploy.state == State::Running) {
            if self.world.sent[node] < self.world.jobs[node].dispatch {
                self.ask(node);
            }
        }
    }

    fn take_failure(&mut self) -> Option<()> {
        take(&mut self.world.times.failures, self.space.failures)
    }

    // The sweep.

    fn sweep_order(&mut self, node: usize) -> Option<()> {
        let job = self.world.jobs[node];
        let is_missing = job.is_open() && self.world.sent[node] < job.dispatch && self.world.asked[node] == 0;
        (is_missing && !seeded!(self.space.seed, LostOrderIsNotSentAgain)).then(|| self.ask(node))
    }

    /// Resumes the execution of a settled deploy, or ends the deploy if no execution does; starts an execution that a crash left
    /// out.
    fn sweep_deploy(&mut self) -> Option<()> {
        let (deploy, executions) = (self.world.deploy, &mut self.world.executions);
        let bit = 1 << deploy.attempt;
        let calls_due = (executions.starting | executions.callbacks | executions.finishing | executions.failing) & bit;
        (calls_due == 0).then_some(())?;
        match deploy.state {
            State::Running if deploy.is_settled() && !seeded!(self.space.seed, SettledIsForgotten) => {
                let waits = executions.waiting & bit != 0;
                *(if waits { &mut executions.callbacks } else { &mut executions.finishing }) |= bit;
            }
            State::Pending if executions.started & bit == 0 => executions.starting |= bit,
            State::Pending => executions.failing |= bit,
            State::Running | State::Succeeded | State::Failed | State::Cancelled => return None,
        }
        Some(())
    }

    fn due_task(&mut self, is_acknowledged: bool) -> Option<()> {
        self.world.is_due.then_some(())?;
        if !is_acknowledged {
            take(&mut self.world.times.repeated, self.space.repeated)?;
        }
        if seeded!(self.space.seed, RollBackTaskIsRemovedFirst) && !is_acknowledged {
            self.world.is_due = false;
            return Some(());
        }
        self.roll_back()?;
        self.world.is_due = !is_acknowledged;
        Some(())
    }

    // People, and other workflows.

    fn cancel(&mut self) -> Option<()> {
        self.world.deploy = self.world.deploy.cancel()?;
        take(&mut self.world.times.cancels, self.space.cancels)?;
        for node in self.world.deploy.active() {
            self.world.jobs[node].is_cancelled = true;
        }
        Some(())
    }

    fn continue_by(&mut self, act: Act) -> Option<()> {
        take(&mut self.world.times.continued, self.space.continued)?;
        let seed = self.space.seed;
        let before = self.world.deploy.nodes;
        self.world.deploy = self.world.deploy.continued(self.space.graph, seed, act)?;
        let mut both = before.iter().zip(self.world.deploy.nodes);
        let is_reopened = both.any(|(before, after)| before.state.is_done() && before.state != after.state);
        self.break_rule(Rule::SucceededRunsOnce, is_reopened);
        self.break_rule(Rule::ContinuesTheLatest, self.world.install.last != SERIAL);
        self.world.install = self.world.install.hold_again(seed, Who::Deploy, SERIAL)?;
        self.world.executions.starting |= 1 << self.world.deploy.attempt;
        for (retried, node) in self.world.retried.iter_mut().zip(self.world.deploy.nodes) {
            *retried = node.retried;
        }
        Some(())
    }

    fn begin_other(&mut self) -> Option<()> {
        (self.space.has_other && self.world.other == Neighbour::NotYet).then_some(())?;
        (self.world.install, _) = self.world.install.begin(self.space.seed, Who::Other)?;
        self.world.other = Neighbour::Live;
        Some(())
    }

    /// Rolls the deploy back, or notes why not; `None` if it is too early.
    fn roll_back(&mut self) -> Option<()> {
        let (deploy, seed, install) = (self.world.deploy, self.space.seed, self.world.install);
        let begins_anew = deploy.state == State::Failed && seeded!(seed, RepeatedCallBeginsAnew);
        let is_late = deploy.part == Part::Verified && seeded!(seed, LateCallRollsBack);
        if !(deploy.is_to_roll_back(seed) || begins_anew || is_late) {
            return Some(());
        }
        let has_open = deploy.active().next().is_some();
        if has_open && !seeded!(seed, RollBackBesideOpenJob) {
            return None;
        }
        let is_latest = install.last == SERIAL || seeded!(seed, RollBackAfterOther);
        let begun = install.begin(seed, Who::RollBack).filter(|_| install.live.is_none() && is_latest);
        let Some((held, _)) = begun else {
            self.world.deploy.part = Part::Refused;
            return Some(());
        };
        self.break_rule(Rule::RollsBackFailuresOnly, deploy.state != State::Failed || deploy.is_cancelled);
        self.break_rule(Rule::UndoesNothingLater, install.last != SERIAL);
        self.break_rule(Rule::RollsBackAfterTheJobs, has_open);
        self.world.install = held;
        self.world.deploy.part = Part::RolledBack;
        self.world.roll_back = Neighbour::Live;
        self.world.roll_backs += 1;
        Some(())
    }

    /// Ends the roll back. Nothing follows it, also if it failed.
    fn end_roll_back(&mut self, has_failed: bool) -> Option<()> {
        (self.world.roll_back == Neighbour::Live).then_some(())?;
        if has_failed {
            self.take_failure()?;
        }
        if has_failed && seeded!(self.space.seed, RollBackIsRolledBack) {
            self.world.roll_backs += 1;
            return Some(());
        }
        self.world.roll_back = Neighbour::Ended;
        self.world.install = self.world.install.release(Who::RollBack);
        Some(())
    }
}
