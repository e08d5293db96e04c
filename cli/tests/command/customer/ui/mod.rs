//! `freehold customer ui`: the real server on loopback, against a stand-in of AWS. Its pages show what commands print.

mod account;
mod pages;

use std::io::Read as _;
use std::time::{Duration, Instant};

use freehold_protocol::JobId;
use freehold_protocol::approval::approval_object;
use freehold_protocol::audit::{AuditEvent, record_name};
use freehold_protocol::report::Fence;
use serde_json::{Value, json};

use super::bucket::{Bucket, ROOT, Story};
use crate::support::loopback::listen;
use account::{Account, Requests, escaped, wait_for_approval};
use pages::{Pages, printed};

/// Markup, the end of an attribute, a character that turns text around, and one that controls a terminal.
const HOSTILE: &str = "x<script>alert(1)</script><img src=\"http://evil.example/\" onerror='x'>\u{202e}\u{1b}[2J";

#[test]
fn each_page_has_the_answer_of_its_command() {
    let (account, _) = Account::honest().serve();
    let pages = Pages::open(&account);

    let commands: [(&str, &[&str]); 9] = [
        ("/permissions", &["permissions"]),
        ("/approvals", &["approvals"]),
        ("/windows", &["windows"]),
        ("/stop", &["stopped"]),
        ("/ran", &["ran"]),
        ("/asked", &["asked"]),
        ("/origin", &["origin"]),
        ("/sent", &["sent"]),
        ("/log", &["audit", "verify"]),
    ];
    for (path, words) in commands {
        let (page, json) = (pages.get(path), printed(&account, words));
        assert_eq!(page.status, 200, "{path}");
        assert!(page.body.contains(&escaped(&json)), "{path} lacks the answer of {words:?}: {json}\n{}", page.body);
        let command = format!("<code>freehold customer {} globex --tenant acme</code>", words.join(" "));
        assert!(page.body.contains(&command), "{path} does not name its command: {}", page.body);
    }
    let cost = printed(&account, &["cost", "--forecast"]);
    assert!(pages.get("/cost").body.contains(&escaped(&cost)), "{cost}");
    assert!(pages.get("/changes").body.contains("no new template and no new contract is given"));
}

#[test]
fn the_first_page_says_what_runs_and_whether_the_log_is_whole() {
    let account = Account::honest();
    let artifact = account.bucket.artifact.to_string();
    let (address, _) = account.serve();

    let page = Pages::open(&address).get("/").body;

    for part in ["freehold-acme--globex is UPDATE_COMPLETE", "switched on", "4 records, complete and unchanged"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(page.contains("the customer holds all changes") && page.contains("<dd>maintenance</dd>"), "{page}");
    assert!(page.contains(&format!("<a href=\"/origin?artifact={}\"", artifact.replace(':', "%3A"))), "{page}");
}

#[test]
fn the_page_about_the_log_names_the_link_that_is_broken() {
    let account = Account::honest();
    account.bucket.remove(&format!("audit/{}", record_name(3)));
    let (address, _) = account.serve();
    let pages = Pages::open(&address);

    for path in ["/log", "/ran", "/asked", "/sent"] {
        let page = pages.get(path).body;
        assert!(page.contains("role=\"alert\"") && page.contains("record 3 is missing"), "{path}: {page}");
        assert!(!page.contains("nothing contradicts this answer"), "{path}: {page}");
    }
}

#[test]
fn the_pages_about_one_job_report_and_artifact_have_their_details() {
    let account = Account::honest();
    let (report, artifact) = (account.bucket.report.to_string(), account.bucket.artifact.to_string());
    let (address, _) = account.serve();
    let pages = Pages::open(&address);
    let ran: Value = serde_json::from_str(&printed(&address, &["ran"])).unwrap();
    let job = ran["answer"][0]["job"].as_str().unwrap();

    let of_job = pages.get(&format!("/ran?job={job}")).body;
    let wrong = pages.get("/ran?job=%3Cb%3E").body;

    assert!(of_job.contains(":\ncopied") && of_job.contains(&format!("ran globex --job {job} --tenant")), "{of_job}");
    assert!(pages.get(&format!("/sent?report={report}")).body.contains("&quot;event&quot;: &quot;started&quot;"));
    assert!(pages.get(&format!("/origin?artifact={artifact}")).body.contains("externalParameters"));
    assert!(wrong.contains("field `job`: ") && !wrong.contains("<b>"), "{wrong}");
}

#[test]
fn only_the_browser_that_opened_the_address_first_gets_pages() {
    let (account, _) = Account::honest().serve();
    let pages = Pages::open(&account);
    let host = ("host", pages.authority.as_str());
    let own_origin = pages.own_origin();
    let (own, evil) = (("origin", own_origin.as_str()), ("origin", "http://evil.example"));
    let cookie = ("cookie", pages.cookie.as_str());

    let refused = [
        pages.send("GET", "/", &[host], ""),
        pages.send("GET", "/?token=0123", &[host], ""),
        pages.send("GET", &pages.address, &[host], ""),
        pages.send("GET", "/", &[("host", "evil.example"), cookie], ""),
        pages.send("GET", "/", &[("host", "localhost"), cookie], ""),
        pages.send("GET", "/", &[host, cookie, evil], ""),
        pages.send("POST", "/pause", &[host, cookie, evil], "confirmed=yes"),
        pages.send("POST", "/pause", &[host, cookie], "confirmed=yes"),
        pages.post("/pause", &own_origin, "confirmed=yes"),
        pages.post("/pause", &own_origin, "confirmed=yes&csrf=0123"),
    ];

    for reply in &refused {
        assert_eq!(reply.status, 403, "{}", reply.body);
        assert!(!reply.body.contains("globex") && !reply.head.contains("set-cookie"), "{}", reply.body);
    }
    assert_eq!(pages.get("/").status, 200);
    assert_eq!(pages.send("PUT", "/", &[host, cookie, own], "").status, 405);
    assert_eq!(pages.get("/nothing").status, 404);
    assert!(pages.get("/work").body.contains("Nobody has started a change"), "a refused form changed something");
}

#[test]
fn a_page_is_not_stored_or_framed_and_loads_nothing_from_elsewhere() {
    let (account, requests) = Account::honest().serve();
    let elsewhere = Requests::default();
    let kept = elsewhere.clone();
    let proxy = listen(move |method, path, _| {
        kept.lock().unwrap().push((method.to_owned(), path.to_owned(), String::new()));
        (502, String::new())
    });
    let mut pages = Pages::start(&account, &[("HTTPS_PROXY", proxy.as_str())]);
    let opened = pages.send("GET", &pages.address, &[("host", pages.authority.as_str())], "");
    pages.cookie = opened.head.split("set-cookie: ").nth(1).unwrap().split(';').next().unwrap().to_owned();

    for path in ["/", "/permissions", "/approvals", "/windows", "/stop", "/ran", "/asked", "/origin", "/sent", "/log"] {
        let page = pages.get(path);
        for header in
            ["cache-control: no-store", "content-security-policy: default-src 'none'", "frame-ancestors 'none'"]
        {
            assert!(page.head.contains(header), "{path} has no {header}: {}", page.head);
        }
        for attribute in ["src=\"http", "href=\"http", "action=\"http", "src=\"//", "href=\"//", "<script"] {
            assert!(!page.body.contains(attribute), "{path} has {attribute}: {}", page.body);
        }
    }
    let style = opened.body.split("rel=\"stylesheet\" href=\"").nth(1).unwrap().split('"').next().unwrap();
    assert!(pages.get(style).head.contains("content-type: text/css"));
    assert!(elsewhere.lock().unwrap().is_empty(), "a request to another host than that of AWS");
    assert!(requests.lock().unwrap().iter().all(|(method, ..)| method != "PUT"), "a page changed something");
}

#[test]
fn what_a_lying_vendor_writes_is_text_on_every_page() {
    let mut bucket = Bucket::telling(&Story::default());
    let job: JobId = "job_0000000000000000000d".parse().unwrap();
    bucket.record(AuditEvent::Joined { host: HOSTILE.into(), version: HOSTILE.into() });
    bucket.record(AuditEvent::Ended {
        job,
        fence: Fence { dispatch: 1, receive: 1 },
        result: HOSTILE.into(),
        log: None,
        order: None,
        sent_at: None,
    });
    let plan = wait_for_approval(&mut bucket, HOSTILE);
    let mut account = Account::of(bucket);
    // XML has no characters that control a terminal.
    let of_stack = HOSTILE.replace('\u{1b}', "");
    account.parameters.push(("AcceptedContract", of_stack.clone()));
    account.parameters.push(("ChangeFreezes", of_stack));
    let (address, _) = account.serve();
    let pages = Pages::open(&address);
    let decision = format!("/approvals?plan={plan}");

    for path in ["/", "/permissions", "/approvals", &decision, "/windows", "/ran", "/log", "/stop", "/asked", "/sent"] {
        let page = pages.get(path).body;
        for raw in ["<script", "<img", "onerror='x'>", "\u{202e}", "\u{1b}"] {
            assert!(!page.contains(raw), "{path} has {raw:?}: {page}");
        }
    }
    for path in ["/", "/permissions", "/approvals", &decision, "/ran", "/asked"] {
        let page = pages.get(path).body;
        assert!(page.contains("&lt;script&gt;alert(1)"), "{path} does not show what was there: {page}");
    }
}

#[test]
fn a_plan_is_approved_with_a_form_as_the_command_approves_it() {
    let mut bucket = Bucket::telling(&Story::default());
    let plan = wait_for_approval(&mut bucket, "aws_vpc.main");
    let (account, requests) = Account::of(bucket).serve();
    let pages = Pages::open(&account);
    let list = pages.get("/approvals").body;
    let decision = format!("/approvals?plan={}", plan.to_string().replace(':', "%3A"));
    let csrf = pages.form_token(&decision);

    let unconfirmed = pages.post("/approve", &pages.own_origin(), &format!("csrf={csrf}&plan={plan}"));
    let form = format!("csrf={csrf}&plan={plan}&confirmed=yes");
    let started = pages.post("/approve", &pages.own_origin(), &form);
    let deadline = Instant::now() + Duration::from_secs(60);
    let mut page = pages.get("/work").body;
    while page.contains("In progress") && Instant::now() < deadline {
        page = pages.get("/work").body;
    }

    assert!(list.contains(&format!("href=\"{decision}\"")), "{list}");
    assert_eq!(unconfirmed.status, 400, "{}", unconfirmed.body);
    assert!(started.status == 303 && started.head.contains("location: /work"), "{}", started.head);
    assert!(page.contains("is approved") && page.contains(&format!("approve globex --plan {plan}")), "{page}");
    let requests = requests.lock().unwrap();
    let written: Vec<_> = requests.iter().filter(|(method, ..)| method == "PUT").collect();
    let [(_, path, body)] = written.as_slice() else { panic!("{written:?}") };
    assert!(path.contains(&approval_object(&plan)), "{path}");
    let decided: Value = serde_json::from_str(body).unwrap();
    assert_eq!((&decided["approved"], &decided["plan"]), (&json!(true), &json!(plan)));
}

#[test]
fn the_licence_is_that_of_the_signed_order_under_the_vendors_root_key() {
    let licence = |licence_root: Option<u8>| {
        let story = Story { licence_root, ..Story::default() };
        let (account, _) = Account::of(Bucket::telling(&story)).serve();
        Pages::open(&account).get("/licence").body
    };

    let (valid, forged, none) = (licence(Some(ROOT)), licence(Some(9)), licence(None));

    assert!(
        valid.contains("fact seats")
            && valid.contains("4711")
            && valid.contains("the signature is valid under the vendor"),
        "{valid}"
    );
    assert!(forged.contains("is not valid: ") && !forged.contains("fact seats"), "{forged}");
    assert!(none.contains("no signed order in bucket") && none.contains("has a licence"), "{none}");
}

#[test]
fn ctrl_c_closes_the_pages() {
    let (account, _) = Account::honest().serve();
    let mut pages = Pages::open(&account);

    let server = rustix::process::Pid::from_child(&pages.server);
    rustix::process::kill_process(server, rustix::process::Signal::INT).unwrap();

    let mut rest = String::new();
    pages.rest.read_to_string(&mut rest).unwrap();
    assert!(rest.ends_with("the pages are closed\n"), "{rest}");
    assert!(pages.server.wait().unwrap().success());
}
