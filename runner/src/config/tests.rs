//! Tests of reading a config file.

use freehold_protocol::order::Mode;

use super::*;

const GOOD: &str = r#"
tenant = "acme"
install = "globex-prod"
region = "eu-west-1"
orders_queue_url = "https://sqs.eu-central-1.amazonaws.com/111111111111/fh-acme--globex-prod.fifo"
reports_queue_url = "https://sqs.eu-central-1.amazonaws.com/111111111111/fh-acme--reports"
tenant_key = "11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="
state_dir = "/var/lib/freehold"
repository = "fh-acme/globex-prod"

[modes]
provision = "arn:aws:iam::222222222222:role/fh-acme--globex-prod--provision"
"#;

fn problem(text: &str) -> String {
    Config::parse(text, "runner.toml", Role::Install).unwrap_err().to_string()
}

#[test]
fn a_config_of_the_install_stack_is_read_with_its_defaults() {
    let config = Config::parse(GOOD, "runner.toml", Role::Install).unwrap();

    assert_eq!(config.slots, 4);
    assert_eq!(config.sandbox, SandboxKind::Bubblewrap);
    assert_eq!(config.drain_period(), Duration::from_secs(600));
    assert_eq!(config.queue_region(), "eu-central-1");
    assert!(config.modes.role(Mode::Provision).is_some());
    assert_eq!(config.modes.role(Mode::Deprovision), None);
    assert_eq!((config.bucket, config.accepted_contract), (None, None));
}

#[test]
fn a_queue_without_tls_is_on_this_machine() {
    for (host, known) in [
        ("127.0.0.1:4566", true),
        ("localhost", true),
        ("[::1]:4566", true),
        ("[::1]", true),
        ("localhost.evil.example", false),
        ("127.0.0.1@evil.example", false),
        ("localhost:80@evil.example", false),
        ("10.0.0.1:4566", false),
    ] {
        assert_eq!(is_loopback(host), known, "{host}");
    }
}

#[test]
fn the_contract_that_was_agreed_to_is_read() {
    let accepted = Digest::of(b"terms");
    let text = format!("accepted_contract = \"{accepted}\"{GOOD}");

    let config = Config::parse(&text, "runner.toml", Role::Install).unwrap();

    assert_eq!(config.accepted_contract, Some(accepted));
}

#[test]
fn every_wrong_value_names_the_file_the_key_and_the_way_out() {
    let cases = [
        ("install = \"globex-prod\"", "install = \"Globex\"", "`install`", "install stack's outputs"),
        ("install = \"globex-prod\"", "install = \"build\"", "`install`", "start `freehold-builder`"),
        ("region = \"eu-west-1\"", "region = \"\"", "`region`", "eu-west-1"),
        ("tenant_key = \"11qY", "tenant_key = \"", "`tenant_key`", "32 bytes"),
        ("state_dir = \"/var", "state_dir = \"var", "`state_dir`", "absolute path"),
        ("repository =", "slots = 0\nrepository =", "`slots`", "1 to 64"),
        ("[modes]", "[limits]\nprocesses = 1\n[modes]", "`limits`", "leave it out"),
        ("repository =", "accepted_contract = \"yes\"\nrepository =", "`accepted_contract`", "install stack's outputs"),
        ("reports_queue_url = \"https", "reports_queue_url = \"ftp", "`reports_queue_url`", "outputs"),
        ("orders_queue_url = \"https", "orders_queue_url = \"http", "`orders_queue_url`", "with `https://`"),
        ("[modes]", "[programs]\nhelm = \"v3\"\n[modes]", "`programs`", "`sha256:...`"),
        ("repository =", "inside_hosts = [\"https://x.y\"]\nrepository =", "`inside_hosts`", "`host:port`"),
    ];
    for (from, to, key, way_out) in cases {
        let message = problem(&GOOD.replace(from, to));

        assert!(message.contains("runner.toml") && message.contains(key) && message.contains(way_out), "{message}");
    }
}

#[test]
fn a_wrong_value_of_the_build_runner_is_written_again_by_the_command() {
    let good = GOOD.replace("install = \"globex-prod\"", "install = \"build\"");
    for (from, to) in
        [("tenant_key = \"11qY", "tenant_key = \""), ("orders_queue_url = \"https", "orders_queue_url = \"ftp")]
    {
        let error = Config::parse(&good.replace(from, to), "build-runner.toml", Role::Build).unwrap_err().to_string();

        assert!(error.ends_with("; write the file again with `freehold tenant build-runner --force`"), "{error}");
    }
}

#[test]
fn answers_of_the_install_stack_are_read_up_to_what_can_be_reported() {
    let with = |value: &str| format!("{GOOD}\n[inputs]\nInputDomain = \"{value}\"\n");

    let config = Config::parse(&with("globex.example"), "runner.toml", Role::Install).unwrap();

    assert_eq!(config.inputs, BTreeMap::from([("InputDomain".to_owned(), "globex.example".to_owned())]));
    assert!(problem(&with(&"x".repeat(MAX_ANSWERS_BYTES))).contains("key `inputs`: has 1 answers of"));
}

#[test]
fn an_unknown_or_missing_key_and_a_wrong_type_are_named() {
    for (from, to, word) in [
        ("repository =", "repositry =", "repositry"),
        ("region = \"eu-west-1\"", "", "region"),
        ("repository =", "slots = \"four\"\nrepository =", "slots"),
        ("repository =", "sandbox = \"docker\"\nrepository =", "sandbox"),
    ] {
        let message = problem(&GOOD.replace(from, to));

        assert!(message.contains("runner.toml") && message.contains(word), "{message}");
        assert!(
            message.contains("`freehold install runner-config globex-prod --out runner.toml --force`"),
            "{message}"
        );
    }
}

#[test]
fn a_missing_key_is_named_with_the_command_that_writes_the_file() {
    let install = problem("tenant = \"acme\"\n");
    let build = Config::parse("tenant = \"acme\"\n", "build-runner.toml", Role::Build).unwrap_err().to_string();

    assert_eq!(
        install,
        "config file `runner.toml` cannot be used: it has no key `install`; correct the file, or write it again with `freehold \
         install runner-config INSTALL --out runner.toml --force`"
    );
    assert_eq!(
        build,
        "config file `build-runner.toml` cannot be used: it has no key `install`; correct the file, or write it again with \
         `freehold tenant build-runner --out build-runner.toml --force`"
    );
    let broken = problem("tenant = \"acme\n");
    assert!(
        broken
            .ends_with("\ncorrect the file, or remove it and write it again with `freehold install runner-config INSTALL --out runner.toml`"),
        "{broken}"
    );
}

#[test]
fn a_file_of_something_else_is_not_to_be_replaced() {
    let read = |text: &str, role| Config::parse(text, "runner.toml", role).unwrap_err().to_string();

    assert_eq!(
        read("runner_type = \"aws\"\ntool_image = \"x\"\n", Role::Install),
        "config file `runner.toml` cannot be used: it describes the runner of an app, and is not the config of a runner; write \
         one with `freehold install runner-config INSTALL --out INSTALL-runner.toml`"
    );
    assert_eq!(
        read("", Role::Build),
        "config file `runner.toml` cannot be used: it is not the config of a runner: it names no tenant and no install; write \
         one with `freehold tenant build-runner --out build-runner.toml`"
    );
}

#[test]
fn a_machine_that_exists_only_for_work_is_the_build_runners() {
    let build = GOOD.replace("\"globex-prod\"", "\"build\"");
    let grouped = build.replace("repository =", "scaling_group = \"fh-acme--build-runner\"\nrepository =");
    let read = |text: &str| Config::parse(text, "build-runner.toml", Role::Build).map(|config| config.scaling_group);

    let group = |idle| ScalingGroup { name: "fh-acme--build-runner".into(), idle: Duration::from_secs(idle) };
    assert_eq!(read(&build).unwrap(), None);
    assert_eq!(read(&grouped).unwrap(), Some(group(600)));
    assert_eq!(read(&format!("idle_secs = 60\n{grouped}")).unwrap(), Some(group(60)));
    assert!(read(&format!("idle_secs = 0\n{grouped}")).unwrap_err().to_string().contains("`idle_secs`"));
    let install = problem(&GOOD.replace("repository =", "scaling_group = \"g\"\nrepository ="));
    assert!(install.contains("`scaling_group`") && install.contains("remove it"), "{install}");
}
