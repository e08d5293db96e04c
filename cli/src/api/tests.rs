//! Tests against a server on loopback that gives prepared answers and records the requests.

use std::sync::Mutex;

use freehold_protocol::api::{DeployComponentsRequest, WorkflowStarted};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;

/// Starts a server that gives `answers` in turn; returns its address and the requests it got.
async fn server(answers: Vec<(u16, &'static str)>) -> (Url, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = format!("http://api.localhost:{}", listener.local_addr().unwrap().port());
    let asked = Arc::new(Mutex::new(Vec::new()));
    let kept = asked.clone();
    tokio::spawn(async move {
        for (status, body) in answers {
            let (mut stream, _) = listener.accept().await.unwrap();
            let request = request(&mut stream).await;
            kept.lock().unwrap().push(request);
            let head = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
            stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
        }
    });
    (address.parse().unwrap(), asked)
}

async fn request(stream: &mut tokio::net::TcpStream) -> String {
    let mut bytes = Vec::new();
    loop {
        let mut part = [0; 4096];
        let count = stream.read(&mut part).await.unwrap();
        bytes.extend(&part[..count]);
        let text = String::from_utf8_lossy(&bytes);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            if body.len() >= length.map_or(0, |n| n.parse().unwrap()) {
                return text.to_ascii_lowercase();
            }
        }
    }
}

async fn api(base: Url) -> Api {
    let credentials = aws_credential_types::Credentials::new("AKID", "secret", Some("session".into()), None, "test");
    let config = SdkConfig::builder()
        .region(aws_config::Region::new("eu-west-1"))
        .credentials_provider(aws_credential_types::provider::SharedCredentialsProvider::new(credentials))
        .build();
    let profile = Profile { api: Some(base), tenant: None, idempotency_key: Some("key-7".into()) };
    Api::connect(&profile, &config).await.unwrap()
}

fn deploy() -> Call<WorkflowStarted> {
    calls::deploy_components(&"globex".parse().unwrap(), &DeployComponentsRequest::default())
}

#[tokio::test]
async fn all_calls_of_one_invocation_have_its_key_and_parts_have_it_with_their_name() {
    let started = r#"{"workflow":"wf_00000000000000000001"}"#;
    let (base, asked) = server(vec![(200, started), (200, started)]).await;
    let api = api(base).await;

    api.send(deploy()).await.unwrap();
    api.send_part(deploy(), "globex").await.unwrap();

    let asked = asked.lock().unwrap();
    let keys =
        asked.iter().filter_map(|request| request.lines().find_map(|line| line.strip_prefix("idempotency-key: ")));
    assert_eq!(keys.collect::<Vec<_>>(), ["key-7", "key-7.globex"]);
}

#[tokio::test]
async fn the_error_of_a_post_that_may_have_been_carried_out_names_its_key() {
    async fn way_out(answers: Vec<(u16, &'static str)>) -> String {
        let (base, _) = server(answers).await;
        let error = api(base).await.send(deploy()).await.unwrap_err();
        error.way_out().unwrap_or_default().to_owned()
    }
    let denied = r#"{"error":{"kind":"unauthorized","message":"no signature; sign it"}}"#;

    assert_eq!(
        way_out(vec![(504, ""); 5]).await,
        "check whether it was before you try again, and use `--idempotency-key key-7` in the next try, so that nothing is \
         started twice"
    );
    assert_eq!(way_out(vec![(401, denied)]).await, "sign it");
}

#[tokio::test]
async fn a_request_that_is_still_being_performed_names_its_key() {
    let (base, _) = server(Vec::new()).await;
    let busy = br#"{"error":{"kind":"transient","message":"`key-7` is being performed; try again","soon":true}}"#;

    let error = api(base).await.with_key(ClientError::of_answer(503, None, busy).into());

    assert_eq!(
        error.to_string(),
        "`key-7` is being performed; run the command again with `--idempotency-key key-7`, so that nothing is started twice"
    );
}

#[tokio::test]
async fn a_conflict_is_reported_at_once_with_the_apis_message() {
    let conflict = r#"{"error":{"kind":"conflict","message":"install `globex` is busy; wait for `wf_1`"}}"#;
    let (base, asked) = server(vec![(409, conflict)]).await;

    let error = api(base).await.send(calls::show_install(&"globex".parse().unwrap())).await.unwrap_err();

    assert_eq!(
        (error.kind().exit_code(), error.to_string().as_str()),
        (4, "install `globex` is busy; wait for `wf_1`")
    );
    assert_eq!(asked.lock().unwrap().len(), 1);
}

#[test]
fn an_idempotency_key_with_a_line_end_is_refused() {
    assert!(checked_key("deploy-7").is_ok());
    assert!(checked_key("a\nb").is_err());
    assert!(checked_key("").is_err());
}
