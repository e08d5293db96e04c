//! Mistakes that people make with `freehold`: each message, its exit code, and the same as JSON. `docs/errors.md` shows the
//! tables; run with `FREEHOLD_UPDATE=1` to write them.

#![cfg(test)]

mod local_checks;
#[path = "../loopback/mod.rs"]
mod loopback;
mod remote_answers;

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use freehold_protocol::Digest;
use serde_json::Value;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/errors.md");
const HEADER: &str = "| mistake | command | message | exit code |\n|---|---|---|---|\n";
const END: &str = "<!-- end of the table -->\n";

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
/// app with two mistakes; `functions`, which has zips of all functions; releases with them in `target/dist`, and with
/// checksums of other ones in `mixed`; and the templates `globex.yaml` and `initrode.yaml`, of which the second has a
/// parameter without a default.
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
  EnableProvision: {Type: String, Default: "true"}
Mappings:
  BoundTo:
    eu-west-1: {"222222222222": globex}
Resources: {}
"#;

/// What a command did: its exit code, stdout, and stderr with a fixed address for that of the cloud.
struct Done {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

fn run(dir: &Path, mistake: &Mistake, more: &[&str]) -> Done {
    let (address, variables) = mistake.cloud.start();
    let done = Command::new(env!("CARGO_BIN_EXE_freehold"))
        .args(mistake.args)
        .args(more)
        .current_dir(dir)
        .env_clear()
        .env("AWS_EC2_METADATA_DISABLED", "true")
        .env("HOME", dir)
        .envs(variables)
        .envs(mistake.environment.iter().copied())
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
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
        assert_eq!(errors, 1, "{:?}: {stderr}", mistake.args);
        assert!(!stderr.contains("--tenant <NAME>") || stderr.contains("'--tenant <NAME>'"), "a phantom: {stderr}");
        let message = sentence(stderr).replace('|', "\\|").replace('<', "\\<");
        let _ = writeln!(table, "| {} | `{}` | {message} | {} |", mistake.what, typed(mistake), mistake.code);
    }
    table
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
    let begin = format!("<!-- the test cli/tests/mistakes/{list}.rs writes the table below -->\n");
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

// One test writes both tables, so that two tests never write the page at the same time.
#[test]
fn every_mistake_has_its_message_and_exit_code_and_they_are_the_pages() {
    compare_with_page("local_checks", &rows(&local_checks::MISTAKES));
    compare_with_page("remote_answers", &rows(&remote_answers::MISTAKES));
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
