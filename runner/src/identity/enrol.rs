//! Announces the runner at each start and when a secret of the app changed, and sends one heartbeat an hour.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use aws_sdk_secretsmanager::error::ProvideErrorMetadata;
use ed25519_dalek::SigningKey;
use freehold_protocol::Digest;
use freehold_protocol::envelope::{PublicKey, enrolment_key};
use freehold_protocol::report::Hello;
use tokio::time::Instant;
use tracing::{error, info, warn};
use zeroize::Zeroizing;

use crate::aws;
use crate::backoff::Backoff;
use crate::config::Enrolment;
use crate::identity::denial::Refused;
use crate::operate::watchdog::Beat;
use crate::repeat::Repeat;
use crate::work::agent::Agent;

/// The interval between heartbeats.
const HEARTBEAT: Duration = Duration::from_secs(60 * 60);
/// The longest pause between two signs of progress of the loop ([`Beat::alive`]).
const ROUND: Duration = Duration::from_secs(10 * 60);
/// The time after which a runner that has never enrolled ends, if its enrolment secret cannot be read.
const GIVE_UP: Duration = Duration::from_secs(5 * 60);
/// The time after which such a runner ends, if the reports queue refuses it.
const DENIED_LIMIT: Duration = Duration::from_secs(15 * 60);
/// The interval at which a runner whose hello waits looks why.
const LOOK: Duration = Duration::from_secs(30);

/// The reason why the enrolment secret cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// The runner may not read the secret, or the secret does not exist or is empty.
    #[error("cannot read the enrolment secret `{name}`: {reason}; {way_out}")]
    Refused { name: String, reason: String, way_out: &'static str },
    /// The secret cannot be read at the moment; a retry may succeed.
    #[error("cannot read the enrolment secret `{name}` now: {reason}")]
    Transient { name: String, reason: String },
}

/// The keyed digests of the app's secrets, by secret name; `None` when they are not known.
type Digests = Option<BTreeMap<String, Digest>>;

/// Announces the runner at the start, and again whenever a secret of the app has changed. Sends a heartbeat every hour.
pub async fn run(agent: Arc<Agent>, secrets: aws_sdk_secretsmanager::Client, key: PublicKey, beat: Beat) {
    let mut announced = digests(&agent).await;
    announce(&agent, &secrets, (&key, &announced), &beat).await;
    let mut last = Instant::now();
    loop {
        tokio::time::sleep(ROUND.min(HEARTBEAT.saturating_sub(last.elapsed()))).await;
        beat.alive();
        let now = digests(&agent).await;
        if now.is_some() && now != announced {
            info!("A secret of the app changed: this runner announces itself again");
            announced = now;
            announce(&agent, &secrets, (&key, &announced), &beat).await;
        }
        if last.elapsed() >= HEARTBEAT {
            last = Instant::now();
            if let Err(error) = agent.reporter.heartbeat() {
                warn!("{}", aws::explain(&error));
            }
        }
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

async fn announce(
    agent: &Agent,
    secrets: &aws_sdk_secretsmanager::Client,
    (key, digests): (&PublicKey, &Digests),
    beat: &Beat,
) {
    let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(60));
    let started = Instant::now();
    loop {
        beat.alive();
        let secret = read_secret(&agent.config.enrolment, secrets).await;
        let enrolment = match &secret {
            Ok(secret) => Some(enrolment_key(&agent.config.tenant, &agent.config.install, secret)),
            Err(error) => {
                warn!("{error}");
                None
            }
        };
        if (enrolment.is_some() || agent.enrolled.is_set())
            && let Some(number) = hello(agent, (key, digests), enrolment.as_ref())
        {
            if agent.enrolled.is_set() {
                return;
            }
            if accepted(agent, number, beat).await {
                agent.enrolled.set();
                return;
            }
        }
        if agent.fatal.get().is_some() {
            return;
        }
        if let Err(error @ SecretError::Refused { .. }) = &secret
            && started.elapsed() > GIVE_UP
        {
            agent.give_up(format!("cannot enrol: {error}"));
            return;
        }
        tokio::time::sleep(backoff.failed()).await;
    }
}

/// Waits until the reports queue has the hello with this number. Returns false when it never will, and when the runner gave
/// up because the queue refuses it.
async fn accepted(agent: &Agent, number: u64, beat: &Beat) -> bool {
    let mut warned = Repeat::default();
    let mut denied_since: Option<Instant> = None;
    loop {
        beat.alive();
        if let Ok(accepted) = tokio::time::timeout(LOOK, agent.reporter.accepted_hello(number)).await {
            return accepted;
        }
        let Some(denied) = agent.reporter.denied() else {
            denied_since = None;
            continue;
        };
        let text = match agent.standing.refused(&denied).await {
            Refused::SwitchedOff(text) => {
                denied_since = None;
                text
            }
            Refused::Otherwise(text) => {
                let since = *denied_since.get_or_insert_with(Instant::now);
                if since.elapsed() >= DENIED_LIMIT {
                    let minutes = DENIED_LIMIT.as_secs() / 60;
                    agent.give_up(format!(
                        "cannot enrol: the reports queue has refused this runner for {minutes} minutes: {text}"
                    ));
                    return false;
                }
                text
            }
        };
        if warned.is_due(&text, Instant::now()) {
            warn!("Cannot enrol yet, and takes no orders before: {text}");
        }
    }
}

/// Puts a hello into the spool, and returns its number.
fn hello(agent: &Agent, (key, digests): (&PublicKey, &Digests), enrolment: Option<&SigningKey>) -> Option<u64> {
    let hello = Hello {
        public_key: key.clone(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        slots: agent.config.slots,
        host: host(),
        inputs: agent.config.inputs.clone(),
        secrets: digests.clone(),
        accepted_contract: agent.config.accepted_contract.clone(),
    };
    match agent.reporter.hello(hello, enrolment) {
        Ok(number) => {
            info!(runner.key = %key.key_id(), "Announced this runner with key `{}`", key.key_id());
            Some(number)
        }
        Err(error) => {
            error!("{}", aws::explain(&error));
            None
        }
    }
}

/// Reads the enrolment secret from a file or from Secrets Manager.
///
/// # Errors
/// A [`SecretError`] that names a way out.
pub async fn read_secret(
    from: &Enrolment,
    secrets: &aws_sdk_secretsmanager::Client,
) -> Result<Zeroizing<String>, SecretError> {
    match from {
        Enrolment::File(path) => {
            let refused = |reason| SecretError::Refused {
                name: path.display().to_string(),
                reason,
                way_out: "write the secret of the install stack into the file that `enrolment_secret_file` names",
            };
            let text = std::fs::read_to_string(path).map(Zeroizing::new).map_err(|error| refused(error.to_string()))?;
            let secret = text.trim();
            if secret.is_empty() {
                Err(refused("it is empty".to_owned()))
            } else {
                Ok(Zeroizing::new(secret.to_owned()))
            }
        }
        Enrolment::Secret(arn) => {
            let refused = |reason| SecretError::Refused {
                name: arn.clone(),
                reason,
                way_out: "allow `secretsmanager:GetSecretValue` on it (and `kms:Decrypt` on its key) for the runner role",
            };
            match secrets.get_secret_value().secret_id(arn).send().await {
                Ok(answer) => match answer.secret_string.map(Zeroizing::new).filter(|text| !text.trim().is_empty()) {
                    Some(text) => Ok(Zeroizing::new(text.trim().to_owned())),
                    None => Err(refused("it is empty".to_owned())),
                },
                Err(error) if aws::is_denied(error.code()) || error.code() == Some("ResourceNotFoundException") => {
                    Err(refused(aws::explain(&error)))
                }
                Err(error) => Err(SecretError::Transient { name: arn.clone(), reason: aws::explain(&error) }),
            }
        }
    }
}

/// Returns the EC2 instance id, which Nitro machines show as their asset tag, or otherwise the host name.
fn host() -> String {
    let read = |path: &str| std::fs::read_to_string(path).ok().map(|text| text.trim().to_owned());
    read("/sys/devices/virtual/dmi/id/board_asset_tag")
        .filter(|tag| tag.starts_with("i-"))
        .or_else(|| read("/proc/sys/kernel/hostname"))
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| "unknown".to_owned())
}
