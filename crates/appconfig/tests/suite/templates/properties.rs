//! What is said about the properties of resources in a template.

use freehold_appconfig::Severity;

use super::stack;

#[test]
fn properties_that_a_type_does_not_have_or_misses_are_warnings() {
    let template = r#"Resources:
  Queue:
    Type: AWS::SQS::Queue
    Properties:
      DelaySecond: 5
      Colour: red
      RedrivePolicy: {deadLetterTargetArn: x, maxReceives: 3}
  Policy:
    Type: AWS::SNS::TopicPolicy
    Properties: {PolicyDocument: {}, Topic: [x]}
  Bare: {Type: AWS::SNS::Subscription}
  Bucket:
    Type: AWS::S3::Bucket
    Properties:
      Tags: [{Key: a}, {Kee: b, Value: c}]
      VersioningConfiguration: {MFADelete: x, Status: Enabled}
      LifecycleConfiguration:
        Rules:
          - Status: Enabled
            Transitions: [{TransitionInDays: 3}]
          - Prefix: x
"#;

    insta::assert_snapshot!(stack(template, "").check(), @r"
    warning: `AWS::SQS::Queue` has no property `DelaySecond`
     --> components/topic.yaml:5:7
      |
    5 |       DelaySecond: 5
      |       ^^^^^^^^^^^
      |
      = help: did you mean `DelaySeconds`?

    warning: `AWS::SQS::Queue` has no property `Colour`
     --> components/topic.yaml:6:7
      |
    6 |       Colour: red
      |       ^^^^^^
      |
      = help: remove it, unless it is newer than cfn-lint 1.58.0

    warning: `AWS::SQS::Queue` has no property `RedrivePolicy.maxReceives`
     --> components/topic.yaml:7:47
      |
    7 |       RedrivePolicy: {deadLetterTargetArn: x, maxReceives: 3}
      |                                               ^^^^^^^^^^^
      |
      = help: remove it, unless it is newer than cfn-lint 1.58.0

    warning: `AWS::SNS::TopicPolicy` has no property `Topic`
      --> components/topic.yaml:10:38
       |
    10 |     Properties: {PolicyDocument: {}, Topic: [x]}
       |                                      ^^^^^
       |
       = help: did you mean `Topics`?

    warning: resource `Bare` has no property `Protocol`, which `AWS::SNS::Subscription` requires
      --> components/topic.yaml:11:3
       |
    11 |   Bare: {Type: AWS::SNS::Subscription}
       |   ^^^^
       |
       = help: add `Protocol`

    warning: resource `Bare` has no property `TopicArn`, which `AWS::SNS::Subscription` requires
      --> components/topic.yaml:11:3
       |
    11 |   Bare: {Type: AWS::SNS::Subscription}
       |   ^^^^
       |
       = help: add `TopicArn`

    warning: resource `Bucket` has no property `Tags.Value`, which `AWS::S3::Bucket` requires
      --> components/topic.yaml:15:15
       |
    15 |       Tags: [{Key: a}, {Kee: b, Value: c}]
       |               ^^^
       |
       = help: add `Value`

    warning: `AWS::S3::Bucket` has no property `Tags.Kee`
      --> components/topic.yaml:15:25
       |
    15 |       Tags: [{Key: a}, {Kee: b, Value: c}]
       |                         ^^^
       |
       = help: did you mean `Key`?

    warning: `AWS::S3::Bucket` has no property `VersioningConfiguration.MFADelete`
      --> components/topic.yaml:16:33
       |
    16 |       VersioningConfiguration: {MFADelete: x, Status: Enabled}
       |                                 ^^^^^^^^^
       |
       = help: remove it, unless it is newer than cfn-lint 1.58.0

    warning: resource `Bucket` has no property `LifecycleConfiguration.Rules.Transitions.StorageClass`, which `AWS::S3::Bucket` requires
      --> components/topic.yaml:20:28
       |
    20 |             Transitions: [{TransitionInDays: 3}]
       |                            ^^^^^^^^^^^^^^^^
       |
       = help: add `StorageClass`

    warning: resource `Bucket` has no property `LifecycleConfiguration.Rules.Status`, which `AWS::S3::Bucket` requires
      --> components/topic.yaml:21:13
       |
    21 |           - Prefix: x
       |             ^^^^^^
       |
       = help: add `Status`
    ");
}

#[test]
fn literals_of_the_wrong_sort_are_warnings() {
    let template = r#"Resources:
  Queue:
    Type: AWS::SQS::Queue
    Properties:
      DelaySeconds: 30s
      FifoQueue: maybe
      QueueName: [a, b]
      Tags: {Key: a, Value: b}
  Function:
    Type: AWS::Lambda::Function
    Properties:
      Role: !Ref Queue
      Code: ./src
      Layers: a-layer
      Environment: {Variables: {A: {B: c}, D: 1}}
      VpcConfig: [x]
      MemorySize: {Value: 128}
  Topic: {Type: AWS::SNS::Topic, Properties: [x]}
"#;

    insta::assert_snapshot!(stack(template, "").check(), @r"
    warning: property `DelaySeconds` of resource `Queue` is a text
     --> components/topic.yaml:5:21
      |
    5 |       DelaySeconds: 30s
      |                     ^^^ expected a number

    warning: property `FifoQueue` of resource `Queue` is a text
     --> components/topic.yaml:6:18
      |
    6 |       FifoQueue: maybe
      |                  ^^^^^ expected `true` or `false`

    warning: property `QueueName` of resource `Queue` is a list
     --> components/topic.yaml:7:7
      |
    7 |       QueueName: [a, b]
      |       ^^^^^^^^^ expected a text

    warning: property `Tags` of resource `Queue` is a map
     --> components/topic.yaml:8:7
      |
    8 |       Tags: {Key: a, Value: b}
      |       ^^^^ expected a list

    warning: property `Layers` of resource `Function` is a text
      --> components/topic.yaml:14:15
       |
    14 |       Layers: a-layer
       |               ^^^^^^^ expected a list

    warning: property `VpcConfig` of resource `Function` is a list
      --> components/topic.yaml:16:7
       |
    16 |       VpcConfig: [x]
       |       ^^^^^^^^^ expected a map

    warning: property `MemorySize` of resource `Function` is a map
      --> components/topic.yaml:17:7
       |
    17 |       MemorySize: {Value: 128}
       |       ^^^^^^^^^^ expected a number

    warning: property `Properties` of resource `Topic` is a list
      --> components/topic.yaml:18:34
       |
    18 |   Topic: {Type: AWS::SNS::Topic, Properties: [x]}
       |                                  ^^^^^^^^^^ expected a map
    ");
}

#[test]
fn both_branches_of_a_condition_are_checked() {
    let template = r#"Conditions:
  C: !Equals [a, b]
Resources:
  Queue:
    Type: AWS::SQS::Queue
    Properties:
      DelaySeconds: !If [C, soon, !If [C, 1, !Ref AWS::NoValue]]
      Tags: !If [C, [{Key: a, Value: b}], [{Kay: a, Value: b}]]
"#;

    insta::assert_snapshot!(stack(template, "").check(), @r"
    warning: property `DelaySeconds` of resource `Queue` is a text
     --> components/topic.yaml:7:29
      |
    7 |       DelaySeconds: !If [C, soon, !If [C, 1, !Ref AWS::NoValue]]
      |                             ^^^^ expected a number

    warning: `AWS::SQS::Queue` has no property `Tags.Kay`
     --> components/topic.yaml:8:45
      |
    8 |       Tags: !If [C, [{Key: a, Value: b}], [{Kay: a, Value: b}]]
      |                                             ^^^
      |
      = help: did you mean `Key`?
    ");
}

#[test]
fn what_a_template_computes_is_not_judged() {
    let template = r#"Parameters: {P: {Type: String, Default: x}}
Conditions: {C: !Equals [a, b]}
Mappings: {M: {a: {b: c}}}
Resources:
  Queue:
    Type: AWS::SQS::Queue
    Properties:
      QueueName: !Ref AWS::NoValue
      DelaySeconds: !Ref P
      FifoQueue: !FindInMap [M, a, b]
      MaximumMessageSize: "{{resolve:ssm:size}}"
      VisibilityTimeout: "1_000"
      ReceiveMessageWaitTimeSeconds: "5"
      SqsManagedSseEnabled: "yes"
      KmsMasterKeyId: 5
      RedrivePolicy: '{"maxReceiveCount": 3}'
      Tags: [!If [C, {Key: a, Value: b}, !Ref AWS::NoValue]]
  Policy:
    Type: AWS::SNS::TopicPolicy
    Properties:
      PolicyDocument: !If [C, {}, !Ref AWS::NoValue]
      Topics: !Split [",", !Ref P]
  Own: {Type: Custom::Own, Properties: {ServiceToken: x, Anything: [1]}}
  Resource: {Type: AWS::CloudFormation::CustomResource, Properties: {ServiceToken: x, Anything: [1]}}
  Private: {Type: Acme::Svc::Thing, Properties: {A: b}}
  Module: {Type: AWS::Svc::Resource::MODULE, Properties: {A: b}}
  Stack: {Type: AWS::CloudFormation::Stack, Properties: {TemplateURL: ./x.yaml, Parameters: {A: [b], C: 1}}}
"#;

    assert_eq!(stack(template, "").check().to_string(), "");
}

#[test]
fn a_macro_silences_what_it_may_change() {
    let resources = "Resources:\n  Queue:\n    Type: AWS::SQS::Queue\n    Properties: {Colour: red}\n";
    let count = |template: &str| {
        let found = stack(template, "").check();
        assert_eq!(found.count(Severity::Error), 0, "{found}");
        found.count(Severity::Warning)
    };

    for (transform, expected) in [
        ("", 1),
        ("Transform: AWS::LanguageExtensions\n", 1),
        ("Transform: [AWS::LanguageExtensions, AWS::Serverless-2016-10-31]\n", 1),
        ("Transform: Own\n", 0),
        ("Transform: [AWS::LanguageExtensions, Own]\n", 0),
        ("Transform: {Name: AWS::Include, Parameters: {Location: x}}\n", 0),
        ("Fn::Transform: {Name: Own}\n", 0),
    ] {
        assert_eq!(count(&format!("{transform}{resources}")), expected, "{transform}");
    }
    for changed in [
        "Resources:\n  Fn::Transform: {Name: Own}\n  Q: {Type: AWS::SQS::Queue, Properties: {Colour: red}}\n",
        "Resources:\n  Q: {Type: AWS::SQS::Queue, Properties: {Colour: red}, Fn::Transform: {Name: Own}}\n",
        "Resources:\n  Q: {Type: AWS::SQS::Queue, Properties: {Colour: red, Fn::Transform: {Name: Own}}}\n",
        "Transform: AWS::LanguageExtensions\nResources:\n  T:\n    Type: AWS::SNS::TopicPolicy\n    Properties:\n      \
         Fn::ForEach::A: [I, [a], {Topics: [x]}]\n",
        "Transform: AWS::Serverless-2016-10-31\nResources:\n  F: {Type: AWS::Serverless::Function, Properties: {Own: x}}\n",
    ] {
        assert_eq!(count(changed), 0, "{changed}");
    }
}
