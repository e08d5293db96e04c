//! Builds a runner from its config, runs its loops, and shuts it down in order.

use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use freehold_protocol::envelope::PublicKey;
use freehold_protocol::report::AwayReason;
use tokio::time::Instant;
use tracing::{info, warn};

use crate::approvals::plan_store::PlanStore;
use crate::aws;
use crate::config::stack::StackSource;
use crate::config::{Config, Role};
use crate::files;
use crate::identity::denial::{AwsAccount, StackState, Standing};
use crate::identity::licence::NewestLicence;
use crate::identity::mode::Roles;
use crate::identity::role_proof::RoleProver;
use crate::identity::trusts::{AppRoles, IamRoles};
use crate::job::{Execute, StopReason};
use crate::keys::enrolment_marker::Enrolled;
use crate::keys::known_roots::RootsError;
use crate::keys::renewal::{self, RenewalError};
use crate::keys::runner_key::Identity;
use crate::keys::sealing_key;
use crate::operate::enrol;
use crate::process::clock::{self, ServerClock};
use crate::process::drain::{Drain, Phase, Signals};
use crate::process::watchdog::{Beat, supervise};
use crate::record::audit::bucket::{Bucket, S3Bucket};
use crate::record::audit::{Audit, AuditError, Author};
use crate::record::log_store::LogStore;
use crate::record::unstarted_notes::Unstarted;
use crate::sandbox::{self, WarmBoxes, cgroup};
use crate::secrets::app_secrets::AppSecrets;
use crate::secrets::sensitive_inputs::SensitiveInputs;
use crate::secrets::sensitive_outputs::SensitiveOutputs;
use crate::wire::grants::PendingGrants;
use crate::wire::inbox::Outbox;
use crate::wire::report::Reporter;
use crate::wire::sent_reports::{RecordedOutbox, Texts};
use crate::wire::spool::{Spool, SpoolError, sender};
use crate::wire::sqs::{SqsInbox, SqsOutbox};
use crate::wire::verify::Trust;
use crate::work::admission::Admission;
use crate::work::agent::Agent;
use crate::work::in_flight::InFlight;
use crate::work::journal::{Journal, JournalError};
use crate::work::poll;
use crate::work::presence::Presence;
use crate::work::standby::Membership;

/// A loop that makes no progress for this long is restarted.
const POLL_LIMIT: Duration = Duration::from_secs(90);
const SEND_LIMIT: Duration = Duration::from_secs(180);
const AUDIT_LIMIT: Duration = Duration::from_secs(180);
const ENROL_LIMIT: Duration = Duration::from_secs(30 * 60);
/// The time limit for all jobs together to stop.
const STOP_LIMIT: Duration = Duration::from_secs(30);
/// The time limit for sending the last reports, their texts and audit records, all together. What remains is sent after the
/// next start.
const FLUSH_LIMIT: Duration = Duration::from_secs(20);

/// The time limit for looking at the stack before the last report.
const GOODBYE_LIMIT: Duration = Duration::from_secs(5);
/// The reason that a runner reports when it ends and its stack gives no other reason.
const STOPPED: &str = "the runner was stopped on its machine; orders wait until it is started again";

/// How a runner ended. This decides its exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// The runner was asked to stop, or its config changed; all of its work has ended.
    Drained,
    /// There is no work, and the runner's machine exists only for work.
    Unneeded,
    /// The runner was asked to stop twice, or could not stop its jobs.
    Stopped,
    /// AWS denied the runner's calls for too long, or another machine has the runner's key.
    Denied,
    /// Another key has replaced the runner's key. The next start makes a new key.
    Replaced,
    /// The customer has revoked the runner's session. The next start takes a new one.
    Revoked,
    /// All work has ended, and another program takes the place of this one.
    HandedOver,
}

/// The reason why a runner does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The state directory cannot be used.
    #[error("cannot use the state directory `{path}`; make it a directory that this user may write")]
    StateDir { path: String, source: std::io::Error },
    /// Another runner uses the state directory.
    #[error("another runner uses the state directory `{0}`; end it first, or give this one another `state_dir`")]
    InUse(String),
    #[error(transparent)]
    Identity(#[from] RenewalError),
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error(transparent)]
    Spool(#[from] SpoolError),
    #[error(transparent)]
    Audit(#[from] AuditError),
    #[error(transparent)]
    Roots(#[from] RootsError),
    /// The handlers for signals cannot be installed.
    #[error("cannot listen for SIGTERM and SIGINT")]
    Signals(#[source] std::io::Error),
}

/// Runs the runner with `config` and these kinds of jobs, until `signals` ask it to stop or `source` finds a changed
/// config. With a `membership`, it also ends when there is no work.
///
/// # Errors
/// A [`StartError`] when it cannot start.
pub async fn run(
    config: Config,
    source: Option<StackSource>,
    kinds: Arc<dyn Execute>,
    membership: Option<Membership>,
    signals: &mut Signals,
) -> Result<Exit, StartError> {
    let config = Arc::new(config);
    let _lock = lock_state_dir(&config.state_dir)?;
    remove_leftovers(&config).await;
    let identity = Arc::new(renewal::identity(&config.state_dir, &config.install, clock::local())?);
    let spool = Arc::new(Spool::open(&config.state_dir)?);
    let sdk = aws::sdk_config(&config.region, None).await;
    let queues = aws::sdk_config(config.queue_region(), None).await;
    let agent = Arc::new(Agent { membership, ..assemble(&config, &identity, &spool, &sdk, &queues, kinds)? });
    let texts = Arc::new(Texts::open(&config.state_dir).map_err(|error| state_dir_error(&config.state_dir, error))?);
    let queue: Arc<dyn Outbox> = Arc::new(SqsOutbox::new(&queues, &config.reports_queue_url));
    let outbox = if agent.audit.is_in_bucket() {
        Arc::new(RecordedOutbox::new(queue, agent.audit.clone(), texts.clone()))
    } else {
        queue
    };
    claim_cgroup(&config);
    agent.boxes.refill();
    info!(
        install.id = %config.install,
        runner.key = %identity.id(),
        slots = config.slots,
        "Runner {} of install `{}` is up",
        env!("CARGO_PKG_VERSION"),
        config.install
    );
    let prover = RoleProver::new(&config, &sdk);
    let changed = async {
        match &source {
            Some(source) => source.changed(&config).await,
            None if config.role == Role::Install => StackSource::of_config(&config, &sdk).compare(&config).await,
            None => std::future::pending().await,
        }
        info!("The install stack has changed; draining, so that the runner can be started again with the new config");
        agent.drain.ask();
        std::future::pending::<()>().await;
    };
    tokio::select! {
        exit = supervise_loops(&agent, &spool, (&outbox, &texts), prover, (identity.public_key(), signals)) => Ok(exit),
        () = changed => Ok(Exit::Drained),
    }
}

/// Claims the cgroup in which jobs run, and warns of each limit that does not apply to a whole job.
fn claim_cgroup(config: &Config) {
    match cgroup::claim(&config.state_dir) {
        Err(reason) => {
            warn!("Limits apply to each process of a job, not to the memory and processors of the whole job: {reason}");
        }
        Ok(Some(reason)) if config.limits.of_disk().is_some() => {
            warn!("`limits.disk_mib_per_sec` and `limits.disk_ops_per_sec` do not apply: {reason}");
        }
        Ok(_) => {}
    }
}

fn assemble(
    config: &Arc<Config>,
    identity: &Arc<Identity>,
    spool: &Arc<Spool>,
    sdk: &aws_config::SdkConfig,
    queues: &aws_config::SdkConfig,
    kinds: Arc<dyn Execute>,
) -> Result<Agent, StartError> {
    let clock = Arc::new(ServerClock::default());
    let standing = Standing::new(config, Arc::new(AwsAccount::new(sdk)));
    let (tenant, install) = (config.tenant.clone(), config.install.clone());
    let bucket = config.bucket.as_ref().filter(|_| config.role == Role::Install);
    let bucket = bucket.map(|name| (aws_sdk_s3::Client::new(sdk), name.clone()));
    let author =
        Author { identity: identity.clone(), tenant: tenant.clone(), install: install.clone(), host: enrol::host() };
    let records = bucket.clone().map(|(client, name)| {
        let records = S3Bucket::new(client, name, config.audit_lock);
        Arc::new(records) as Arc<dyn Bucket>
    });
    let audit = Arc::new(Audit::open(&config.state_dir, author, records)?);
    let unstarted = Unstarted::in_bucket(bucket.clone());
    let logs =
        LogStore::open(config.state_dir.join("logs"), bucket).map_err(|e| state_dir_error(&config.state_dir, e))?;
    let opening_key = sealing_key::load_or_make(&config.state_dir, identity.id()).map_err(RenewalError::from)?;
    let trust = Trust::open(config)?;
    let app_roles = (config.role == Role::Install).then(|| Arc::new(IamRoles::new(config)) as Arc<dyn AppRoles>);
    Ok(Agent {
        config: config.clone(),
        licence: NewestLicence::open(config, trust.clone()),
        trust,
        inbox: Arc::new(SqsInbox::new(queues, &config.orders_queue_url, clock.clone())),
        clock,
        enrolled: Enrolled::open(&config.state_dir, identity.id().clone()),
        reporter: Arc::new(
            Reporter::new(identity.clone(), tenant, install, spool.clone()).with_head(audit.latest_head()),
        ),
        journal: Mutex::new(Journal::open(&config.state_dir)?),
        audit,
        roles: Roles::new(config.clone(), sdk, standing.clone()),
        standing,
        sensitive_inputs: SensitiveInputs::new(sdk, config.tenant.clone(), config.install.clone(), opening_key),
        app_secrets: AppSecrets::new(sdk, config.tenant.clone(), config.install.clone()),
        sensitive_outputs: SensitiveOutputs::new(sdk, config.bucket.clone()),
        // A build runner has no plans of a customer, and may not list its bucket.
        plans: PlanStore::new(sdk, config.bucket.clone().filter(|_| config.role == Role::Install)),
        app_roles,
        grants: Arc::new(PendingGrants::default()),
        in_flight: InFlight::default(),
        admission: Admission::new(config.slots),
        drain: Drain::default(),
        kinds,
        logs,
        unstarted,
        boxes: WarmBoxes::new(config.clone()),
        membership: None,
        unneeded: AtomicBool::new(false),
        revoked: AtomicBool::new(false),
        handing_over: AtomicBool::new(false),
        fatal: OnceLock::new(),
        replaced_by: OnceLock::new(),
        presence: Presence::default(),
        changes: Default::default(),
    })
}

async fn supervise_loops(
    agent: &Arc<Agent>,
    spool: &Arc<Spool>,
    (outbox, texts): (&Arc<dyn Outbox>, &Arc<Texts>),
    prover: RoleProver,
    (key, signals): (PublicKey, &mut Signals),
) -> Exit {
    let sender = supervise(
        "sender",
        SEND_LIMIT,
        || false,
        |beat| {
            let (spool, outbox) = (spool.clone(), outbox.clone());
            async move { sender::run(&spool, outbox.as_ref(), &beat).await }
        },
    );
    let has_given_up = || agent.fatal.get().is_some();
    let enrol = supervise("enrol", ENROL_LIMIT, has_given_up, |beat| {
        enrol::run(agent.clone(), prover.clone(), key.clone(), beat)
    });
    let enrol = then_wait(enrol);
    let audit = supervise("audit", AUDIT_LIMIT, has_given_up, |beat| carry_audit(agent.clone(), beat));
    let audit = then_wait(audit);
    let sent = supervise(
        "sent",
        AUDIT_LIMIT,
        || false,
        |beat| {
            let (agent, texts) = (agent.clone(), texts.clone());
            async move { texts.carry(&agent.audit, &beat).await }
        },
    );
    let poll =
        supervise("poll", POLL_LIMIT, || agent.drain.phase() >= Phase::Draining, |beat| poll::run(agent.clone(), beat));
    tokio::select! {
        biased;
        () = agent.drain.follow(signals) => Exit::Stopped,
        () = agent.drain.reached(Phase::Stopping) => Exit::Stopped,
        () = sender => Exit::Stopped,
        () = audit => Exit::Stopped,
        () = sent => Exit::Stopped,
        () = enrol => Exit::Stopped,
        exit = shut_down(agent, (spool, texts), poll) => exit,
    }
}

/// Runs a loop that may end because the runner has given up. Then waits for ever, because the runner still drains.
async fn then_wait(run: impl Future<Output = ()>) {
    run.await;
    std::future::pending().await
}

/// Writes audit records into the customer's bucket. Drains the runner if another machine has its key.
pub(crate) async fn carry_audit(agent: Arc<Agent>, beat: Beat) {
    let error = agent.audit.carry(&beat).await;
    agent.give_up(aws::explain(&error));
}

/// Waits until the runner is asked to drain. Then lets running jobs end, stops the jobs and orders that remain, and
/// waits until the last reports are sent.
async fn shut_down(agent: &Agent, (spool, texts): (&Spool, &Texts), poll: impl Future<Output = ()>) -> Exit {
    let drained = async {
        agent.drain.reached(Phase::Draining).await;
        if tokio::time::timeout(agent.config.drain_period(), agent.in_flight.rested()).await.is_err() {
            warn!("The drain period is over; stopping the jobs that still run");
            agent.in_flight.stop_all(StopReason::Draining);
        }
    };
    tokio::join!(poll, drained);
    agent.in_flight.stop_all(StopReason::Draining);
    let stopped = tokio::time::timeout(STOP_LIMIT, agent.in_flight.emptied()).await.is_ok();
    if agent.drain.is_asked() && agent.config.role == Role::Install {
        say_goodbye(agent).await;
    }
    // A revoked session can send nothing, so everything waits for the next start.
    if !agent.is_revoked() {
        flush(agent, (spool, texts)).await;
    }
    match (agent.fatal.get(), stopped) {
        (Some(_), _) => Exit::Denied,
        (None, true) if agent.is_revoked() && !agent.drain.is_asked() => Exit::Revoked,
        (None, true) if agent.is_retired() && !agent.drain.is_asked() => Exit::Replaced,
        (None, true) if agent.unneeded.load(Ordering::Relaxed) && !agent.drain.is_asked() => Exit::Unneeded,
        (None, true) if agent.handing_over.load(Ordering::Relaxed) && !agent.drain.is_asked() => Exit::HandedOver,
        (None, true) => {
            info!("Drained");
            Exit::Drained
        }
        (None, false) => Exit::Stopped,
    }
}

/// Reports that the runner was asked to stop, with the reason that its stack shows. After a restart, the runner announces
/// itself again.
async fn say_goodbye(agent: &Agent) {
    let stack = tokio::time::timeout(GOODBYE_LIMIT, agent.standing.stack()).await;
    let (reason, detail) = match stack {
        Ok(StackState::Gone) => (AwayReason::StackDeleted, agent.standing.gone()),
        Ok(StackState::Launched(parameters) | StackState::Changing(parameters)) => {
            match agent.standing.off(&parameters) {
                Some(off) => (AwayReason::SwitchedOff, off),
                None => (AwayReason::Stopped, STOPPED.to_owned()),
            }
        }
        Ok(StackState::Unreadable(_)) | Err(_) => (AwayReason::Stopped, STOPPED.to_owned()),
    };
    agent.presence.leave(&agent.reporter, reason, &detail);
}

/// Sends what waits to be sent, within [`FLUSH_LIMIT`] for all of it.
pub(crate) async fn flush(agent: &Agent, (spool, texts): (&Spool, &Texts)) {
    let until = Instant::now() + FLUSH_LIMIT;
    if tokio::time::timeout_at(until, spool.emptied()).await.is_err() {
        warn!("{} reports could not be sent yet; they are sent after the next start", spool.len());
    }
    let beat = Beat::default();
    if !matches!(tokio::time::timeout_at(until, texts.flush(&agent.audit, &beat)).await, Ok(Ok(()))) {
        warn!("Could not upload all texts of reports; they are uploaded after the next start");
    }
    if let Err(error) = agent.audit.flush(until.saturating_duration_since(Instant::now())).await {
        warn!("Could not send all audit records; they are sent after the next start: {}", aws::explain(&error));
    }
}

/// Locks the state directory for this process.
fn lock_state_dir(path: &Path) -> Result<File, StartError> {
    let wrong = |error| state_dir_error(path, error);
    files::make_private_dir(path).map_err(wrong)?;
    let lock = File::create(path.join("lock")).map_err(wrong)?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(std::fs::TryLockError::WouldBlock) => return Err(StartError::InUse(path.display().to_string())),
        Err(std::fs::TryLockError::Error(error)) => return Err(wrong(error)),
    }
    Ok(lock)
}

/// Removes the workspaces that earlier processes left, and the cache of providers of earlier versions.
async fn remove_leftovers(config: &Config) {
    for directory in ["work", "terraform-plugins"] {
        match sandbox::remove(&config.state_dir.join(directory), config).await {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                warn!("Directory `{directory}` of an earlier run was not removed: {error}");
            }
            Ok(()) | Err(_) => {}
        }
    }
}

fn state_dir_error(path: &Path, source: std::io::Error) -> StartError {
    StartError::StateDir { path: path.display().to_string(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_runner_on_a_state_directory_is_refused_until_the_first_has_ended() {
        let place = tempfile::tempdir().unwrap();
        let first = lock_state_dir(place.path()).unwrap();

        let refused = lock_state_dir(place.path()).unwrap_err().to_string();
        drop(first);

        assert_eq!(
            refused,
            format!(
                "another runner uses the state directory `{}`; end it first, or give this one another `state_dir`",
                place.path().display()
            )
        );
        lock_state_dir(place.path()).unwrap();
    }

    #[tokio::test]
    async fn a_start_removes_workspaces_and_the_old_cache_of_providers_and_nothing_else() {
        let place = tempfile::tempdir().unwrap();
        for directory in ["work/job", "terraform-plugins/registry", "providers"] {
            std::fs::create_dir_all(place.path().join(directory)).unwrap();
        }

        remove_leftovers(&crate::testing::config(place.path().to_str().unwrap(), Role::Install)).await;

        let left = std::fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().file_name());
        assert_eq!(left.collect::<Vec<_>>(), ["providers"]);
    }
}
