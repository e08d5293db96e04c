//! What a client sees of the server when IAM, the audit or the client itself does not do its part.

#![cfg(test)]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use aws_credential_types::Credentials;
use aws_credential_types::provider::SharedCredentialsProvider;
use freehold_iam_proxy::{Change, ClusterOwner, Endpoint, Install, Proxy, Recorder, Stage, Upstream, Used};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

const CREATE: &str = "Action=CreateRole&Version=2010-05-08&RoleName=a&AssumeRolePolicyDocument=%7B%22Statement%22%3A%5B%7B%22\
                      Effect%22%3A%22Allow%22%2C%22Principal%22%3A%7B%22Service%22%3A%22ec2.amazonaws.com%22%7D%2C%22Action%22\
                      %3A%22sts%3AAssumeRole%22%7D%5D%7D";

/// Keeps what is recorded; is full when it is told so.
#[derive(Debug, Default)]
struct Kept {
    changes: Mutex<Vec<Change>>,
    used: Mutex<BTreeMap<String, Used>>,
    full: bool,
}

#[async_trait]
impl Recorder for Kept {
    async fn record(&self, change: Change) -> Result<(), String> {
        if self.full {
            return Err("no space is left".to_owned());
        }
        self.changes.lock().unwrap().push(change);
        Ok(())
    }

    async fn record_used(&self, used: BTreeMap<String, Used>) -> Result<(), String> {
        *self.used.lock().unwrap() = used;
        Ok(())
    }
}

/// An IAM that gives one answer to everything, and keeps what it was sent.
struct Iam {
    address: String,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Iam {
    async fn start(answer: &str) -> Self {
        let answer = answer.to_owned();
        Self::answering(move |_| answer.clone()).await
    }

    /// An IAM or EKS whose answer depends on the request.
    async fn answering(answer: impl Fn(&str) -> String + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&seen);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let request = whole(&mut stream).await;
                let answer = answer(&request);
                kept.lock().unwrap().push(request);
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        });
        Self { address, seen }
    }

    fn bodies(&self) -> Vec<String> {
        let seen = self.seen.lock().unwrap();
        seen.iter().map(|request| request.split_once("\r\n\r\n").unwrap().1.to_owned()).collect()
    }
}

/// Reads a request to the end of its body.
async fn whole(stream: &mut TcpStream) -> String {
    let mut text = String::new();
    let mut chunk = [0; 4096];
    loop {
        let read = stream.read(&mut chunk).await.unwrap_or(0);
        text.push_str(&String::from_utf8_lossy(&chunk[..read]));
        let length = text
            .to_ascii_lowercase()
            .split("content-length: ")
            .nth(1)
            .and_then(|rest| rest.lines().next()?.parse().ok());
        let body = text.split_once("\r\n\r\n").map(|(_, body)| body.len());
        if read == 0 || body.is_some_and(|body| body >= length.unwrap_or(0)) {
            return text;
        }
    }
}

/// Starts to serve for an IAM at `iam` and returns what is served, with its address.
async fn serve(iam: &str, recorder: Arc<Kept>) -> (Arc<Proxy>, String) {
    let install = Install {
        partition: "aws".into(),
        account: "222222222222".into(),
        region: "eu-west-1".into(),
        path: "/freehold/acme--globex/".into(),
        prefix: "acme--globex--".into(),
        boundary: "arn:aws:iam::222222222222:policy/fh-acme--globex--boundary".into(),
        tags: BTreeMap::from([("freehold:install".to_owned(), "globex".to_owned())]),
        given_tags: BTreeMap::new(),
        stack_roles: BTreeSet::new(),
    };
    let endpoint = Endpoint { url: format!("http://{iam}/").parse().unwrap(), region: "us-east-1".into() };
    let keys = Credentials::new("AKIDOFTHEMODE", "secret", Some("token".into()), None, "test");
    let upstream = Upstream {
        http: freehold_oci::client().unwrap(),
        iam: endpoint.clone(),
        eks: endpoint,
        credentials: SharedCredentialsProvider::new(keys),
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let proxy = Arc::new(Proxy::new(install, upstream, recorder));
    tokio::spawn(freehold_iam_proxy::serve(listener, Arc::clone(&proxy)));
    (proxy, address)
}

/// Sends raw bytes and returns everything that comes back.
async fn raw(address: &str, request: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    // The server may close before it has read all of a hostile request.
    let _ = stream.write_all(request.as_bytes()).await;
    let mut all = Vec::new();
    let _ = stream.read_to_end(&mut all).await;
    String::from_utf8_lossy(&all).into_owned()
}

async fn post(address: &str, body: &str) -> String {
    let length = body.len();
    raw(
        address,
        &format!("POST / HTTP/1.1\r\nhost: iam\r\nauthorization: of the job\r\ncontent-length: {length}\r\n\r\n{body}"),
    )
    .await
}

const MADE: &str = "HTTP/1.1 200 OK\r\ncontent-length: 21\r\nconnection: close\r\n\r\n<CreateRoleResponse/>";

#[tokio::test]
async fn a_change_is_signed_by_the_mode_and_recorded_before_and_after() {
    let iam = Iam::start(MADE).await;
    let recorder = Arc::new(Kept::default());
    let (proxy, address) = serve(&iam.address, Arc::clone(&recorder)).await;

    let answer = post(&address, CREATE).await;

    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let request = iam.seen.lock().unwrap()[0].clone();
    assert!(request.contains("Credential=AKIDOFTHEMODE/") && !request.contains("of the job"), "{request}");
    let stages: Vec<Stage> = recorder.changes.lock().unwrap().iter().map(|change| change.stage.clone()).collect();
    assert_eq!(stages, [Stage::Announced, Stage::Made]);
    proxy.finish().await.unwrap();
    assert_eq!(recorder.used.lock().unwrap()["CreateRole"].answered, 1);
}

#[tokio::test]
async fn a_change_that_cannot_be_recorded_is_not_made() {
    let iam = Iam::start(MADE).await;
    let (_proxy, address) = serve(&iam.address, Arc::new(Kept { full: true, ..Kept::default() })).await;

    let answer = post(&address, CREATE).await;

    assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("cannot record the change"), "{answer}");
    assert_eq!(iam.bodies(), Vec::<String>::new());
}

#[tokio::test]
async fn an_iam_that_is_not_there_is_asked_once_and_the_client_may_try_again() {
    let recorder = Arc::new(Kept::default());
    let (_proxy, address) = serve("127.0.0.1:1", Arc::clone(&recorder)).await;

    let answer = post(&address, CREATE).await;

    assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("<Code>ServiceUnavailable</Code>"), "{answer}");
    let last = recorder.changes.lock().unwrap().last().unwrap().stage.clone();
    assert_eq!(last, Stage::Failed { code: "ServiceUnavailable".into() });
}

#[tokio::test]
async fn what_a_job_makes_up_does_not_make_a_record_long() {
    let iam = Iam::start(MADE).await;
    let recorder = Arc::new(Kept::default());
    let (proxy, address) = serve(&iam.address, Arc::clone(&recorder)).await;
    let long = "x".repeat(100_000);

    post(&address, &format!("Action={long}&Version=2010-05-08&RoleName={long}")).await;
    post(&address, &format!("Action=CreateRole&Version=2010-05-08&RoleName={long}&{long}=1")).await;
    proxy.finish().await.unwrap();

    let kept = format!("{:?}{:?}", recorder.changes.lock().unwrap(), recorder.used.lock().unwrap());
    assert!(kept.len() < 5_000, "{} bytes", kept.len());
}

#[tokio::test]
async fn an_error_of_iam_arrives_as_it_was_sent() {
    let error = "<ErrorResponse><Error><Code>EntityAlreadyExists</Code></Error>\n</ErrorResponse>";
    let head = format!("HTTP/1.1 409 Conflict\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", error.len());
    let iam = Iam::start(&format!("{head}{error}")).await;
    let (_proxy, address) = serve(&iam.address, Arc::default()).await;

    let answer = post(&address, CREATE).await;

    assert!(answer.starts_with("HTTP/1.1 409") && answer.ends_with(error), "{answer}");
}

#[tokio::test]
async fn a_list_by_path_is_asked_for_below_the_installs() {
    let iam = Iam::start(MADE).await;
    let (_proxy, address) = serve(&iam.address, Arc::default()).await;

    for prefix in ["/team/", "/", "/aws-reserved/sso.amazonaws.com/"] {
        post(&address, &format!("Action=ListRoles&Version=2010-05-08&PathPrefix={prefix}")).await;
    }

    let asked: Vec<String> =
        iam.bodies().iter().map(|body| body.split("PathPrefix=").nth(1).unwrap().replace("%2F", "/")).collect();
    assert_eq!(asked, ["/freehold/acme--globex/team/", "/", "/aws-reserved/sso.amazonaws.com/"]);
}

#[tokio::test]
async fn what_is_not_a_request_of_iam_is_refused_and_goes_nowhere() {
    let iam = Iam::start(MADE).await;
    let (_proxy, address) = serve(&iam.address, Arc::default()).await;
    let large = "x".repeat(1024 * 1024 + 1);
    let cases = [
        ("a query in the address", "GET /?Action=ListRoles&Version=2010-05-08 HTTP/1.1\r\nhost: a\r\n\r\n".to_owned()),
        ("another path", "POST /latest HTTP/1.1\r\nhost: a\r\ncontent-length: 0\r\n\r\n".to_owned()),
        ("an empty form", "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 0\r\n\r\n".to_owned()),
        (
            "a form that is too large",
            format!("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: {}\r\n\r\n{large}", large.len()),
        ),
        ("bytes that are not HTTP", "\u{0}\u{1}\r\n\r\n".to_owned()),
        ("two lengths", "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\ncontent-length: 4\r\n\r\nabcd".to_owned()),
    ];

    for (what, request) in cases {
        let answer = raw(&address, &request).await;

        assert!(!answer.starts_with("HTTP/1.1 200"), "{what}: {answer}");
    }
    assert_eq!(iam.bodies(), Vec::<String>::new());
}

#[tokio::test]
async fn a_connection_too_many_is_told_to_come_again_and_the_next_after_that_is_served() {
    let iam = Iam::start(MADE).await;
    let (_proxy, address) = serve(&iam.address, Arc::default()).await;
    let mut open = Vec::new();
    for _ in 0..64 {
        open.push(TcpStream::connect(&address).await.unwrap());
    }

    let refused = post(&address, "Action=ListRoles&Version=2010-05-08").await;
    drop(open);
    let mut served = post(&address, "Action=ListRoles&Version=2010-05-08").await;
    while served.starts_with("HTTP/1.1 503") {
        served = post(&address, "Action=ListRoles&Version=2010-05-08").await;
    }

    assert!(refused.starts_with("HTTP/1.1 503") && refused.contains("retry-after: 1"), "{refused}");
    assert!(served.starts_with("HTTP/1.1 200"), "{served}");
}

/// An EKS with two clusters: `own`, which has the owner tag of the install, and `other`. A third one is deleted after it
/// was listed.
fn eks(request: &str) -> String {
    let cluster = |tags: &str, endpoint: &str| format!(r#"{{"cluster":{{"name":"x",{endpoint}"tags":{{{tags}}}}}}}"#);
    let body = match request.split(' ').nth(1).unwrap() {
        "/clusters" => r#"{"clusters":["other"],"nextToken":"2"}"#.to_owned(),
        "/clusters?nextToken=2" => r#"{"clusters":["own","gone"]}"#.to_owned(),
        "/clusters/own" => cluster(r#""freehold:owner":"acme--globex""#, r#""endpoint":"https://A1.EXAMPLE","#),
        "/clusters/other" => cluster("", r#""endpoint":"https://b2.example","#),
        _ => return "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".to_owned(),
    };
    let length = body.len();
    format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}")
}

#[tokio::test]
async fn an_endpoint_belongs_to_the_install_to_another_of_the_account_or_to_a_stranger() {
    let eks = Iam::answering(eks).await;
    let (proxy, _) = serve(&eks.address, Arc::new(Kept::default())).await;
    let at = |name: &'static str| proxy.owner_of_cluster_at(name);

    assert_eq!(at("a1.example").await, Ok(Some(ClusterOwner::Install)));
    assert_eq!(at("b2.example").await, Ok(Some(ClusterOwner::Other)));
    let calls = eks.seen.lock().unwrap().len();
    assert_eq!(calls, 5, "two pages and three clusters, once for both endpoints");
    assert_eq!(at("c3.example").await, Ok(None));
    assert_eq!(eks.seen.lock().unwrap().len(), 2 * calls, "a new cluster is found because EKS is asked again");
}

#[tokio::test]
async fn a_mode_that_may_not_list_clusters_gets_the_way_out() {
    let denied = "HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    let eks = Iam::start(denied).await;
    let (proxy, _) = serve(&eks.address, Arc::new(Kept::default())).await;

    let why = proxy.owner_of_cluster_at("a1.example").await.unwrap_err();

    assert!(why.contains("EKS returned 403; allow `eks:ListClusters` and `eks:DescribeCluster`"), "{why}");
}
