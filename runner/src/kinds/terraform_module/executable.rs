//! Finds the program that runs Terraform modules: `terraform`, or `tofu` (OpenTofu).

use std::path::{Path, PathBuf};

use crate::job::Job;
use crate::sandbox::{find_program, find_program_of, lacks_program};

/// Finds the `terraform` or `tofu` to run: the program in the config, otherwise the first of the two on `PATH`.
///
/// # Errors
/// The missing program, and how to fix the problem.
pub fn find(configured: Option<&Path>) -> Result<PathBuf, String> {
    match configured {
        Some(path) if path.is_file() => Ok(path.to_owned()),
        Some(path) => Err(format!("`{}` is not a file; correct `terraform` in the config", path.display())),
        None => find_program(&["terraform", "tofu"]).ok_or_else(|| {
            "neither `terraform` nor `tofu` is on PATH; install one, or set `terraform` in the config".to_owned()
        }),
    }
}

/// Finds the `terraform` or `tofu` of a job: in its image, or else on the machine.
///
/// # Errors
/// A sentence that names the missing program and how to fix that.
pub(crate) fn find_of(job: &Job) -> Result<PathBuf, String> {
    const NAMES: [&str; 2] = ["terraform", "tofu"];
    if job.image.get().is_none() {
        return find(job.config.terraform.as_deref());
    }
    find_program_of(job, &NAMES).ok_or_else(|| lacks_program(job, &NAMES, ""))
}

/// Returns whether the name of the program at `path` contains `tofu` (OpenTofu).
pub fn is_tofu(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().contains("tofu"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opentofu_is_recognized_by_its_name() {
        assert!(is_tofu(Path::new("/usr/bin/tofu")) && !is_tofu(Path::new("/opt/tofu/terraform")));
    }
}
