//! What components need at a customer, compared with the policies of the app's own roles.

use crate::config::{Config, good};

const TEMPLATE: &str = "Resources:\n  Topic:\n    Type: AWS::SNS::Topic\n";

/// Returns an app with the stack `topic`, whose roles have these policies.
fn topic(provision: &str, maintenance: &str) -> Config {
    let role = |mode: &str, policies: &str| {
        format!("type = \"{mode}\"\nname = \"{{{{ .nuon.install.id }}}}-{mode}\"\ndescription = \"d\"\n{policies}")
    };
    good()
        .with(
            "components/topic.toml",
            "name = \"topic\"\ntype = \"cloudformation_stack\"\ntemplate = \"./topic.yaml\"\nstack_name = \"{{ .nuon.install_stack.outputs.prefix }}topic\"\n",
        )
        .with("components/topic.yaml", TEMPLATE)
        .with("permissions/provision.toml", &role("provision", provision))
        .with("permissions/maintenance.toml", &role("maintenance", maintenance))
}

const ALL: &str = "[[policies]]\nmanaged_policy_name = \"AdministratorAccess\"\n";

fn inline(actions: &str, resource: &str) -> String {
    format!(
        "[[policies]]\nname = \"own\"\ncontents = '{{\"Statement\": [{{\"Effect\": \"Allow\", \"Action\": [{actions}], \"Resource\": \"{resource}\"}}]}}'\n"
    )
}

#[test]
fn a_new_stack_that_the_roles_do_not_name_is_an_error_with_the_statement_to_add() {
    let queue = inline(
        "\"cloudformation:*\"",
        "arn:aws:cloudformation:*:*:stack/{{ .nuon.install_stack.outputs.prefix }}queue/*",
    );

    let config = topic(&(inline("\"sns:*\"", "*") + &queue.replace("\"own\"", "\"queue\"")), ALL);

    insta::assert_snapshot!(config.check(), @r#"
    error: component `topic` deploys stack `{{ .nuon.install_stack.outputs.prefix }}topic`, and role `{{ .nuon.install.id }}-provision` does not allow `cloudformation:DescribeStacks`, `cloudformation:DescribeChangeSet`, `cloudformation:CreateChangeSet`, `cloudformation:DescribeStackEvents`, `cloudformation:ExecuteChangeSet`
     --> components/topic.toml:4:14
      |
    4 | stack_name = "{{ .nuon.install_stack.outputs.prefix }}topic"
      |              ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
      |
     ::: permissions/provision.toml:2:8
      |
    2 | name = "{{ .nuon.install.id }}-provision"
      |        ---------------------------------- the role is defined here
      |
      = help: the first deploy of an install needs this permission: add `{"Effect": "Allow", "Action": ["cloudformation:DescribeStacks", "cloudformation:DescribeChangeSet", "cloudformation:CreateChangeSet", "cloudformation:DescribeStackEvents", "cloudformation:ExecuteChangeSet"], "Resource": "arn:aws:cloudformation:*:*:stack/{{ .nuon.install_stack.outputs.prefix }}topic/*"}` to the role's policies
    "#);
    assert_eq!(config.check(), config.faults());
}

#[test]
fn a_role_that_cannot_remove_its_stack_is_warned_of() {
    let removal = inline("\"cloudformation:D*\", \"sns:*\"", "*");
    let role = "type = \"deprovision\"\nname = \"{{ .nuon.install.id }}-deprovision\"\ndescription = \"d\"\n";
    let config = topic(ALL, ALL).with("permissions/deprovision.toml", &format!("{role}{removal}"));

    insta::assert_snapshot!(config.check(), @r#"
    warning: a teardown of component `topic` removes stack `{{ .nuon.install_stack.outputs.prefix }}topic`, and role `{{ .nuon.install.id }}-deprovision` does not allow `cloudformation:ListStackResources`
     --> components/topic.toml:4:14
      |
    4 | stack_name = "{{ .nuon.install_stack.outputs.prefix }}topic"
      |              ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
      |
     ::: permissions/deprovision.toml:2:8
      |
    2 | name = "{{ .nuon.install.id }}-deprovision"
      |        ------------------------------------ the role is defined here
      |
      = help: a teardown needs this permission: add `{"Effect": "Allow", "Action": ["cloudformation:ListStackResources"], "Resource": "arn:aws:cloudformation:*:*:stack/{{ .nuon.install_stack.outputs.prefix }}topic/*"}` to the role's policies
    "#);
}

#[test]
fn a_role_for_later_deploys_and_a_managed_policy_are_warned_of() {
    let managed = "[[policies]]\nmanaged_policy_name = \"AmazonSNSFullAccess\"\n";

    insta::assert_snapshot!(topic(ALL, managed).check(), @r#"
    warning: component `topic` deploys stack `{{ .nuon.install_stack.outputs.prefix }}topic`, and role `{{ .nuon.install.id }}-maintenance` does not itself allow `cloudformation:DescribeStacks`, `cloudformation:DescribeChangeSet`, `cloudformation:CreateChangeSet`, `cloudformation:DescribeStackEvents`, `cloudformation:ExecuteChangeSet`
     --> components/topic.toml:4:14
      |
    4 | stack_name = "{{ .nuon.install_stack.outputs.prefix }}topic"
      |              ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
      |
     ::: permissions/maintenance.toml:2:8
      |
    2 | name = "{{ .nuon.install.id }}-maintenance"
      |        ------------------------------------ the role is defined here
      |
      = help: a later deploy needs this permission: unless an AWS managed policy of the role (`AmazonSNSFullAccess`) allows it, add `{"Effect": "Allow", "Action": ["cloudformation:DescribeStacks", "cloudformation:DescribeChangeSet", "cloudformation:CreateChangeSet", "cloudformation:DescribeStackEvents", "cloudformation:ExecuteChangeSet"], "Resource": "arn:aws:cloudformation:*:*:stack/{{ .nuon.install_stack.outputs.prefix }}topic/*"}`

    warning: component `topic` creates a resource of type `AWS::SNS::Topic`, and role `{{ .nuon.install.id }}-maintenance` does not itself allow `sns:CreateTopic`
     --> components/topic.yaml:3:11
      |
    3 |     Type: AWS::SNS::Topic
      |           ^^^^^^^^^^^^^^^
      |
     ::: permissions/maintenance.toml:2:8
      |
    2 | name = "{{ .nuon.install.id }}-maintenance"
      |        ------------------------------------ the role is defined here
      |
      = help: a later deploy needs this permission: unless an AWS managed policy of the role (`AmazonSNSFullAccess`) allows it, add `{"Effect": "Allow", "Action": ["sns:CreateTopic"], "Resource": "*"}`, and narrow its `Resource` to what the component creates
    "#);
}

#[test]
fn what_a_template_or_module_creates_is_held_against_the_role() {
    let stacks = inline("\"cloudformation:*\", \"sqs:*\"", "*");
    let config = topic(&stacks, ALL).with("modules/net/.terraform.lock.hcl", "").with(
        "modules/net/main.tf",
        "variable \"region\" {}\nresource \"aws_sqs_queue\" \"a\" {}\nresource \"aws_s3_bucket\" \"b\" {}\nresource \"aws_kms_key\" \"c\" {\n  count = 0\n}\n",
    );

    insta::assert_snapshot!(config.check(), @r#"
    warning: component `topic` creates a resource of type `AWS::SNS::Topic`, and role `{{ .nuon.install.id }}-provision` does not allow `sns:CreateTopic`
     --> components/topic.yaml:3:11
      |
    3 |     Type: AWS::SNS::Topic
      |           ^^^^^^^^^^^^^^^
      |
     ::: permissions/provision.toml:2:8
      |
    2 | name = "{{ .nuon.install.id }}-provision"
      |        ---------------------------------- the role is defined here
      |
      = help: the first deploy of an install needs this permission: add `{"Effect": "Allow", "Action": ["sns:CreateTopic"], "Resource": "*"}` to the role's policies, and narrow its `Resource` to what the component creates

    warning: component `net` creates a resource of type `aws_s3_bucket`, and role `{{ .nuon.install.id }}-provision` does not allow `s3:CreateBucket`
     --> modules/net/main.tf:3:10
      |
    3 | resource "aws_s3_bucket" "b" {}
      |          ^^^^^^^^^^^^^^^
      |
     ::: permissions/provision.toml:2:8
      |
    2 | name = "{{ .nuon.install.id }}-provision"
      |        ---------------------------------- the role is defined here
      |
      = help: the first deploy of an install needs this permission: add `{"Effect": "Allow", "Action": ["s3:CreateBucket"], "Resource": "*"}` to the role's policies, and narrow its `Resource` to what the component creates
    "#);
}

#[test]
fn a_denial_and_a_mode_without_a_role_are_named() {
    let deny = "[[policies]]\nname = \"no\"\ncontents = '{\"Statement\": [{\"Effect\": \"Deny\", \"Action\": \"cloudformation:ExecuteChangeSet\", \"Resource\": \"*\"}]}'\n";
    let denied = topic(&format!("{ALL}{deny}"), ALL);
    let without = topic(ALL, ALL).without("permissions/maintenance.toml");

    insta::assert_snapshot!(denied.check(), @r#"
    error: component `topic` deploys stack `{{ .nuon.install_stack.outputs.prefix }}topic`, and role `{{ .nuon.install.id }}-provision` denies `cloudformation:ExecuteChangeSet`
     --> components/topic.toml:4:14
      |
    4 | stack_name = "{{ .nuon.install_stack.outputs.prefix }}topic"
      |              ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
      |
     ::: permissions/provision.toml:2:8
      |
    2 | name = "{{ .nuon.install.id }}-provision"
      |        ---------------------------------- the role is defined here
      |
      = help: the first deploy of an install needs this permission: narrow the `Deny` in the role's policies
    "#);
    insta::assert_snapshot!(without.check(), @r#"
    warning: component `topic` deploys stack `{{ .nuon.install_stack.outputs.prefix }}topic`, and the app has no role for mode `maintenance`
     --> components/topic.toml:4:14
      |
    4 | stack_name = "{{ .nuon.install_stack.outputs.prefix }}topic"
      |              ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
      |
      = help: a later deploy needs a role of this mode: add one with `type = "maintenance"` in `permissions/` that allows `cloudformation:DescribeStacks`, `cloudformation:DescribeChangeSet`, `cloudformation:CreateChangeSet`, `cloudformation:DescribeStackEvents`, `cloudformation:ExecuteChangeSet` on `arn:aws:cloudformation:*:*:stack/{{ .nuon.install_stack.outputs.prefix }}topic/*`

    warning: component `topic` creates a resource of type `AWS::SNS::Topic`, and the app has no role for mode `maintenance`
     --> components/topic.yaml:3:11
      |
    3 |     Type: AWS::SNS::Topic
      |           ^^^^^^^^^^^^^^^
      |
      = help: a later deploy needs a role of this mode: add one with `type = "maintenance"` in `permissions/` that allows `sns:CreateTopic` on `*`
    "#);
}

#[test]
fn policies_that_may_allow_it_are_not_mistakes() {
    let region = "\"arn:aws:cloudformation:eu-west-1:*:stack/{{.nuon.install.id}}-*\"".replace('"', "");
    let whole = inline("\"CloudFormation:*\", \"sns:Create*\"", &region);
    let template = "[[policies]]\nname = \"own\"\ncontents = '{{ .nuon.inputs.inputs.region }}'\n";

    for policies in [ALL, whole.as_str(), template] {
        let config = topic(policies, policies);
        let found = config.check();
        assert!(!found.iter().any(|one| one.message.contains("allow")), "{found}");
    }
}

#[test]
fn a_templated_name_of_a_role_that_does_not_exist_is_an_error() {
    let config = topic(ALL, ALL).with(
        "actions/a.toml",
        "name = \"a\"\nrole = \"{{.nuon.install.id}}-maintainance\"\n[[steps]]\nname = \"s\"\ncommand = \"true\"\n",
    );

    insta::assert_snapshot!(config.check(), @r#"
    error: action `a` would run under role `{{.nuon.install.id}}-maintainance`, which does not exist
     --> actions/a.toml:2:8
      |
    2 | role = "{{.nuon.install.id}}-maintainance"
      |        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
      |
      = help: write the role exactly as the `name` of a role of the app, letter by letter
    "#);
}

#[test]
fn broken_roles_prove_nothing() {
    let config = topic("", "").with("permissions/provision.toml", "name = ");

    assert_eq!(config.check().iter().count(), 1, "{}", config.check());
}

#[test]
fn a_stack_name_that_a_stack_of_the_customers_could_have_is_an_error() {
    let named = |name: &str| {
        let text = format!(
            "name = \"topic\"\ntype = \"cloudformation_stack\"\ntemplate = \"./topic.yaml\"\nstack_name = \"{name}\"\n"
        );
        topic(ALL, ALL).with("components/topic.toml", &text).check().to_string()
    };

    insta::assert_snapshot!(named("CDKToolkit"), @r#"
    error: stack `CDKToolkit` of component `topic` could be a stack that the install did not create
     --> components/topic.toml:4:14
      |
    4 | stack_name = "CDKToolkit"
      |              ^^^^^^^^^^^^
      |
      = help: the runner deploys only stacks of the install: write `{{ .nuon.install_stack.outputs.prefix }}` and a name after it
    "#);
    assert_eq!(named("{{.freehold.install_stack.outputs.prefix}}topic"), "");
    assert!(named("{{ .nuon.install.id }}-topic").contains("could be a stack"));
    assert!(named("{{ .nuon.install_stack.outputs.prefix }}").contains("could be a stack"));
}

#[test]
fn a_policy_file_that_is_not_there_is_one_mistake_for_all_roles_that_name_it() {
    let file = "[[policies]]\nname = \"own\"\ncontents = \"./topic.json\"\n";

    insta::assert_snapshot!(topic(file, file).check(), @r#"
    error: `./topic.json` cannot be read: it does not exist
     --> permissions/maintenance.toml:6:12
      |
    6 | contents = "./topic.json"
      |            ^^^^^^^^^^^^^^
      |
     ::: permissions/provision.toml:6:12
      |
    6 | contents = "./topic.json"
      |            -------------- named here too
      |
      = help: create the file, or correct the path: it is relative to this file or to the app's directory
    "#);
}

#[test]
fn a_policy_that_is_not_json_says_nothing_of_the_permissions_of_its_role() {
    let broken = "[[policies]]\nname = \"own\"\ncontents = '{\"Statement\": [}'\n";

    let found = topic(broken, ALL).check();

    let messages: Vec<&str> = found.iter().map(|one| one.message.as_str()).collect();
    assert_eq!(messages, ["the policy document is not JSON: expected value"]);
}

#[test]
fn a_mistyped_service_in_a_policy_is_named_beside_what_the_role_lacks() {
    let stacks = inline("\"cloudformation:*\", \"snss:CreateTopic\"", "*");

    let found = topic(&stacks, ALL).check().to_string();

    let expected =
        "help: the role's policies name `snss:CreateTopic`; did you mean `sns:CreateTopic`? the first deploy of an";
    assert!(found.contains(expected), "{found}");
}

#[test]
fn an_app_whose_roles_remove_nothing_is_a_warning() {
    let removal = |config: &Config| {
        let found = config.all();
        let of_removal =
            found.iter().filter(|one| one.message.starts_with("the app has no role for mode `deprovision`"));
        of_removal.map(|one| format!("{}:{}: {}", one.file, one.line, one.message)).collect::<Vec<_>>()
    };
    let role = "type = \"deprovision\"\nname = \"end\"\ndescription = \"d\"\n";
    let with_role = topic(ALL, ALL).with("permissions/deprovision.toml", role);

    assert_eq!(
        removal(&topic(ALL, ALL)),
        ["permissions/provision.toml:2: the app has no role for mode `deprovision`, so a teardown cannot remove \
             component `net` (and 1 more)"]
    );
    assert_eq!(removal(&with_role), [""; 0]);
    let mistyped = role.replace("deprovision", "deprovison");
    assert_eq!(removal(&topic(ALL, ALL).with("permissions/deprovision.toml", &mistyped)), [""; 0]);
    assert_eq!(removal(&good()), [""; 0]);
}
