//! The sandbox that `bwrap` makes. Its options travel through a pipe, as a command line can be read by anybody on the
//! machine and the program's environment must not be `bwrap`'s own (`LD_PRELOAD` would act outside the sandbox).

use std::io::{PipeReader, PipeWriter, Read as _, Write as _};
use std::path::{Path, PathBuf};

use command_fds::{CommandFdExt as _, FdMapping};
use serde::Deserialize;
use tokio::process::Command;

use super::environment::{find_program, paths};
use super::program::{Group, INSIDE, Program, SandboxError, Started, inside, spawn};
use crate::work::job::Job;

/// Where `bwrap` finds its options.
const OPTIONS_FD: i32 = 3;
/// Where `bwrap` says which process leads the sandbox.
const INFO_FD: i32 = 4;

/// The parts of the root that programs need. A symbolic link is a symbolic link in the sandbox too.
const ROOT: [&str; 6] = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64"];

/// The parts of `/etc` that programs need: names, trust, time; nothing that is secret on a usual system.
const ETC: [&str; 18] = [
    "alternatives",
    "ca-certificates",
    "crypto-policies",
    "group",
    "host.conf",
    "hosts",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "localtime",
    "mime.types",
    "nsswitch.conf",
    "passwd",
    "pki",
    "protocols",
    "resolv.conf",
    "services",
    "ssl",
];

/// Starts `program` in a sandbox of its own.
///
/// `--die-with-parent` ends it with the thread that starts it: the runtime's worker threads live as long as the runner.
pub(super) async fn start(job: &Job, program: &Program<'_>) -> Result<Started, SandboxError> {
    let bwrap = find_program(&["bwrap"]).ok_or(SandboxError::NoBubblewrap)?;
    let not_run = |source| SandboxError::NotRun { program: bwrap.display().to_string(), source };
    let (options_out, options_in) = std::io::pipe().map_err(not_run)?;
    let (info_out, info_in) = std::io::pipe().map_err(not_run)?;
    let mut command = Command::new(&bwrap);
    command.env_clear().arg("--args").arg(OPTIONS_FD.to_string()).arg("--info-fd").arg(INFO_FD.to_string());
    command.arg("--").arg(canonical(program.executable)).args(&program.arguments);
    command
        .fd_mappings(vec![
            FdMapping { parent_fd: options_out.into(), child_fd: OPTIONS_FD },
            FdMapping { parent_fd: info_in.into(), child_fd: INFO_FD },
        ])
        .map_err(|error| not_run(std::io::Error::other(error)))?;
    let child = spawn(&mut command, &program.output).map_err(not_run)?;
    // Closes this side's copies of what the child has now.
    drop(command);
    let leader = exchange(options_in, options(job, program), info_out).await;
    // `--new-session` makes the sandbox's first process the leader of a group of its own. A signal to the group reaches
    // the program and not that first process, which the kernel shields. All die with `bwrap`, so nothing more is killed.
    let group = Group::of(leader.or_else(|| child.id()), false);
    Ok(Started { child, group })
}

/// Sends the options and returns the first process of the sandbox; nothing when `bwrap` gave up before.
async fn exchange(mut options_in: PipeWriter, options: Vec<u8>, mut info_out: PipeReader) -> Option<u32> {
    #[derive(Deserialize)]
    #[serde(rename_all = "kebab-case")]
    struct Info {
        child_pid: u32,
    }
    let exchanged = tokio::task::spawn_blocking(move || {
        // It fails when `bwrap` ended early; its exit code and message tell why.
        let _ = options_in.write_all(&options);
        drop(options_in);
        let mut text = Vec::new();
        let mut chunk = [0; 256];
        while let Ok(read @ 1..) = info_out.read(&mut chunk) {
            text.extend_from_slice(chunk.get(..read).unwrap_or_default());
            if let Ok(info) = serde_json::from_slice::<Info>(&text) {
                return Some(info.child_pid);
            }
        }
        None
    });
    exchanged.await.ok().flatten()
}

fn options(job: &Job, program: &Program<'_>) -> Vec<u8> {
    let mut all = Options::default();
    for flag in ["--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"] {
        all.add(&[flag]);
    }
    all.add(&["--die-with-parent", "--new-session", "--hostname", "job", "--clearenv"]);
    all.add(&["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]);
    for path in ROOT {
        match std::fs::read_link(path) {
            Ok(target) => all.add(&["--symlink", &target.display().to_string(), path]),
            Err(_) => all.show(Path::new(path)),
        }
    }
    for name in ETC {
        all.show(&Path::new("/etc").join(name));
    }
    for (_, path) in paths().filter(|(_, path)| !is_shown(path)) {
        all.show(&path);
    }
    let executable = canonical(program.executable);
    if !is_shown(&executable) {
        all.show(&executable);
    }
    for path in &program.writable {
        let path = path.display().to_string();
        all.add(&["--bind", &path, &path]);
    }
    let workspace = job.workspace.display().to_string();
    let directory = inside(job, program.directory);
    all.add(&["--bind", &workspace, INSIDE, "--chdir", &directory]);
    all.add(&["--remount-ro", "/"]);
    for (name, value) in &program.environment {
        all.add(&["--setenv", name, value]);
    }
    all.0
}

/// Options as `--args` reads them: each ends in a zero byte.
#[derive(Default)]
struct Options(Vec<u8>);

impl Options {
    fn add(&mut self, words: &[&str]) {
        for word in words {
            // A zero byte cannot be part of a word: it would start another option.
            self.0.extend(word.bytes().filter(|byte| *byte != 0));
            self.0.push(0);
        }
    }

    fn show(&mut self, path: &Path) {
        let path = path.display().to_string();
        self.add(&["--ro-bind-try", &path, &path]);
    }
}

fn is_shown(path: &Path) -> bool {
    ["/usr", "/etc/ssl", "/etc/pki", "/etc/ca-certificates"].iter().any(|root| path.starts_with(root))
}

fn canonical(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}
