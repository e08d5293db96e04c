//! The messages about faulty components.

use crate::config::good;

#[test]
fn a_manifest_beside_a_kustomization_is_an_error() {
    let config = good().with("components/k.toml", "name = \"k\"\ntype = \"kubernetes_manifest\"\nnamespace = \"x\"\nmanifest = \"kind: Pod\"\n[kustomize]\npath = \"./k\"\n");

    insta::assert_snapshot!(config.faults(), @r#"
    error: the manifest comes from two places
     --> components/k.toml:5:2
      |
    4 | manifest = "kind: Pod"
      | -------- the other key
    5 | [kustomize]
      |  ^^^^^^^^^
      |
      = help: keep one of `manifest`, `kustomize`
    "#);
}

#[test]
fn a_manifest_needs_no_repository() {
    let config = good().with_sandbox().with("components/k.toml", "name = \"k\"\ntype = \"kubernetes_manifest\"\nnamespace = \"x\"\nmanifest = \"{apiVersion: v1, kind: Pod}\"\n[public_repo]\nrepo = \"a/b\"\n");

    insta::assert_snapshot!(config.faults(), @r#"
    error: `public_repo` is not used with `manifest`
     --> components/k.toml:5:2
      |
    5 | [public_repo]
      |  ^^^^^^^^^^^
      |
      = help: add `[kustomize]` instead of `manifest`, or remove the repository
    "#);
}

#[test]
fn a_component_without_what_it_deploys_says_what_to_add() {
    let config = good()
        .with("components/a.toml", "name = \"a\"\ntype = \"kubernetes_manifest\"\nnamespace = \"x\"\n")
        .with(
            "components/b.toml",
            "name = \"b\"\ntype = \"kubernetes_manifest\"\nnamespace = \"x\"\n[kustomize]\nenable_helm = true\n",
        )
        .with("components/c.toml", "name = \"c\"\ntype = \"helm_chart\"\nchart_name = \"c\"\n[[values_file]]\n");

    insta::assert_snapshot!(config.faults(), @r#"
    error: component `a` does not name the source of its manifest
     --> components/a.toml:2:8
      |
    2 | type = "kubernetes_manifest"
      |        ^^^^^^^^^^^^^^^^^^^^^
      |
      = help: add one of `manifest`, `kustomize`

    error: the kustomization does not name the source of its directory
     --> components/b.toml:4:1
      |
    4 | [kustomize]
      | ^^^^^^^^^^^
      |
      = help: add one of `path`, `directory`, `public_repo`, `connected_repo`

    error: component `c` does not name the source of its chart
     --> components/c.toml:2:8
      |
    2 | type = "helm_chart"
      |        ^^^^^^^^^^^^
      |
      = help: add one of `public_repo`, `connected_repo`, `helm_repo`, `source`

    error: a `values_file` does not name the source of its text
     --> components/c.toml:4:1
      |
    4 | [[values_file]]
      | ^^^^^^^^^^^^^^^
      |
      = help: add one of `contents`, `path`, `source`
    "#);
}

#[test]
fn a_chart_with_two_sources_marks_both() {
    let config = good().with("components/c.toml", "name = \"c\"\ntype = \"helm_chart\"\nchart_name = \"c\"\n[public_repo]\nrepo = \"a/b\"\n[helm_repo]\nrepo_url = \"https://charts.example\"\nchart = \"c\"\n");

    insta::assert_snapshot!(config.faults(), @r#"
    error: the chart comes from two places
     --> components/c.toml:6:2
      |
    4 | [public_repo]
      |  ----------- the other key
    5 | repo = "a/b"
    6 | [helm_repo]
      |  ^^^^^^^^^
      |
      = help: keep one of `public_repo`, `connected_repo`, `helm_repo`, `source`
    "#);
}

#[test]
fn a_values_file_without_a_path_says_how_to_write_one() {
    let config = good().with_sandbox().with("components/c.toml", "name = \"c\"\ntype = \"helm_chart\"\nchart_name = \"c\"\n[helm_repo]\nrepo_url = \"https://charts.example\"\nchart = \"c\"\n[[values_file]]\npath = \"values/c.yaml\"\n");

    insta::assert_snapshot!(config.faults(), @r#"
    error: `values/c.yaml` is read as a text, not as a path
     --> components/c.toml:8:8
      |
    8 | path = "values/c.yaml"
      |        ^^^^^^^^^^^^^^^
      |
      = help: write `./values/c.yaml`
    "#);
}

#[test]
fn a_kustomization_with_two_places_is_an_error() {
    let config = good().with("components/k.toml", "name = \"k\"\ntype = \"kubernetes_manifest\"\nnamespace = \"x\"\n[kustomize]\ndirectory = \"./k\"\n[kustomize.public_repo]\nrepo = \"a/b\"\n");

    insta::assert_snapshot!(config.faults(), @r#"
    error: the directory comes from two places
     --> components/k.toml:5:1
      |
    5 | directory = "./k"
      | ^^^^^^^^^
    6 | [kustomize.public_repo]
      |            ----------- the other key
      |
      = help: keep one of `public_repo`, `connected_repo`, `directory`
    "#);
}

#[test]
fn a_signature_without_a_signer_is_an_error() {
    let config = good().with(
        "components/web.toml",
        "name = \"web\"\ntype = \"container_image\"\n[public]\nimage_url = \"x/y\"\ntag = \"1\"\n[verification]\nrequire_signature = true\n",
    );

    insta::assert_snapshot!(config.faults(), @r"
    error: the image needs a signature, but no authority is named
     --> components/web.toml:7:21
      |
    7 | require_signature = true
      |                     ^^^^
      |
      = help: add `[[verification.authorities]]` with a `public_key`, or `issuer` and `subject`
    ");
}

#[test]
fn a_signer_who_is_half_a_key_is_an_error() {
    let config = good().with(
        "components/web.toml",
        "name = \"web\"\ntype = \"container_image\"\n[public]\nimage_url = \"x/y\"\ntag = \"1\"\n[[verification.authorities]]\nissuer = \"https://a\"\n[[verification.authorities]]\nsubject = \"x\"\npublic_key = \"./key.pub\"\n[[verification.authorities]]\ntype = \"cosign_key\"\n",
    )
    .with("components/key.pub", "-----BEGIN PUBLIC KEY-----\nQUJD\n-----END PUBLIC KEY-----\n");

    insta::assert_snapshot!(config.faults(), @r#"
    error: the authority needs one of `subject` and `subject_regexp`
     --> components/web.toml:6:1
      |
    6 | [[verification.authorities]]
      | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
      |
      = help: give either `public_key`, or `issuer` with `subject` or `subject_regexp`

    error: `subject` does not belong to this kind of signature
     --> components/web.toml:9:1
      |
    9 | subject = "x"
      | ^^^^^^^
      |
      = help: give either `public_key`, or `issuer` with `subject` or `subject_regexp`

    error: the authority has no `public_key`
      --> components/web.toml:11:1
       |
    11 | [[verification.authorities]]
       | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
       |
       = help: give either `public_key`, or `issuer` with `subject` or `subject_regexp`
    "#);
}

#[test]
fn an_invalid_key_is_an_error() {
    let config = good()
        .with(
            "components/web.toml",
            "name = \"web\"\ntype = \"container_image\"\n[public]\nimage_url = \"x/y\"\ntag = \"1\"\n[verification]\nrequire_signature = true\n[[verification.authorities]]\npublic_key = \"./cosign.key\"\n[[verification.authorities]]\npublic_key = \"KEY\"\n",
        )
        .with("components/cosign.key", "-----BEGIN ENCRYPTED SIGSTORE PRIVATE KEY-----\n");

    insta::assert_snapshot!(config.faults(), @r#"
    error: this is a private key, which must not be in a config
     --> components/web.toml:9:14
      |
    9 | public_key = "./cosign.key"
      |              ^^^^^^^^^^^^^^
      |
      = help: give the text of `cosign.pub`, as `cosign public-key --key cosign.key` writes it

    error: the public key is not in PEM form: it does not begin with `-----BEGIN PUBLIC KEY-----`
      --> components/web.toml:11:14
       |
    11 | public_key = "KEY"
       |              ^^^^^
       |
       = help: give the text of `cosign.pub`, as `cosign public-key --key cosign.key` writes it
    "#);
}

#[test]
fn a_keyless_signature_is_not_looked_for() {
    let config = |more: &str| {
        let text = "name = \"web\"\ntype = \"container_image\"\n[public]\nimage_url = \"x/y\"\ntag = \"1\"\n[verification]\nrequire_signature = true\n[[verification.authorities]]\nissuer = \"https://a\"\nsubject = \"b\"\n";
        good()
            .with("components/web.toml", &format!("{text}{more}"))
            .with("components/key.pub", "-----BEGIN PUBLIC KEY-----\nQUJD\n-----END PUBLIC KEY-----\n")
    };

    let alone = config("").faults();
    let beside_a_key = config("[[verification.authorities]]\npublic_key = \"./key.pub\"\n").faults();

    insta::assert_snapshot!(format!("{alone}\n{beside_a_key}"), @r#"
    warning: builds cannot check keyless signatures, so every build of this image fails
     --> components/web.toml:9:10
      |
    9 | issuer = "https://a"
      |          ^^^^^^^^^^^
      |
      = help: sign the image with `cosign sign --key` and name that key as `public_key`
    warning: builds do not check keyless signatures, so the image needs a signature by a `public_key`
     --> components/web.toml:9:10
      |
    9 | issuer = "https://a"
      |          ^^^^^^^^^^^
      |
      = help: sign the image with `cosign sign --key` and name that key as `public_key`
    "#);
}

#[test]
fn an_image_on_disk_has_no_signature_to_check() {
    let config = good()
        .with(
            "components/web.toml",
            "name = \"web\"\ntype = \"container_image\"\n[oci_layout]\npath = \"./image\"\n[verification]\nrequire_signature = true\n[[verification.authorities]]\npublic_key = \"./key.pub\"\n",
        )
        .with("components/image/index.json", "{}")
        .with("components/key.pub", "-----BEGIN PUBLIC KEY-----\nQUJD\n-----END PUBLIC KEY-----\n");

    insta::assert_snapshot!(config.faults(), @r"
    error: the signatures of an image on disk cannot be checked, because they are in the image's registry
     --> components/web.toml:6:21
      |
    6 | require_signature = true
      |                     ^^^^
      |
      = help: take the image from its registry, with `public` or `aws_ecr`, or remove `require_signature`
    ");
}

#[test]
fn an_invalid_schedule_is_marked_where_it_breaks() {
    let config = good().with(
        "components/web.toml",
        "name = \"web\"\ntype = \"container_image\"\ndrift_schedule = \"0 25 * * *\"\n[public]\nimage_url = \"x/y\"\ntag = \"1\"\n",
    );

    insta::assert_snapshot!(config.faults(), @r#"
    error: the hour `25` is not a number from 0 to 23
     --> components/web.toml:3:21
      |
    3 | drift_schedule = "0 25 * * *"
      |                     ^^
      |
      = help: write minute, hour, day of the month, month and day of the week, such as `*/15 8-18 * * mon-fri`
    "#);
}

#[test]
fn a_drift_check_more_than_once_an_hour_is_an_error() {
    let config = good().with(
        "components/web.toml",
        "name = \"web\"\ntype = \"container_image\"\ndrift_schedule = \"* * * * *\"\n[public]\nimage_url = \"x/y\"\ntag = \"1\"\n",
    );

    insta::assert_snapshot!(config.faults(), @r#"
    error: `drift_schedule` `* * * * *` is due more than once an hour
     --> components/web.toml:3:18
      |
    3 | drift_schedule = "* * * * *"
      |                  ^^^^^^^^^^^
      |
      = help: write one minute of the hour, such as `0 * * * *`
    "#);
}

#[test]
fn a_required_check_has_a_name_that_somebody_can_report_once() {
    let web = |checks: &str| {
        let head = "name = \"web\"\ntype = \"container_image\"\n[public]\nimage_url = \"x/y\"\ntag = \"1\"\n";
        let probe = "[[health.probes]]\ntype = \"tcp\"\nurl = \"a:1\"\n";
        good().with("components/web.toml", &format!("{head}[health]\nrequired_checks = [{checks}]\n{probe}"))
    };
    let numbered = |count: usize| (0..count).map(|number| format!("\"check-{number}\"")).collect::<Vec<_>>().join(", ");

    let found = web(r#""load test", "ci", "ci""#).faults().to_string();
    for text in [
        "error: `load test` is not a check name; expected 1 to 64 letters, digits, dots, dashes or underscores, starting \
         with a letter or digit\n --> components/web.toml:7:20\n",
        "error: required check `ci` is listed twice\n --> components/web.toml:7:39\n",
    ] {
        assert!(found.contains(text), "{found}");
    }
    assert_eq!(web(&numbered(10)).faults().to_string(), web("\"ci\"").faults().to_string());
    let many = web(&numbered(11)).faults().to_string();
    assert!(many.contains("error: the component has 11 required checks, and may have at most 10"), "{many}");
}

#[test]
fn a_component_has_a_limit_of_probes_and_a_probe_one_of_its_name() {
    let probe = |name: &str| format!("[[health.probes]]\ntype = \"tcp\"\nurl = \"a:1\"\nname = \"{name}\"\n");
    let head = "name = \"web\"\ntype = \"container_image\"\n[public]\nimage_url = \"x/y\"\ntag = \"1\"\n";
    let probes = |count: usize, name: &str| format!("{head}{}", probe(name).repeat(count));
    let faults = |text: String| good().with("components/web.toml", &text).faults().to_string();

    assert_eq!(faults(probes(20, &"n".repeat(64))), faults(probes(1, "n")));
    let many = faults(probes(21, "n"));
    assert!(many.contains("error: the component has 21 probes, and may have at most 20"), "{many}");
    assert!(many.contains("components/web.toml:86:1"), "{many}");
    let long = faults(probes(1, &"n".repeat(65)));
    assert!(long.contains("error: the name of the probe has 65 characters, and may have at most 64"), "{long}");
    assert!(long.contains("components/web.toml:9:8"), "{long}");
}

#[test]
fn a_command_of_a_probe_has_a_limit_and_names_a_program() {
    let head = "name = \"web\"\ntype = \"container_image\"\n[public]\nimage_url = \"x/y\"\ntag = \"1\"\n";
    let of = |command: &str| {
        let text = format!("{head}[[health.probes]]\ntype = \"exec\"\ncommand = {command}\n");
        good().with("components/web.toml", &text)
    };
    let faults = |command: &str| of(command).faults().to_string();

    let good_one = of("[\"check\", \"-q\"]").all();
    assert!(!good_one.iter().any(|one| one.message.contains("has no effect")), "{good_one}");
    assert_eq!(faults(&format!("[\"check\", \"{}\"]", "n".repeat(995))), faults("[\"check\", \"-q\"]"));
    let long = faults(&format!("[\"check\", \"{}\"]", "n".repeat(996)));
    assert!(long.contains("error: the command of the probe has 1001 characters, and may have at most 1000"), "{long}");
    assert!(long.contains("components/web.toml:8:11"), "{long}");
    let blank = faults("[\" \", \"x\"]");
    assert!(blank.contains("error: a probe of type `exec` needs `command`"), "{blank}");
    let number = faults("[\"check\", 7]");
    assert!(number.contains("components/web.toml:8:21") && number.contains("`command` holds"), "{number}");
    let unknown = faults("[\"check\", \"{{ .nuon.secrets.absent }}\"]");
    assert!(unknown.contains("there is no secret `absent`"), "{unknown}");
}

#[test]
fn a_probe_that_asks_nothing_is_an_error() {
    let config = good().with(
        "components/web.toml",
        "name = \"web\"\ntype = \"container_image\"\n[public]\nimage_url = \"x/y\"\ntag = \"1\"\n[health]\nstabilization_window = \"2h\"\n[[health.probes]]\ntype = \"tcp\"\n[[health.probes]]\ntype = \"exec\"\ncommand = []\n[[health.probes]]\ntype = \"grpc\"\n",
    );

    insta::assert_snapshot!(config.faults(), @r#"
    error: `stabilization_window` is 7200 seconds
     --> components/web.toml:7:24
      |
    7 | stabilization_window = "2h"
      |                        ^^^^ expected 1 to 3600 seconds

    error: a probe of type `tcp` needs `url`
     --> components/web.toml:8:1
      |
    8 | [[health.probes]]
      | ^^^^^^^^^^^^^^^^^
      |
      = help: add `url = "host:port"`

    error: a probe of type `exec` needs `command`
      --> components/web.toml:10:1
       |
    10 | [[health.probes]]
       | ^^^^^^^^^^^^^^^^^
       |
       = help: add `command = ["..."]`

    error: `type` is `grpc`
      --> components/web.toml:14:8
       |
    14 | type = "grpc"
       |        ^^^^^^ expected one of `http`, `tcp`, `exec`
    "#);
}

#[test]
fn a_default_without_a_toggle_has_no_effect() {
    let config = good().with(
        "components/web.toml",
        "name = \"web\"\ntype = \"container_image\"\ndefault_enabled = false\n[public]\nimage_url = \"x/y\"\ntag = \"1\"\n",
    );

    insta::assert_snapshot!(config.faults(), @r"
    warning: `default_enabled` has no effect: the component is not `toggleable`
     --> components/web.toml:3:1
      |
    3 | default_enabled = false
      | ^^^^^^^^^^^^^^^
      |
      = help: add `toggleable = true`, or remove `default_enabled`
    ");
}

#[test]
fn an_operation_has_one_role() {
    let config = good().with(
        "components/web.toml",
        "name = \"web\"\ntype = \"container_image\"\n[public]\nimage_url = \"x/y\"\ntag = \"1\"\n[[operation_roles]]\noperation = \"deploy\"\nrole = \"{{ .nuon.install.id }}-own\"\n[[operation_roles]]\noperation = \"deploy\"\nrole = \"{{ .nuon.install.id }}-own\"\n",
    );
    let role = "type = \"custom\"\nname = \"{{ .nuon.install.id }}-own\"\ndescription = \"d\"\n";
    let config = config.with("permissions/own.toml", role);

    insta::assert_snapshot!(config.faults(), @r#"
    error: operation `deploy` has two roles
      --> components/web.toml:10:13
       |
    10 | operation = "deploy"
       |             ^^^^^^^^
       |
       = help: keep one of them
    "#);
}
