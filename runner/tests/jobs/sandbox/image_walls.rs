//! What a step of a Dockerfile cannot do once it has left the root directory that Buildah gave it: each test tries it as root
//! of the box, with every capability there, which is more than a step has.

use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use freehold_runner::sandbox::{self, JobUser};
use freehold_skips::{have, skip};

use crate::fixture::{Bench, eventually, processes};
use crate::sandbox::{bench, code, shell};

/// Returns a bench; none, and says that the test is skipped, where the machine has no users for an image.
fn start(programs: &[&str]) -> Option<Bench> {
    if !have(programs) {
        return None;
    }
    if !JobUser::find().can_build_images() {
        skip("this user has no range of 65536 in /etc/subuid");
        return None;
    }
    Some(bench())
}

/// Runs `script` in bash as the program that makes an image.
async fn escaped(bench: &Bench, script: &str) -> i32 {
    let mut program = shell(bench, script);
    program.executable = Path::new("/bin/bash");
    code(sandbox::run_image_build(&bench.job, program).await.unwrap())
}

#[tokio::test]
async fn the_root_of_a_build_is_nobody_outside() {
    let Some(bench) = start(&["bwrap", "bash"]) else { return };
    let stop = bench.stop.clone();

    let script = "id -u; grep CapEff /proc/self/status; head -c1 /dev/zero >/dev/null && echo devices; chown 65535 file; \
                  chown 65536 file 2>/dev/null && echo more; cp /bin/true s; chmod 6755 s; sleep 31536017";
    std::fs::write(bench.job.workspace.join("file"), "x").unwrap();
    let (_, user) = tokio::join!(sandbox::run_image_build(&bench.job, shell(&bench, script)), async {
        eventually("it runs", || processes("sleep\u{0}31536017").len() == 1).await;
        let user = std::fs::metadata(format!("/proc/{}", processes("sleep\u{0}31536017")[0])).unwrap().uid();
        stop.send(Some(freehold_runner::job::StopReason::Cancelled)).unwrap();
        user
    });

    assert_eq!(bench.log(), "0\nCapEff:\t000001ffffffffff\ndevices\n");
    let own = std::fs::metadata("/proc/self").unwrap().uid();
    assert_ne!(user, own);
    for path in ["file", "s"] {
        let data = std::fs::metadata(bench.job.workspace.join(path)).unwrap();
        assert_eq!((data.uid(), data.permissions().mode() & 0o6000), (own, 0), "{path}");
    }
}

#[tokio::test]
async fn nothing_of_the_runner_or_of_another_build_is_there() {
    let Some(bench) = start(&["bwrap", "bash"]) else { return };
    let state = bench.directory.path().join("state");
    std::fs::create_dir_all(state.join("work/other")).unwrap();
    for file in ["runner.key", "journal.jsonl", "work/other/layer"] {
        std::fs::write(state.join(file), "correct-horse-battery").unwrap();
    }

    let script = format!(
        "exec 2>/dev/null; for d in {0} {1} /proc/1/root{0} /proc/self/root/../..{0}; do ls $d && echo $d; done; \
         grep -rl correct-horse-battery / --include=runner.key --include=journal.jsonl --include=layer; \
         mkdir r; mount --bind / r && ls r{0} && echo bound; umount -l /usr && echo unmounted; umount -l / && echo root; \
         mount -o remount,bind,rw /usr && echo remounted; touch /usr/x /etc/x /bin/x && echo wrote; \
         cat /run/freehold/init >/dev/null; echo x > /run/freehold/init && echo init; ls /home /root /var; echo done",
        state.display(),
        bench.directory.path().display(),
    );
    escaped(&bench, &script).await;

    assert_eq!(bench.log(), "done\n");
}

#[tokio::test]
async fn the_machines_devices_and_file_systems_are_not_there() {
    let Some(bench) = start(&["bwrap", "bash", "mknod", "mount", "unshare"]) else { return };

    let script = "exec 2>/dev/null; n=0; while read -r major minor _ name; do [ \"$name\" ] && mknod d$((n+=1)) b $major $minor \
                  && echo device $name; done < /proc/partitions; mknod m c 1 1 && echo memory; \
                  for t in sysfs devtmpfs cgroup2 debugfs tracefs bpf; do mount -t $t x /tmp && echo $t; done; \
                  echo 0 > /proc/sys/kernel/printk && echo sysctl; echo c > /proc/sysrq-trigger && echo sysrq; \
                  unshare -Urm mount -o remount,bind,rw /usr && echo nested; [ -s /proc/kallsyms ] && echo symbols; \
                  ls /sys/* && echo sys; echo done";
    escaped(&bench, script).await;

    assert_eq!(bench.log(), "done\n");
}

#[tokio::test]
async fn nothing_of_the_machines_network_answers() {
    let Some(bench) = start(&["bwrap", "bash", "python3"]) else { return };
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    server.set_nonblocking(true).unwrap();
    let own = server.local_addr().unwrap();
    let name = format!("freehold-{}", std::process::id());
    let abstract_name = std::os::unix::net::SocketAddr::from_abstract_name(&name).unwrap();
    let unix = std::os::unix::net::UnixListener::bind_addr(&abstract_name).unwrap();
    unix.set_nonblocking(true).unwrap();
    let proxied = r#"
import socket, sys
def proxy(request):
    s = socket.create_connection(("127.0.0.1", 3128)); s.sendall(request.encode()); answer = s.recv(100).decode(); s.close()
    return answer.split(" ")[1]
server, name = sys.argv[1:]
for request in (f"CONNECT {server} HTTP/1.1\r\nHost: {server}\r\n\r\n", f"GET http://{server}/ HTTP/1.1\r\nHost: {server}\r\n\r\n",
                "GET http://169.254.169.254/latest/meta-data/ HTTP/1.1\r\nHost: 169.254.169.254\r\n\r\n",
                "CONNECT sts.eu-west-1.amazonaws.com:443 HTTP/1.1\r\nHost: sts.eu-west-1.amazonaws.com\r\n\r\n"):
    print(proxy(request))
try: socket.socket(socket.AF_UNIX).connect("\0" + name); print("abstract")
except OSError: pass
try: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW); print("netlink")
except OSError: pass
try: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1); print("raw")
except OSError: pass
"#;
    std::fs::write(bench.job.workspace.join("net.py"), proxied).unwrap();

    let tries = [
        format!("127.0.0.1/{}", own.port()),
        "169.254.169.254/80".into(),
        "169.254.170.2/80".into(),
        "192.0.2.1/80".into(),
    ]
    .map(|at| format!("timeout 2 bash -c 'exec 3<>/dev/tcp/{at}' 2>/dev/null && echo {at}"));
    escaped(&bench, &format!("{}; grep -c : /proc/net/dev; python3 net.py {own} {name}", tries.join("; "))).await;

    let log: Vec<String> =
        bench.log().lines().filter(|line| !line.starts_with("[freehold")).map(str::to_owned).collect();
    assert_eq!(
        log,
        ["1", "403", "403", "403", "403"],
        "only `lo`, and the proxy refuses what the component does not name"
    );
    assert!(server.accept().is_err() && unix.accept().is_err(), "a connection came out of the box");
}

#[tokio::test]
async fn other_processes_and_keys_are_out_of_reach() {
    let Some(bench) = start(&["bwrap", "bash", "python3", "nsenter"]) else { return };
    let runner = std::process::id();
    let script = r#"
import ctypes, platform
libc = ctypes.CDLL(None, use_errno=True)
x86 = platform.machine() == "x86_64"
calls = {"ptrace": (101, 117), "process_vm_readv": (310, 270), "keyctl": (250, 219), "add_key": (248, 217), "bpf": (321, 280),
         "request_key": (249, 218), "perf_event_open": (298, 241), "io_uring_setup": (425, 425), "setns": (308, 268),
         "pidfd_getfd": (438, 438), "open_by_handle_at": (304, 265), "kexec_load": (246, 104), "init_module": (175, 105),
         "reboot": (169, 142), "syslog": (103, 116), "settimeofday": (164, 170), "swapon": (167, 224)}
for name, numbers in calls.items():
    ctypes.set_errno(0)
    if libc.syscall(numbers[0 if x86 else 1], 0, 0, 0, 0, 0) != -1 or ctypes.get_errno() != 1: print(name)
print("done")
"#;
    std::fs::write(bench.job.workspace.join("calls.py"), script).unwrap();

    let script = format!(
        "exec 2>/dev/null; ls /proc | grep -qx {runner} && ls /proc/{runner}/root && echo runner; kill -0 {runner} && echo signal; \
         ls -l /proc/*/exe | grep -q 'deps/' && echo processes; kill -9 1; kill -STOP 1; ls /proc/1/fd/ && echo fds; \
         cat /proc/1/environ /proc/1/maps && echo init; nsenter -t 1 -a true && echo entered; \
         ls -l /proc/self/fd | grep -c socket; python3 calls.py"
    );
    escaped(&bench, &script).await;

    assert_eq!(bench.log(), "0\ndone\n");
}
