//! Messages that nobody can believe: poison for the functions, forged orders and reports.

use anyhow::ensure;
use ed25519_dalek::SigningKey;
use fastrand::Rng;
use freehold_protocol::order::Order;
use freehold_protocol::report::{Report, ReportBody};
use freehold_protocol::{Envelope, Timestamp};

use super::cell::{Cell, INSTALL, LIMIT, VISIBILITY_SECS};
use super::class::{Point, Tried, declare};
use crate::harness::forger::{Forger, now, order};
use crate::harness::wait::until;

declare! {
    9 "a message that nobody can believe" poison [];
    33 "an order or a report is forged, replayed or rerouted" forged [];
}

/// Longer than a function takes on a busy machine: a slow one is not given its message a second time, which would be
/// another dead letter.
const ONCE_SECS: u32 = 90;

/// An order that is older than the last one of its group.
const REPLAYED: &str = "replayed";
const GROUP_OF_NEWER: &str = "action:note";

/// A useless message of each kind goes to each queue that a function reads: it ends with the dead letters, and work continues.
async fn poison(cell: &mut Cell, point: Point) -> anyhow::Result<Tried> {
    cell.queues.hide_failed_for(ONCE_SECS).await?;
    let tried = dead_letter(cell, point).await;
    cell.queues.hide_failed_for(VISIBILITY_SECS).await?;
    tried
}

async fn dead_letter(cell: &mut Cell, mut point: Point) -> anyhow::Result<Tried> {
    let [queue, kind] = point.among([3, 7]);
    let (queue, body) = (["reports", "dispatch", "grants"][queue], useless(kind, &mut point.rng)?);
    let before = cell.queues.length("dead").await?;
    cell.queues.send(queue, &body).await?;
    let begun = cell.act("note").await?;
    cell.succeeds(&begun).await?;
    until("it is a dead letter", LIMIT, || async { Ok((cell.queues.length("dead").await? > before).then_some(())) })
        .await?;
    cell.queues.empty(queue).await?;
    ensure!(cell.queues.length("dead").await? == before + 1, "more than the poison is a dead letter");
    Ok(Tried::Passed)
}

/// Returns a body: not JSON, other JSON, too deep, cut off, too large, of other types, or of a stranger. A report of this
/// tenant with an unknown key would wait for the hello that announces the key, so the stranger's is of another tenant.
fn useless(kind: usize, rng: &mut Rng) -> anyhow::Result<String> {
    let strangers = stranger(rng)?;
    let cut = rng.usize(1..strangers.len());
    let noise: String = (0..rng.usize(1..4000)).map(|_| rng.char('!'..'~')).collect();
    Ok(match kind {
        0 => noise,
        1 => serde_json::json!({ "order": noise }).to_string(),
        2 => "[".repeat(20_000),
        3 => strangers[..cut].to_owned(),
        4 => "x".repeat(900 * 1024),
        5 => {
            "{\"payloadType\": \"application/vnd.freehold.report+json\", \"payload\": 1, \"signatures\": {}}".to_owned()
        }
        _ => strangers,
    })
}

fn stranger(rng: &mut Rng) -> anyhow::Result<String> {
    let key = SigningKey::from_bytes(&[rng.u8(..); 32]);
    let report = Report {
        tenant: "initech".parse()?,
        install: INSTALL.parse()?,
        runner: freehold_protocol::envelope::PublicKey::from(key.verifying_key()).key_id(),
        at: now()?,
        head: None,
        body: ReportBody::Heartbeat,
    };
    Ok(Envelope::seal(&report, &[&key])?.to_json()?)
}

/// An attacker who may write to the orders queue, or has a key that the tenant certified, sends an order that is wrong in one
/// way; the runner refuses it, and work continues.
async fn forged(cell: &mut Cell, point: Point) -> anyhow::Result<Tried> {
    const WAYS: [&str; 7] =
        ["unsigned", "strangers", "exchanged", "other-install", "other-tenant", "expired", REPLAYED];
    let way = point.of(&WAYS);
    let cause = format!("{way}-{}", cell.next_try());
    if way == REPLAYED {
        let newer = cell.act("note").await?;
        cell.succeeds(&newer).await?;
    }
    let body = forge(cell, way, &cause).await?;
    let Order { job, group, .. } = order(&cell.world, INSTALL, &cause)?;
    let group = if way == REPLAYED { GROUP_OF_NEWER.parse()? } else { group };
    let before = refusals(cell, job.as_str()).await?;
    let config = cell.world.service_role(&format!("fh-{}--dispatch-job", cell.world.tenant())).await?;
    let sqs = aws_sdk_sqs::Client::new(&cell.world.acting_as(config)?);
    let url = cell.queues.url(&format!("{INSTALL}.fifo")).await?;
    let send = sqs.send_message().queue_url(url).message_body(body);
    send.message_group_id(group.message_group()).message_deduplication_id(&cause).send().await?;
    until("the forgery is refused", LIMIT, || async {
        Ok((refusals(cell, job.as_str()).await? > before).then_some(()))
    })
    .await?;
    ensure!(!cell.runner.log().contains(&format!("Started job `{job}`")), "the forged job ran");
    let begun = cell.act("note").await?;
    cell.succeeds(&begun).await?;
    Ok(Tried::Passed)
}

async fn forge(cell: &Cell, way: &str, cause: &str) -> anyhow::Result<String> {
    let root = Forger::certified(&cell.world).await?;
    let with = |change: &dyn Fn(&mut Order)| -> anyhow::Result<Envelope> {
        let mut forged = order(&cell.world, if way == "other-install" { "initech" } else { INSTALL }, cause)?;
        change(&mut forged);
        root.sign(&forged)
    };
    let envelope = match way {
        "unsigned" => {
            let mut one = with(&|_| ())?;
            one.signatures.clear();
            one
        }
        "strangers" => Forger::stranger(&cell.world)?.sign(&order(&cell.world, INSTALL, cause)?)?,
        "exchanged" => {
            let mut one = with(&|_| ())?;
            one.payload = with(&|order| order.timeout_secs = 61)?.payload;
            one
        }
        "other-tenant" => with(&|order| order.tenant = "other".parse().expect("a name"))?,
        "expired" => {
            with(&|order| order.not_after = Timestamp::from_millis(order.issued_at.as_millis().saturating_sub(5000)))?
        }
        REPLAYED => with(&|order| {
            order.serial = 0;
            order.group = GROUP_OF_NEWER.parse().expect("a group");
        })?,
        _ => with(&|_| ())?,
    };
    Ok(envelope.to_json()?)
}

/// Returns how many refusals are recorded with the install and with a job.
async fn refusals(cell: &Cell, job: &str) -> anyhow::Result<usize> {
    let of_install = cell.world.rows(&format!("install#{INSTALL}"), "refused#").await?;
    Ok(of_install.len() + cell.world.rows(&format!("job#{job}"), "refused#").await?.len())
}
