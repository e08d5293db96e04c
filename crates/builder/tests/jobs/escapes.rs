//! What the steps of a Dockerfile try in vain. What they could do if one worked: `runner/tests/jobs/sandbox/image_walls.rs`.

use std::collections::BTreeMap;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use freehold_builder::dockerfile::make;
use freehold_protocol::order::{Package, Recipe, Source};
use freehold_runner::job::failure::Failure;
use freehold_runner::sandbox::JobUser;
use freehold_skips::{have, skip};

use crate::builds::build_bench;
use crate::fixture::{self, Bench};

/// Leaves a root directory as the manual of chroot(2) describes, and shows the directory that is its first argument.
const LEAVE: &str = r#"
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
int main(int count, char **words) {
    mkdir("/deeper", 0755);
    int top = open("/", O_RDONLY);
    if (chroot("/deeper")) { perror("chroot"); return 1; }
    if (fchdir(top)) { perror("fchdir"); return 1; }
    for (int i = 0; i < 100; i++) chdir("..");
    if (chroot(".")) { perror("chroot"); return 1; }
    printf("left\n");
    DIR *directory = opendir(words[1]);
    if (directory) for (struct dirent *one; (one = readdir(directory));) printf("seen %s\n", one->d_name);
    return 0;
}
"#;

/// Returns a bench with a context that has a shell; none, and says that the test is skipped, where this machine cannot.
fn start() -> Option<(Bench, PathBuf)> {
    if !have(&["bwrap", "buildah", "busybox"]) {
        return None;
    }
    if !JobUser::find().can_build_images() {
        skip("this user has no range of 65536 in /etc/subuid");
        return None;
    }
    let busybox = freehold_skips::find_program("busybox").unwrap();
    if !Command::new("ldd").arg(&busybox).output().is_ok_and(|output| !output.status.success()) {
        skip("`busybox` is not the static one; install `busybox-static`");
        return None;
    }
    let bench = build_bench(Package::DockerImage, Source::Version);
    let context = bench.job.workspace.join("source");
    fs::create_dir(&context).unwrap();
    fs::copy(busybox, context.join("busybox")).unwrap();
    Some((bench, context))
}

/// Builds `FROM scratch`, a shell and `steps`; returns the log, and why it failed.
async fn built(bench: &Bench, context: &Path, steps: &str) -> (String, Option<String>) {
    let text = format!("FROM scratch\nCOPY busybox /bin/busybox\nCOPY busybox /bin/sh\n{steps}\n");
    fs::write(context.join("Dockerfile"), text).unwrap();
    let recipe = Recipe::Dockerfile {
        dockerfile: "Dockerfile".into(),
        args: BTreeMap::new(),
        target: String::new(),
        hosts: Vec::new(),
    };
    let failure = match make(&bench.job, &recipe, context, &[]).await {
        Ok(image) => {
            assert!(image.join("index.json").is_file());
            None
        }
        Err(Failure::Failed { reason, .. }) => Some(reason),
        Err(other) => panic!("{other:?}"),
    };
    (bench.log(), failure)
}

#[tokio::test]
async fn a_step_owns_nothing_and_its_files_have_many_owners() {
    let Some((bench, context)) = start() else { return };

    let steps = "RUN busybox id -u; busybox grep CapEff /proc/self/status; busybox chown 33:44 /bin/busybox; \
                 busybox stat -c %u:%g /bin/busybox; busybox mknod /d b 8 0 2>/dev/null && echo device; \
                 busybox mount -t proc x /proc 2>/dev/null && echo mounted; busybox env | busybox grep AWS; true";
    let (log, failure) = built(&bench, &context, steps).await;

    assert_eq!(failure, None, "{log}");
    assert!(log.contains("\n33:44\n") && !log.contains("device\n") && !log.contains("mounted\n"), "{log}");
    assert!(!log.lines().any(|line| line.starts_with("AWS")), "{log}");
    // CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL, SETGID, SETUID, SETPCAP, NET_BIND_SERVICE, SETFCAP, capabilities(7).
    let held = log.lines().find_map(|line| line.strip_prefix("CapEff:\t")).unwrap();
    assert_eq!(u64::from_str_radix(held, 16).unwrap() & !0x8000_05fb, 0, "{held}");
}

#[tokio::test]
async fn a_step_cannot_leave_its_root_directory() {
    if !have(&["cc"]) {
        return;
    }
    let Some((bench, context)) = start() else { return };
    fs::write(bench.directory.path().join("leave.c"), LEAVE).unwrap();
    let files = [context.join("leave"), bench.directory.path().join("leave.c")];
    let compiled = Command::new("cc").args(["-static", "-o"]).args(files).status().unwrap();
    assert!(compiled.success());

    let steps = format!(
        "COPY leave /leave\nRUN /leave {0}; busybox chroot / /leave {0}; true",
        bench.directory.path().display()
    );
    let (log, failure) = built(&bench, &context, &steps).await;

    assert_eq!(failure, None, "{log}");
    assert!(log.contains("chroot: Operation not permitted") && !log.contains("left\n"), "{log}");
}

#[tokio::test]
async fn a_link_in_the_context_leads_nowhere() {
    let mut all = String::new();
    let steps = ["COPY absolute /x", "COPY relative /x", "COPY top/etc/hostname /x", "COPY ../../secret /x"];
    for step in steps.into_iter().chain(["ADD /workspace/policy.json /x"]) {
        let Some((bench, context)) = start() else { return };
        let secret = bench.directory.path().join("secret");
        fs::write(&secret, "correct-horse-battery").unwrap();
        for (target, link) in
            [(secret.as_path(), "absolute"), (Path::new("../../secret"), "relative"), (Path::new("/"), "top")]
        {
            std::os::unix::fs::symlink(target, context.join(link)).unwrap();
        }
        all.push_str(&built(&bench, &context, &format!("{step}\nRUN busybox cat /x || true")).await.0);
    }

    assert!(!all.contains("correct-horse-battery") && !all.contains("insecureAcceptAnything"), "{all}");
}

#[tokio::test]
async fn options_of_a_dockerfile_open_nothing() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    server.set_nonblocking(true).unwrap();
    let at = server.local_addr().unwrap();

    let policy = "/m/policy.json";
    let wget = format!("busybox wget -T 2 -q -O - http://{at}/ && echo reached; true");
    let mut all = String::new();
    for step in [
        format!("RUN {wget}"),
        format!("RUN --network=host {wget}"),
        format!("RUN --security=insecure busybox mount -t tmpfs x /mnt && echo mounted; {wget}"),
        "RUN --mount=type=secret,id=secret,required=true busybox cat /run/secrets/secret".to_owned(),
        "RUN --mount=type=ssh busybox ls /run/buildkit".to_owned(),
        format!("RUN --mount=type=bind,source=../..,target=/m busybox cat /m/secret {policy}"),
        "RUN --mount=type=bind,from=oci:/workspace/image,target=/m busybox ls /m".to_owned(),
        format!("ADD http://{at}/ /x"),
        format!("FROM {at}/base:1"),
    ] {
        let Some((bench, context)) = start() else { return };
        fs::write(bench.directory.path().join("secret"), "correct-horse-battery").unwrap();
        let (log, failure) = built(&bench, &context, &step).await;
        all.push_str(&format!("{step}\n{log}{failure:?}\n"));
    }

    assert!(server.accept().is_err(), "a connection came out of the box: {all}");
    for found in ["reached\n", "mounted\n", "correct-horse-battery", "insecureAcceptAnything"] {
        assert!(!all.contains(found), "{all}");
    }
}

#[test]
fn the_builder_forbids_core_dumps_of_itself_and_its_programs() {
    fixture::check_core_limit();
}
