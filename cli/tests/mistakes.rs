//! Mistakes that people make with `freehold`, on a machine without a cloud: each message, its exit code, and the same as
//! JSON. `docs/errors.md` shows the table; run with `FREEHOLD_UPDATE=1` to write it.

#![cfg(test)]

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/errors.md");
const BEGIN: &str = "<!-- the test cli/tests/mistakes.rs writes the table below -->\n";
const END: &str = "<!-- end of the table -->\n";

/// A mistake: variables of the environment, the command, and its exit code.
struct Mistake {
    what: &'static str,
    environment: &'static [(&'static str, &'static str)],
    args: &'static [&'static str],
    code: i32,
}

const fn mistake(what: &'static str, args: &'static [&'static str], code: i32) -> Mistake {
    Mistake { what, environment: &[], args, code }
}

const fn with(
    what: &'static str,
    environment: &'static [(&'static str, &'static str)],
    args: &'static [&'static str],
    code: i32,
) -> Mistake {
    Mistake { what, environment, args, code }
}

const SIGNED_IN: [(&str, &str); 3] =
    [("AWS_ACCESS_KEY_ID", "111111111111"), ("AWS_SECRET_ACCESS_KEY", "local"), ("AWS_REGION", "eu-west-1")];

/// Nothing listens on port 1.
const DEAD_ENDPOINT: [(&str, &str); 2] = [("AWS_REGION", "eu-west-1"), ("AWS_ENDPOINT_URL", "http://127.0.0.1:1")];

const MISTAKES: [Mistake; 32] = [
    mistake("no tenant", &["install", "list"], 2),
    mistake("no tenant", &["tenant", "status"], 2),
    mistake("no region", &["install", "list", "--tenant", "acme"], 2),
    mistake("no credentials", &["install", "list", "--tenant", "acme", "--aws-region", "eu-west-1"], 6),
    with("nothing listens at AWS_ENDPOINT_URL", &DEAD_ENDPOINT, &["tenant", "status", "--name", "acme"], 5),
    with(
        "no address in AWS_ENDPOINT_URL",
        &[("AWS_REGION", "eu-west-1"), ("AWS_ENDPOINT_URL", "localhost")],
        &["doctor", "--tenant", "acme"],
        2,
    ),
    with("nothing listens at --api", &SIGNED_IN, &["install", "list", "--api", "http://127.0.0.1:1"], 5),
    mistake("bad tenant name", &["install", "list", "--tenant", "Acme"], 2),
    with("bad tenant name in the environment", &[("FREEHOLD_TENANT", "Acme Corp")], &["install", "list"], 2),
    mistake("unknown command", &["deplo", "globex"], 2),
    mistake("unknown option", &["deploy", "globex", "--al"], 2),
    mistake("unknown shell", &["completions", "tcsh"], 2),
    with("argument missing, with a tenant in the environment", &[("FREEHOLD_TENANT", "acme")], &["app", "check"], 2),
    mistake(
        "bad account",
        &["install", "create", "globex", "--app", "web", "--account", "2222", "--region", "eu-west-1"],
        2,
    ),
    mistake("bad install name", &["deploy", "Globex"], 2),
    mistake("bad workflow id", &["workflow", "watch", "wf_1"], 2),
    mistake("bad version", &["build", "web", "--version", "latest"], 2),
    mistake("input without a value", &["deploy", "globex", "--input", "replicas"], 2),
    mistake("lineage of an install without a component", &["lineage", "--install", "globex"], 2),
    mistake("lineage of nothing", &["lineage"], 2),
    mistake("lineage of a component without an install", &["lineage", "--component", "web"], 2),
    mistake("contract of a vendor, asked by a customer", &["contract", "diff", "globex"], 2),
    mistake(
        "no such contract file",
        &["contract", "verify", "web.json", "--root-key", "11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="],
        2,
    ),
    mistake("app check of nothing", &["app", "check", "no-such-app"], 2),
    mistake("app check of a file", &["app", "check", "broken/metadata.toml"], 2),
    mistake("app check of a faulty app", &["app", "check", "broken"], 2),
    mistake("app init into a full directory", &["app", "init", "full"], 4),
    mistake("app init with a bad name", &["app", "init", "Web Shop"], 2),
    mistake("no such schema", &["app", "schema", "helm_chrt"], 2),
    mistake("no folder with functions", &["tenant", "deploy", "--name", "acme", "--functions", "lambda"], 2),
    mistake("a folder without functions", &["tenant", "deploy", "--name", "acme", "--functions", "full"], 2),
    mistake("no such template", &["install", "verify-template", "globex.yaml"], 2),
];

/// Returns a directory with `full`, which is not empty, and `broken`, an app with two mistakes.
fn place() -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = place.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write("full/mine.txt", "mine");
    write("broken/metadata.toml", "version = \"v2\"\nversoin = \"v2\"\n");
    write("broken/components/web.toml", "name = \"web\"\ntype = \"container_imag\"\n");
    place
}

fn run(dir: &Path, mistake: &Mistake, more: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_freehold"))
        .args(mistake.args)
        .args(more)
        .current_dir(dir)
        .env_clear()
        .env("AWS_EC2_METADATA_DISABLED", "true")
        .env("HOME", dir)
        .envs(mistake.environment.iter().copied())
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns the sentence of an error: without the parser's usage.
fn sentence(error: &str) -> String {
    let first = error.split("\n\n").next().unwrap_or_default();
    let tip = error.lines().find_map(|line| line.trim().strip_prefix("tip: ")).map(|tip| format!("; {tip}"));
    let words = first.split_whitespace().collect::<Vec<_>>().join(" ");
    words.strip_prefix("error: ").unwrap_or(&words).to_owned() + &tip.unwrap_or_default()
}

#[test]
fn every_mistake_has_its_message_and_exit_code_and_they_are_the_pages() {
    let place = place();
    let mut table = "| mistake | command | message | exit code |\n|---|---|---|---|\n".to_owned();
    for mistake in &MISTAKES {
        let done = run(place.path(), mistake, &[]);
        let stderr = text(&done.stderr);
        assert_eq!(done.status.code(), Some(mistake.code), "{:?}: {stderr}", mistake.args);
        assert!(stderr.starts_with("error: "), "{:?}: {stderr}", mistake.args);
        assert!(!stderr.contains("--tenant <NAME>") || stderr.contains("'--tenant <NAME>'"), "a phantom: {stderr}");
        let variables: String = mistake.environment.iter().filter(|(name, _)| !name.contains("_KEY")).fold(
            String::new(),
            |mut all, (name, value)| {
                let quote = if value.contains(' ') { "'" } else { "" };
                let _ = write!(all, "{name}={quote}{value}{quote} ");
                all
            },
        );
        let args =
            mistake.args.iter().map(|arg| if arg.contains(' ') { format!("'{arg}'") } else { (*arg).to_owned() });
        let command = format!("{variables}freehold {}", args.collect::<Vec<_>>().join(" "));
        let message = sentence(&stderr).replace('|', "\\|").replace('<', "\\<");
        let _ = writeln!(table, "| {} | `{command}` | {message} | {} |", mistake.what, mistake.code);
    }

    let page = std::fs::read_to_string(PAGE).unwrap();
    let (head, rest) = page.split_once(BEGIN).unwrap();
    let (_, tail) = rest.split_once(END).unwrap();
    let wanted = format!("{head}{BEGIN}\n{table}\n{END}{tail}");
    if std::env::var_os("FREEHOLD_UPDATE").is_some() {
        std::fs::write(PAGE, &wanted).unwrap();
    } else {
        assert_eq!(page, wanted, "docs/errors.md is old; run with FREEHOLD_UPDATE=1");
    }
}

#[test]
fn with_json_every_mistake_is_one_object_on_stderr() {
    let place = place();
    for mistake in &MISTAKES {
        let done = run(place.path(), mistake, &["--json"]);

        let stderr = text(&done.stderr);
        let last = stderr.lines().last().unwrap_or_default();
        let object: Value = serde_json::from_str(last).unwrap_or_else(|e| panic!("{:?}: {e}: {stderr}", mistake.args));
        assert_eq!(object["error"]["exit_code"], mistake.code, "{stderr}");
        assert!(object["error"]["code"].is_string(), "{stderr}");
        assert!(object["error"]["message"].as_str().is_some_and(|message| !message.is_empty()), "{stderr}");
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
        let result = text(&done.stdout);
        assert!(result.is_empty() || serde_json::from_str::<Value>(&result).is_ok(), "{result}");
    }
}

#[test]
fn an_error_is_wrapped_to_the_width_that_is_asked_for() {
    let place = place();
    let mistake = Mistake { environment: &[("COLUMNS", "60")], ..mistake("no tenant", &["install", "list"], 2) };

    let done = run(place.path(), &mistake, &[]);

    assert!(text(&done.stderr).lines().all(|line| line.chars().count() <= 60), "{}", text(&done.stderr));
    assert!(text(&done.stderr).lines().count() > 1, "{}", text(&done.stderr));
}
