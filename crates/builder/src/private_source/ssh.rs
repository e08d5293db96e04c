//! Serves Git's own protocol to a box, and connects to the Git servers over SSH. The client is OpenSSH, outside of the
//! box. Its key goes through a pipe into an agent and is in no file.

use std::io::Write as _;
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use command_fds::{CommandFdExt as _, FdMapping};
use freehold_protocol::source::{Hidden, Scheme, SourceAddress};
use freehold_runner::job::Job;
use freehold_runner::job::failure::Failure;
use freehold_runner::sandbox::{self, Outside, Serve, Through};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::net::tcp::OwnedWriteHalf;
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};

use super::accept::accept_each;
use super::connection::{destination, refused};
use super::obstacle::Obstacle;
use super::route::{Repository, nearest};

/// The programs of OpenSSH's client.
pub(crate) const PROGRAMS: [&str; 3] = ["ssh", "ssh-agent", "ssh-add"];
/// The longest request of Git's protocol, in bytes.
const LONGEST: usize = 4096;
/// The maximum time for the client to send its request.
const REQUEST_TIME: Duration = Duration::from_secs(10);
/// The length of the end of `ssh`'s error output that is read for the reason, in bytes.
const LAST_WORDS: usize = 16 * 1024;
/// The shell script that runs `ssh` with a key. It adds the key from file descriptor 3 to the agent that started the
/// shell, for a minute, and then becomes `ssh`. Its arguments are the path of `ssh-add`, the path of `ssh`, and the
/// arguments of `ssh`.
const SCRIPT: &str = r#""$0" -q -t 60 - <&3 3<&- && exec "$@""#;

/// One address with its key.
#[derive(Debug, Clone)]
pub(super) struct SshSource {
    pub(super) address: SourceAddress,
    user: String,
    key: Hidden,
    at: SocketAddr,
    programs: Programs,
    directory: Arc<Directory>,
    _outside: Arc<Outside>,
}

/// The paths of the programs of OpenSSH.
#[derive(Debug, Clone)]
struct Programs {
    sh: PathBuf,
    agent: PathBuf,
    add: PathBuf,
    ssh: PathBuf,
}

/// A directory outside of every box, for the agent's socket and the keys of the server. It holds no secret.
#[derive(Debug)]
struct Directory(PathBuf);

impl SshSource {
    /// Prepares connections to the host of `address`. `keys` are the private key and the keys that the server may have;
    /// `is_inside` marks the host as one of a private network.
    pub(super) async fn open(
        job: &Job,
        address: &SourceAddress,
        user: String,
        (key, host_keys): (Hidden, Vec<String>),
        is_inside: bool,
        obstacle: &Obstacle,
    ) -> Result<Self, Failure> {
        let unusable =
            |error: &dyn std::error::Error| Failure::because(&format!("could not connect to `{address}`"), error);
        let programs = Programs::find(job).await?;
        let to = destination(address)?;
        let noted = refused(job, address, obstacle);
        let outside = Outside::to(job, &to, is_inside, Through::Pair, noted).await.map_err(|error| unusable(&error))?;
        let at = outside
            .at()
            .ok_or_else(|| Failure::new(format!("could not connect to `{address}`: no listener was created")))?;
        let directory = Directory::create(address.host(), &host_keys).map_err(|error| unusable(&error))?;
        let (directory, outside) = (Arc::new(directory), Arc::new(outside));
        Ok(Self { address: address.clone(), user, key, at, programs, directory, _outside: outside })
    }

    /// Starts `ssh`, which runs `git-upload-pack` for `path` on the server.
    fn start(&self, path: &str) -> std::io::Result<Running> {
        let (key_out, mut key_in) = std::io::pipe()?;
        let mut command = Command::new(&self.programs.agent);
        command.arg("-a").arg(self.directory.0.join(format!("agent-{}", serial())));
        command.arg(&self.programs.sh).args(["-c", SCRIPT]).arg(&self.programs.add).arg(&self.programs.ssh);
        command.args(self.arguments(path)).env_clear().env("HOME", &self.directory.0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.process_group(0).kill_on_drop(true);
        let mapping = FdMapping { parent_fd: key_out.into(), child_fd: 3 };
        command.fd_mappings(vec![mapping]).map_err(std::io::Error::other)?;
        let child = command.spawn()?;
        // The command still holds the reading end of the pipe. Only the child may hold this end, so that writing the
        // key fails when the child has ended.
        drop(command);
        let key = self.key.clone();
        // Writing a key that is larger than the pipe's buffer blocks until the child reads. An error means that the
        // child has ended, and the child's output has the reason.
        tokio::task::spawn_blocking(move || key_in.write_all(format!("{}\n", key.reveal().trim_end()).as_bytes()));
        let group = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        Ok(Running { child, group })
    }

    fn arguments(&self, path: &str) -> Vec<String> {
        let known = self.directory.0.join(Directory::KNOWN_HOSTS).display().to_string();
        let alias = format!("HostKeyAlias={}", self.address.host());
        let options = [
            "BatchMode=yes",
            "CheckHostIP=no",
            "ClearAllForwardings=yes",
            "ConnectTimeout=20",
            "ForwardAgent=no",
            "GlobalKnownHostsFile=none",
            // Without this, `ssh` also offers the keys of the machine's user.
            "IdentityFile=none",
            "LogLevel=ERROR",
            "PermitLocalCommand=no",
            "PreferredAuthentications=publickey",
            "ServerAliveCountMax=4",
            "ServerAliveInterval=15",
            "SetEnv=GIT_PROTOCOL=version=2",
            "StrictHostKeyChecking=yes",
            "UpdateHostKeys=no",
        ];
        let mut words: Vec<String> = ["-F", "none", "-T"].map(str::to_owned).into();
        let own = [alias, format!("UserKnownHostsFile={known}")];
        words.extend(options.map(str::to_owned).into_iter().chain(own).flat_map(|option| ["-o".to_owned(), option]));
        words.extend(["-p".to_owned(), self.at.port().to_string(), "-l".to_owned(), self.user.clone()]);
        // The path has no character with a meaning for a shell: `SourceAddress` refuses such a path.
        words.extend([self.at.ip().to_string(), format!("git-upload-pack '/{path}'")]);
        words
    }

    /// Explains the end of `ssh`'s error output.
    fn explain(&self, words: &str) -> String {
        let (address, host) = (&self.address, self.address.authority());
        let again = format!("`freehold tenant source add {address}`");
        let last = words.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("no reason was given").trim();
        if words.contains("Host key verification failed") {
            format!(
                "`{host}` has none of the stored keys, so it may be another server; compare its key with the key that \
                 its owner publishes, and store that key with {again}"
            )
        } else if words.contains("Permission denied") {
            format!("`{host}` refuses the key of `{address}`: it is wrong or revoked; store another key with {again}")
        } else if words.contains("error in libcrypto")
            || words.contains("invalid format")
            || words.contains("passphrase")
        {
            format!("the key of `{address}` cannot be used; store a key without a passphrase with {again}")
        } else {
            format!("`{host}` gave no repository: {last}; check the address in the app config, and build again")
        }
    }
}

impl Programs {
    async fn find(job: &Job) -> Result<Self, Failure> {
        let find = async |name: &str| {
            let found = sandbox::find_program(&[name]).ok_or_else(|| {
                Failure::new(format!(
                    "`{name}` is not on this runner's `PATH`, and Git over SSH needs it; install the package \
                     `openssh-client` (Amazon Linux: `openssh-clients`)"
                ))
            })?;
            sandbox::check_program(&job.config, &found).await?;
            Ok::<_, Failure>(found)
        };
        let (sh, agent) = (find("sh").await?, find("ssh-agent").await?);
        Ok(Self { sh, agent, add: find("ssh-add").await?, ssh: find("ssh").await? })
    }
}

impl Directory {
    const KNOWN_HOSTS: &str = "known_hosts";

    fn create(host: &str, keys: &[String]) -> std::io::Result<Self> {
        let path = std::env::temp_dir().join(format!("freehold-ssh-{}-{}", std::process::id(), serial()));
        std::fs::DirBuilder::new().mode(0o700).create(&path)?;
        let directory = Self(path);
        let lines: String = keys.iter().map(|key| format!("{host} {key}\n")).collect();
        let mut file = std::fs::OpenOptions::new();
        let mut file = file.write(true).create_new(true).mode(0o600).open(directory.0.join(Self::KNOWN_HOSTS))?;
        file.write_all(lines.as_bytes())?;
        Ok(directory)
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // Files that remain hold no secret.
        let _ = std::fs::remove_dir_all(self.path());
    }
}

/// Returns a number that no earlier directory or agent of this process has.
fn serial() -> u64 {
    static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
}

/// A running `ssh`. Dropping it kills its processes; the agent ends by itself when its shell has ended.
struct Running {
    child: Child,
    group: Option<Pid>,
}

impl Drop for Running {
    fn drop(&mut self) {
        // An error means that the group has no process, which is not a problem.
        let _ = self.group.map(|group| kill_process_group(group, Signal::KILL));
    }
}

/// The server for one box.
#[derive(Debug, Clone)]
pub(super) struct SshSources {
    all: Arc<[SshSource]>,
    obstacle: Obstacle,
}

impl SshSources {
    pub(super) fn new(all: Vec<SshSource>, obstacle: Obstacle) -> Self {
        Self { all: all.into(), obstacle }
    }

    /// Serves the only request of a connection.
    async fn converse(&self, mut stream: TcpStream) {
        let asked = tokio::time::timeout(REQUEST_TIME, request(&mut stream)).await;
        let Ok(Ok(Some(repository))) = asked else { return };
        let Some(source) = nearest(&self.all, |one| &one.address, &repository.address) else { return };
        match source.start(&repository.path) {
            Ok(running) => {
                // The connection closes after the reason was recorded, so that the reason is known when Git reports the
                // end.
                if let Some((words, _to_client)) = carry(stream, running).await {
                    self.obstacle.note(&source.explain(&words));
                }
            }
            Err(error) => self.obstacle.note(&format!("could not start `ssh`: {error}")),
        }
    }
}

#[async_trait]
impl Serve for SshSources {
    async fn serve(&self, listener: TcpListener) {
        accept_each(listener, self, |served, stream| async move { served.converse(stream).await }).await;
    }
}

/// Reads the request of a client (gitprotocol-pack(5), "Git Transport"). Returns the repository, or `None` when it is
/// not the request of a fetch.
async fn request(stream: &mut TcpStream) -> std::io::Result<Option<Repository>> {
    let mut length = [0; 4];
    stream.read_exact(&mut length).await?;
    let length = std::str::from_utf8(&length).ok().and_then(|text| usize::from_str_radix(text, 16).ok());
    let Some(length) = length.filter(|length| (5..=LONGEST).contains(length)) else { return Ok(None) };
    let mut line = vec![0; length - 4];
    stream.read_exact(&mut line).await?;
    Ok(repository_of(&line))
}

fn repository_of(line: &[u8]) -> Option<Repository> {
    let end = line.iter().position(|byte| *byte == 0).unwrap_or(line.len());
    let text = std::str::from_utf8(line.get(..end)?).ok()?;
    Repository::of_path(Scheme::Ssh, text.strip_prefix("git-upload-pack ")?.trim_end_matches('\n'))
}

/// Copies bytes between the client and `ssh`. Returns the end of the error output of an `ssh` that failed, and the
/// connection.
async fn carry(stream: TcpStream, mut running: Running) -> Option<(String, OwnedWriteHalf)> {
    let (mut from_client, mut to_client) = stream.into_split();
    let (mut stdin, mut stdout) = (running.child.stdin.take()?, running.child.stdout.take()?);
    let stderr = running.child.stderr.take()?;
    let up = tokio::spawn(async move {
        let _ = tokio::io::copy(&mut from_client, &mut stdin).await;
    });
    let words = tokio::spawn(async move { String::from_utf8_lossy(&end_of(stderr).await).into_owned() });
    let _ = tokio::io::copy(&mut stdout, &mut to_client).await;
    let ended = running.child.wait().await;
    up.abort();
    let words = words.await.unwrap_or_default();
    let failed = !ended.is_ok_and(|status| status.success());
    failed.then_some((words, to_client))
}

/// Reads to the end, because `ssh` must not find its error output closed. Returns the last bytes.
async fn end_of(mut output: impl AsyncRead + Unpin) -> Vec<u8> {
    let (mut last, mut buffer) = (Vec::new(), [0; 4096]);
    while let Ok(read @ 1..) = output.read(&mut buffer).await {
        last.extend_from_slice(buffer.get(..read).unwrap_or_default());
        last.drain(..last.len().saturating_sub(LAST_WORDS));
    }
    last
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt as _;

    use super::*;

    #[tokio::test]
    async fn the_reason_at_the_end_of_a_long_error_output_is_kept() {
        let (mut writer, reader) = tokio::io::duplex(1024);
        let writes = async {
            for line in 0..4000 {
                writer.write_all(format!("remote: line {line}\n").as_bytes()).await.unwrap();
            }
            writer.write_all(b"Permission denied (publickey).\n").await.unwrap();
            drop(writer);
        };

        let (last, ()) = tokio::join!(end_of(reader), writes);

        assert_eq!(last.len(), LAST_WORDS);
        assert!(last.ends_with(b"line 3999\nPermission denied (publickey).\n"));
    }

    #[test]
    fn a_request_names_its_repository_and_the_protocol_needs_no_more() {
        let asked = |line: &str| repository_of(line.as_bytes()).map(|found| found.address.to_string());

        let line = "git-upload-pack /git.example+2222/acme/demo.git\0host=127.0.0.1:9418\0\0version=2\0";
        assert_eq!(asked(line).as_deref(), Some("ssh://git.example:2222/acme/demo"));
        for other in [
            "git-receive-pack /git.example/acme/demo.git\0",
            "git-upload-pack /git.example/acme/../demo\0",
            "git-upload-pack /git.example/acme/a'; reboot; '\0",
            "git-upload-pack git.example/acme\0",
        ] {
            assert_eq!(asked(other), None, "{other}");
        }
    }
}
