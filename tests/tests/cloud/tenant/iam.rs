//! Access with policies enforced: to the two queues, the tenant registry, the roles of the modes, and the API.

use anyhow::{Context as _, ensure};
use aws_credential_types::Credentials;
use aws_sdk_sqs::error::ProvideErrorMetadata;
use freehold_tests::harness::web::{Answer, send, send_signed};
use freehold_tests::harness::{Capability, Install, Needs, World, app};
use freehold_tests::workspace::{functions, workspace_root};

const NEEDS: Needs = Needs {
    cloud: &[Capability::HttpApi, Capability::Registry, Capability::IamEnforced, Capability::AnyAccount],
    programs: &[],
};

/// Returns the roles that the tenant's template makes: of its functions, of its machines and of the build runner.
fn vendor_roles() -> anyhow::Result<Vec<String>> {
    let template = std::fs::read_to_string(workspace_root()?.join("infra/tenant.yaml"))?;
    let named = template.lines().filter_map(|line| line.split_once("RoleName: !Sub fh-${TenantName}--"));
    let roles: Vec<String> = named.map(|(_, name)| name.trim().to_owned()).collect();
    let machines = roles.iter().filter(|role| role.starts_with("machine--")).count();
    let all = template.matches("\n    Type: AWS::StepFunctions::StateMachine\n").count();
    ensure!(machines == all, "of {all} machines of infra/tenant.yaml, {machines} have a role of the usual name");
    for name in functions()?.into_iter().chain(["build-runner".to_owned()]) {
        ensure!(roles.contains(&name), "infra/tenant.yaml has no role of the name of `{name}`");
    }
    Ok(roles)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_installs_orders_are_its_own_runners_alone() -> anyhow::Result<()> {
    let Some(world) = World::start("cloud_iam.orders", NEEDS).await? else { return Ok(()) };
    world.vendor(&["app", "sync", &app::small(world.directory())?.display().to_string()]).await?;
    let (a, b) = (world.install("globex", "small").await?, world.install("initech", "small").await?);
    let (queue_a, queue_b) = (queue(&world, "globex.fifo").await?, queue(&world, "initech.fifo").await?);
    let reports = queue(&world, "reports").await?;
    for url in [&queue_a, &queue_b] {
        put_message(&world, url).await?;
    }
    let runner_a = Client::of_role(&world, &a.account, "fh-acme--globex--runner").await?;
    let runner_b = Client::of_role(&world, &b.account, "fh-acme--initech--runner").await?;
    let handle_b = runner_b.take(&queue_b).await.context("initech's own runner")?;

    for url in [&queue_b, &reports] {
        runner_a.is_denied_everything(url, &handle_b).await?;
    }
    for other in others_in_the_account(&world, &a).await? {
        other.is_denied_everything(&queue_a, &handle_b).await?;
    }
    for name in vendor_roles()? {
        let name = format!("fh-{}--{name}", world.tenant());
        let vendor = Client::of_service_role(&world, &name).await?;
        vendor.is_denied_everything(&queue_a, &handle_b).await?;
    }
    let mighty = mighty(&world, world.tenant_account(), "admin").await?;
    mighty.is_denied_everything(&queue_a, &handle_b).await?;
    mighty.cannot_send(&queue_a).await?;

    let handle_a = runner_a.take(&queue_a).await.context("globex's own runner")?;
    runner_a.hide(&queue_a, &handle_a).await.context("globex's own runner")?;
    runner_a.delete(&queue_a, &handle_a).await.context("globex's own runner")?;
    runner_b.delete(&queue_b, &handle_b).await.context("the message of initech is there still")?;
    runner_a.sqs.send_message().queue_url(&reports).message_body("x").send().await.context("a runner's report")?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_build_role_pushes_to_the_tenant_registry() -> anyhow::Result<()> {
    let Some(world) = World::start("cloud_iam.registry", NEEDS).await? else { return Ok(()) };
    world.vendor(&["app", "sync", &app::small(world.directory())?.display().to_string()]).await?;
    let install = world.install("globex", "small").await?;
    let registry = registry(&world).await?;
    let tenant = world.tenant_account().to_owned();
    let build = world.role(&tenant, &format!("fh-{}--build-runner", world.tenant())).await?;

    let pushed = start_push(&world, &registry, build).await?;
    assert_eq!(pushed.status, 202, "the build role itself: {}", pushed.body);
    for name in vendor_roles()?.iter().filter(|name| *name != "build-runner") {
        let name = format!("fh-{}--{name}", world.tenant());
        let answer = start_push(&world, &registry, world.service_role(&name).await?).await;
        is_refused(&name, answer)?;
    }
    for name in ["fh-acme--globex--runner", "fh-acme--globex--provision", "fh-acme--globex--maintenance"] {
        let credentials = mode_or_runner(&world, &install, name).await?;
        is_refused(name, start_push(&world, &registry, credentials.clone()).await)?;
        is_refused(name, read(&world, &registry, credentials).await)?;
    }

    let repository = format!("arn:aws:ecr:eu-west-1:{tenant}:repository/fh-{}", world.tenant());
    let push = ["ecr:InitiateLayerUpload", "ecr:UploadLayerPart", "ecr:CompleteLayerUpload", "ecr:PutImage"];
    for name in vendor_roles()? {
        let role = format!("arn:aws:iam::{tenant}:role/fh-{}--{name}", world.tenant());
        let allowed = allowed(&world, &tenant, &role, &push, &repository).await?;
        let wanted = if name == "build-runner" { push.len() } else { 0 };
        assert_eq!(allowed.len(), wanted, "{name} may {allowed:?}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mode_stays_below_its_ceiling_and_strangers_stay_out_of_the_api() -> anyhow::Result<()> {
    let Some(world) = World::start("cloud_iam.modes", NEEDS).await? else { return Ok(()) };
    world.vendor(&["app", "sync", &app::demo(world.directory(), &[1000])?.display().to_string()]).await?;
    let install = world.install("globex", "demo").await?;
    let role = format!("arn:aws:iam::{}:role/fh-acme--globex--provision", install.account);
    let arn = |what: &str| format!("arn:aws:iam::{}:{what}", install.account);
    let writes = ["iam:CreateRole", "iam:PutRolePolicy", "iam:AttachRolePolicy", "iam:DeleteRole"];

    for outside in ["role/admin", "role/fh-acme--globex--runner", "role/fh-acme--globex--provision", "role/globex"] {
        let may = allowed(&world, &install.account, &role, &writes, &arn(outside)).await?;
        assert_eq!(may, Vec::<String>::new(), "{outside}");
    }
    let bucket = "arn:aws:s3:::globex-demo-anything";
    let may = allowed(&world, &install.account, &role, &["s3:CreateBucket"], bucket).await?;
    assert_eq!(may, ["s3:CreateBucket"], "what the app's own policy lists");
    let others = "arn:aws:s3:::somebody-elses";
    assert!(allowed(&world, &install.account, &role, &["s3:CreateBucket"], others).await?.is_empty());
    let straight = world.role(&install.account, "fh-acme--globex--provision").await;
    assert!(straight.is_err(), "somebody but the runner took the mode's role");

    let api = format!("{}/v1/tenant", world.api_url().await?);
    let anonymous = send("GET", &api, &[], b"").await?;
    let runner =
        send_signed(&world.role(&install.account, "fh-acme--globex--runner").await?, "GET", &api, &[], b"").await?;
    let build = world.role(world.tenant_account(), &format!("fh-{}--build-runner", world.tenant())).await?;
    let build = send_signed(&build, "GET", &api, &[], b"").await?;
    assert_eq!((anonymous.status, runner.status, build.status), (403, 403, 403));
    Ok(())
}

/// A queue client of one principal.
struct Client {
    who: String,
    sqs: aws_sdk_sqs::Client,
}

impl Client {
    async fn of_role(world: &World, account: &str, role: &str) -> anyhow::Result<Self> {
        Self::with(world, role, world.role(account, role).await?)
    }

    async fn of_service_role(world: &World, role: &str) -> anyhow::Result<Self> {
        Self::with(world, role, world.service_role(role).await?)
    }

    fn with(world: &World, who: &str, credentials: Credentials) -> anyhow::Result<Self> {
        Ok(Self { who: who.to_owned(), sqs: aws_sdk_sqs::Client::new(&world.acting_as(credentials)?) })
    }

    /// Receives a message; returns its handle.
    async fn take(&self, queue: &str) -> anyhow::Result<String> {
        let taken = self.sqs.receive_message().queue_url(queue).wait_time_seconds(5).visibility_timeout(300);
        let taken = taken.send().await?;
        let message = taken.messages().first().context("no message")?;
        Ok(message.receipt_handle().context("no handle")?.to_owned())
    }

    async fn hide(&self, queue: &str, handle: &str) -> anyhow::Result<()> {
        let hide = self.sqs.change_message_visibility().queue_url(queue).receipt_handle(handle).visibility_timeout(600);
        hide.send().await?;
        Ok(())
    }

    async fn delete(&self, queue: &str, handle: &str) -> anyhow::Result<()> {
        self.sqs.delete_message().queue_url(queue).receipt_handle(handle).send().await?;
        Ok(())
    }

    async fn is_denied_everything(&self, queue: &str, handle: &str) -> anyhow::Result<()> {
        let sqs = &self.sqs;
        let receive = sqs.receive_message().queue_url(queue).wait_time_seconds(0).send().await;
        let delete = sqs.delete_message().queue_url(queue).receipt_handle(handle).send().await;
        let hide = sqs.change_message_visibility().queue_url(queue).receipt_handle(handle).visibility_timeout(600);
        self.denied("receive from", queue, receive.err().map(|error| code(&error)))?;
        self.denied("delete from", queue, delete.err().map(|error| code(&error)))?;
        self.denied("hide in", queue, hide.send().await.err().map(|error| code(&error)))
    }

    async fn cannot_send(&self, queue: &str) -> anyhow::Result<()> {
        let send = self.sqs.send_message().queue_url(queue).message_body("x");
        let send = send.message_group_id("g").message_deduplication_id("x").send().await;
        self.denied("send to", queue, send.err().map(|error| code(&error)))
    }

    fn denied(&self, what: &str, queue: &str, code: Option<String>) -> anyhow::Result<()> {
        let code = code.with_context(|| format!("`{}` could {what} {queue}", self.who))?;
        ensure!(code.contains("AccessDenied"), "`{}` may not {what} {queue}, but for {code}", self.who);
        Ok(())
    }
}

fn code(error: &(impl ProvideErrorMetadata + std::fmt::Debug)) -> String {
    error.code().map_or_else(|| format!("{error:?}"), str::to_owned)
}

/// Returns other principals of a customer's account: a role with every right in it, and the modes' roles.
async fn others_in_the_account(world: &World, install: &Install) -> anyhow::Result<Vec<Client>> {
    let mut others = Vec::new();
    for name in ["admin", "fh-acme--globex--runner-2"] {
        others.push(mighty(world, &install.account, name).await?);
    }
    for name in ["fh-acme--globex--provision", "fh-acme--globex--maintenance"] {
        others.push(Client::with(world, name, mode_or_runner(world, install, name).await?)?);
    }
    Ok(others)
}

/// Makes a role that may do everything in its account.
async fn mighty(world: &World, account: &str, name: &str) -> anyhow::Result<Client> {
    let iam = aws_sdk_iam::Client::new(&world.administrator(account)?);
    let trust = format!(
        r#"{{"Version": "2012-10-17", "Statement": [{{"Effect": "Allow", "Action": "sts:AssumeRole",
        "Principal": {{"AWS": "arn:aws:iam::{account}:root"}}}}]}}"#
    );
    let all = r#"{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}"#;
    iam.create_role().role_name(name).assume_role_policy_document(&trust).send().await?;
    iam.put_role_policy().role_name(name).policy_name("all").policy_document(all).send().await?;
    Client::of_role(world, account, name).await
}

/// Returns the runner's credentials, or those of a mode's role, which only the runner may take.
async fn mode_or_runner(world: &World, install: &Install, name: &str) -> anyhow::Result<Credentials> {
    let runner = world.role(&install.account, "fh-acme--globex--runner").await?;
    if name == "fh-acme--globex--runner" {
        return Ok(runner);
    }
    let role = format!("arn:aws:iam::{}:role/{name}", install.account);
    freehold_tests::harness::clients::assume(&world.acting_as(runner)?, &role).await
}

async fn queue(world: &World, name: &str) -> anyhow::Result<String> {
    let sqs = aws_sdk_sqs::Client::new(&world.administrator(world.tenant_account())?);
    let found = sqs.get_queue_url().queue_name(format!("fh-{}--{name}", world.tenant())).send().await?;
    Ok(found.queue_url().context("no such queue")?.to_owned())
}

async fn put_message(world: &World, url: &str) -> anyhow::Result<()> {
    let sender = Client::of_service_role(world, &format!("fh-{}--dispatch-job", world.tenant())).await?;
    sender
        .sqs
        .send_message()
        .queue_url(url)
        .message_body("x")
        .message_group_id("g")
        .message_deduplication_id("d")
        .send()
        .await?;
    Ok(())
}

/// Returns the address of the tenant registry's repository, `http://.../v2/<repository>`.
async fn registry(world: &World) -> anyhow::Result<String> {
    let ecr = aws_sdk_ecr::Client::new(&world.administrator(world.tenant_account())?);
    let login = ecr.get_authorization_token().send().await?;
    let data = login.authorization_data().first().context("no login")?;
    Ok(format!("{}/v2/fh-{}", data.proxy_endpoint().context("no address")?, world.tenant()))
}

async fn start_push(world: &World, registry: &str, who: Credentials) -> anyhow::Result<Answer> {
    let login = login(world, who).await?;
    send("POST", &format!("{registry}/blobs/uploads/"), &[("authorization", &login)], b"").await
}

async fn read(world: &World, registry: &str, who: Credentials) -> anyhow::Result<Answer> {
    let login = login(world, who).await?;
    let digest = format!("sha256:{}", "0".repeat(64));
    send("GET", &format!("{registry}/manifests/{digest}"), &[("authorization", &login)], b"").await
}

async fn login(world: &World, who: Credentials) -> anyhow::Result<String> {
    let ecr = aws_sdk_ecr::Client::new(&world.acting_as(who)?);
    let token = ecr.get_authorization_token().send().await.map_err(|error| anyhow::anyhow!("{}", code(&error)))?;
    let data = token.authorization_data().first().context("no login")?;
    Ok(format!("Basic {}", data.authorization_token().context("no token")?))
}

/// Refused at the registry, or without a login to begin with.
fn is_refused(who: &str, answer: anyhow::Result<Answer>) -> anyhow::Result<()> {
    match answer {
        Ok(answer) => ensure!(matches!(answer.status, 401 | 403), "`{who}`: {} {}", answer.status, answer.body),
        Err(error) => ensure!(format!("{error:#}").contains("AccessDenied"), "`{who}`: {error:#}"),
    }
    Ok(())
}

/// Returns which of `actions` on `resource` the policy simulator lets `role` do.
async fn allowed(
    world: &World,
    account: &str,
    role: &str,
    actions: &[&str],
    resource: &str,
) -> anyhow::Result<Vec<String>> {
    let iam = aws_sdk_iam::Client::new(&world.administrator(account)?);
    let actions = actions.iter().map(|action| (*action).to_owned()).collect();
    let ask = iam.simulate_principal_policy().policy_source_arn(role).set_action_names(Some(actions));
    let answer = ask.resource_arns(resource).send().await.context("the policy simulator")?;
    let results = answer.evaluation_results().iter();
    Ok(results
        .filter(|one| one.eval_decision().as_str() == "allowed")
        .map(|one| one.eval_action_name().to_owned())
        .collect())
}
