//! Jobs in an image: what they see, where the image comes from, and what is refused.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use flate2::Compression;
use flate2::write::GzEncoder;
use freehold_protocol::Digest;
use freehold_protocol::order::{ActionStep, Artifact, RunAction, ToolImage, Work};
use freehold_runner::kinds::execute;
use freehold_runner::registry::ecr_repository;
use freehold_runner::sandbox::WarmBoxes;
use freehold_skips::{have, skip};
use serde_json::json;

use crate::artifacts::of_layers;
use crate::cloud::Cloud;
use crate::fixture::{Bench, NoGrants, REPOSITORY, outputs, reason};

const BUSYBOX: &str = "/usr/bin/busybox";

fn own() -> &'static str {
    if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" }
}

/// Returns a gzipped tar of these files, programs and links (`-> target`).
pub(crate) fn gzipped_tar(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut tar = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::none()));
    for (path, content) in entries {
        let mut header = tar::Header::new_gnu();
        header.set_mode(if path.starts_with("bin/") { 0o755 } else { 0o600 });
        if let Some(target) = content.strip_prefix(b"-> ") {
            header.set_entry_type(tar::EntryType::Symlink);
            header.set_size(0);
            tar.append_link(&mut header, path, std::str::from_utf8(target).unwrap()).unwrap();
        } else {
            header.set_size(content.len() as u64);
            tar.append_data(&mut header, path, *content).unwrap();
        }
    }
    tar.into_inner().unwrap().finish().unwrap()
}

/// An image of these files.
pub(crate) async fn of_files(cloud: &Cloud, files: &[(&str, &[u8])]) -> Artifact {
    of_layers(cloud, own(), &[], &[gzipped_tar(files)]).await
}

/// An image of nothing but busybox, whose second layer removes a file of the first; `mark` makes it one of its own.
async fn image(cloud: &Cloud, mark: &str) -> Artifact {
    let busybox = std::fs::read(BUSYBOX).unwrap();
    let below = gzipped_tar(&[
        ("bin/busybox", &busybox),
        ("bin/sh", b"-> busybox"),
        ("etc/mark", mark.as_bytes()),
        ("etc/passwd", b"image:x:7:7::/:/bin/sh"),
        ("etc/gone", b"x"),
        ("var/lib/own", b"x"),
    ]);
    let env = ["PATH=/opt/bin:/bin", "GREETING=hello", "HOME=/root"];
    of_layers(cloud, own(), &env, &[below, gzipped_tar(&[("etc/.wh.gone", b"")])]).await
}

pub(crate) fn work(command: &str, image: &str) -> Work {
    let command = ActionStep {
        name: "look".into(),
        command: command.into(),
        inline_contents: String::new(),
        env_vars: BTreeMap::new(),
    };
    Work::Action(RunAction {
        action: "look".parse().unwrap(),
        steps: vec![command],
        directories: Vec::new(),
        env_vars: BTreeMap::new(),
        idempotent: true,
        cluster: None,
        image: image.to_owned(),
    })
}

/// A job in `artifact`, whose requests for it are answered.
fn bench(cloud: &Cloud, artifact: &Artifact, command: &str) -> Bench {
    let mut bench = cloud.bench(work(command, ""), artifact);
    let tool_image = ToolImage { component: "network".parse().unwrap(), artifact: artifact.clone() };
    bench.change_order(|order| order.tool_image = Some(Box::new(tool_image)));
    bench
}

/// Returns the cloud, where `busybox` needs no library.
async fn here(test: &str) -> Option<Cloud> {
    if !have(&["bwrap"]) {
        return None;
    }
    let is_static =
        std::process::Command::new("ldd").arg(BUSYBOX).output().is_ok_and(|output| !output.status.success());
    if !Path::new(BUSYBOX).is_file() || !is_static {
        skip("`/usr/bin/busybox` is not installed, or is linked to libraries; install `busybox-static`");
        return None;
    }
    Cloud::here(&format!("tool_image::{test}")).await
}

#[tokio::test]
async fn a_job_sees_the_image_and_nothing_of_the_machine() {
    let Some(cloud) = here("a_job_sees_the_image_and_nothing_of_the_machine").await else { return };
    let artifact = image(&cloud, "one").await;
    // The certificates of the machine may lie below `/usr/lib`, and are shown.
    let command = "cd /; cat etc/mark; echo; for one in *; do [ $one = usr ] || echo -n \"$one \"; done; echo; \
                   ls /usr/bin /usr/sbin /usr/share /etc/gone /home /root /var/lib/freehold 2>/dev/null; \
                   touch /etc/x /bin/x /x 2>/dev/null && echo wrote; \
                   busybox id -u; busybox whoami; echo $GREETING $HOME $PATH; \
                   echo \"{\\\"a\\\": 1}\" > $FREEHOLD_OUTPUTS";
    let mut bench = bench(&cloud, &artifact, command);

    let first = execute(&bench.job).await;
    let log = bench.log();
    bench.job.grants = Arc::new(NoGrants);
    bench.next_attempt();
    bench.job.image = Arc::default();
    let second = execute(&bench.job).await;

    assert_eq!((outputs(first), outputs(second)), (json!({ "a": 1 }), json!({ "a": 1 })), "{log}");
    let lines: Vec<&str> = log.lines().filter_map(|line| line.strip_prefix("look | ")).collect();
    let expected = ["one", "bin dev etc proc run tmp var workspace ", "1000", "job", "hello /workspace /opt/bin:/bin"];
    assert_eq!(lines, expected, "{log}");
    assert!(bench.log().contains(&format!("programs run in image {}", artifact.digest)));
}

#[tokio::test]
async fn two_jobs_that_need_the_same_image_unpack_it_once_and_boxes_wait_with_it() {
    let test = "two_jobs_that_need_the_same_image_unpack_it_once_and_boxes_wait_with_it";
    let Some(cloud) = here(test).await else { return };
    let (artifact, other) = (image(&cloud, "one").await, Digest::of(b"other"));
    let (mut one, two) = (bench(&cloud, &artifact, "cat /etc/mark"), bench(&cloud, &artifact, "cat /etc/mark"));
    one.job.config = two.job.config.clone();

    let (first, second) = tokio::join!(execute(&one.job), execute(&two.job));
    outputs(first);
    outputs(second);
    let both = one.log() + &two.log();
    one.next_attempt();
    one.job.image = Arc::default();
    let boxes = WarmBoxes::new(one.job.config.clone());
    let work = one.job.config.state_dir.join("work");
    boxes.take(&work.join("before"), Some(&artifact.digest)).unwrap();
    boxes.refill();
    while boxes.is_empty() {
        tokio::task::yield_now().await;
    }
    one.job.workspace = work.join("job");
    one.job.first_box = boxes.take(&one.job.workspace, Some(&artifact.digest)).unwrap();
    let warm = outputs(execute(&one.job).await);
    boxes.take(&work.join("after"), Some(&other)).unwrap();

    assert_eq!(both.matches("unpacking image").count(), 1, "{both}");
    assert_eq!(both.matches("look | one").count(), 2, "{both}");
    assert_eq!((warm, one.log().matches("look | one").count()), (json!({}), 1));
    assert!(boxes.is_empty(), "boxes with another image are of no use");
}

#[tokio::test]
async fn an_action_runs_in_the_image_that_it_names() {
    let Some(cloud) = here("an_action_runs_in_the_image_that_it_names").await else { return };
    let (default, own) = (image(&cloud, "default").await, image(&cloud, "own").await);
    let repository = ecr_repository(&cloud.customer, REPOSITORY).await.unwrap();
    outputs(execute(&bench(&cloud, &own, "true").job).await);
    let in_image = |reference: String| {
        let mut bench = bench(&cloud, &default, "");
        bench.change_order(|order| {
            order.work = work("cat /etc/mark", "{{ .nuon.components.own.outputs.reference }}");
            order.context["nuon"]["components"] = json!({ "own": { "outputs": { "reference": reference } } });
        });
        bench
    };

    let named = in_image(repository.image(&own.digest));
    outputs(execute(&named.job).await);
    let mut refused = Vec::new();
    let absent = repository.image(&Digest::of(b"absent"));
    let foreign = format!("registry.example/{REPOSITORY}x@{}", own.digest);
    for reference in [absent.clone(), foreign, "alpine:3".to_owned()] {
        refused.push(reason(execute(&in_image(reference).job).await).0);
    }
    let mut without_box = in_image(repository.image(&own.digest)).plain();
    without_box.job.grants = Arc::new(NoGrants);
    refused.push(reason(execute(&without_box.job).await).0);

    assert!(named.log().contains("look | own"));
    let (registry, digest) = (repository.address(), Digest::of(b"absent"));
    let host = registry.strip_suffix(&format!("/{REPOSITORY}")).unwrap();
    assert_eq!(
        refused[0],
        format!(
            "action `look`, image `{absent}`: registry `{host}` has no manifest `{digest}` in `{REPOSITORY}`; deploy \
             the component with this image first, then start the job again"
        )
    );
    for reason in &refused[1..3] {
        assert!(reason.contains("is not an image of the install registry by digest; add it to the app"), "{reason}");
    }
    assert!(refused[3].contains("write `sandbox = \"bubblewrap\"` into its config"), "{refused:#?}");
}

#[tokio::test]
async fn a_program_of_an_image_is_compared_and_not_the_machines_program_of_that_path() {
    let test = "a_program_of_an_image_is_compared_and_not_the_machines_program_of_that_path";
    let Some(cloud) = here(test).await else { return };
    let artifact = image(&cloud, "one").await;
    let mut bench = bench(&cloud, &artifact, "cat /etc/mark");
    let pin = |bench: &mut Bench, program: &str| {
        let digest = Digest::of(&std::fs::read(program).unwrap());
        bench.change_config(|config| config.programs = [("sh".to_owned(), digest)].into());
    };

    pin(&mut bench, "/bin/sh");
    let (refused, partial) = reason(execute(&bench.job).await);
    let log = bench.log();
    bench.next_attempt();
    bench.job.image = Arc::default();
    pin(&mut bench, BUSYBOX);
    let ran = outputs(execute(&bench.job).await);

    assert!(refused.contains(&format!("`/bin/sh` in image `{}` has the digest", artifact.digest)), "{refused}");
    assert!(!partial && !log.contains("look | one"), "{log}");
    assert_eq!(ran, json!({}));
    assert!(bench.log().contains("look | one"));
}

#[tokio::test]
async fn an_image_that_cannot_be_used_is_named_with_the_way_out() {
    let Some(cloud) = here("an_image_that_cannot_be_used_is_named_with_the_way_out").await else { return };
    let hello = gzipped_tar(&[("etc/mark", b"x")]);
    let foreign = of_layers(&cloud, "s390x", &[], std::slice::from_ref(&hello)).await;
    let broken = of_layers(&cloud, own(), &[], &[b"not a layer".to_vec()]).await;
    let empty = of_layers(&cloud, own(), &[], &[hello]).await;
    let cases = [
        (foreign, "it is for `linux/s390x`, and this machine is `linux/"),
        (broken, "could not unpack it: the layer cannot be unpacked: "),
        (empty, "has no `bash` or `sh` on its `PATH`; add the program to it"),
    ];

    for (artifact, part) in cases {
        let bench = bench(&cloud, &artifact, "true");
        let (reason, partial) = reason(execute(&bench.job).await);
        assert!(reason.contains(part) && !partial, "{part}: {reason}");
        let images = bench.job.config.state_dir.join("images");
        let unfinished = std::fs::read_dir(&images)
            .into_iter()
            .flatten()
            .filter(|entry| entry.as_ref().unwrap().path().extension().is_some_and(|end| end == "new"));
        assert_eq!(unfinished.count(), 0, "{part}");
    }
    let mut unsigned = image(&cloud, "one").await;
    unsigned.provenance = None;
    let (reason, _) = reason(execute(&bench(&cloud, &unsigned, "true").job).await);
    assert!(reason.starts_with("the tool image of component `network`: "), "{reason}");
}

#[tokio::test]
async fn no_link_of_an_image_leads_the_box_to_files_of_the_machine() {
    let test = "no_link_of_an_image_leads_the_box_to_files_of_the_machine";
    let Some(cloud) = here(test).await else { return };
    let outside = tempfile::tempdir().unwrap();
    // The machine's files are there while `bwrap` makes a box.
    let link = format!("-> /oldroot{}", outside.path().display());
    let busybox = std::fs::read(BUSYBOX).unwrap();
    let files: [(&str, &[u8]); 4] =
        [("bin/busybox", &busybox), ("bin/sh", b"-> busybox"), ("etc", link.as_bytes()), ("run", link.as_bytes())];
    let artifact = of_files(&cloud, &files).await;
    let bench = bench(&cloud, &artifact, "busybox head -n 2 /etc/passwd");

    let ended = execute(&bench.job).await;

    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0, "{ended:?}");
    outputs(ended);
    assert!(bench.log().contains("look | job:x:1000:1000:"), "{}", bench.log());
}
