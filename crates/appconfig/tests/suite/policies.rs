//! Policies that check plans, manifests and images.

use freehold_protocol::app_version::PolicyEngine;

use crate::config::good;

const KYVERNO: &str = "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata:\n  name: x\n";

#[test]
fn policies_of_both_engines_become_part_of_the_version() {
    let config = good()
        .with(
            "policies.toml",
            "[[policy]]\ntype = \"terraform_module\"\nengine = \"opa\"\nname = \"b\"\ncomponents = [\"net\"]\ncontents = \"./policies/b.rego\"\n[[policy]]\ntype = \"kubernetes_cluster\"\ncomponents = [\"*\"]\ncontents = \"./policies/a.yaml\"\n",
        )
        .with("policies/b.rego", "# why\npackage nuon\ndeny contains \"x\" if input.plan.x\n")
        .with("policies/a.yaml", KYVERNO)
        .with("policies/c.toml", "type = \"sandbox\"\nengine = \"opa\"\nname = \"c\"\ncontents = \"package freehold\\nwarn contains 1\"\n");

    let loaded = config.load();

    assert_eq!(loaded.warnings.to_string().matches("warning: ").count(), 1, "{}", loaded.warnings);
    assert!(loaded.warnings.to_string().contains("no cluster gets this Kyverno policy"), "{}", loaded.warnings);
    let found: Vec<_> =
        loaded.version.policies.iter().map(|one| (one.name.as_str(), one.kind.as_str(), one.engine)).collect();
    let expected = [
        ("a", "kubernetes_cluster", PolicyEngine::Kyverno),
        ("b", "terraform_module", PolicyEngine::Opa),
        ("c", "sandbox", PolicyEngine::Opa),
    ];
    assert_eq!(found, expected);
    assert!(loaded.version.policies[0].components.is_empty());
    assert_eq!(loaded.version.policies[1].components.len(), 1);
}

#[test]
fn a_policy_that_judges_nothing_is_reported() {
    let config = good().with(
        "policies.toml",
        "[[policy]]\ntype = \"runner_job_helm_deploy\"\ncontents = \"a: 1\"\n[[policy]]\ntype = \"helm_chart\"\ncomponents = [\"net\"]\ncontents = \"a: 1\"\n[[policy]]\ntype = \"sandbox\"\nengine = \"opa\"\ncontents = \"package main\"\n[[policy]]\ntype = \"sandbox\"\nengine = \"opa\"\ncontents = \"deny[x] { false }\"\n[[policy]]\ntype = \"sandbox\"\ncontents = \"package nuon\"\n[[policy]]\ntype = \"sandbox\"\ncontents = \"\"\n",
    );

    insta::assert_snapshot!(config.faults(), @r#"
    warning: a policy of type `runner_job_helm_deploy` checks nothing
     --> policies.toml:2:8
      |
    2 | type = "runner_job_helm_deploy"
      |        ^^^^^^^^^^^^^^^^^^^^^^^^
      |
      = help: write `type = "helm_chart"`

    warning: component `net` is a `terraform_module`, which a policy of type `helm_chart` does not check
     --> policies.toml:6:15
      |
    6 | components = ["net"]
      |               ^^^^^
      |
     ::: components/net.toml:2:8
      |
    2 | type = "terraform_module"
      |        ------------------ its type
      |
      = help: remove `net` from `components`, or write `type = "terraform_module"`

    error: the policy has no `apiVersion`
     --> policies.toml:7:13
      |
    7 | contents = "a: 1"
      |             ^
      |
      = help: a Kyverno policy is a `ClusterPolicy` or `Policy` of `kyverno.io`, or one of its validating policies; put other objects into a component of type `kubernetes_manifest`

    error: the policy cannot be read as Rego: the policy is in package `main`; write `package nuon`
      --> policies.toml:11:12
       |
    11 | contents = "package main"
       |            ^^^^^^^^^^^^^^
       |
       = help: `freehold policy test FILE` reads one policy, and evaluates it on a recorded plan

    error: the policy cannot be read as Rego: expecting `package` Missing package declaration.
      --> policies.toml:15:13
       |
    15 | contents = "deny[x] { false }"
       |             ^
       |
       = help: `freehold policy test FILE` reads one policy, and evaluates it on a recorded plan

    warning: the policy is Rego, and its engine is `kyverno`, the default: nothing evaluates it
      --> policies.toml:18:12
       |
    18 | contents = "package nuon"
       |            ^^^^^^^^^^^^^^
       |
       = help: write `engine = "opa"`

    warning: the policy is empty
      --> policies.toml:21:12
       |
    21 | contents = ""
       |            ^^ expected a Kyverno policy's YAML
    "#);
}

#[test]
fn rego_for_a_cluster_that_only_kyverno_reads_is_an_error() {
    let policy =
        |engine: &str| format!("[[policy]]\ntype = \"kubernetes_cluster\"\n{engine}contents = \"package nuon\"\n");
    let faults = |engine: &str| good().with("policies.toml", &policy(engine)).faults().to_string();

    let (implied, written) = (faults(""), faults("engine = \"kyverno\"\n"));

    let start = "error: the policy is Rego, and its engine is `kyverno`";
    assert!(implied.contains(&format!("{start}, the default: Kyverno cannot read it")), "{implied}");
    assert!(written.contains(&format!("{start}: Kyverno cannot read it")), "{written}");
}

#[test]
fn a_kyverno_policy_is_yaml() {
    let config = good()
        .with("policies.toml", "[[policy]]\ntype = \"kubernetes_cluster\"\ncontents = \"./policies/a.yaml\"\n")
        .with("policies/a.yaml", &format!("{KYVERNO}spec: [1\nrules: x\n"));

    insta::assert_snapshot!(config.faults(), @r"
    error: the policy is not YAML: illegal placement of ':' indicator
     --> policies/a.yaml:6:6
      |
    6 | rules: x
      |      ^
    ");
}

#[test]
fn a_kyverno_policy_is_of_a_kind_of_kyverno_and_limits_a_whole_cluster() {
    let text = format!(
        "# limits\n---\n{KYVERNO}---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n  name: x\n"
    );
    let config = good()
        .with_sandbox()
        .with("components/web.toml", "name = \"web\"\ntype = \"helm_chart\"\nchart_name = \"web\"\n[helm_repo]\nrepo_url = \"https://charts.example\"\nchart = \"web\"\nversion = \"1.0.0\"\n")
        .with(
            "policies.toml",
            "[[policy]]\ntype = \"kubernetes_cluster\"\ncontents = \"./policies/a.yaml\"\n[[policy]]\ntype = \"kubernetes_cluster\"\ncomponents = [\"web\"]\ncontents = \"./policies/b.yaml\"\n[[policy]]\ntype = \"kubernetes_cluster\"\ncontents = \"a: 1\"\n[[policy]]\ntype = \"kubernetes_cluster\"\ncontents = \" # nothing\"\n[[policy]]\ntype = \"kubernetes_cluster\"\ncontents = \"- 1\"\n",
        )
        .with("policies/a.yaml", &text)
        .with("policies/b.yaml", &format!("{KYVERNO}spec:\n  rules: [{{message: \"{{{{ request.object }}}}\"}}]\n"));

    insta::assert_snapshot!(config.faults(), @r#"
    warning: `components` has no effect: Kyverno applies a policy to everything in the cluster
     --> policies.toml:6:15
      |
    6 | components = ["web"]
      |               ^^^^^
      |
      = help: remove `components`, and select objects with `match` in the policy

    error: the policy has no `apiVersion`
      --> policies.toml:10:13
       |
    10 | contents = "a: 1"
       |             ^
       |
       = help: a Kyverno policy is a `ClusterPolicy` or `Policy` of `kyverno.io`, or one of its validating policies; put other objects into a component of type `kubernetes_manifest`

    error: the text has no policy
      --> policies.toml:13:12
       |
    13 | contents = " # nothing"
       |            ^^^^^^^^^^^^ expected a Kyverno policy's YAML

    error: the policy has no `apiVersion`
      --> policies.toml:16:13
       |
    16 | contents = "- 1"
       |             ^
       |
       = help: a Kyverno policy is a `ClusterPolicy` or `Policy` of `kyverno.io`, or one of its validating policies; put other objects into a component of type `kubernetes_manifest`

    error: `ClusterRole` of `rbac.authorization.k8s.io/v1` is not a kind of policy that Kyverno has
     --> policies/a.yaml:8:1
      |
    8 | apiVersion: rbac.authorization.k8s.io/v1
      | ^
      |
      = help: a Kyverno policy is a `ClusterPolicy` or `Policy` of `kyverno.io`, or one of its validating policies; put other objects into a component of type `kubernetes_manifest`
    "#);
}

#[test]
fn a_policy_of_an_unknown_type_or_component_is_an_error() {
    let config = good().with(
        "policies.toml",
        "[[policy]]\ntype = \"teraform_module\"\nengine = \"rego\"\ncomponents = [\"ent\"]\ncontents = \"a: 1\"\n",
    );

    insta::assert_snapshot!(config.faults(), @r#"
    error: `type` is `teraform_module`
     --> policies.toml:2:8
      |
    2 | type = "teraform_module"
      |        ^^^^^^^^^^^^^^^^^ expected one of `terraform_module`, `helm_chart`, `kubernetes_manifest`, `container_image`, `docker_build`, `pulumi`, `sandbox`, `kubernetes_cluster`, `runner_job_terraform_deploy`, `runner_job_helm_deploy`, `runner_job_action_workflow`
      |
      = help: did you mean `terraform_module`?

    error: `engine` is `rego`
     --> policies.toml:3:10
      |
    3 | engine = "rego"
      |          ^^^^^^ expected one of `kyverno`, `opa`

    error: there is no component `ent`
     --> policies.toml:4:15
      |
    4 | components = ["ent"]
      |               ^^^^^
      |
      = help: did you mean `net`?
    "#);
}
