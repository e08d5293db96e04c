//! What a person sees on terminals of 60 and of 200 columns: the real binary on a pseudo-terminal. The pages in
//! `tests/command/golden` are what it shows; run with `FREEHOLD_UPDATE=1` to write them.

use std::fs::File;
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use serde_json::{Value, json};

use crate::support::screen::Screen;
use crate::support::{loopback, tenant_api};

const DIGEST: &str = "sha256:05b3abf2579a5eb66403cd78be557fd860633a1fe2103c7642030defe32c657f";
const AT: u64 = 1_795_253_621_000;

const COMMANDS: [&[&str]; 10] = [
    &["install", "list"],
    &["install", "show", "globex"],
    &["workflow", "list", "globex"],
    &["workflow", "show", "wf_00000000000000000001"],
    &["job", "show", "job_00000000000000000001"],
    &["install", "show", "umbrella"],
    &["deploy", "--help"],
    &["doctor", "--tenant", "acme"],
    &["tenant", "status", "--name", "acme"],
    &["app", "check", "broken"],
];

fn answers() -> Vec<(&'static str, Value)> {
    let reason = "2 of 20 checks fail; `permissions`: role `fh-acme--globex--provision` may not `sqs:CreateQueue` on \
                  `globex-topic`; fix: allow it in the app's policy";
    let workflow = json!({
        "workflow": "wf_00000000000000000001", "install": "globex", "kind": "deploy-components", "state": "failed",
        "reason": format!("`preflight:install` failed: {reason}"), "created_at": AT, "ended_at": AT + 12_000, "version": DIGEST,
        "nodes": [
            { "name": "preflight:install", "state": "failed", "job": "job_00000000000000000001", "reason": reason },
            { "name": "queue", "state": "skipped", "dependencies": ["preflight:install"], "reason": "a node before it failed" },
        ],
    });
    let run = json!({
        "workflow": "wf_00000000000000000002", "install": "globex", "kind": "run-action", "state": "succeeded",
        "action": "backup", "trigger": "schedule", "created_at": AT + 60_000, "ended_at": AT + 61_000, "version": DIGEST,
    });
    let globex = json!({
        "install": "globex", "app": "web-shop", "account": "222222222222", "region": "eu-west-1", "state": "ready",
        "version": DIGEST, "inputs": { "retention_days": 14 },
        "runner": {
            "key": "7300c0ae1429cd153252736a781b78f4", "version": "0.1.0", "slots": 4, "host": "i-0123456789abcdef0",
            "since": AT, "last_contact": AT + 60_000,
        },
        "components": [
            { "component": "queue", "version": DIGEST, "artifact": DIGEST, "at": AT, "job": "job_00000000000000000002" },
            {
                "component": "table", "version": DIGEST, "artifact": DIGEST, "at": AT, "job": "job_00000000000000000003",
                "partial": {
                    "since": AT + 30_000, "workflow": "wf_00000000000000000001", "job": "job_00000000000000000001",
                },
            },
        ],
    });
    let initech = json!({
        "install": "initech", "app": "web-shop", "account": "333333333333", "region": "eu-central-1",
        "state": "waiting for runner",
    });
    let job = json!({
        "job": "job_00000000000000000001", "install": "globex", "workflow": "wf_00000000000000000001",
        "node": "preflight:install", "mode": "provision", "state": "failed", "reason": reason, "created_at": AT,
        "history": [
            { "at": AT, "what": "dispatch", "from": "queued", "to": "queued" },
            { "at": AT + 9000, "what": "finished", "from": "running", "to": "failed", "reason": reason },
        ],
    });
    vec![
        (
            "/v1/tenant",
            json!({
                "tenant": "acme", "account": "111111111111", "region": "eu-west-1", "reports_queue_url": "",
                "tenant_key": "11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=",
            }),
        ),
        ("/v1/installs", json!({ "items": [globex.clone(), initech] })),
        ("/v1/installs/globex", globex),
        ("/v1/installs/globex/workflows", json!({ "items": [run, workflow.clone()] })),
        ("/v1/workflows/wf_00000000000000000001", workflow),
        ("/v1/jobs/job_00000000000000000001", job),
    ]
}

/// Starts the tenant's API and what AWS answers about the tenant at one address; returns it.
fn cloud() -> String {
    let answers = answers();
    loopback::listen(move |_, path, body| {
        let found = answers.iter().find(|(known, _)| *known == path).map(|(_, body)| body.to_string());
        // The tenant has no second reports queue.
        if body.contains("--reports--") {
            return (400, json!({ "__type": "AWS.SimpleQueueService.NonExistentQueue" }).to_string());
        }
        found.or_else(|| aws(path, body)).map_or_else(|| tenant_api::absent(path), |body| (200, body))
    })
}

/// Answers as STS, CloudFormation, Lambda and SQS do about a tenant with one message in its dead-letter queue.
fn aws(path: &str, body: &str) -> Option<String> {
    if body.starts_with("Action=GetCallerIdentity") {
        let identity = "<Arn>arn:aws:iam::111111111111:user/me</Arn><Account>111111111111</Account>";
        let result = format!("<GetCallerIdentityResult>{identity}</GetCallerIdentityResult>");
        return Some(format!("<GetCallerIdentityResponse>{result}</GetCallerIdentityResponse>"));
    }
    if body.starts_with("Action=DescribeStacks") {
        let output = |key: &str, value: &str| {
            format!("<member><OutputKey>{key}</OutputKey><OutputValue>{value}</OutputValue></member>")
        };
        let outputs = output("ApiUrl", "https://a1b2c3d4e5.execute-api.eu-west-1.amazonaws.com")
            + &output("BuildRoleArn", "arn:aws:iam::111111111111:role/fh-acme--build-runner");
        let stack = format!(
            "<StackName>freehold-acme</StackName><StackStatus>UPDATE_COMPLETE</StackStatus>\
             <CreationTime>2026-11-22T10:00:00Z</CreationTime><Outputs>{outputs}</Outputs>"
        );
        let result = format!("<DescribeStacksResult><Stacks><member>{stack}</member></Stacks></DescribeStacksResult>");
        return Some(format!("<DescribeStacksResponse>{result}</DescribeStacksResponse>"));
    }
    if path.starts_with("/2015-03-31/functions/") {
        let function = json!({
            "State": "Active", "Architectures": ["arm64"], "CodeSize": 2_600_000,
            "CodeSha256": "uU0nuZNNPgilLlLX2n2r+sSE7+N6U4DukIj3rOLvzek=", "LastModified": "2026-11-22T10:00:00.000+0000",
        });
        return Some(function.to_string());
    }
    let asked: Value = serde_json::from_str(body).ok()?;
    if let Some(name) = asked["QueueName"].as_str() {
        return Some(json!({ "QueueUrl": format!("http://localhost/111111111111/{name}") }).to_string());
    }
    let waiting = if asked["QueueUrl"].as_str()?.ends_with("--dead") { "1" } else { "0" };
    let counts = json!({ "ApproximateNumberOfMessages": waiting, "ApproximateNumberOfMessagesNotVisible": "0" });
    Some(json!({ "Attributes": counts }).to_string())
}

/// Returns a directory with `broken`, an app with two mistakes, and with a `git` of a fixed version.
fn place() -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(place.path().join("broken/components")).unwrap();
    std::fs::write(place.path().join("broken/metadata.toml"), "version = \"v2\"\nversoin = \"v2\"\n").unwrap();
    let web = "name = \"web\"\ntype = \"container_imag\"\n";
    std::fs::write(place.path().join("broken/components/web.toml"), web).unwrap();
    let git = place.path().join("git");
    std::fs::write(&git, "#!/bin/sh\necho git version 2.39.5\n").unwrap();
    std::fs::set_permissions(&git, std::fs::Permissions::from_mode(0o755)).unwrap();
    place
}

/// Returns what a command prints that waits, where stderr is not a terminal: the width is that of `COLUMNS`.
fn in_a_log(api: &str, columns: u16, args: &[&str]) -> String {
    let mut command = tenant_api::freehold(api, Path::new("/"), args);
    let done = command.env("COLUMNS", columns.to_string()).output().unwrap();
    String::from_utf8(done.stdout).unwrap() + &String::from_utf8(done.stderr).unwrap()
}

/// Runs `freehold` on a terminal of `columns`; returns all that appears there.
fn on_a_terminal(api: &str, columns: u16, args: &[&str], environment: &[(&str, &str)]) -> String {
    let place = place();
    let (mut child, mut terminal) = start_on_a_terminal(api, place.path(), columns, args, environment);
    let mut seen = Vec::new();
    // A terminal that nobody has open any more reads as an error.
    let _ = terminal.read_to_end(&mut seen);
    child.wait().unwrap();
    String::from_utf8(seen).unwrap().replace("\r\n", "\n")
}

/// Starts `freehold` on a terminal of `columns`; returns the side of the terminal on which its output can be read.
fn start_on_a_terminal(
    api: &str,
    place: &Path,
    columns: u16,
    args: &[&str],
    environment: &[(&str, &str)],
) -> (Child, File) {
    let main = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&main).unwrap();
    unlockpt(&main).unwrap();
    let name = ptsname(&main, Vec::new()).unwrap();
    let side: OwnedFd = open(name.as_c_str(), OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
    tcsetwinsize(&main, Winsize { ws_row: 40, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    let mut command = tenant_api::freehold(api, place, args);
    command
        .env("PATH", place)
        .env("AWS_ENDPOINT_URL", api)
        .env("TERM", "xterm-256color")
        .envs(environment.iter().copied());
    command.stdout(side.try_clone().unwrap()).stderr(side);
    // The command has its copies of the terminal only until here, so that the last one is closed when the program ends.
    (command.spawn().unwrap(), File::from(main))
}

/// Returns `text` without colours and other marks of clap and of tables.
fn without_escapes(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        plain.push_str(before);
        rest = after.split_once(|c: char| c.is_ascii_alphabetic()).map_or("", |(_, after)| after);
    }
    plain + rest
}

fn session(columns: u16, environment: &[(&str, &str)]) -> String {
    let api = cloud();
    let page = |args: &[&str], output: String| format!("$ freehold {}\n{output}", args.join(" "));
    let mut pages = COMMANDS.map(|args| page(args, on_a_terminal(&api, columns, args, environment))).to_vec();
    let watch = ["workflow", "watch", "wf_00000000000000000001"];
    pages.push(page(&watch, in_a_log(&api, columns, &watch)));
    // Every free port has five digits.
    let port = api.rsplit(':').next().unwrap_or_default();
    pages.join("\n").replace(port, "50000")
}

/// Returns the number of characters of a line without its digests and addresses, which are not broken so that they can be
/// copied.
fn breakable(line: &str) -> usize {
    let lengths = line.split_whitespace().map(|word| word.chars().count());
    line.chars().count() - lengths.filter(|length| *length > 40).sum::<usize>()
}

#[test]
fn a_long_word_excuses_itself_and_not_its_line() {
    let sentence = "a word ".repeat(9);

    assert_eq!(breakable(DIGEST), 0);
    assert_eq!(breakable(&format!("ARTIFACT  {DIGEST}")), 10);
    assert_eq!(breakable(&format!("{sentence}{DIGEST}")), 63);
    assert_eq!(breakable("two words"), 9);
}

#[test]
fn what_is_shown_fits_terminals_of_60_and_of_200_columns() {
    for columns in [60, 200] {
        let output = without_escapes(&session(columns, &[]));

        // The lines of an excerpt of a config stand below each other, so they are not broken.
        let excerpt =
            |line: &str| line.trim_start_matches(|c: char| c == ' ' || c.is_ascii_digit()).starts_with(['|', '=']);
        let too_long = |line: &&str| breakable(line) > usize::from(columns) && !excerpt(line);
        let too_long = output.lines().find(too_long);
        assert_eq!(too_long, None);
        compare(&format!("terminal-{columns}.txt"), &output);
    }
}

/// Compares a page with that in `tests/command/golden`.
fn compare(page: &str, output: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/command/golden").join(page);
    if std::env::var_os("FREEHOLD_UPDATE").is_some() {
        std::fs::write(&path, output).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(output, golden, "{} is old; run with FREEHOLD_UPDATE=1", path.display());
}

/// Returns a workflow whose third node waits for an approval, or that has succeeded.
fn watched(has_ended: bool, reason: &str) -> Value {
    let (state, of_queue, of_check, reason) = if has_ended {
        ("succeeded", "succeeded", "succeeded", "")
    } else {
        ("running", "waiting_for_approval", "waiting", reason)
    };
    let job = |number: u32| format!("job_0000000000000000000{number}");
    json!({
        "workflow": "wf_00000000000000000003", "install": "globex", "kind": "deploy-components", "state": state,
        "created_at": AT, "ended_at": has_ended.then_some(AT + 12_000), "version": DIGEST,
        "nodes": [
            { "name": "preflight:install", "state": "succeeded", "job": job(1) },
            { "name": "naming", "state": "succeeded", "job": job(2) },
            { "name": "queue", "state": of_queue, "job": job(3), "reason": reason },
            { "name": "action:health-check", "state": of_check },
        ],
    })
}

/// Returns whether a screen shows the sentence about the approval and the line of each node.
fn is_whole(screen: &str) -> bool {
    screen.contains("` waits:") && screen.contains("health-check  waiting") && !screen.contains(": succeeded")
}

/// Returns all that appears on a terminal of `columns` while `freehold` watches a workflow that waits for an approval,
/// with this `reason`, and that succeeds after a person has seen the whole page. The sign of a spinner is `*`.
fn watch(columns: u16, reason: &'static str) -> String {
    let was_seen = Arc::new(AtomicBool::new(false));
    let has_ended = Arc::clone(&was_seen);
    let api = tenant_api::serve(move |path, _| {
        (path == "/v1/workflows/wf_00000000000000000003").then(|| watched(has_ended.load(Ordering::Relaxed), reason))
    });
    let args = ["workflow", "watch", "wf_00000000000000000003"];
    let (mut child, mut terminal) = start_on_a_terminal(&api, Path::new("/"), columns, &args, &[]);
    let (mut output, mut part) = (Vec::new(), [0; 4096]);
    // A terminal that nobody has open any more reads as an error.
    while let Ok(count @ 1..) = terminal.read(&mut part) {
        output.extend_from_slice(&part[..count]);
        let until_now = String::from_utf8_lossy(&output);
        if !was_seen.load(Ordering::Relaxed) && Screen::new(columns).show_until(&until_now, is_whole).is_some() {
            was_seen.store(true, Ordering::Relaxed);
        }
    }
    assert!(child.wait().unwrap().success());
    String::from_utf8(output).unwrap().replace(|sign: char| ('\u{2801}'..='\u{28ff}').contains(&sign), "*")
}

/// Returns what is on a terminal of `columns` while `freehold` waits, and at its end. In between, the terminal shows
/// what a person has `typed`.
fn pages(output: &str, columns: u16, typed: &str) -> (String, String) {
    let mut screen = Screen::new(columns);
    let rest = screen.show_until(output, is_whole).unwrap();
    let live = screen.text();
    screen.show(typed);
    screen.show(rest);
    (live, screen.text())
}

#[test]
fn a_watch_redraws_its_lines_and_leaves_the_last_states_in_their_order() {
    for columns in [60, 200] {
        let output = watch(columns, "its plan changes 2 objects; the customer approves it until 2026-11-30T18:00:00Z");

        let (live, end) = pages(&output, columns, "");

        compare(&format!("watch-{columns}.txt"), &format!("while it waits:\n{live}\n\nat its end:\n{end}\n"));
        assert_eq!(pages(&output, columns, "^C"), (live, end), "a typed key left a row");
    }
}

#[test]
fn a_watch_redraws_rows_of_wide_characters() {
    let reason = "a変更変更変更変更変更変更変更変更変更変更変更変更変更変更変更変更変更変更変更変更";
    let output = watch(60, reason);

    let (live, end) = pages(&output, 60, "^C");

    let row_of_node = "* queue                waiting_for_approval\n  a変更変更変更変更変更変更変更変更変更変更変更変更変更変更\n変更";
    assert!(live.contains(row_of_node), "{live}");
    let without_reason = include_str!("golden/watch-60.txt").split_once("at its end:\n").unwrap().1;
    assert_eq!(end, without_reason.trim_end());
}

#[test]
fn colours_are_on_a_terminal_and_not_with_no_color() {
    let api = tenant_api::of_answers(answers());
    for (args, columns) in [(&COMMANDS[3], 60), (&COMMANDS[3], 200), (&COMMANDS[5], 60), (&COMMANDS[5], 200)] {
        let coloured = on_a_terminal(&api, columns, args, &[]);
        let plain = on_a_terminal(&api, columns, args, &[("NO_COLOR", "1")]);

        assert!(coloured.contains("\u{1b}["), "{coloured}");
        assert!(!plain.contains('\u{1b}'), "{plain}");
        assert_eq!(without_escapes(&coloured), plain);
    }
}
