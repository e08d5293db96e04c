//! A tenant with two apps and two installs in memory, and its API behind events as API Gateway sends them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use aws_lambda_events::encodings::Body;
use freehold_app::app_version::versions::Versions;
use freehold_app::ports::{Expect, Key, PortError, RootKey, Store as _, Write};
use freehold_app::testing::Memory;
use freehold_functions::api::{Api, Issuers, Ports};
use freehold_protocol::Envelope;
use freehold_protocol::envelope::PublicKey;
use serde_json::{Value, json};

pub(crate) const PEOPLE_ISSUER: &str = "https://people.example";
pub(crate) const PIPELINE_ISSUER: &str = "https://ci.example";

/// The ids of an install and of what belongs to it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ids {
    pub(crate) app: &'static str,
    pub(crate) install: &'static str,
    /// The ends of the ids of its workflow, job and run.
    end: &'static str,
}

/// An install in production, and one in the environment `staging` of another app.
pub(crate) const GLOBEX: Ids = Ids { app: "demo", install: "globex", end: "00000000000000000001" };
pub(crate) const UMBRELLA: Ids = Ids { app: "shop", install: "umbrella", end: "0000000000000000000f" };
/// Ids that nothing has.
pub(crate) const ABSENT: Ids = Ids { app: "absent-app", install: "absent-install", end: "000000000000000000ff" };

impl Ids {
    /// Returns a text with a word in place of each of these ids.
    pub(crate) fn blanked(&self, text: &str) -> String {
        [self.install, self.app, self.end].iter().fold(text.to_owned(), |text, id| text.replace(id, "ID"))
    }

    /// Returns the path of a route with these ids.
    pub(crate) fn path(&self, route: &str) -> String {
        let digest = format!("sha256:{}", "0".repeat(64));
        let end = self.end;
        let values = [
            ("app", self.app.to_owned()),
            ("install", self.install.to_owned()),
            ("workflow", format!("wf_{end}")),
            ("job", format!("job_{end}")),
            ("run", format!("run_{end}")),
            ("artifact", digest.clone()),
            ("version", digest.clone()),
            ("terms", digest),
        ];
        let filled =
            values.iter().fold(route.to_owned(), |path, (name, value)| path.replace(&format!("{{{name}}}"), value));
        filled.replace(['{', '}'], "")
    }
}

/// Who sends a request, and what the authorizer says of it.
#[derive(Debug, Clone)]
pub(crate) struct Sender {
    pub(crate) prefix: &'static str,
    pub(crate) authorizer: Value,
}

/// Returns a session of a role of the tenant's account.
pub(crate) fn iam() -> Sender {
    let arn = "arn:aws:sts::111111111111:assumed-role/deployer/ana";
    let iam = json!({ "accessKey": "ASIA", "accountId": "111111111111", "callerId": "AROA:ana", "cognitoIdentity": null,
        "principalOrgId": null, "userArn": arn, "userId": "AROA:ana" });
    Sender { prefix: "", authorizer: json!({ "iam": iam }) }
}

fn token(issuer: &str, subject: &str) -> Value {
    json!({ "jwt": { "claims": { "iss": issuer, "sub": subject, "client_id": "console" }, "scopes": null } })
}

pub(crate) fn person(subject: &str) -> Sender {
    Sender { prefix: "/people", authorizer: token(PEOPLE_ISSUER, subject) }
}

pub(crate) fn pipeline(subject: &str) -> Sender {
    Sender { prefix: "/pipelines", authorizer: token(PIPELINE_ISSUER, subject) }
}

struct Root;

#[async_trait]
impl RootKey for Root {
    async fn public_key(&self) -> Result<PublicKey, PortError> {
        Ok(serde_json::from_value(json!("gTl3Dqh9F19Wo1Rmw0x+zMuNipG07jeiXfYPW4/Js5Q=")).unwrap())
    }

    fn succession(&self) -> Vec<Envelope> {
        Vec::new()
    }

    fn second(&self) -> Option<PublicKey> {
        None
    }
}

/// The tenant `acme`.
pub(crate) struct Tenant {
    api: Api,
    pub(crate) memory: Arc<Memory>,
    requests: AtomicU32,
}

impl Tenant {
    pub(crate) async fn new() -> Self {
        let memory = Arc::new(Memory::default());
        for ids in [GLOBEX, UMBRELLA] {
            let _ = memory.commit(rows(ids)).await.unwrap();
        }
        let ports = Ports {
            tenant: "acme".parse().unwrap(),
            account: "111111111111".parse().unwrap(),
            region: "eu-west-1".to_owned(),
            store: memory.clone(),
            versions: Versions::new(memory.clone(), memory.clone()),
            clock: memory.clone(),
            machines: memory.clone(),
            root: Arc::new(Root),
            subscriptions: memory.clone(),
            topic: memory.clone(),
            reports_queue_url: "https://sqs.eu-west-1.amazonaws.com/111111111111/fh-acme--reports".to_owned(),
            build_queue_url: "https://sqs.eu-west-1.amazonaws.com/111111111111/fh-acme--build.fifo".to_owned(),
            has_build_machine: false,
            takes_webhooks: true,
            runner: None,
            issuers: Issuers { people: PEOPLE_ISSUER.to_owned(), pipelines: PIPELINE_ISSUER.to_owned() },
        };
        Self { api: Api::new(ports).unwrap(), memory, requests: AtomicU32::new(0) }
    }

    /// Sends a request with a key of its own, and returns the status and the body of the response.
    pub(crate) async fn send(&self, sender: &Sender, method: &str, path: &str, body: &Value) -> (i64, Value) {
        let key = format!("request-{}", self.requests.fetch_add(1, Ordering::Relaxed));
        self.send_with(sender, (method, path), body, &key).await
    }

    /// Sends a request with this idempotency key.
    pub(crate) async fn send_with(
        &self,
        sender: &Sender,
        (method, path): (&str, &str),
        body: &Value,
        key: &str,
    ) -> (i64, Value) {
        let path = format!("{}{path}", sender.prefix);
        let event = json!({
            "version": "2.0", "routeKey": "$default", "rawPath": path, "rawQueryString": "",
            "headers": { "idempotency-key": key }, "isBase64Encoded": false, "body": body.to_string(),
            "requestContext": {
                "accountId": "111111111111", "apiId": "api", "stage": "$default", "requestId": key,
                "authorizer": sender.authorizer,
                "http": { "method": method, "path": path, "protocol": "HTTP/1.1", "sourceIp": "192.0.2.1",
                    "userAgent": "test" },
                "time": "01/Jan/2026:00:00:00 +0000", "timeEpoch": 1_767_225_600_000_u64,
            },
        });
        let response = self.api.answer(serde_json::from_value(event).unwrap()).await;
        let Some(Body::Text(text)) = response.body else { panic!("no text in the response to {method} {path}") };
        (response.status_code, serde_json::from_str(&text).unwrap())
    }

    /// Gives an install the label `environment`.
    pub(crate) async fn set_environment(&self, install: &str, environment: &str) {
        let pk = format!("install#{install}");
        let row = self.memory.rows().into_iter().find(|row| row.key.pk == pk && row.key.sk == "state").unwrap();
        let mut state: Value = serde_json::from_str(&row.body).unwrap();
        state["labels"] = json!({ "environment": environment });
        let write = Write::Put { key: row.key, body: state.to_string(), expect: Expect::Any, expires: None };
        let _ = self.memory.commit(vec![write]).await.unwrap();
    }

    /// Makes a person with the subject `name` a member with this name.
    pub(crate) async fn join(&self, name: &str, groups: &[&str], limits: &Value) -> Sender {
        let mut request = json!({ "member": name, "groups": groups });
        request.as_object_mut().unwrap().extend(limits.as_object().unwrap().clone());
        let (status, invited) = self.send(&iam(), "POST", "/v1/members", &request).await;
        assert_eq!(status, 200, "{invited}");
        let accept = json!({ "code": invited["code"] });
        let (status, accepted) = self.send(&person(name), "POST", "/v1/invitations/accept", &accept).await;
        assert_eq!((status, accepted["is_member"].as_bool()), (200, Some(true)), "{accepted}");
        person(name)
    }
}

/// Returns the value of a setting of the environment, or the usual one.
pub(crate) fn setting(name: &str, usual: usize) -> usize {
    std::env::var(name).map_or(usual, |value| value.parse().unwrap())
}

/// Returns the rows of an app, an install, and one workflow, job and run of it, made from rows of the golden file.
fn rows(ids: Ids) -> Vec<Write> {
    let golden: Vec<Value> = serde_json::from_str(include_str!("../../../crates/app/golden/rows.json")).unwrap();
    let body_of = |pk: &str, sk: &str| {
        let row = golden.iter().find(|row| row["pk"] == pk && row["sk"] == sk);
        row.unwrap_or_else(|| panic!("no golden row {pk} {sk}"))["body"].clone()
    };
    let Ids { app, install, end } = ids;
    let with = |mut body: Value, fields: &Value| {
        body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        body
    };
    let put = |pk: &str, sk: &str, body: Value| {
        let key = Key { pk: pk.to_owned(), sk: sk.to_owned() };
        Write::Put { key, body: body.to_string(), expect: Expect::Any, expires: None }
    };
    let mut state = body_of("install#globex", "state");
    for field in ["forgetting", "disabled", "live", "checking", "health_check"] {
        state.as_object_mut().unwrap().remove(field);
    }
    let labels = if install == "umbrella" { json!({ "environment": "staging" }) } else { json!({}) };
    let serves = json!({ "serves": "app", "app": app });
    let [workflow, job, run] = ["wf", "job", "run"].map(|kind| format!("{kind}_{end}"));
    let of_job = json!({ "id": job, "install": install, "workflow": workflow });
    vec![
        put("apps", app, with(body_of("apps", "demo"), &json!({ "app": app }))),
        put("installs", install, with(body_of("installs", "globex"), &json!({ "install": install }))),
        put(
            &format!("install#{install}"),
            "state",
            with(state, &json!({ "id": install, "serves": serves, "labels": labels })),
        ),
        put(
            &format!("workflow#{workflow}"),
            "state",
            with(body_of("workflow#wf_00000000000000000009", "state"), &json!({ "id": workflow, "install": install })),
        ),
        put(&format!("job#{job}"), "state", with(body_of("job#job_00000000000000000001", "state"), &of_job)),
        put(
            &format!("run#{run}"),
            "state",
            with(
                body_of("run#run_00000000000000000001", "state"),
                &json!({ "id": run, "install": install, "app": app }),
            ),
        ),
    ]
}
