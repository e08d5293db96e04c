//! Looks at the program that a build runner starts, for `freehold-builder doctor`.

use std::process::Stdio;

use freehold_runner::operate::checks;
use freehold_runner::operate::doctor::{Finding, State};
use freehold_runner::sandbox::find_program;

use crate::dockerfile::BUILDERS;

/// Says which program makes images of Dockerfiles; none is fine as long as no component needs one.
pub async fn image_builder() -> Finding {
    let what = "image builder";
    let Some(path) = find_program(&BUILDERS) else {
        let detail = "neither `buildah` nor `buildctl` is on PATH: components of type `docker_build` cannot be built; \
                      install the package `buildah` if there are any";
        return Finding { what: what.into(), state: State::Off(detail.into()) };
    };
    let shown = path.display().to_string();
    if !path.ends_with("buildah") || rustix::process::geteuid().is_root() {
        return Finding::new(what, Ok(shown));
    }
    // Files of an image belong to many users, which a user that is not root has from `/etc/subuid` alone.
    let mut command = tokio::process::Command::new(&path);
    command.args(["unshare", "true"]).stdin(Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(checks::PROGRAM, command.output()).await;
    Finding::new(
        what,
        match output {
            Ok(Ok(output)) if output.status.success() => Ok(shown),
            Ok(Ok(output)) => Err(format!(
                "`buildah` cannot make a user namespace: {}; install the package `uidmap` and give this user ranges in \
                 `/etc/subuid` and `/etc/subgid`",
                String::from_utf8_lossy(&output.stderr).lines().last().unwrap_or_default()
            )),
            Ok(Err(error)) => Err(format!("`{shown}` does not start: {error}")),
            Err(_) => Err(format!("`buildah` did nothing for {} s", checks::PROGRAM.as_secs())),
        },
    )
}
