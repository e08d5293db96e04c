//! Mistakes that people make with `freehold`: each message, its exit code, and the same as JSON. `docs/errors.md` shows the
//! tables; run with `FREEHOLD_UPDATE=1` to write them.

mod local_checks;
mod remote_answers;
mod repeats;
mod waits;

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use freehold_protocol::Digest;
use serde_json::Value;

use crate::support::loopback;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/errors.md");
const HEADER: &str = "| mistake | command | message | exit code |\n|---|---|---|---|\n";
const END: &str = "<!-- end of the table -->\n";

/// The beginning of the name of a bucket that a launch makes and removes; the rest is random.
const RANDOM_BUCKET: &str = "freehold-template-222222222222-";

/// Answers a request, given its method, path and body, with a status and a body.
type Answers = fn(&str, &str, &str) -> (u16, String);

/// What the command finds behind its addresses.
#[derive(Clone, Copy)]
enum Cloud {
    /// Neither credentials nor a region, and nothing that answers.
    None,
    /// AWS, which answers so.
    Aws(Answers),
    /// The API of a tenant, which answers so.
    Tenant(Answers),
    /// AWS and the API of a tenant, of which one answers for both.
    Both(Answers),
}

impl Cloud {
    /// Starts what answers; returns its address and the variables with which the command finds it.
    fn start(self) -> (String, Vec<(&'static str, String)>) {
        let (variables, answers): (&[&'static str], Answers) = match self {
            Self::None => return (String::new(), Vec::new()),
            Self::Aws(answers) => (&["AWS_ENDPOINT_URL"], answers),
            Self::Tenant(answers) => (&["FREEHOLD_API"], answers),
            Self::Both(answers) => (&["AWS_ENDPOINT_URL", "FREEHOLD_API"], answers),
        };
        let address = loopback::listen(answers);
        let credentials = local_checks::SIGNED_IN.iter().map(|(name, value)| (*name, (*value).to_owned()));
        let addresses = variables.iter().map(|variable| (*variable, address.clone()));
        let all = credentials.chain(addresses).collect();
        (address, all)
    }
}

/// A mistake: variables of the environment, the command, its exit code, and what the command finds.
struct Mistake {
    what: &'static str,
    environment: &'static [(&'static str, &'static str)],
    args: &'static [&'static str],
    code: i32,
    cloud: Cloud,
}

const fn mistake(what: &'static str, args: &'static [&'static str], code: i32) -> Mistake {
    Mistake { what, environment: &[], args, code, cloud: Cloud::None }
}

const fn with(
    what: &'static str,
    environment: &'static [(&'static str, &'static str)],
    args: &'static [&'static str],
    code: i32,
) -> Mistake {
    Mistake { what, environment, args, code, cloud: Cloud::None }
}

/// Returns a directory with all files that the commands name: `full`, which is not empty; `build-runner.toml`; `broken`, an
/// app with two mistakes; `grouped`, an app whose input is in a group that does not exist; `misnamed` and `mistyped`, apps of
/// which a component depends on one that does not exist, and has a number in place of a text; `with-runner`, an app with the
/// config of a runner beside its files; `web`, an app without mistakes; `functions`, which has zips of all functions; releases with them in `target/dist`, and with
/// checksums of other ones in `mixed`; and the templates `globex.yaml`, `initrode.yaml` with a parameter without a default,
/// `large.yaml`, which is too large for a request, and `changed.yaml`, which has a resource of somebody else.
fn place() -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = place.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write("full/mine.txt", "mine");
    write("build-runner.toml", "mine");
    write("broken/metadata.toml", "version = \"v2\"\nversoin = \"v2\"\n");
    write("broken/components/web.toml", "name = \"web\"\ntype = \"container_imag\"\n");
    write("globex.yaml", TEMPLATE);
    write("initrode.yaml", &TEMPLATE.replace("globex", "initrode").replace(", Default: \"true\"", ""));
    write("large.yaml", &format!("{}{}", TEMPLATE.replace("globex", "initech"), "# large\n".repeat(7_000)));
    write(
        "changed.yaml",
        &INSTALL_STACK.replacen("\nResources:\n", "\nResources:\n  Door: {Type: AWS::IAM::User}\n", 1),
    );
    for (path, text) in repeats::WEB {
        write(&format!("web/{path}"), text);
        write(&format!("grouped/{path}"), text);
        write(&format!("misnamed/{path}"), text);
        write(&format!("mistyped/{path}"), text);
        write(&format!("with-runner/{path}"), text);
    }
    write("grouped/inputs.toml", GROUPED);
    let front = |keys: &str, tag: &str| {
        format!(
            "name = \"front\"\ntype = \"container_image\"\n{keys}\n[public]\nimage_url = \"registry.example/front\"\ntag = {tag}\n"
        )
    };
    write("misnamed/components/front.toml", &front("dependencies = [\"sites\"]\n", "\"1.0\""));
    write("mistyped/components/front.toml", &front("", "1.0"));
    write("with-runner/runner.toml", RUNNER);
    let zip = "PK\u{3}\u{4}";
    let (digest, other) = (Digest::of(zip.as_bytes()).hex().to_owned(), "0".repeat(64));
    let mut sums = format!("{other}  arm64/freehold\n");
    let mut sums_of_others = sums.clone();
    let functions = Path::new(env!("CARGO_MANIFEST_DIR")).join("../functions/src/bin");
    for program in std::fs::read_dir(functions).unwrap() {
        let path = program.unwrap().path();
        let file = format!("functions/{}.zip", path.file_stem().unwrap().to_str().unwrap());
        for folder in ["", "target/dist/arm64/", "mixed/arm64/"] {
            write(&format!("{folder}{file}"), zip);
        }
        writeln!(sums, "{digest}  arm64/{file}").unwrap();
        writeln!(sums_of_others, "{}  arm64/{file}", if file == "functions/sweep.zip" { &other } else { &digest })
            .unwrap();
    }
    write("target/dist/SHA256SUMS", &sums);
    write("mixed/SHA256SUMS", &sums_of_others);
    place
}

const TEMPLATE: &str = r#"Metadata:
  Freehold: {Tenant: acme}
Parameters:
  EnableProvision: {Type: String, AllowedValues: ["true", "false"], Default: "true"}
Mappings:
  BoundTo:
    eu-west-1: {"222222222222": globex}
Resources: {}
"#;

const INSTALL_STACK: &str = include_str!("../../../../crates/app/golden/install.yaml");

const GROUPED: &str = r#"[[group]]
name = "sizes"

[[input]]
name = "days"
display_name = "Days"
description = "how long messages are kept"
group = "network"
default = "7"
"#;

const RUNNER: &str = r#"tenant = "acme"
install = "globex"
region = "eu-west-1"
orders_queue_url = "https://sqs.eu-west-1.amazonaws.com/111111111111/fh-acme--globex.fifo"
reports_queue_url = "https://sqs.eu-west-1.amazonaws.com/111111111111/fh-acme--reports"
tenant_key = "11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="
"#;

/// What a command did: its exit code, stdout, and stderr with a fixed address for that of the cloud.
struct Done {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

/// Returns the command of `mistake`, and the address of the cloud that it asks.
fn command(dir: &Path, mistake: &Mistake) -> (Command, String) {
    let (address, variables) = mistake.cloud.start();
    let mut command = Command::new(env!("CARGO_BIN_EXE_freehold"));
    command
        .args(mistake.args)
        .current_dir(dir)
        .env_clear()
        .env("AWS_EC2_METADATA_DISABLED", "true")
        .env("HOME", dir)
        .envs(variables)
        .envs(mistake.environment.iter().copied())
        .stdin(std::process::Stdio::null());
    (command, address)
}

fn run(dir: &Path, mistake: &Mistake, more: &[&str]) -> Done {
    let (mut command, address) = command(dir, mistake);
    let done = command.args(more).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let stderr = text(&done.stderr);
    let stderr = if address.is_empty() { stderr } else { stderr.replace(&address, "http://localhost:4566") };
    Done { code: done.status.code(), stdout: text(&done.stdout), stderr }
}

/// Returns the sentence of the error at the end of `stderr`: without the parser's usage.
fn sentence(stderr: &str) -> String {
    // Progress comes before it.
    let error = stderr.split_once("\nerror: ").map_or(stderr, |(_, error)| error);
    let first = error.split("\n\n").next().unwrap_or_default();
    let first = first.strip_prefix("error: ").unwrap_or(first);
    let tip = error.lines().find_map(|line| line.trim().strip_prefix("tip: ")).map(|tip| format!("; {tip}"));
    first.split_whitespace().collect::<Vec<_>>().join(" ") + &tip.unwrap_or_default()
}

/// Runs every mistake; returns the rows of the page's table.
fn rows(mistakes: &[Mistake]) -> String {
    let place = place();
    let mut table = HEADER.to_owned();
    for mistake in mistakes {
        let done = run(place.path(), mistake, &[]);
        let stderr = &done.stderr;
        assert_eq!(done.code, Some(mistake.code), "{:?}: {stderr}", mistake.args);
        let errors = stderr.lines().filter(|line| line.starts_with("error: ")).count();
        assert_eq!(errors, usize::from(mistake.code != 0), "{:?}: {stderr}", mistake.args);
        assert!(!stderr.contains("--tenant <NAME>") || stderr.contains("'--tenant <NAME>'"), "a phantom: {stderr}");
        // The directory of these commands has a random name.
        let of_place = place.path().file_name().unwrap().to_str().unwrap();
        let messages = finding(&done.stdout).into_iter().chain((mistake.code != 0).then(|| sentence(stderr)));
        let message = messages.collect::<Vec<_>>().join("; ").replace(of_place, "My Apps");
        table.push_str(&row(mistake, &message, &mistake.code.to_string()));
    }
    table
}

/// Returns a row of the page's tables. In a random name, the random part is replaced by one that is always the same.
fn row(mistake: &Mistake, message: &str, code: &str) -> String {
    let message = match message.split_once(RANDOM_BUCKET) {
        Some((head, rest)) => format!("{head}{RANDOM_BUCKET}0123456789abcdef{}", rest.get(16..).unwrap_or_default()),
        None => message.to_owned(),
    };
    let message = message.replace('|', "\\|").replace('<', "\\<");
    format!("| {} | `{}` | {message} | {code} |\n", mistake.what, typed(mistake))
}

/// Returns the first finding of `app check` with its place and its help, or else the text below its mark, if the output has
/// one.
fn finding(stdout: &str) -> Option<String> {
    let first = stdout.split("\n\n").next().unwrap_or_default();
    let message =
        first.lines().next().and_then(|line| line.strip_prefix("error: ").or(line.strip_prefix("warning: ")))?;
    let place = first.lines().find_map(|line| line.trim().strip_prefix("--> ")).unwrap_or_default();
    let mark = || first.lines().find_map(|line| Some(line.split_once("^ ")?.1));
    let help = first.lines().find_map(|line| line.trim().strip_prefix("= help: ")).or_else(mark);
    Some(format!("{place}: {message}{}", help.map(|help| format!("; {help}")).unwrap_or_default()))
}

/// Returns the command as a person types it in a shell.
fn typed(mistake: &Mistake) -> String {
    let quoted = |text: &str| if text.contains(' ') { format!("'{text}'") } else { text.to_owned() };
    let variables = mistake.environment.iter().filter(|(name, _)| !name.contains("_KEY"));
    let variables = variables.map(|(name, value)| format!("{name}={}", quoted(value)));
    let args = mistake.args.iter().map(|arg| quoted(arg));
    variables.chain(["freehold".to_owned()]).chain(args).collect::<Vec<_>>().join(" ")
}

/// Compares the part of the page below the mark that names `list` with `table`, or writes that part.
fn compare_with_page(list: &str, table: &str) {
    let begin = format!("<!-- the test cli/tests/command/mistakes/{list}.rs writes the table below -->\n");
    let page = std::fs::read_to_string(PAGE).unwrap();
    let (head, rest) = page.split_once(&begin).unwrap();
    let (_, tail) = rest.split_once(END).unwrap();
    let wanted = format!("{head}{begin}\n{table}\n{END}{tail}");
    if std::env::var_os("FREEHOLD_UPDATE").is_some() {
        std::fs::write(PAGE, &wanted).unwrap();
    } else {
        assert_eq!(page, wanted, "docs/errors.md is old; run with FREEHOLD_UPDATE=1");
    }
}

// One test writes all tables, so that two tests never write the page at the same time.
#[test]
fn every_mistake_has_its_message_and_exit_code_and_they_are_the_pages() {
    compare_with_page("local_checks", &rows(&local_checks::MISTAKES));
    compare_with_page("remote_answers", &rows(&remote_answers::MISTAKES));
    compare_with_page("repeats", &of_repeats());
    compare_with_page("waits", &waits::rows());
}

/// Runs every repeated command; returns the rows of the page's table.
fn of_repeats() -> String {
    let place = place();
    let mut table = HEADER.replace("mistake", "what is done again");
    for repeats::Repeat { command, begins } in &repeats::REPEATS {
        let Done { code, stdout, stderr } = run(place.path(), command, &[]);
        assert_eq!(code, Some(0), "{:?}: {stderr}", command.args);
        let line = stdout.lines().find(|line| line.starts_with(begins));
        let line = line.unwrap_or_else(|| panic!("{:?}: no line begins with `{begins}`: {stdout}", command.args));
        table.push_str(&row(command, &line.split_whitespace().collect::<Vec<_>>().join(" "), "0"));
    }
    table
}

#[test]
fn the_example_at_the_begin_of_the_page_is_one_of_the_messages() {
    let page = std::fs::read_to_string(PAGE).unwrap();

    let example = page.lines().find_map(|line| line.strip_prefix("error: ")).unwrap();

    assert!(page.contains(&format!("| {example} |")), "{example}");
}

#[test]
fn with_json_every_mistake_is_one_object_on_stderr() {
    let place = place();
    for mistake in local_checks::MISTAKES.iter().chain(&remote_answers::MISTAKES) {
        let Done { stdout, stderr, .. } = run(place.path(), mistake, &["--json"]);

        if mistake.code == 0 {
            assert!(stderr.is_empty() && serde_json::from_str::<Value>(&stdout).is_ok(), "{stderr}{stdout}");
            continue;
        }
        let last = stderr.lines().last().unwrap_or_default();
        let object: Value = serde_json::from_str(last).unwrap_or_else(|e| panic!("{:?}: {e}: {stderr}", mistake.args));
        assert_eq!(object["error"]["exit_code"], mistake.code, "{stderr}");
        assert!(object["error"]["code"].is_string(), "{stderr}");
        assert!(object["error"]["message"].as_str().is_some_and(|message| !message.is_empty()), "{stderr}");
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
        assert!(stdout.is_empty() || serde_json::from_str::<Value>(&stdout).is_ok(), "{stdout}");
    }
}

#[test]
fn an_error_is_wrapped_to_the_width_that_is_asked_for() {
    let place = place();
    let mistake = Mistake { environment: &[("COLUMNS", "60")], ..mistake("no tenant", &["install", "list"], 2) };

    let done = run(place.path(), &mistake, &[]);

    assert!(done.stderr.lines().all(|line| line.chars().count() <= 60), "{}", done.stderr);
    assert!(done.stderr.lines().count() > 1, "{}", done.stderr);
}
