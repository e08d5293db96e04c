//! What a person sees on terminals of 60 and of 200 columns: the real binary on a pseudo-terminal. The pages in
//! `tests/golden` are what it shows; run with `FREEHOLD_UPDATE=1` to write them.

#![cfg(test)]
#![cfg(target_os = "linux")]

mod tenant_api;

use std::fs::File;
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use serde_json::{Value, json};

const DIGEST: &str = "sha256:05b3abf2579a5eb66403cd78be557fd860633a1fe2103c7642030defe32c657f";
const AT: u64 = 1_795_253_621_000;

const COMMANDS: [&[&str]; 7] = [
    &["install", "list"],
    &["install", "show", "globex"],
    &["workflow", "list", "globex"],
    &["workflow", "show", "wf_00000000000000000001"],
    &["job", "show", "job_00000000000000000001"],
    &["install", "show", "umbrella"],
    &["deploy", "--help"],
];

fn answers() -> Vec<(&'static str, Value)> {
    let reason = "2 of 20 checks fail; `permissions`: role `globex-provision` may not `sqs:CreateQueue` on `globex-topic`; \
                  fix: allow it in the app's policy";
    let workflow = json!({
        "workflow": "wf_00000000000000000001", "install": "globex", "kind": "deploy-components", "state": "failed",
        "reason": format!("`preflight:install` failed: {reason}"), "created_at": AT, "ended_at": AT + 12_000, "version": DIGEST,
        "nodes": [
            { "name": "preflight:install", "state": "failed", "job": "job_00000000000000000001", "reason": reason },
            { "name": "queue", "state": "skipped", "dependencies": ["preflight:install"], "reason": "a node before it failed" },
        ],
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
        ("/v1/installs", json!({ "items": [globex.clone(), initech] })),
        ("/v1/installs/globex", globex),
        ("/v1/installs/globex/workflows", json!({ "items": [workflow.clone()] })),
        ("/v1/workflows/wf_00000000000000000001", workflow),
        ("/v1/jobs/job_00000000000000000001", job),
    ]
}

/// Runs `freehold` on a terminal of `columns`; returns all that appears there.
fn on_a_terminal(api: &str, columns: u16, args: &[&str], environment: &[(&str, &str)]) -> String {
    let main = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&main).unwrap();
    unlockpt(&main).unwrap();
    let name = ptsname(&main, Vec::new()).unwrap();
    let side: OwnedFd = open(name.as_c_str(), OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
    tcsetwinsize(&main, Winsize { ws_row: 40, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    let mut command = tenant_api::freehold(api, Path::new("/"), args);
    command.env("TERM", "xterm-256color").envs(environment.iter().copied());
    command.stdout(side.try_clone().unwrap()).stderr(side);
    let mut child = command.spawn().unwrap();
    // The command's copies of the terminal; the reader below ends when the last one is closed.
    drop(command);
    let mut seen = Vec::new();
    // A terminal that nobody has open any more reads as an error.
    let _ = File::from(main).read_to_end(&mut seen);
    child.wait().unwrap();
    String::from_utf8(seen).unwrap().replace("\r\n", "\n")
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
    let api = tenant_api::of_answers(answers());
    let shown = COMMANDS
        .map(|args| format!("$ freehold {}\n{}", args.join(" "), on_a_terminal(&api, columns, args, environment)));
    shown.join("\n")
}

#[test]
fn what_is_shown_fits_terminals_of_60_and_of_200_columns() {
    for columns in [60, 200] {
        let shown = without_escapes(&session(columns, &[]));

        let whole = |line: &str| line.split_whitespace().any(|word| word.len() > 40);
        let too_long = shown.lines().find(|line| line.chars().count() > usize::from(columns) && !whole(line));
        assert_eq!(too_long, None);
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/terminal-{columns}.txt"));
        if std::env::var_os("FREEHOLD_UPDATE").is_some() {
            std::fs::write(&path, &shown).unwrap();
        }
        let golden = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(shown, golden, "{} is old; run with FREEHOLD_UPDATE=1", path.display());
    }
}

#[test]
fn colours_are_on_a_terminal_and_not_with_no_color() {
    let api = tenant_api::of_answers(answers());
    for args in [&COMMANDS[3], &COMMANDS[5]] {
        let coloured = on_a_terminal(&api, 60, args, &[]);
        let plain = on_a_terminal(&api, 60, args, &[("NO_COLOR", "1")]);

        assert!(coloured.contains("\u{1b}["), "{coloured}");
        assert!(!plain.contains('\u{1b}'), "{plain}");
        assert_eq!(without_escapes(&coloured), plain);
    }
}
