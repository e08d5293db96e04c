//! Tests of the terms and of the description of a contract.

use freehold_protocol::order::RunAction;
use serde_json::json;

use super::*;

fn version(more: &Value) -> AppVersion {
    let mut all = json!({ "format": 1, "app": "shop" });
    all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    serde_json::from_value(all).unwrap()
}

fn shop() -> AppVersion {
    version(&json!({
        "inputs": [
            { "name": "prefix", "type": "string", "default": "shop" },
            { "name": "domain", "type": "string", "customer": true },
            { "name": "size", "type": "number", "default": 3 },
        ],
        "components": [{
            "name": "db", "deploy_timeout_secs": 600, "source": { "from": "version" },
            "spec": { "kind": "terraform_module", "terraform_version": "1.11.3", "vars": { "url": "https://x.example/a" } },
        }],
        "actions": [
            { "name": "restart", "timeout_secs": 60, "steps": [], "role": "support",
              "references": [{ "to": "input", "name": "domain" }] },
            { "name": "check", "timeout_secs": 60, "steps": [{ "name": "say", "command": "true" }] },
        ],
        "roles": [{ "mode": "provision", "policies": [{ "inline": {
            "name": "own", "document": r#"{"Statement": {"Effect": "Allow", "Action": "s3:*",
                    "Resource": "arn:aws:s3:::{{ .nuon.inputs.inputs.prefix }}-{{ .nuon.inputs.inputs.domain }}"}}"#,
        } }] }],
        "named_roles": [
            { "name": "{{ .nuon.install.id }}-support", "enabled": true, "policies": [{ "managed": "ReadOnlyAccess" }] },
            { "name": "emergency", "enabled": true, "break_glass": true, "policies": [] },
        ],
        "operation_roles": [{ "principal": "action:restart", "operation": "trigger", "role": "custom-support" }],
        "policies": [{ "name": "tags", "type": "terraform_module", "engine": "opa", "contents": "package tags" }],
    }))
}

#[test]
fn terms_name_who_may_do_what_and_not_how() {
    let mut version = shop();
    version.actions[0].role = String::new();

    let mut terms = serde_json::to_value(terms(&version)).unwrap();

    for action in terms["actions"].as_array_mut().unwrap() {
        assert!(action.as_object_mut().unwrap().remove("steps").is_some_and(|steps| steps.is_string()));
    }
    let found = json!({
        "hosts": terms["hosts"], "inputs": terms["policy_inputs"], "actions": terms["actions"],
        "roles": terms["roles"].as_array().unwrap().iter().map(|role| json!([role["role"], role["on"]])).collect::<Vec<_>>(),
    });
    let expected = json!({
        "hosts": ["*.amazonaws.com", "x.example"],
        "inputs": { "domain": null, "prefix": "shop" },
        "actions": [
            { "name": "check", "role": "maintenance" },
            { "name": "restart", "role": "custom-support", "reads": [{ "to": "input", "name": "domain" }] },
        ],
        "roles": [["provision", true], ["custom-support", true], ["break-glass-emergency", false]],
    });
    assert_eq!(found, expected);
}

#[test]
fn terms_name_the_roles_that_may_be_chosen_for_an_action_and_the_role_of_a_probe() {
    let mut version = shop();
    version.actions[1].other_roles = vec!["emergency".to_owned()];
    version.runbooks = serde_json::from_value(json!([{ "name": "fix", "steps": [
        { "does": { "type": "action", "action": "check" }, "role": "provision" },
    ] }]))
    .unwrap();
    let health = json!({ "stabilization_window_secs": 60, "probes": [{ "type": "exec", "command": ["check"] }] });
    version.components[0].settings.health = Some(serde_json::from_value(health).unwrap());
    let roles_of = |version: &AppVersion| {
        let Terms { actions, probes, .. } = terms(version);
        let others: Vec<String> = actions[0].other_roles.iter().cloned().collect();
        (others, probes.into_iter().map(|probe| probe.role).collect::<Vec<_>>())
    };

    let of_mode = roles_of(&version);
    version.components[0].settings.operation_roles = [("deploy".to_owned(), "custom-support".to_owned())].into();
    let of_component = roles_of(&version);

    let others = ["break-glass-emergency", "provision"].map(str::to_owned).to_vec();
    assert_eq!(of_mode, (others.clone(), vec![String::new()]));
    assert_eq!(of_component, (others, vec!["custom-support".to_owned()]));
}

#[test]
fn terms_name_the_customers_inputs_and_secrets_and_who_reads_them() {
    let mut version = shop();
    let more = json!({
        "inputs": [
            { "name": "domain", "type": "string", "customer": true },
            { "name": "token", "type": "string", "customer": true, "sensitive": true, "default": "hidden" },
            { "name": "size", "type": "number", "default": 3 },
        ],
        "secrets": [
            { "name": "license", "kubernetes": { "namespace": "shop", "name": "license" } },
            { "name": "session", "auto_generate": true },
            { "name": "unused" },
        ],
    });
    version.inputs = serde_json::from_value(more["inputs"].clone()).unwrap();
    version.secrets = serde_json::from_value(more["secrets"].clone()).unwrap();
    let reads = json!([
        { "to": "input", "name": "token" }, { "to": "secret", "name": "session" },
        { "to": "install_stack", "name": "license_arn" }, { "to": "input", "name": "size" },
    ]);
    version.components[0].references = serde_json::from_value(reads).unwrap();

    let found = serde_json::to_value(terms(&version)).unwrap();

    let db = json!({ "part": "component", "name": "db" });
    let expected = json!({
        "domain": { "read_by": [{ "part": "role", "name": "provision" }] },
        "token": { "sensitive": true, "read_by": [db] },
    });
    assert_eq!(found["customer_inputs"], expected);
    let expected = json!({
        "license": { "shared": true, "read_by": [db], "kubernetes": { "namespace": "shop", "name": "license" } },
        "session": { "generated": true, "read_by": [db] },
        "unused": {},
    });
    assert_eq!(found["secrets"], expected);
    assert!(!found.to_string().contains("hidden"), "{found}");
}

#[test]
fn the_sandbox_and_a_reader_of_all_outputs_of_the_stack_are_named() {
    let sandbox = json!({
        "tool": { "tool": "terraform", "version": "1.11.3" }, "source": { "from": "version" },
        "references": [{ "to": "install_stack", "name": "" }, { "to": "input", "name": "domain" }],
    });
    let input = json!({ "name": "domain", "type": "string", "customer": true });
    let version = version(&json!({ "sandbox": sandbox, "inputs": [input], "secrets": [{ "name": "license" }] }));

    let Terms { customer_inputs, secrets, .. } = terms(&version);

    assert_eq!(customer_inputs["domain"].read_by, [Reader::Sandbox].into());
    assert_eq!(secrets["license"].read_by, [Reader::Sandbox].into());
    assert!(!secrets["license"].shared);
}

#[test]
fn the_digest_of_the_terms_covers_the_schedules_of_actions() {
    let (plain, mut scheduled) = (shop(), shop());
    let triggers = json!([{ "on": "manual" }, { "on": "cron", "schedule": "0 3 * * *" }]);
    scheduled.actions[1].triggers = serde_json::from_value(triggers).unwrap();

    let (plain, scheduled) = (terms(&plain), terms(&scheduled));

    assert_eq!(scheduled.actions[0].schedules, ["0 3 * * *".to_owned()].into());
    assert_ne!(scheduled.digest().unwrap(), plain.digest().unwrap());
}

#[test]
fn a_host_that_may_be_inside_is_contacted_and_marked() {
    let runner = json!({ "runner_type": "aws", "inside_hosts": ["db.corp.example:5432"] });

    let terms = terms(&version(&json!({ "runner": runner })));

    assert_eq!(terms.inside_hosts, ["db.corp.example:5432".to_owned()].into());
    assert!(terms.hosts.is_superset(&terms.inside_hosts), "{:?}", terms.hosts);
}

#[test]
fn terms_name_registries_where_a_part_fetches_its_providers() {
    let module =
        |providers: &str| json!({ "kind": "terraform_module", "terraform_version": "1.11.3", "providers": providers });
    let component = |name: &str, providers: &str| json!({ "name": name, "deploy_timeout_secs": 60, "source": { "from": "version" }, "spec": module(providers) });
    let sandbox = json!({
        "tool": { "tool": "terraform", "version": "1.11.3", "providers": "registry" }, "source": { "from": "version" },
    });
    let components = json!([component("packed", "packed"), component("net", "registry")]);

    let found = hosts(&version(&json!({ "components": components, "sandbox": sandbox })));

    assert_eq!(
        serde_json::to_value(found).unwrap(),
        json!({
            "*.amazonaws.com": ["the runner"],
            "registry.opentofu.org": ["component `net` providers", "sandbox providers"],
            "registry.terraform.io": ["component `net` providers", "sandbox providers"],
        })
    );
}

#[test]
fn other_steps_change_the_terms_of_their_action_and_artifacts_change_no_terms() {
    let digest = |change: &dyn Fn(&mut Action)| {
        let mut version = shop();
        change(&mut version.actions[1]);
        let contract = contract(&version, &Digest::of(b"version"), &BTreeMap::new()).unwrap();
        (contract.terms.actions.into_iter().map(|action| action.steps.unwrap()).collect::<Vec<_>>(), contract.steps)
    };
    let (was, whole) = digest(&|_| ());

    for change in [
        &(|action: &mut Action| action.steps[0].command = "false".into()) as &dyn Fn(&mut Action),
        &|action| drop(action.env_vars.insert("LEVEL".into(), "debug".into())),
        &|action| action.idempotent = true,
    ] {
        let (is, _) = digest(change);
        assert!(was[0] != is[0] && was[1] == is[1], "{was:?} {is:?}");
    }
    let (same, of_image) = digest(&|action| action.image = Some("own".into()));
    assert_eq!(was, same, "the terms have the image beside the steps");
    assert_ne!(whole, of_image);
}

#[test]
fn an_order_of_an_action_has_the_steps_that_its_terms_have() {
    let action = shop().actions.remove(1);
    let work = RunAction {
        action: action.name.clone(),
        steps: action.steps.clone(),
        directories: Vec::new(),
        env_vars: action.env_vars.clone(),
        idempotent: action.idempotent,
        cluster: None,
        image: String::new(),
    };

    assert_eq!(executed(&action), Some(work.executed().digest().unwrap()));
}

#[test]
fn terms_have_the_commands_of_probes_and_no_address() {
    let health = |disabled: bool, word: &str| {
        json!({ "stabilization_window_secs": 60, "disabled": disabled, "probes": [
            { "type": "tcp", "url": "db.example:5432" },
            { "type": "exec", "command": ["check", word] },
            { "type": "exec", "name": "the same", "command": ["check", word] },
        ] })
    };
    let of = |health: Value| {
        let mut version = shop();
        version.components[0].settings.health = Some(serde_json::from_value(health).unwrap());
        terms(&version)
    };

    let found = of(health(false, "{{ .nuon.install.id }}"));

    let expected = json!([{ "component": "db", "command": ["check", "{{ .nuon.install.id }}"] }]);
    assert_eq!(serde_json::to_value(&found.probes).unwrap(), expected);
    assert_ne!(found.digest().unwrap(), of(health(false, "other")).digest().unwrap());
    assert!(of(health(true, "x")).probes.is_empty());
    assert_eq!(of(health(true, "x")).digest().unwrap(), terms(&shop()).digest().unwrap());
}

#[test]
fn an_input_is_found_in_a_template_that_is_written_with_escapes() {
    let mut version = shop();
    let document = r#"{"Statement": {"Effect": "Allow", "Action": "s3:*", "Resource": "\u007b{ .nuon.inputs.inputs.s\u0069ze }}"}}"#;
    version.roles[0].policies = vec![RolePolicy::Inline { name: "own".into(), document: document.into() }];

    assert_eq!(serde_json::to_value(terms(&version).policy_inputs).unwrap(), json!({ "size": 3 }));
}

#[test]
fn a_policy_that_reads_whatever_there_is_names_every_default() {
    let text = "{{ range $k, $v := .nuon.inputs.inputs }}{{ $v }}{{ end }}";

    assert!(mentions(text, "size") && mentions("{{ .nuon.inputs.inputs.size }}", "size"));
    assert!(!mentions("size", "size") && !mentions("{{ .nuon.install.id }}", "size"));
}
