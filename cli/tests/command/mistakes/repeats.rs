//! Commands that are given a second time and change nothing.

use std::sync::OnceLock;

use freehold_app::read::NOTHING_TO_DEPLOY;
use freehold_protocol::{Digest, canonical};
use serde_json::json;

use super::remote_answers::tenant;
use super::{Cloud, Mistake};

/// A command that was run before, and the beginning of the output line that says so.
pub(super) struct Repeat {
    pub(super) command: Mistake,
    pub(super) begins: &'static str,
}

const fn repeat(what: &'static str, args: &'static [&'static str], begins: &'static str) -> Repeat {
    Repeat { command: Mistake { what, environment: &[], args, code: 0, cloud: Cloud::Tenant(after_all) }, begins }
}

pub(super) const REPEATS: [Repeat; 5] = [
    repeat("sync of an app that has not changed", &["app", "sync", "web"], "app `web`"),
    repeat("build of a version that is built", &["build", "web"], "app `web`"),
    repeat("a release with the same name and contents", &["release", "create", "web", "--name", "2026.12"], "release"),
    repeat(
        "an install that exists, with the same account and region",
        &["install", "create", "globex", "--app", "web", "--account", "222222222222", "--region", "eu-west-1"],
        "install `globex`",
    ),
    repeat("deploy of what is deployed", &["deploy", "globex"], "deploy of `globex`"),
];

/// The files of the app `web`, without mistakes.
pub(super) const WEB: [(&str, &str); 2] = [
    ("metadata.toml", "version = \"v2\"\n"),
    (
        "components/site.toml",
        "name = \"site\"\ntype = \"container_image\"\n\n[public]\nimage_url = \"registry.example/site\"\ntag = \"1.0\"\n",
    ),
];

/// Returns the digest of the version that a sync of the app makes.
fn synced() -> &'static Digest {
    static SYNCED: OnceLock<Digest> = OnceLock::new();
    SYNCED.get_or_init(|| {
        let files = WEB.map(|(path, text)| (path.to_owned(), text.as_bytes().to_vec())).into();
        let loaded = freehold_appconfig::load_files("web", &files, &freehold_appconfig::Fetched::default()).unwrap();
        Digest::of(&canonical::to_vec(&loaded.version).unwrap())
    })
}

/// Answers as a tenant in which each of these requests was made before.
fn after_all(method: &str, path: &str, body: &str) -> (u16, String) {
    let digest = synced();
    let globex = json!({
        "install": "globex", "account": "222222222222", "region": "eu-west-1", "state": "ready", "app": "web",
        "version": digest,
    });
    let workflow = "wf_00000000000000000002";
    let found = match (method, path) {
        ("GET", "/v1/apps/web") => json!({ "app": "web", "latest": digest, "number": 1, "updated_at": 1000 }),
        ("POST", "/v1/apps/web/builds") => json!({ "version": digest, "builds": [] }),
        ("POST", "/v1/apps/web/releases") => json!({
            "name": "2026.12", "digest": digest, "created_at": 1_795_253_621_000_u64,
            "contents": { "format": 1, "app": "web", "version": digest, "artifacts": {} },
        }),
        ("POST", "/v1/installs") => json!({ "install": globex, "workflow": workflow }),
        ("POST", "/v1/installs/globex/deploys") => json!({ "workflow": workflow }),
        ("GET", "/v1/workflows/wf_00000000000000000002") => json!({
            "workflow": workflow, "install": "globex", "kind": "deploy-components", "state": "succeeded",
            "created_at": 1000, "ended_at": 1400, "nodes": [], "nothing_ran": NOTHING_TO_DEPLOY,
        }),
        _ => return tenant(method, path, body),
    };
    (200, found.to_string())
}
