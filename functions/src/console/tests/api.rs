//! Pages and changes with an API that answers: what the console asks for, and as whom.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

use super::examples::{caller, examples};
use super::world::{ORIGIN, World, header};
use crate::console::sessions::IDLE_SECS;

/// The status and the body of the answers, by how the request begins. The first that fits is sent.
type Answers = Vec<(&'static str, u16, String)>;
type Requests = Arc<Mutex<Vec<String>>>;

/// Starts an API on this machine. Returns its address and the requests that it gets: their first line, their headers in
/// lower case, and their body.
async fn serve(answers: Answers) -> (String, Requests) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, requests) = (format!("http://{}", listener.local_addr().unwrap()), Requests::default());
    let noted = Arc::clone(&requests);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            answer(stream, &answers, &noted).await;
        }
    });
    (address, requests)
}

async fn answer(stream: TcpStream, answers: &Answers, requests: &Requests) {
    let mut stream = BufReader::new(stream);
    let (mut request, mut length) = (String::new(), 0_usize);
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await.unwrap() == 0 || line == "\r\n" {
            break;
        }
        let line = if request.is_empty() { line } else { line.to_lowercase() };
        length = line.strip_prefix("content-length:").map_or(length, |value| value.trim().parse().unwrap());
        request.push_str(&line);
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.unwrap();
    request.push_str(&String::from_utf8(body).unwrap());
    let found = answers.iter().find(|(start, _, _)| request.starts_with(start));
    let (_, status, body) = found.unwrap_or_else(|| panic!("no answer to {request}"));
    let head = format!("HTTP/1.1 {status} x\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
    stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
    requests.lock().unwrap().push(request);
}

fn example(name: &str) -> String {
    examples(&[name]).swap_remove(0).to_string()
}

fn answers() -> Answers {
    vec![
        ("GET /people/v1/caller ", 200, caller().to_string()),
        ("GET /people/v1/installs/globex/workflows", 200, example("ListWorkflows")),
        ("GET /people/v1/installs/globex", 200, example("InstallView")),
        ("GET /people/v1/apps/demo/releases", 200, example("ListReleases")),
        ("POST /people/v1/access/test ", 200, example("AccessView")),
        ("POST /people/v1/installs/globex/deploys ", 200, example("WorkflowStarted")),
        ("GET /people/v1/jobs/job_4b5e57f6eb2f42b9039b/logs", 200, example("LogPage")),
    ]
}

const OWN: [(&str, &str); 1] = [("origin", ORIGIN)];

#[tokio::test]
async fn a_page_is_read_from_the_api_with_the_persons_own_token() {
    let (address, requests) = serve(answers()).await;
    let world = World::of(&address);
    let cookie = world.sign_in("ana").await;

    let page = world.get("/installs/globex", &cookie).await;

    assert_eq!(page.status, 200, "{}", page.body);
    assert!(page.body.contains("<h1>Install globex</h1>") && page.body.contains("<summary>Deploy…</summary>"));
    let requests = requests.lock().unwrap();
    assert!(requests.iter().all(|request| request.contains("authorization: bearer access-1\r\n")), "{requests:?}");
    assert_eq!(requests.len(), 5, "{requests:?}");
}

#[tokio::test]
async fn a_form_is_one_call_with_its_own_idempotency_key() {
    let (address, requests) = serve(answers()).await;
    let world = World::of(&address);
    let cookie = world.sign_in("ana").await;
    let form = format!("csrf={}&key=page-1-abc&confirmed=yes", world.form_token(&cookie).await);

    let done = world.post("/installs/globex/deploy", &form, &OWN, &cookie).await;
    let asked = world.post("/installs/globex/deploy", &form.replace("yes", "no"), &OWN, &cookie).await;

    assert_eq!(done.status, 303, "{}", done.body);
    assert!(header(&done, "location").unwrap().starts_with("/workflows/"));
    assert_eq!(asked.status, 400, "{}", asked.body);
    let requests = requests.lock().unwrap();
    assert!(requests.len() == 1 && requests[0].contains("idempotency-key: page-1-abc\r\n"), "{requests:?}");
}

#[tokio::test]
async fn what_the_api_refuses_is_shown_with_its_reason() {
    let denied = r#"{"error":{"kind":"forbidden","message":"`ana` may not <b>deploy</b>; ask ben"}}"#;
    let mut answers = answers();
    answers.insert(0, ("POST /people/v1/installs/globex/deploys ", 403, denied.to_owned()));
    let (address, _) = serve(answers).await;
    let world = World::of(&address);
    let cookie = world.sign_in("ana").await;
    let form = format!("csrf={}&key=k&confirmed=yes", world.form_token(&cookie).await);

    let refused = world.post("/installs/globex/deploy", &form, &OWN, &cookie).await;

    assert_eq!(refused.status, 403);
    assert!(refused.body.contains("`ana` may not &lt;b&gt;deploy&lt;/b&gt;; ask ben"), "{}", refused.body);
}

#[tokio::test]
async fn somebody_who_is_not_a_member_gets_only_their_account() {
    let mut nobody = caller();
    nobody["is_member"] = false.into();
    let (address, requests) = serve(vec![("GET /people/v1/caller ", 200, nobody.to_string())]).await;
    let world = World::of(&address);
    let cookie = world.sign_in("eve").await;

    let page = world.get("/installs", &cookie).await;
    let account = world.get("/account", &cookie).await;

    assert_eq!((page.status, header(&page, "location")), (303, Some("/account")));
    assert!(account.body.contains("Accept an invitation") && !account.body.contains("href=\"/installs\""));
    assert_eq!(requests.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn a_page_that_polls_does_not_keep_its_session_alive() {
    let (address, _) = serve(answers()).await;
    let world = World::of(&address);
    let cookie = world.sign_in("ana").await;

    world.memory.advance_secs(IDLE_SECS - 1);
    let live = world.get("/jobs/job_4b5e57f6eb2f42b9039b/live?since=x", &cookie).await;
    world.memory.advance_secs(1);

    assert_eq!((live.status, header(&live, "content-type")), (200, Some("application/json")));
    let live: serde_json::Value = serde_json::from_str(&live.body).unwrap();
    assert_eq!((live["text"].as_str(), live["ended"].as_bool()), (Some("image copied\n"), Some(true)));
    assert!(!world.is_signed_in(&cookie).await);
}
