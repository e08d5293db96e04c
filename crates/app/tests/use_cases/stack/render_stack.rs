//! The install stack: rendering is deterministic, fills every placeholder, and does not change a vendor's text.

use freehold_app::Kind;
use freehold_app::stack::render_stack::RenderStack;
use freehold_protocol::Digest;
use freehold_protocol::app_version::{AppVersion, Reference, RolePolicy, Secret};
use serde_json::{Value, json};

use crate::support::{World, app, globex};

/// Filled in from inputs of every kind, with texts that try to be more than texts; `tests/infra` reads it too.
const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/golden/install-with-inputs.yaml");

/// A text that would end quotes, lines, flows and comments, name placeholders and functions, or bring keys of its own.
const HOSTILE: &str = "%{TENANT_KEY} \" }, Evil: {Type: String}\n  Evil: !Sub \"${AWS::AccountId}\" \\ # \u{2028}é…";

async fn with_inputs(inputs: Value, groups: Value, named_roles: Value) -> World {
    let version = app::document();
    with_questions(version, inputs, groups, named_roles).await
}

async fn with_questions(mut version: AppVersion, inputs: Value, groups: Value, named_roles: Value) -> World {
    let mut world = World::with_app().await;
    world.create().await;
    world.run().await;
    version.inputs = serde_json::from_value(inputs).unwrap();
    version.input_groups = serde_json::from_value(groups).unwrap();
    version.named_roles = serde_json::from_value(named_roles).unwrap();
    world.sync(&version).await;
    world
}

/// Returns why a version with these inputs cannot be synced.
async fn refused(inputs: Value) -> String {
    let mut version = app::document();
    version.inputs = serde_json::from_value(inputs).unwrap();
    unsynced(&version).await
}

async fn unsynced(version: &AppVersion) -> String {
    let error = World::with_app().await.try_sync(version).await.unwrap_err();
    assert_eq!(error.kind, Kind::Invalid);
    error.message
}

/// Returns one input of the customer.
fn asked(name: &str, kind: &str, more: Value) -> Value {
    let mut input = json!({ "name": name, "type": kind, "customer": true });
    input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    input
}

/// Returns secrets of every kind, some with hostile texts.
fn secrets() -> Vec<Secret> {
    serde_json::from_value(json!([
        { "name": "admin_password", "required": true, "description": HOSTILE, "display_name": HOSTILE },
        { "name": "api_key", "description": "read by the app itself" },
        { "name": "certificate", "format": "base64" },
        { "name": "session-key", "auto_generate": true },
    ]))
    .unwrap()
}

/// Returns a version whose provision role has this inline policy.
fn with_policy(document: &str) -> AppVersion {
    let mut version = app::document();
    version.roles[0].policies.push(RolePolicy::Inline { name: "extra one".into(), document: document.into() });
    version
}

/// Returns the JSON after `key` in the template's line of the provision role.
fn after<'a>(template: &'a str, key: &str) -> impl Iterator<Item = Value> + 'a {
    let key = format!("      {key}: ");
    let lines: Vec<_> = template.lines().filter_map(|line| line.strip_prefix(key.as_str())).collect();
    lines.into_iter().filter_map(|json| serde_json::from_str(json).ok())
}

#[tokio::test]
async fn the_same_install_and_version_give_the_same_bytes() {
    let mut world = World::with_app().await;
    world.create().await;
    world.run().await;

    let first = world.render_stack().render_stack(&globex()).await.unwrap();
    world.memory.advance_secs(3600);
    let second = world.render_stack().render_stack(&globex()).await.unwrap();

    assert_eq!(first, second);
    assert_eq!(first.digest, Digest::of(first.template.as_bytes()));
    assert_eq!(first.stack_name, "freehold-acme--globex");
}

#[tokio::test]
async fn every_placeholder_is_filled_in() {
    let mut world = World::with_app().await;
    world.create().await;
    world.run().await;

    let template = world.render_stack().render_stack(&globex()).await.unwrap().template;

    assert!(!template.contains("%{") && !template.contains("{{"));
    for part in [
        "arn:aws:sqs:eu-west-1:111111111111:fh-acme--globex.fifo",
        "arn:aws:sqs:eu-west-1:111111111111:fh-acme--reports",
        "https://sqs.eu-west-1.amazonaws.com/111111111111/fh-acme--globex.fifo",
        &world.keys.public().to_string(),
        "\"222222222222\": \"globex\"",
    ] {
        assert!(template.contains(part), "{part}");
    }
    assert!(template.contains("\n        - \"arn:aws:iam::aws:policy/PowerUserAccess\"\n"), "{template}");
    let policies: Vec<_> = after(&template, "Policies").collect();
    assert_eq!(
        policies[0][0]["PolicyDocument"]["Statement"][0]["Resource"],
        json!("arn:aws:dynamodb:*:222222222222:table/globex-*")
    );
}

#[tokio::test]
async fn the_queues_are_in_the_partition_of_their_region() {
    let mut world = World::with_app().await;
    world.create().await;
    world.run().await;
    let chinese = RenderStack { region: "cn-north-1".into(), ..world.render_stack() };

    let template = chinese.render_stack(&globex()).await.unwrap().template;

    for name in ["fh-acme--globex.fifo", "fh-acme--reports"] {
        assert!(template.contains(&format!("\"arn:aws-cn:sqs:cn-north-1:111111111111:{name}\"")), "{name}");
    }
    assert!(!template.contains("arn:aws:sqs:"), "{template}");
}

#[tokio::test]
async fn a_placeholder_in_a_vendors_policy_stays_a_text() {
    let text = "%{TENANT} %{PROVISION_MANAGED} %{MAINTENANCE_POLICIES} %{NOTHING} %{";
    let mut world = World::with_app().await;
    world.create().await;
    world.run().await;
    world.sync(&with_policy(&json!({ "Statement": [], "Id": text }).to_string())).await;

    let template = world.render_stack().render_stack(&globex()).await.unwrap().template;

    let policies: Vec<_> = after(&template, "Policies").collect();
    assert_eq!(policies[0][1]["PolicyDocument"]["Id"], json!(text));
    assert_eq!(policies[0][1]["PolicyName"], json!("extraone"));
    assert_eq!(policies[1], json!([]));
}

#[tokio::test]
async fn the_stack_of_an_earlier_version_is_the_one_that_it_had_as_the_latest() {
    let mut world = World::with_app().await;
    world.create().await;
    world.run().await;
    let earlier = world.render_stack().render_stack(&globex()).await.unwrap();
    world.sync(&with_policy("{\"Statement\":[]}")).await;

    let latest = world.render_stack().render_stack(&globex()).await.unwrap();
    let again = world.render_stack().render_stack_of_version(&globex(), &earlier.version).await.unwrap();

    assert_ne!(latest.template, earlier.template);
    assert_eq!(again, earlier);
}

#[tokio::test]
async fn a_managed_policy_that_is_asked_for_twice_is_listed_once() {
    let mut world = World::with_app().await;
    world.create().await;
    world.run().await;
    let mut version = app::document();
    version.roles[0].policies.extend(["JobFunction", "JobFunction"].map(|name| RolePolicy::Managed(name.into())));
    world.sync(&version).await;

    let template = world.render_stack().render_stack(&globex()).await.unwrap().template;

    assert_eq!(template.matches("policy/JobFunction\"").count(), 1);
}

#[tokio::test]
async fn a_policy_that_is_not_json_is_refused_by_role() {
    for bad in ["{", "{{ .nuon.install.id }}", "{{ if }}"] {
        let why = unsynced(&with_policy(bad)).await;

        assert!(why.starts_with("role `provision` of app `demo`: "), "{why}");
    }
}

#[tokio::test]
async fn two_roles_of_one_key_are_refused_when_the_app_is_synced() {
    let mut version = app::document();
    version.named_roles = serde_json::from_value(json!([
        { "name": "{{ .nuon.install.id }}-read-only", "policies": [] },
        { "name": "read_only", "policies": [] },
    ]))
    .unwrap();

    let why = unsynced(&version).await;

    assert_eq!(
        why,
        "roles `{{ .nuon.install.id }}-read-only` and `read_only` of app `demo` would both be called `custom-read-only` in \
         the install stack; rename one"
    );
}

#[tokio::test]
async fn there_is_no_stack_before_the_queue_nor_for_the_build_runner() {
    let mut world = World::with_app().await;
    world.create().await;

    let early = world.render_stack().render_stack(&globex()).await.unwrap_err();
    let build = world.render_stack().render_stack(&"build".parse().unwrap()).await.unwrap_err();
    let nobody = world.render_stack().render_stack(&"nobody".parse().unwrap()).await.unwrap_err();

    assert_eq!((early.kind, build.kind, nobody.kind), (Kind::Conflict, Kind::Invalid, Kind::NotFound));
}

#[tokio::test]
async fn the_customers_inputs_are_parameters_whatever_their_texts_say() {
    let inputs = json!([
        asked("api_token", "string", json!({ "sensitive": true, "required": true, "group": "keys", "default": "never shown" })),
        asked("colour", "string", json!({ "default": HOSTILE, "description": format!("{HOSTILE}\u{85}\u{7f}\u{1}"), "display_name": HOSTILE, "group": "look" })),
        asked("days", "number", json!({ "default": "7", "group": "look" })),
        asked("debug", "bool", json!({ "default": "true" })),
        asked("domain-name", "string", json!({ "required": true, "description": "where it is reached" })),
        asked("extra", "json", json!({ "default": "{\"a\": [1, \"b\"]}" })),
        asked("limit", "number", json!({ "description": "x".repeat(4000) })),
        asked("modules", "hcl", json!({ "default": "a = 1\n" })),
        asked("open", "bool", json!({})),
        asked("otp_seed", "string", json!({ "sensitive": true, "display_name": HOSTILE })),
        asked("replicas", "number", json!({ "required": true })),
        asked("values", "yaml", json!({})),
        asked("zones", "list", json!({ "default": ["a", "b"] })),
        { "name": "vendors", "type": "string" },
    ]);
    let groups = json!([{ "name": "look", "display_name": HOSTILE }, { "name": "keys" }, { "name": "empty" }]);
    let everything = json!({ "Statement": [{ "Effect": "Allow", "Action": "*", "Resource": "*" }] }).to_string();
    let roles = json!([
        { "name": "{{ .nuon.install.id }}-break-glass", "display_name": HOSTILE, "description": HOSTILE, "break_glass": true,
          "enabled": true, "policies": [{ "inline": { "name": "all", "document": everything } }] },
        { "name": "support", "enabled": true, "policies": [{ "managed": "ReadOnlyAccess" }] },
    ]);
    let mut version = app::document();
    version.secrets = secrets();
    version.components[1].references.insert(Reference::InstallStack("api_key_arn".into()));
    let world = with_questions(version, inputs, groups, roles).await;

    let template = world.render_stack().render_stack(&globex()).await.unwrap().template;

    if std::env::var_os("FREEHOLD_UPDATE").is_some() {
        std::fs::write(GOLDEN, &template).unwrap();
    }
    assert!(!template.contains("never shown") && !template.contains("InputVendors"));
    let kept = std::fs::read_to_string(GOLDEN).unwrap_or_default();
    assert!(template == kept, "the golden template is out of date; run `FREEHOLD_UPDATE=1 cargo test -p freehold-app`");
}

#[tokio::test]
async fn an_app_without_such_inputs_has_the_plain_template() {
    let world = with_inputs(json!([{ "name": "vendors", "type": "string" }]), json!([]), json!([])).await;

    let template = world.render_stack().render_stack(&globex()).await.unwrap().template;

    assert!(!template.contains("Input") && !template.contains("/input/api"), "{template}");
    assert!(!template.contains("AppSecret") && !template.contains("SecretsKey"), "{template}");
}

#[tokio::test]
async fn inputs_that_no_stack_has_room_for_are_refused_when_the_app_is_synced() {
    let many: Vec<Value> = (0..200).map(|n| asked(&format!("i{n}"), "string", json!({}))).collect();
    // Each of these characters is written as ten.
    let default = "\u{feff}".repeat(1_300);
    let long: Vec<Value> = (0..100).map(|n| asked(&format!("i{n}"), "string", json!({ "default": default }))).collect();

    let too_many = refused(json!(many)).await;
    let too_large = refused(json!(long)).await;

    assert_eq!(
        too_many,
        "app `demo` has 200 inputs and secrets that the customer answers, and an install stack has room for 161 \
         parameters; let the vendor answer some (`user_configurable = false`), or combine several inputs into one \
         input of type `json`"
    );
    assert!(too_large.starts_with("install stack of app `demo` would have "), "{too_large}");
    assert!(too_large.contains("more than the 1000000 that CloudFormation accepts"), "{too_large}");
}

#[tokio::test]
async fn a_default_that_cannot_be_a_parameters_value_is_refused_by_input() {
    let default = |text: &str| json!([asked("zone", "string", json!({ "default": text }))]);

    assert_eq!(
        refused(default("{{resolve:ssm:/private}}")).await,
        "the default of input `zone` must not contain a dynamic reference (`{{resolve:`); leave it out"
    );
    assert_eq!(
        refused(default("\u{1}")).await,
        "the default of input `zone` contains a control character; leave it out"
    );
    assert!(refused(default(&"x".repeat(5000))).await.contains("has 5000 bytes, more than the 4096"));
    assert_eq!(
        refused(json!([asked("days", "number", json!({ "default": "soon" }))])).await,
        "the default of input `days` does not fit: input `days` must be a number, found a text of 4 characters"
    );
    let secret = json!([asked("a/../b", "string", json!({ "sensitive": true }))]);
    assert!(refused(secret).await.starts_with("the name of input `a/../b` becomes part"));
}

#[tokio::test]
async fn each_secret_of_the_app_is_entered_or_generated_and_its_readers_decide_its_key() {
    let mut version = app::document();
    version.secrets = secrets();
    version.actions[0].references.insert(Reference::InstallStack("api_key_arn".into()));
    let world = with_questions(version, json!([]), json!([]), json!([])).await;

    let template = world.render_stack().render_stack(&globex()).await.unwrap().template;

    let resource = |id: &str| {
        let (_, after) = template.split_once(&format!("\n  SecretAppSecret{id}:\n")).unwrap();
        after.split_once("\n\n").unwrap().0.to_owned()
    };
    let password = resource("AdminPassword");
    assert!(password.contains("Name: fh-acme--globex--secret/admin_password\n"), "{password}");
    assert!(password.contains("SecretString: !Ref AppSecretAdminPassword\n"), "{password}");
    assert!(password.contains("KmsKeyId: !Ref Key\n") && !password.contains("Condition:"), "{password}");
    let key = resource("ApiKey");
    assert!(key.contains("Condition: HasAppSecretApiKey\n"), "{key}");
    assert!(key.contains("KmsKeyId: alias/aws/secretsmanager\n"), "{key}");
    assert_eq!(template.matches("KmsKeyId: alias/aws/secretsmanager\n").count(), 1, "the app itself reads one secret");
    let certificate = resource("Certificate");
    assert!(certificate.contains("Condition: HasAppSecretCertificate\n"), "{certificate}");
    let (_, generated) = template.split_once("\n  SecretAppSecretSessionkeyX").unwrap();
    let (generated, _) = generated.split_once("\n\n").unwrap();
    assert!(
        generated.contains("GenerateSecretString: {PasswordLength: 32, ExcludePunctuation: true}\n"),
        "{generated}"
    );
    assert!(!generated.contains("Condition:"), "{generated}");
    assert_eq!(template.matches(", NoEcho: true").count(), 3, "one parameter for each secret that is entered");
}

#[tokio::test]
async fn a_secret_whose_name_no_secret_can_have_is_refused() {
    let mut version = app::document();
    version.secrets = serde_json::from_value(json!([{ "name": "a/../enrolment" }])).unwrap();

    assert!(unsynced(&version).await.starts_with("the name of secret `a/../enrolment` becomes part"));
}
