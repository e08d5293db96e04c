//! What is said about the outputs of components that templates read.

mod whole_subtrees;

use crate::config::{Config, good};

const STACK: &str = "Resources:\n  Topic:\n    Type: AWS::SNS::Topic\nOutputs:\n  TopicArn:\n    Value: !Ref Topic\n";

/// An app whose component `net` has the outputs `vpc` and `token`, and whose component `topic` has `TopicArn`. The
/// component `reader` reads `value`.
fn read(value: &str) -> Config {
    let net = "name = \"net\"\nvar_name = \"network\"\ntype = \"terraform_module\"\nterraform_version = \"1.11.3\"\nsource = \"./modules/own\"\n";
    let topic = "name = \"topic\"\ntype = \"cloudformation_stack\"\ntemplate = \"./topic.yaml\"\n";
    let reader = format!(
        "name = \"reader\"\ntype = \"terraform_module\"\nterraform_version = \"1.11.3\"\nsource = \"./modules/net\"\n[vars]\nregion = \"{value}\"\n"
    );
    good()
        .with_roles()
        .with("components/net.toml", net)
        .with(
            "modules/own/main.tf",
            "output \"vpc\" { value = {} }\noutput \"token\" {\n  value     = 1\n  sensitive = true\n}\n",
        )
        .with("components/topic.toml", topic)
        .with("topic.yaml", STACK)
        .with("components/reader.toml", &reader)
}

#[test]
fn an_output_that_a_module_does_not_declare_is_an_error_where_it_is_read() {
    let config = read("{{ .nuon.components.net.outputs.vpcs }} {{ .nuon.components.network.outputs.token }}");

    insta::assert_snapshot!(config.faults(), @r#"
    error: the module in `modules/own` of component `net` has no output `vpcs`
     --> components/reader.toml:6:14
      |
    6 | region = "{{ .nuon.components.net.outputs.vpcs }} {{ .nuon.components.network.outputs.token }}"
      |              ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
      |
      = help: did you mean `vpc`?
    "#);
}

#[test]
fn a_sensitive_output_is_for_components_and_actions_alone() {
    let token = "{{ .nuon.components.network.outputs.token }}";
    let action = format!(
        "name = \"say\"\n[[triggers]]\ntype = \"manual\"\n[[steps]]\nname = \"say\"\ncommand = \"echo {token}\"\n"
    );
    let place = format!(
        "[[secret]]\nname = \"api_key\"\ndescription = \"A key\"\nkubernetes_sync = true\n\
         kubernetes_secret_namespace = \"{token}\"\nkubernetes_secret_name = \"key\"\n"
    );

    assert_eq!(read(token).with("actions/say.toml", &action).faults().to_string(), "");
    let text = read("x").with("secrets.toml", &place).faults().to_string();
    let warning = "warning: output `token` of component `net` is sensitive: only components and actions can read it";
    assert!(text.contains(warning) && text.contains("--> secrets.toml:5:35"), "{text}");
}

#[test]
fn an_output_that_a_template_does_not_declare_is_an_error_where_it_is_read() {
    let config = read("{{ .nuon.components.topic.outputs.TopicArm }} {{ .nuon.components.topic.outputs.Url }}");

    insta::assert_snapshot!(config.faults(), @r#"
    error: the template `topic.yaml` of component `topic` has no output `TopicArm`
     --> components/reader.toml:6:14
      |
    6 | region = "{{ .nuon.components.topic.outputs.TopicArm }} {{ .nuon.components.topic.outputs.Url }}"
      |              ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
      |
      = help: did you mean `TopicArn`?

    error: the template `topic.yaml` of component `topic` has no output `Url`
     --> components/reader.toml:6:60
      |
    6 | region = "{{ .nuon.components.topic.outputs.TopicArm }} {{ .nuon.components.topic.outputs.Url }}"
      |                                                            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
      |
      = help: declare it below `Outputs:` as `Url: {Value: ...}`, or correct the expression
    "#);
}

#[test]
fn an_action_that_reads_an_unknown_output_gets_a_warning() {
    let action = "name = \"say\"\n[[triggers]]\ntype = \"manual\"\n[[steps]]\nname = \"say\"\ncommand = \"echo {{ .nuon.components.topic.outputs.Arn }}\"\n";
    let config = read("x").with("actions/say.toml", action);

    insta::assert_snapshot!(config.faults(), @r#"
    warning: the template `topic.yaml` of component `topic` has no output `Arn`
     --> actions/say.toml:6:20
      |
    6 | command = "echo {{ .nuon.components.topic.outputs.Arn }}"
      |                    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
      |
      = help: declare it below `Outputs:` as `Arn: {Value: ...}`, or correct the expression
    "#);
}

#[test]
fn outputs_that_exist_or_may_exist_are_not_mistakes() {
    let value = "{{ .nuon.components.net.outputs.vpc.id }} {{ .nuon.components.topic.outputs.TopicArn }} {{ .nuon.components.net.outputs.none | default 1 }} {{ index .nuon.components.network.outputs \\\"vpc\\\" }}";
    let whole = read(value);
    let json = read("{{ .nuon.components.net.outputs.more }}")
        .with("modules/own/more.tf.json", "{\"output\": {\"more\": {\"value\": 1}}}");
    let computed = read("{{ .nuon.components.topic.outputs.More }}")
        .with("topic.yaml", &format!("Transform: AWS::LanguageExtensions\n{STACK}"));

    for config in [whole, json, computed] {
        assert_eq!(config.faults().to_string(), "");
    }
}
