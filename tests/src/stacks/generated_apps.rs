//! Generates apps by seed and number: roles with policies of every shape, roles that they name themselves, inputs of
//! every type, and vendors in the region of the customer and in others.

use anyhow::Context;
use freehold_app::stack::render_stack::RunnerProgram;
use freehold_fuzz::Draw;
use serde_json::{Value, json};

use super::Case;

const MANAGED: [&str; 4] = ["AdministratorAccess", "AmazonS3FullAccess", "PowerUserAccess", "ReadOnlyAccess"];
const ACTIONS: [&str; 8] = [
    "*",
    "dynamodb:CreateTable",
    "ec2:Describe*",
    "iam:CreateRole",
    "iam:PassRole",
    "s3:*",
    "sqs:SendMessage",
    "sts:AssumeRole",
];
const KINDS: [&str; 7] = ["string", "number", "list", "json", "bool", "yaml", "hcl"];
/// What is in every app, so that policies can refer to it.
const ZONE: &str = "zone";

/// Returns app `number` of `seed`.
///
/// # Errors
/// When an app version has another shape than is written here.
pub fn generated(seed: u64, number: u64) -> anyhow::Result<Case> {
    let mut draw = Draw::new(seed, number);
    let name = format!("made-{number}");
    let named = draw.below(4);
    let modes = ["provision", "maintenance", "deprovision"].map(|mode| role(&mut draw, mode));
    let version = json!({
        "format": 1,
        "app": name,
        "inputs": inputs(&mut draw),
        "roles": modes,
        "named_roles": (0..named).map(|at| named_role(&mut draw, at)).collect::<Vec<_>>(),
    });
    let version = serde_json::from_value(version).with_context(|| format!("app {number} of seed {seed}"))?;
    let runner = draw.one_in(2).then(|| RunnerProgram {
        url: "https://releases.example/freehold-runner".to_owned(),
        sha256: "0123456789abcdef".repeat(4),
    });
    Case::new(name, version, if draw.one_in(2) { "eu-west-1" } else { "us-east-1" }, runner)
}

fn role(draw: &mut Draw, mode: &str) -> Value {
    json!({ "mode": mode, "policies": policies(draw) })
}

fn named_role(draw: &mut Draw, at: usize) -> Value {
    json!({
        "name": if draw.one_in(2) { format!("{{{{ .nuon.install.id }}}}-helper-{at}") } else { format!("helper-{at}") },
        "display_name": if draw.one_in(2) { "For \"support\": 100 %" } else { "" },
        "break_glass": draw.one_in(3),
        "enabled": draw.one_in(2),
        "policies": policies(draw),
    })
}

fn policies(draw: &mut Draw) -> Vec<Value> {
    (0..draw.below(4))
        .map(|at| match draw.one_in(3) {
            true => json!({ "managed": draw.pick(&MANAGED) }),
            false => json!({ "inline": { "name": format!("policy {at}"), "document": document(draw).to_string() } }),
        })
        .collect()
}

fn document(draw: &mut Draw) -> Value {
    let statements: Vec<Value> = (0..1 + draw.below(3)).map(|at| statement(draw, at)).collect();
    json!({ "Version": "2012-10-17", "Statement": statements })
}

fn statement(draw: &mut Draw, at: usize) -> Value {
    let resources = [
        json!("*"),
        json!("arn:aws:s3:::{{ .nuon.install.id }}-data/*"),
        json!(format!("arn:aws:sqs:*:*:{{{{ .nuon.inputs.inputs.{ZONE} }}}}-${{aws:username}}")),
        json!(["arn:aws:dynamodb:*:*:table/{{ .nuon.install.id }}", "arn:aws:s3:::x"]),
    ];
    let is_denial = draw.one_in(4);
    // No denial reads what the customer answers: another answer would deny less.
    let resource = loop {
        let chosen = draw.pick(&resources).clone();
        if !(is_denial && chosen.to_string().contains(ZONE)) {
            break chosen;
        }
    };
    let actions: Vec<&str> = (0..1 + draw.below(3)).map(|_| *draw.pick(&ACTIONS)).collect();
    let mut statement = json!({
        "Sid": format!("S{at}"),
        "Effect": if is_denial { "Deny" } else { "Allow" },
        "Resource": resource,
    });
    statement[if draw.one_in(5) { "NotAction" } else { "Action" }] = json!(actions);
    match draw.below(4) {
        0 => {
            statement["Condition"] = json!({ "StringEquals": { "aws:RequestedRegion": ["eu-west-1", "eu-central-1"] } })
        }
        1 => statement["Condition"] = json!({ "Bool": { "aws:SecureTransport": "true" } }),
        _ => {}
    }
    statement
}

fn inputs(draw: &mut Draw) -> Vec<Value> {
    let mut inputs = vec![json!({ "name": ZONE, "type": "string", "customer": true, "default": "north" })];
    inputs.extend((0..draw.below(6)).map(|at| {
        json!({
            "name": format!("question_{at}"),
            "type": draw.pick(&KINDS),
            "customer": !draw.one_in(4),
            "required": draw.one_in(2),
            "sensitive": draw.one_in(3),
            "description": if draw.one_in(2) { "What: \"is\" it? # ${AWS::Region}" } else { "" },
        })
    }));
    inputs
}
