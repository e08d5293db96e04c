//! The install stack of an app that asks the customer nothing and names no roles. The checks in `tests/infra`, `tests/iam`
//! and `tests/stacks` read its golden file.

use ed25519_dalek::SigningKey;
use freehold_app::stack::render_stack::{Place, RunnerProgram, template};
use freehold_domain::install::{Install, Serves};
use freehold_protocol::app_version::AppVersion;
use freehold_protocol::envelope::PublicKey;
use freehold_protocol::{Digest, Timestamp};
use serde_json::json;

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/golden/install.yaml");

/// The names and accounts that distinguish one install stack of the app from another.
#[derive(Clone, Copy)]
pub(super) struct Names {
    tenant: &'static str,
    tenant_account: &'static str,
    install: &'static str,
    account: &'static str,
}

/// The names in the golden file; `tests/infra/reading/templates.py` repeats them.
pub(super) const ACME: Names =
    Names { tenant: "acme", tenant_account: "111111111111", install: "globex-prod", account: "222222222222" };

pub(super) fn app() -> AppVersion {
    let tables = json!({ "Version": "2012-10-17", "Statement": [
        { "Effect": "Allow", "Action": ["dynamodb:CreateTable", "iam:CreateRole", "iam:GetRole"], "Resource": "*" },
    ] });
    serde_json::from_value(json!({
        "format": 1,
        "app": "shop",
        "roles": [{ "mode": "provision", "policies": [
            { "managed": "AmazonS3FullAccess" },
            { "inline": { "name": "tables", "document": tables.to_string() } },
        ] }],
    }))
    .unwrap()
}

fn key() -> PublicKey {
    SigningKey::from_bytes(&[0; 32]).verifying_key().into()
}

/// Returns a tenant in `region`.
pub(super) fn place(names: Names, region: &str) -> Place {
    let Names { tenant, tenant_account, install, .. } = names;
    let queue = format!("https://sqs.{region}.amazonaws.com/{tenant_account}/fh-{tenant}--");
    Place {
        tenant: tenant.parse().unwrap(),
        account: tenant_account.parse().unwrap(),
        region: region.to_owned(),
        orders_queue_url: format!("{queue}{install}.fifo"),
        reports_queue_url: format!("{queue}reports"),
        root_key: key(),
        second_root_key: None,
        runner: Some(RunnerProgram {
            url: "https://releases.example/freehold-runner".to_owned(),
            sha256: "0".repeat(64),
        }),
    }
}

/// Returns an install of the app in `eu-west-1`.
pub(super) fn install(names: Names) -> Install {
    let serves = Serves::App { app: app().app, version: None };
    let (id, account) = (names.install.parse().unwrap(), names.account.parse().unwrap());
    Install::new(id, serves, account, "eu-west-1".to_owned(), Timestamp::from_millis(0))
}

/// Returns the stack of an install whose tenant is in `region`; the install is in `eu-west-1`.
fn rendered(names: Names, region: &str) -> String {
    template(&place(names, region), &install(names), &Digest::of(b""), &app()).unwrap()
}

#[test]
fn the_machine_is_of_the_type_that_the_app_names_if_the_runner_can_run_there() {
    let of = |machine: &str| {
        let mut version = app();
        let runner = json!({ "runner_type": "aws", "instance_type": machine });
        version.runner = Some(serde_json::from_value(runner).unwrap());
        template(&place(ACME, "eu-west-1"), &install(ACME), &Digest::of(b""), &version).unwrap()
    };
    let other = |machine: &str| {
        rendered(ACME, "eu-west-1").replace("    Default: t4g.small\n", &format!("    Default: {machine}\n"))
    };

    assert!(of("t3a.xlarge") == other("t4g.xlarge"));
    assert!(of("m7g.large") == other("m7g.large"));
    for unusable in ["", "p3.2xlarge", "t4g.small\n    NoEcho: true", "{{ .tenant }}"] {
        assert!(of(unusable) == rendered(ACME, "eu-west-1"), "{unusable}");
    }
}

#[test]
fn the_golden_file_is_what_the_renderer_makes() {
    let stack = rendered(ACME, "eu-west-1");

    if std::env::var_os("FREEHOLD_UPDATE").is_some() {
        std::fs::write(GOLDEN, &stack).unwrap();
    }
    let golden = std::fs::read_to_string(GOLDEN).unwrap_or_default();
    assert!(stack == golden, "the golden stack is out of date; run `FREEHOLD_UPDATE=1 cargo test -p freehold-app`");
}

/// `tests/infra/reading/templates.py` makes the stacks of other installs in this way.
#[test]
fn the_stack_of_another_install_differs_in_its_names_alone() {
    let other = Names { tenant: "umbrella", tenant_account: "333333333333", install: "hooli", account: "444444444444" };

    let renamed = rendered(ACME, "eu-west-1")
        .replace(ACME.tenant, other.tenant)
        .replace(ACME.tenant_account, other.tenant_account)
        .replace(ACME.install, other.install)
        .replace(ACME.account, other.account);

    assert!(rendered(other, "eu-west-1") == renamed);
}

#[test]
fn endpoints_are_not_offered_when_the_queues_are_in_another_region() {
    let choices = |stack: &str| {
        let (_, parameter) = stack.split_once("\n  PrivateEndpoints:\n").unwrap();
        parameter.lines().find_map(|line| line.trim().strip_prefix("AllowedValues: ")).unwrap().to_owned()
    };

    assert_eq!(choices(&rendered(ACME, "eu-west-1")), r#"["true", "false"]"#);
    assert_eq!(choices(&rendered(ACME, "us-east-1")), r#"["false"]"#);
}
