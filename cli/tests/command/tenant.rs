//! `freehold tenant` and `freehold install launch` as a person runs them: the real binary against the local cloud.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::support::loopback;

/// Returns the names of all functions: each is a program of its own.
fn function_names() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../functions/src/bin");
    let programs = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    programs.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect()
}

/// A local cloud that ends with this test's process.
struct Cloud {
    state: tempfile::TempDir,
    endpoint: String,
}

impl Cloud {
    fn up() -> Self {
        let state = tempfile::tempdir().unwrap();
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../localstack/cloud");
        let mut up = Command::new(program);
        up.args(["up", "--detach", "--port", "0", "--until-pid", &std::process::id().to_string(), "--state"]);
        let done = up.arg(state.path()).output().unwrap();
        assert!(done.status.success(), "{}", output(&done));
        let endpoint = std::fs::read_to_string(state.path().join("endpoint")).unwrap().trim().to_owned();
        Self { state, endpoint }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.state.path().join(name)
    }

    /// Runs `freehold` with the credentials of `account`.
    fn freehold(&self, account: &str, args: &[&str]) -> Output {
        self.command(account, args).output().unwrap()
    }

    fn command(&self, account: &str, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_freehold"));
        command
            .args(args)
            .current_dir(self.state.path())
            .env_clear()
            .envs([
                ("AWS_ENDPOINT_URL", self.endpoint.as_str()),
                ("AWS_REGION", "eu-west-1"),
                ("AWS_ACCESS_KEY_ID", account),
                ("AWS_SECRET_ACCESS_KEY", "local"),
                ("AWS_EC2_METADATA_DISABLED", "true"),
            ])
            .stdin(std::process::Stdio::null());
        command
    }

    fn json(&self, account: &str, args: &[&str]) -> Value {
        let done = self.freehold(account, &[args, &["--json"]].concat());
        assert!(done.status.success(), "{args:?}: {}", output(&done));
        serde_json::from_slice(&done.stdout).unwrap()
    }
}

fn output(done: &Output) -> String {
    format!("{:?}\n{}\n{}", done.status, String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr))
}

/// Writes code of all functions; it is never run here, but is a program for x86-64 by its header.
fn write_functions(dir: &Path, mark: u8) {
    for name in function_names() {
        let mut program = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x02\0\x3e\0".to_vec();
        program.extend(name.as_bytes());
        program.push(mark);
        std::fs::create_dir_all(dir.join(&name)).unwrap();
        std::fs::write(dir.join(&name).join("bootstrap.zip"), zip("bootstrap", &program)).unwrap();
    }
}

/// Returns a zip of one stored file (APPNOTE.TXT, 4.3).
fn zip(name: &str, content: &[u8]) -> Vec<u8> {
    let mut crc = flate2::Crc::new();
    crc.update(content);
    let size = u32::try_from(content.len()).unwrap().to_le_bytes();
    let name_size = u16::try_from(name.len()).unwrap().to_le_bytes();
    // Version, flags, method, time, date, check sum, sizes, name: the same in both headers.
    let mut fields = vec![20, 0, 0, 0, 0, 0, 0, 0, 0x21, 0];
    fields.extend(crc.sum().to_le_bytes());
    fields.extend([size, size].concat());
    fields.extend(name_size);
    let mut file = [b"PK\x03\x04", fields.as_slice(), &[0, 0], name.as_bytes(), content].concat();
    let start = u32::try_from(file.len()).unwrap();
    let mut entry = [b"PK\x01\x02\x14\x03".as_slice(), &fields, &[0; 8]].concat();
    entry.extend((0o100_755_u32 << 16).to_le_bytes());
    entry.extend(0_u32.to_le_bytes());
    entry.extend(name.as_bytes());
    let length = u32::try_from(entry.len()).unwrap().to_le_bytes();
    file.extend(entry);
    file.extend([b"PK\x05\x06\0\0\0\0\x01\0\x01\0".as_slice(), &length, &start.to_le_bytes(), &[0, 0]].concat());
    file
}

#[test]
fn a_tenant_is_made_once_changed_when_its_code_changes_and_leaves_nothing() {
    let cloud = Cloud::up();
    let (vendor, functions) = ("111111111111", cloud.path("functions"));
    write_functions(&functions, 1);
    let folder = functions.to_str().unwrap();
    let deploy = |name| cloud.json(vendor, &["tenant", "deploy", "--name", name, "--functions", folder]);

    let first = deploy("acme");
    let again = deploy("acme");
    let neighbour = deploy("acme-two");
    write_functions(&functions, 2);
    let changed = deploy("acme");
    let status = cloud.json(vendor, &["tenant", "status", "--name", "acme"]);

    assert_eq!(
        [&first, &again, &neighbour, &changed].map(|v| v["changed"].as_bool()),
        [true, false, true, true].map(Some)
    );
    assert_eq!(first["api_url"], status["outputs"]["ApiUrl"]);
    assert_eq!(status["functions"].as_array().unwrap().len(), function_names().len());
    assert_eq!(status["queues"].as_array().unwrap().len(), 7);

    std::fs::write(cloud.path("token"), "canary-of-a-token\n").unwrap();
    let sources = |name| cloud.json(vendor, &["tenant", "source", "list", "--name", name]).as_array().unwrap().len();
    for name in ["acme", "acme-two"] {
        let add = ["tenant", "source", "add", "https://git.example/team", "--file", "token", "--name", name];
        cloud.json(vendor, &add);
    }

    let unasked = cloud.freehold(vendor, &["tenant", "destroy", "--name", "acme"]);
    let destroyed = cloud.json(vendor, &["tenant", "destroy", "--name", "acme", "--confirm", "acme"]);
    let nothing = cloud.json(vendor, &["tenant", "destroy", "--name", "acme", "--confirm", "acme"]);
    let gone = cloud.freehold(vendor, &["tenant", "status", "--name", "acme"]);
    let neighbour = cloud.json(vendor, &["tenant", "status", "--name", "acme-two"]);

    assert_eq!(unasked.status.code(), Some(2), "{}", output(&unasked));
    assert_eq!(destroyed["leftovers"], serde_json::json!([]));
    assert_eq!((sources("acme"), sources("acme-two")), (0, 1));
    assert_eq!(nothing["removed"], serde_json::json!([]));
    assert_eq!(gone.status.code(), Some(3), "{}", output(&gone));
    assert_eq!(neighbour["queues"].as_array().unwrap().len(), 7);
    assert!(neighbour["functions"].as_array().unwrap().iter().all(|f| f["state"] == "active"), "{neighbour}");
}

#[test]
fn a_deploy_warns_until_the_tenant_names_a_runner_for_customers_machines() {
    let cloud = Cloud::up();
    let (vendor, functions) = ("111111111111", cloud.path("functions"));
    write_functions(&functions, 1);
    let deploy = ["tenant", "deploy", "--name", "acme", "--functions", functions.to_str().unwrap()];
    let digest = "0".repeat(64);
    let runner = ["--runner-url", "https://x.example/runner", "--runner-sha256", &digest];

    let without = cloud.freehold(vendor, &deploy);
    let with = cloud.freehold(vendor, &[&deploy[..], &runner].concat());
    let again = cloud.freehold(vendor, &deploy);

    let warns = |done: &Output| {
        assert!(done.status.success(), "{}", output(done));
        String::from_utf8_lossy(&done.stderr).lines().any(|line| {
            line.starts_with("warning: the tenant names no runner for customers' machines")
                && line.contains("with `--runner-url` and `--runner-sha256`")
        })
    };
    assert_eq!([&without, &with, &again].map(warns), [true, false, false]);
}

/// Starts an endpoint of Auto Scaling with one group, whose machine is protected: only a deletion with force ends it, at
/// the second look after that. Returns its address and the requests that it gets, without looks.
fn scaling_with_a_protected_machine() -> (String, Arc<Mutex<Vec<String>>>) {
    let changes: Arc<Mutex<Vec<String>>> = Arc::default();
    let (seen, mut looks_left) = (changes.clone(), None);
    let address = loopback::listen(move |_, _, body| {
        if body.starts_with("Action=DescribeAutoScalingGroups&") {
            let is_gone = looks_left == Some(0);
            looks_left = looks_left.map(|left: u32| left.saturating_sub(1));
            let group = "<member><AutoScalingGroupName>fh-acme--build-runner</AutoScalingGroupName>\
                         <DesiredCapacity>1</DesiredCapacity></member>";
            let groups = if is_gone { "" } else { group };
            let result = format!("<AutoScalingGroups>{groups}</AutoScalingGroups>");
            return (200, answer("DescribeAutoScalingGroups", &result));
        }
        if body.contains("ForceDelete=true") {
            looks_left = Some(1);
        }
        seen.lock().unwrap().push(body.split("&Version=2011-01-01").collect());
        (200, answer("DeleteAutoScalingGroup", ""))
    });
    (address, changes)
}

/// Returns an answer of the Query API (AWS Auto Scaling API Reference).
fn answer(action: &str, result: &str) -> String {
    format!("<{action}Response><{action}Result>{result}</{action}Result></{action}Response>")
}

#[test]
fn the_build_runners_machine_is_ended_before_its_group_leaves_the_stack_with_or_without_the_tenant() {
    let cloud = Cloud::up();
    let (vendor, functions) = ("111111111111", cloud.path("functions"));
    write_functions(&functions, 1);
    let deploy = ["tenant", "deploy", "--name", "acme", "--functions", functions.to_str().unwrap()];
    let digest = "0".repeat(64);
    let machine = ["--build-subnet", "subnet-1", "--build-vpc", "vpc-1", "--builder-url", "https://x.example/b"];
    let on = [&deploy[..], &machine, &["--builder-sha256", &digest]].concat();
    let off = [&deploy[..], &["--build-subnet", ""]].concat();
    let destroy = ["tenant", "destroy", "--name", "acme", "--confirm", "acme"];
    let changes_by = |args: &[&str]| {
        let (address, changes) = scaling_with_a_protected_machine();
        let done = cloud.command(vendor, args).env("AWS_ENDPOINT_URL_AUTO_SCALING", address).output().unwrap();
        assert!(done.status.success(), "{args:?}: {}", output(&done));
        changes.lock().unwrap().clone()
    };

    let without = changes_by(&off);
    let made = changes_by(&on);
    let again = changes_by(&deploy);
    let removed = changes_by(&off);
    changes_by(&on);
    let destroyed = changes_by(&destroy);

    let delete = "Action=DeleteAutoScalingGroup&AutoScalingGroupName=fh-acme--build-runner&ForceDelete=true";
    assert_eq!((removed, destroyed), (vec![delete.to_owned()], vec![delete.to_owned()]));
    assert_eq!([without, made, again], [const { Vec::<String>::new() }; 3]);
}

/// Starts endpoints of CloudFormation and Auto Scaling for a stack with the machine, whose next update ends as `end`: the
/// cleanup of an update lasts until the group is deleted. Returns the address and what was changed.
fn update_that_ends(end: &'static str) -> (String, Arc<Mutex<Vec<String>>>) {
    let changes: Arc<Mutex<Vec<String>>> = Arc::default();
    let seen = changes.clone();
    let address = loopback::listen(move |_, _, body| {
        let mut seen = seen.lock().unwrap();
        let action = body.trim_start_matches("Action=").split('&').next().unwrap_or_default().to_owned();
        let (is_updated, is_gone) = (!seen.is_empty(), seen.iter().any(|one| one == "DeleteAutoScalingGroup"));
        let status = match (is_updated, end) {
            (false, _) => "CREATE_COMPLETE",
            (true, "UPDATE_COMPLETE") if !is_gone => "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS",
            (true, end) => end,
        };
        let subnets = if is_updated && end == "UPDATE_COMPLETE" { "" } else { "subnet-1" };
        let result = match action.as_str() {
            "DescribeStacks" => format!(
                "<Stacks><member><StackName>freehold-acme</StackName><StackId>arn</StackId><StackStatus>{status}</StackStatus>\
                 <CreationTime>2026-11-22T10:00:00Z</CreationTime><Parameters><member><ParameterKey>BuildSubnetIds</ParameterKey>\
                 <ParameterValue>{subnets}</ParameterValue></member></Parameters></member></Stacks>"
            ),
            "CreateChangeSet" => "<Id>arn:set</Id><StackId>arn</StackId>".to_owned(),
            "DescribeChangeSet" => "<Status>CREATE_COMPLETE</Status>".to_owned(),
            "DescribeStackEvents" => "<StackEvents/>".to_owned(),
            "DescribeAutoScalingGroups" if is_gone => "<AutoScalingGroups/>".to_owned(),
            "DescribeAutoScalingGroups" => "<AutoScalingGroups><member><AutoScalingGroupName>fh-acme--build-runner\
                                            </AutoScalingGroupName></member></AutoScalingGroups>"
                .to_owned(),
            _ => {
                seen.push(action.clone());
                String::new()
            }
        };
        (200, answer(&action, &result))
    });
    (address, changes)
}

#[test]
fn an_update_of_the_stack_that_is_rolled_back_keeps_the_build_runners_machine() {
    let cloud = Cloud::up();
    let functions = cloud.path("functions");
    write_functions(&functions, 1);
    let off = ["tenant", "deploy", "--name", "acme", "--functions", functions.to_str().unwrap(), "--build-subnet", ""];
    let changes_of = |end: &'static str| {
        let (address, changes) = update_that_ends(end);
        let mut command = cloud.command("111111111111", &off);
        command.env("AWS_ENDPOINT_URL_AUTO_SCALING", &address).env("AWS_ENDPOINT_URL_CLOUDFORMATION", &address);
        let done = output(&command.output().unwrap());
        (changes.lock().unwrap().clone(), done)
    };

    let (removed, _) = changes_of("UPDATE_COMPLETE");
    let (kept, stderr) = changes_of("UPDATE_ROLLBACK_COMPLETE");

    assert_eq!(removed, ["ExecuteChangeSet", "DeleteAutoScalingGroup"]);
    assert_eq!(kept, ["ExecuteChangeSet"]);
    assert!(stderr.contains("stack `freehold-acme` could not be updated (UPDATE_ROLLBACK_COMPLETE)"), "{stderr}");
}

#[test]
fn the_credentials_of_sources_are_listed_by_their_addresses_and_never_shown() {
    let cloud = Cloud::up();
    let vendor = "111111111111";
    std::fs::write(cloud.path("token"), "canary-of-a-token\n").unwrap();
    let source = |words: &[&str]| cloud.freehold(vendor, &[&["tenant", "source"], words, &["--name", "acme"]].concat());
    let addresses = || {
        let all = cloud.json(vendor, &["tenant", "source", "list", "--name", "acme"]);
        let all = all.as_array().unwrap().iter().map(|one| one["address"].as_str().unwrap().to_owned());
        all.collect::<Vec<_>>()
    };

    let none = source(&["list"]);
    let added = source(&["add", "https://git.example:8443/team", "--file", "token"]);
    let login = source(&["add", "oci://docker.io/acme", "--user", "bot", "--file", "token", "--json"]);
    let again = source(&["add", "https://git.example:8443/team", "--user", "bot", "--file", "token"]);
    let without_file = source(&["add", "https://git.example"]);
    let (two, sources) = (addresses(), source(&["list"]));
    let removed = source(&["remove", "https://git.example:8443/team"]);
    let absent = source(&["remove", "https://git.example:8443/team"]);

    assert!(output(&none).contains("has no credential of a source"), "{}", output(&none));
    assert_eq!(two, ["https://git.example:8443/team", "oci://registry-1.docker.io/acme"]);
    assert_eq!(addresses(), ["oci://registry-1.docker.io/acme"]);
    assert_eq!(absent.status.code(), Some(3), "{}", output(&absent));
    assert!(output(&without_file).contains("the token is empty"), "{}", output(&without_file));
    for done in [none, added, login, again, sources, removed, absent, without_file] {
        assert!(!output(&done).contains("canary"), "{}", output(&done));
    }
}

#[test]
fn an_install_stack_is_launched_once_and_says_what_its_runner_needs() {
    let cloud = Cloud::up();
    let template = "\
Metadata:
  Freehold: {Tenant: acme}
Parameters:
  EnableDeprovision: {Type: String, Default: 'false'}
Conditions:
  Deprovision: !Equals [!Ref EnableDeprovision, 'true']
Resources:
  Bucket:
    Type: AWS::S3::Bucket
    Properties: {BucketName: fh-acme--globex--222222222222, Tags: [{Key: deprovision, Value: !Ref EnableDeprovision}]}
  OfTheApp:
    Type: AWS::SQS::Queue
    Properties:
      QueueName: jobs
      Tags: [{Key: freehold:tenant, Value: acme}, {Key: freehold:install, Value: globex}, {Key: freehold:owner, Value: acme--globex}]
  OfTheStack:
    Type: AWS::SQS::Queue
    Properties: {QueueName: stack, Tags: [{Key: freehold:tenant, Value: acme}, {Key: freehold:install, Value: globex}]}
  OfANeighbour:
    Type: AWS::SQS::Queue
    Properties: {QueueName: neighbour, Tags: [{Key: freehold:tenant, Value: acme}, {Key: freehold:install, Value: globex-2}]}
  RoleOfTheApp:
    Type: AWS::IAM::Role
    Properties: {RoleName: acme--globex--web, AssumeRolePolicyDocument: {Version: '2012-10-17', Statement: []}}
  RoleOfTheStack:
    Type: AWS::IAM::Role
    Properties: {RoleName: fh-acme--globex--runner, AssumeRolePolicyDocument: {Version: '2012-10-17', Statement: []}}
Outputs:
  TenantName: {Value: acme}
  InstallName: {Value: globex}
  TenantKey: {Value: 11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=}
  OrdersQueueUrl: {Value: 'http://localhost:4566/111111111111/fh-acme--globex.fifo'}
  ReportsQueueUrl: {Value: 'http://localhost:4566/111111111111/fh-acme--reports'}
  RepositoryName: {Value: fh-acme/globex}
  BucketName: {Value: !Ref Bucket}
  RunnerRoleArn: {Value: 'arn:aws:iam::222222222222:role/fh-acme--globex--runner'}
  ProvisionRoleArn: {Value: 'arn:aws:iam::222222222222:role/fh-acme--globex--provision'}
  DeprovisionRoleArn: {Condition: Deprovision, Value: 'arn:aws:iam::222222222222:role/fh-acme--globex--deprovision'}
";
    std::fs::write(cloud.path("globex.yaml"), template).unwrap();
    let customer = "222222222222";
    let launch = ["install", "launch", "globex", "--template", "globex.yaml", "--unverified"];

    let wrong = format!("sha256:{}", "0".repeat(64));
    let other_template = cloud.freehold(customer, &[launch.as_slice(), &["--digest", &wrong]].concat());
    std::fs::write(cloud.path("nobody.yaml"), template.replace("Tenant: acme", "")).unwrap();
    let nobodys = cloud.freehold(customer, &["install", "launch", "globex", "--template", "nobody.yaml"]);
    let mistyped = cloud.freehold(customer, &[launch.as_slice(), &["--parameter", "EnableDeprovison=true"]].concat());
    let first = cloud.json(customer, &launch);
    // The template that the stack has needs no other word.
    let again = cloud.json(customer, &launch[..5]);
    let config = cloud.freehold(customer, &["install", "runner-config", "globex", "--slots", "2", "--sandbox", "none"]);
    let text = std::fs::read_to_string(cloud.path("globex-runner.toml")).unwrap();
    let leftovers = ["customer", "gone", "globex", "--tenant", "acme"];
    let found = cloud.freehold(customer, &[&leftovers[..], &["--json"]].concat());
    let left: Value = serde_json::from_slice(&found.stdout).unwrap();
    let elsewhere = cloud.freehold("333333333333", &leftovers);
    let of_nobody = cloud.freehold(customer, &leftovers[..3]);
    let switched = cloud.json(customer, &[launch.as_slice(), &["--parameter", "EnableDeprovision=true"]].concat());

    assert_eq!(other_template.status.code(), Some(2), "{}", output(&other_template));
    assert!(output(&nobodys).contains("template `nobody.yaml` does not name a vendor"), "{}", output(&nobodys));
    assert!(output(&mistyped).contains("did you mean `EnableDeprovision`?"), "{}", output(&mistyped));
    assert_eq!([&first, &again, &switched].map(|v| v["changed"].as_bool()), [true, false, true].map(Some));
    assert_eq!(first["stack"], "freehold-acme--globex");
    assert!(config.status.success(), "{}", output(&config));
    assert!(
        text.contains("install = \"globex\"\n") && text.contains("bucket = \"fh-acme--globex--222222222222\"\n"),
        "{text}"
    );
    assert!(text.contains("[modes]\nprovision = ") && !text.contains("deprovision"), "{text}");
    assert!(switched["outputs"]["DeprovisionRoleArn"].is_string(), "{switched}");
    let (queue, role) = ("arn:aws:sqs:eu-west-1:222222222222:", "arn:aws:iam::222222222222:role/");
    assert_eq!((found.status.code(), &left["gone"]), (Some(1), &json!(false)), "{}", output(&found));
    assert_eq!(left["stacks"], json!(["freehold-acme--globex"]));
    assert_eq!(left["app"], json!([format!("{role}acme--globex--web"), format!("{queue}jobs")]));
    let bucket = "arn:aws:s3:::fh-acme--globex--222222222222";
    let of_stack = json!([format!("{role}fh-acme--globex--runner"), bucket, format!("{queue}stack")]);
    assert_eq!(left["install_stack"], of_stack);
    assert_eq!(elsewhere.status.code(), Some(3), "{}", output(&elsewhere));
    assert!(
        output(&elsewhere).contains("nothing with the tags or names of install `globex`"),
        "{}",
        output(&elsewhere)
    );
    assert_eq!(of_nobody.status.code(), Some(2), "{}", output(&of_nobody));
}
