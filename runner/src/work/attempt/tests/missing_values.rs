//! Jobs for which this account lacks a value: they end before they start, and their reports name the component.

use freehold_protocol::order::{Artifact, KeptOutputs, SyncImage};
use serde_json::json;

use super::*;
use crate::secrets::app_secrets::AppSecrets;
use crate::secrets::sensitive_inputs::SensitiveInputs;
use crate::testing::secrets_manager;

fn order_of_component(n: u32) -> Order {
    let artifact = Artifact {
        digest: Digest::of(b"image"),
        media_type: String::new(),
        manifests: Vec::new(),
        blobs: Vec::new(),
        provenance: None,
    };
    let work = Work::ContainerImage(SyncImage { component: "api".parse().unwrap(), artifact });
    Order { work, ..order(n, u64::from(n)) }
}

/// Returns the reasons of the jobs that failed.
fn reasons(world: &World) -> Vec<String> {
    let reason = |body: ReportBody| match body {
        ReportBody::Attempt(report) => match report.event {
            AttemptEvent::Finished { outcome: Outcome::Failed { reason, .. }, .. } => Some(reason),
            _ => None,
        },
        _ => None,
    };
    world.reports().into_iter().filter_map(reason).collect()
}

// The calls to Secrets Manager are real, so the clock is not paused.
#[tokio::test]
async fn a_missing_input_secret_or_output_fails_the_job_before_its_start_and_the_reason_names_the_component() {
    let mut world = World::new(Play::Succeed);
    let account = secrets_manager(&[]).await;
    let key = freehold_sealing::OpeningKey::from_bytes(&[7; 32]);
    let agent = Arc::get_mut(&mut world.agent).unwrap();
    let (tenant, install) = (agent.config.tenant.clone(), agent.config.install.clone());
    agent.sensitive_inputs = SensitiveInputs::new(&account, tenant.clone(), install.clone(), key);
    agent.app_secrets = AppSecrets::new(&account, tenant, install);
    let input = json!([{ "name": "token", "type": "string", "required": true, "sensitive": true, "customer": true }]);
    let secret = json!([{ "name": "api_key", "required": true }]);
    let outputs = KeptOutputs {
        part: "net".parse().unwrap(),
        sandbox: false,
        var_name: String::new(),
        serial: 1,
        job: job_id(1),
        fence: Fence { dispatch: 1, receive: 1 },
        digests: Default::default(),
    };

    for order in [
        Order { sensitive_inputs: serde_json::from_value(input).unwrap(), ..order_of_component(1) },
        Order { secrets: serde_json::from_value(secret).unwrap(), ..order_of_component(2) },
        Order { kept_outputs: vec![outputs], ..order_of_component(3) },
    ] {
        world.queue.send(sealed(&order));
        world.until_deleted().await;
    }

    assert_eq!(world.begun(), 0);
    assert_eq!(
        reasons(&world),
        [
            "component `api`: input `token` is required and has no value in this account; launch the current template \
             of the install stack with parameter `InputToken`",
            "component `api`: secret `api_key` has no value in this account; launch the current template of the install \
             stack with parameter `AppSecretApiKey`",
            "component `api`: this runner's config names no bucket; write the install stack's `BucketName` into the \
             key `bucket`",
        ]
    );
}
