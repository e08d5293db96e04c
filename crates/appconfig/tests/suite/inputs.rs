//! Inputs, their groups, and secrets.

use freehold_protocol::app_version::{InputKind, Secret, SecretFormat, SyncedSecret};
use serde_json::json;

use crate::config::{Config, good};

const GROUP: &str = "[[group]]\nname = \"main\"\n";

/// Returns an input of the group `main` with more keys.
fn input(name: &str, more: &str) -> String {
    format!("[[input]]\nname = \"{name}\"\ndisplay_name = \"N\"\ndescription = \"d\"\ngroup = \"main\"\n{more}\n")
}

/// Returns a config whose inputs are `region`, which a component reads, and `inputs`.
fn with_inputs(inputs: &[String]) -> Config {
    good().with("inputs.toml", &format!("{GROUP}{}{}", input("region", ""), inputs.concat()))
}

#[test]
fn inputs_keep_what_the_config_says_and_groups_their_order() {
    let config = good()
        .with(
            "inputs.toml",
            &format!(
                "[[group]]\nname = \"z\"\ndisplay_name = \"Last\"\n{GROUP}{}{}",
                input("region", "user_configurable = true\nrequired = true"),
                input("size", "type = \"number\"\ndefault = 3\nsource = \"customer\"\ninternal = true")
            ),
        )
        .with("input_groups/a.toml", "name = \"a\"\ndescription = \"first by file\"\n");

    let version = config.load().version;

    let groups: Vec<_> = version.input_groups.iter().map(|group| group.name.as_str()).collect();
    assert_eq!(groups, ["a", "z", "main"]);
    let [region, size] = version.inputs.as_slice() else { panic!("{:?}", version.inputs) };
    assert!(region.customer && region.required && !region.internal);
    assert!(size.customer && size.internal);
    assert_eq!((size.kind, size.default.clone()), (InputKind::Number, Some(json!(3))));
}

#[test]
fn an_internal_input_that_the_customer_answers_is_a_warning() {
    let keys = ["internal = true", "user_configurable = true", "internal = true\nuser_configurable = true"];
    let [vendors, asked, both] =
        keys.map(|keys| good().with("inputs.toml", &format!("{GROUP}{}", input("region", keys))));

    assert_eq!((vendors.faults().to_string(), asked.faults().to_string()), (String::new(), String::new()));
    insta::assert_snapshot!(both.faults(), @r"
    warning: input `region` is internal, and the install stack asks the customer for it
     --> inputs.toml:8:1
      |
    8 | internal = true
      | ^^^^^^^^
      |
      = help: remove `internal`, or let the vendor answer: remove `user_configurable` or `source`
    ");
}

#[test]
fn inputs_are_pulled_from_the_files_that_sources_name() {
    let config = good()
        .with(
            "inputs.toml",
            "source = \"./shared/groups.toml\"\nsources = [\"./shared/more-*.toml\", \"shared/one.toml\"]\n",
        )
        .with("shared/groups.toml", GROUP)
        .with("shared/more-a.toml", &input("region", ""))
        .with("shared/more-b.toml", "sources = [\"./deep.toml\"]\n")
        .with("shared/deep.toml", &input("deep", ""))
        .with("shared/one.toml", "name = \"one\"\ndisplay_name = \"N\"\ndescription = \"d\"\ngroup = \"main\"\n")
        .with("shared/other.toml", "not read\n");

    let loaded = config.load();

    assert!(loaded.warnings.is_empty(), "{}", loaded.warnings);
    let names: Vec<_> = loaded.version.inputs.iter().map(|input| input.name.as_str()).collect();
    assert_eq!(names, ["deep", "one", "region"]);
}

#[test]
fn inputs_behind_an_address_are_asked_for_and_then_read() {
    const ADDRESS: &str = "https://configs.example/inputs.toml";
    let config = good().with("inputs.toml", &format!("sources = [\"{ADDRESS}\"]\n{GROUP}"));

    let first = config.load();
    let second = config.load_with(&[(ADDRESS, &input("region", ""))]);

    assert_eq!(first.addresses, [ADDRESS]);
    assert!(second.addresses.is_empty());
    let names: Vec<_> = second.version.inputs.iter().map(|input| input.name.as_str()).collect();
    assert_eq!(names, ["region"]);
    let found = config.faults_with(&[(ADDRESS, "= 1")]);
    assert!(found.to_string().contains(ADDRESS), "{found}");
}

#[test]
fn a_source_of_inputs_that_is_not_there_is_an_error() {
    let config = good().with(
        "inputs.toml",
        &format!(
            "sources = [\"./gone.toml\", \"./gone/*.toml\", \"../x.toml\", \"git::x\"]\n{GROUP}{}",
            input("region", "")
        ),
    );

    insta::assert_snapshot!(config.faults(), @r#"
    error: `./gone.toml` cannot be read: it does not exist
     --> inputs.toml:1:12
      |
    1 | sources = ["./gone.toml", "./gone/*.toml", "../x.toml", "git::x"]
      |            ^^^^^^^^^^^^^
      |
      = help: create the file, or correct the path

    error: `./gone/*.toml` matches no file
     --> inputs.toml:1:27
      |
    1 | sources = ["./gone.toml", "./gone/*.toml", "../x.toml", "git::x"]
      |                           ^^^^^^^^^^^^^^^
      |
      = help: create one, or correct the pattern

    error: `../x.toml` is outside of the app's directory
     --> inputs.toml:1:44
      |
    1 | sources = ["./gone.toml", "./gone/*.toml", "../x.toml", "git::x"]
      |                                            ^^^^^^^^^^^
      |
      = help: move the file into the app's directory

    error: `git::x` is not the address of a file in a repository
     --> inputs.toml:1:57
      |
    1 | sources = ["./gone.toml", "./gone/*.toml", "../x.toml", "git::x"]
      |                                                         ^^^^^^^^ expected `git::https://host/repository//path?ref=name`
    "#);
}

#[test]
fn a_default_has_to_be_of_the_inputs_language() {
    let config = with_inputs(&[
        input("j", "type = \"json\"\ndefault = '''\n{\n  \"a\": [1,]\n}\n'''"),
        input("y", "type = \"yaml\"\ndefault = \"a: 1\\nb: [\""),
        input("h", "type = \"hcl\"\ndefault = '''\na = 1\nb = [1, 2\nc = 3\n'''"),
        input("b", "type = \"bool\"\ndefault = \"yes\""),
        input("l", "type = \"list\"\ndefault = 3"),
        input("n", "type = \"number\"\ndefault = \"inf\""),
    ]);

    insta::assert_snapshot!(config.faults(), @r#"
    error: the default of input `j` is not JSON: expected value
      --> inputs.toml:17:11
       |
    17 |   "a": [1,]
       |           ^ expected valid JSON

    error: the default of input `y` is not YAML: while parsing a node, did not find expected node content
      --> inputs.toml:26:22
       |
    26 | default = "a: 1\nb: ["
       |                      ^ expected valid YAML

    error: the default of input `h` is not HCL: expected `]`
      --> inputs.toml:36:1
       |
    36 | c = 3
       | ^ expected a value or a body of HCL

    error: the default of input `b` does not fit its type
      --> inputs.toml:44:11
       |
    44 | default = "yes"
       |           ^^^^^ expected `true` or `false`

    error: the default of input `l` does not fit its type
      --> inputs.toml:51:11
       |
    51 | default = 3
       |           ^ expected a list

    error: the default of input `n` does not fit its type
      --> inputs.toml:58:11
       |
    58 | default = "inf"
       |           ^^^^^ expected a number
    "#);
}

#[test]
fn defaults_of_every_type_are_taken() {
    let config = with_inputs(&[
        input("b", "type = \"bool\"\ndefault = \"true\""),
        input("h", "type = \"hcl\"\ndefault = \"{ a = [1, 2] }\""),
        input("i", "type = \"hcl\"\ndefault = '''\na = 1\nb {\n  c = var.d\n}\n'''"),
        input("j", "type = \"json\"\ndefault = '{\"a\": {{ .nuon.install.id }}}'"),
        input("l", "type = \"list\"\ndefault = [\"a\"]"),
        input("n", "type = \"number\"\ndefault = \"1.5\""),
        input("y", "type = \"yaml\"\ndefault = \"a:\\n  - 1\\n---\\nb: {}\""),
    ]);

    let loaded = config.load();

    assert!(loaded.warnings.is_empty(), "{}", loaded.warnings);
    assert_eq!(loaded.version.inputs.len(), 8);
}

#[test]
fn a_bare_number_is_the_default_of_a_string_as_its_text() {
    let config = with_inputs(&[input("port", "default = 8080")]);

    let loaded = config.load();

    assert_eq!(loaded.version.inputs[0].default, Some(json!("8080")));
    insta::assert_snapshot!(loaded.warnings, @r"
    warning: the default of input `port` is a number, but its type is a string
      --> inputs.toml:14:11
       |
    14 | default = 8080
       |           ^^^^
       |
       = help: put the value in quotes, or set `type`
    ");
}

#[test]
fn an_input_that_contradicts_itself_is_reported() {
    let config = with_inputs(&[
        input("a", "required = true\ndefault = \"x\""),
        input("b", "sensitive = true\ndefault = \"hunter2\""),
        input("c", "source = \"customer\"\nuser_configurable = false"),
        input("d", "required = true\nsensitive = true\ndefault = \"\""),
    ]);

    insta::assert_snapshot!(config.faults(), @r#"
    warning: input `a` has a default, so `required` has no effect
      --> inputs.toml:14:1
       |
    14 | required = true
       | ^^^^^^^^
    15 | default = "x"
       | ------- the default
       |
       = help: remove one of them

    warning: input `b` is sensitive, and everyone who reads the app can read its default
    --> inputs.toml:22:1
     = help: remove the default, or make it a secret in `secrets.toml`

    error: `source` and `user_configurable` of input `c` contradict each other
      --> inputs.toml:28:1
       |
    28 | source = "customer"
       | ^^^^^^
    29 | user_configurable = false
       | ----------------- the other key
       |
       = help: keep `user_configurable`
    "#);
}

#[test]
fn secrets_of_both_forms_come_without_their_defaults() {
    let config = good()
        .with_sandbox()
        .with(
            "secrets.toml",
            "[[secret]]\nname = \"b\"\ndescription = \"d\"\ndefault = \"hunter2\"\nformat = \"base64\"\n",
        )
        .with(
            "secrets/deep/a.toml",
            "name = \"a\"\ndisplay_name = \"A\"\ndescription = \"d\"\nauto_generate = true\nkubernetes_sync = true\nkubernetes_secret_namespace = \"{{ .nuon.install.id }}\"\nkubernetes_secret_name = \"a\"\n",
        );

    let loaded = config.load();

    let kubernetes = Some(SyncedSecret { namespace: "{{ .nuon.install.id }}".to_owned(), name: "a".to_owned() });
    let expected = [
        Secret {
            name: "a".to_owned(),
            display_name: "A".to_owned(),
            description: "d".to_owned(),
            required: false,
            auto_generate: true,
            format: SecretFormat::Plain,
            kubernetes,
        },
        Secret {
            name: "b".to_owned(),
            display_name: String::new(),
            description: "d".to_owned(),
            required: false,
            auto_generate: false,
            format: SecretFormat::Base64,
            kubernetes: None,
        },
    ];
    assert_eq!(loaded.version.secrets, expected);
    assert!(!serde_json::to_string(&loaded.version).unwrap().contains("hunter2"));
    insta::assert_snapshot!(loaded.warnings, @r#"
    warning: the default of secret `b` is never part of an app version; the secret is empty unless the customer enters a value
     --> secrets.toml:4:1
      |
    4 | default = "hunter2"
      | ^^^^^^^
      |
      = help: remove the default; `auto_generate = true` generates a value
    "#);
}

#[test]
fn keys_of_a_secret_that_exclude_each_other_are_both_shown() {
    let config = good().with(
        "secrets.toml",
        "[[secret]]\nname = \"a\"\ndescription = \"d\"\nauto_generate = true\nrequired = true\n[[secret]]\nname = \"b\"\ndescription = \"d\"\nrequired = false\nauto_generate = true\n",
    );

    insta::assert_snapshot!(config.faults(), @r"
    error: secret `a` has both `auto_generate` and `required`
     --> secrets.toml:5:1
      |
    4 | auto_generate = true
      | ------------- the other key
    5 | required = true
      | ^^^^^^^^
      |
      = help: keep one of `required`, `auto_generate`, `default`
    ");
}

#[test]
fn a_synced_secret_needs_its_place_in_the_cluster() {
    let config = good()
        .with(
            "secrets/a.toml",
            "name = \"a\"\ndescription = \"d\"\nkubernetes_sync = true\nkubernetes_secret_name = \"x\"\n",
        )
        .with("secrets/b.toml", "name = \"b\"\ndescription = \"d\"\nkubernetes_secret_name = \"x\"\n");

    insta::assert_snapshot!(config.faults(), @r#"
    error: secret `a` is synced to a cluster, but `kubernetes_secret_namespace` is missing
     --> secrets/a.toml:3:1
      |
    3 | kubernetes_sync = true
      | ^^^^^^^^^^^^^^^
      |
      = help: add `kubernetes_secret_namespace = "..."`

    warning: `kubernetes_secret_name` has no effect: secret `b` is not synced
     --> secrets/b.toml:3:1
      |
    3 | kubernetes_secret_name = "x"
      | ^^^^^^^^^^^^^^^^^^^^^^
      |
      = help: add `kubernetes_sync = true`
    "#);
}

#[test]
fn an_input_or_a_secret_whose_name_no_secret_in_aws_can_have_is_an_error() {
    let input = "name = \"log level\"\ndisplay_name = \"L\"\ndescription = \"d\"\ngroup = \"main\"\n";
    let config =
        good().with("inputs/a.toml", input).with("secrets/a.toml", "name = \"api.key\"\ndescription = \"d\"\n");

    insta::assert_snapshot!(config.faults(), @r#"
    error: `log level` is not a name that an input can have
     --> inputs/a.toml:1:8
      |
    1 | name = "log level"
      |        ^^^^^^^^^^^ expected 1 to 200 letters, digits, dashes or underscores

    error: `api.key` is not a name that a secret can have
     --> secrets/a.toml:1:8
      |
    1 | name = "api.key"
      |        ^^^^^^^^^ expected 1 to 200 letters, digits, dashes or underscores
    "#);
}

#[test]
fn a_secret_of_two_files_names_both() {
    let secret = "name = \"a\"\ndescription = \"d\"\n";
    let config = good().with("secrets.toml", &format!("[[secret]]\n{secret}")).with("secrets/a.toml", secret);

    insta::assert_snapshot!(config.faults(), @r#"
    error: secret `a` is defined twice, in secrets.toml:2 and here
     --> secrets/a.toml:1:8
      |
    1 | name = "a"
      |        ^^^
      |
     ::: secrets.toml:2:8
      |
    2 | name = "a"
      |        --- first defined here
      |
      = help: rename one of them, or remove it
    "#);
}

#[test]
fn an_unknown_group_lists_the_groups() {
    let config = good().with(
        "inputs.toml",
        &format!("[[group]]\nname = \"network\"\n{GROUP}{}", input("region", "").replace("\"main\"", "\"billing\"")),
    );

    insta::assert_snapshot!(config.faults(), @r#"
    error: there is no input group `billing`
     --> inputs.toml:9:9
      |
    9 | group = "billing"
      |         ^^^^^^^^^
      |
      = help: the groups are `main`, `network`; name one of them, or define another one in a `[[group]]` of `inputs.toml`
    "#);
}

#[test]
fn no_finding_about_a_sensitive_input_shows_its_value() {
    let answered_twice = "name = \"a1\"\n[[inputs]]\nkey = \"hunter2\"\n[[inputs]]\nkey = \"hunter2\"\n";
    let faulty = [
        "required = true\ndefault = \"hunter2\"",
        "type = \"number\"\ndefault = \"hunter2\"",
        "type = \"json\"\ndefault = \"{hunter2\"",
        "type = \"list\"\ndefault = { hunter2 = 1 }",
        "default = { hunter2 = 1 }",
    ];
    let in_app = faulty.map(|more| with_inputs(&[input("key", &format!("sensitive = true\n{more}"))]));
    let in_install = [answered_twice, "name = \"a1\"\n[inputs]\nkey = { hunter2 = 1 }\n"]
        .map(|install| with_inputs(&[input("key", "sensitive = true")]).with("installs/a.toml", install));

    for config in in_app.iter().chain(&in_install) {
        let faults = config.faults().to_string();

        assert!(faults.contains("`key`") && !faults.contains("hunter2"), "{faults}");
    }
}
