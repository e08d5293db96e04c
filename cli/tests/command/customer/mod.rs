//! `freehold customer` on a copy of a bucket, as a person runs it: the answers of an honest install, and each answer against
//! a vendor, or somebody else, that lies.

mod bucket;
mod live;
mod support_bundle;
mod templates;
mod ui;

use bucket::{AT, Bucket, Story, command, freehold};
use freehold_protocol::audit::{AuditEvent, record_name};
use serde_json::{Value, json};

const JOB: &str = "job_";

/// The questions whose answers rest on the log.
const QUESTIONS: [&[&str]; 5] = [&["asked"], &["approvals"], &["ran"], &["origin"], &["sent"]];

fn honest() -> Bucket {
    Bucket::telling(&Story::default())
}

/// Returns the doubts and problems of an answer.
fn wrong((code, answer): (i32, Value)) -> (i32, String) {
    let texts = |key: &str| {
        let all = answer[key].as_array().cloned().unwrap_or_default();
        all.iter().map(|one| one["text"].as_str().or(one.as_str()).unwrap_or_default().to_owned()).collect::<Vec<_>>()
    };
    (code, [texts("problems"), texts("doubts")].concat().join("\n"))
}

/// Asserts that each of these questions ends with 1 and tells the lie.
fn tells(bucket: &Bucket, questions: &[&[&str]], lie: &str) {
    for question in questions {
        let (code, output) = wrong(bucket.ask(question));
        assert!(code == 1 && output.contains(lie), "{question:?} does not tell `{lie}`: {code}: {output}");
    }
}

#[test]
fn an_honest_install_gets_every_answer_without_an_account_or_a_network() {
    let bucket = honest();

    for question in QUESTIONS {
        let (code, answer) = bucket.ask(question);
        assert_eq!((code, &answer["proven"]), (0, &json!(true)), "{question:?}: {answer}");
        assert!(answer["question"].as_str().unwrap().ends_with('?') && answer["rests_on"].is_string(), "{answer}");
    }
    let (_, asked) = bucket.ask(&["asked"]);
    assert_eq!(asked["answer"][0]["asked_by"]["arn"], "arn:aws:iam::111111111111:user/ana");
    let (_, ran) = bucket.ask(&["ran"]);
    let job = ran["answer"][0]["job"].as_str().unwrap().to_owned();
    assert!(job.starts_with(JOB), "{ran}");
    assert_eq!(ran["answer"][0]["artifacts"]["web"], bucket.artifact.as_str());
    let (code, of_job) = bucket.ask(&["ran", "--job", &job]);
    assert_eq!((code, &of_job["answer"][0]["log_text"]), (0, &json!("copied\n")), "{of_job}");
    let (_, origin) = bucket.ask(&["origin", "--artifact", bucket.artifact.as_str()]);
    assert_eq!(origin["answer"][0]["statement"]["buildDefinition"]["externalParameters"]["component"], "web");
    let (_, sent) = bucket.ask(&["sent", "--report", bucket.report.as_str()]);
    assert_eq!(sent["answer"][0]["text"]["body"]["event"]["event"], "started", "{sent}");
    let (code, whole) = bucket.ask(&["audit", "verify"]);
    assert_eq!((code, &whole["verified"], &whole["confirmed"]), (0, &json!(true), &json!(4)), "{whole}");
}

#[test]
fn nobody_is_said_to_have_approved_what_nobody_was_asked_about() {
    let (_, answer) = honest().ask(&["approvals"]);

    assert_eq!(answer["answer"], json!({ "waiting": [], "applied": [], "without_approval": 1 }));
}

#[test]
fn without_the_vendors_key_the_answer_says_that_nobody_checked_the_signatures() {
    let bucket = Bucket::telling(&Story { root: 9, ..Story::default() });
    let copy = bucket.path("").display().to_string();

    let unchecked = bucket::freehold(&bucket.path(""), &["customer", "asked", "--copy", &copy]);

    let text = String::from_utf8_lossy(&unchecked.stdout).into_owned();
    assert!(text.contains("Nobody checked who signed the orders and receipts"), "{text}");
}

#[test]
fn an_order_that_was_changed_removed_or_not_signed_by_the_vendor_is_told() {
    let about_orders: [&[&str]; 4] = [&["asked"], &["approvals"], &["ran"], &["origin"]];
    let changed = honest();
    changed.edit(&changed.order_file(), "\"payload\":\"", "\"payload\":\"A");
    let removed = honest();
    removed.remove(&removed.order_file());
    let forged = Bucket::telling(&Story { root: 9, ..Story::default() });

    tells(&changed, &about_orders, "its signed order was changed");
    tells(&removed, &about_orders, "its signed order is missing");
    tells(&forged, &about_orders, "the vendor did not sign its order");
    tells(&forged, &about_orders, "the control plane did not sign it");
}

#[test]
fn a_record_that_names_somebody_else_than_the_signed_order_is_told() {
    let bucket = Bucket::telling(&Story { recorded: "bob", ..Story::default() });

    let lie = "the record states asked by `arn:aws:iam::111111111111:user/bob`, but the signed order \
               states `arn:aws:iam::111111111111:user/ana`";
    tells(&bucket, &[&["asked"], &["ran"]], lie);
}

#[test]
fn a_record_that_was_changed_exchanged_or_removed_is_told_by_every_answer() {
    let record = |seq| format!("audit/{}", record_name(seq));
    let changed = honest();
    changed.edit(&record(2), "\"sig\":\"", "\"sig\":\"A");
    let exchanged = honest();
    let third = std::fs::read(exchanged.path(&record(3))).unwrap();
    exchanged.write(&record(2), &third);
    let removed = honest();
    removed.remove(&record(3));

    tells(&changed, &QUESTIONS, "record 2 ");
    tells(&exchanged, &QUESTIONS, "its runner wrote it as record 3");
    tells(&removed, &QUESTIONS, "record 3 is missing");
}

#[test]
fn an_event_of_a_newer_version_is_a_link_of_the_log_and_a_doubt_about_each_answer() {
    let mut bucket = honest();
    bucket.record(serde_json::from_value(json!({ "event": "resumed", "job": null })).unwrap());
    let newer = "1 record with an event of a newer version (1 `resumed`; the first is record 5): this version";

    let (code, whole) = bucket.ask(&["audit", "verify"]);
    let done = freehold(bucket.place(), &["customer", "audit", "verify", "--copy", "."]);

    let verified = (code, &whole["verified"], &whole["newer_events"]);
    assert_eq!(verified, (0, &json!(true), &json!({ "resumed": [5] })), "{whole}");
    let stdout = String::from_utf8(done.stdout).unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(stdout.contains(newer), "{stdout}");
    tells(&bucket, &QUESTIONS, newer);
}

#[test]
fn a_cut_tail_is_told_by_the_receipt_and_a_replayed_receipt_by_its_number() {
    let cut = honest();
    cut.remove(&format!("audit/{}", record_name(4)));
    let mut replayed = honest();
    replayed.record(AuditEvent::Sent { reports: Vec::new() });
    let receipt = std::fs::read(replayed.path(&format!("audit/receipts/{}", record_name(4)))).unwrap();
    replayed.write(&format!("audit/receipts/{}", record_name(5)), &receipt);
    let verify: [&[&str]; 1] = [&["audit", "verify"]];

    tells(&cut, &verify, "receipt 4: the chain was cut: it lacks record 4");
    tells(&cut, &QUESTIONS, "the chain was cut");
    tells(&replayed, &verify, "receipt 5: it is the receipt of record 4, stored in place of this one");
}

#[test]
fn a_copy_that_looks_cut_at_its_end_is_not_proven_and_its_reader_is_advised_to_copy_the_records_again() {
    let (cut, gap) = (honest(), honest());
    cut.remove(&format!("audit/{}", record_name(4)));
    gap.remove(&format!("audit/{}", record_name(2)));

    let [of_cut, of_gap] = [&cut, &gap].map(|bucket| {
        let done = freehold(bucket.place(), &["customer", "audit", "verify", "--copy", "."]);
        assert_eq!(done.status.code(), Some(1), "{done:?}");
        String::from_utf8(done.stderr).unwrap().split_whitespace().collect::<Vec<_>>().join(" ")
    });

    assert!(of_cut.contains("copy the records again, without `reports/` and `receipts/`"), "{of_cut}");
    assert!(of_gap.contains("keep this copy; CloudTrail"), "{of_gap}");
}

#[test]
fn a_changed_or_missing_log_of_a_job_is_told() {
    let changed = honest();
    let (_, ran) = changed.ask(&["ran"]);
    let job = ran["answer"][0]["job"].as_str().unwrap();
    changed.write(&format!("logs/{job}/1.1.log"), b"nothing happened\n");
    let missing = honest();
    missing.remove(&format!("logs/{job}/1.1.log"));

    tells(&changed, &[&["ran", "--job", job]], "was changed: its record names");
    tells(&missing, &[&["ran", "--job", job]], "is missing");
}

#[test]
fn a_copy_of_the_records_alone_is_said_to_have_no_logs() {
    let bucket = honest();
    let job = bucket.ask(&["ran"]).1["answer"][0]["job"].as_str().unwrap().to_owned();

    let done = freehold(bucket.place(), &["customer", "ran", "--copy", "audit", "--job", &job]);

    let stdout = String::from_utf8(done.stdout).unwrap();
    assert_eq!(done.status.code(), Some(1));
    assert!(stdout.contains("the copy has no `logs/`; copy the whole bucket, not only `audit/`"), "{stdout}");
}

#[test]
fn the_text_of_a_report_is_printed_as_it_was_signed_on_a_narrow_terminal_too() {
    let bucket = honest();
    let words = ["customer", "sent", "--copy", ".", "--report", bucket.report.as_str()];

    let done = command(bucket.place(), &words).env("COLUMNS", "40").output().unwrap();

    let stdout = String::from_utf8(done.stdout).unwrap();
    let text: Value = serde_json::from_str(stdout.trim_end().lines().last().unwrap()).unwrap();
    assert_eq!(text["body"]["event"]["event"], "started", "{stdout}");
}

#[test]
fn what_is_missing_in_a_question_is_named_with_every_way_to_give_it() {
    let bucket = honest();
    let refused = |words: &[&str]| {
        let done = freehold(bucket.place(), &[&["customer"], words].concat());
        assert_eq!(done.status.code(), Some(2), "{words:?}");
        String::from_utf8(done.stderr).unwrap()
    };

    insta::assert_snapshot!(refused(&["audit", "verify"]) + &refused(&["permissions"]) + &refused(&["changes", "globex"]), @r"
    error: no install is given; name the install, or pass `--copy DIR`
    error: no install is given; name the install, or pass a file with its template as `--template FILE`
    error: no new template and no new contract is given; pass `--new-template FILE`, or `--agreed FILE` and `--new-contract FILE`, or all three
    ");
}

#[test]
fn a_report_that_was_changed_removed_or_never_recorded_is_told() {
    let an_hour_later = AT.plus_secs(3600);
    let changed = honest();
    changed.edit(&changed.report_file(), "\"payload\":\"", "\"payload\":\"A");
    let mut removed = honest();
    removed.remove(&removed.report_file());
    let soon = removed.ask(&["sent"]);
    removed.record_at(an_hour_later, AuditEvent::Sent { reports: Vec::new() });
    let mut unrecorded = honest();
    unrecorded.report_about(&"job_000000000000000000ff".parse().unwrap(), 9);
    unrecorded.record_at(an_hour_later, AuditEvent::Sent { reports: Vec::new() });

    tells(&changed, &[&["sent"]], "is not the one that was sent");
    assert_eq!(soon.0, 0, "the runner has ten minutes to bring the text of a report: {}", soon.1);
    tells(&removed, &[&["sent"]], "which record 3 names, is missing");
    tells(&unrecorded, &[&["sent"]], "was sent, and no record names it");
}

#[test]
fn a_statement_that_the_vendor_did_not_sign_is_told() {
    let bucket = Bucket::telling(&Story { statement_root: 9, ..Story::default() });

    tells(&bucket, &[&["origin"]], "failed verification");
    assert_eq!(bucket.ask(&["ran"]).0, 0, "the order itself is the vendor's");
}

#[test]
fn a_malformed_key_id_is_refused_as_such_and_raises_no_alarm() {
    let bucket = honest();
    let copy = bucket.path("").display().to_string();

    let done =
        bucket::freehold(&bucket.path(""), &["customer", "audit", "verify", "--copy", &copy, "--runner", "1234"]);

    let stderr = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(done.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("`1234` is not the id of a key; expected 32 hex digits"), "{stderr}");
}

#[test]
fn a_job_that_a_switch_kept_from_starting_is_shown_with_who_asked_for_it_and_why_it_did_not_start() {
    let mut bucket = honest();
    let job = bucket.block(&Story::default());

    let (asked, ran) = (bucket.ask(&["asked"]), bucket.ask(&["ran", "--job", job.as_str()]));

    let last = |answer: &Value| answer["answer"].as_array().unwrap().last().unwrap().clone();
    let (by, refused) = (last(&asked.1), last(&ran.1));
    assert_eq!((asked.0, ran.0), (0, 0), "{asked:?} {ran:?}");
    assert_eq!((&by["job"], &by["started"]), (&json!(job), &json!(false)));
    assert_eq!(by["asked_by"]["arn"], "arn:aws:iam::111111111111:user/ana");
    assert_eq!((&refused["result"], &refused["mode"]), (&json!("blocked"), &json!("maintenance")), "{refused}");
    assert_eq!(refused["reason"], "mode `maintenance` is switched off");
}

#[test]
fn an_order_of_a_job_that_did_not_start_is_compared_with_its_record() {
    let story = || Story { root: 9, ..Story::default() };
    let (mut removed, mut changed, mut forged) = (honest(), honest(), honest());
    removed.block(&Story::default());
    removed.remove(&removed.order_file());
    changed.block(&Story::default());
    changed.edit(&changed.order_file(), "\"payload\":\"", "\"payload\":\"A");
    forged.block(&story());

    let questions: [&[&str]; 2] = [&["asked"], &["ran"]];
    tells(&removed, &questions, "its signed order is missing");
    tells(&changed, &questions, "its signed order was changed");
    tells(&forged, &questions, "the vendor did not sign its order");
}

#[test]
fn an_event_of_cloudtrail_that_no_record_explains_is_told() {
    let bucket = honest();
    let (_, ran) = bucket.ask(&["ran"]);
    let job = ran["answer"][0]["job"].as_str().unwrap();
    let runner = "arn:aws:sts::222222222222:assumed-role/fh-acme--globex--runner/i-1";
    let session = |name: &str| format!("arn:aws:sts::222222222222:assumed-role/fh-acme--globex--maintenance/{name}");
    let event = |caller: &str, name: &str| {
        json!({ "eventID": "e-1", "eventTime": "2026-11-21T08:33:22Z", "eventSource": "ec2.amazonaws.com",
            "eventName": name, "userIdentity": { "arn": caller }, "readOnly": false })
    };
    let with = |events: Vec<Value>| {
        bucket.write("events.json", json!({ "Records": events }).to_string().as_bytes());
        let file = bucket.path("events.json").display().to_string();
        wrong(bucket.ask(&["outside", "--events", &file]))
    };

    assert_eq!(with(vec![event(&session(job), "RunInstances"), event("arn:aws:iam::2:user/x", "RunInstances")]).0, 0);
    let by_hand = with(vec![event(&session("by-hand"), "RunInstances")]);
    assert!(by_hand.0 == 1 && by_hand.1.contains("no record of a start names the session `by-hand`"), "{by_hand:?}");
    let by_runner = with(vec![event(runner, "RunInstances")]);
    assert!(by_runner.0 == 1 && by_runner.1.contains("which a runner never does"), "{by_runner:?}");
}

#[test]
fn a_file_that_is_not_a_list_of_events_is_refused() {
    let bucket = honest();
    bucket.write("events.json", b"{}");

    let file = bucket.path("events.json").display().to_string();
    let copy = bucket.path("").display().to_string();
    let refused = bucket::freehold(&bucket.path(""), &["customer", "outside", "--copy", &copy, "--events", &file]);

    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
}
