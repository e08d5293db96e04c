//! What is said about the CloudFormation templates beside a config.

mod properties;

use freehold_appconfig::Severity;

use crate::config::{Config, good};

const HEAD: &str = "name = \"topic\"\ntype = \"cloudformation_stack\"\ntemplate = \"./topic.yaml\"\n";

fn stack(template: &str, more: &str) -> Config {
    good().with_roles().with("components/topic.toml", &format!("{HEAD}{more}")).with("components/topic.yaml", template)
}

#[test]
fn a_template_as_cloudformation_takes_it_is_not_a_mistake() {
    let template = r#"
AWSTemplateFormatVersion: "2010-09-09"
Parameters:
  Title: {Type: String, Default: x}
Mappings:
  Sizes: {a: {b: c}}
Conditions:
  Named: !Not [!Equals [!Ref Title, ""]]
  Both: !And [!Condition Named, {Condition: Named}]
Resources:
  Topic:
    Type: AWS::SNS::Topic
    Condition: Both
    DependsOn: Queue
    DeletionPolicy: Retain
    Properties:
      TopicName: !If [Named, !Sub "${AWS::StackName}-${Title}-${!Literal}", !Ref AWS::NoValue]
      DisplayName: !Sub ["${A}-${Queue.QueueName}", {A: !FindInMap [Sizes, a, b]}]
  Queue:
    Type: AWS::SQS::Queue
  Policy:
    Type: AWS::SNS::TopicPolicy
    DependsOn: [Topic]
    Properties:
      Topics: [!Ref Topic]
      PolicyDocument:
        Statement: [{Effect: Allow, Condition: {StringEquals: {a: b}}, Resource: {"Fn::GetAtt": [Queue, Arn]}}]
Outputs:
  Arn: {Value: !GetAtt Queue.Arn, Condition: Named}
"#;

    assert!(stack(template, "").check().is_empty(), "{}", stack(template, "").check());
}

#[test]
fn names_that_the_template_does_not_define_are_marked() {
    let template = r#"Parameters:
  Title: {Type: String, Default: x}
Resources:
  Topic:
    Type: AWS::SNS::Topic
    DependsOn: Tpic
    Condition: Nmed
    Properties:
      TopicName: !Ref Titel
      DisplayName: !Sub "é ${Titel}-${AWS::Regon}"
      Tags: [{Key: a, Value: !GetAtt Queue.Arn}, {Key: b, Value: !FindInMap [Sizes, a, b]}, {Key: c, Value: !Joyn ["", []]}]
Outputs:
  Arn:
    Value: {"Fn::If": [Other, a, b]}
"#;

    insta::assert_snapshot!(stack(template, "").check(), @r#"
    error: resource `Topic` depends on `Tpic`, which does not exist
     --> components/topic.yaml:6:16
      |
    6 |     DependsOn: Tpic
      |                ^^^^
      |
      = help: did you mean `Topic`?

    error: resource `Topic` names condition `Nmed`, which does not exist
     --> components/topic.yaml:7:16
      |
    7 |     Condition: Nmed
      |                ^^^^
      |
      = help: define it in the template, or correct the name

    error: there is no parameter or resource `Titel`
     --> components/topic.yaml:9:18
      |
    9 |       TopicName: !Ref Titel
      |                  ^^^^^^^^^^
      |
      = help: did you mean `Title`?

    error: there is no parameter or resource for `${AWS::Regon}`
      --> components/topic.yaml:10:20
       |
    10 |       DisplayName: !Sub "é ${Titel}-${AWS::Regon}"
       |                    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
       |
       = help: did you mean `AWS::Region`?

    error: there is no parameter or resource for `${Titel}`
      --> components/topic.yaml:10:20
       |
    10 |       DisplayName: !Sub "é ${Titel}-${AWS::Regon}"
       |                    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
       |
       = help: did you mean `Title`?

    error: the template reads an attribute of resource `Queue`, which does not exist
      --> components/topic.yaml:11:30
       |
    11 |       Tags: [{Key: a, Value: !GetAtt Queue.Arn}, {Key: b, Value: !FindInMap [Sizes, a, b]}, {Key: c, Value: !Joyn ["", []]}]
       |                              ^^^^^^^^^^^^^^^^^
       |
       = help: define it in the template, or correct the name

    error: there is no mapping `Sizes`
      --> components/topic.yaml:11:78
       |
    11 |       Tags: [{Key: a, Value: !GetAtt Queue.Arn}, {Key: b, Value: !FindInMap [Sizes, a, b]}, {Key: c, Value: !Joyn ["", []]}]
       |                                                                              ^^^^^
       |
       = help: define it in the template, or correct the name

    error: CloudFormation has no function `Joyn`
      --> components/topic.yaml:11:109
       |
    11 |       Tags: [{Key: a, Value: !GetAtt Queue.Arn}, {Key: b, Value: !FindInMap [Sizes, a, b]}, {Key: c, Value: !Joyn ["", []]}]
       |                                                                                                             ^^^^^^^
       |
       = help: did you mean `Fn::Join`?

    error: `Fn::If` names condition `Other`, which does not exist
      --> components/topic.yaml:14:24
       |
    14 |     Value: {"Fn::If": [Other, a, b]}
       |                        ^^^^^
       |
       = help: define it in the template, or correct the name
    "#);
}

#[test]
fn what_is_not_a_template_is_said_with_its_place() {
    insta::assert_snapshot!(stack("Resources:\n  A: [1, 2\n  B: {}\n", "").check(), @r"
    error: not a template: illegal placement of ':' indicator
     --> components/topic.yaml:3:4
      |
    3 |   B: {}
      |    ^
      |
      = help: write the template in YAML or JSON; `cloudformation validate-template` reads it too
    ");
    insta::assert_snapshot!(stack("Resources: {}\n", "").check(), @r"
    error: the template has no resources
     --> components/topic.yaml:1:1
      |
    1 | Resources: {}
      | ^^^^^^^^^
      |
      = help: add one below `Resources:`; a stack of CloudFormation needs at least one resource
    ");
    insta::assert_snapshot!(stack("- a\n", "").check(), @r"
    error: the template is not a map of sections
     --> components/topic.yaml:1:1
      |
    1 | - a
      | ^
      |
      = help: write `Resources:` and the resources below it
    ");
}

#[test]
fn sections_types_and_keys_are_those_of_cloudformation() {
    let template = "Parameter:\n  A: {Type: String}\nResources:\n  A_b: {Properties: {}}\n  B: {Type: Queue, Propertys: {}}\n  C: {Type: AWS::SQS::Queue}\n  C: {Type: AWS::SQS::Queue}\nOutputs:\n  D: {Export: {Name: x}}\n";

    insta::assert_snapshot!(stack(template, "").check(), @r"
    error: `Parameter` is not a section
     --> components/topic.yaml:1:1
      |
    1 | Parameter:
      | ^^^^^^^^^
      |
      = help: did you mean `Parameters`?

    error: resource `A_b` has no `Type`
     --> components/topic.yaml:4:3
      |
    4 |   A_b: {Properties: {}}
      |   ^^^
      |
      = help: add its type, such as `Type: AWS::SQS::Queue`

    error: the name of resource `A_b` has a character that is not a letter or a digit
     --> components/topic.yaml:4:3
      |
    4 |   A_b: {Properties: {}}
      |   ^^^
      |
      = help: rename it

    error: resource `B` has no known `Type`
     --> components/topic.yaml:5:13
      |
    5 |   B: {Type: Queue, Propertys: {}}
      |             ^^^^^ expected a type such as `AWS::SQS::Queue` or `Custom::Name`

    error: `Propertys` is not a key of a resource
     --> components/topic.yaml:5:20
      |
    5 |   B: {Type: Queue, Propertys: {}}
      |                    ^^^^^^^^^
      |
      = help: did you mean `Properties`?

    warning: key `C` is given twice
     --> components/topic.yaml:7:3
      |
    6 |   C: {Type: AWS::SQS::Queue}
      |   - first given here
    7 |   C: {Type: AWS::SQS::Queue}
      |   ^
      |
      = help: remove one of them

    error: output `D` has no `Value`
     --> components/topic.yaml:9:3
      |
    9 |   D: {Export: {Name: x}}
      |   ^
      |
      = help: add `Value: ...`
    ");
}

#[test]
fn parameters_are_those_of_the_template() {
    let template = "Parameters:\n  Title: {Type: String}\n  Size: {Type: Number, Default: 1}\nResources:\n  T: {Type: AWS::SNS::Topic}\n";

    insta::assert_snapshot!(stack(template, "[parameters]\nTitel = \"x\"\n").check(), @r#"
    error: the template `components/topic.yaml` needs parameter `Title`, but the config has no value for it
     --> components/topic.toml:4:2
      |
    4 | [parameters]
      |  ^^^^^^^^^^
      |
     ::: components/topic.yaml:2:3
      |
    2 |   Title: {Type: String}
      |   ----- declared here without a default
      |
      = help: add `Title = "..."` to `[parameters]`, or give the parameter a `Default`

    error: the template `components/topic.yaml` has no parameter `Titel`
     --> components/topic.toml:5:1
      |
    5 | Titel = "x"
      | ^^^^^
      |
      = help: did you mean `Title`?
    "#);
}

#[test]
fn iam_resources_have_to_be_acknowledged() {
    let template = "Resources:\n  R:\n    Type: AWS::IAM::Role\n    Properties: {RoleName: x, PermissionsBoundary: y, AssumeRolePolicyDocument: {}}\n";
    let plain = template.replace("RoleName: x", "Path: /");

    insta::assert_snapshot!(stack(template, "capabilities = [\"CAPABILITY_IAM\"]\n").check(), @r#"
    error: resource `R` of the template needs the capability `CAPABILITY_NAMED_IAM`
     --> components/topic.toml:4:16
      |
    4 | capabilities = ["CAPABILITY_IAM"]
      |                ^^^^^^^^^^^^^^^^^^
      |
     ::: components/topic.yaml:3:11
      |
    3 |     Type: AWS::IAM::Role
      |           -------------- this resource
      |
      = help: add `capabilities = ["CAPABILITY_NAMED_IAM"]`
    "#);
    assert!(stack(&plain, "capabilities = [\"CAPABILITY_IAM\"]\n").check().is_empty());
    assert!(stack(template, "capabilities = [\"CAPABILITY_NAMED_IAM\"]\n").check().is_empty());
}

#[test]
fn a_role_without_a_boundary_is_an_error_unless_a_condition_may_leave_it_out() {
    let template = "Resources:\n  R:\n    Type: AWS::IAM::Role\n    Properties: {AssumeRolePolicyDocument: {}}\n";
    let acknowledged = "capabilities = [\"CAPABILITY_IAM\"]\n";
    let conditional = format!("Conditions:\n  C: !Equals [a, b]\n{template}    Condition: C\n");
    let transformed = format!("Transform: AWS::Serverless-2016-10-31\n{template}");

    insta::assert_snapshot!(stack(template, acknowledged).check(), @r#"
    error: role `R` has no `PermissionsBoundary`, so AWS does not let the deploy create it
     --> components/topic.yaml:2:3
      |
    2 |   R:
      |   ^
      |
      = help: add a parameter `Boundary` to the template, `PermissionsBoundary: !Ref Boundary` to the role, and `Boundary = "{{ .nuon.install_stack.outputs.boundary_arn }}"` to the component's parameters
    "#);
    let warned = stack(&conditional, acknowledged).check().to_string();
    assert!(warned.starts_with("warning: role `R` has no `PermissionsBoundary`"), "{warned}");
    assert!(stack(&transformed, acknowledged).check().is_empty());
}

#[test]
fn a_macro_may_define_what_is_not_there() {
    let template = "Transform: AWS::Serverless-2016-10-31\nGlobals: {}\nResources:\n  F: {Type: AWS::Serverless::Function, Connectors: {}}\nOutputs:\n  R: {Value: !Ref FRole}\n";

    assert!(stack(template, "").check().is_empty(), "{}", stack(template, "").check());
}

#[test]
fn a_template_in_json_is_read_too() {
    let config = good().with_roles().with("components/topic.toml", &HEAD.replace(".yaml", ".json")).with(
        "components/topic.json",
        "{\n\t\"Resources\": {\n\t\t\"T\": {\"Type\": \"AWS::SNS::Topic\", \"DependsOn\": [\"U\"]}\n\t}\n}\n",
    );

    insta::assert_snapshot!(config.check(), @r#"
    error: resource `T` depends on `U`, which does not exist
     --> components/topic.json:3:50
      |
    3 |         "T": {"Type": "AWS::SNS::Topic", "DependsOn": ["U"]}
      |                                                        ^^^
      |
      = help: did you mean `T`?
    "#);
}

#[test]
fn hostile_templates_are_refused_at_once() {
    let laughs = (1..12).fold("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned(), |text, at| {
        let list = vec![format!("*a{}", at - 1); 10].join(", ");
        format!("{text}a{at}: &a{at} [{list}]\n")
    });
    for template in [laughs, "[".repeat(100_000), "- ".repeat(100_000), "a: ".repeat(10_000), "!Ref ".repeat(1000)] {
        let found = stack(&template, "").check();

        assert_eq!(found.count(Severity::Error), 1, "{found}");
    }
}

#[test]
fn a_resource_type_that_aws_does_not_have_is_a_warning() {
    let template = "Resources:\n  A: {Type: AWS::SQS::Queu}\n  B: {Type: AWS::Nothing::LikeIt}\n  \
                    C: {Type: Custom::Own}\n  D: {Type: Acme::Svc::Thing}\n  E: {Type: Acme::Svc::Thing::MODULE}\n  \
                    F: {Type: AWS::CloudFormation::CustomResource, Properties: {ServiceToken: x}}\n";

    insta::assert_snapshot!(stack(template, "").check(), @r"
    warning: CloudFormation has no resource type `AWS::SQS::Queu`
     --> components/topic.yaml:2:13
      |
    2 |   A: {Type: AWS::SQS::Queu}
      |             ^^^^^^^^^^^^^^
      |
      = help: did you mean `AWS::SQS::Queue`?

    warning: CloudFormation has no resource type `AWS::Nothing::LikeIt`
     --> components/topic.yaml:3:13
      |
    3 |   B: {Type: AWS::Nothing::LikeIt}
      |             ^^^^^^^^^^^^^^^^^^^^
      |
      = help: correct the type; if it is newer than cfn-lint 1.58.0, ignore this warning
    ");
    let with_macro = format!("Transform: Own\n{template}");
    assert_eq!(stack(&with_macro, "").check().to_string(), "");
}
