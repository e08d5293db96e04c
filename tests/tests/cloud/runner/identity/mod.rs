//! Who becomes the runner of an install: whoever AWS says has its role, and nobody else. The proofs are real signatures,
//! which the emulated STS verifies.

mod succession;

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use anyhow::Context as _;
use aws_credential_types::Credentials;
use aws_sdk_sqs::types::QueueAttributeName;
use ed25519_dalek::SigningKey;
use freehold_app::ports::{Caller, CallerIdentity as _, PortError};
use freehold_aws::caller_identity::StsCallerIdentity;
use freehold_protocol::Envelope;
use freehold_protocol::envelope::PublicKey;
use freehold_protocol::report::{CallerRequest, Hello, Report, ReportBody, RoleProof};
use freehold_runner::identity::role_proof::signed;
use freehold_skips::have;
use freehold_tests::harness::forger::now;
use freehold_tests::harness::wait::{SOON, until};
use freehold_tests::harness::{Capability, Install, Needs, Proxies, World, app, clients};
use freehold_tests::proxy::parse_rules;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

const NEEDS: Needs = Needs { cloud: &[Capability::HttpApi, Capability::IamEnforced], programs: &["bwrap"] };
const RUNNER: &str = "fh-acme--globex--runner";

/// The key that an attacker wants to be believed.
fn stranger() -> SigningKey {
    SigningKey::from_bytes(&[11; 32])
}

fn request(key: &SigningKey) -> anyhow::Result<CallerRequest> {
    let key: PublicKey = key.verifying_key().into();
    Ok(CallerRequest::new("eu-west-1", &"acme".parse()?, &"globex".parse()?, &key)?)
}

/// Returns the proof with which these credentials vouch for `key`, made this many seconds ago.
fn proof(credentials: &Credentials, key: &SigningKey, secs_ago: u64) -> anyhow::Result<RoleProof> {
    let at = SystemTime::now() - Duration::from_secs(secs_ago);
    signed(&request(key)?, credentials, at).map_err(anyhow::Error::msg)
}

/// Returns the hello of `key`, which it signed.
fn hello(key: &SigningKey, proof: Option<RoleProof>) -> anyhow::Result<String> {
    let public_key: PublicKey = key.verifying_key().into();
    let (runner, inputs) = (public_key.key_id(), BTreeMap::new());
    let hello = Hello {
        public_key,
        version: "9.9.9".to_owned(),
        slots: 1,
        host: "stranger".to_owned(),
        inputs,
        secrets: None,
        accepted_contract: None,
        proof,
        sealing_key: None,
        changes: None,
        decisions: Vec::new(),
        roles: None,
    };
    let (tenant, install) = ("acme".parse()?, "globex".parse()?);
    let report = Report { tenant, install, runner, at: now()?, head: None, body: ReportBody::Hello(hello) };
    Ok(Envelope::seal(&report, &[key])?.to_json()?)
}

/// Makes a role that the administrator of its account may take, and returns its credentials.
async fn taken(world: &World, account: &str, name: &str) -> anyhow::Result<Credentials> {
    let iam = aws_sdk_iam::Client::new(&world.administrator(account)?);
    let trust = format!(
        r#"{{"Version": "2012-10-17", "Statement": [{{"Effect": "Allow", "Action": "sts:AssumeRole",
        "Principal": {{"AWS": "arn:aws:iam::{account}:root"}}}}]}}"#
    );
    iam.create_role().role_name(name).assume_role_policy_document(trust).send().await.context("the role")?;
    world.role(account, name).await
}

async fn live_install(world: &World) -> anyhow::Result<Install> {
    world.vendor(&["app", "sync", &app::small(world.directory())?.display().to_string()]).await?;
    world.install("globex", "small").await
}

async fn queue(world: &World, name: &str) -> anyhow::Result<(aws_sdk_sqs::Client, String)> {
    let sqs = aws_sdk_sqs::Client::new(&world.administrator(world.tenant_account())?);
    let found = sqs.get_queue_url().queue_name(format!("fh-acme--{name}")).send().await?;
    Ok((sqs, found.queue_url().context("no such queue")?.to_owned()))
}

/// Returns how many messages a queue has, taken ones included.
async fn length(world: &World, name: &str) -> anyhow::Result<usize> {
    use QueueAttributeName::{ApproximateNumberOfMessages as Waiting, ApproximateNumberOfMessagesNotVisible as Hidden};
    let (sqs, url) = queue(world, name).await?;
    let answer =
        sqs.get_queue_attributes().queue_url(url).attribute_names(Waiting).attribute_names(Hidden).send().await?;
    let count = |name| answer.attributes().and_then(|all| all.get(&name)?.parse::<usize>().ok()).unwrap_or(0);
    Ok(count(Waiting) + count(Hidden))
}

async fn send(world: &World, body: &str) -> anyhow::Result<()> {
    let (sqs, url) = queue(world, "reports").await?;
    sqs.send_message().queue_url(url).message_body(body).send().await?;
    Ok(())
}

async fn runner_key(world: &World) -> anyhow::Result<Value> {
    Ok(world.vendor(&["install", "show", "globex"]).await?["runner"]["key"].clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_without_the_customers_role_becomes_the_runner() -> anyhow::Result<()> {
    let Some(world) = World::start("cloud_identity.roles", NEEDS).await? else { return Ok(()) };
    let install = live_install(&world).await?;
    let runner = world.runner(&install).await?;
    world.provisioned(&install).await?;
    let (customer, vendor, own) = (install.account.as_str(), world.tenant_account(), runner_key(&world).await?);
    let honest = world.role(customer, RUNNER).await?;
    let key = stranger();
    // All that the vendor's account has: its functions' roles, and a role with the name of the customer's.
    let function = world.service_role("fh-acme--accept-report").await?;
    let namesake = taken(&world, vendor, RUNNER).await?;
    let others = taken(&world, customer, "fh-acme--other--runner").await?;
    let mut altered = proof(&honest, &key, 0)?;
    altered.session_token = "FwoGZXIvYXdz".to_owned();

    let dead = [
        hello(&key, None)?,
        hello(&key, Some(proof(&function, &key, 0)?))?,
        hello(&key, Some(proof(&namesake, &key, 0)?))?,
        hello(&key, Some(proof(&others, &key, 0)?))?,
        hello(&key, Some(proof(&world.administrator_keys(customer)?, &key, 0)?))?,
        // A proof that the customer's role made for the runner's own key, beside another key.
        hello(&key, Some(proof(&honest, &SigningKey::from_bytes(&[12; 32]), 0)?))?,
        hello(&key, Some(RoleProof { at: now()?.plus_secs(60), ..proof(&honest, &key, 0)? }))?,
        hello(&key, Some(altered))?,
    ];
    for body in &dead {
        send(&world, body).await?;
    }
    let all = || async { Ok((length(&world, "dead").await? == dead.len()).then_some(())) };
    until("each of them is a dead letter", SOON, all).await?;
    // Too old to be checked: neither believed nor kept.
    send(&world, &hello(&key, Some(proof(&honest, &key, 16 * 60)?))?).await?;
    until("the reports queue is empty", SOON, || async { Ok((length(&world, "reports").await? == 0).then_some(())) })
        .await?;

    assert_eq!(runner_key(&world).await?, own, "{}", runner.log());
    assert_eq!(length(&world, "dead").await?, dead.len());
    let run = world.vendor(&["action", "run", "globex", "say"]).await?;
    assert_eq!(run["state"], "succeeded", "{run}");
    // The same key with the role itself: the customer's account decides who has it.
    send(&world, &hello(&key, Some(proof(&honest, &key, 0)?))?).await?;
    until("the key with the role is the runner's", SOON, || async {
        Ok((runner_key(&world).await? != own).then_some(()))
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_announces_itself_while_sts_fails_and_no_hello_is_lost() -> anyhow::Result<()> {
    if !have(&["bwrap"]) {
        return Ok(());
    }
    let proxies = Proxies::start(7).await?;
    let world = World::start_behind(&proxies, None).await?;
    let install = live_install(&world).await?;
    proxies.functions.set_faults(7, parse_rules("sts.GetCallerIdentity 1 error")?);

    let _runner = world.runner(&install).await?;
    let counts = || async { Ok((proxies.functions.counts().injected("sts.*") >= 8).then_some(())) };
    until("STS has failed some times", SOON, counts).await?;
    let during = (length(&world, "dead").await?, runner_key(&world).await?);
    proxies.functions.set_faults(7, Vec::new());

    assert_eq!(during, (0, Value::Null), "a hello is dead, or was believed without STS");
    let provisioned = world.provisioned(&install).await?;
    assert_eq!(provisioned["state"], "succeeded", "{provisioned}");
    assert_eq!(length(&world, "dead").await?, 0);
    Ok(())
}

/// Answers every request as `answer` says, on loopback.
async fn server(answer: &'static str) -> anyhow::Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut request = vec![0; 64 << 10];
                let mut read = 0;
                // The body ends with the version of the API.
                while !request[..read].ends_with(b"Version=2011-06-15") {
                    match stream.read(&mut request[read..]).await {
                        Ok(more) if more > 0 => read += more,
                        _ => return,
                    }
                }
                let _ = stream.write_all(answer.as_bytes()).await;
            });
        }
    });
    Ok(url)
}

macro_rules! answer {
    ($status:literal, $body:literal) => {
        concat!("HTTP/1.1 ", $status, "\r\nconnection: close\r\ncontent-type: text/xml\r\n\r\n", $body)
    };
}

async fn asked(answer: &'static str) -> anyhow::Result<Result<Caller, PortError>> {
    let credentials = Credentials::new("ASIA0123456789ABCDEF", "secret", Some("token".to_owned()), None, "test");
    let config = clients::config(Some(&server(answer).await?), credentials.clone())?;
    let key = stranger();
    Ok(StsCallerIdentity::new(&config).caller(&request(&key)?, &proof(&credentials, &key, 0)?).await)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_not_of_sts_says_nothing() -> anyhow::Result<()> {
    for answer in [
        answer!("200 OK", "<html><body>Welcome to our network</body></html>"),
        answer!("200 OK", "{\"Account\": \"222222222222\", \"Arn\": \"arn:aws:sts::222222222222:assumed-role/r/s\"}"),
        answer!("200 OK", ""),
        answer!("200 OK", "<GetCallerIdentityResponse><GetCallerIdentityResult/></GetCallerIdentityResponse>"),
        answer!("200 OK", "<AssumeRoleResponse><Arn>x</Arn></AssumeRoleResponse>"),
        answer!("302 Found", ""),
        answer!("403 Forbidden", "<html>blocked by policy</html>"),
        answer!("407 Proxy Authentication Required", ""),
        answer!("400 Bad Request", "<ErrorResponse><Error><Code>Throttling</Code></Error></ErrorResponse>"),
        answer!(
            "500 Internal Server Error",
            "<ErrorResponse><Error><Code>SignatureDoesNotMatch</Code></Error></ErrorResponse>"
        ),
        answer!("503 Service Unavailable", ""),
    ] {
        let found = asked(answer).await?;
        assert!(matches!(found, Err(PortError::Transient { .. })), "{answer}: {found:?}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_sts_says_about_a_signature_is_told_apart() -> anyhow::Result<()> {
    let known = asked(answer!(
        "200 OK",
        "<GetCallerIdentityResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><GetCallerIdentityResult>\
         <Arn>arn:aws:sts::222222222222:assumed-role/r/s</Arn><UserId>AROA:s</UserId><Account>222222222222</Account>\
         </GetCallerIdentityResult></GetCallerIdentityResponse>"
    ))
    .await?;
    let refused = asked(answer!(
        "403 Forbidden",
        "<ErrorResponse><Error><Type>Sender</Type><Code>SignatureDoesNotMatch</Code><Message>no</Message></Error></ErrorResponse>"
    ))
    .await?;
    let expired = asked(answer!(
        "403 Forbidden",
        "<ErrorResponse><Error><Type>Sender</Type><Code>ExpiredToken</Code><Message>old</Message></Error></ErrorResponse>"
    ))
    .await?;

    let arn = "arn:aws:sts::222222222222:assumed-role/r/s".to_owned();
    assert_eq!(known?, Caller::Known { account: "222222222222".to_owned(), arn });
    assert!(matches!(refused?, Caller::Refused(reason) if reason.contains("SignatureDoesNotMatch")));
    assert_eq!(expired?, Caller::Expired);
    Ok(())
}
