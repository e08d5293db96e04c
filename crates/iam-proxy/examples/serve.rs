//! Serves the IAM proxy as the runner does, for the checks in `tests/iam_calls`. The only argument is the install, as
//! JSON; the credentials of the job's mode come from the environment. Prints the proxy's address, then each record.
//! Prints each line of standard input again, after all records of earlier responses. When standard input ends, prints
//! the actions that were used.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anyhow::Context as _;
use aws_credential_types::Credentials;
use aws_credential_types::provider::SharedCredentialsProvider;
use freehold_iam_proxy::{Change, Endpoint, Install, Proxy, Recorder, Stage, Upstream, Used};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::net::TcpListener;

#[derive(Deserialize)]
struct Arguments {
    iam: String,
    eks: String,
    account: String,
    region: String,
    path: String,
    prefix: String,
    boundary: String,
    tags: BTreeMap<String, String>,
    stack_roles: BTreeSet<String>,
}

#[derive(Debug)]
struct Printed;

#[async_trait::async_trait]
impl Recorder for Printed {
    async fn record(&self, change: Change) -> Result<(), String> {
        let (stage, says) = match change.stage {
            Stage::Announced => ("announced", String::new()),
            Stage::Made => ("made", String::new()),
            Stage::Failed { code } => ("failed", code),
            Stage::Held { instead } => ("held", instead),
            Stage::Refused { reason } => ("refused", reason),
        };
        println!("{}", json!({ "action": change.action, "resource": change.resource, "stage": stage, "says": says }));
        Ok(())
    }

    async fn record_used(&self, used: BTreeMap<String, Used>) -> Result<(), String> {
        let used = used.into_iter();
        let used: BTreeMap<String, Value> = used
            .map(|(action, used)| (action, json!({ "answered": used.answered, "refused": used.refused })))
            .collect();
        println!("{}", json!({ "used": used }));
        Ok(())
    }
}

fn main() -> anyhow::Result<()> {
    let text = std::env::args().nth(1).context("the install is missing")?;
    let arguments: Arguments = serde_json::from_str(&text)?;
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?.block_on(serve(arguments))
}

async fn serve(arguments: Arguments) -> anyhow::Result<()> {
    let secret = |name: &str| std::env::var(name).with_context(|| format!("`{name}` is not set"));
    let token = std::env::var("AWS_SESSION_TOKEN").ok();
    let keys = Credentials::new(secret("AWS_ACCESS_KEY_ID")?, secret("AWS_SECRET_ACCESS_KEY")?, token, None, "test");
    let region = arguments.region.clone();
    let upstream = Upstream {
        http: freehold_oci::client()?,
        iam: Endpoint { url: arguments.iam.parse()?, region: Endpoint::iam(&region)?.region },
        eks: Endpoint { url: arguments.eks.parse()?, region: region.clone() },
        credentials: SharedCredentialsProvider::new(keys),
    };
    let install = Install {
        partition: "aws".to_owned(),
        account: arguments.account,
        region,
        path: arguments.path,
        prefix: arguments.prefix,
        boundary: arguments.boundary,
        given_tags: arguments.tags.clone(),
        tags: arguments.tags,
        stack_roles: arguments.stack_roles,
    };
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    println!("http://{}", listener.local_addr()?);
    let proxy = Arc::new(Proxy::new(install, upstream, Arc::new(Printed)));
    let serving = tokio::spawn(freehold_iam_proxy::serve(listener, Arc::clone(&proxy)));
    tokio::task::spawn_blocking(repeat_lines).await??;
    serving.abort();
    proxy.finish().await.map_err(anyhow::Error::msg)
}

/// A client that has received a response writes a line, and reads until the line is printed: all records of the
/// response come before this line.
fn repeat_lines() -> std::io::Result<()> {
    for line in std::io::stdin().lines() {
        println!("{}", json!({ "until": line? }));
    }
    Ok(())
}
