//! Tests against a server on loopback that gives prepared answers and records the requests.

use std::sync::{Arc, Mutex};

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

fn header<'a>(request: &'a str, name: &str) -> &'a str {
    request.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().trim_start_matches(": ")
}

#[tokio::test]
async fn a_retried_post_is_signed_and_carries_the_same_key() {
    let busy = r#"{"error":{"kind":"transient","message":"busy; try again"}}"#;
    let (base, asked) = server(vec![(503, busy), (502, ""), (200, r#"{"workflow":"wf_00000000000000000001"}"#)]).await;

    let started: freehold_protocol::api::WorkflowStarted =
        api(base).await.post(&["v1", "installs", "globex", "deploys"], &serde_json::json!({})).await.unwrap();

    assert_eq!(started.workflow.as_str(), "wf_00000000000000000001");
    let asked = asked.lock().unwrap();
    assert_eq!(asked.len(), 3);
    for request in asked.iter() {
        assert!(request.starts_with("post /v1/installs/globex/deploys http/1.1"), "{request}");
        assert_eq!(header(request, "idempotency-key"), "key-7");
        let signature = header(request, "authorization");
        assert!(signature.contains("/eu-west-1/execute-api/aws4_request"), "{signature}");
        assert!(signature.contains("idempotency-key"), "the key is not signed: {signature}");
        assert_eq!(header(request, "x-amz-security-token"), "session");
    }
}

#[tokio::test]
async fn the_error_of_a_post_that_may_have_been_carried_out_names_its_key() {
    async fn way_out(answers: Vec<(u16, &'static str)>) -> String {
        let (base, _) = server(answers).await;
        let path = ["v1", "installs", "globex", "deploys"];
        let error = api(base).await.post::<_, serde_json::Value>(&path, &serde_json::json!({})).await.unwrap_err();
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

    let error = api(base).await.with_key(Error::from_api(503, busy));

    assert_eq!(
        error.to_string(),
        "`key-7` is being performed; run the command again with `--idempotency-key key-7`, so that nothing is started twice"
    );
}

#[tokio::test]
async fn a_conflict_is_reported_at_once_with_the_apis_message() {
    let conflict = r#"{"error":{"kind":"conflict","message":"install `globex` is busy; wait for `wf_1`"}}"#;
    let (base, asked) = server(vec![(409, conflict)]).await;

    let error = api(base).await.get::<serde_json::Value>(&["v1", "installs", "globex"]).await.unwrap_err();

    assert_eq!(
        (error.kind().exit_code(), error.to_string().as_str()),
        (4, "install `globex` is busy; wait for `wf_1`")
    );
    assert_eq!(asked.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_list_is_read_to_its_last_page() {
    let (base, asked) = server(vec![(200, r#"{"items":[1,2],"next":"a b"}"#), (200, r#"{"items":[3]}"#)]).await;

    let items: Vec<u32> = api(base).await.list(&["v1", "apps"]).await.unwrap();

    assert_eq!(items, [1, 2, 3]);
    assert!(asked.lock().unwrap()[1].starts_with("get /v1/apps?after=a+b "), "{asked:?}");
}

#[tokio::test]
async fn an_install_is_read_with_all_of_its_components() {
    fn page(component: &str, next: &str) -> (u16, &'static str) {
        let (digest, job) = (format!("sha256:{}", "0".repeat(64)), "job_00000000000000000001");
        let component =
            serde_json::json!({ "component": component, "artifact": digest, "version": digest, "job": job, "at": 1 });
        let mut view = serde_json::json!({ "install": "globex", "account": "222222222222", "region": "eu-west-1",
            "state": "ready", "components": [component] });
        if !next.is_empty() {
            view["next"] = next.into();
        }
        let body: &'static str = view.to_string().leak();
        (200, body)
    }
    let (base, asked) = server(vec![page("api", "component#api"), page("web", "")]).await;

    let view = api(base).await.install(&"globex".parse().unwrap()).await.unwrap();

    let names: Vec<&str> = view.components.iter().map(|one| one.component.as_str()).collect();
    assert_eq!((names.as_slice(), &view.next), (&["api", "web"][..], &None));
    assert!(asked.lock().unwrap()[1].starts_with("get /v1/installs/globex?after=component%23api "), "{asked:?}");
}

#[test]
fn a_defect_of_the_function_is_not_retried_and_a_cut_off_one_is() {
    let own = br#"{"error":{"kind":"internal","message":"a defect"}}"#;

    assert!(!is_transient(StatusCode::INTERNAL_SERVER_ERROR, own));
    assert!(is_transient(StatusCode::INTERNAL_SERVER_ERROR, br#"{"message":"Internal Server Error"}"#));
    assert!(is_transient(StatusCode::SERVICE_UNAVAILABLE, own));
    assert!(!is_transient(StatusCode::CONFLICT, own));
}

#[test]
fn an_idempotency_key_with_a_line_end_is_refused() {
    assert!(checked_key("deploy-7").is_ok());
    assert!(checked_key("a\nb").is_err());
    assert!(checked_key("").is_err());
}

#[tokio::test]
async fn an_upload_is_sent_again_after_a_fault_of_s3_and_not_after_a_refusal() {
    let (base, asked) = server(vec![(503, ""), (200, ""), (403, "")]).await;
    let address = format!("{base}source?signature=abc");
    let api = api(base).await;

    let sent = api.upload(&address, b"archive").await;
    let refused = api.upload(&address, b"archive").await.unwrap_err();

    assert_eq!(sent, Ok(()));
    assert_eq!(refused.to_string(), "S3 refused the upload with 403 Forbidden; run the command again");
    let asked = asked.lock().unwrap();
    assert_eq!(asked.len(), 3);
    assert!(asked.iter().all(|request| request.ends_with("\r\n\r\narchive")), "{asked:?}");
}
