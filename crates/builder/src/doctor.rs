//! Checks for `freehold-builder doctor` the program that a build runner starts.

use std::process::Stdio;

use freehold_runner::operate::checks;
use freehold_runner::operate::doctor::{Finding, State};
use freehold_runner::sandbox::find_program;

use crate::dockerfile::BUILDERS;

/// Reports the program that builds Dockerfiles; its absence is not an error until a component needs it.
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
    // The files of an image have many owners. A user other than root can create files for other owners only with a
    // range of user ids from `/etc/subuid`.
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
