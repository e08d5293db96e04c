//! Stands in for `pulumi` in tests, where Pulumi itself is not available. It has the documented interface of the
//! commands that the runner uses, the state of Pulumi's S3 backend (its checkpoint, written after each change of a
//! resource, and its locks), and the stack's data key of AWS KMS. It is not a part of any release.
//!
//! In place of a program in Go, Python or JavaScript it reads `program.json`:
//! `{"resources": [{"name", "type", "hold"?, "hold_removal"?, "outputs"?, "protect"?}], "outputs": {}, "secrets": []}`. A
//! text `env:NAME` is the environment variable `NAME`, and `config:KEY` the configuration `KEY` of the stack. `hold` and
//! `hold_removal` are the numbers of seconds that the creation and the removal of the resource take.

#![expect(clippy::indexing_slicing, reason = "indexing JSON with a missing key gives null")]

use std::collections::BTreeMap;
use std::error::Error;

use aws_credential_types::Credentials;
use aws_credential_types::provider::SharedCredentialsProvider;
use aws_sdk_s3::Client;
use aws_types::SdkConfig;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::signal::unix::{SignalKind, signal};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const MASK: &str = "[secret]";

#[derive(Debug, Clone, Deserialize)]
struct Program {
    #[serde(default)]
    resources: Vec<Resource>,
    #[serde(default)]
    outputs: BTreeMap<String, Value>,
    #[serde(default)]
    secrets: Vec<String>,
}

#[derive(Debug, Clone, Deserialize)]
struct Resource {
    name: String,
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    hold: Option<String>,
    #[serde(default)]
    hold_removal: Option<String>,
    #[serde(default)]
    outputs: Value,
    #[serde(default)]
    protect: bool,
}

/// The failure of a command that has already printed the reason.
#[derive(Debug)]
struct Failed;

impl std::fmt::Display for Failed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("failed")
    }
}

impl Error for Failed {}

impl Program {
    /// Returns the outputs, with a mask in place of secret values.
    fn masked_outputs(&self) -> Map<String, Value> {
        let masked = self.outputs.iter().map(|(name, value)| {
            let value = if self.secrets.contains(name) { Value::from(MASK) } else { value.clone() };
            (name.clone(), value)
        });
        masked.collect()
    }
}

/// The state of a stack in the bucket that `PULUMI_BACKEND_URL` names.
struct Backend {
    client: Client,
    bucket: String,
    prefix: String,
    project: String,
    stack: String,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::process::ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments).await {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) if error.is::<Failed>() => std::process::ExitCode::from(255),
        Err(error) => {
            eprintln!("error: {}", freehold_aws_errors::chain(&*error));
            std::process::ExitCode::from(255)
        }
    }
}

async fn run(arguments: &[String]) -> Result<()> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).filter(|word| !word.starts_with("--")).collect();
    let option = |name: &str| arguments.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    if words == ["version"] {
        println!("v3.140.0");
        return Ok(());
    }
    if !arguments.iter().any(|word| word == "--non-interactive") {
        return Err("give `--non-interactive`, because this program cannot ask questions".into());
    }
    let stack = if words.starts_with(&["stack", "select"]) { words.get(2).copied() } else { option("--stack") };
    let backend = Backend::open(stack.ok_or("no stack is named")?).await?;
    match words.as_slice() {
        ["stack", "select", _] => backend.create(option("--secrets-provider").ok_or("no `--secrets-provider`")?).await,
        ["stack", "export"] => {
            println!("{}", json!({ "version": 3, "deployment": backend.load().await?["checkpoint"]["latest"] }));
            Ok(())
        }
        ["stack", "output"] => {
            let state = backend.load().await?;
            if arguments.iter().any(|word| word == "--show-secrets") {
                let sealed = state["sealed"].as_str().ok_or("the state has no outputs")?;
                println!("{}", String::from_utf8(STANDARD.decode(sealed)?)?);
            } else {
                println!("{}", state["outputs"]);
            }
            Ok(())
        }
        ["preview"] => {
            let shows_sames = arguments.iter().any(|word| word == "--show-sames");
            backend.preview(option("--save-plan").ok_or("no `--save-plan`")?, shows_sames).await
        }
        ["up"] => backend.up(option("--plan").ok_or("no `--plan`")?).await,
        ["destroy"] => backend.destroy().await,
        other => Err(format!("unknown command {other:?}").into()),
    }
}

impl Backend {
    async fn open(stack: &str) -> Result<Self> {
        let url = std::env::var("PULUMI_BACKEND_URL")?;
        let place = url.strip_prefix("s3://").ok_or("the state is not in S3")?;
        let (place, _) = place.split_once('?').ok_or("the state has no region")?;
        let (bucket, prefix) = place.split_once('/').ok_or("the state has no prefix")?;
        let project = std::fs::read_to_string("Pulumi.yaml")?;
        let project = project.lines().find_map(|line| line.strip_prefix("name: ")).ok_or("no name in Pulumi.yaml")?;
        let sdk = sdk_config().await?;
        let config = aws_sdk_s3::config::Builder::from(&sdk).force_path_style(true).build();
        let backend = Self {
            client: Client::from_conf(config),
            bucket: bucket.to_owned(),
            prefix: prefix.to_owned(),
            project: project.trim().to_owned(),
            stack: stack.to_owned(),
        };
        let meta = format!("{}/.pulumi/meta.yaml", backend.prefix);
        match backend.read(&meta).await? {
            Some(text) if text != b"version: 1\n" => return Err("the state does not have version 1".into()),
            Some(_) => {}
            None => backend.write(&meta, b"version: 1\n".to_vec()).await?,
        }
        Ok(backend)
    }

    fn checkpoint(&self) -> String {
        format!("{}/.pulumi/stacks/{}/{}.json", self.prefix, self.project, self.stack)
    }

    fn locks(&self) -> String {
        format!("{}/.pulumi/locks/organization/{}/{}/", self.prefix, self.project, self.stack)
    }

    /// Reads an object as Pulumi does: without listing the bucket first. Only the answer "no such key" means that the
    /// object does not exist.
    async fn read(&self, key: &str) -> Result<Option<Vec<u8>>> {
        match self.client.get_object().bucket(&self.bucket).key(key).send().await {
            Ok(found) => Ok(Some(found.body.collect().await?.to_vec())),
            Err(error) if error.as_service_error().is_some_and(|error| error.is_no_such_key()) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    async fn write(&self, key: &str, bytes: Vec<u8>) -> Result<()> {
        self.client.put_object().bucket(&self.bucket).key(key).body(bytes.into()).send().await?;
        Ok(())
    }

    async fn get(&self, key: &str) -> Result<Option<Value>> {
        Ok(self.read(key).await?.map(|bytes| serde_json::from_slice(&bytes)).transpose()?)
    }

    async fn put(&self, key: &str, value: &Value) -> Result<()> {
        self.write(key, value.to_string().into_bytes()).await
    }

    async fn load(&self) -> Result<Value> {
        self.get(&self.checkpoint()).await?.ok_or_else(|| format!("no stack named '{}' found", self.stack).into())
    }

    /// Selects the stack and creates it if it does not exist. Opens the data key, as Pulumi does for secrets.
    async fn create(&self, provider: &str) -> Result<()> {
        let settings = self.settings()?;
        let sealed = settings["encryptedkey"].as_str().filter(|_| settings["secretsprovider"] == *provider);
        let sealed = STANDARD.decode(sealed.ok_or("the stack has no data key of this secrets provider")?)?;
        let sdk = sdk_config().await?;
        let opened = aws_sdk_kms::Client::new(&sdk).decrypt().ciphertext_blob(sealed.into()).send().await?;
        if opened.plaintext().is_none_or(|key| key.as_ref().len() != 32) {
            return Err("the data key is not 32 bytes long".into());
        }
        if self.get(&self.checkpoint()).await?.is_none() {
            let lock = self.lock().await?;
            let empty = json!({ "version": 3, "checkpoint": { "latest": { "resources": [] } }, "outputs": {} });
            self.put(&self.checkpoint(), &empty).await?;
            self.unlock(&lock).await?;
        }
        Ok(())
    }

    fn settings(&self) -> Result<Value> {
        Ok(serde_json::from_str(&std::fs::read_to_string(format!("Pulumi.{}.yaml", self.stack))?)?)
    }

    fn program(&self) -> Result<Program> {
        let mut program = read_program()?;
        let config = self.settings()?["config"].clone();
        let filled = |value: &Value| -> Result<Value> {
            let Some(text) = value.as_str() else { return Ok(value.clone()) };
            if let Some(name) = text.strip_prefix("env:") {
                return Ok(Value::from(std::env::var(name).map_err(|_| format!("{name} is required"))?));
            }
            let Some(key) = text.strip_prefix("config:") else { return Ok(value.clone()) };
            let key = if key.contains(':') { key.to_owned() } else { format!("{}:{key}", self.project) };
            Ok(config.get(&key).cloned().ok_or(format!("missing required configuration variable '{key}'"))?)
        };
        for value in program.outputs.values_mut() {
            *value = filled(value)?;
        }
        Ok(program)
    }

    async fn lock(&self) -> Result<String> {
        let listed = self.client.list_objects_v2().bucket(&self.bucket).prefix(self.locks()).send().await?;
        if !listed.contents().is_empty() {
            let count = listed.contents().len();
            return Err(format!(
                "the stack is currently locked by {count} lock(s). Either wait for the other process(es) to end or \
                 delete the lock file with `pulumi cancel`."
            )
            .into());
        }
        let key = format!("{}{}.json", self.locks(), std::process::id());
        self.put(&key, &json!({ "pid": std::process::id() })).await?;
        Ok(key)
    }

    async fn unlock(&self, key: &str) -> Result<()> {
        self.client.delete_object().bucket(&self.bucket).key(key).send().await?;
        Ok(())
    }

    fn urn(&self, resource: &Resource) -> String {
        format!("urn:pulumi:{}::{}::{}::{}", self.stack, self.project, resource.kind, resource.name)
    }

    /// Returns the goals of the program: the operation for each resource, by its name.
    async fn goals(&self) -> Result<BTreeMap<String, &'static str>> {
        let state = self.load().await?;
        let has = resources(&state);
        let program = self.program()?;
        let mut goals = BTreeMap::new();
        for resource in &program.resources {
            let urn = self.urn(resource);
            let known = has.iter().find(|one| one["urn"] == *urn);
            let operation = match known {
                None => "create",
                Some(one) if one["outputs"] == resource.outputs => "same",
                Some(_) => "update",
            };
            goals.insert(urn, operation);
        }
        for one in has {
            goals.entry(one["urn"].as_str().unwrap_or_default().to_owned()).or_insert("delete");
        }
        Ok(goals)
    }

    /// Previews without a lock. With `--json` all messages are in the document, also those of a failure.
    async fn preview(&self, plan: &str, shows_sames: bool) -> Result<()> {
        let goals = match self.goals().await {
            Ok(goals) => goals,
            Err(error) => {
                let message = format!("error: {}\n", freehold_aws_errors::chain(&*error));
                let urn = format!("urn:pulumi:{}::{}::pulumi:pulumi:Stack::main", self.stack, self.project);
                let diagnostics = json!([
                    { "message": "Downloading nothing\n", "severity": "info" },
                    { "urn": urn, "message": message, "severity": "error" },
                ]);
                println!("{}", json!({ "steps": [], "diagnostics": diagnostics, "duration": 0, "changeSummary": {} }));
                return Err(Failed.into());
            }
        };
        let mut summary: BTreeMap<&str, u64> = BTreeMap::new();
        for operation in goals.values() {
            *summary.entry(operation).or_default() += 1;
        }
        std::fs::write(plan, json!({ "resourcePlans": self.resource_plans(&goals).await? }).to_string())?;
        println!("{}", json!({ "steps": self.steps(&goals, shows_sames).await?, "changeSummary": summary }));
        Ok(())
    }

    /// Returns the steps of a preview: always the step of the stack, and the steps of unchanged resources if
    /// `shows_sames`.
    async fn steps(&self, goals: &BTreeMap<String, &'static str>, shows_sames: bool) -> Result<Vec<Value>> {
        let (state, program) = (self.load().await?, self.program()?);
        let stack = json!({ "urn": self.stack_urn(), "custom": false });
        let mut steps = vec![json!({ "op": "same", "urn": self.stack_urn(), "oldState": stack, "newState": stack })];
        for (urn, operation) in goals.iter().filter(|(_, operation)| shows_sames || **operation != "same") {
            let old = resources(&state).into_iter().find(|one| one["urn"] == **urn);
            let old = old.map(|one| json!({ "urn": urn, "custom": true, "created": "1", "protect": one["protect"] }));
            let new = program.resources.iter().find(|one| self.urn(one) == *urn);
            let new = new.map(|one| json!({ "urn": urn, "custom": true, "protect": one.protect }));
            steps.push(json!({ "op": operation, "urn": urn, "oldState": old, "newState": new }));
        }
        Ok(steps)
    }

    fn stack_urn(&self) -> String {
        format!("urn:pulumi:{}::{1}::pulumi:pulumi:Stack::{1}-{0}", self.stack, self.project)
    }

    /// Returns the plan of each resource. The stack counts as a resource, and its plan has the changes of its outputs.
    async fn resource_plans(&self, goals: &BTreeMap<String, &'static str>) -> Result<Value> {
        let of =
            |step: &str, outputs: Value| json!({ "goal": { "outputDiff": outputs }, "steps": [step], "state": {} });
        let mut plans: Map<String, Value> =
            goals.iter().map(|(urn, step)| (urn.clone(), of(step, json!({})))).collect();
        let (old, new) = (self.load().await?["outputs"].clone(), self.program()?.masked_outputs());
        let gone: Vec<&String> =
            old.as_object().into_iter().flat_map(Map::keys).filter(|name| !new.contains_key(*name)).collect();
        let (mut adds, mut updates) = (Map::new(), Map::new());
        for (name, value) in &new {
            match old.get(name) {
                None => drop(adds.insert(name.clone(), value.clone())),
                Some(known) if known != value => drop(updates.insert(name.clone(), value.clone())),
                Some(_) => {}
            }
        }
        plans.insert(self.stack_urn(), of("same", json!({ "adds": adds, "updates": updates, "deletes": gone })));
        Ok(Value::Object(plans))
    }

    /// Updates the stack under a lock. An interrupt ends the update, and the lock is removed.
    async fn up(&self, plan: &str) -> Result<()> {
        let mut interrupted = signal(SignalKind::interrupt())?;
        let lock = self.lock().await?;
        let done = tokio::select! {
            biased;
            _ = interrupted.recv() => Err("update canceled".into()),
            done = self.update(plan) => done,
        };
        self.keep_history().await?;
        self.unlock(&lock).await?;
        done
    }

    /// Copies the checkpoint into the history, and into the backups unless backups are switched off.
    async fn keep_history(&self) -> Result<()> {
        let checkpoint = self.load().await?;
        let copies = format!("{}/{}/{}", self.project, self.stack, std::process::id());
        self.put(&format!("{}/.pulumi/history/{copies}.checkpoint.json", self.prefix), &checkpoint).await?;
        if std::env::var("PULUMI_DIY_BACKEND_DISABLE_CHECKPOINT_BACKUPS").is_ok_and(|off| off == "true") {
            return Ok(());
        }
        self.put(&format!("{}/.pulumi/backups/{copies}.json", self.prefix), &checkpoint).await
    }

    async fn update(&self, plan: &str) -> Result<()> {
        let plan: Value = serde_json::from_slice(&std::fs::read(plan)?)?;
        let goals = self.goals().await?;
        if plan["resourcePlans"] != self.resource_plans(&goals).await? {
            return Err("resource violates plan: the program wants another change than the plan has".into());
        }
        let program = self.program()?;
        let mut state = self.load().await?;
        for resource in &program.resources {
            let urn = self.urn(resource);
            let operation = goals[&urn];
            if operation == "same" {
                // The step `same` changes nothing but the options of a resource.
                let kept =
                    state["checkpoint"]["latest"]["resources"].as_array_mut().ok_or("no resources in the state")?;
                if let Some(one) = kept.iter_mut().find(|one| one["urn"] == *urn) {
                    one["protect"] = resource.protect.into();
                }
                continue;
            }
            state["checkpoint"]["latest"]["pending_operations"] = json!([{ "resource": { "urn": urn } }]);
            self.put(&self.checkpoint(), &state).await?;
            println!("{operation} {}", resource.name);
            wait(resource.hold.as_deref()).await?;
            let kept = state["checkpoint"]["latest"]["resources"].as_array_mut().ok_or("no resources in the state")?;
            let made = kept.iter().find(|one| one["urn"] == *urn).map_or(0, |one| one["made"].as_u64().unwrap_or(0));
            kept.retain(|one| one["urn"] != *urn);
            kept.push(json!({
                "urn": urn, "type": resource.kind, "custom": true, "outputs": resource.outputs, "protect": resource.protect,
                "made": if operation == "create" { made + 1 } else { made },
            }));
            state["checkpoint"]["latest"]["pending_operations"] = json!([]);
            self.put(&self.checkpoint(), &state).await?;
        }
        if let Some(kept) = state["checkpoint"]["latest"]["resources"].as_array_mut() {
            kept.retain(|one| one["urn"].as_str().is_some_and(|urn| goals.get(urn) != Some(&"delete")));
        }
        // Stands in for the encryption of secrets.
        state["sealed"] = STANDARD.encode(json!(program.outputs).to_string()).into();
        state["outputs"] = Value::Object(program.masked_outputs());
        self.put(&self.checkpoint(), &state).await
    }

    async fn destroy(&self) -> Result<()> {
        let program = read_program()?;
        let lock = self.lock().await?;
        let mut state = self.load().await?;
        while let Some(gone) = resources(&state).pop() {
            let urn = gone["urn"].as_str().unwrap_or_default();
            state["checkpoint"]["latest"]["pending_operations"] = json!([{ "resource": { "urn": urn } }]);
            self.put(&self.checkpoint(), &state).await?;
            println!("delete {urn}");
            let resource = program.resources.iter().find(|one| self.urn(one) == urn);
            wait(resource.and_then(|one| one.hold_removal.as_deref())).await?;
            if let Some(kept) = state["checkpoint"]["latest"]["resources"].as_array_mut() {
                kept.pop();
            }
            state["checkpoint"]["latest"]["pending_operations"] = json!([]);
            self.put(&self.checkpoint(), &state).await?;
        }
        state["outputs"] = json!({});
        self.put(&self.checkpoint(), &state).await?;
        self.unlock(&lock).await
    }
}

fn read_program() -> Result<Program> {
    Ok(serde_json::from_str(&std::fs::read_to_string("program.json")?)?)
}

/// Waits for this many seconds, as a slow resource would.
async fn wait(seconds: Option<&str>) -> Result<()> {
    let Some(seconds) = seconds else { return Ok(()) };
    let held = tokio::process::Command::new("sleep").arg(seconds).kill_on_drop(true).status().await?;
    if held.success() { Ok(()) } else { Err("update canceled".into()) }
}

/// Returns the settings of AWS clients, with the credentials of the container's endpoint.
async fn sdk_config() -> Result<SdkConfig> {
    let address = std::env::var("AWS_CONTAINER_CREDENTIALS_FULL_URI")?;
    let token = std::env::var("AWS_CONTAINER_AUTHORIZATION_TOKEN")?;
    let answer = freehold_oci::client()?.get(address).header("authorization", token).send().await?;
    let given: Value = answer.json().await?;
    let text = |name: &str| given[name].as_str().map(str::to_owned);
    let (key, secret) = text("AccessKeyId").zip(text("SecretAccessKey")).ok_or("no credentials from the endpoint")?;
    let credentials = Credentials::new(key, secret, text("Token"), None, "container");
    let credentials = SharedCredentialsProvider::new(credentials);
    Ok(freehold_runner::aws::sdk_config(&std::env::var("AWS_REGION")?, Some(credentials)).await)
}

fn resources(state: &Value) -> Vec<Value> {
    state["checkpoint"]["latest"]["resources"].as_array().cloned().unwrap_or_default()
}
