//! Roles, and which operation takes which.

mod missing_permissions;

use freehold_protocol::app_version::{OperationRole, RolePolicy};
use freehold_protocol::order::Mode;

use crate::config::good;

/// Returns a role file of a type with one managed policy.
fn role(kind: &str, name: &str) -> String {
    format!(
        "type = \"{kind}\"\nname = \"{name}\"\ndescription = \"d\"\n[[policies]]\nmanaged_policy_name = \"ReadOnlyAccess\"\n"
    )
}

/// Returns a role with one policy document.
fn document(text: &str) -> String {
    format!(
        "type = \"provision\"\nname = \"p\"\ndescription = \"d\"\n[[policies]]\nname = \"x\"\ncontents = '''\n{text}'''\n"
    )
}

#[test]
fn roles_of_every_form_become_part_of_the_version() {
    let config = good()
        .with("permissions/1-provision.toml", &role("provision", "{{ .nuon.install.id }}-p"))
        .with("permissions/2-custom.toml", &role("custom", "{{ .nuon.install.id }}-dns"))
        .with("permissions.toml", "[[roles]]\ntype = \"deprovision\"\nname = \"d\"\ndisplay_name = \"End\"\ndescription = \"d\"\npermissions_boundary = \"{}\"\n[[roles.policies]]\nmanaged_policy_name = \"arn:aws:iam::aws:policy/AdministratorAccess\"\n[[custom_roles]]\nname = \"off\"\ndescription = \"d\"\nenabled_in_stack = false\n")
        .with("break_glass/emergency.toml", "name = \"emergency\"\ndescription = \"d\"\ncloud_platform = \"gcp\"\n[[policies]]\nname = \"editor\"\ngcp_predefined_role = \"roles/editor\"\n")
        .with("break_glass.toml", "[[role]]\nname = \"admin\"\ndescription = \"d\"\npermissions_boundary = \"\"\nenabled_in_stack = true\n");

    let loaded = config.load();

    assert!(loaded.warnings.is_empty(), "{}", loaded.warnings);
    let modes: Vec<_> = loaded.version.roles.iter().map(|role| (role.mode, role.name.as_str())).collect();
    assert_eq!(modes, [(Mode::Provision, "{{ .nuon.install.id }}-p"), (Mode::Deprovision, "d")]);
    assert_eq!(loaded.version.roles[1].policies, [RolePolicy::Managed("AdministratorAccess".to_owned())]);
    assert_eq!(
        (loaded.version.roles[1].boundary.clone(), loaded.version.roles[1].display_name.as_str()),
        (None, "End")
    );
    let named: Vec<_> =
        loaded.version.named_roles.iter().map(|role| (role.name.as_str(), role.break_glass, role.enabled)).collect();
    let expected = [
        ("admin", true, true),
        ("emergency", true, false),
        ("off", false, false),
        ("{{ .nuon.install.id }}-dns", false, true),
    ];
    assert_eq!(named, expected);
    assert_eq!(loaded.version.named_roles[1].policies, [RolePolicy::GcpPredefined("roles/editor".to_owned())]);
}

#[test]
fn two_roles_of_one_name_are_both_named() {
    let config = good()
        .with("permissions/custom.toml", &role("custom", "{{.nuon.install.id}}-x"))
        .with("break_glass.toml", "[[role]]\nname = \"{{ .nuon.install.id }}-x\"\ndescription = \"d\"\n");

    insta::assert_snapshot!(config.faults(), @r#"
    error: role `{{.nuon.install.id}}-x` is defined twice, in break_glass.toml:2 and here
     --> permissions/custom.toml:2:8
      |
    2 | name = "{{.nuon.install.id}}-x"
      |        ^^^^^^^^^^^^^^^^^^^^^^^^
      |
     ::: break_glass.toml:2:8
      |
    2 | name = "{{ .nuon.install.id }}-x"
      |        -------------------------- first defined here
      |
      = help: rename one of them, or remove it
    "#);
}

#[test]
fn a_policy_grants_in_one_way() {
    let config = good().with(
        "permissions/p.toml",
        "type = \"provision\"\nname = \"p\"\ndescription = \"d\"\n[[policies]]\nname = \"nothing\"\n[[policies]]\nmanaged_policy_name = \"A\"\ngcp_predefined_role = \"roles/viewer\"\n[[policies]]\nazure_actions = [\"*/read\"]\n",
    );

    insta::assert_snapshot!(config.faults(), @r#"
    warning: the policy grants nothing
     --> permissions/p.toml:4:1
      |
    4 | [[policies]]
      | ^^^^^^^^^^^^ expected either `managed_policy_name`, or `name` and `contents`

    error: the policy has both `managed_policy_name` and `gcp_predefined_role`
     --> permissions/p.toml:6:1
      |
    6 | [[policies]]
      | ^^^^^^^^^^^^ expected either `managed_policy_name`, or `name` and `contents`

    warning: the policy grants nothing: only AWS is supported so far, not `azure_actions`
      --> permissions/p.toml:10:1
       |
    10 | azure_actions = ["*/read"]
       | ^^^^^^^^^^^^^ expected either `managed_policy_name`, or `name` and `contents`
    "#);
}

#[test]
fn a_statement_needs_effect_action_and_resource() {
    let config = good().with(
        "permissions/p.toml",
        &document("{\n  \"Version\": \"2012-10-17\",\n  \"Statement\": [\n    { \"Effect\": \"allow\", \"Action\": \"s3:*\", \"Resource\": \"*\" },\n    { \"Action\": [\"GetObject\", \"s3:GetObject\"], \"NotAction\": \"*\", \"Resource\": \"*\" },\n    { \"Effect\": \"Deny\", \"Action\": \"*\", \"Principal\": \"*\" }\n  ]\n}\n"),
    );

    insta::assert_snapshot!(config.faults(), @r#"
    error: the statement's `Effect` is `allow`
      --> permissions/p.toml:10:17
       |
    10 |     { "Effect": "allow", "Action": "s3:*", "Resource": "*" },
       |                 ^^^^^^^
       |
       = help: write `"Allow"` or `"Deny"`

    error: the statement has no `Effect`
      --> permissions/p.toml:11:5
       |
    11 |     { "Action": ["GetObject", "s3:GetObject"], "NotAction": "*", "Resource": "*" },
       |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
       |
       = help: add `"Effect": "Allow"` or `"Effect": "Deny"`

    error: `GetObject` is not an action
      --> permissions/p.toml:11:18
       |
    11 |     { "Action": ["GetObject", "s3:GetObject"], "NotAction": "*", "Resource": "*" },
       |                  ^^^^^^^^^^^
       |
       = help: write the service before it, as in `"s3:GetObject"`

    error: the statement has both `Action` and `NotAction`
      --> permissions/p.toml:11:61
       |
    11 |     { "Action": ["GetObject", "s3:GetObject"], "NotAction": "*", "Resource": "*" },
       |                                                             ^^^
       |
       = help: keep one of them

    error: the statement has neither `Resource` nor `NotResource`
      --> permissions/p.toml:12:5
       |
    12 |     { "Effect": "Deny", "Action": "*", "Principal": "*" }
       |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
       |
       = help: add `"Resource": [...]`

    error: a role's policy must not have `Principal`: the policy always applies to the role itself
      --> permissions/p.toml:12:53
       |
    12 |     { "Effect": "Deny", "Action": "*", "Principal": "*" }
       |                                                     ^^^
       |
       = help: remove `Principal`
    "#);
}

#[test]
fn a_document_in_its_own_file_is_marked_there() {
    let config = good()
        .with(
            "permissions/p.toml",
            "type = \"provision\"\nname = \"p\"\ndescription = \"d\"\npermissions_boundary = \"./boundary.json\"\n",
        )
        .with("permissions/boundary.json", "{\n  \"Statment\": [],\n  \"Version\": \"2012-10-17\"\n}\n");

    insta::assert_snapshot!(config.faults(), @r#"
    warning: `Statment` is not a key of a policy document
     --> permissions/boundary.json:2:15
      |
    2 |   "Statment": [],
      |               ^^
      |
      = help: did you mean `Statement`?
    "#);
}

#[test]
fn statements_that_templates_fill_are_not_judged() {
    let config = good().with(
        "permissions/p.toml",
        &document("{\"Statement\": {\"Effect\": \"Allow\", \"NotAction\": [\"{{ .nuon.install.id }}\"], \"Resource\": {{ .nuon.install.id }}}}\n"),
    );

    let found = config.faults();

    assert!(found.is_empty(), "{found}");
}

/// The contract lists a policy before its templates are rendered, so a template must not decide what the policy is.
#[test]
fn a_template_stands_for_a_value_alone() {
    let config = good().with(
        "permissions/p.toml",
        &document("{\n  \"Version\": \"{{ .nuon.install.id }}\",\n  \"Statement\": [\n    { \"Sid\": \"a{{ printf `%c` 34 }}\", \"Effect\": \"{{ `Allow` }}\", \"Action\": \"s3:*\", \"Resource\": \"*\",\n      \"Condition\": { \"Bool\": { \"{{ .nuon.install.id }}\": true } } },\n    { \"Effect\": \"Allow\", \"Action\": \"s3:Get*\", \"Action\": \"*\", \"Resource\": \"{{ .nuon.install.id }}\" }\n  ]\n}\n"),
    );

    insta::assert_snapshot!(config.faults(), @r#"
    error: `Version` contains a template
     --> permissions/p.toml:8:14
      |
    8 |   "Version": "{{ .nuon.install.id }}",
      |              ^^^^^^^^^^^^^^^^^^^^^^^^
      |
      = help: write the text itself, so that the contract shows what the role may do

    error: `Sid` contains a template
      --> permissions/p.toml:10:14
       |
    10 |     { "Sid": "a{{ printf `%c` 34 }}", "Effect": "{{ `Allow` }}", "Action": "s3:*", "Resource": "*",
       |              ^^^^^^^^^^^^^^^^^^^^^^^
       |
       = help: write the text itself, so that the contract shows what the role may do

    error: `Effect` contains a template
      --> permissions/p.toml:10:49
       |
    10 |     { "Sid": "a{{ printf `%c` 34 }}", "Effect": "{{ `Allow` }}", "Action": "s3:*", "Resource": "*",
       |                                                 ^^^^^^^^^^^^^^^
       |
       = help: write the text itself, so that the contract shows what the role may do

    error: the key of this value contains a template
      --> permissions/p.toml:11:58
       |
    11 |       "Condition": { "Bool": { "{{ .nuon.install.id }}": true } } },
       |                                                          ^^^^
       |
       = help: write the key without a template; only values can be templates

    error: key `Action` is given twice
      --> permissions/p.toml:12:57
       |
    12 |     { "Effect": "Allow", "Action": "s3:Get*", "Action": "*", "Resource": "{{ .nuon.install.id }}" }
       |                                                         ^^^
       |
       = help: remove one of them; JSON parsers differ in which value they use
    "#);
}

#[test]
fn a_boundary_without_an_exact_opposite_is_an_error() {
    let config = good()
        .with(
            "permissions/p.toml",
            "type = \"provision\"\nname = \"p\"\ndescription = \"d\"\npermissions_boundary = \"./boundary.json\"\n",
        )
        .with(
            "permissions/boundary.json",
            r#"{ "Version": "2012-10-17", "Statement": [
  { "Effect": "Allow", "Action": ["ec2:Describe*"], "Resource": "*" },
  { "Effect": "Allow", "Action": ["ec2:*"], "Resource": "arn:aws:ec2:*:*:instance/*" }
] }
"#,
        );

    insta::assert_snapshot!(config.faults(), @r#"
    error: the permissions boundary: `ec2:*` is allowed for some resources or under a condition, and another statement allows `ec2:Describe*`, which overlaps with it
     --> permissions/p.toml:4:24
      |
    4 | permissions_boundary = "./boundary.json"
      |                        ^^^^^^^^^^^^^^^^^
      |
      = help: name the actions so that no two statements overlap
    "#);
}

#[test]
fn a_boundary_that_allows_everything_is_none() {
    let boundary = |statement: &str| {
        let text = "type = \"provision\"\nname = \"p\"\ndescription = \"d\"\npermissions_boundary = '";
        let text = format!("{text}{{\"Version\": \"2012-10-17\", \"Statement\": [{statement}]}}'\n");
        good().with("permissions/p.toml", &text).load().version.roles[0].boundary.clone()
    };

    assert_eq!(boundary(r#"{"Effect": "Allow", "Action": ["*"], "Resource": "*"}"#), None);
    assert!(boundary(r#"{"Effect": "Allow", "Action": ["ec2:*"], "Resource": "*"}"#).is_some());
    assert!(boundary(r#"{"Effect": "Allow", "Action": "*", "Resource": "*", "Condition": {"Bool": {"aws:SecureTransport": "true"}}}"#).is_some());
}

#[test]
fn a_boundary_is_not_named_by_its_arn() {
    let config = good().with(
        "permissions/p.toml",
        "type = \"provision\"\nname = \"p\"\ndescription = \"d\"\npermissions_boundary = \"arn:aws:iam::aws:policy/PowerUserAccess\"\n",
    );

    insta::assert_snapshot!(config.faults(), @r#"
    error: a permissions boundary cannot be named by its ARN: nobody could read it in the contract
     --> permissions/p.toml:4:24
      |
    4 | permissions_boundary = "arn:aws:iam::aws:policy/PowerUserAccess"
      |                        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
      |
      = help: write the boundary's policy document, or `./path` of a file that holds it
    "#);
    assert!(!config.check().has_errors());
}

#[test]
fn an_unknown_type_of_role_names_the_nearest() {
    let config = good().with("permissions/p.toml", &role("provison", "p"));

    insta::assert_snapshot!(config.faults(), @r#"
    error: `type` is `provison`
     --> permissions/p.toml:1:8
      |
    1 | type = "provison"
      |        ^^^^^^^^^^ expected one of `provision`, `maintenance`, `deprovision`, `custom`
      |
      = help: did you mean `provision`?
    "#);
}

#[test]
fn rules_of_the_matrix_keep_their_order() {
    let config = good().with("permissions/c.toml", &role("custom", "dns")).with(
        "operation_roles.toml",
        "type = \"matrix\"\n[[rules]]\nprincipal = \"nuon::sandbox\"\noperation = \"provision\"\nrole = \"{{ .nuon.install.id }}-any\"\n[[rules]]\nprincipal = \"freehold::component:net\"\noperation = \"deploy\"\nrole = \"dns\"\n[[rules]]\nprincipal = \"nuon::action:*\"\noperation = \"trigger\"\nrole = \"dns\"\n",
    );

    let loaded = config.load();

    assert!(loaded.warnings.is_empty(), "{}", loaded.warnings);
    let rule = |principal: &str, operation: &str, role: &str| OperationRole {
        principal: principal.to_owned(),
        operation: operation.to_owned(),
        role: role.to_owned(),
    };
    let expected = [
        rule("sandbox", "provision", "{{ .nuon.install.id }}-any"),
        rule("component:net", "deploy", "dns"),
        rule("action:*", "trigger", "dns"),
    ];
    assert_eq!(loaded.version.operation_roles, expected);
}

#[test]
fn a_rule_names_things_that_are_there() {
    let rule = |principal: &str, operation: &str, role: &str| {
        format!("[[rules]]\nprincipal = \"{principal}\"\noperation = \"{operation}\"\nrole = \"{role}\"\n")
    };
    let rules = [
        rule("nuon::component:nett", "deploy", "dns"),
        rule("nuon::action:x", "trigger", "dns"),
        rule("component:net", "deploy", "dns"),
        rule("nuon::sandbox:x", "provision", "dns"),
        rule("nuon::component:net", "deprovision", "dns"),
        rule("nuon::sandbox", "reprovison", "dsn"),
        rule("nuon::component:web", "deploy", "dns"),
        rule("nuon::component:web", "deploy", "dns"),
    ];
    let config =
        good().with("permissions/c.toml", &role("custom", "dns")).with("operation_roles.toml", &rules.concat());

    insta::assert_snapshot!(config.faults(), @r#"
    error: there is no component `nett`
     --> operation_roles.toml:2:13
      |
    2 | principal = "nuon::component:nett"
      |             ^^^^^^^^^^^^^^^^^^^^^^
      |
      = help: did you mean `net`?

    error: there is no action `x`
     --> operation_roles.toml:6:13
      |
    6 | principal = "nuon::action:x"
      |             ^^^^^^^^^^^^^^^^
      |
      = help: define the action in `actions/`, or remove the reference to it

    error: `component:net` is not a principal
      --> operation_roles.toml:10:13
       |
    10 | principal = "component:net"
       |             ^^^^^^^^^^^^^^^ expected `nuon::component:<name>`, `nuon::action:<name>` (`*` for any) or `nuon::sandbox`

    error: `nuon::sandbox:x` is not a principal
      --> operation_roles.toml:14:13
       |
    14 | principal = "nuon::sandbox:x"
       |             ^^^^^^^^^^^^^^^^^ expected `nuon::component:<name>`, `nuon::action:<name>` (`*` for any) or `nuon::sandbox`

    error: `deprovision` is not an operation of `component:net`
      --> operation_roles.toml:19:13
       |
    19 | operation = "deprovision"
       |             ^^^^^^^^^^^^^ expected one of `deploy`, `teardown`

    error: `reprovison` is not an operation of `sandbox`
      --> operation_roles.toml:23:13
       |
    23 | operation = "reprovison"
       |             ^^^^^^^^^^^^ expected one of `provision`, `reprovision`, `deprovision`
       |
       = help: did you mean `reprovision`?

    error: there is no role `dsn`
      --> operation_roles.toml:24:8
       |
    24 | role = "dsn"
       |        ^^^^^
       |
       = help: did you mean `dns`?

    warning: the rule for `deploy` of `component:web` is never used
      --> operation_roles.toml:30:13
       |
    26 | principal = "nuon::component:web"
       |             --------------------- this rule comes first
    ...
    30 | principal = "nuon::component:web"
       |             ^^^^^^^^^^^^^^^^^^^^^
       |
       = help: remove one of them
    "#);
}

/// A file of `permissions/policies/**/*.toml` with the name `name`.
fn named_policy(name: &str) -> String {
    let document =
        r#"{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "sqs:*", "Resource": "*"}]}"#;
    format!("name = \"{name}\"\ncontents = '{document}'\n")
}

#[test]
fn roles_have_the_policies_that_they_name() {
    let names = "[[named_policies]]\nname = \"{{.nuon.install.id}}-queues\"\n";
    let config = good()
        .with("permissions/provision.toml", &(role("provision", "p") + names))
        .with("permissions/custom.toml", &(role("custom", "c") + names))
        .with("permissions/policies/queues.toml", &named_policy("{{ .nuon.install.id }}-queues"));

    let loaded = config.load();

    assert!(loaded.warnings.is_empty(), "{}", loaded.warnings);
    let of_mode = &loaded.version.roles[0].policies;
    assert!(matches!(&of_mode[1], RolePolicy::Inline { name, document }
        if name == "{{ .nuon.install.id }}-queues" && document.contains("sqs:*")));
    assert_eq!(&loaded.version.named_roles[0].policies, of_mode);
}

#[test]
fn a_policy_that_is_named_in_vain_twice_or_by_nobody_is_reported() {
    let named = |name: &str| format!("[[named_policies]]\nname = \"{name}\"\n");
    let config = good()
        .with("permissions/provision.toml", &(role("provision", "p") + &named("a") + &named("a") + &named("c")))
        .with("permissions/policies/a.toml", &named_policy("a"))
        .with("permissions/policies/again.toml", &named_policy("a"))
        .with("permissions/policies/b.toml", &named_policy("lonely"));

    let found = config.faults();

    let lines: Vec<_> = found.iter().map(|one| format!("{}:{} {}", one.file, one.line, one.message)).collect();
    assert_eq!(
        lines,
        [
            "permissions/policies/again.toml:1 policy `a` is defined twice, in permissions/policies/a.toml:1 and here",
            "permissions/policies/b.toml:1 policy `lonely` has no effect: no role names it",
            "permissions/provision.toml:9 the role has two policies `a`",
            "permissions/provision.toml:11 there is no policy `c`",
        ]
    );
}
