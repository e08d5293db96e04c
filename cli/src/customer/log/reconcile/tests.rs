use freehold_protocol::audit::AuditRecord;
use serde_json::{Value, json};

use super::super::history::{End, Run};
use super::*;

const JOB: &str = "job_0000000000000000000a";
const OTHER: &str = "job_0000000000000000000b";
const RUNNER: &str = "arn:aws:sts::222222222222:assumed-role/fh-acme--globex--runner/i-1";
const QUEUES: Option<&str> = Some("111111111111");

fn at(secs: u64) -> Timestamp {
    Timestamp::from_millis(1_795_000_000_000 + secs * 1000)
}

/// A job under `maintenance` that ran from second 1000 to 2000.
fn run() -> Run {
    Run {
        record: 7,
        at: at(1000),
        workflow: "wf_0000000000000000000a".parse().unwrap(),
        job: JOB.parse().unwrap(),
        fence: freehold_protocol::report::Fence { dispatch: 1, receive: 1 },
        work: "action".to_owned(),
        mode: freehold_protocol::order::Mode::Maintenance,
        role: None,
        asked_by: None,
        asked_why: None,
        now: false,
        order: freehold_protocol::Digest::of(b"order"),
        end: Some(End { at: at(2000), result: "succeeded".to_owned(), log: None }),
        doubt: None,
        signed: None,
    }
}

fn session(role: &str, name: &str) -> String {
    format!("arn:aws:sts::222222222222:assumed-role/{role}/{name}")
}

fn event(secs: u64, (service, name): (&str, &str), caller: &str) -> Value {
    let time = jiff::Timestamp::from_millisecond(i64::try_from(at(secs).as_millis()).unwrap()).unwrap();
    json!({
        "eventID": "e", "eventTime": time.to_string(), "eventSource": format!("{service}.amazonaws.com"),
        "eventName": name, "userIdentity": { "arn": caller }, "readOnly": name.starts_with("Get"),
    })
}

fn takes(caller: &str, role: &str, name: &str) -> Value {
    let mut event = event(1000, ("sts", "AssumeRole"), caller);
    event["requestParameters"] =
        json!({ "roleArn": format!("arn:aws:iam::222222222222:role/{role}"), "roleSessionName": name });
    event
}

/// Returns why each event has no record.
fn found(events: &[Value], records: &[AuditRecord]) -> Vec<String> {
    let calls: Vec<Call> = events.iter().map(|event| Call::of(event).unwrap()).collect();
    let (tenant, install) = ("acme".parse().unwrap(), "globex".parse().unwrap());
    let log = Log { runs: &[run()], not_started: &[], records, own_doctor: false, queues: QUEUES };
    let found = reconcile((&tenant, &install), &calls, log, at(0));
    found.unexplained.into_iter().map(|one| one.why).collect()
}

fn record(event: &Value) -> AuditRecord {
    serde_json::from_value(json!({
        "tenant": "acme", "install": "globex", "runner": "7300c0ae1429cd153252736a781b78f4", "seq": 8,
        "previous": freehold_protocol::Digest::of(b""), "at": 1, "event": event,
    }))
    .unwrap()
}

fn change(job: &str, stage: &str) -> AuditRecord {
    record(
        &json!({ "event": "iam_change", "job": job, "fence": { "dispatch": 1, "receive": 1 }, "action": "CreateRole",
        "resource": "r", "stage": stage }),
    )
}

fn ended(job: &str, (dispatch, receive): (u32, u32)) -> AuditRecord {
    record(&json!({ "event": "ended", "job": job, "fence": { "dispatch": dispatch, "receive": receive },
        "result": "blocked" }))
}

#[test]
fn the_calls_of_a_job_of_the_runner_and_of_the_app_have_their_records() {
    let job = session("fh-acme--globex--maintenance", JOB);
    let events = [
        takes(RUNNER, "fh-acme--globex--maintenance", JOB),
        event(1500, ("ec2", "RunInstances"), &job),
        event(1500, ("iam", "CreateRole"), &job),
        event(1500, ("ecr", "PutImage"), RUNNER),
        event(9000, ("s3", "CreateBucket"), &session("acme--globex--web", "i-2")),
        event(9000, ("ec2", "RunInstances"), &session("somebody", "else")),
        event(9000, ("iam", "CreateUser"), &session("fh-acme--other--provision", JOB)),
    ];

    assert_eq!(found(&events, &[change(JOB, "announced")]), Vec::<String>::new());
}

#[test]
fn a_role_that_somebody_else_took_is_named_with_the_principal() {
    let stranger = "arn:aws:iam::111111111111:user/vendor";

    let taken = found(&[takes(stranger, "fh-acme--globex--provision", JOB)], &[]);

    assert_eq!(taken, [format!("`{stranger}`, which is not the runner, assumed role `fh-acme--globex--provision`")]);
}

#[test]
fn a_session_without_a_job_under_another_role_or_at_another_time_is_named() {
    let of = |role: &str, name: &str, secs: u64| {
        let caller = session(&format!("fh-acme--globex--{role}"), name);
        found(&[event(secs, ("ec2", "RunInstances"), &caller)], &[]).pop().unwrap_or_default()
    };

    assert!(of("maintenance", "by-hand", 1500).starts_with("no record of a start names the session `by-hand`"));
    assert!(of("maintenance", "freehold-doctor", 1500).starts_with("no record of a start names the session"));
    assert!(of("provision", JOB, 1500).contains("has no record of a start under role `fh-acme--globex--provision`"));
    assert!(of("maintenance", JOB, 2400).ends_with("did not run at that time"));
    assert!(of("maintenance", JOB, 600).ends_with("did not run at that time"));
    assert_eq!(of("maintenance", JOB, 2200), "", "the clocks differ by some minutes");
}

#[test]
fn a_change_of_iam_needs_a_record_of_its_own_unless_a_stack_made_it() {
    let job = session("fh-acme--globex--maintenance", JOB);
    let created = || event(1500, ("iam", "CreateRole"), &job);
    let mut of_stack = created();
    of_stack["userIdentity"]["invokedBy"] = json!("cloudformation.amazonaws.com");

    let unrecorded = format!("job `{JOB}` has no record of this change of IAM");
    assert_eq!(found(&[created()], &[]), [unrecorded.as_str()]);
    assert_eq!(found(&[created()], &[change(JOB, "refused")]), [unrecorded.as_str()]);
    assert_eq!(found(&[created(), created()], &[change(JOB, "announced")]), [unrecorded.as_str()]);
    assert_eq!(found(&[of_stack], &[]), Vec::<String>::new());
}

#[test]
fn a_change_that_the_runner_itself_never_makes_is_named() {
    let found = found(&[event(1500, ("ec2", "RunInstances"), RUNNER)], &[]);

    assert_eq!(found, ["the role of the runner called `ec2:RunInstances`, which a runner never does"]);
}

#[test]
fn a_change_of_the_runner_has_a_resource_of_the_install() {
    let call = |service: &str, name: &str, key: &str, resource: &str| {
        let mut event = event(1500, (service, name), RUNNER);
        event["requestParameters"] = json!({ key: resource });
        found(&[event], &[]).pop().unwrap_or_default()
    };
    let queue = |name: &str| format!("https://sqs.eu-west-1.amazonaws.com/111111111111/{name}");
    let elsewhere = "https://sqs.eu-west-1.amazonaws.com/333333333333/fh-acme--reports".to_owned();

    for (service, name, key, own, other) in [
        ("ecr", "PutImage", "repositoryName", "fh-acme/globex".to_owned(), "fh-acme/other".to_owned()),
        ("sqs", "SendMessage", "queueUrl", queue("fh-acme--reports--2"), queue("theirs")),
        ("sqs", "SendMessage", "queueUrl", queue("fh-acme--reports"), elsewhere),
        ("sqs", "DeleteMessage", "queueUrl", queue("fh-acme--globex.fifo"), queue("fh-acme--other.fifo")),
        ("s3", "PutObject", "bucketName", "fh-acme--globex--222222222222".to_owned(), "theirs".to_owned()),
        ("s3", "PutObject", "bucketName", "fh-acme--globex--222222222222".to_owned(), "fh-acme--globex--x".to_owned()),
        (
            "autoscaling",
            "CompleteLifecycleAction",
            "autoScalingGroupName",
            "fh-acme--globex--runner".to_owned(),
            "theirs".to_owned(),
        ),
    ] {
        assert_eq!(call(service, name, key, &own), "", "{service}:{name}");
        let expected = format!(
            "the role of the runner called `{service}:{name}` on `{other}`, which does not belong to this install"
        );
        assert_eq!(call(service, name, key, &other), expected);
    }
    // As CloudTrail has it for KMS.
    let with_key = |account: &str| {
        let mut event = event(1500, ("kms", "GenerateDataKey"), RUNNER);
        event["resources"] = json!([{ "ARN": format!("arn:aws:kms:eu-west-1:{account}:key/k"), "accountId": account }]);
        found(&[event], &[]).len()
    };
    assert_eq!((with_key("222222222222"), with_key("111111111111")), (0, 1));
    assert_eq!(
        call("sqs", "CreateQueue", "queueName", "theirs"),
        "the role of the runner called `sqs:CreateQueue`, which a runner never does"
    );
}

#[test]
fn a_role_of_somebody_else_that_the_runner_assumed_is_named() {
    let mut call = takes(RUNNER, "theirs", JOB);
    call["readOnly"] = json!(true);

    let found = found(&[call], &[]);

    let role = "arn:aws:iam::222222222222:role/theirs";
    assert_eq!(found, [format!("the role of the runner assumed role `{role}`, which no job of this install has")]);
}

/// Returns why sessions of `attempts` at one job have no record, where CloudTrail shows a session at each of `secs`.
fn beyond(attempts: &[Run], secs: &[u64]) -> Vec<String> {
    let role = "fh-acme--globex--maintenance";
    let calls = secs.iter().map(|secs| {
        let mut call = takes(RUNNER, role, JOB);
        call["eventTime"] = event(*secs, ("sts", "AssumeRole"), RUNNER)["eventTime"].clone();
        Call::of(&call).unwrap()
    });
    // As CloudTrail lists them: the newest first.
    let calls: Vec<Call> = calls.rev().collect();
    let (tenant, install) = ("acme".parse().unwrap(), "globex".parse().unwrap());
    let log = Log { runs: attempts, not_started: &[], records: &[], own_doctor: false, queues: QUEUES };
    reconcile((&tenant, &install), &calls, log, at(0)).unexplained.into_iter().map(|one| one.why).collect()
}

#[test]
fn of_several_sessions_with_the_name_of_a_job_only_those_of_its_attempts_have_a_record() {
    let again = || {
        let fence = freehold_protocol::report::Fence { dispatch: 1, receive: 2 };
        Run { record: 8, at: at(1700), fence, ..run() }
    };
    let lost = || Run { end: None, ..run() };

    assert_eq!(beyond(&[run()], &[1000]), [""; 0]);
    let stolen = beyond(&[run()], &[1000, 1400, 1500]);
    assert_eq!(stolen.len(), 2, "{stolen:?}");
    let expected = format!(
        "this is session 2 of job `{JOB}` under role `fh-acme--globex--maintenance`, and its records \
                            explain only 1 until then; either somebody else has the credentials of the runner"
    );
    assert!(stolen[0].starts_with(&expected), "{stolen:?}");
    assert!(stolen[1].starts_with("this is session 3 of job"), "{stolen:?}");
    // Two attempts, and a look whether the role was switched off when the first one failed.
    assert_eq!(beyond(&[lost(), again()], &[1000, 1600, 1700]), [""; 0]);
    assert_eq!(beyond(&[lost(), again()], &[1000, 1600, 1700, 1800]).len(), 1);
}

#[test]
fn a_long_job_renews_its_session_every_fifty_five_minutes() {
    let end = Some(End { at: at(1000 + 2 * 3600), result: "succeeded".to_owned(), log: None });
    let long = [Run { end, ..run() }];

    assert_eq!(beyond(&long, &[1000, 1000 + 3300, 1000 + 6600]), [""; 0]);
    // Nobody can tell which of the sessions are the job's own.
    assert_eq!(beyond(&long, &[1000, 1000 + 600, 1000 + 3300, 1000 + 6600]).len(), 3);
}

#[test]
fn a_preflight_tries_each_mode_once() {
    let preflight = [Run { work: "preflight".to_owned(), ..run() }];
    let modes = ["provision", "maintenance", "deprovision", "break-glass", "provision"];
    let calls = modes.map(|mode| Call::of(&takes(RUNNER, &format!("fh-acme--globex--{mode}"), JOB)).unwrap());
    let (tenant, install) = ("acme".parse().unwrap(), "globex".parse().unwrap());
    let log = Log { runs: &preflight, not_started: &[], records: &[], own_doctor: false, queues: QUEUES };

    let found = reconcile((&tenant, &install), &calls, log, at(0));

    let why: Vec<&str> = found.unexplained.iter().map(|one| one.why.as_str()).collect();
    assert_eq!(why.len(), 2, "{why:?}");
    assert!(why[0].contains("has no record of a start under role `fh-acme--globex--break-glass`"), "{why:?}");
    assert!(why[1].starts_with(&format!("this is session 2 of job `{JOB}` under role `fh-acme--globex--provision`")));
}

#[test]
fn a_start_for_which_cloudtrail_shows_no_session_is_listed() {
    let (tenant, install) = ("acme".parse().unwrap(), "globex".parse().unwrap());

    let log = Log { runs: &[run()], not_started: &[], records: &[], own_doctor: false, queues: QUEUES };
    let found = reconcile((&tenant, &install), &[], log, at(0));

    assert_eq!((found.unseen, found.unexplained.len()), (vec![7], 0));
}

/// A job that ended as blocked at second 1010, and did not start.
fn blocked() -> NotStarted {
    NotStarted {
        record: 9,
        at: at(1010),
        job: OTHER.parse().unwrap(),
        fence: freehold_protocol::report::Fence { dispatch: 1, receive: 1 },
        started: false,
        result: "blocked".to_owned(),
        reason: None,
        asked: None,
        doubt: None,
    }
}

#[test]
fn a_session_that_the_runner_asked_for_and_whose_job_ended_as_blocked_has_the_record_of_that_end() {
    let role = "fh-acme--globex--maintenance";
    let calls = [
        takes(RUNNER, role, OTHER),
        event(1020, ("ec2", "RunInstances"), &session(role, OTHER)),
        takes(RUNNER, role, "job_0000000000000000000c"),
    ];
    let calls: Vec<Call> = calls.iter().map(|event| Call::of(event).unwrap()).collect();
    let (tenant, install) = ("acme".parse().unwrap(), "globex".parse().unwrap());
    let records = [ended(OTHER, (1, 1))];
    let log = Log { runs: &[run()], not_started: &[blocked()], records: &records, own_doctor: false, queues: QUEUES };

    let found = reconcile((&tenant, &install), &calls, log, at(0));

    let why: Vec<&str> = found.unexplained.iter().map(|one| one.why.as_str()).collect();
    assert_eq!(found.not_started, [9]);
    assert!(why[0].starts_with("no record of a start names the session `job_0000000000000000000c`"), "{why:?}");
    assert!(why[1].starts_with("record 9 states that job `job_0000000000000000000b` ended as `blocked`"), "{why:?}");
}

#[test]
fn the_sessions_of_a_doctor_are_doubted_until_the_customer_says_that_it_was_theirs() {
    let role = "fh-acme--globex--maintenance";
    let calls = [takes(RUNNER, role, DOCTOR), event(1020, ("ec2", "RunInstances"), &session(role, DOCTOR))];
    let calls: Vec<Call> = calls.iter().map(|event| Call::of(event).unwrap()).collect();
    let (tenant, install) = ("acme".parse().unwrap(), "globex".parse().unwrap());
    let found = |own_doctor| {
        let log = Log { runs: &[], not_started: &[], records: &[], own_doctor, queues: QUEUES };
        reconcile((&tenant, &install), &calls, log, at(0))
    };

    let (doubted, own) = (found(false), found(true));

    assert!(doubted.unexplained[0].why.ends_with("pass `--own-doctor` if you ran it yourself"), "{doubted:?}");
    assert_eq!((doubted.unexplained.len(), own.of_own_doctor), (2, 1));
    assert_eq!(own.unexplained, doubted.unexplained[1..], "a doctor calls nothing in such a session");
}
