//! Requests and answers, against a server on loopback that gives prepared answers and records the requests.

#![cfg(test)]

use std::sync::{Arc, Mutex};

use aws_config::{Region, SdkConfig};
use aws_credential_types::Credentials;
use aws_credential_types::provider::SharedCredentialsProvider;
use freehold_client::{ApiError, Client, Error, Token, TokenKind, TokenSource, Webhook, calls};
use freehold_protocol::api::{CallWebhookRequest, DeployComponentsRequest, ErrorKind};
use freehold_protocol::{AppName, InstallId};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use url::Url;

type Requests = Arc<Mutex<Vec<String>>>;

/// Starts a server that gives `answers` in turn; returns its address and the requests it got.
async fn server(answers: Vec<(u16, String)>) -> (Url, Requests) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = format!("http://127.0.0.1:{}", listener.local_addr().unwrap().port());
    let asked = Requests::default();
    let kept = Arc::clone(&asked);
    tokio::spawn(async move {
        for (status, body) in answers {
            let (mut stream, _) = listener.accept().await.unwrap();
            let request = request(&mut stream).await;
            kept.lock().unwrap().push(request);
            let length = format!("content-length: {}\r\nconnection: close", body.len());
            let head = format!("HTTP/1.1 {status} X\r\napigw-requestid: id-{status}\r\n{length}\r\n\r\n");
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

fn client(base: Url) -> Client {
    let credentials = Credentials::new("AKID", "secret", Some("session".into()), None, "test");
    let config = SdkConfig::builder()
        .region(Region::new("eu-west-1"))
        .credentials_provider(SharedCredentialsProvider::new(credentials))
        .build();
    Client::new(&config, base).unwrap()
}

/// Starts a server with `answers`, and returns a client of it and the requests it got.
async fn client_with(answers: &[(u16, &str)]) -> (Client, Requests) {
    let (base, asked) = server(answers.iter().map(|(status, body)| (*status, (*body).to_owned())).collect()).await;
    (client(base), asked)
}

fn header<'a>(request: &'a str, name: &str) -> &'a str {
    request.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().trim_start_matches(": ")
}

fn globex() -> InstallId {
    "globex".parse().unwrap()
}

const BUSY: &str = r#"{"error":{"kind":"transient","message":"busy; try again"}}"#;
const STARTED: &str = r#"{"workflow":"wf_00000000000000000001"}"#;

#[tokio::test]
async fn all_tries_of_a_post_are_signed_and_carry_one_key() {
    let (client, asked) = client_with(&[(503, BUSY), (502, ""), (200, STARTED)]).await;

    let started = client.deploy_components(&globex(), &DeployComponentsRequest::default()).await.unwrap();

    assert_eq!(started.workflow.as_str(), "wf_00000000000000000001");
    let asked = asked.lock().unwrap();
    assert_eq!(asked.len(), 3);
    let key = header(&asked[0], "idempotency-key");
    assert_eq!(key.len(), 32);
    for request in asked.iter() {
        assert!(request.starts_with("post /v1/installs/globex/deploys http/1.1"), "{request}");
        assert_eq!(header(request, "idempotency-key"), key);
        assert_eq!(header(request, "x-amz-security-token"), "session");
        let signature = header(request, "authorization");
        assert!(signature.contains("/eu-west-1/execute-api/aws4_request"), "{signature}");
        assert!(signature.contains("idempotency-key"), "the key is not signed: {signature}");
    }
}

#[tokio::test]
async fn a_call_that_is_sent_twice_with_a_key_carries_it_twice() {
    let (client, asked) = client_with(&[(200, STARTED), (200, STARTED)]).await;
    let call = calls::deploy_components(&globex(), &DeployComponentsRequest::default()).with_key("release-812");

    client.send(&call).await.unwrap();
    client.send(&call).await.unwrap();

    let asked = asked.lock().unwrap();
    let keys: Vec<&str> = asked.iter().map(|request| header(request, "idempotency-key")).collect();
    assert_eq!(keys, ["release-812", "release-812"]);
}

#[tokio::test]
async fn an_error_of_the_api_is_a_value_and_is_returned_at_once() {
    let conflict = r#"{"error":{"kind":"conflict","message":"install `globex` is busy; wait for `wf_1`"}}"#;
    let (client, asked) = client_with(&[(409, conflict)]).await;

    let error = client.show_install(&globex()).await.unwrap_err();

    let Error::Api(error) = error else { panic!("the error is not of the API") };
    assert_eq!(
        error,
        ApiError {
            kind: ErrorKind::Conflict,
            message: "install `globex` is busy; wait for `wf_1`".to_owned(),
            soon: false,
            status: 409,
            request_id: Some("id-409".to_owned()),
        }
    );
    assert_eq!(asked.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_call_without_an_answer_names_the_address() {
    let free = TcpListener::bind(("127.0.0.1", 0)).await.unwrap().local_addr().unwrap();
    tokio::time::pause();

    let error = client(format!("http://{free}").parse().unwrap()).list_apps().await.unwrap_err();

    assert!(error.may_succeed_later());
    assert!(error.to_string().starts_with(&format!("no server responds at http://{free}/ (")), "{error}");
}

/// Returns an app as a list has it.
fn app(name: &str) -> serde_json::Value {
    serde_json::json!({ "app": name, "latest": format!("sha256:{}", "0".repeat(64)), "number": 1, "updated_at": 1 })
}

fn page(apps: &[&str], next: Option<&str>) -> (u16, String) {
    let items: Vec<_> = apps.iter().map(|name| app(name)).collect();
    (200, serde_json::json!({ "items": items, "next": next }).to_string())
}

#[tokio::test]
async fn a_list_is_read_page_by_page_or_as_a_whole() {
    let pages = [page(&["web", "shop"], Some("app#shop")), page(&["mail"], None)];
    let (base, asked) = server([pages.clone(), pages].concat()).await;
    let client = client(base);

    let mut read = client.pages(calls::list_apps());
    let mut sizes = Vec::new();
    while let Some(page) = read.next().await.unwrap() {
        sizes.push(page.items.len());
    }
    let all = client.all(calls::list_apps()).await.unwrap();

    let names: Vec<&str> = all.items.iter().map(|one| one.app.as_str()).collect();
    assert_eq!((sizes, names, all.next), (vec![2, 1], vec!["web", "shop", "mail"], None));
    let asked = asked.lock().unwrap();
    assert!(asked[0].starts_with("get /v1/apps http/1.1"), "{asked:?}");
    assert!(asked[1].starts_with("get /v1/apps?after=app%23shop http/1.1"), "{asked:?}");
}

#[tokio::test]
async fn a_list_whose_next_page_is_the_same_page_ends_with_an_error() {
    let same = || page(&["web"], Some("app#web"));
    let (base, asked) = server(vec![same(), same()]).await;

    let ended = client(base).all(calls::list_apps()).await;

    assert!(matches!(ended, Err(Error::RepeatedPage)), "{ended:?}");
    assert_eq!(asked.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn an_install_is_read_with_all_of_its_components() {
    fn page(component: &str, next: Option<&str>) -> (u16, String) {
        let (digest, job) = (format!("sha256:{}", "0".repeat(64)), "job_00000000000000000001");
        let component =
            serde_json::json!({ "component": component, "artifact": digest, "version": digest, "job": job, "at": 1 });
        let view = serde_json::json!({ "install": "globex", "account": "222222222222", "region": "eu-west-1",
            "state": "ready", "components": [component], "next": next });
        (200, view.to_string())
    }
    let (base, asked) = server(vec![page("api", Some("component#api")), page("web", None)]).await;

    let view = client(base).all(calls::show_install(&globex())).await.unwrap();

    let names: Vec<&str> = view.components.iter().map(|one| one.component.as_str()).collect();
    assert_eq!((names.as_slice(), &view.next), (&["api", "web"][..], &None));
    assert!(asked.lock().unwrap()[1].starts_with("get /v1/installs/globex?after=component%23api "), "{asked:?}");
}

#[tokio::test]
async fn an_upload_is_sent_again_after_a_fault_of_s3_and_not_after_a_refusal() {
    let (client, asked) = client_with(&[(503, ""), (200, ""), (403, "")]).await;
    let address = format!("{}source?signature=abc", client.base());

    client.upload(&address, b"archive").await.unwrap();
    let refused = client.upload(&address, b"archive").await.unwrap_err();

    assert_eq!(refused.to_string(), "S3 refused the upload with 403 Forbidden; ask for another address");
    let asked = asked.lock().unwrap();
    assert_eq!(asked.len(), 3);
    assert!(asked.iter().all(|request| request.ends_with("\r\n\r\narchive")), "{asked:?}");
}

#[tokio::test]
async fn a_webhook_is_called_without_aws_credentials_and_each_try_has_the_same_id() {
    let started = r#"{"started":"workflow","workflow":"wf_00000000000000000001"}"#;
    let forbidden = r#"{"message":"Forbidden"}"#;
    let answers = [(503, BUSY), (200, started), (403, forbidden)].map(|(status, body)| (status, body.to_owned()));
    let (base, asked) = server(answers.to_vec()).await;
    let webhook = Webhook::new(base.join("v1/webhooks/ci/calls").unwrap()).unwrap();
    let (body, key) = (CallWebhookRequest::default(), ed25519_dalek::SigningKey::from_bytes(&[7; 32]));

    webhook.call("build-812", &body, &key).await.unwrap();
    let closed = webhook.call("build-813", &body, &key).await.unwrap_err();

    assert!(matches!(&closed, Error::NoWebhooks(_)), "{closed}");
    let asked = asked.lock().unwrap();
    for request in &asked[..2] {
        assert!(request.starts_with("post /v1/webhooks/ci/calls http/1.1"), "{request}");
        assert_eq!(header(request, "webhook-id"), "build-812");
        assert!(!request.contains("authorization"), "{request}");
    }
}

/// Gives another token for each try, as a source does that renews its token.
#[derive(Debug, Default)]
struct Renewed(Mutex<u32>);

#[async_trait::async_trait]
impl TokenSource for Renewed {
    async fn token(&self) -> Result<Token, Error> {
        let mut count = self.0.lock().unwrap();
        *count += 1;
        Token::new(&format!("token-{count}"))
    }
}

#[tokio::test]
async fn each_try_with_a_token_has_the_newest_one_and_all_have_one_key() {
    let (base, asked) = server(vec![(503, BUSY.to_owned()), (200, STARTED.to_owned())]).await;
    let client = Client::with_token(base.clone(), TokenKind::Person, Arc::new(Renewed::default())).unwrap();

    client.deploy_components(&globex(), &DeployComponentsRequest::default()).await.unwrap();

    assert_eq!(client.base(), &base);
    let asked = asked.lock().unwrap();
    let key = header(&asked[0], "idempotency-key");
    for (request, token) in asked.iter().zip(["bearer token-1", "bearer token-2"]) {
        assert!(request.starts_with("post /people/v1/installs/globex/deploys http/1.1"), "{request}");
        assert_eq!((header(request, "authorization"), header(request, "idempotency-key")), (token, key));
        assert!(!request.contains("x-amz-"), "{request}");
    }
}

#[tokio::test]
async fn an_answer_of_the_gateway_about_a_token_names_the_way_out_and_is_final() {
    let unauthorized = || (401, r#"{"message":"Unauthorized"}"#.to_owned());
    let forbidden = r#"{"error":{"kind":"unauthorized","message":"the API itself refuses"}}"#;
    let (base, asked) = server(vec![unauthorized(), unauthorized(), (403, forbidden.to_owned())]).await;
    let client = |kind| Client::with_token(base.clone(), kind, Arc::new(Token::new("abc").unwrap())).unwrap();

    let person = client(TokenKind::Person).list_apps().await.unwrap_err();
    let pipeline = client(TokenKind::Pipeline).list_apps().await.unwrap_err();
    let own = client(TokenKind::Person).list_apps().await.unwrap_err();

    assert!(person.to_string().ends_with("sign in again, and check that the tenant takes logins of this issuer"));
    assert!(matches!(&pipeline, Error::TokenRefused { kind: TokenKind::Pipeline, .. }), "{pipeline}");
    assert_eq!((person.kind(), pipeline.request_id()), (ErrorKind::Unauthorized, Some("id-401")));
    assert_eq!(own.to_string(), "the API itself refuses");
    let asked = asked.lock().unwrap();
    assert_eq!(asked.len(), 3);
    assert!(asked[1].starts_with("get /pipelines/v1/apps http/1.1"), "{asked:?}");
}

/// A program may send calls from a task of its own.
#[tokio::test]
async fn the_future_of_a_call_may_move_to_another_thread() {
    fn is_send<T: Send>(value: T) -> T {
        value
    }
    let shown = app("web").to_string();
    let (client, _) = client_with(&[(200, shown.as_str())]).await;
    let app: AppName = "web".parse().unwrap();

    let view = is_send(client.show_app(&app)).await.unwrap();

    assert_eq!(view.app, app);
}
