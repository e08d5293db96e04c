//! Mistakes that people make with `freehold-runner`: each message and its exit code. `docs/errors.md` shows the table; run
//! with `FREEHOLD_UPDATE=1` to write it.

#![cfg(test)]

#[path = "../../cli/tests/command/support/loopback.rs"]
mod loopback;

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/errors.md");
const BEGIN: &str = "<!-- the test runner/tests/mistakes.rs writes the table below -->\n";
const END: &str = "<!-- end of the table -->\n";
const HEADER: &str = "| mistake | command | message | exit code |\n|---|---|---|---|\n";

const CONFIG: &str = r#"tenant = "acme"
install = "globex"
region = "eu-west-1"
orders_queue_url = "https://sqs.eu-west-1.amazonaws.com/111111111111/fh-acme--globex.fifo"
reports_queue_url = "https://sqs.eu-west-1.amazonaws.com/111111111111/fh-acme--reports"
tenant_key = "11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="
state_dir = "STATE_DIR"
repository = "fh-acme/globex"
"#;

/// Answers a request to AWS, given its method, path and body, with a status and a body.
type Answers = fn(&str, &str, &str) -> (u16, String);

/// A mistake: the command, its exit code, and how AWS answers.
struct Mistake {
    what: &'static str,
    args: &'static [&'static str],
    code: i32,
    aws: Answers,
}

const MISTAKES: [Mistake; 6] = [
    Mistake { what: "no config", args: &["run"], code: 2, aws: forbidding },
    Mistake {
        what: "a config that does not exist",
        args: &["run", "--config", "runer.toml"],
        code: 2,
        aws: forbidding,
    },
    Mistake {
        what: "a config without a field",
        args: &["run", "--config", "without-install.toml"],
        code: 2,
        aws: forbidding,
    },
    Mistake {
        what: "the config of a build runner",
        args: &["run", "--config", "build-runner.toml"],
        code: 2,
        aws: forbidding,
    },
    Mistake {
        what: "doctor while `EnableRunner` of the stack is `false`, outside EC2",
        args: &["doctor", "--config", "runner.toml"],
        code: 1,
        aws: forbidding,
    },
    Mistake {
        what: "doctor while `EnableRunner` of the stack is `false`, with a session that is left",
        args: &["doctor", "--config", "runner.toml"],
        code: 0,
        aws: with_kill_switch,
    },
];

const SECOND: Mistake = Mistake {
    what: "a second runner in the state directory of another one",
    args: &["run", "--config", "runner.toml"],
    code: 1,
    aws: forbidding,
};

/// Answers as AWS does to a principal that may do nothing.
fn forbidding(_: &str, _: &str, _: &str) -> (u16, String) {
    let error = "<Error><Type>Sender</Type><Code>AccessDenied</Code><Message>not authorized</Message></Error>";
    (403, format!("<ErrorResponse>{error}</ErrorResponse>"))
}

/// Answers as AWS does to the runner's role while the install stack has `EnableRunner=false`.
fn with_kill_switch(method: &str, path: &str, body: &str) -> (u16, String) {
    if body.contains("GetCallerIdentity") {
        let arn = "arn:aws:sts::222222222222:assumed-role/fh-acme--globex--runner/i-1";
        let result = format!("<Arn>{arn}</Arn><Account>222222222222</Account>");
        return (
            200,
            format!(
                "<GetCallerIdentityResponse><GetCallerIdentityResult>{result}</GetCallerIdentityResult></GetCallerIdentityResponse>"
            ),
        );
    }
    if !body.contains("DescribeStacks") {
        return forbidding(method, path, body);
    }
    let parameter = "<member><ParameterKey>EnableRunner</ParameterKey><ParameterValue>false</ParameterValue></member>";
    let stack = format!(
        "<StackName>freehold-acme--globex</StackName><StackStatus>UPDATE_COMPLETE</StackStatus>\
         <CreationTime>2026-01-01T00:00:00Z</CreationTime><Parameters>{parameter}</Parameters>"
    );
    let result = format!("<DescribeStacksResult><Stacks><member>{stack}</member></Stacks></DescribeStacksResult>");
    (200, format!("<DescribeStacksResponse>{result}</DescribeStacksResponse>"))
}

/// Returns a directory with all configs that the commands name.
fn place() -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| std::fs::write(place.path().join(path), text).unwrap();
    let config = CONFIG.replace("STATE_DIR", place.path().join("state").to_str().unwrap());
    write("runner.toml", &config);
    write("without-install.toml", &config.replace("install = \"globex\"\n", ""));
    write("build-runner.toml", &config.replace("install = \"globex\"", "install = \"build\""));
    place
}

fn command(dir: &Path, mistake: &Mistake) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_freehold-runner"));
    command.args(mistake.args).current_dir(dir).env_clear().stdin(Stdio::null()).envs([
        ("AWS_ENDPOINT_URL", loopback::listen(mistake.aws).as_str()),
        ("AWS_REGION", "eu-west-1"),
        ("AWS_ACCESS_KEY_ID", "222222222222"),
        ("AWS_SECRET_ACCESS_KEY", "local"),
        ("AWS_EC2_METADATA_DISABLED", "true"),
        ("HOME", "/nowhere"),
        ("PATH", "/usr/bin:/bin"),
    ]);
    command
}

/// A runner that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a runner and waits until it works.
fn started(dir: &Path) -> Running {
    let mut running = Running(command(dir, &SECOND).stderr(Stdio::piped()).spawn().unwrap());
    let mut lines = BufReader::new(running.0.stderr.take().unwrap()).lines().map(Result::unwrap);
    let up = lines.find(|line| line.contains("is up"));
    // The runner continues to log, and would end if nobody read its output.
    std::thread::spawn(move || lines.for_each(drop));
    assert!(up.is_some(), "the runner ended");
    running
}

/// Returns the row of a mistake: the error, or the last finding of the doctor.
fn row(dir: &Path, mistake: &Mistake) -> String {
    let done = command(dir, mistake).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (text(&done.stdout), text(&done.stderr));
    assert_eq!(done.status.code(), Some(mistake.code), "{:?}: {stdout}{stderr}", mistake.args);
    let message = match stderr.split("error: ").nth(1) {
        Some(error) => error.split("\n\n").next().unwrap_or_default(),
        None => stdout.lines().last().unwrap_or_default(),
    };
    let message = message.replace(dir.to_str().unwrap(), "/var/lib/freehold");
    let message = message.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|").replace('<', "\\<");
    format!("| {} | `freehold-runner {}` | {message} | {} |\n", mistake.what, mistake.args.join(" "), mistake.code)
}

#[test]
fn every_mistake_has_its_message_and_exit_code_and_they_are_the_pages() {
    let place = place();
    let mut table: String = MISTAKES.iter().map(|mistake| row(place.path(), mistake)).collect();
    let first = started(place.path());
    table.push_str(&row(place.path(), &SECOND));
    drop(first);

    let page = std::fs::read_to_string(PAGE).unwrap();
    let (head, rest) = page.split_once(BEGIN).unwrap();
    let (_, tail) = rest.split_once(END).unwrap();
    let wanted = format!("{head}{BEGIN}\n{HEADER}{table}\n{END}{tail}");
    if std::env::var_os("FREEHOLD_UPDATE").is_some() {
        std::fs::write(PAGE, &wanted).unwrap();
    } else {
        assert_eq!(page, wanted, "docs/errors.md is old; run with FREEHOLD_UPDATE=1");
    }
}
