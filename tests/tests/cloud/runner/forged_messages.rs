//! Forged messages in the orders queue and the reports queue, from an attacker who may write to both.

use anyhow::Context as _;
use aws_sdk_sqs::types::QueueAttributeName;
use ed25519_dalek::SigningKey;
use freehold_protocol::audit::AuditEvent;
use freehold_protocol::contract::OrderTerms;
use freehold_protocol::limits::MAX_ENVELOPE_BYTES;
use freehold_protocol::order::leftovers::FindLeftovers;
use freehold_protocol::order::{Order, Work};
use freehold_protocol::report::{AttemptEvent, AttemptReport, Fence, Hello, Outcome, Report, ReportBody};
use freehold_protocol::{Digest, Envelope, KeyId, KeyUse, KeyUses, Timestamp};
use freehold_tests::harness::forger::{Forger, now, order};
use freehold_tests::harness::runner::on_an_empty_disk;
use freehold_tests::harness::wait::{SOON, until};
use freehold_tests::harness::{Capability, Install, Needs, World, app};
use serde_json::Value;

/// A forged order that the runner would do if it were in the message group of its group.
const OF_ANOTHER_GROUP: &str = "in another message group";

const NEEDS: Needs = Needs { cloud: &[Capability::HttpApi, Capability::EmptyAccounts], programs: &["bwrap"] };

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_refuses_each_forged_order_for_its_own_reason() -> anyhow::Result<()> {
    let Some(world) = World::start("cloud_forged.orders", NEEDS).await? else { return Ok(()) };
    let install = live_install(&world).await?;
    let runner = world.runner(&install).await?;
    world.provisioned(&install).await?;
    world.vendor(&["action", "run", "globex", "say"]).await?;
    let before = settled_view(&world).await?;
    let (root, stranger) = (Forger::certified(&world).await?, Forger::stranger(&world)?);
    let mut cases = orders(&world, &root, &stranger)?;
    cases.extend(without_the_use(&world).await?);

    let (mut forged, mut output) = (Vec::new(), String::new());
    for (what, reason, message) in cases {
        let job = order(&world, "globex", what)?.job;
        let known = refusals(&world, job.as_str()).await?;
        match what {
            OF_ANOTHER_GROUP => send_in(&world, "somebody", what, &message).await?,
            _ => send_order(&world, what, &message).await?,
        }
        let found = until(what, SOON, || async {
            let now = refusals(&world, job.as_str()).await?;
            Ok(now.into_iter().find(|one| !known.contains(one)))
        });
        let found = found.await?;
        assert!(found.starts_with(&format!("order refused as {reason}: ")), "{what}: {found}");
        assert!(world.rows(&format!("job#{job}"), "state").await?.is_empty(), "{what} made a job");
        forged.push(job);
        output.push_str(&found);
    }
    for has in ["grants", "cancels, notices, grants, contracts, receipts, licences", "nothing"] {
        let wanted = format!("may not sign orders: its certificate is for {has} (");
        assert!(output.contains(&wanted), "no refusal says `{wanted}`: {output}");
    }

    let log = runner.log();
    for job in &forged {
        assert!(!log.contains(&format!("Started job `{job}`")), "{job} ran");
    }
    // The refusal may be reported before its message is deleted.
    until("no refused message stays in the queue", SOON, || async {
        Ok((waiting(&world, "globex.fifo").await? == (0, 0)).then_some(()))
    })
    .await?;
    assert_eq!(settled_view(&world).await?, before, "a forged order changed the install");
    let run = world.vendor(&["action", "run", "globex", "say"]).await?;
    assert_eq!(run["state"], "succeeded", "the runner does no real order any more: {run}");
    let kept = audit(&world, &install).await?;
    for reason in ["malformed", "bad_signature", "other_install", "expired", "replayed"] {
        assert!(kept.contains(&reason.to_owned()), "the customer's audit log does not tell of {reason}");
    }
    Ok(())
}

/// Returns orders whose signing key the tenant's root key certified, for everything but orders.
async fn without_the_use(world: &World) -> anyhow::Result<Vec<(&'static str, &'static str, String)>> {
    let mut cases = Vec::new();
    for (what, uses) in [
        ("signed as grant-artifact", [KeyUse::Grants].into()),
        ("signed by a key of all other uses", KeyUse::ALL.into_iter().filter(|one| *one != KeyUse::Orders).collect()),
        ("signed by a key without uses", KeyUses::default()),
    ] {
        let forger = Forger::certified_for(world, uses).await?;
        cases.push((what, "bad_signature", forger.sign(&order(world, "globex", what)?)?.to_json()?));
    }
    Ok(cases)
}

/// Returns the forgeries: what each is, the reason it is refused for, the message.
fn orders(
    world: &World,
    root: &Forger,
    stranger: &Forger,
) -> anyhow::Result<Vec<(&'static str, &'static str, String)>> {
    let with = |what: &str, change: &dyn Fn(&mut Order)| -> anyhow::Result<Envelope> {
        let mut order = order(world, "globex", what)?;
        change(&mut order);
        root.sign(&order)
    };
    let nothing = |_: &mut Order| ();
    let mut unsigned = with("unsigned", &nothing)?;
    unsigned.signatures.clear();
    let strangers = stranger.sign(&order(world, "globex", "signed by a stranger")?)?;
    let mut exchanged = with("payload exchanged", &nothing)?;
    exchanged.payload = with("another payload", &|order| order.timeout_secs = 61)?.payload;
    let foreign = root.sign(&order(world, "initech", "for another install")?)?;
    let other_tenant = with("for another tenant", &|order| order.tenant = "other".parse().expect("a name"))?;
    let expired =
        with("expired", &|order| order.not_after = Timestamp::from_millis(order.issued_at.as_millis() - 5000))?;
    let replayed = with("replayed", &|order| order.serial = 0)?;
    let of_another_group = with(OF_ANOTHER_GROUP, &nothing)?;
    Ok(vec![
        ("not JSON", "malformed", "hello".to_owned()),
        ("JSON, but no envelope", "malformed", "{\"order\": \"do it\"}".to_owned()),
        ("unsigned", "bad_signature", unsigned.to_json()?),
        ("signed by a stranger", "bad_signature", strangers.to_json()?),
        ("payload exchanged", "bad_signature", exchanged.to_json()?),
        ("for another install", "other_install", foreign.to_json()?),
        ("for another tenant", "other_install", other_tenant.to_json()?),
        ("expired", "expired", expired.to_json()?),
        ("replayed", "replayed", replayed.to_json()?),
        (OF_ANOTHER_GROUP, "replayed", of_another_group.to_json()?),
    ])
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_that_somebody_kept_does_nothing_on_a_new_machine() -> anyhow::Result<()> {
    let Some(world) = World::start("cloud_forged.kept", NEEDS).await? else { return Ok(()) };
    let install = live_install(&world).await?;
    let mut runner = world.runner(&install).await?;
    world.provisioned(&install).await?;
    let first = runner_key(&world).await?;
    let view = world.vendor(&["install", "show", "globex"]).await?;
    let accepted: Option<Digest> = serde_json::from_value(view["accepted_contract"].clone())?;
    let order = Order {
        runner: Some(first.clone()),
        group: "leftovers".parse()?,
        work: Work::Leftovers(FindLeftovers {}),
        terms: accepted.map(|digest| Box::new(OrderTerms { digest, change: None, document: None })),
        ..order(&world, "globex", "kept")?
    };
    let kept = Forger::certified(&world).await?.sign(&order)?.to_json()?;
    send_order(&world, "the order", &kept).await?;
    runner.logs(&format!("Job `{}` ended: ", order.job), SOON).await?;
    until("the order is settled", SOON, || async {
        Ok((waiting(&world, "globex.fifo").await? == (0, 0)).then_some(()))
    })
    .await?;

    // The queue hands the next message to the open poll of the killed machine, so the copy comes as a second delivery.
    runner.kill().await?;
    runner.replace(&on_an_empty_disk(&install.config)?)?;
    until("the new machine is the runner", SOON, || async { Ok((runner_key(&world).await? != first).then_some(())) })
        .await?;
    send_order(&world, "the same order", &kept).await?;

    let refused = until("it is refused", SOON, || async {
        Ok(refusals(&world, order.job.as_str()).await?.into_iter().find(|one| one.contains("replayed")))
    });
    let refused = refused.await?;
    assert!(
        refused.contains("the order is a copy: another message with it was handled by another runner"),
        "{refused}"
    );
    assert_eq!(runner.log().matches(&format!("Started job `{}`", order.job)).count(), 1);
    // If the open poll of the killed machine did not take the copy, it may take the first of these orders.
    let say = ["action", "run", "globex", "say"];
    let run = match world.vendor(&say).await {
        Ok(run) => run,
        Err(_) => world.vendor(&say).await?,
    };
    assert_eq!(run["state"], "succeeded", "the runner does no real order any more: {run}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_oversized_order_is_taken_by_nobody() -> anyhow::Result<()> {
    let Some(world) = World::start("cloud_forged.oversized", NEEDS).await? else { return Ok(()) };
    let install = live_install(&world).await?;
    let _runner = world.runner(&install).await?;
    world.provisioned(&install).await?;
    let known = refusals(&world, "none").await?;

    let sent = send_order(&world, "oversized", &"x".repeat(MAX_ENVELOPE_BYTES + 1)).await;

    // SQS itself takes 1 MiB; an emulator may take more.
    match sent {
        Ok(()) => {
            let found = until("it is refused", SOON, || async {
                let now = refusals(&world, "none").await?;
                Ok(now.into_iter().find(|one| !known.contains(one)))
            });
            assert!(found.await?.starts_with("order refused as too_large: "));
        }
        Err(error) => assert!(format!("{error:#}").contains("InvalidParameterValue"), "{error:#}"),
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn forged_reports_change_nothing_and_end_with_the_dead_letters() -> anyhow::Result<()> {
    let Some(world) = World::start("cloud_forged.reports", NEEDS).await? else { return Ok(()) };
    let install = live_install(&world).await?;
    let _runner = world.runner(&install).await?;
    world.provisioned(&install).await?;
    let run = world.vendor(&["action", "run", "globex", "say"]).await?;
    let job = run["nodes"][0]["job"].as_str().context("no job")?.to_owned();
    let (before, job_before) = (settled_view(&world).await?, world.vendor(&["job", "show", &job]).await?);

    let forged = reports(&world, &before, &job)?;
    for body in &forged {
        let sqs = aws_sdk_sqs::Client::new(&world.administrator(world.tenant_account())?);
        sqs.send_message().queue_url(queue(&world, "reports").await?).message_body(body).send().await?;
    }
    until("all of them are dead letters", SOON, || async {
        let (dead, hidden) = waiting(&world, "dead").await?;
        Ok((dead + hidden == forged.len()).then_some(()))
    })
    .await?;

    assert_eq!(settled_view(&world).await?, before);
    assert_eq!(world.vendor(&["job", "show", &job]).await?, job_before);
    let run = world.vendor(&["action", "run", "globex", "say"]).await?;
    assert_eq!(run["state"], "succeeded", "real reports are taken no more: {run}");
    Ok(())
}

fn reports(world: &World, install: &Value, job: &str) -> anyhow::Result<Vec<String>> {
    let stranger = SigningKey::from_bytes(&[11; 32]);
    let runner: freehold_protocol::KeyId = serde_json::from_value(install["runner"]["key"].clone())?;
    let report = |tenant: &str, body: ReportBody| -> anyhow::Result<Report> {
        Ok(Report {
            tenant: tenant.parse()?,
            install: "globex".parse()?,
            runner: runner.clone(),
            at: now()?,
            head: None,
            body,
        })
    };
    let outcome = Outcome::Failed { reason: "forged".to_owned(), partial: true };
    let event = AttemptEvent::finished(outcome, "");
    let fence = Fence { dispatch: 99, receive: 1 };
    let failed = ReportBody::Attempt(AttemptReport { job: job.parse()?, fence, seq: 1, event });
    let hello = ReportBody::Hello(Hello {
        public_key: stranger.verifying_key().into(),
        version: "9.9.9".to_owned(),
        slots: 64,
        host: "forged".to_owned(),
        inputs: std::collections::BTreeMap::new(),
        secrets: None,
        accepted_contract: None,
        proof: None,
        sealing_key: None,
        changes: None,
        decisions: Vec::new(),
        roles: None,
    });
    let seal = |report: &Report| Envelope::seal(report, &[&stranger]);
    let mut unsigned = seal(&report(world.tenant(), failed.clone())?)?;
    unsigned.signatures.clear();
    let mut posing = seal(&report(world.tenant(), failed.clone())?)?;
    for signature in &mut posing.signatures {
        signature.keyid = runner.clone();
    }
    let all = [
        unsigned,
        posing,
        seal(&report(world.tenant(), failed)?)?,
        seal(&report(world.tenant(), hello)?)?,
        seal(&report("other", ReportBody::Heartbeat)?)?,
    ];
    let mut bodies = vec!["hello".to_owned()];
    for envelope in all {
        bodies.push(envelope.to_json()?);
    }
    Ok(bodies)
}

async fn runner_key(world: &World) -> anyhow::Result<KeyId> {
    let view = world.vendor(&["install", "show", "globex"]).await?;
    Ok(serde_json::from_value(view["runner"]["key"].clone())?)
}

async fn live_install(world: &World) -> anyhow::Result<Install> {
    world.vendor(&["app", "sync", &app::small(world.directory())?.display().to_string()]).await?;
    world.install("globex", "small").await
}

/// Returns the install as the API shows it, without when its runner was last heard of.
async fn settled_view(world: &World) -> anyhow::Result<Value> {
    until("nothing is live", SOON, || async {
        let mut view = world.vendor(&["install", "show", "globex"]).await?;
        view["runner"]["last_contact"] = Value::Null;
        Ok(view["live"].is_null().then_some(view))
    })
    .await
}

/// Returns why messages were refused, as recorded with the install and with `job`.
async fn refusals(world: &World, job: &str) -> anyhow::Result<Vec<String>> {
    let mut rows = world.rows("install#globex", "refused#").await?;
    rows.extend(world.rows(&format!("job#{job}"), "refused#").await?);
    // The digest of the report tells refusals for the same reason apart.
    Ok(rows.iter().map(|(key, row)| format!("{} ({key})", row["reason"].as_str().unwrap_or_default())).collect())
}

/// Sends a message in the message group in which the control plane would send it, if it is an order.
async fn send_order(world: &World, what: &str, body: &str) -> anyhow::Result<()> {
    let order = Envelope::parse(body.as_bytes()).ok().and_then(|envelope| envelope.peek::<Order>().ok());
    let group = order.as_ref().map_or("forged", |order| order.group.message_group());
    send_in(world, group, what, body).await
}

async fn send_in(world: &World, group: &str, what: &str, body: &str) -> anyhow::Result<()> {
    let sqs = aws_sdk_sqs::Client::new(&sender(world).await?);
    let send = sqs.send_message().queue_url(queue(world, "globex.fifo").await?).message_body(body);
    let send = send.message_group_id(group).message_deduplication_id(what.replace([' ', ','], "-"));
    send.send().await.context("the queue refuses it")?;
    Ok(())
}

/// Returns the role of `dispatch-job`: no other role but that of `grant-artifact` can send to an orders queue.
async fn sender(world: &World) -> anyhow::Result<aws_config::SdkConfig> {
    let credentials = world.service_role(&format!("fh-{}--dispatch-job", world.tenant())).await?;
    world.acting_as(credentials)
}

async fn queue(world: &World, name: &str) -> anyhow::Result<String> {
    let sqs = aws_sdk_sqs::Client::new(&world.administrator(world.tenant_account())?);
    let found = sqs.get_queue_url().queue_name(format!("fh-{}--{name}", world.tenant())).send().await?;
    Ok(found.queue_url().context("no such queue")?.to_owned())
}

/// Returns how many messages wait in a queue, and how many are taken but not deleted.
async fn waiting(world: &World, name: &str) -> anyhow::Result<(usize, usize)> {
    use QueueAttributeName::{ApproximateNumberOfMessages as Waiting, ApproximateNumberOfMessagesNotVisible as Hidden};
    let sqs = aws_sdk_sqs::Client::new(&world.administrator(world.tenant_account())?);
    let ask = sqs.get_queue_attributes().queue_url(queue(world, name).await?);
    let answer = ask.attribute_names(Waiting).attribute_names(Hidden).send().await?;
    let count = |name| answer.attributes().and_then(|all| all.get(&name)?.parse().ok()).unwrap_or(0);
    Ok((count(Waiting), count(Hidden)))
}

/// Returns the reasons of all refusals in the audit log of the customer's bucket.
async fn audit(world: &World, install: &Install) -> anyhow::Result<Vec<String>> {
    let reasons = world.audit_records(install).await?.into_iter().filter_map(|record| match record.event {
        AuditEvent::Refused { refusal, .. } => serde_json::to_value(refusal.reason).ok()?.as_str().map(str::to_owned),
        _ => None,
    });
    Ok(reasons.collect())
}
