//! What a job cannot do: each test tries it from inside a box.

use std::net::TcpListener;
use std::os::unix::fs::MetadataExt as _;
use std::time::Duration;

use freehold_runner::job::Stop;
use freehold_runner::sandbox::{self, Ended, JobUser};
use freehold_skips::{have, skip};
use rustix::process::{Resource, getrlimit};
use tokio::sync::watch;

use crate::fixture::{self, Bench, eventually, processes};
use crate::sandbox::{bench, code, run, shell};

/// Runs `script` in bash, whose `/dev/tcp` opens connections.
async fn bash(bench: &Bench, script: &str) -> i32 {
    let mut program = shell(bench, script);
    program.executable = std::path::Path::new("/bin/bash");
    code(sandbox::run(&bench.job, program).await.unwrap())
}

#[tokio::test]
async fn nothing_of_the_machines_network_is_reached() {
    if !have(&["bwrap", "bash"]) {
        return;
    }
    let bench = bench();
    let servers: Vec<TcpListener> =
        ["127.0.0.1:0", "[::1]:0"].iter().filter_map(|at| TcpListener::bind(at).ok()).collect();
    servers.iter().for_each(|server| server.set_nonblocking(true).unwrap());
    let mut targets: Vec<String> = servers
        .iter()
        .map(|server| server.local_addr().unwrap())
        .map(|at| format!("{}/{}", at.ip(), at.port()))
        .collect();
    targets.extend(["169.254.169.254/80", "169.254.170.2/80", "fd00:ec2::254/80", "192.0.2.1/80"].map(str::to_owned));

    let tries: Vec<String> = targets
        .iter()
        .map(|at| format!("timeout 2 bash -c 'exec 3<>/dev/tcp/{at}' 2>/dev/null && echo {at}"))
        .collect();
    bash(&bench, &format!("{}; cat /proc/net/dev | grep -c :", tries.join("; "))).await;

    assert_eq!(bench.log(), "1\n", "only `lo`, and no address answers");
    assert!(servers.iter().all(|server| server.accept().is_err()), "a connection came out of the box");
}

#[tokio::test]
async fn a_job_has_no_capability_and_can_get_none() {
    if !have(&["bwrap", "mount", "unshare"]) {
        return;
    }
    let bench = bench();

    let script = "grep -E '^Cap(Prm|Eff|Amb)' /proc/self/status | grep -v 0000000000000000 && echo capable; \
                  grep -q 'NoNewPrivs:.1' /proc/self/status || echo privileges; [ $(id -u) = 1000 ] || id; \
                  mount -o remount,bind,rw /usr && echo mounted; touch /usr/x && echo wrote; \
                  unshare -U true && echo namespace; unshare -Urm true && echo namespaces; \
                  cat /proc/1/environ /proc/1/maps >/dev/null && echo init; kill -9 1; ls /proc/1/fd/ && echo fds; \
                  ls -l /proc/self/fd | grep -c socket; true";
    run(&bench, &format!("exec 2>/dev/null; {script}")).await;

    assert_eq!(bench.log(), "0\n");
}

#[tokio::test]
async fn the_kernels_dangerous_calls_are_refused() {
    if !have(&["bwrap", "python3"]) {
        return;
    }
    let bench = bench();
    let script = r#"
import ctypes, platform, socket
libc = ctypes.CDLL(None, use_errno=True)
x86 = platform.machine() == "x86_64"
EPERM, ENOSYS = 1, 38
calls = {"ptrace": (101, 117), "keyctl": (250, 219), "add_key": (248, 217), "bpf": (321, 280), "perf_event_open": (298, 241),
         "io_uring_setup": (425, 425), "userfaultfd": (323, 282), "unshare": (272, 97), "setns": (308, 268), "mount": (165, 40),
         "fsopen": (430, 430), "open_by_handle_at": (304, 265), "chroot": (161, 51), "kexec_load": (246, 104)}
for name, numbers in calls.items():
    ctypes.set_errno(0)
    if libc.syscall(numbers[0 if x86 else 1], 0, 0, 0, 0, 0) != -1 or ctypes.get_errno() != EPERM: print(name)
if libc.syscall(435, 0, 0) != -1 or ctypes.get_errno() != ENOSYS: print("clone3")
for flag in (0x10000000, 0x20000, 0x40000000, 0x20000000):
    if libc.syscall(56 if x86 else 220, flag | 17, 0, 0, 0, 0) != -1: print("clone", hex(flag))
if x86 and (libc.syscall(0x40000000 + 101, 0, 0, 0, 0) != -1 or ctypes.get_errno() != ENOSYS): print("x32")
for family in (16, 17, 38, 40):
    try: socket.socket(family, socket.SOCK_DGRAM); print("family", family)
    except OSError: pass
# Raw; SCTP, UDP-Lite, MPTCP, L2TP, ping; DCCP in two ways; packets by their oldest name.
PROTOCOL, FAMILY = 93, 97
others = [(1, 132), (2, 136), (1, 262), (2, 115), (2, 1)]
for kind, protocol, errno in [(kind, protocol, PROTOCOL) for kind, protocol in others] + [
        (3, 1, EPERM), (6, 33, EPERM), (6, 0, EPERM), (10, 0, EPERM)]:
    try: socket.socket(socket.AF_INET, kind, protocol); print("socket", kind, protocol)
    except OSError as error:
        if error.errno != errno: print("socket", kind, protocol, error)
pair = (ctypes.c_int * 2)()
for family, kind, protocol, errno in ((16, 2, 0, FAMILY), (38, 5, 0, FAMILY), (2, 1, 132, PROTOCOL), (2, 6, 0, EPERM)):
    made = libc.socketpair(family, kind, protocol, pair)
    if made != -1 or ctypes.get_errno() != errno: print("pair", family, kind, protocol)
socket.socket(socket.AF_INET6); socket.socketpair(); socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
socket.socket(socket.AF_INET, socket.SOCK_STREAM, 6); socket.socket(socket.AF_INET6, socket.SOCK_DGRAM, 17)
print("done")
"#;
    std::fs::write(bench.job.workspace.join("calls.py"), script).unwrap();

    run(&bench, "python3 calls.py 2>&1").await;

    assert_eq!(bench.log(), "done\n");
}

#[tokio::test]
async fn a_job_is_another_user_than_a_runner_that_can_have_one_and_hands_its_files_back() {
    if !have(&["bwrap"]) {
        return;
    }
    let JobUser::Other(_) = JobUser::find() else { return skip("this user has no range in /etc/subuid") };
    let bench = bench();
    std::fs::write(bench.job.workspace.join("given"), "before").unwrap();
    let stop = bench.stop.clone();

    let script =
        "echo after > given; mkdir -p deep/er; echo x > deep/er/x; chmod 000 deep/er deep; sleep 31536011 & wait";
    let (_, user) = tokio::join!(run(&bench, script), async {
        eventually("it runs", || processes("sleep\u{0}31536011").len() == 1).await;
        let user = std::fs::metadata(format!("/proc/{}", processes("sleep\u{0}31536011")[0])).unwrap().uid();
        stop.send(Some(freehold_runner::job::StopReason::Cancelled)).unwrap();
        user
    });

    let own = std::fs::metadata("/proc/self").unwrap().uid();
    assert_ne!(user, own);
    for path in ["given", "deep", "deep/er", "deep/er/x"] {
        assert_eq!(std::fs::metadata(bench.job.workspace.join(path)).unwrap().uid(), own, "{path}");
    }
    assert_eq!(std::fs::read_to_string(bench.job.workspace.join("given")).unwrap(), "after\n");
}

#[tokio::test]
async fn a_program_that_crashes_leaves_no_core_file() {
    if !have(&["bwrap"]) {
        return;
    }
    let bench = bench();

    let ended = run(&bench, "ulimit -c unlimited; kill -SEGV $$").await;

    assert!(matches!(ended, Ended::Code { code: 139, .. }), "{ended:?}");
    let left: Vec<_> = std::fs::read_dir(&bench.job.workspace).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn the_runner_forbids_core_dumps_of_itself_and_its_programs() {
    fixture::check_core_limit();
}

#[tokio::test]
async fn a_job_that_takes_too_much_is_held() {
    if !have(&["bwrap", "python3"]) {
        return;
    }
    let mut bench = bench();
    bench.change_config(|config| {
        config.limits.processes = 32;
        config.limits.memory_mib = 128;
        config.limits.disk_mib = 16;
    });

    let script = r#"
import resource
try: bytearray(256 << 20); print("memory")
except MemoryError: pass
try:
    with open("/workspace/large", "wb") as file:
        file.seek(17 << 20); file.write(b"x"); file.flush(); print("file")
except OSError: pass
print(resource.getrlimit(resource.RLIMIT_CORE), resource.getrlimit(resource.RLIMIT_NPROC)[1])
"#;
    std::fs::write(bench.job.workspace.join("take.py"), script).unwrap();
    run(&bench, "python3 take.py 2>&1; i=0; while [ $i -lt 64 ]; do sleep 60 & i=$((i+1)); done 2>/dev/null; echo all")
        .await;

    let log = bench.log();
    // 1 and not 0, as `runner/src/core_dump.rs` says; a lower hard limit of the machine stays.
    let core = getrlimit(Resource::Core).maximum.map_or(1, |hard| hard.min(1));
    assert!(log.starts_with(&format!("({core}, {core}) 32\n")) && !log.contains("all"), "{log}");
}

#[tokio::test]
async fn a_job_that_hides_what_it_writes_is_ended_too() {
    if !have(&["bwrap", "python3"]) {
        return;
    }
    // In files without a name, below a path that no call takes, and behind a directory that nobody may read.
    for hide in [
        "for n in range(3):\n    files.append(open('x', 'wb', 0)); os.unlink('x'); files[-1].write(b'x' * (6 << 20))",
        "for n in range(30): os.mkdir('d' * 200); os.chdir('d' * 200)\nfill()",
        "os.mkdir('closed'); os.chdir('closed'); fill(); os.chmod('/workspace/closed', 0)",
    ] {
        let mut bench = bench();
        bench.change_config(|config| config.limits.disk_mib = 12);
        let fill = "def fill():\n    for n in range(3): open('%d' % n, 'wb').write(b'x' * (6 << 20))";
        let script = format!("import os, time\nfiles = []\n{fill}\n{hide}\ntime.sleep(60)\nprint('left')");
        std::fs::write(bench.job.workspace.join("hide.py"), script).unwrap();

        let ended = run(&bench, "exec python3 hide.py").await;

        let log = bench.log();
        assert!(matches!(ended, Ended::Code { code: 137, .. }), "{hide}: {ended:?} {log}");
        assert!(log.contains("[freehold: stopped the program, because the workspace holds"), "{hide}: {log}");
        assert!(!log.contains("left"), "{hide}: {log}");
    }
}

#[tokio::test]
async fn a_job_that_fills_the_disk_is_ended_with_a_line_that_says_so() {
    if !have(&["bwrap"]) {
        return;
    }
    let mut bench = bench();
    bench.change_config(|config| config.limits.files = 100);

    let ended = run(&bench, "i=0; while [ $i -lt 200 ]; do i=$((i+1)); : > f$i; done; sleep 31536012").await;

    assert!(matches!(ended, Ended::Code { code: 137, .. }), "{ended:?}");
    let log = bench.log();
    assert!(
        log.contains("[freehold: stopped the program, because the workspace holds")
            && log.contains("`limits.files` allows 100 files"),
        "{log}"
    );
    eventually("it is gone", || processes("sleep\u{0}31536012").is_empty()).await;
}

/// By itself a test of root, to whom every file belongs; the next test runs it as a runner that may not touch its jobs'
/// files.
#[tokio::test]
async fn what_killed_jobs_leave_on_disk_is_removed() {
    if !have(&["bwrap"]) {
        return;
    }
    let mut bench = bench();
    bench.change_config(|config| config.limits.files = 100);
    let work = bench.job.config.state_dir.join("work");
    let fills = "mkdir -p a/b; chmod 000 a/b; i=0; while [ $i -lt 200 ]; do i=$((i+1)); : > f$i; done; sleep 31536014";
    for name in ["ends", "left"] {
        bench.job.workspace = work.join(name);
        std::fs::create_dir_all(&bench.job.workspace).unwrap();
        assert!(matches!(run(&bench, fills).await, Ended::Code { code: 137, .. }));
    }
    eventually("they are gone", || processes("sleep\u{0}31536014").is_empty()).await;

    sandbox::remove(&work.join("ends"), &bench.job.config).await.unwrap();
    let others = work.join("left").exists();
    // As at the runner's next start.
    sandbox::remove(&work, &bench.job.config).await.unwrap();

    assert!(others && !work.exists());
}

#[tokio::test]
async fn a_runner_that_may_not_touch_its_jobs_files_removes_what_killed_jobs_leave() {
    if !have(&["bwrap", "setpriv"]) {
        return;
    }
    if !rustix::process::geteuid().is_root() {
        return skip("only root can give up its right to every file and keep the one to make users");
    }
    let ended = tokio::process::Command::new("setpriv")
        .args(["--bounding-set=-dac_override,-dac_read_search,-fowner,-chown", "--inh-caps=-all"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "walls::what_killed_jobs_leave_on_disk_is_removed", "--nocapture"])
        .output()
        .await
        .unwrap();

    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
}

/// How many boxes are given up.
const MOMENTS: u32 = 80;

/// Does nothing unless its variable is set: it gives boxes up at different moments while they are made.
#[tokio::test]
async fn a_runner_that_gives_boxes_up() {
    if std::env::var_os("FREEHOLD_TEST_GIVE_UP").is_some() {
        let bench = bench();
        let begun = tokio::time::Instant::now();
        run(&bench, "true").await;
        // From the start of a job to its end, which takes longer on slow machines.
        let moment = begun.elapsed() / MOMENTS;
        for count in 0..MOMENTS {
            let _ = tokio::time::timeout(moment * count, run(&bench, "true")).await;
        }
    }
}

#[tokio::test]
async fn a_box_that_is_given_up_while_it_is_made_leaves_no_process() {
    if !have(&["bwrap", "setsid"]) {
        return;
    }
    // All processes of the boxes are in the session of this runner, also those whose parent has ended.
    let mut runner = tokio::process::Command::new("setsid")
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "walls::a_runner_that_gives_boxes_up"])
        .env("FREEHOLD_TEST_GIVE_UP", "1")
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let session = runner.id().unwrap();

    let ended = runner.wait().await.unwrap();

    assert!(ended.success());
    eventually("no process is left", || processes("").iter().all(|id| session_of(*id) != Some(session))).await;
}

/// Returns the session of a process.
fn session_of(id: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // After the name in brackets: the state, the parent, the process group and the session.
    stat.rsplit_once(')')?.1.split_whitespace().nth(3)?.parse().ok()
}

/// Does nothing unless its variable is set: it is the runner that the next test stops.
#[tokio::test]
async fn a_runner_with_a_short_lease() {
    if std::env::var_os("FREEHOLD_TEST_LEASE").is_some() {
        let mut bench = bench();
        // Long enough for a slow machine to start the job and to stop the runner before the lease ends.
        let end = tokio::time::Instant::now() + Duration::from_secs(20);
        let (lease, until) = watch::channel(freehold_runner::process::clock::boot_nanos(end));
        bench.job.stop = Stop::channel().1.bounded_by(until);
        run(&bench, "sleep 31536013").await;
        drop(lease);
    }
}

#[tokio::test]
async fn the_job_of_a_runner_that_is_stopped_ends_before_its_lease() {
    if !have(&["bwrap", "kill"]) {
        return;
    }
    let mut runner = tokio::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "walls::a_runner_with_a_short_lease"])
        .env("FREEHOLD_TEST_LEASE", "1")
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    eventually("the job starts", || processes("sleep\u{0}31536013").len() == 1).await;
    let id = runner.id().unwrap().to_string();

    let stopped = tokio::process::Command::new("kill").args(["-STOP", &id]).status().await.unwrap();

    assert!(stopped.success());
    eventually("the job is gone", || processes("31536013").is_empty()).await;
    runner.kill().await.unwrap();
}

#[tokio::test]
async fn a_host_that_no_contract_names_is_refused_in_the_log() {
    if !have(&["bwrap", "curl"]) {
        return;
    }
    let bench = bench();

    let script = "curl -s -o /dev/null -w '%{http_connect}\\n' https://example.org; \
                  curl -s -o /dev/null -w '%{http_code}\\n' http://169.254.169.254/latest/meta-data/";
    run(&bench, script).await;

    let log = bench.log();
    assert!(log.contains("403\n") && !log.contains("200"), "{log}");
    assert!(log.contains("[freehold: refused a connection to example.org:443: "), "{log}");
    assert!(log.contains("[freehold: refused a connection to 169.254.169.254:80: "), "{log}");
}

#[tokio::test]
async fn this_machine_is_told_which_walls_stand() {
    if !have(&["bwrap"]) {
        return;
    }
    drop(bench());

    let walls = sandbox::walls(&Default::default()).await.unwrap();

    assert_eq!(walls.len(), 14);
    assert!(walls.iter().all(|wall| wall.stands && !wall.answer.is_empty()), "{walls:#?}");
}

#[tokio::test]
async fn two_that_make_boxes_in_advance_make_no_more_than_one_would() {
    if !have(&["bwrap"]) {
        return;
    }
    let bench = bench();
    let made = || std::fs::read_dir(bench.job.config.state_dir.join("work")).map_or(0, Iterator::count);
    let before = made();
    let boxes = sandbox::WarmBoxes::new(bench.job.config.clone());

    tokio::join!(boxes.fill(), boxes.fill());

    assert_eq!(made() - before, boxes.len());
    assert_eq!(boxes.len(), 2);
}

#[tokio::test]
async fn a_leftover_at_the_place_of_a_workspace_costs_no_waiting_box_and_is_not_used() {
    if !have(&["bwrap"]) {
        return;
    }
    let bench = bench();
    let boxes = sandbox::WarmBoxes::new(bench.job.config.clone());
    boxes.fill().await;
    let waiting = boxes.len();
    let workspace = bench.job.config.state_dir.join("work/job");
    std::fs::create_dir_all(workspace.join("old")).unwrap();

    assert!(boxes.take(&workspace, None).is_err());
    assert_eq!(boxes.len(), waiting);
    std::fs::remove_dir_all(&workspace).unwrap();
    assert!(boxes.take(&workspace, None).is_ok());
    assert_eq!(boxes.len(), waiting - 1);
}

#[tokio::test]
async fn a_job_starts_in_the_box_that_waited_and_finds_what_was_put_into_its_workspace() {
    if !have(&["bwrap"]) {
        return;
    }
    let mut bench = bench();
    let boxes = sandbox::WarmBoxes::new(bench.job.config.clone());
    boxes.refill();
    let workspace = bench.job.config.state_dir.join("work/job");
    while boxes.is_empty() {
        tokio::task::yield_now().await;
    }

    bench.job.first_box = boxes.take(&workspace, None).unwrap();
    bench.job.workspace = workspace.clone();
    std::fs::write(workspace.join("given"), "given\n").unwrap();
    let before = boxes.len();
    run(&bench, "cat given; pwd; echo made > file; id -u").await;

    assert_eq!(bench.log(), "given\n/workspace\n1000\n");
    assert_eq!(std::fs::read_to_string(workspace.join("file")).unwrap(), "made\n");
    assert!(boxes.len() >= before, "the box came from those that waited");
}
