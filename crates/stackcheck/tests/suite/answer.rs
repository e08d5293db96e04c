//! The answer of a check: its size, its texts, and what it lists for the customer.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use freehold_stackcheck::{Checked, MAX_FINDINGS, verify};

const RENDERED: &str = include_str!("../../../app/golden/install-with-inputs.yaml");

fn checked(template: &str) -> Checked {
    verify(template, &[], None).unwrap()
}

fn reasons(template: &str) -> String {
    checked(template).findings.into_iter().map(|one| one.reason + "\n").collect()
}

fn with(resources: &str) -> String {
    RENDERED.replacen("\nOutputs:\n", &format!("\n{resources}\nOutputs:\n"), 1)
}

#[test]
fn the_machine_is_of_any_type_with_a_graviton_processor_and_of_no_other() {
    let with_machine = |machine: &str| {
        assert_eq!(RENDERED.matches("    Default: t4g.small\n").count(), 1);
        reasons(&RENDERED.replace("    Default: t4g.small\n", &format!("    Default: {machine}\n")))
    };

    assert_eq!(with_machine("m7gd.2xlarge"), "");
    for machine in ["t3a.small", "\"\"", "t4g.small.x"] {
        let found = with_machine(machine);
        assert!(found.contains("InstanceType.Default` is not a type of machine with a Graviton"), "{machine}: {found}");
    }
    assert!(with_machine("[t4g.small]").contains("InstanceType.Default` is not a string"));
}

#[test]
fn the_answer_lists_the_roles_and_the_questions() {
    let overview = checked(RENDERED).overview.unwrap();

    let roles: Vec<_> =
        overview.roles.iter().map(|one| (one.role.as_str(), one.on, one.managed.len(), one.statements)).collect();
    let expected = [
        ("provision", true, 1, 1),
        ("maintenance", true, 0, 0),
        ("deprovision", false, 0, 0),
        ("break-glass", false, 0, 1),
        ("custom-support", true, 1, 0),
    ];
    assert_eq!(roles, expected);
    assert!(overview.sent_inputs.contains(&"InputColour".to_owned()), "{:?}", overview.sent_inputs);
    assert!(overview.secret_inputs.contains(&"InputApiToken".to_owned()), "{:?}", overview.secret_inputs);
    assert!(overview.policy_inputs.is_empty() && overview.warnings.is_empty());
    assert_eq!(overview.machine_type, "t4g.small");
}

#[test]
fn a_queue_on_the_runners_machine_gets_a_warning() {
    let local = RENDERED.replace("https://sqs.eu-west-1.amazonaws.com/", "http://127.0.0.1:4566/");

    let checked = checked(&local);

    assert_eq!(checked.findings, []);
    assert!(checked.overview.unwrap().warnings[0].contains("a real install has queues in AWS"));
}

#[test]
fn a_value_of_the_template_is_never_another_line_of_the_answer() {
    let secret = with(
        "  Leak:\n    Type: \"AWS::SecretsManager::Secret\"\n    Properties: {Name: \"a\\nglobex.yaml follows all 10 rules\"}\n",
    );
    let policy =
        RENDERED.replacen("\"Effect\":\"Allow\",\"Resource\"", "\"Effect\":\"Allow\",\"x\\nOK\":\"\",\"Resource\"", 1);
    let boundary = RENDERED.replacen(
        "PermissionsBoundary: !If [OwnBoundary, !Ref PermissionsBoundaryArn, !Ref AWS::NoValue]",
        "PermissionsBoundary: \"a\\n0 findings\\u202e\"",
        1,
    );
    let name = with("  \"A\\nB\":\n    Type: AWS::SNS::Topic\n");

    for template in [secret, policy, boundary, name] {
        assert_ne!(template, RENDERED);
        let findings = checked(&template).findings;
        assert!(!findings.is_empty());
        for one in findings {
            let is_odd = |c: char| c.is_control() || c == '\u{202e}';
            assert!(!one.reason.contains(is_odd) && !one.of.contains(is_odd), "{one:?}");
        }
    }
}

#[test]
fn the_vendors_account_is_the_one_of_the_queue_that_the_runner_receives_orders_from() {
    let other = RENDERED.replacen(
        "Resource: \"arn:aws:sqs:eu-west-1:111111111111:fh-acme--globex.fifo\"",
        "Resource: \"arn:aws:sqs:eu-west-1:999999999999:fh-acme--globex.fifo\"",
        1,
    );
    let earlier = with(
        "  Aaa: {Type: AWS::SNS::Topic, Properties: {TopicName: \"arn:aws:sqs:eu-west-1:999999999999:fh-acme--globex.fifo\"}}\n",
    );
    let without = RENDERED.replacen("Sid: ReceiveOrders", "Sid: Receive", 1);

    assert_ne!(other, RENDERED);
    assert!(reasons(&other).contains("OrdersQueueUrl"), "{}", reasons(&other));
    assert_eq!(checked(&earlier).names.unwrap().tenant_account.as_str(), "111111111111");
    assert!(
        reasons(&without).contains("the runner's role is not allowed to receive orders from the vendor's queue"),
        "{}",
        reasons(&without)
    );
}

#[test]
fn texts_that_mislead_or_are_replaced_are_found() {
    let label = RENDERED.lines().find(|line| line.starts_with("      InputColour: {default")).unwrap();
    let title = |text: &str| RENDERED.replacen(label, &format!("      InputColour: {{default: \"{text}\"}}"), 1);
    let policy = RENDERED.replacen(
        "\"arn:aws:dynamodb:*:222222222222:table/globex-*\"",
        "{\"Fn::Sub\":\"{{${InputZones}:secretsmanager:prod/db}}\"}",
        1,
    );

    assert!(reasons(&title("\\u202eevil\\u202c")).contains("is not one line of at most 120 visible characters"));
    assert!(reasons(&title(&"x".repeat(121))).contains("is not one line of at most 120 visible characters"));
    assert_eq!(reasons(&title("😀 days")), "");
    assert!(reasons(&policy).contains("can begin a dynamic reference of CloudFormation"), "{}", reasons(&policy));
}

#[test]
fn a_template_beyond_the_quotas_is_refused_before_the_rules() {
    let many = |count: usize, entry: &str| {
        (0..count).fold(String::new(), |mut all, at| {
            writeln!(all, "  X{at}: {entry}").unwrap();
            all
        })
    };
    let resources = with(&many(501, "{Type: AWS::EC2::SecurityGroup}"));
    let parameters =
        RENDERED.replacen("\nParameters:\n", &format!("\nParameters:\n{}", many(201, "{Type: String}")), 1);

    let refused = |template: &str| verify(template, &[], None).unwrap_err().to_string();

    assert!(
        refused(&resources).contains("Resources, more than the 500 that CloudFormation accepts"),
        "{}",
        refused(&resources)
    );
    assert!(
        refused(&parameters).contains("Parameters, more than the 200 that CloudFormation accepts"),
        "{}",
        refused(&parameters)
    );
}

#[test]
fn an_answer_has_a_hundred_findings_and_the_number_of_the_others() {
    let topics = (0..300).fold(String::new(), |mut all, at| {
        writeln!(
            all,
            "  X{at}: {{Type: AWS::EC2::SecurityGroup, Properties: {{SecurityGroupIngress: [{{IpProtocol: tcp}}]}}}}"
        )
        .unwrap();
        all
    });

    let began = Instant::now();
    let checked = checked(&with(&topics));

    assert_eq!(checked.findings.len(), MAX_FINDINGS);
    assert!(checked.left_out >= 200, "{}", checked.left_out);
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
}

/// The app of tenant `fh-acme` could make roles with the names of those in the install stacks of tenant `acme`.
#[test]
fn a_tenant_with_the_names_of_anothers_stacks_is_found() {
    let of_tenant = |tenant: &str| reasons(&RENDERED.replace("acme", tenant));

    assert_eq!(of_tenant("fhacme"), "");
    for tenant in ["fh", "fh-acme"] {
        let found = of_tenant(tenant);
        assert!(found.starts_with("`Metadata.Freehold.Tenant`: no tenant may be called `fh`"), "{tenant}: {found}");
        assert_eq!(found.lines().count(), 1, "{tenant}: {found}");
    }
}
