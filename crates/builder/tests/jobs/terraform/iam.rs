//! A module that makes a role: its provider calls IAM through the runner's answers.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use aws_credential_types::Credentials;
use aws_credential_types::provider::SharedCredentialsProvider;
use freehold_protocol::order::{Artifact, DetectDrift, RemovePart, Work};
use freehold_protocol::report::Outcome;
use freehold_protocol::terraform::PLATFORMS;
use serde_json::{Value, json};

use super::{Place, apply};
use crate::builds::built;
use crate::fixture::{ACCOUNT, Bench, IamRecords, outputs, reason};

const MODULE: &str = r#"
terraform {
  required_providers {
    note = {
      source  = "providers.example/acme/note"
      version = "~> 1.0"
    }
  }
}
variable "trust" { type = string }
variable "permissions" { type = string }
resource "note_role" "app" {
  name        = "app"
  trust       = var.trust
  permissions = var.permissions
}
output "arn" { value = note_role.app.arn }
output "path" { value = note_role.app.path }
output "boundary" { value = note_role.app.boundary }
"#;
const BOUNDARY: &str = "fh-acme--globex-prod--boundary";
const PROVISION: &str = "fh-acme--globex-prod--provision";

/// Returns the role that the module made, as IAM has it.
async fn role(iam: &aws_sdk_iam::Client) -> Option<aws_sdk_iam::types::Role> {
    Box::pin(iam.get_role().role_name("app").send()).await.ok()?.role
}

fn policy(statement: Value) -> String {
    json!({ "Version": "2012-10-17", "Statement": [statement] }).to_string()
}

fn trust(account: &str) -> String {
    let principal = json!({ "AWS": format!("arn:aws:iam::{account}:root") });
    policy(json!({ "Effect": "Allow", "Principal": principal, "Action": "sts:AssumeRole" }))
}

fn permissions(action: &str) -> String {
    policy(json!({ "Effect": "Allow", "Action": action, "Resource": "*" }))
}

/// A job in a mode of the install, so that its programs have the runner's IAM.
struct Module {
    bench: Bench,
    records: Arc<IamRecords>,
}

impl Module {
    /// Makes the role of the mode, which may do everything, and a job in a session of it.
    async fn new(place: &Place, artifact: &Artifact) -> Self {
        let mut bench = place.runner(artifact);
        let iam = aws_sdk_iam::Client::new(&place.cloud.customer);
        let role = iam.create_role().role_name(PROVISION).assume_role_policy_document(trust(ACCOUNT));
        Box::pin(role.send()).await.unwrap();
        let policy = iam.put_role_policy().role_name(PROVISION).policy_name("all").policy_document(permissions("*"));
        Box::pin(policy.send()).await.unwrap();
        let provision = format!("arn:aws:iam::{ACCOUNT}:role/{PROVISION}");
        let session = aws_sdk_sts::Client::new(&place.cloud.customer).assume_role().role_arn(&provision);
        let session = Box::pin(session.role_session_name("job").send()).await.unwrap().credentials.unwrap();
        let (id, secret, token) = (session.access_key_id, session.secret_access_key, session.session_token);
        // The SDK takes credentials of an endpoint only with an expiry.
        let end = SystemTime::now() + Duration::from_secs(3600);
        let keys = Credentials::new(id, secret, Some(token), Some(end), "test");
        bench.job.credentials = SharedCredentialsProvider::new(keys);
        bench.change_config(|config| config.modes = serde_json::from_value(json!({ "provision": provision })).unwrap());
        let records = Arc::<IamRecords>::default();
        bench.job.iam = records.clone();
        Self { bench, records }
    }

    async fn apply(&mut self, trust: String, permissions: String) -> (Outcome, String) {
        self.bench.next_attempt();
        self.bench.change_order(|order| {
            let Work::TerraformModule(module) = &mut order.work else { panic!("a module") };
            module.vars = [("trust".to_owned(), trust.into()), ("permissions".to_owned(), permissions.into())].into();
        });
        Box::pin(apply(&self.bench)).await
    }

    /// Checks the module for drift, as the deploy before it left the order.
    async fn check(&mut self) -> (Outcome, String) {
        self.bench.next_attempt();
        let deploy = self.bench.job.order.work.clone();
        let what = Box::new(deploy.clone());
        self.bench.change_order(|order| order.work = Work::DetectDrift(DetectDrift { what }));
        let checked = Box::pin(apply(&self.bench)).await;
        self.bench.change_order(|order| order.work = deploy);
        checked
    }

    async fn remove(&mut self) -> (Outcome, String) {
        self.bench.next_attempt();
        self.bench.change_order(|order| {
            let what = Box::new(order.work.clone());
            order.work = Work::Remove(RemovePart { what, destroy_data: false, removes_policies: false });
        });
        Box::pin(apply(&self.bench)).await
    }
}

#[tokio::test]
async fn what_somebody_changed_by_hand_is_found_without_values_and_repaired_by_a_deploy() {
    const TEST: &str = "terraform::iam::what_somebody_changed_by_hand_is_found_without_values_and_repaired_by_a_deploy";
    let Some(place) = Place::here(TEST).await else { return };
    place.mirror.offer("1.0.0", &PLATFORMS);
    let iam = aws_sdk_iam::Client::new(&place.cloud.customer);
    let boundary = iam.create_policy().policy_name(BOUNDARY).policy_document(permissions("*"));
    Box::pin(boundary.send()).await.unwrap();
    let artifact = built(Box::pin(place.build(&[("main.tf", MODULE)])).await.0);
    let mut module = Box::pin(Module::new(&place, &artifact)).await;
    let (made, log) = module.apply(trust(ACCOUNT), permissions("s3:ListAllMyBuckets")).await;
    assert!(matches!(made, Outcome::Succeeded { .. }), "{made:?} {log}");

    let (clean, log_of_clean) = module.check().await;
    let by_hand = iam.put_role_policy().role_name("app").policy_name("note");
    Box::pin(by_hand.policy_document(permissions("sqs:DeleteQueue")).send()).await.unwrap();
    let (drifted, log_of_drifted) = module.check().await;
    let (again, _) = module.check().await;
    let inline = async || {
        let policy = Box::pin(iam.get_role_policy().role_name("app").policy_name("note").send()).await.unwrap();
        policy.policy_document
    };
    let untouched = inline().await;
    let (repaired, _) = module.apply(trust(ACCOUNT), permissions("s3:ListAllMyBuckets")).await;
    let (after, _) = module.check().await;
    Box::pin(iam.delete_role_policy().role_name("app").policy_name("note").send()).await.unwrap();
    Box::pin(iam.delete_role().role_name("app").send()).await.unwrap();
    let (gone, _) = module.check().await;

    let role = |change: &str| json!({ "address": "note_role.app", "kind": "note_role", "change": change });
    let mut changed = role("update");
    changed["attributes"] = json!(["permissions"]);
    assert_eq!(outputs(clean), json!({ "drift": { "resources": [] } }), "{log_of_clean}");
    let found = json!({ "drift": { "resources": [changed] } });
    assert_eq!((outputs(drifted), outputs(again)), (found.clone(), found), "{log_of_drifted}");
    assert!(
        log_of_drifted.contains("drift: the next deploy would `update` note_role.app: permissions"),
        "{log_of_drifted}"
    );
    assert!(!log_of_drifted.contains("DeleteQueue"), "a check tells no value: {log_of_drifted}");
    assert!(untouched.contains("DeleteQueue"), "a check repairs nothing: {untouched}");
    assert!(matches!(repaired, Outcome::Succeeded { .. }), "{repaired:?}");
    assert_eq!(outputs(after), json!({ "drift": { "resources": [] } }));
    assert_eq!(outputs(gone), json!({ "drift": { "resources": [role("create")] } }));
}

#[tokio::test]
async fn a_role_of_a_module_is_made_under_the_ceiling_planned_again_changed_and_destroyed() {
    const TEST: &str =
        "terraform::iam::a_role_of_a_module_is_made_under_the_ceiling_planned_again_changed_and_destroyed";
    let Some(place) = Place::here(TEST).await else { return };
    place.mirror.offer("1.0.0", &PLATFORMS);
    let iam = aws_sdk_iam::Client::new(&place.cloud.customer);
    let boundary = iam.create_policy().policy_name(BOUNDARY).policy_document(permissions("*"));
    Box::pin(boundary.send()).await.unwrap();
    let artifact = built(Box::pin(place.build(&[("main.tf", MODULE)])).await.0);
    let mut module = Box::pin(Module::new(&place, &artifact)).await;

    let (made, log) = module.apply(trust(ACCOUNT), permissions("s3:ListAllMyBuckets")).await;
    println!("{log}");
    let made_role = role(&iam).await.unwrap();
    let (again, log_of_again) = module.apply(trust(ACCOUNT), permissions("s3:ListAllMyBuckets")).await;
    let (changed, log_of_changed) = module.apply(trust(ACCOUNT), permissions("sqs:ListQueues")).await;
    let inline = iam.get_role_policy().role_name("app").policy_name("note");
    let inline = Box::pin(inline.send()).await.unwrap().policy_document;
    let (planned, _) = module.apply(trust("333333333333"), permissions("sqs:ListQueues")).await;
    // The runner refuses the trust too, so that a customer who loosens the policy loosens the policy alone.
    module.bench.change_config(|config| config.policies.loosened = ["no-strangers".to_owned()].into());
    let (stranger, log_of_stranger) = module.apply(trust("333333333333"), permissions("sqs:ListQueues")).await;
    let trusts = role(&iam).await.unwrap().assume_role_policy_document;
    let (removed, log_of_removed) = module.remove().await;

    let arn = format!("arn:aws:iam::{ACCOUNT}:role/freehold/acme--globex-prod/app");
    let seen = json!({ "arn": arn, "path": "/", "boundary": "" });
    assert_eq!(outputs(made), seen);
    assert_eq!((made_role.arn(), made_role.path()), (arn.as_str(), "/freehold/acme--globex-prod/"));
    let boundary = made_role.permissions_boundary().and_then(|boundary| boundary.permissions_boundary_arn());
    assert_eq!(boundary, Some(format!("arn:aws:iam::{ACCOUNT}:policy/{BOUNDARY}").as_str()));
    let mut tags: Vec<_> = made_role.tags().iter().map(|tag| (tag.key(), tag.value())).collect();
    tags.sort_unstable();
    assert_eq!(tags, [("by", "module"), ("freehold:install", "globex-prod"), ("freehold:tenant", "acme")]);
    assert!(log_of_again.contains("0 to create, 0 to update, 0 to replace, 0 to delete"), "{log_of_again}");
    assert_eq!(outputs(again), seen);
    assert!(log_of_changed.contains("0 to create, 1 to update, 0 to replace, 0 to delete"), "{log_of_changed}");
    assert!(inline.contains("sqs%3AListQueues"), "{inline}");
    assert_eq!(outputs(changed), seen);
    assert!(matches!(&planned, Outcome::Blocked { reason, .. } if reason.contains("`no-strangers`")), "{planned:?}");
    let (why, partial) = reason(stranger);
    assert!(why.contains("`terraform apply`") && partial, "{why}");
    assert!(log_of_stranger.contains("outside of the account"), "{log_of_stranger}");
    assert!(!trusts.unwrap().contains("333333333333"));
    assert_eq!(outputs(removed), json!({}), "{log_of_removed}");
    assert!(role(&iam).await.is_none());
    let records = module.records.all();
    for wanted in ["CreateRole app", "PutRolePolicy app", "DeleteRole app", "used GetRole"] {
        assert!(records.iter().any(|record| record.starts_with(wanted)), "{wanted}: {records:?}");
    }
}
