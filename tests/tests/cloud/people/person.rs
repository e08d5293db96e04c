//! A person with an account in the tenant's user pool, who signs in on its page as a browser does, and has a token.

use anyhow::{Context as _, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use freehold_protocol::Digest;
use freehold_protocol::api::IDEMPOTENCY_KEY;
use freehold_tests::harness::World;
use freehold_tests::harness::web::{Answer, send};
use reqwest::Url;
use serde_json::{Value, json};

const PASSWORD: &str = "Correct horse battery 7!";
/// The code that Cognito would mail; the local cloud has one for all.
const MAILED: &str = "123456";
/// One of the addresses at which `freehold login` waits.
const CALLBACK: &str = "http://localhost:8976/callback";

/// The addresses that a person needs, from the outputs of the tenant's stack.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) api: String,
    pub(super) issuer: String,
    pub(super) client: String,
    /// Where the local cloud serves Cognito.
    cognito: String,
}

impl Place {
    pub(super) async fn of(world: &World) -> anyhow::Result<Self> {
        let status = world.vendor(&["tenant", "status"]).await?;
        let output = |key: &str| {
            let value = status["outputs"][key].as_str().map(str::to_owned);
            value.with_context(|| format!("the tenant's stack has no output `{key}`: {status}"))
        };
        let cognito = world.endpoint().context("a cloud on this machine")?.to_owned();
        let (api, issuer, client) = (output("ApiUrl")?, output("PeopleIssuer")?, output("PeopleClientId")?);
        Ok(Self { api, issuer, client, cognito })
    }

    /// Makes an account, confirms its address and signs in.
    pub(super) async fn sign_up(&self, email: &str) -> anyhow::Result<Person> {
        let account = json!({
            "ClientId": self.client, "Username": email, "Password": PASSWORD,
            "UserAttributes": [{ "Name": "email", "Value": email }],
        });
        self.ask_cognito("SignUp", &account).await?;
        let code = json!({ "ClientId": self.client, "Username": email, "ConfirmationCode": MAILED });
        self.ask_cognito("ConfirmSignUp", &code).await?;
        Ok(Person { api: self.api.clone(), token: self.sign_in(email).await? })
    }

    /// Asks Cognito for what needs no credentials.
    async fn ask_cognito(&self, action: &str, body: &Value) -> anyhow::Result<()> {
        let target = format!("AWSCognitoIdentityProviderService.{action}");
        let headers = [("content-type", "application/x-amz-json-1.1"), ("x-amz-target", target.as_str())];
        let url = format!("{}/", self.cognito);
        let answer = send("POST", &url, &headers, body.to_string().as_bytes()).await?;
        ensure!(answer.status == 200, "{action}: {} {}", answer.status, answer.body);
        Ok(())
    }

    /// Signs in on the pool's page with PKCE, and returns the access token.
    async fn sign_in(&self, email: &str) -> anyhow::Result<String> {
        let pool = self.issuer.rsplit('/').next().unwrap_or_default();
        let configuration = format!("{}/{pool}/.well-known/openid-configuration", self.cognito);
        let found: Value = serde_json::from_str(&send("GET", &configuration, &[], b"").await?.body)?;
        ensure!(found["issuer"] == self.issuer.as_str(), "{found}");
        let page = found["authorization_endpoint"].as_str().context("no sign-in page")?;
        let verifier = "v".repeat(43);
        let challenge = URL_SAFE_NO_PAD.encode(sha256(&verifier));
        let asked = [
            ("client_id", self.client.as_str()),
            ("redirect_uri", CALLBACK),
            ("response_type", "code"),
            ("scope", "openid email"),
            ("state", "one"),
            ("code_challenge", challenge.as_str()),
            ("code_challenge_method", "S256"),
        ];
        let shown = send("GET", Url::parse_with_params(page, &asked)?.as_str(), &[], b"").await?;
        ensure!(shown.body.contains("action=\"/login\""), "not a sign-in page: {}", shown.body);
        let typed = [&asked[..], &[("username", email), ("password", PASSWORD)]].concat();
        let sent = send_form(Url::parse(page)?.join("/login")?.as_str(), &typed).await?;
        let back = Url::parse(&sent.location.with_context(|| format!("the page let nobody in: {}", sent.body))?)?;
        let code = back.query_pairs().find(|(name, _)| name == "code").map(|(_, code)| code.into_owned());
        let code = code.context("no code")?;
        let exchange = [
            ("grant_type", "authorization_code"),
            ("client_id", self.client.as_str()),
            ("redirect_uri", CALLBACK),
            ("code", code.as_str()),
            ("code_verifier", verifier.as_str()),
        ];
        let tokens = send_form(found["token_endpoint"].as_str().context("no token endpoint")?, &exchange).await?;
        let tokens: Value = serde_json::from_str(&tokens.body)?;
        tokens["access_token"].as_str().map(str::to_owned).with_context(|| format!("no access token: {tokens}"))
    }
}

async fn send_form(url: &str, fields: &[(&str, &str)]) -> anyhow::Result<Answer> {
    let form = Url::parse_with_params("http://form.example", fields)?;
    let headers = [("content-type", "application/x-www-form-urlencoded")];
    send("POST", url, &headers, form.query().unwrap_or_default().as_bytes()).await
}

fn sha256(text: &str) -> Vec<u8> {
    let digest = Digest::of(text.as_bytes());
    let hex = digest.hex();
    (0..hex.len()).step_by(2).filter_map(|at| u8::from_str_radix(hex.get(at..at + 2)?, 16).ok()).collect()
}

/// Somebody who has signed in.
#[derive(Debug)]
pub(super) struct Person {
    pub(super) token: String,
    api: String,
}

impl Person {
    pub(super) async fn get(&self, path: &str) -> anyhow::Result<Answer> {
        call(&format!("{}/people{path}", self.api), &self.token, None).await
    }

    pub(super) async fn post(&self, path: &str, body: &Value) -> anyhow::Result<Answer> {
        call(&format!("{}/people{path}", self.api), &self.token, Some(body)).await
    }

    /// Accepts the invitation that `freehold member invite` printed.
    pub(super) async fn accept(&self, invited: &Value) -> anyhow::Result<Answer> {
        self.post("/v1/invitations/accept", &json!({ "code": invited["code"] })).await
    }
}

/// Sends a request with a bearer token; one with a body is a POST.
pub(super) async fn call(url: &str, token: &str, body: Option<&Value>) -> anyhow::Result<Answer> {
    let authorization = format!("Bearer {token}");
    let key = format!("{:016x}", fastrand::u64(..));
    let mut headers = vec![("authorization", authorization.as_str())];
    let Some(body) = body else { return send("GET", url, &headers, b"").await };
    headers.extend([("content-type", "application/json"), (IDEMPOTENCY_KEY, key.as_str())]);
    send("POST", url, &headers, body.to_string().as_bytes()).await
}
