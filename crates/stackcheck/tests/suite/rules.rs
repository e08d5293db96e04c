//! The stack that we render keeps every rule; each change for the worse is found in its line.

use freehold_stackcheck::{Finding, RULES, Rule, check_rules as check};
use proptest::prelude::*;

/// A stack as `freehold install stack` renders it, of an app that asks the customer everything.
const RENDERED: &str = include_str!("../../../app/golden/install-with-inputs.yaml");

/// Returns the only finding after `old` was exchanged for `new`, and the text of its line.
fn after(old: &str, new: &str) -> (Finding, String) {
    assert_eq!(RENDERED.matches(old).count(), 1, "{old}");
    only(&RENDERED.replace(old, new))
}

/// The same with something added to the end of the resources.
fn with(resource: &str) -> (Finding, String) {
    only(&RENDERED.replace("\nOutputs:\n", &format!("\n{resource}\n\nOutputs:\n")))
}

fn only(template: &str) -> (Finding, String) {
    let mut found = check(template).unwrap();
    assert_eq!(found.len(), 1, "{found:#?}");
    let finding = found.remove(0);
    let line = template.lines().nth(finding.line - 1).unwrap().trim().to_owned();
    (finding, line)
}

#[test]
fn the_rendered_stack_keeps_every_rule() {
    assert_eq!(check(RENDERED).unwrap(), []);
}

#[test]
fn a_dangerous_mode_that_is_on_by_default_is_found() {
    let old = "removed.\n    Default: \"false\"";
    let text =
        RENDERED.replace("the app is removed.\n    Default: \"false\"", "the app is removed.\n    Default: \"true\"");
    assert_ne!(text, RENDERED, "{old}");

    let glass = RENDERED.lines().find(|line| line.starts_with("  EnableBreakGlass: ")).unwrap();
    let (broken, _) = after(glass, &glass.replace("Default: \"false\"", "Default: \"true\""));
    assert_eq!((broken.rule, broken.of.as_str()), (Rule::SwitchDefaults, "EnableBreakGlass"));

    let (finding, line) = only(&text);

    assert_eq!((finding.rule, finding.of.as_str()), (Rule::SwitchDefaults, "EnableDeprovision"));
    assert_eq!(line, "Default: \"true\"");
}

#[test]
fn a_principal_from_outside_is_found_wherever_it_stands() {
    let key = "          - Sid: ThisAccount\n            Effect: Allow\n            Principal: {AWS: !Sub \"arn:${AWS::Partition}:iam::${AWS::AccountId}:root\"}";
    let worse = |who: &str| key.replace("!Sub \"arn:${AWS::Partition}:iam::${AWS::AccountId}:root\"", who);
    let (everybody, line) = after(key, &worse("\"*\""));
    let (other, _) = after(key, &worse("arn:aws:iam::999999999999:root"));
    let (number, _) = after(key, &worse("\"999999999999\""));
    let (parameter, _) = after(key, &worse("!Ref HttpsProxy"));
    let (service, _) = after("{Service: ec2.amazonaws.com}", "{Service: ec2.example.com}");
    let (user, _) = with("  Somebody: {Type: AWS::IAM::User}");

    assert_eq!((everybody.rule, everybody.of.as_str()), (Rule::NoOutsidePrincipal, "Key"));
    assert_eq!(line, "Principal: {AWS: \"*\"}");
    assert_eq!(everybody.reason, "everybody in the world is permitted");
    assert_eq!(other.reason, "`arn:aws:iam::999999999999:root` may belong to another account");
    assert_eq!(number.reason, "`999999999999` may belong to another account");
    assert_eq!(parameter.reason, "`${HttpsProxy}` may belong to another account");
    assert_eq!(
        (service.of.as_str(), service.reason.as_str()),
        ("RunnerRole", "`ec2.example.com` is not a service of AWS")
    );
    assert_eq!(user.of, "Somebody");
}

#[test]
fn a_parameter_that_takes_strangers_is_found() {
    let pinned = "^(arn:aws[a-z-]*:iam::222222222222:(root|user/.+|role/.+))?$";
    let (finding, _) = after(pinned, "^arn:aws:iam::[0-9]{12}:root$");
    let (two, _) = after(pinned, "^(arn:aws:iam::222222222222:root|arn:aws:iam::999999999999:root)$");

    assert_eq!((finding.rule, finding.of.as_str()), (Rule::NoOutsidePrincipal, "RunnerRole"));
    assert_eq!(two, finding);
}

#[test]
fn a_pattern_that_takes_strangers_beside_own_ones_is_found() {
    let pinned = "^(arn:aws[a-z-]*:iam::222222222222:(root|user/.+|role/.+))?$";
    let root = "arn:aws:iam::222222222222:root";

    for pattern in [
        format!("^(.*|{root})$"),
        format!("^({root}|.*)$"),
        format!("^{root}|.*$"),
        format!("^({root})|(.*)$"),
        format!("^(x|{root})$"),
        format!("^.*{root}$"),
        root.to_owned(),
        "^$".to_owned(),
    ] {
        let (finding, _) = after(pinned, &pattern);
        assert_eq!((finding.rule, finding.of.as_str()), (Rule::NoOutsidePrincipal, "RunnerRole"), "{pattern}");
    }
    for pattern in [format!("^{root}$"), format!("^({root})?$"), "^arn:aws:iam::222222222222:role/.+$".to_owned()] {
        assert_eq!(check(&RENDERED.replace(pinned, &pattern)).unwrap(), [], "{pattern}");
    }
}

#[test]
fn a_transform_is_found_however_deep_it_stands() {
    let include = "Fn::Transform: {Name: AWS::Include, Parameters: {Location: s3://b/more.yaml}}";
    let within = |old: &str| after(old, &format!("{old}\n      {include}")).0;

    let (resource, _) = with(&format!("  {include}"));
    let (deep, line) = with(&format!("  Keys: {{Type: AWS::SSM::Parameter, Properties: {{Tags: {{{include}}}}}}}"));
    let property = within("    Properties:\n      BucketName: !Sub fh-acme--globex--${AWS::AccountId}");
    let (output, _) = after("\nOutputs:\n", &format!("\nOutputs:\n  {include}\n"));

    assert_eq!([resource.rule, deep.rule, property.rule, output.rule], [Rule::NoCode; 4]);
    assert_eq!([deep.of.as_str(), property.of.as_str(), output.of.as_str()], ["Keys", "Bucket", ""]);
    assert!(line.starts_with("Keys: "), "{line}");
}

#[test]
fn a_policy_that_is_not_written_out_is_found() {
    let text = r#"'{"Statement": [{"Effect": "Allow", "Principal": "*", "Action": "*", "Resource": "*"}]}'"#;
    let (queue, line) =
        with(&format!("  Open: {{Type: AWS::SNS::TopicPolicy, Properties: {{PolicyDocument: {text}}}}}"));
    let (key, _) = with(&format!("  Open: {{Type: AWS::KMS::Key, Properties: {{KeyPolicy: !Sub {text}}}}}"));
    let (role, _) =
        with("  Open: {Type: AWS::IAM::Role, Properties: {AssumeRolePolicyDocument: {Statement: !Ref HttpsProxy}}}");

    assert_eq!((queue.rule, queue.of.as_str()), (Rule::NoWildcardAssumeRole, "Open"));
    assert_eq!(queue.reason, "`PolicyDocument` must be written out as a policy document, so that it can be checked");
    assert!(line.starts_with("Open: "), "{line}");
    assert_eq!([key.rule, role.rule], [Rule::NoOutsidePrincipal; 2]);
}

#[test]
fn a_machine_whose_volume_is_not_encrypted_is_found() {
    let (plain, line) = after("VolumeType: gp3, Encrypted: true,", "VolumeType: gp3, Encrypted: false,");
    let (silent, _) = after("VolumeType: gp3, Encrypted: true,", "VolumeType: gp3,");

    assert_eq!((plain.rule, plain.of.as_str()), (Rule::Encryption, "Machine"));
    assert!(line.contains("Encrypted: false"), "{line}");
    assert_eq!(silent.reason, "this volume is not encrypted");
}

#[test]
fn a_policy_of_an_endpoint_can_only_take_away() {
    let open = "{Statement: [{Effect: Allow, Principal: '*', Action: '*', Resource: '*'}]}";
    let endpoint = format!("  Queues: {{Type: AWS::EC2::VPCEndpoint, Properties: {{PolicyDocument: {open}}}}}");

    let found = check(&RENDERED.replace("\nOutputs:\n", &format!("\n{endpoint}\n\nOutputs:\n"))).unwrap();

    assert_eq!(found, []);
}

#[test]
fn a_role_that_only_the_customers_own_boundary_holds_is_found() {
    let boundary = "- !If [OwnBoundary, !Ref Boundary, !Ref AWS::NoValue]";
    let role = RENDERED.find("\n  BreakGlassRole:").unwrap();
    let (before, after) = RENDERED.split_at(role);

    let found = check(&format!("{before}{}", after.replacen(boundary, "- !Ref Limits", 1))).unwrap();

    let rules: Vec<(Rule, &str)> = found.iter().map(|one| (one.rule, one.of.as_str())).collect();
    assert_eq!(rules, [(Rule::Boundary, "BreakGlassRole"), (Rule::NoWildcardAssumeRole, "BreakGlassRole")]);
}

#[test]
fn a_wildcard_for_the_roles_that_may_be_taken_is_found() {
    let all =
        "                  - !Sub arn:${AWS::Partition}:iam::${AWS::AccountId}:role/fh-acme--globex--deprovision\n";
    let (finding, line) = after(all, &all.replace("acme--globex--deprovision", "*"));

    assert_eq!((finding.rule, finding.of.as_str()), (Rule::NoWildcardAssumeRole, "RunnerRole"));
    assert_eq!(line, "- !Sub arn:${AWS::Partition}:iam::${AWS::AccountId}:role/fh-*");
}

#[test]
fn a_role_without_its_boundary_or_with_one_that_holds_nothing_is_found() {
    let bound = "PermissionsBoundary: !If [OwnBoundary, !Ref PermissionsBoundaryArn, !Ref Boundary]";
    let roles = RENDERED.matches(bound).count();
    let first = RENDERED.replacen(&format!("      {bound}\n"), "", 1);
    let elsewhere = RENDERED.replacen(bound, "PermissionsBoundary: arn:aws:iam::aws:policy/X", 1);
    let loose = RENDERED.replace("iam:DeleteRolePermissionsBoundary", "iam:DeleteUserPermissionsBoundary");

    let unbound: Vec<Finding> = check(&first).unwrap();
    let unread: Vec<Finding> = check(&elsewhere).unwrap();
    let unheld: Vec<Finding> = check(&loose).unwrap();

    assert!(unbound.iter().any(|found| found.rule == Rule::Boundary && found.of == "ProvisionRole"), "{unbound:?}");
    assert!(unread.iter().any(|found| found.reason.contains("is not in this template")), "{unread:?}");
    let loosely = |found: &&Finding| found.reason.starts_with("its boundary lets the role make roles");
    assert_eq!(unheld.iter().filter(loosely).count(), roles, "{unheld:?}");
}

#[test]
fn an_endpoint_that_lets_in_more_than_the_runner_is_found() {
    let rule = "- {IpProtocol: tcp, FromPort: 443, ToPort: 443, SourceSecurityGroupId: !Ref SecurityGroup, Description: The runner}";
    let changes = [
        rule.replace("SourceSecurityGroupId: !Ref SecurityGroup", "CidrIp: 10.0.0.0/8"),
        rule.replace("!Ref SecurityGroup,", "!Ref VpcId,"),
        rule.replace("ToPort: 443", "ToPort: 444"),
    ];
    let (machine, _) = after("Groups: [!Ref SecurityGroup]", "Groups: [!Ref EndpointSecurityGroup]");

    for change in changes {
        let (finding, _) = after(rule, &change);
        assert_eq!((finding.rule, finding.of.as_str()), (Rule::NoIngress, "EndpointSecurityGroup"), "{change}");
    }
    assert_eq!((machine.rule, machine.of.as_str()), (Rule::NoIngress, "EndpointSecurityGroup"));
}

#[test]
fn a_machine_whose_metadata_can_be_asked_from_elsewhere_is_found() {
    let (tokens, _) = after("HttpTokens: required", "HttpTokens: optional");
    let (hops, _) = after("HttpPutResponseHopLimit: 1", "HttpPutResponseHopLimit: 2");

    assert_eq!([tokens.rule, hops.rule], [Rule::InstanceMetadata; 2]);
}

#[test]
fn a_boundary_that_is_attached_while_it_allows_is_found() {
    let boundary = "- !If [OwnBoundary, !Ref Boundary, !Ref AWS::NoValue]";
    let always = RENDERED.replacen(boundary, "- !Ref Boundary", 1);
    let turned = RENDERED.replacen(boundary, "- !If [OwnBoundary, !Ref AWS::NoValue, !Ref Boundary]", 1);

    for template in [always, turned] {
        let (finding, _) = only(&template);

        assert_eq!((finding.rule, finding.of.as_str()), (Rule::NoWildcardAssumeRole, "Boundary"));
    }
}

#[test]
fn a_role_that_anybody_may_take_on_a_condition_is_found() {
    let effect = "Effect: !If [ProvisionEnabled, Allow, Deny]\n            Principal: {AWS: ";
    let (finding, _) = only(&RENDERED.replacen(effect, &format!("{effect}\"*\"}} # "), 1));

    assert_eq!((finding.rule, finding.of.as_str()), (Rule::NoOutsidePrincipal, "ProvisionRole"));
}

#[test]
fn what_listens_runs_code_or_is_not_encrypted_is_found() {
    let (group, _) =
        with("  Door: {Type: AWS::EC2::SecurityGroup, Properties: {SecurityGroupIngress: [{CidrIp: 0.0.0.0/0}]}}");
    let (rule, _) = with("  Hole: {Type: AWS::EC2::SecurityGroupIngress}");
    let (nested, _) = with("  More: {Type: AWS::CloudFormation::Stack}");
    let (custom, _) = with("  More: {Type: 'Custom::Anything'}");
    let (secret, _) = with("  Plain: {Type: AWS::SecretsManager::Secret}");
    let (volume, _) = with("  Disk: {Type: AWS::EC2::Volume}");
    let (public, _) = after("BlockPublicPolicy: true", "BlockPublicPolicy: false");
    let (transform, line) =
        only(&RENDERED.replace("\nParameters:\n", "\nTransform: AWS::Serverless-2016-10-31\n\nParameters:\n"));

    assert_eq!([group.rule, rule.rule], [Rule::NoIngress; 2]);
    assert_eq!([nested.rule, custom.rule, transform.rule], [Rule::NoCode; 3]);
    assert_eq!([secret.rule, volume.rule], [Rule::Encryption; 2]);
    assert_eq!((public.rule, public.of.as_str()), (Rule::NoPublicAccess, "Bucket"));
    assert_eq!(line, "Transform: AWS::Serverless-2016-10-31");
}

#[test]
fn an_instance_whose_metadata_others_can_ask_is_found() {
    let template = |options: &str| {
        let text =
            format!("  Box:\n    Type: AWS::EC2::LaunchTemplate\n    Properties:\n      LaunchTemplateData: {options}");
        check(&RENDERED.replace("\nOutputs:\n", &format!("\n{text}\n\nOutputs:\n"))).unwrap()
    };

    let none = template("{}");
    let hops = template("{MetadataOptions: {HttpTokens: required, HttpPutResponseHopLimit: 2}}");
    let good = template("{MetadataOptions: {HttpTokens: required, HttpPutResponseHopLimit: 1}}");

    assert_eq!((none.len(), hops.len(), good.len()), (2, 1, 0));
    assert_eq!(hops[0].reason, "`HttpPutResponseHopLimit` has to be 1");
}

#[test]
fn an_invalid_template_is_reported_with_its_line() {
    let message = |text: &str| check(text).unwrap_err().to_string();

    assert_eq!(message(""), "line 1: the template is empty");
    assert_eq!(message("Resources: {}"), "line 1: the template has no `Resources`");
    assert_eq!(message("Resources:\n  A: {Type: x}\n  A: {Type: y}\n"), "line 3: key `A` is given twice");
    assert_eq!(message("Resources:\n  A: *b\n"), "line 2: while parsing node, found unknown anchor");
    assert!(message("Resources: [").starts_with("line 2: "), "{}", message("Resources: ["));
}

#[test]
fn every_rule_is_explained_once() {
    let mut rules: Vec<Rule> = RULES.iter().map(|(rule, _)| *rule).collect();
    rules.dedup();

    assert_eq!(rules.len(), RULES.len());
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "\\PC{0,200}") {
        let _ = check(&text);
    }

    #[test]
    fn no_damage_to_a_template_makes_it_panic(at in 0..RENDERED.len(), put in "[\\-:{}\\[\\]!&*#|> \n\"'a]{0,4}") {
        let mut at = at;
        while !RENDERED.is_char_boundary(at) {
            at -= 1;
        }
        let (before, after) = RENDERED.split_at(at);
        let _ = check(&format!("{before}{put}{}", after.get(put.len()..).unwrap_or_default()));
    }
}
