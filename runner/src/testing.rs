//! Orders, identities and golden files for tests.

use std::collections::BTreeMap;

use aws_config::BehaviorVersion;
use aws_credential_types::Credentials;
use aws_credential_types::provider::SharedCredentialsProvider;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::{Signer as _, SigningKey};
use freehold_protocol::envelope::Delegate;
use freehold_protocol::order::upgrade::RUNNER_PROGRAM;
use freehold_protocol::order::{Mode, Order, Redelivery, RunAction, SignedSums, UpgradeRunner, Work};
use freehold_protocol::{Delegated, Digest, Envelope, JobId, KeyUses, Timestamp, WorkflowId};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::identity::denial::{Account, StackState};
use crate::upgrade::programs::ARCHITECTURE;

/// An account with one stack and one caller, both of which a test may change.
#[derive(Debug)]
pub(crate) struct AccountDouble {
    stack: std::sync::Mutex<StackState>,
    /// What a new session sees, after the earlier one was revoked.
    by_new_session: std::sync::Mutex<Option<StackState>>,
    caller: Result<String, String>,
}

impl AccountDouble {
    pub(crate) fn new(stack: StackState, caller: Result<&str, &str>) -> Self {
        let caller = caller.map(str::to_owned).map_err(str::to_owned);
        Self { stack: std::sync::Mutex::new(stack), by_new_session: std::sync::Mutex::default(), caller }
    }

    /// An account whose stack has this one parameter.
    pub(crate) fn with(parameter: &str, value: &str) -> Self {
        let account =
            Self::new(StackState::Gone, Ok("arn:aws:sts::222222222222:assumed-role/fh-acme--globex-prod--runner/i-1"));
        account.set(parameter, value);
        account
    }

    pub(crate) fn delete_stack(&self) {
        *self.stack.lock().unwrap() = StackState::Gone;
    }

    pub(crate) fn become_stack(&self, state: StackState) {
        *self.stack.lock().unwrap() = state;
    }

    /// Gives the stack this one parameter.
    pub(crate) fn set(&self, parameter: &str, value: &str) {
        *self.stack.lock().unwrap() = StackState::Launched([(parameter.to_owned(), value.to_owned())].into());
    }

    /// Takes the permissions of the present session away.
    pub(crate) fn revoke(&self) {
        let mut stack = self.stack.lock().unwrap();
        let refused = StackState::Unreadable("explicit deny".to_owned());
        *self.by_new_session.lock().unwrap() = Some(std::mem::replace(&mut *stack, refused));
    }
}

#[async_trait::async_trait]
impl Account for AccountDouble {
    async fn stack(&self, _: &str) -> StackState {
        self.stack.lock().unwrap().clone()
    }

    async fn stack_by_a_new_session(&self, name: &str) -> StackState {
        let seen = self.by_new_session.lock().unwrap().clone();
        match seen {
            Some(seen) => seen,
            None => self.stack(name).await,
        }
    }

    async fn caller(&self) -> Result<String, String> {
        self.caller.clone()
    }
}

/// The tenant's root key.
pub(crate) fn root() -> SigningKey {
    SigningKey::from_bytes(&[1; 32])
}

/// Returns a key that signs releases.
pub(crate) fn release_key(seed: u8) -> SigningKey {
    SigningKey::from_bytes(&[seed; 32])
}

/// The work of an upgrade to `program`, in a release that `seed` signed.
pub(crate) fn upgrade_to(program: &Digest, seed: u8) -> UpgradeRunner {
    let sums = format!("{}  {ARCHITECTURE}/{RUNNER_PROGRAM}\n", program.hex());
    let signature = STANDARD.encode(release_key(seed).sign(sums.as_bytes()).to_bytes());
    UpgradeRunner {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        program: program.clone(),
        archive: Digest::of(b"archive"),
        archive_size: 7,
        release: SignedSums { sums, signature },
        health_secs: 60,
    }
}

pub(crate) fn job_id(n: u32) -> JobId {
    format!("job_{n:020x}").parse().unwrap()
}

pub(crate) fn workflow() -> WorkflowId {
    WorkflowId::derive("globex-prod", "test")
}

/// An order for job `n` with serial `serial`, issued at second 1,000 and good until second 5,000.
pub(crate) fn order(n: u32, serial: u64) -> Order {
    Order {
        tenant: "acme".parse().unwrap(),
        install: "globex-prod".parse().unwrap(),
        workflow: workflow(),
        job: job_id(n),
        dispatch: 1,
        group: "action:check".parse().unwrap(),
        serial,
        issued_at: Timestamp::from_millis(1_000_000),
        start_by: None,
        not_after: Timestamp::from_millis(5_000_000),
        timeout_secs: 600,
        mode: Mode::Maintenance,
        role: None,
        asked_by: None,
        asker: None,
        asked_why: None,
        now: false,
        runner: None,
        redelivery: Redelivery::Resume,
        work: Work::Action(RunAction {
            action: "check".parse().unwrap(),
            steps: Vec::new(),
            directories: Vec::new(),
            env_vars: Default::default(),
            idempotent: true,
            cluster: None,
            image: String::new(),
        }),
        context: serde_json::Value::Null,
        skip_noops: false,
        sensitive_inputs: Vec::new(),
        sealed_inputs: std::collections::BTreeMap::new(),
        secrets: Vec::new(),
        kept_outputs: Vec::new(),
        tool_image: None,
        terms: None,
        receipt: None,
        policies: Vec::new(),
        approval: None,
        approved: None,
        must_understand: Default::default(),
    }
}

/// Seals `payload` as the control plane does: by a delegate key that `root` certified from second 900 to 9,000.
pub(crate) fn sealed_by<P: Delegated>(root: &SigningKey, tenant: &str, payload: &P) -> String {
    sealed_with(root, tenant, [P::USE].into(), payload)
}

/// Seals `payload` by a delegate key whose certificate is for `uses`.
pub(crate) fn sealed_with<P: Delegated>(root: &SigningKey, tenant: &str, uses: KeyUses, payload: &P) -> String {
    let delegate = SigningKey::from_bytes(&[2; 32]);
    let cert = Delegate {
        tenant: tenant.parse().unwrap(),
        public_key: delegate.verifying_key().into(),
        not_before: Timestamp::from_millis(900_000),
        not_after: Timestamp::from_millis(9_000_000),
        send_until: None,
        uses,
    };
    let cert = Envelope::seal(&cert, &[root]).unwrap();
    Envelope::seal_delegated(payload, &delegate, &cert).unwrap().to_json().unwrap()
}

pub(crate) fn sealed<P: Delegated>(payload: &P) -> String {
    sealed_by(&root(), "acme", payload)
}

/// The config of a runner whose state is in `state_dir`; no mode is switched on.
pub(crate) fn config(state_dir: &str, role: crate::config::Role) -> crate::config::Config {
    let install = if role == crate::config::Role::Build { "build" } else { "globex-prod" };
    let key: String = freehold_protocol::envelope::PublicKey::from(root().verifying_key()).into();
    let text = format!(
        r#"
        tenant = "acme"
        install = "{install}"
        region = "eu-west-1"
        orders_queue_url = "http://127.0.0.1:4566/111111111111/fh-acme--{install}.fifo"
        reports_queue_url = "http://127.0.0.1:4566/111111111111/fh-acme--reports"
        tenant_key = "{key}"
        state_dir = "{state_dir}"
        slots = 2
        sandbox = "none"
        "#
    );
    crate::config::Config::parse(&text, "runner.toml", role).unwrap()
}

/// Serves `GetSecretValue` for these secrets, each a name and a text, on a port of this machine.
pub(crate) async fn secrets_manager(kept: &'static [(&'static str, &'static str)]) -> aws_config::SdkConfig {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = vec![0; 16 * 1024];
            let mut have = 0;
            while !String::from_utf8_lossy(&request[..have]).contains("\"SecretId\":\"") {
                match stream.read(&mut request[have..]).await {
                    Ok(more) if more > 0 => have += more,
                    _ => break,
                }
            }
            let request = String::from_utf8_lossy(&request[..have]).into_owned();
            let asked = kept.iter().find(|(name, _)| request.contains(&format!("\"SecretId\":\"{name}\"")));
            let (status, body) = match asked {
                Some((name, text)) => {
                    let arn = format!("arn:aws:secretsmanager:eu-west-1:222222222222:secret:{name}-AbCdEf");
                    (200, json!({ "Name": name, "ARN": arn, "SecretString": text }))
                }
                None => (400, json!({ "__type": "ResourceNotFoundException" })),
            };
            let body = body.to_string();
            let answer = format!(
                "HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-type: application/x-amz-json-1.1\r\n\
                 content-length: {}\r\n\r\n{body}",
                body.len()
            );
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    sdk_at(endpoint)
}

/// Returns the settings of AWS clients that ask a service at `endpoint`.
pub(crate) fn sdk_at(endpoint: String) -> aws_config::SdkConfig {
    aws_config::SdkConfig::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(aws_types::region::Region::new("eu-west-1"))
        .endpoint_url(endpoint)
        .http_client(aws_smithy_http_client::Builder::new().build_http())
        .credentials_provider(SharedCredentialsProvider::new(Credentials::new("a", "b", None, None, "test")))
        .build()
}

/// Returns a client of S3 for a server that returns the status and the body that `answer` has for the head of a request.
pub(crate) async fn s3_at(answer: impl Fn(&str) -> (u16, Vec<u8>) + Send + 'static) -> aws_sdk_s3::Client {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let sdk = sdk_at(format!("http://{}", listener.local_addr().unwrap()));
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                request.push(stream.read_u8().await.unwrap());
            }
            let (status, body) = answer(&String::from_utf8_lossy(&request));
            let length = body.len();
            let head = format!("HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n");
            // Who has read enough of an object closes the connection before its end.
            let _ = stream.write_all(&[head.as_bytes(), body.as_slice()].concat()).await;
        }
    });
    aws_sdk_s3::Client::from_conf(aws_sdk_s3::config::Builder::from(&sdk).force_path_style(true).build())
}

/// Reads the golden values of a type that the runner stores in its state directory or in the bucket, as this version
/// and the version before wrote them, and writes each again. `tests/compatibility` finds the fields that no value has.
pub(crate) fn check_golden_values<T: Serialize + DeserializeOwned>(name: &str) {
    let files = [include_str!("../golden/files.json"), include_str!("../golden/previous/files.json")];
    for (text, is_now) in files.into_iter().zip([true, false]) {
        let all: BTreeMap<String, Vec<Value>> = serde_json::from_str(text).unwrap();

        assert!(!all[name].is_empty());
        for value in &all[name] {
            let read: T = serde_json::from_value(value.clone()).unwrap();
            let written = serde_json::to_value(read).unwrap();
            assert!(has_all(&written, value), "`{name}`: {value} is written as {written}");
            assert!(!is_now || written == *value, "`{name}`: {value} is written as {written}");
        }
    }
}

/// Returns whether `now` has all that `before` has.
fn has_all(now: &Value, before: &Value) -> bool {
    match (now, before) {
        (Value::Object(now), Value::Object(before)) => {
            before.iter().all(|(name, before)| now.get(name).is_some_and(|now| has_all(now, before)))
        }
        (Value::Array(now), Value::Array(before)) => {
            now.len() == before.len() && now.iter().zip(before).all(|(now, before)| has_all(now, before))
        }
        (now, before) => now == before,
    }
}
