//! The wire format of version 1: what is written today must stay readable, and be written the same tomorrow.
//! `FREEHOLD_UPDATE=1` writes the files anew; read the difference before you accept it.

mod approvals;
mod heads;
mod licences;
mod orders;
mod previous_version;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

use ed25519_dalek::SigningKey;
use freehold_protocol::app_version::{AppVersion, PolicyEngine};
use freehold_protocol::approval::CustomerDecision;
use freehold_protocol::canonical;
use freehold_protocol::contract::{Contract, OrderTerms, PackedTerms, ProbeTerms, SignedContract, Terms, TermsChange};
use freehold_protocol::envelope::{Delegate, Envelope};
use freehold_protocol::grant::{ArtifactGrant, BlobUrl, GrantAnswer, GrantRefusal, ManifestBytes};
use freehold_protocol::order::{
    ActionStep, ApplyManifest, ApplyTerraform, Artifact, AskedBy, BuildArtifact, Cancel, ClusterOf, CopySecrets,
    DeployStack, Descriptor, DetectDrift, InstallChart, JobImage, KeptOutputs, Mode, Order, Package, Recipe,
    RemovePart, Retired, RunAction, RunKubernetesJob, RunPulumi, SecretCopy, SignedSums, Signer, Source, StepDirectory,
    SyncImage, ToolImage, UpgradeRunner, Work,
};
use freehold_protocol::policy::{OrderPolicy, PolicyOrigin, PolicyResult};
use freehold_protocol::preflight::{CheckInstall, ExistingCluster, Finding, Permission, Verdict};
use freehold_protocol::provenance::{
    BuildFacts, ExternalParameters, InternalParameters, ResourceDescriptor, Statement, sha256,
};
use freehold_protocol::report::{
    AttemptEvent, AttemptReport, Away, AwayReason, Block, ChangeTimes, Fence, FreeActions, Hello, OpenTime, Outcome,
    Refusal, RefusalReason, Report, ReportBody, RoleProof,
};
use freehold_protocol::sealing::SealingKey;
use freehold_protocol::{BuildId, ComponentName, Digest, GrantId, JobId, KeyId, KeyUse, Timestamp, WorkflowId};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

const AT: Timestamp = Timestamp::from_millis(1_795_250_000_000);
const FENCE: Fence = Fence { dispatch: 1, receive: 2 };

/// Compares `value` with its golden file, both ways.
fn golden<T: Serialize + DeserializeOwned + PartialEq + Debug>(name: &str, value: &T) {
    let path = format!("{}/golden/{name}.json", env!("CARGO_MANIFEST_DIR"));
    let written = format!("{}\n", serde_json::to_string_pretty(value).unwrap());
    if std::env::var_os("FREEHOLD_UPDATE").is_some() {
        std::fs::write(&path, &written).unwrap();
    }

    let kept = std::fs::read_to_string(&path).unwrap_or_else(|_| panic!("golden file `{name}` is missing"));

    assert_eq!(written, kept, "`{name}` is written differently than before");
    assert_eq!(serde_json::from_str::<T>(&kept).unwrap(), *value, "`{name}` is read differently than before");
}

fn key(seed: u8) -> SigningKey {
    SigningKey::from_bytes(&[seed; 32])
}

fn workflow() -> WorkflowId {
    WorkflowId::derive("globex", "golden")
}

fn job() -> JobId {
    JobId::derive(&workflow(), "web")
}

fn descriptor(text: &str) -> Descriptor {
    Descriptor {
        media_type: "application/example".into(),
        digest: Digest::of(text.as_bytes()),
        size: text.len() as u64,
    }
}

fn artifact() -> Artifact {
    let manifest = descriptor("manifest");
    Artifact {
        digest: manifest.digest.clone(),
        media_type: manifest.media_type.clone(),
        manifests: vec![manifest],
        blobs: vec![descriptor("config"), descriptor("layer")],
        provenance: None,
    }
}

fn name(text: &str) -> ComponentName {
    text.parse().unwrap()
}

fn succeeded(sensitive: BTreeMap<String, Digest>) -> Outcome {
    Outcome::Succeeded { outputs: BTreeMap::from([("url".into(), json!("x"))]), sensitive, artifact: None }
}

fn order(work: Work) -> Order {
    Order {
        tenant: "acme".parse().unwrap(),
        install: "globex".parse().unwrap(),
        workflow: workflow(),
        job: job(),
        dispatch: 1,
        group: "component:web".parse().unwrap(),
        serial: 7,
        issued_at: AT,
        start_by: None,
        not_after: AT.plus_secs(4200),
        timeout_secs: 600,
        mode: Mode::Maintenance,
        role: None,
        asked_by: None,
        asker: None,
        asked_why: None,
        now: false,
        runner: None,
        redelivery: work.redelivery(),
        work,
        context: json!({ "nuon": { "install": { "id": "globex" } } }),
        skip_noops: false,
        sensitive_inputs: Vec::new(),
        sealed_inputs: BTreeMap::new(),
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

fn terms() -> Terms {
    serde_json::from_value(json!({
        "format": 1,
        "app": "demo",
        "roles": [
            { "role": "provision", "on": true, "policies": [{ "managed": "ReadOnlyAccess" }] },
            { "role": "break-glass", "on": false, "policies": [{ "inline": { "name": "all", "document": "{}" } }] },
        ],
        "policy_inputs": { "prefix": "demo" },
        "customer_inputs": {
            "domain": { "read_by": [{ "part": "sandbox" }, { "part": "role", "name": "provision" }] },
            "token": { "sensitive": true, "read_by": [{ "part": "component", "name": "web" }] },
        },
        "secrets": {
            "license": { "shared": true, "kubernetes": { "namespace": "shop", "name": "license" } },
            "session": { "generated": true, "read_by": [{ "part": "component", "name": "web" }] },
        },
        "hosts": ["*.amazonaws.com", "db.corp.example:5432", "registry.terraform.io"],
        "inside_hosts": ["db.corp.example:5432"],
        "actions": [
            { "name": "dump", "role": "maintenance", "schedules": ["0 3 * * *"], "reads": [{ "to": "input", "name": "domain" }], "cluster": true },
        ],
        "policies": [{
            "name": "tags", "type": "terraform_module", "engine": "opa", "components": ["net"],
            "contents": Digest::of(b"package tags"),
        }],
    }))
    .unwrap()
}

#[test]
fn contracts() {
    golden("terms", &terms());
    let mut steps = terms();
    steps.actions.iter_mut().for_each(|action| action.steps = Some(Digest::of(b"steps")));
    golden("terms-steps", &steps);
    let command = ["check", "--install", "{{ .nuon.install.id }}"].map(str::to_owned).to_vec();
    let probes = BTreeSet::from([ProbeTerms { component: name("web"), command, role: String::new() }]);
    golden("terms-probes", &Terms { probes, ..terms() });
    let contract = Contract {
        format: 1,
        app: "demo".parse().unwrap(),
        version: Digest::of(b"version"),
        terms: terms(),
        artifacts: BTreeMap::from([(name("web"), artifact().digest)]),
        steps: BTreeMap::from([("dump".parse().unwrap(), Digest::of(b"steps"))]),
    };
    let signed = SignedContract { tenant: "acme".parse().unwrap(), signed_at: AT, contract };
    golden("signed-contract", &signed);
    let delegate = Delegate {
        tenant: "acme".parse().unwrap(),
        public_key: key(2).verifying_key().into(),
        not_before: AT,
        not_after: AT.plus_secs(60),
        send_until: None,
        uses: [KeyUse::Contracts].into(),
    };
    let cert = Envelope::seal(&delegate, &[&key(1)]).unwrap();
    let seal = |signed: &SignedContract| Envelope::seal_delegated(signed, &key(2), &cert).unwrap();
    let root = key(1).verifying_key().into();

    let envelope = seal(&signed);

    assert_eq!(SignedContract::open(&envelope, &root).unwrap(), signed);
    let bytes = freehold_protocol::envelope::decode_base64(&envelope.payload).unwrap();
    assert_eq!(bytes, canonical::to_vec(&signed).unwrap());
    let late = SignedContract { signed_at: AT.plus_secs(61), ..signed };
    assert!(SignedContract::open(&seal(&late), &root).is_err(), "the key was not certified then");
    assert!(SignedContract::open(&envelope, &key(2).verifying_key().into()).is_err(), "another root");
}

fn report(body: ReportBody) -> Report {
    Report {
        tenant: "acme".parse().unwrap(),
        install: "globex".parse().unwrap(),
        runner: KeyId::of(&key(2).verifying_key()),
        at: AT,
        head: None,
        body,
    }
}

fn attempt(event: AttemptEvent) -> Report {
    report(ReportBody::Attempt(AttemptReport { job: job(), fence: FENCE, seq: 3, event }))
}

#[test]
fn control_messages() {
    golden(
        "cancel",
        &Cancel {
            tenant: "acme".parse().unwrap(),
            install: "globex".parse().unwrap(),
            job: job(),
            dispatch: 1,
            receive: Some(2),
            runner: Some(KeyId::of(&key(2).verifying_key())),
            asked_by: None,
            asker: None,
            asked_why: None,
            issued_at: AT,
            not_after: AT.plus_secs(3600),
        },
    );
    golden(
        "retired",
        &Retired {
            tenant: "acme".parse().unwrap(),
            install: "globex".parse().unwrap(),
            runner: KeyId::of(&key(2).verifying_key()),
            replaced_by: KeyId::of(&key(3).verifying_key()),
            replaced_at: AT,
            issued_at: AT.plus_secs(60),
            not_after: AT.plus_secs(3660),
        },
    );
    let granted = |answer| ArtifactGrant {
        tenant: "acme".parse().unwrap(),
        install: "globex".parse().unwrap(),
        grant: GrantId::derive(&job(), 1, 2, &artifact().digest),
        job: job(),
        fence: FENCE,
        artifact: artifact().digest,
        issued_at: AT,
        not_after: AT.plus_secs(600),
        answer,
    };
    golden(
        "grant",
        &granted(GrantAnswer::Granted {
            manifests: vec![ManifestBytes {
                media_type: "application/example".into(),
                digest: Digest::of(b"manifest"),
                bytes: "bWFuaWZlc3Q=".into(),
            }],
            blobs: vec![BlobUrl { digest: Digest::of(b"layer"), size: 5, url: "https://example.com/layer".into() }],
        }),
    );
    golden(
        "grant-refused",
        &granted(GrantAnswer::Refused { refusal: GrantRefusal::UsedBefore, reason: "grant was used before".into() }),
    );
}

fn facts() -> BuildFacts {
    BuildFacts {
        resolved: vec![ResourceDescriptor { uri: "oci://example.com/web".into(), digest: sha256(&Digest::of(b"web")) }],
        versions: BTreeMap::from([("freehold-runner".to_owned(), "0.1.0".to_owned())]),
        started_at: AT,
        finished_at: AT.plus_secs(9),
    }
}

#[test]
fn statements() {
    let external = ExternalParameters {
        app: "demo".parse().unwrap(),
        component: name("web"),
        package: Package::Image,
        source: Source::Image { reference: "example.com/web:1".into() },
    };
    let internal = InternalParameters {
        tenant: "acme".parse().unwrap(),
        build: BuildId::derive(&"demo".parse().unwrap(), &Digest::of(b"source"), &name("web")),
        job: job(),
        source_digest: Digest::of(b"source"),
    };
    golden("statement", &Statement::new(&artifact().digest, external, internal, facts()));
}

#[test]
fn reports() {
    let hello = Hello {
        public_key: key(2).verifying_key().into(),
        version: "0.1.0".into(),
        slots: 4,
        host: "i-1".into(),
        inputs: BTreeMap::new(),
        secrets: None,
        accepted_contract: None,
        proof: None,
        sealing_key: None,
        changes: None,
        decisions: Vec::new(),
        roles: None,
    };
    golden("report-hello", &report(ReportBody::Hello(hello.clone())));
    let inputs = BTreeMap::from([("InputDomainName".to_owned(), "globex.example".to_owned())]);
    golden("report-hello-inputs", &report(ReportBody::Hello(Hello { inputs, ..hello.clone() })));
    let secrets = Some(BTreeMap::from([("token".to_owned(), Digest::of(b"a keyed digest"))]));
    golden("report-hello-secrets", &report(ReportBody::Hello(Hello { secrets, ..hello.clone() })));
    let sealing_key = Some(SealingKey::from_bytes([3; 32]));
    golden("report-hello-sealing-key", &report(ReportBody::Hello(Hello { sealing_key, ..hello.clone() })));
    let accepted = Hello { accepted_contract: Some(Digest::of(b"terms")), ..hello.clone() };
    golden("report-hello-accepted-contract", &report(ReportBody::Hello(accepted)));
    let proof = RoleProof {
        at: Timestamp::from_millis(1_795_420_134_000),
        access_key_id: "ASIA0123456789ABCDEF".into(),
        session_token: "FwoGZXIvYXdz+/=".into(),
        signature: "7d".repeat(32),
    };
    golden("report-hello-proof", &report(ReportBody::Hello(Hello { proof: Some(proof), ..hello.clone() })));
    let openings = vec![
        OpenTime { from: AT, until: Some(AT.plus_secs(3600)) },
        OpenTime { from: AT.plus_secs(7200), until: None },
    ];
    let changes = ChangeTimes {
        windows: "Europe/Berlin: Mon-Fri 22:00-04:00".into(),
        freezes: "2026-12-20..2027-01-02".into(),
        held: true,
        problem: Some("parameter `ChangeFreezes`, column 1: ...".into()),
        openings,
        known_until: AT.plus_secs(10_000),
        free_actions: FreeActions::Named(vec!["health".parse().unwrap()]),
    };
    let decision = CustomerDecision {
        job: job(),
        plan: Digest::of(b"record"),
        approved: true,
        by: "arn:aws:iam::222222222222:user/eva".into(),
        at: AT,
        reason: String::new(),
    };
    golden("report-hello-decisions", &report(ReportBody::Hello(Hello { decisions: vec![decision], ..hello.clone() })));
    golden("report-hello-changes", &report(ReportBody::Hello(Hello { changes: Some(changes), ..hello.clone() })));
    let roles = BTreeMap::from(["break-glass", "provision"].map(|role| (role.parse().unwrap(), role == "provision")));
    golden("report-hello-roles", &report(ReportBody::Hello(Hello { roles: Some(roles), ..hello })));
    golden("report-heartbeat", &report(ReportBody::Heartbeat));
    golden("report-started", &attempt(AttemptEvent::Started));
    golden("report-progress", &attempt(AttemptEvent::Progress { log: "line\n".into() }));
    golden(
        "report-grant-request",
        &attempt(AttemptEvent::GrantRequest {
            grant: GrantId::derive(&job(), 1, 2, &artifact().digest),
            artifact: artifact().digest,
            missing: vec![Digest::of(b"layer")],
            round: 0,
        }),
    );
    golden(
        "report-attest-request",
        &attempt(AttemptEvent::AttestRequest {
            grant: GrantId::of_statement(&job(), FENCE, &artifact().digest),
            artifact: artifact(),
            facts: facts(),
        }),
    );
    let outcomes = [
        ("succeeded", succeeded(BTreeMap::new())),
        ("sensitive-outputs", succeeded(BTreeMap::from([("token".into(), Digest::of(b"keyed"))]))),
        (
            "built",
            Outcome::Succeeded { outputs: BTreeMap::new(), sensitive: BTreeMap::new(), artifact: Some(artifact()) },
        ),
        ("failed", Outcome::Failed { reason: "exit status 1".into(), partial: true }),
        ("blocked", Outcome::Blocked { block: Block::ModeDisabled, reason: "mode is off".into() }),
        ("interrupted", Outcome::Interrupted { reason: "the runner died".into() }),
        ("cancelled", Outcome::Cancelled),
        ("needs-approval", Outcome::NeedsApproval { plan: Box::new(approvals::proposed_plan()) }),
    ];
    let result = PolicyResult {
        name: "policies/no-eip.rego".into(),
        origin: PolicyOrigin::Customer,
        contents: Digest::of(b"text"),
        deny: vec!["aws_eip.web must stay".into()],
        warn: vec!["no tags".into()],
        failed: None,
    };
    let outcome = Outcome::Blocked { block: Block::Policy, reason: "policy `no-eip` denies this".into() };
    let (log, policies) = (String::new(), vec![result]);
    let ended = AttemptEvent::Finished { outcome, log, policies, roles_trusting_strangers: None };
    golden("report-policies", &attempt(ended));
    for (word, outcome) in outcomes {
        golden(&format!("report-{word}"), &attempt(AttemptEvent::finished(outcome, "")));
    }
    let refusal = Refusal {
        reason: RefusalReason::Replayed,
        detail: "serial 3 is older than 7".into(),
        message: Digest::of(b"message"),
        job: Some((job(), FENCE)),
        given_back: false,
        until: None,
    };
    let given_back = Refusal { reason: RefusalReason::Expired, given_back: true, ..refusal.clone() };
    let outside = Refusal { reason: RefusalReason::OutsideWindow, until: Some(AT), ..given_back.clone() };
    golden("report-refused-outside-window", &report(ReportBody::Refused(outside)));
    golden("report-refused", &report(ReportBody::Refused(refusal)));
    golden("report-refused-given-back", &report(ReportBody::Refused(given_back)));
    let away = Away { reason: AwayReason::SwitchedOff, detail: "the customer has switched this runner off".into() };
    golden("report-away", &report(ReportBody::Away(away)));
}

#[test]
fn envelopes_have_the_same_bytes_and_signatures_everywhere() {
    let delegate = Delegate {
        tenant: "acme".parse().unwrap(),
        public_key: key(3).verifying_key().into(),
        not_before: AT,
        not_after: AT.plus_secs(13 * 3600),
        send_until: Some(AT.plus_secs(30)),
        uses: [KeyUse::Orders, KeyUse::Cancels, KeyUse::Notices, KeyUse::Contracts].into(),
    };
    let certificate = Envelope::seal(&delegate, &[&key(1)]).unwrap();
    golden("envelope-certificate", &certificate);
    golden("envelope-report", &Envelope::seal(&report(ReportBody::Heartbeat), &[&key(2), &key(4)]).unwrap());
    let order = order(Work::ContainerImage(SyncImage { component: name("web"), artifact: artifact() }));
    let sealed = Envelope::seal_delegated(&order, &key(3), &certificate).unwrap();
    golden("envelope-order", &sealed);
    let texts = vec!["sealed.v1.a.b.c".to_owned()];
    golden("envelope-order-attached", &Envelope { attached: texts, ..sealed.clone() });

    let root = key(1).verifying_key().into();
    assert_eq!(sealed.open_delegated::<Order>(&root, &"acme".parse().unwrap(), AT), Ok(order));
}

#[test]
fn app_versions() {
    let version: AppVersion = serde_json::from_value(json!({
        "format": 1,
        "app": "demo",
        "inputs": [{ "name": "days", "type": "number", "default": 7 }],
        "components": [{
            "name": "web",
            "dependencies": [],
            "references": [{ "to": "input", "name": "days" }],
            "deploy_timeout_secs": 600,
            "source": { "from": "directory", "digest": Digest::of(b"source") },
            "spec": { "kind": "container_image" },
        }],
        "actions": [{
            "name": "check",
            "timeout_secs": 60,
            "triggers": [{ "on": "manual" }],
            "steps": [{ "name": "show", "command": "true" }],
        }],
        "roles": [{ "mode": "provision", "policies": [{ "managed": "ReadOnlyAccess" }] }],
    }))
    .unwrap();

    golden("app-version", &version);
    assert_eq!(
        version.digest().unwrap().as_str(),
        "sha256:50fa2fd799a26baafee88679470a1555910b8e786197a5bc5a1c2e94d95973a4"
    );
}
