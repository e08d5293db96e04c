//! Mistakes that the command notices by itself: none of these calls AWS.

use super::{Mistake, mistake, with};

pub(super) const SIGNED_IN: [(&str, &str); 3] =
    [("AWS_ACCESS_KEY_ID", "111111111111"), ("AWS_SECRET_ACCESS_KEY", "local"), ("AWS_REGION", "eu-west-1")];

/// Nothing listens on port 1.
const DEAD_ENDPOINT: [(&str, &str); 2] = [("AWS_REGION", "eu-west-1"), ("AWS_ENDPOINT_URL", "http://127.0.0.1:1")];

const NO_DIGEST: &str = "sha256:0000000000000000000000000000000000000000000000000000000000000000";
const NO_SHA256: &str = "0000000000000000000000000000000000000000000000000000000000000000";

pub(super) const MISTAKES: [Mistake; 67] = [
    mistake("no tenant", &["install", "list"], 2),
    mistake("no tenant", &["tenant", "status"], 2),
    mistake("no region", &["install", "list", "--tenant", "acme"], 2),
    mistake("a region with a typo", &["install", "list", "--tenant", "acme", "--aws-region", "EU-West-1"], 2),
    with("an empty AWS_REGION", &[("AWS_REGION", "")], &["install", "list", "--tenant", "acme"], 2),
    mistake(
        "two regions",
        &["tenant", "status", "--name", "acme", "--region", "eu-west-1", "--aws-region", "us-east-1"],
        2,
    ),
    mistake("no credentials", &["install", "list", "--tenant", "acme", "--aws-region", "eu-west-1"], 6),
    with(
        "a profile that does not exist",
        &[("AWS_PROFILE", "acmee"), ("AWS_REGION", "eu-west-1")],
        &["install", "list", "--tenant", "acme"],
        6,
    ),
    with("nothing listens at AWS_ENDPOINT_URL", &DEAD_ENDPOINT, &["tenant", "status", "--name", "acme"], 5),
    with(
        "no address in AWS_ENDPOINT_URL",
        &[("AWS_REGION", "eu-west-1"), ("AWS_ENDPOINT_URL", "localhost")],
        &["tenant", "status", "--name", "acme"],
        2,
    ),
    mistake("doctor without a region", &["doctor", "--tenant", "acme"], 2),
    with("nothing listens at --api", &SIGNED_IN, &["install", "list", "--api", "http://127.0.0.1:1"], 5),
    mistake("bad tenant name", &["install", "list", "--tenant", "Acme"], 2),
    with("bad tenant name in the environment", &[("FREEHOLD_TENANT", "Acme Corp")], &["install", "list"], 2),
    mistake("unknown command", &["deplo", "globex"], 2),
    mistake("a list of actions", &["action", "list", "globex"], 2),
    mistake("a list of jobs", &["job", "list", "globex"], 2),
    mistake("the state of an install", &["install", "status", "globex"], 2),
    mistake("the state of everything", &["status"], 2),
    mistake("a log without its job", &["logs", "globex"], 2),
    mistake("unknown option", &["deploy", "globex", "--al"], 2),
    mistake("unknown shell", &["completions", "tcsh"], 2),
    with("argument missing, with a tenant in the environment", &[("FREEHOLD_TENANT", "acme")], &["app", "check"], 2),
    mistake(
        "bad account",
        &["install", "create", "globex", "--app", "web", "--account", "2222", "--region", "eu-west-1"],
        2,
    ),
    mistake("bad install name", &["deploy", "Globex"], 2),
    mistake("bad workflow id", &["workflow", "watch", "wf_1"], 2),
    mistake("bad job id", &["job", "show", "job_7"], 2),
    mistake("bad version", &["build", "web", "--version", "latest"], 2),
    mistake("input without a value", &["deploy", "globex", "--input", "replicas"], 2),
    mistake("lineage of an install without a component", &["lineage", "--install", "globex"], 2),
    mistake("lineage without an artifact", &["lineage"], 2),
    mistake("lineage of a component without an install", &["lineage", "--component", "web"], 2),
    mistake("command of the vendor, run by a customer", &["contract", "diff", "globex"], 2),
    mistake(
        "no such contract file",
        &["contract", "verify", "web.json", "--root-key", "11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="],
        2,
    ),
    mistake("app check of a missing directory", &["app", "check", "no-such-app"], 2),
    mistake("app check of a file", &["app", "check", "broken/metadata.toml"], 2),
    mistake("app check of the directory around an app", &["app", "check", "."], 2),
    mistake("app check of a directory inside an app", &["app", "check", "broken/components"], 2),
    mistake("app check of a faulty app", &["app", "check", "broken"], 2),
    mistake("a dependency on a component that does not exist", &["app", "check", "misnamed"], 2),
    mistake("a key of the wrong type", &["app", "check", "mistyped"], 2),
    mistake("an input group that does not exist", &["app", "check", "grouped"], 2),
    mistake("the config of a runner in the directory of an app", &["app", "check", "with-runner"], 0),
    mistake("app init into a full directory", &["app", "init", "full"], 4),
    mistake("app init with a bad name", &["app", "init", "Web Shop"], 2),
    mistake("no such schema", &["app", "schema", "helm_chrt"], 2),
    mistake("no directory with functions", &["tenant", "deploy", "--name", "acme", "--functions", "lambda"], 2),
    mistake("a directory without functions", &["tenant", "deploy", "--name", "acme", "--functions", "full"], 2),
    mistake(
        "functions of two builds",
        &["tenant", "deploy", "--name", "acme", "--functions", "mixed/arm64/functions"],
        2,
    ),
    mistake("functions of another build, which no option names", &["tenant", "deploy", "--name", "acme"], 2),
    mistake("no such template", &["customer", "verify-template", "initech.yaml"], 2),
    mistake(
        "the short form of a SHA-256",
        &["customer", "verify-template", "globex.yaml", "--sha256", "4b5e57f6eb2f..."],
        2,
    ),
    mistake("a file that is not a template", &["customer", "verify-template", "full/mine.txt"], 2),
    mistake("a template with another resource", &["customer", "verify-template", "changed.yaml"], 1),
    mistake(
        "a template that was changed after the vendor published it",
        &["customer", "verify-template", "globex.yaml", "--sha256", NO_SHA256],
        1,
    ),
    mistake("launch without the template", &["install", "launch", "globex", "--template", "initech.yaml"], 2),
    mistake(
        "launch with the short form of a digest",
        &["install", "launch", "globex", "--template", "globex.yaml", "--digest", "sha256:4b5e57f6eb2f"],
        2,
    ),
    mistake(
        "launch with the digest of another template",
        &["install", "launch", "globex", "--template", "globex.yaml", "--digest", NO_DIGEST],
        2,
    ),
    mistake(
        "a parameter of the stack without a value",
        &["install", "launch", "globex", "--template", "globex.yaml", "--parameter", "EnableProvision"],
        2,
    ),
    mistake("launch under another name", &["install", "launch", "initech", "--template", "globex.yaml"], 2),
    mistake(
        "typo in a parameter of the stack",
        &["install", "launch", "globex", "--template", "globex.yaml", "--parameter", "EnableProvison=false"],
        2,
    ),
    mistake(
        "login at an API without its issuer",
        &["login", "--api", "https://abc.execute-api.eu-west-1.amazonaws.com"],
        2,
    ),
    with(
        "the token of a pipeline without the address of the API",
        &[("FREEHOLD_PIPELINE_TOKEN", "abc")],
        &["whoami", "--tenant", "acme"],
        2,
    ),
    mistake("a part of the code of an invitation", &["member", "accept", "4f2d0c6a"], 2),
    mistake(
        "typo in the name of an action of the API",
        &["access", "test", "--member", "ana@example.com", "--action", "deploy_component", "--install", "globex"],
        2,
    ),
    mistake("no such file with policies", &["access", "set", "policies.cedar"], 2),
    mistake(
        "an issuer without its client",
        &["tenant", "deploy", "--name", "acme", "--people-issuer", "https://login.acme.example"],
        2,
    ),
];
