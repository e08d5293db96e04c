//! A CloudFormation for tests, which answers each call by its action.

use aws_sdk_cloudformation::Client;
use aws_sdk_cloudformation::config::{BehaviorVersion, Credentials, Region};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// Serves a CloudFormation and returns its client. `answer` returns the status line and the body for an action.
pub(super) async fn serve(answer: impl Fn(&str) -> (&'static str, String) + Send + 'static) -> Client {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let (mut request, mut have) = (vec![0; 16 * 1024], 0);
            let action = loop {
                let text = String::from_utf8_lossy(&request[..have]).into_owned();
                let action = text.split("Action=").nth(1).and_then(|rest| rest.split_once('&'));
                if let Some((action, _)) = action {
                    break action.to_owned();
                }
                have += stream.read(&mut request[have..]).await.unwrap();
            };
            let (line, body) = answer(&action);
            let head = format!("HTTP/1.1 {line}\r\nconnection: close\r\ncontent-type: text/xml\r\ncontent-length:");
            let _ = stream.write_all(format!("{head} {}\r\n\r\n{body}", body.len()).as_bytes()).await;
        }
    });
    let config = aws_sdk_cloudformation::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("eu-west-1"))
        .endpoint_url(endpoint)
        .http_client(aws_smithy_http_client::Builder::new().build_http())
        .credentials_provider(Credentials::new("a", "b", None, None, "test"));
    Client::from_conf(config.build())
}
