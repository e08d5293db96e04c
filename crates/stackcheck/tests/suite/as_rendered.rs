//! A template is the one that Freehold renders for its install, or the difference is found in its line.

use freehold_stackcheck::{Finding, Rule, check, check_rules, verify};
use proptest::prelude::*;

/// A stack of an app that asks the customer everything, and one of an app that asks nothing.
const RENDERED: &str = include_str!("../../../app/golden/install-with-inputs.yaml");
const PLAIN: &str = include_str!("../../../app/golden/install.yaml");
/// One of an app with a sandbox.
const WITH_NETWORK: &str = include_str!("../../../app/golden/install-with-network.yaml");

fn changed(old: &str, new: &str) -> String {
    assert_eq!(RENDERED.matches(old).count(), 1, "{old}");
    RENDERED.replace(old, new)
}

/// Returns the template with something added to the end of the resources.
fn with(resources: &str) -> String {
    changed("\nOutputs:\n", &format!("\n{resources}\n\nOutputs:\n"))
}

fn without_statement(sid: &str) -> String {
    let lines: Vec<&str> = RENDERED.lines().collect();
    let first = lines.iter().position(|line| line.trim() == format!("- Sid: {sid}")).unwrap();
    let is_inside = |line: &&str| line.starts_with("            ") || line.trim_start().starts_with('#');
    let last = first + 1 + lines[first + 1..].iter().position(|line| !is_inside(line)).unwrap();
    [&lines[..first], &lines[last..]].concat().join("\n") + "\n"
}

fn found(template: &str) -> Vec<Finding> {
    check(template).unwrap_or_else(|wrong| panic!("{wrong}"))
}

/// Returns each finding as its part, a colon and its reason.
fn reasons_of(template: &str) -> Vec<String> {
    found(template).into_iter().map(|one| format!("{}: {}", one.of, one.reason)).collect()
}

#[test]
fn rendered_stacks_are_as_rendered() {
    assert_eq!(found(RENDERED), []);
    assert_eq!(found(PLAIN), []);
    assert_eq!(found(WITH_NETWORK), []);
    assert_eq!(found(&RENDERED.replace('\n', "\r\n")), []);
    assert_eq!(found(&format!("\u{feff}{RENDERED}")), []);
}

/// Guard finds nothing in them: `tests/infra/rules/test_guard_readings.py`.
#[test]
fn a_file_with_two_readings_is_refused() {
    let strange = "Resources: {Strange: {Type: \"Custom::Strange\"}}\n";
    let twice = changed("\nResources:\n", &format!("\n{strange}Resources:\n"));
    let second = format!("{RENDERED}---\n{strange}");

    for (template, reason) in [(twice, "key `Resources` is given twice"), (second, "there is a second document")] {
        assert_eq!(check(&template).unwrap_err().reason, reason);
    }
}

#[test]
fn a_part_of_the_network_that_is_missing_or_other_is_found() {
    let change = |old: &str, new: &str| {
        assert!(WITH_NETWORK.contains(old), "{old}");
        reasons_of(&WITH_NETWORK.replacen(old, new, 1))
    };

    let other = change("MapPublicIpOnLaunch: true", "MapPublicIpOnLaunch: false");
    let renamed = change("  PrivateSubnet2:\n", "  PrivateSubnet3:\n");

    assert!(other.iter().any(|one| one.starts_with("PublicSubnet0: ")), "{other:?}");
    assert!(renamed.iter().any(|one| one.contains("PrivateSubnet2")), "{renamed:?}");
}

#[test]
fn a_trust_anchor_of_a_stranger_and_a_role_for_it_are_found() {
    let template = with(
        "  Anchor:
    Type: AWS::RolesAnywhere::TrustAnchor
    Properties: {Name: a, Enabled: true, Source: {SourceType: CERTIFICATE_BUNDLE, SourceData: {X509CertificateData: x}}}
  AnchoredRole:
    Type: AWS::IAM::Role
    Properties:
      PermissionsBoundary: !Ref Boundary
      ManagedPolicyArns: [arn:aws:iam::aws:policy/AdministratorAccess]
      AssumeRolePolicyDocument:
        Statement: [{Effect: Allow, Principal: {Service: rolesanywhere.amazonaws.com}, Action: sts:AssumeRole}]",
    );

    let reasons = reasons_of(&template);

    assert_eq!(
        reasons,
        [
            "Anchor: this install's stack has no resource `Anchor` of type `AWS::RolesAnywhere::TrustAnchor`; for a \
             resource of your own, pass `--allow Anchor=AWS::RolesAnywhere::TrustAnchor`",
            "AnchoredRole: this install's stack has no resource `AnchoredRole` of type `AWS::IAM::Role`; for a \
             resource of your own, pass `--allow AnchoredRole=AWS::IAM::Role`",
        ]
    );
    let line = template.lines().nth(found(&template)[0].line - 1).unwrap();
    assert_eq!(line.trim(), "Type: AWS::RolesAnywhere::TrustAnchor");
}

#[test]
fn a_build_project_with_the_image_of_a_stranger_is_found() {
    let template = with(
        "  Builder:
    Type: AWS::CodeBuild::Project
    Properties:
      ServiceRole: !GetAtt ProvisionRole.Arn
      Environment: {Image: 999999999999.dkr.ecr.eu-west-1.amazonaws.com/x, Type: LINUX_CONTAINER, ComputeType: SMALL}
  Nightly:
    Type: AWS::Events::Rule
    Properties: {ScheduleExpression: rate(1 hour), Targets: [{Id: x, Arn: !GetAtt Builder.Arn}]}",
    );

    let of: Vec<String> = found(&template).into_iter().map(|one| one.of).collect();

    assert_eq!(of, ["Builder", "Nightly"]);
}

#[test]
fn a_boundary_that_lacks_a_statement_is_found() {
    for sid in [
        "OwnIam",
        "NeverAtAll",
        "OwnProviders",
        "OwnersStay",
        "NotThisStack",
        "SecretReadsOnly",
        "SecretsLogsAudit",
        "NotTheRunner",
    ] {
        let found = found(&without_statement(sid));

        let place = "Resources.Boundary.Properties.PolicyDocument.Statement";
        let lacks = format!("`{place}` lacks statement `{sid}`");
        assert!(found.iter().any(|one| one.of == "Boundary" && one.reason == lacks), "{sid}: {found:#?}");
    }
}

#[test]
fn what_is_shared_with_the_account_of_a_stranger_is_found() {
    let vendor = "111111111111";
    let shared = with(&format!(
        "  Share: {{Type: AWS::RAM::ResourceShare, Properties: {{Name: s, Principals: [\"{vendor}\"]}}}}
  Peering: {{Type: AWS::EC2::VPCPeeringConnection, Properties: {{PeerOwnerId: \"{vendor}\", PeerVpcId: vpc-1, VpcId: !Ref Vpc}}}}
  Logs: {{Type: AWS::Logs::SubscriptionFilter, Properties: {{DestinationArn: \"arn:aws:logs:eu-west-1:{vendor}:destination:x\"}}}}
  Bus: {{Type: AWS::Events::EventBusPolicy, Properties: {{StatementId: s, Principal: \"{vendor}\", Action: events:PutEvents}}}}",
    ));
    let replicated = changed(
        "      OwnershipControls:",
        "      ReplicationConfiguration: {Role: !GetAtt RunnerRole.Arn, Rules: [{Destination: {Account: \"111111111111\", \
         Bucket: \"arn:aws:s3:::x\"}, Status: Enabled}]}\n      OwnershipControls:",
    );

    let of: Vec<String> = found(&shared).into_iter().map(|one| one.of).collect();
    let replication = reasons_of(&replicated);

    assert_eq!(of, ["Share", "Peering", "Logs", "Bus"]);
    assert_eq!(
        replication,
        ["Bucket: `Resources.Bucket.Properties.ReplicationConfiguration` is not in the template that Freehold renders"]
    );
}

#[test]
fn a_policy_on_roles_of_the_customers_and_an_identity_provider_are_found() {
    let template = with(
        "  Mine: {Type: AWS::IAM::ManagedPolicy, Properties: {Roles: [admin], PolicyDocument: {Statement: [{Effect: Allow, Action: \"s3:*\", Resource: \"*\"}]}}}
  Issuer: {Type: AWS::IAM::OIDCProvider, Properties: {Url: \"https://example.com\"}}",
    );
    let of: Vec<String> = found(&template).into_iter().map(|one| one.of).collect();
    let taken = reasons_of(&changed("        - !Ref RunnerRole\n", "        - !Ref RunnerRole\n        - admin\n"));

    assert_eq!(of, ["Mine", "Issuer"]);
    assert!(
        taken.contains(
            &"Limits: `Resources.Limits.Properties.Roles[1]` is not in the template that Freehold renders: `admin`"
                .to_owned()
        ),
        "{taken:#?}"
    );
}

/// Changes that are easy to overlook, each of one place.
#[test]
fn small_changes_are_found() {
    for (old, new) in [
        // Conditions, defaults and values that flip a switch.
        (
            "DeprovisionEnabled: !And [!Condition RunnerEnabled, !Equals [!Ref EnableDeprovision, \"true\"]]",
            "DeprovisionEnabled: !And [!Condition RunnerEnabled, !Equals [!Ref EnableDeprovision, \"false\"]]",
        ),
        (
            "RunnerEnabled: !Equals [!Ref EnableRunner, \"true\"]",
            "RunnerEnabled: !Not [!Equals [!Ref EnableRunner, \"off\"]]",
        ),
        ("Private: !And [!Condition OnEc2, ", "Private: !Or [!Condition OnEc2, "),
        (
            "whatever their switch.\n    Default: \"1970-01-01T00:00:00Z\"",
            "whatever their switch.\n    Default: \"2999-01-01T00:00:00Z\"",
        ),
        ("    MaxLength: 4096", "    MaxLength: 40960"),
        ("AllowedPattern: ^[A-Za-z0-9+/=]*$", "AllowedPattern: ^.*$"),
        // Scripts, machines and orders of creation.
        ("KillMode=mixed", "KillMode=process"),
        ("DesiredCapacity: !If [RunnerEnabled, \"1\", \"0\"]", "DesiredCapacity: !If [RunnerEnabled, 1, \"0\"]"),
        ("    DependsOn: GatewayAttachment\n", ""),
        ("BucketKeyEnabled: true", "BucketKeyEnabled: yes"),
        ("EnableKeyRotation: true", "EnableKeyRotation: \"true\""),
        ("ImageTagMutability: IMMUTABLE", "ImageTagMutability: MUTABLE"),
        // Principals, actions and resources.
        ("            Action: kms:*\n", "            NotAction: kms:*\n"),
        (
            "Sid: ThisAccount\n            Effect: Allow\n            Principal:",
            "Sid: ThisAccount\n            Effect: Allow\n            NotPrincipal:",
        ),
        ("{Service: ec2.amazonaws.com}", "{Service: [ec2.amazonaws.com, ecs-tasks.amazonaws.com]}"),
        ("{Service: ec2.amazonaws.com}", "{Service: codebuild.amazonaws.com}"),
        (
            "Resource: \"arn:aws:sqs:eu-west-1:111111111111:fh-acme--reports\"",
            "Resource: \"arn:aws:sqs:eu-west-1:111111111111:fh-other--reports\"",
        ),
        (
            "Resource: \"arn:aws:sqs:eu-west-1:111111111111:fh-acme--globex.fifo\"",
            "Resource: \"arn:aws:sqs:eu-west-1:111111111111:*\"",
        ),
        ("/fh-acme--reports\"}", "/fh-other--reports\"}"),
        (
            "https://sqs.eu-west-1.amazonaws.com/111111111111/fh-acme--globex.fifo",
            "https://sqs.example/111111111111/fh-acme--globex.fifo",
        ),
        // Outputs, exports, metadata, texts that mislead.
        (
            "KeyArn: {Description: Encrypts the bucket and the secrets, Value",
            "KeyArn: {Export: {Name: x}, Description: Encrypts the bucket and the secrets, Value",
        ),
        (
            "AcceptedContract: {Description: The accepted contract, Value: !Ref AcceptedContract}",
            "AcceptedContract: {Description: The accepted contract, Value: \"sha256:0\"}",
        ),
        ("Assert: !Equals [!Ref AcceptedContract, sha256:", "Assert: !Equals [x, x] # sha256:"),
        ("Description: Whether provision jobs may run.", "Description: Leave this on."),
        ("It gives no access to a principal of another account.", "It gives access to nobody."),
        (
            "cfn-lint: {config: {ignore_checks: [W1030, W2506]}}",
            "cfn-lint: {config: {ignore_checks: [W1030, W2506, E3001]}}",
        ),
        ("Name: fh-acme--globex/input/api_token", "Name: fh-acme--globex/input/otp_seed"),
        // Inputs: other types, other bounds, other places of their values.
        ("InputValues: {Type: String,", "InputValues: {Type: \"AWS::SSM::Parameter::Value<String>\","),
        (
            "InputDebug: {Type: String, Description: \"debug (true or false)\", AllowedValues: [\"true\", \"false\"]",
            "InputDebug: {Type: String, Description: \"debug (true or false)\", AllowedValues: [\"true\", \"false\", \"maybe\"]",
        ),
        (
            "InputZones: {Type: String, Description: \"zones (words with commas between them, or a JSON list)\", Default: \"a,b\"}",
            "InputZones: {Type: String, Description: \"zones\", Default: \"{{resolve:ssm:x}}\"}",
        ),
        ("Default: \"a,b\"}", "Default: \"arn:aws:iam::999999999999:root\"}"),
        (
            "InputZones: {Description: The customer's answer, Value: !Ref InputZones}",
            "InputZones: {Description: The customer's answer, Value: !Ref HttpsProxy}",
        ),
        (
            "InputApiToken: {Type: String, Description: \"api_token\", NoEcho: true",
            "InputApiToken: {Type: String, Description: \"api_token\", NoEcho: false",
        ),
        // Secrets of the app: shown, of another name, under another key, changed by its roles.
        (
            "Description: \"read by the app itself\", NoEcho: true, Default: \"\"",
            "Description: \"read by the app itself\", Default: \"\"",
        ),
        ("Name: fh-acme--globex--secret/api_key", "Name: fh-acme--globex--secret/api_ke"),
        ("Name: fh-acme--globex--secret/api_key", "Name: fh-acme--initech--secret/api_key"),
        ("KmsKeyId: alias/aws/secretsmanager", "KmsKeyId: alias/mine"),
        ("Value: \"admin_password,api_key", "Value: \"api_key"),
        ("{PasswordLength: 32, ExcludePunctuation: true}", "{PasswordLength: 4, ExcludePunctuation: true}"),
        ("Condition: HasAppSecretApiKey", "Condition: HasAppSecretCertificate"),
        ("HasAppSecretApiKey: !Not", "HasAppSecretApiKey: !And"),
        ("SecretString: !Ref AppSecretApiKey", "SecretString: !Ref HttpsProxy"),
        ("Name: fh-acme--globex/secrets-key", "Name: fh-acme--globex--secret/secrets-key"),
        ("secret:fh-acme--globex--secret/*\n                  - !GetAtt", "secret:*\n                  - !GetAtt"),
        ("NotAction: [\"secretsmanager:Get*\"", "NotAction: [\"secretsmanager:*\""),
        // Policies of the app.
        ("table/globex-*\"}],\"Version\"", "table/globex-*\",\"Principal\":\"*\"}],\"Version\""),
        ("dynamodb:*:222222222222:table", "dynamodb:*:999999999999:table"),
        ("\"arn:aws:dynamodb:*:222222222222:table/globex-*\"", "{\"Fn::ImportValue\": \"x\"}"),
        ("\"arn:aws:dynamodb:*:222222222222:table/globex-*\"", "{\"Fn::Sub\": \"arn:aws:s3:::${InputApiToken}\"}"),
    ] {
        let template = changed(old, new);

        let found = check(&template)
            .map_or_else(|wrong| vec![wrong.to_string()], |found| found.into_iter().map(|one| one.reason).collect());

        assert!(!found.is_empty(), "{old}\n{new}");
    }
}

/// Each piece is harmless: neither the text of the policy nor the default is what they are together.
#[test]
fn what_only_arises_with_the_default_of_an_input_is_found() {
    let policy = "\"arn:aws:dynamodb:*:222222222222:table/globex-*\"";
    for (default, text, reason) in [
        ("{", "{${InputZones}resolve:secretsmanager:prod/db}}", "contains `{{`"),
        ("{", "arn:aws:s3:::${InputZones}${InputZones}resolve:ssm:x}}", "contains `{{`"),
        ("99999999999", "arn:aws:iam::${InputZones}9:role/x", "names account 999999999999, which is not yours"),
        ("999999", "arn:aws:iam::${InputZones}${InputZones}:role/x", "names account 999999999999, which is not yours"),
        ("a", "arn:aws:iam::9${InputZones}:role/x", "names resources of account `9${InputZones}`, which is not yours"),
    ] {
        let template =
            changed("or a JSON list)\", Default: \"a,b\"}", &format!("or a JSON list)\", Default: \"{default}\"}}"));
        let template = template.replacen(policy, &format!("{{\"Fn::Sub\": \"{text}\"}}"), 1);

        let reasons = reasons_of(&template);

        assert!(reasons.len() == 1 && reasons[0].contains(reason), "{text}: {reasons:?}");
    }
}

#[test]
fn sections_and_functions_that_no_stack_has_are_found() {
    for (section, of) in [("Transform: AWS::LanguageExtensions\n", ""), ("Hooks: {}\n", ""), ("resources: {}\n", "")] {
        let found = found(&format!("{RENDERED}{section}"));
        assert_eq!((found.len(), found[0].of.as_str()), (1, of), "{section}");
    }
    let loops = with("  Fn::ForEach::Roles: [X, [a, b], {\"Role${X}\": {Type: AWS::IAM::Role}}]");
    assert_eq!(
        reasons_of(&loops),
        ["Fn::ForEach::Roles: `Resources.Fn::ForEach::Roles` is not in the template that Freehold renders"]
    );
}

#[test]
fn what_names_another_install_in_one_place_is_found() {
    let other = |from: &str, to: &str| found(&changed(from, to));
    let tenant = other("Freehold: {Tenant: \"acme\"", "Freehold: {Tenant: \"evil\"");
    let account = other("      \"222222222222\": \"globex\"", "      \"333333333333\": \"globex\"");
    let install = other("      \"222222222222\": \"globex\"", "      \"222222222222\": \"initech\"");
    let nothing = other("  Freehold: {Tenant: \"acme\"", "  Freehold: {Vendor: \"acme\"");

    assert_eq!(
        tenant[0].reason,
        "the runner's role is not allowed to receive orders from the vendor's queue `fh-evil--globex.fifo`"
    );
    assert!(account.len() > 1, "{account:#?}");
    assert_eq!(
        install[0].reason,
        "`Mappings.BoundTo.eu-west-1.222222222222` is `initech`, and Freehold renders `globex`"
    );
    assert!(nothing.iter().any(|one| one.reason == "`Metadata.Freehold.Tenant`: is missing"), "{nothing:#?}");
}

#[test]
fn a_resource_of_the_customers_own_is_listed_and_not_judged() {
    let template = with("  Alarm: {Type: AWS::SNS::Topic}");
    let own = |text: &str| verify(&template, &[text.parse().unwrap()], None).unwrap();

    let allowed = own("Alarm=AWS::SNS::Topic");
    let other = own("Alarm=AWS::Lambda::Function");
    let absent = own("Alert=AWS::SNS::Topic");

    assert_eq!(allowed.findings, []);
    assert_eq!((allowed.added[0].name.as_str(), allowed.added[0].kind.as_str()), ("Alarm", "AWS::SNS::Topic"));
    assert_eq!(template.lines().nth(allowed.added[0].line - 1).unwrap(), "  Alarm: {Type: AWS::SNS::Topic}");
    assert!(other.findings.iter().any(|one| one.reason.contains("which `--allow` names")), "{other:#?}");
    assert_eq!((absent.added.len(), absent.findings.len()), (0, 2), "{absent:#?}");
    for wrong in ["Alarm", "=AWS::SNS::Topic", "Alarm=", "Alarm=Topic", "A-b=AWS::SNS::Topic"] {
        assert!(wrong.parse::<freehold_stackcheck::Own>().is_err(), "{wrong}");
    }
}

#[test]
fn an_output_of_the_customers_own_is_listed_and_not_judged() {
    let line = "  AlarmTopic: {Value: !Ref HttpsProxy}";
    let template = changed("\nOutputs:\n", &format!("\nOutputs:\n{line}\n"));
    let own = |name: &str| verify(&template, &[freehold_stackcheck::Own::output(name).unwrap()], None).unwrap();

    let allowed = own("AlarmTopic");
    let unnamed = verify(&template, &[], None).unwrap();
    let part = own("OrdersQueueUrl");

    assert_eq!(allowed.findings, []);
    assert_eq!((allowed.added[0].name.as_str(), allowed.added[0].kind.as_str()), ("AlarmTopic", "output"));
    assert_eq!(template.lines().nth(allowed.added[0].line - 1), Some(line));
    let says =
        "this install's stack has no output `AlarmTopic`; for an output of your own, pass `--allow-output AlarmTopic`";
    assert_eq!(unnamed.findings.iter().map(|one| one.reason.as_str()).collect::<Vec<_>>(), [says]);
    assert_ne!(part.findings, [], "a part of the stack is not the customer's own");
    assert!(
        verify(RENDERED, &[freehold_stackcheck::Own::output("AlarmTopic").unwrap()], None).unwrap().findings[0]
            .reason
            .ends_with("no output `AlarmTopic`, which `--allow-output` names")
    );
    assert!(freehold_stackcheck::Own::output("a-b").is_err());
}

#[test]
fn a_part_of_the_stack_is_not_the_customers_own() {
    let own = "Boundary=AWS::IAM::ManagedPolicy".parse().unwrap();

    let found = verify(RENDERED, &[own], None).unwrap().findings;

    assert!(found.iter().any(|one| one.reason == "`Resources.Boundary` is missing"), "{found:#?}");
}

#[test]
fn the_template_says_whom_and_what_it_names() {
    let names = verify(RENDERED, &[], None).unwrap().names.unwrap();

    assert_eq!((names.tenant.as_str(), names.tenant_account.as_str()), ("acme", "111111111111"));
    assert_eq!((names.install.as_str(), names.account.as_str()), ("globex", "222222222222"));
    assert_eq!(names.orders_queue_url, "https://sqs.eu-west-1.amazonaws.com/111111111111/fh-acme--globex.fifo");
}

#[test]
fn a_line_that_a_rule_finds_is_found_once() {
    let template = changed("BlockPublicPolicy: true", "BlockPublicPolicy: false");

    assert_eq!(found(&template), check_rules(&template).unwrap());
    assert_eq!(found(&template)[0].rule, Rule::NoPublicAccess);
}

/// Returns the places of the words of the template that are part of a value or a key, and not of a comment or of a text
/// that the app fills in.
fn words() -> Vec<(usize, usize)> {
    let is_of_app = |line: &str| {
        let line = line.trim_start();
        line.starts_with('#')
            || line.starts_with("- {Label")
            || line.starts_with("Input")
            || line.starts_with("EnableBreakGlass")
            || line.starts_with("EnableCustom")
            || line.starts_with("Policies: [{")
            || line.starts_with("- \"arn:aws:iam::aws:policy/")
            || line.starts_with("TenantKey")
            || line.starts_with("TenantSecondKey")
            || line.starts_with("Description: \"Answer to")
            || line.starts_with("Default: t4g.")
            || line.starts_with("AppSecret")
            || line.starts_with("Description: \"Secret of the app")
    };
    let mut words = Vec::new();
    let mut at = 0;
    for line in RENDERED.split_inclusive('\n') {
        let is_word = |c: char| c.is_ascii_alphanumeric();
        let mut begins = None;
        for (place, c) in line.char_indices().chain([(line.len(), '\n')]) {
            match (begins, is_word(c)) {
                (None, true) => begins = Some(place),
                (Some(first), false) => {
                    words.push((at + first, at + place));
                    begins = None;
                }
                _ => {}
            }
        }
        if is_of_app(line) || line.contains(" #") {
            words.retain(|(first, _)| *first < at);
        }
        at += line.len();
    }
    words
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn every_word_counts(at in 0..10_000_usize, other in "[a-z]{1,4}[0-9]{0,2}") {
        let words = words();
        let (first, last) = words[at % words.len()];
        prop_assume!(RENDERED[first..last] != other);

        let template = format!("{}{other}{}", &RENDERED[..first], &RENDERED[last..]);

        // A template that cannot be read is refused too.
        prop_assert!(check(&template).map_or(true, |found| !found.is_empty()), "{first}: {}", &RENDERED[first..last]);
    }

    #[test]
    fn every_line_counts(at in 0..10_000_usize) {
        let lines: Vec<&str> = RENDERED.lines().collect();
        let at = at % lines.len();
        let line = lines[at].trim_start();
        // An app may have fewer policies.
        prop_assume!(!line.is_empty() && !line.starts_with('#') && !line.starts_with("- \"arn:aws:iam::aws:policy/"));

        let template = [&lines[..at], &lines[at + 1..]].concat().join("\n");

        prop_assert!(check(&template).map_or(true, |found| !found.is_empty()), "{}", lines[at]);
    }
}
