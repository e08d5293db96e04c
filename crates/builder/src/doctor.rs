//! The check of `freehold-builder doctor` for the program that builds images.

use freehold_runner::config::{Config, SandboxKind};
use freehold_runner::operate::doctor::{Finding, State};
use freehold_runner::sandbox::{JobUser, SandboxError, find_program};

use crate::dockerfile::builders;

/// Reports which program builds Dockerfiles, and whether this machine has user ids for the steps of a build. If one of
/// the two is missing, that is not an error, because only components of type `docker_build` need them.
pub async fn image_builder(config: &Config) -> Finding {
    let state = match find_program(builders(config.sandbox)) {
        None => State::Off(
            "`buildah` is not on PATH: components of type `docker_build` cannot be built; install the package `buildah` if \
             there are any"
                .into(),
        ),
        Some(path) => judge(&path.display().to_string(), config.sandbox, &JobUser::find()),
    };
    Finding { what: "image builder".into(), state }
}

fn judge(path: &str, sandbox: SandboxKind, user: &JobUser) -> State {
    match sandbox {
        SandboxKind::None => State::Off(format!(
            "{path} runs without a box: the steps of a Dockerfile see the whole machine; set `sandbox = \"bubblewrap\"`"
        )),
        SandboxKind::Bubblewrap if user.can_build_images() => State::Works(format!("{path}, each build in a box")),
        SandboxKind::Bubblewrap => State::Off(format!("no Dockerfile can be built: {}", SandboxError::NoUsers)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_without_users_for_the_steps_is_told_how_to_get_them() {
        let state = judge("/usr/bin/buildah", SandboxKind::Bubblewrap, &JobUser::Same);

        assert!(matches!(state, State::Off(text) if text.contains("/etc/subuid") && text.contains("65536")));
    }
}
