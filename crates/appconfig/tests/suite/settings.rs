//! Metadata, sandbox, runner and stack.

use freehold_protocol::app_version::{Platform, Reference, SandboxTool};
use freehold_protocol::order::Source;
use freehold_protocol::terraform::ProviderSource;
use serde_json::json;

use crate::config::{good, is_of_programs};

const SANDBOX: &str = "terraform_version = \"1.11.3\"\n[public_repo]\nrepo = \"acme/sandbox\"\nbranch = \"v1\"\n";

const STACK: &str = "type = \"aws-cloudformation\"\nname = \"x-{{ .nuon.install.id }}\"\ndescription = \"d\"\n";

#[test]
fn metadata_becomes_part_of_the_version() {
    let config = good()
        .with(
            "metadata.toml",
            "version = \"v2\"\ndisplay_name = \"Shop\"\ndescription = \"sells\"\nreadme = \"./README.md\"\n[label_colors]\nenv = \"#ff0000\"\n[default_labels]\nteam = \"shop\"\nyear = 2026\n[onboarding]\nenabled = true\n[[kubernetes_context]]\nname = \"main\"\ncomponent = \"net\"\n",
        )
        .with("README.md", "# Shop {{ not a template\n");

    let loaded = config.load();

    assert!(loaded.warnings.is_empty(), "{}", loaded.warnings);
    let version = loaded.version;
    assert_eq!((version.display_name.as_str(), version.description.as_str()), ("Shop", "sells"));
    assert_eq!(version.readme, "# Shop {{ not a template\n");
    assert_eq!((version.default_labels["team"].as_str(), version.default_labels["year"].as_str()), ("shop", "2026"));
    assert_eq!(version.kubernetes_contexts[0].component.as_str(), "net");
}

#[test]
fn a_kubernetes_context_is_of_a_component_that_makes_a_cluster() {
    let config = good().with(
        "metadata.toml",
        "version = \"v2\"\n[[kubernetes_context]]\nname = \"a\"\ncomponent = \"nett\"\n[[kubernetes_context]]\nname = \"b\"\ncomponent = \"web\"\n",
    );

    insta::assert_snapshot!(config.faults(), @r#"
    error: there is no component `nett`
     --> metadata.toml:4:13
      |
    4 | component = "nett"
      |             ^^^^^^
      |
      = help: did you mean `net`?

    error: component `web` is a `container_image`, which does not create a cluster
     --> metadata.toml:7:13
      |
    7 | component = "web"
      |             ^^^^^ expected a component of type `terraform_module`, `pulumi` or `cloudformation_stack`
      |
     ::: components/web.toml:2:8
      |
    2 | type = "container_image"
      |        ----------------- its type
    "#);
}

#[test]
fn a_terraform_sandbox_becomes_part_of_the_version() {
    let config = good()
        .with(
            "sandbox.toml",
            "terraform_version = \"1.11.3\"\ndrift_schedule = \"0 */6 * * *\"\nmax_auto_retries = 2\nskip_noops = true\n[public_repo]\nrepo = \"acme/sandbox\"\nbranch = \"v1\"\ndirectory = \"eks\"\n[vars]\nregion = \"{{ .nuon.inputs.inputs.region }}\"\nsize = 3\n[env_vars]\nA = \"b\"\n[[var_file]]\ncontents = \"./sandbox.tfvars\"\n[operation_roles]\nprovision = \"{{ .nuon.install.id }}-p\"\n",
        )
        .with("sandbox.tfvars", "x = 1\n")
        .with(
            "permissions/provision.toml",
            "type = \"provision\"\nname = \"{{ .nuon.install.id }}-p\"\ndescription = \"d\"\n",
        );

    let loaded = config.load();

    assert!(loaded.warnings.is_empty(), "{}", loaded.warnings);
    assert_eq!(loaded.unresolved.len(), 1);
    let fetching = config.with("sandbox.toml", &format!("providers = \"registry\"\n{SANDBOX}")).load().version;
    let providers = ProviderSource::Registry;
    assert_eq!(fetching.sandbox.unwrap().tool, SandboxTool::Terraform { version: "1.11.3".to_owned(), providers });
    let sandbox = loaded.version.sandbox.unwrap();
    assert_eq!(
        sandbox.tool,
        SandboxTool::Terraform { version: "1.11.3".to_owned(), providers: ProviderSource::Packed }
    );
    assert!(matches!(&sandbox.source, Source::Git { directory, branch, .. } if directory == "eks" && branch == "v1"));
    assert_eq!(sandbox.vars["size"], json!(3));
    assert_eq!(sandbox.var_files, ["x = 1\n"]);
    assert_eq!(sandbox.references, [Reference::Input("region".to_owned())].into());
    assert_eq!(sandbox.operation_roles["provision"], "{{ .nuon.install.id }}-p");
    assert_eq!((sandbox.max_auto_retries, sandbox.skip_noops), (Some(2), true));
}

#[test]
fn a_pulumi_sandbox_becomes_part_of_the_version() {
    let config = good().with(
        "sandbox.toml",
        "type = \"pulumi\"\nruntime = \"go\"\n[public_repo]\nrepo = \"acme/sandbox\"\n[pulumi_config]\n\"app:dns\" = \"false\"\n",
    );

    let loaded = config.load();

    let sandbox = loaded.version.sandbox.unwrap();
    assert_eq!(sandbox.tool, SandboxTool::Pulumi { runtime: "go".to_owned(), version: String::new() });
    assert_eq!(sandbox.vars["app:dns"], json!("false"));
}

#[test]
fn a_sandbox_has_a_tool_a_source_and_a_schedule_that_are_clear() {
    let config = good().with(
        "sandbox.toml",
        "type = \"pulumi\"\nterraform_version = \"1.11.3\"\ndrift_schedule = \"0 25 * * *\"\n[operation_roles]\ndeploy = \"x\"\n",
    );

    insta::assert_snapshot!(config.faults(), @r#"
    error: key `runtime` is missing: a sandbox of type `pulumi` needs it
     --> sandbox.toml:1:8
      |
    1 | type = "pulumi"
      |        ^^^^^^^^
      |
      = help: add `runtime = "go"`

    error: the sandbox does not name the source of its module
     --> sandbox.toml:1:8
      |
    1 | type = "pulumi"
      |        ^^^^^^^^
      |
      = help: add one of `source`, `public_repo`, `connected_repo`

    warning: `terraform_version` has no effect in a sandbox of type `pulumi`
     --> sandbox.toml:2:1
      |
    2 | terraform_version = "1.11.3"
      | ^^^^^^^^^^^^^^^^^
      |
      = help: remove it, or write `type = "terraform"`

    error: the hour `25` is not a number from 0 to 23
     --> sandbox.toml:3:21
      |
    3 | drift_schedule = "0 25 * * *"
      |                     ^^
      |
      = help: write minute, hour, day of the month, month and day of the week, such as `*/15 8-18 * * mon-fri`

    error: `deploy` is not an operation of a sandbox
     --> sandbox.toml:5:1
      |
    5 | deploy = "x"
      | ^^^^^^ expected one of `provision`, `reprovision`, `deprovision`
    "#);
}

/// A sandbox in the app's own directory, with the outputs `vpc` and the sensitive `token`.
fn with_local_sandbox(text: &str) -> crate::config::Config {
    good().with("sandbox.toml", text).with(
        "sandbox/main.tf",
        "output \"vpc\" {\n  value = 1\n}\noutput \"token\" {\n  value     = 2\n  sensitive = true\n}\n",
    )
}

const LOCAL_SANDBOX: &str = "terraform_version = \"1.11.3\"\nsource = \"./sandbox\"\n";

#[test]
fn a_sandbox_may_come_from_a_directory_of_the_app() {
    let net = "name = \"net\"\ntype = \"terraform_module\"\nterraform_version = \"1.11.3\"\nsource = \"../modules/net\"\n[vars]\nregion = \"{{ .nuon.sandbox.outputs.vpc }}\"\n";
    let config = with_local_sandbox(LOCAL_SANDBOX).with("components/net.toml", net);

    let loaded = config.load();

    assert!(loaded.warnings.is_empty(), "{}", loaded.warnings);
    assert!(matches!(loaded.version.sandbox.unwrap().source, Source::Directory { .. }));
}

#[test]
fn an_output_that_the_sandbox_does_not_give_is_found_where_it_is_read() {
    let net = "name = \"net\"\ntype = \"terraform_module\"\nterraform_version = \"1.11.3\"\nsource = \"../modules/net\"\n[vars]\nregion = \"{{ .nuon.sandbox.outputs.vpcs }} {{ .nuon.sandbox.outputs.token }} {{ .nuon.sandbox.outputs.zone | default 1 }}\"\n";
    let config = with_local_sandbox(LOCAL_SANDBOX).with("components/net.toml", net);

    insta::assert_snapshot!(config.faults(), @r#"
    error: the sandbox's module in `sandbox` has no output `vpcs`
     --> components/net.toml:6:14
      |
    6 | region = "{{ .nuon.sandbox.outputs.vpcs }} {{ .nuon.sandbox.outputs.token }} {{ .nuon.sandbox.outputs.zone | default 1 }}"
      |              ^^^^^^^^^^^^^^^^^^^^^^^^^^
      |
      = help: did you mean `vpc`?
    "#);
}

#[test]
fn a_sandbox_without_a_version_says_what_to_add() {
    let config = good().with(
        "sandbox.toml",
        "[public_repo]\nrepo = \"acme/sandbox\"\n[[operation_roles]]\noperation = \"reprovison\"\nrole = \"x\"\n",
    );

    insta::assert_snapshot!(config.faults(), @r#"
    error: key `terraform_version` is missing: a sandbox of type `terraform` needs it
     --> sandbox.toml:1:1
      |
    1 | [public_repo]
      | ^
      |
      = help: add `terraform_version = "1.11.3"`

    error: `reprovison` is not an operation of a sandbox
     --> sandbox.toml:4:13
      |
    4 | operation = "reprovison"
      |             ^^^^^^^^^^^^ expected one of `provision`, `reprovision`, `deprovision`
      |
      = help: did you mean `reprovision`?
    "#);
}

#[test]
fn runner_and_stack_of_every_cloud_become_part_of_the_version_without_a_warning() {
    for (word, platform) in [
        ("aws-cloudformation", Platform::AwsCloudformation),
        ("azure-bicep", Platform::AzureBicep),
        ("gcp-terraform", Platform::GcpTerraform),
    ] {
        let config = good()
            .with("sandbox.toml", SANDBOX)
            .with("runner.toml", "runner_type = \"aws\"\nhelm_driver = \"configmap\"\ninstance_type = \"t4g.large\"\ninside_hosts = [\"db.corp.example:5432\"]\n[env_vars]\nA = \"b\"\n")
            .with("stack.toml", &format!("{}[[custom_nested_stacks]]\nname = \"b\"\ntemplate_url = \"u\"\nindex = 1\n[[custom_nested_stacks]]\nname = \"a\"\ntemplate_url = \"u\"\n[custom_nested_stacks.parameters]\nR = \"{{{{ .nuon.install.inputs.region }}}}\"\n", STACK.replace("aws-cloudformation", word)));

        let loaded = config.load();

        assert!(loaded.warnings.is_empty(), "{}", loaded.warnings);
        let (runner, stack) = (loaded.version.runner.unwrap(), loaded.version.stack.unwrap());
        assert_eq!((runner.helm_driver.as_str(), runner.instance_type.as_str()), ("configmap", "t4g.large"));
        assert_eq!(runner.inside_hosts, ["db.corp.example:5432".to_owned()].into());
        assert_eq!(stack.platform, platform);
        let nested: Vec<_> = stack.custom_nested_stacks.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(nested, ["a", "b"]);
    }
}

#[test]
fn the_runners_machine_has_a_graviton_processor() {
    let of = |machine: &str| format!("runner_type = \"aws\"\ninstance_type = \"{machine}\"\n");

    assert_eq!(good().with("runner.toml", &of("m7g.large")).faults().to_string(), "");
    assert_eq!(good().with("runner.toml", &of("")).faults().to_string(), "");
    insta::assert_snapshot!(good().with("runner.toml", &of("m5.large")).faults(), @r#"
    warning: the runner's machine is of type `m6g.large`, and not `m5.large`
     --> runner.toml:2:17
      |
    2 | instance_type = "m5.large"
      |                 ^^^^^^^^^^
      |
      = help: the install stack starts machines with a Graviton processor only; write `m6g.large`
    "#);
    insta::assert_snapshot!(good().with("runner.toml", &of("large")).faults(), @r#"
    error: `large` is not a type of machine on EC2 with a Graviton processor
     --> runner.toml:2:17
      |
    2 | instance_type = "large"
      |                 ^^^^^^^
      |
      = help: write the type of such a machine, for example `t4g.small`, or remove the key
    "#);
}

#[test]
fn the_machine_of_another_cloud_is_not_checked() {
    let config = good()
        .with("runner.toml", "runner_type = \"gcp\"\ninstance_type = \"e2-standard-4\"\n")
        .with("stack.toml", &STACK.replace("aws-cloudformation", "gcp-terraform"));

    assert_eq!(config.faults().to_string(), "");
}

#[test]
fn nested_stacks_have_names_and_turns_of_their_own() {
    let nested = |name: &str, index: u32| {
        format!("[[custom_nested_stacks]]\nname = \"{name}\"\ntemplate_url = \"u\"\nindex = {index}\n")
    };
    let config = good().with("stack.toml", &format!("{STACK}{}{}{}", nested("a", 0), nested("b", 0), nested("a", 2)));

    insta::assert_snapshot!(config.faults(), @r#"
    error: nested stacks `a` and `b` both have index 0
      --> stack.toml:11:9
       |
     7 | index = 0
       |         - the other stack
    ...
    11 | index = 0
       |         ^
       |
       = help: give each stack its own `index`; the stack with the lowest `index` goes first

    error: nested stack `a` is defined twice, in stack.toml:5 and here
      --> stack.toml:13:8
       |
     5 | name = "a"
       |        --- first defined here
    ...
    13 | name = "a"
       |        ^^^
       |
       = help: rename one of them, or remove it
    "#);
}

#[test]
fn a_stack_reads_nothing_that_comes_after_it() {
    let config = good().with(
        "stack.toml",
        &format!("{STACK}[[custom_nested_stacks]]\nname = \"a\"\ntemplate_url = \"u\"\n[custom_nested_stacks.parameters]\nvpc = \"{{{{ .nuon.sandbox.outputs.vpc.id }}}}\"\nweb = \"{{{{ .nuon.components.web.outputs.image }}}}\"\n"),
    );

    insta::assert_snapshot!(config.faults(), @r#"
    error: the sandbox's outputs are not known when the install stack is created
     --> stack.toml:8:11
      |
    8 | vpc = "{{ .nuon.sandbox.outputs.vpc.id }}"
      |           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
      |
      = help: use the install's id, name or inputs

    error: outputs of components are not known when the install stack is created
     --> stack.toml:9:11
      |
    9 | web = "{{ .nuon.components.web.outputs.image }}"
      |           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
      |
      = help: use the install's id, name or inputs
    "#);
}

#[test]
fn the_keys_of_the_runner_are_checked() {
    let config = good().with("runner.toml", "helm_driver = \"secrets\"\n");

    insta::assert_snapshot!(config.faults(), @r#"
    error: key `runner_type` is missing
     --> runner.toml:1:1
      |
    1 | helm_driver = "secrets"
      | ^
      |
      = help: add `runner_type = "aws"`; the value is one of `aws`, `gcp`, `azure`

    error: `helm_driver` is `secrets`
     --> runner.toml:1:15
      |
    1 | helm_driver = "secrets"
      |               ^^^^^^^^^ expected one of `secret`, `configmap`, `nuon`
      |
      = help: did you mean `secret`?
    "#);
}

#[test]
fn the_cloud_of_the_runner_is_one_of_three() {
    for cloud in ["aws", "gcp", "azure"] {
        let config = good().with("runner.toml", &format!("runner_type = \"{cloud}\"\n"));
        assert_eq!(config.faults().to_string(), "", "{cloud}");
    }

    let config = good().with("runner.toml", "runner_type = \"...\"\n");

    insta::assert_snapshot!(config.faults(), @r#"
    error: `runner_type` is `...`
     --> runner.toml:1:15
      |
    1 | runner_type = "..."
      |               ^^^^^ expected one of `aws`, `gcp`, `azure`
    "#);
}

#[test]
fn the_config_of_a_runner_is_one_mistake() {
    let runner = "tenant = \"acme\"\norders_queue_url = \"https://sqs\"\ntenant_key = \"x\"\nslots = 4\n";
    let config = good().with("runner.toml", runner);

    insta::assert_snapshot!(config.faults(), @r#"
    error: this is the config that a runner starts with, and not a file of an app
     --> runner.toml:2:1
      |
    2 | orders_queue_url = "https://sqs"
      | ^^^^^^^^^^^^^^^^
      |
      = help: move it out of the app's directory; `freehold-runner run --config` reads it
    "#);
}

#[test]
fn the_tool_image_is_a_component_with_an_image() {
    let named = |name: &str| good().with("runner.toml", &format!("runner_type = \"aws\"\ntool_image = \"{name}\"\n"));

    assert_eq!(named("web").load().version.tool_image().unwrap().name.as_str(), "web");
    insta::assert_snapshot!(named("net").faults(), @r#"
    error: component `net` is a `terraform_module`, which is not an image
     --> runner.toml:2:14
      |
    2 | tool_image = "net"
      |              ^^^^^
      |
      = help: name a component of type `container_image` or `docker_build`
    "#);
    insta::assert_snapshot!(named("tools").faults(), @r#"
    error: there is no component `tools`
     --> runner.toml:2:14
      |
    2 | tool_image = "tools"
      |              ^^^^^^^
      |
      = help: define the component in `components/`, or remove the reference to it
    "#);
}

#[test]
fn a_host_inside_is_a_host_and_no_url_or_template() {
    let runner = "runner_type = \"aws\"\ninside_hosts = [\"*.corp.example\", \"https://git.corp.example\", \"{{ .nuon.install.id }}.corp.example\"]\n";
    let config = good().with("runner.toml", runner);

    insta::assert_snapshot!(config.faults(), @r#"
    error: `https://git.corp.example` is not a host
     --> runner.toml:2:35
      |
    2 | inside_hosts = ["*.corp.example", "https://git.corp.example", "{{ .nuon.install.id }}.corp.example"]
      |                                   ^^^^^^^^^^^^^^^^^^^^^^^^^^
      |
      = help: write `host`, `host:port` or `*.host`; the customer agrees to each host, so a template is not permitted

    error: `{{ .nuon.install.id }}.corp.example` is not a host
     --> runner.toml:2:63
      |
    2 | inside_hosts = ["*.corp.example", "https://git.corp.example", "{{ .nuon.install.id }}.corp.example"]
      |                                                               ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
      |
      = help: write `host`, `host:port` or `*.host`; the customer agrees to each host, so a template is not permitted
    "#);
}

#[test]
fn the_image_of_an_action_is_that_of_a_component() {
    let action = |image: &str| {
        let step = "[[steps]]\nname = \"one\"\ncommand = \"true\"\n";
        good().with("actions/check.toml", &format!("name = \"check\"\nimage = \"{image}\"\n{step}"))
    };

    let loaded = action("{{ .nuon.components.web.outputs.reference }}").load();
    let check = &loaded.version.actions[0];
    assert!(check.dependencies.contains(&"web".parse().unwrap()) && loaded.warnings.is_empty(), "{}", loaded.warnings);
    let warned = |image: &str| action(image).all().filter(|one| !is_of_programs(&one.message)).to_string();
    let warning = "the app cannot be deployed yet: action `check` runs in an image that is not a component of the app";
    assert!(warned("alpine:3").contains(warning), "{}", warned("alpine:3"));
    assert!(!warned("{{ .nuon.components.web.outputs.reference }}").contains("image"));
}

#[test]
fn the_config_of_a_runner_is_not_part_of_an_app() {
    let runner = "# Start the runner with: freehold-runner run --config FILE\ntenant = \"acme\"\ninstall = \"globex\"\n\
                  orders_queue_url = \"https://o\"\nreports_queue_url = \"https://r\"\ntenant_key = \"k\"\n";
    let config = good().with("runner.toml", runner).with("globex-runner.toml", runner);

    insta::assert_snapshot!(config.load().warnings.to_string(), @r"
    warning: `globex-runner.toml` is the config of a runner; an app config has no such file
     --> globex-runner.toml:1:1
      |
    1 | # Start the runner with: freehold-runner run --config FILE
      | ^
      |
      = help: move it out of the app's directory

    warning: `runner.toml` is the config of a runner; the app's file of this name has other keys
     --> runner.toml:1:1
      |
    1 | # Start the runner with: freehold-runner run --config FILE
      | ^
      |
      = help: move it out of the app's directory, and write the app's file with `freehold tools init DIR`
    ");
}
