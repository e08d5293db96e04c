//! Announces the runner to the control plane by a hello: at each start, when a secret of the app, a rule about changes
//! or the switch of a role has changed, when the runner takes orders again after it reported that it takes none, and at
//! growing intervals of up to an hour. Each hello has a new proof of the runner's role, which is valid for 15 minutes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use freehold_protocol::approval::CustomerDecision;
use freehold_protocol::envelope::PublicKey;
use freehold_protocol::report::{ChangeTimes, Hello, RoleProof};
use freehold_protocol::{Digest, RoleKey};
use tokio::time::Instant;
use tracing::{error, info, warn};

use crate::aws;
use crate::backoff::Backoff;
use crate::identity::denial::{DENIED_LIMIT, Refused};
use crate::identity::role_proof::{ProveError, RoleProver};
use crate::process::clock;
use crate::process::watchdog::Beat;
use crate::repeat::Repeat;
use crate::work::agent::Agent;
use crate::work::change_rules::{StackRules, is_same_rule};

/// The time after which the first hello of a process is repeated. Each later pause is twice as long, up to [`LONGEST`].
/// So if the control plane cannot accept hellos when the runner starts, the pause before the next hello is about as
/// long as this outage has lasted.
const REPEAT: Duration = Duration::from_secs(60);
/// The longest time between two hellos. They also show that an idle runner is alive.
const LONGEST: Duration = Duration::from_secs(60 * 60);
/// The time after which a hello that the reports queue has not taken is replaced by one with a new proof.
const FRESH: Duration = Duration::from_secs(5 * 60);
/// The longest pause between two signs of progress of the loop ([`Beat::alive`]).
const ROUND: Duration = Duration::from_secs(10 * 60);
/// The longest pause between two signs of progress of the loop while the customer holds all changes.
const HELD_ROUND: Duration = Duration::from_secs(60);
/// The longest time between two checks for the customer's decision, while a plan waits for it.
const DECISION_ROUND: Duration = Duration::from_secs(30);
/// The time after which a runner that has never enrolled ends, if it has no credentials of a role.
const GIVE_UP: Duration = Duration::from_secs(5 * 60);
/// The interval at which the runner examines why the reports queue has not taken its hello.
const POLL_INTERVAL: Duration = Duration::from_secs(30);

/// The keyed digests of the app's secrets, by secret name; `None` when they are not known.
type Digests = Option<BTreeMap<String, Digest>>;

/// The contents of a hello that may change while the runner works.
#[derive(Debug)]
struct Announced {
    digests: Digests,
    /// When changes may start; `None` if at any time.
    changes: Option<ChangeTimes>,
    /// The customer's decisions about plans that wait for an approval.
    decisions: Vec<CustomerDecision>,
    /// The install's roles, and whether the customer has switched each of them on; `None` while that is not known.
    roles: Option<BTreeMap<RoleKey, bool>>,
}

impl Announced {
    /// Reads the contents. Those that cannot be read at the moment stay as in `known`.
    async fn read(agent: &Agent, known: Option<&Self>) -> Self {
        let rules = rules(agent).await;
        let now = agent.clock.now(Instant::now()).unwrap_or_else(clock::local);
        let roles = rules.as_ref().and_then(|rules| rules.role_switches(&agent.config, now));
        Self {
            digests: digests(agent).await.or_else(|| known?.digests.clone()),
            changes: rules.map_or_else(|| known?.changes.clone(), |rules| rules.announced(now)),
            decisions: decisions(agent, known.map(|known| &*known.decisions).unwrap_or_default()).await,
            roles: roles.or_else(|| known?.roles.clone()),
        }
    }

    /// Returns what has changed since `known` and has to be announced at once.
    fn news(&self, known: &Self) -> Vec<&'static str> {
        let is_other_rule = !is_same_rule(self.changes.as_ref(), known.changes.as_ref());
        let is_decided = self.decisions.iter().any(|one| !known.decisions.contains(one));
        let news = [
            (self.digests != known.digests, "A secret of the app changed"),
            (is_other_rule, "The customer's rules about changes have changed"),
            (is_decided, "The customer decided about a plan"),
            (self.roles != known.roles, "The switches of the install's roles have changed"),
        ];
        news.into_iter().filter_map(|(is_new, what)| is_new.then_some(what)).collect()
    }
}

/// The result of sending a hello.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sent {
    /// The reports queue has the hello.
    Taken,
    /// The hello has to be sent again: the spool dropped it, or its proof became too old before the reports queue took
    /// it.
    Again,
    /// The reports queue refused the runner for [`DENIED_LIMIT`], or its session was revoked: the runner ends.
    GaveUp,
}

/// Announces the runner at the start, again whenever something that a hello contains has changed, and repeatedly.
pub async fn run(agent: Arc<Agent>, prover: RoleProver, key: PublicKey, beat: Beat) {
    let mut announced = Announced::read(&agent, None).await;
    announce(&agent, &prover, (&key, &announced), &beat).await;
    let (mut last, mut pause) = (Instant::now(), REPEAT);
    loop {
        // When the customer ends a hold, the control plane learns within a minute that changes continue.
        let is_held = announced.changes.as_ref().is_some_and(|times| times.held);
        let round = if is_held { HELD_ROUND } else { ROUND };
        // While a plan waits for the customer, the runner itself looks for the customer's decision, in shorter rounds.
        let round = if agent.plans.is_waiting() { round.min(DECISION_ROUND) } else { round };
        let is_back = tokio::select! {
            () = tokio::time::sleep(round.min(pause.saturating_sub(last.elapsed()))) => false,
            () = agent.presence.is_back() => true,
            () = agent.changes.has_kept_back() => false,
            () = agent.plans.has_proposed() => false,
        };
        beat.alive();
        // A hello would announce that this runner takes orders.
        if agent.presence.is_away() {
            last = Instant::now();
            continue;
        }
        let now = Announced::read(&agent, Some(&announced)).await;
        let news = now.news(&announced);
        announced = now;
        for what in &news {
            info!("{what}: this runner announces itself again");
        }
        if is_back || !news.is_empty() {
            pause = REPEAT;
        } else if last.elapsed() >= pause {
            pause = LONGEST.min(pause * 2);
        } else {
            continue;
        }
        announce(&agent, &prover, (&key, &announced), &beat).await;
        last = Instant::now();
    }
}

/// Returns the digests of the app's secrets, or `None` when they cannot be read at the moment or the app has no
/// secrets.
async fn digests(agent: &Agent) -> Digests {
    if agent.config.app_secrets.is_empty() {
        return None;
    }
    match agent.app_secrets.digests(&agent.config.app_secrets).await {
        Ok(digests) => Some(digests),
        Err(error) => {
            warn!("{}", aws::explain(&error));
            None
        }
    }
}

/// Returns the customer's rules and switches as the stack has them; `None` while the stack cannot be read, and for a
/// build runner.
async fn rules(agent: &Agent) -> Option<Arc<StackRules>> {
    if agent.standing.stack_name().is_empty() {
        return None;
    }
    agent.changes.read(&agent.standing).await.inspect_err(|reason| warn!("{reason}")).ok()
}

/// Returns the customer's decisions about plans that wait, or `known` if the bucket cannot be read.
async fn decisions(agent: &Agent, known: &[CustomerDecision]) -> Vec<CustomerDecision> {
    let now = agent.clock.now(Instant::now()).unwrap_or_else(clock::local);
    agent.plans.decisions(now).await.unwrap_or_else(|reason| {
        warn!("Cannot read the customer's decisions about plans: {reason}");
        known.to_vec()
    })
}

async fn announce(agent: &Agent, prover: &RoleProver, (key, announced): (&PublicKey, &Announced), beat: &Beat) {
    let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(60));
    let started = Instant::now();
    while agent.fatal.get().is_none() && !agent.is_revoked() {
        beat.alive();
        match prover.prove(&agent.config, key).await {
            Ok(proof) => {
                if let Some(number) = hello(agent, (key, announced), proof) {
                    match accepted(agent, number, beat).await {
                        Sent::Taken => {
                            info!(runner.key = %key.key_id(), "Announced this runner with key `{}`", key.key_id());
                            return agent.enrolled.set();
                        }
                        Sent::Again => {}
                        Sent::GaveUp => return,
                    }
                }
            }
            Err(error) => {
                warn!("{error}");
                let never = !agent.enrolled.is_set() && matches!(error, ProveError::NoRole(..));
                if never && started.elapsed() > GIVE_UP {
                    agent.give_up(format!("cannot enrol: {error}"));
                    return;
                }
            }
        }
        tokio::time::sleep(backoff.failed()).await;
    }
}

/// Waits until the reports queue has the hello with this number. Only a runner that has never enrolled gives up.
async fn accepted(agent: &Agent, number: u64, beat: &Beat) -> Sent {
    let mut warned = Repeat::default();
    let mut denied_since: Option<Instant> = None;
    let begun = Instant::now();
    loop {
        beat.alive();
        if let Ok(accepted) = tokio::time::timeout(POLL_INTERVAL, agent.reporter.accepted_hello(number)).await {
            return if accepted { Sent::Taken } else { Sent::Again };
        }
        let denied = agent.reporter.denied().filter(|_| !agent.enrolled.is_set());
        let Some(denied) = denied else {
            denied_since = None;
            if begun.elapsed() >= FRESH {
                return Sent::Again;
            }
            continue;
        };
        let text = match agent.standing.refused(&denied).await {
            Refused::SwitchedOff(text) => {
                denied_since = None;
                text
            }
            Refused::Revoked(text) => {
                agent.renew_session(&text);
                return Sent::GaveUp;
            }
            Refused::StackGone(text) | Refused::Otherwise(text) => {
                let since = *denied_since.get_or_insert_with(Instant::now);
                if since.elapsed() >= DENIED_LIMIT {
                    let minutes = DENIED_LIMIT.as_secs() / 60;
                    agent.give_up(format!(
                        "cannot enrol: the reports queue has refused this runner for {minutes} minutes: {text}"
                    ));
                    return Sent::GaveUp;
                }
                text
            }
        };
        if warned.is_due(&text, Instant::now()) {
            warn!("Cannot enrol yet; this runner takes no orders until it has enrolled: {text}");
        }
    }
}

/// Puts a hello into the spool, and returns its number.
fn hello(agent: &Agent, (key, announced): (&PublicKey, &Announced), proof: RoleProof) -> Option<u64> {
    let hello = Hello {
        public_key: key.clone(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        slots: agent.config.slots,
        host: host(),
        inputs: agent.config.inputs.clone(),
        secrets: announced.digests.clone(),
        accepted_contract: agent.config.accepted_contract.clone(),
        proof: Some(proof),
        sealing_key: Some(agent.sensitive_inputs.sealing_key()),
        changes: announced.changes.clone(),
        decisions: announced.decisions.clone(),
        roles: announced.roles.clone(),
    };
    agent.reporter.hello(hello).inspect_err(|error| error!("{}", aws::explain(error))).ok()
}

/// Returns the EC2 instance id, which Nitro machines show as their asset tag, or otherwise the host name.
pub(crate) fn host() -> String {
    let read = |path: &str| std::fs::read_to_string(path).ok().map(|text| text.trim().to_owned());
    read("/sys/devices/virtual/dmi/id/board_asset_tag")
        .filter(|tag| tag.starts_with("i-"))
        .or_else(|| read("/proc/sys/kernel/hostname"))
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| "unknown".to_owned())
}
