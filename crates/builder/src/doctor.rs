//! Checks for `freehold-builder doctor` the programs that a build runner starts.

use std::path::PathBuf;

use freehold_runner::config::{Config, SandboxKind};
use freehold_runner::kinds::terraform_module::executable;
use freehold_runner::operate::doctor::{Finding, State};
use freehold_runner::sandbox::{JobUser, SandboxError, find_program};

use crate::dockerfile::builders;
use crate::private_source::ssh::PROGRAMS;

/// Reports the programs that only some components need. An absent program is not an error until a component needs it.
pub async fn programs(config: &Config) -> Vec<Finding> {
    vec![terraform(config), image_builder(config), git_over_ssh(|name| find_program(&[name]))]
}

/// Reports the programs that read private Git repositories over SSH.
fn git_over_ssh(find: impl Fn(&str) -> Option<PathBuf>) -> Finding {
    let missing = PROGRAMS.into_iter().find(|name| find(name).is_none());
    let state = match (missing, find("ssh")) {
        (Some(name), _) => State::Off(format!(
            "`{name}` is not on PATH: private Git repositories over SSH cannot be read; install the package \
             `openssh-client` (Amazon Linux: `openssh-clients`) if your apps have such sources"
        )),
        (None, path) => State::Works(path.unwrap_or_default().display().to_string()),
    };
    Finding { what: "Git over SSH".into(), state }
}

/// Reports the program that chooses the providers of Terraform modules.
fn terraform(config: &Config) -> Finding {
    let found = executable::find(config.terraform.as_deref());
    Finding { what: "terraform".into(), state: judge_terraform(found, config.terraform.is_some()) }
}

fn judge_terraform(found: Result<PathBuf, String>, is_configured: bool) -> State {
    match found {
        Ok(path) => State::Works(path.display().to_string()),
        Err(wrong) if is_configured => State::Blocked(wrong),
        Err(absent) => {
            State::Off(format!("{absent}; until then, components of type `terraform_module` cannot be built"))
        }
    }
}

/// Reports which program builds Dockerfiles, and whether this machine has user ids for the steps of a build.
fn image_builder(config: &Config) -> Finding {
    let state = match find_program(builders(config.sandbox)) {
        None => State::Off(
            "`buildah` is not on PATH: components of type `docker_build` cannot be built; install the package \
             `buildah` if your apps have such components"
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

    #[test]
    fn absent_programs_of_ssh_are_reported_with_their_package() {
        let absent = git_over_ssh(|name| (name != "ssh-agent").then(|| name.into())).state;

        assert!(
            matches!(absent, State::Off(text) if text.contains("`ssh-agent`") && text.contains("`openssh-client`"))
        );
        assert!(matches!(git_over_ssh(|name| Some(name.into())).state, State::Works(path) if path == "ssh"));
    }

    #[test]
    fn an_absent_terraform_is_reported_with_the_components_that_need_it() {
        let absent = || Err("neither `terraform` nor `tofu` is on PATH; install one".to_owned());

        let State::Off(text) = judge_terraform(absent(), false) else { panic!("it is not off") };
        assert!(text.contains("install one") && text.contains("`terraform_module`"), "{text}");
        assert!(matches!(judge_terraform(absent(), true), State::Blocked(_)));
        assert!(
            matches!(judge_terraform(Ok("/usr/bin/tofu".into()), false), State::Works(path) if path == "/usr/bin/tofu")
        );
    }
}
