//! Private repositories over SSH: a real `sshd` with a real Git behind it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use freehold_builder::build::execute;
use freehold_protocol::order::{Package, Source};
use freehold_protocol::report::Outcome;
use freehold_protocol::source::{Hidden, SourceCredential};
use freehold_skips::{find_program, have};

use crate::builds::{build_bench, built};
use crate::cloud::Cloud;
use crate::fixture::{Bench, eventually, reason};
use crate::private_git::repository;
use crate::stand_in::{places, store};

/// A server in a mount namespace of its own, where it finds the user that it runs its first process as.
struct Server {
    process: Child,
    directory: tempfile::TempDir,
    port: u16,
}

impl Server {
    async fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        for name in ["host", "other-host", "key", "other-key"] {
            let mut keygen = Command::new("ssh-keygen");
            keygen.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(path(name));
            assert!(keygen.status().unwrap().success());
        }
        fs::copy(path("key.pub"), path("authorized")).unwrap();
        let own = rustix::process::geteuid().as_raw();
        let users = format!(
            "git:x:{own}:{own}::{}:/bin/sh\nsshd:x:64999:65534::/run/sshd:/bin/false\n",
            directory.path().display()
        );
        fs::write(path("passwd"), users).unwrap();
        // Git runs only when the test has looked around: `arrived` says that it is about to, `go` that it may.
        let root = directory.path().display();
        let script = format!(
            "#!/bin/sh\n: > {root}/arrived\nwhile [ ! -e {root}/go ]; do sleep 0.02; done\n\
             path=${{SSH_ORIGINAL_COMMAND#\"git-upload-pack '\"}}\nexec git-upload-pack \"{root}/srv${{path%\"'\"}}\"\n"
        );
        fs::write(path("serve"), script).unwrap();
        fs::set_permissions(path("serve"), fs::Permissions::from_mode(0o755)).unwrap();
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let config = format!(
            "Port {port}\nListenAddress 127.0.0.1\nHostKey {root}/host\nAuthorizedKeysFile {root}/authorized\n\
             StrictModes no\nUsePAM no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin yes\n\
             PidFile none\nAcceptEnv GIT_PROTOCOL\nForceCommand {root}/serve\n"
        );
        fs::write(path("config"), config).unwrap();
        let mut sshd = Command::new("bwrap");
        sshd.args(["--dev-bind", "/", "/", "--tmpfs", "/run", "--perms", "0755", "--dir", "/run/sshd", "--ro-bind"]);
        sshd.arg(path("passwd")).arg("/etc/passwd");
        if own == 0 {
            sshd.args(["--cap-add", "ALL"]);
        }
        sshd.args(["--die-with-parent", "--"]).arg(find_program("sshd").unwrap()).args(["-D", "-e", "-f"]);
        let log = fs::File::create(path("sshd.log")).unwrap();
        let process = sshd.arg(path("config")).stdin(Stdio::null()).stderr(log).spawn().unwrap();
        eventually("sshd answers", || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok()).await;
        Self { process, directory, port }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// Returns the public key without the comment at its end.
    fn public(&self, name: &str) -> String {
        self.text(&format!("{name}.pub")).split(' ').take(2).collect::<Vec<_>>().join(" ")
    }

    /// Returns a line of the private key: whoever has it has much of the key.
    fn canary(&self, key: &str) -> String {
        self.text(key).lines().nth(2).unwrap().to_owned()
    }

    async fn store(&self, cloud: &Cloud, key: &str, host: &str) {
        let credential = SourceCredential::SshKey {
            user: "git".into(),
            private_key: Hidden::new(self.text(key)),
            host_keys: vec![self.public(host)],
            inside: false,
        };
        store(cloud, &format!("ssh://127.0.0.1:{}/acme", self.port), &credential).await;
    }

    fn bench(&self, commit: &str) -> Bench {
        let url = format!("ssh://git@127.0.0.1:{}/acme/demo", self.port);
        let source = Source::Git { url, commit: commit.into(), directory: String::new(), branch: String::new() };
        build_bench(Package::CloudformationTemplate, source)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        println!("{}", self.text("sshd.log"));
    }
}

async fn run(bench: &Bench, canary: &str) -> Outcome {
    let outcome = execute(&bench.job).await;
    let log = bench.log();
    println!("{log}");
    assert!(!format!("{log}{outcome:?}").contains(canary));
    assert_eq!(places(&[canary], bench.directory.path()), [""; 0]);
    outcome
}

/// Returns the directories for agents that processes of this test have left.
fn left() -> Vec<PathBuf> {
    let own = format!("freehold-ssh-{}-", std::process::id());
    let entries = fs::read_dir(std::env::temp_dir()).unwrap().flatten();
    entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(&own)).map(|entry| entry.path()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repository_is_fetched_with_a_key_that_is_in_no_file_and_no_process() {
    const TEST: &str = "private_ssh::a_repository_is_fetched_with_a_key_that_is_in_no_file_and_no_process";
    if !have(&["bwrap", "git", "sshd", "ssh", "ssh-agent", "ssh-keygen"]) {
        return;
    }
    let Some(cloud) = Cloud::here(TEST).await else { return };
    let server = Server::start().await;
    let commit = repository(&server.path("srv"), "acme/demo");
    server.store(&cloud, "key", "host").await;
    let (bench, canary) = (server.bench(&commit), server.canary("key"));

    let (outcome, found) = tokio::join!(run(&bench, &canary), async {
        eventually("Git arrives", || server.path("arrived").exists()).await;
        let found = [left(), vec![bench.directory.path().to_owned()]].concat();
        let found: Vec<String> = found.iter().flat_map(|directory: &PathBuf| places(&[&canary], directory)).collect();
        fs::write(server.path("go"), "").unwrap();
        found
    });

    built(outcome);
    assert_eq!(found, [""; 0]);
    assert_eq!(left(), Vec::<PathBuf>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_with_another_key_and_a_key_that_was_revoked_are_named() {
    const TEST: &str = "private_ssh::a_server_with_another_key_and_a_key_that_was_revoked_are_named";
    if !have(&["bwrap", "git", "sshd", "ssh", "ssh-agent", "ssh-keygen"]) {
        return;
    }
    let Some(cloud) = Cloud::here(TEST).await else { return };
    let server = Server::start().await;
    fs::write(server.path("go"), "").unwrap();
    let commit = repository(&server.path("srv"), "acme/demo");

    server.store(&cloud, "key", "other-host").await;
    let other_host = reason(run(&server.bench(&commit), &server.canary("key")).await).0;
    let met_other_host = server.path("arrived").exists();
    server.store(&cloud, "other-key", "host").await;
    let unknown = reason(run(&server.bench(&commit), &server.canary("other-key")).await).0;
    server.store(&cloud, "key", "host").await;
    built(run(&server.bench(&commit), &server.canary("key")).await);
    fs::write(server.path("authorized"), "").unwrap();
    let revoked = reason(run(&server.bench(&commit), &server.canary("key")).await).0;

    assert!(other_host.contains("has none of the stored keys"), "{other_host}");
    assert!(!met_other_host, "the server with another key got no request");
    for denied in [unknown, revoked] {
        assert!(denied.contains("refuses the key of `ssh://127.0.0.1"), "{denied}");
    }
}
