//! Checks that a program has the SHA-256 that the runner's config names for it (table `programs`).

use std::collections::BTreeMap;
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use freehold_protocol::Digest;

use super::bubblewrap::Spec;
use super::environment::find_program;
use super::program::SandboxError;
use super::warm_boxes::last_image;
use crate::config::Config;
use crate::files;
use crate::job::Job;
use crate::tool_image::ToolImage;

/// The digests of the files that were read so far, so that a file is read again only after it changed.
static KNOWN: Mutex<BTreeMap<Identity, Digest>> = Mutex::new(BTreeMap::new());

/// A file in one state. Every change of the content changes `changed`, which a program cannot set.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Identity {
    device: u64,
    inode: u64,
    size: u64,
    changed: (i64, i64),
}

/// A program that the config names.
#[derive(Debug)]
pub struct Pinned {
    pub name: String,
    /// The program in words, or why it must not run.
    pub state: Result<String, String>,
}

/// A file that runs as a program which the config names.
#[derive(Debug)]
struct Candidate {
    name: String,
    wanted: Digest,
    file: io::Result<PathBuf>,
    /// The program in words.
    shown: String,
    way_out: &'static str,
}

/// Refuses a program of this machine whose digest differs from the digest that the config has for its name. A program
/// whose name the config does not contain passes.
///
/// # Errors
/// [`SandboxError::OtherProgram`].
pub async fn check(config: &Config, program: &Path) -> Result<(), SandboxError> {
    let named = |(name, _): &(&String, &Digest)| {
        has_name(program, name) || is_terraform(name) && config.terraform.as_deref() == Some(program)
    };
    let pin = config.programs.iter().find(named);
    compare(pin.map(|(name, wanted)| Candidate::on_machine(name, wanted, program))).await
}

/// Refuses the program that `job` would find at `program`, as [`check`] does. The program is not started.
///
/// # Errors
/// [`SandboxError::OtherProgram`].
pub async fn check_of_job(job: &Job, program: &Path) -> Result<(), SandboxError> {
    let hidden = Spec::plain(&job.workspace, None, &job.config.limits).hidden();
    check_in_box(&job.config, job.image.get(), program, &hidden).await
}

/// Refuses the program that a box has at `program`, as [`check`] does. The program of a box with an image is a file of
/// the image, and the machine may have another file at the same path. `hidden` are the paths at which the box has files
/// of its own: a job may write some of them, so no program there is compared.
pub(super) async fn check_in_box(
    config: &Config,
    image: Option<&ToolImage>,
    program: &Path,
    hidden: &[PathBuf],
) -> Result<(), SandboxError> {
    let Some(image) = image else { return check(config, program).await };
    let pin = config.programs.iter().find(|(name, _)| has_name(program, name));
    compare(pin.map(|(name, wanted)| Candidate::in_image(name, wanted, image, program, hidden))).await
}

/// Compares each program that the config names with its digest: on this machine, and in the image of the last job.
pub fn pinned(config: &Config) -> Vec<Pinned> {
    let image = last_image(&config.state_dir);
    let image = image.and_then(|digest| ToolImage::find(&config.state_dir, &digest).ok().flatten());
    let hidden = Spec::plain(&config.state_dir, None, &config.limits).hidden();
    let candidates = |(name, wanted): (&String, &Digest)| {
        let configured = config.terraform.clone().filter(|path| is_terraform(name) && path.is_file());
        let path = configured.or_else(|| find_program(&[name]));
        let of_machine = path.map(|path| Candidate::on_machine(name, wanted, &path));
        let of_image = image.as_ref().and_then(|image| {
            let path = image.find_program(&[name])?;
            Some(Candidate::in_image(name, wanted, image, &path, &hidden))
        });
        let mut found: Vec<Pinned> = of_machine
            .into_iter()
            .chain(of_image)
            .map(|candidate| Pinned { name: name.clone(), state: candidate.compare() })
            .collect();
        if found.is_empty() {
            found.push(Pinned { name: name.clone(), state: Err(format!("`{name}` is not on PATH")) });
        }
        found
    };
    config.programs.iter().flat_map(candidates).collect()
}

fn has_name(program: &Path, name: &str) -> bool {
    program.file_name().is_some_and(|file| file == name)
}

fn is_terraform(name: &str) -> bool {
    matches!(name, "terraform" | "tofu")
}

async fn compare(candidate: Option<Candidate>) -> Result<(), SandboxError> {
    let Some(candidate) = candidate else { return Ok(()) };
    let compared = tokio::task::spawn_blocking(move || candidate.compare()).await;
    compared.unwrap_or_else(|error| Err(error.to_string())).map(drop).map_err(SandboxError::OtherProgram)
}

impl Candidate {
    /// The program may have any file name, because the key `terraform` of the config may end with any name.
    fn on_machine(name: &str, wanted: &Digest, program: &Path) -> Self {
        Self {
            name: name.to_owned(),
            wanted: wanted.clone(),
            file: Ok(program.to_owned()),
            shown: format!("`{}`", program.display()),
            way_out: "install that program, or correct the config",
        }
    }

    fn in_image(name: &str, wanted: &Digest, image: &ToolImage, program: &Path, hidden: &[PathBuf]) -> Self {
        Self {
            name: name.to_owned(),
            wanted: wanted.clone(),
            file: image.file(program, hidden),
            shown: format!("`{}` in image `{}`", program.display(), image.digest()),
            way_out: "ask the vendor for an image with that program, or correct the config",
        }
    }

    /// Compares the file with the digest. Returns the program in words.
    fn compare(self) -> Result<String, String> {
        let Self { name, wanted, file, shown, way_out } = self;
        let found = file.and_then(|file| digest(&file)).map_err(|error| {
            format!("{shown} cannot be compared with the digest for `{name}` in `programs`: {error}; {way_out}")
        })?;
        if found == wanted {
            return Ok(shown);
        }
        Err(format!(
            "{shown} has the digest `{found}`, and the runner's config has `{wanted}` for `{name}` in `programs`; \
             {way_out}"
        ))
    }
}

fn digest(program: &Path) -> io::Result<Digest> {
    let file = File::open(program)?;
    let identity = identity(&file.metadata()?);
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = known().get(&identity) {
        return Ok(found.clone());
    }
    let found = files::digest(&file)?;
    known().insert(identity, found.clone());
    Ok(found)
}

fn identity(data: &Metadata) -> Identity {
    let changed = (data.ctime(), data.ctime_nsec());
    Identity { device: data.dev(), inode: data.ino(), size: data.size(), changed }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;
    use crate::config::Role;
    use crate::tool_image::{CONFIG, ROOT, store};

    fn config(name: &str, content: &[u8], terraform: Option<PathBuf>) -> Config {
        let programs = BTreeMap::from([(name.to_owned(), Digest::of(content))]);
        Config { programs, terraform, ..crate::testing::config("/state", Role::Install) }
    }

    /// Unpacks an image below `state_dir`, with these programs and links (`-> target`).
    fn image(state_dir: &Path, files: &[(&str, &str)]) -> ToolImage {
        let digest = Digest::of(format!("{files:?}").as_bytes());
        let tree = store(state_dir).unwrap().find_or_unpack(&digest, |into| {
            std::fs::write(into.join(CONFIG), r#"{ "config": { "Env": ["PATH=/usr/bin:/workspace/bin"] } }"#)?;
            for (path, content) in files {
                let path = into.join(ROOT).join(path);
                std::fs::create_dir_all(path.parent().unwrap())?;
                match content.strip_prefix("-> ") {
                    Some(target) => symlink(target, path)?,
                    None => {
                        std::fs::write(&path, content)?;
                        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755))?;
                    }
                }
            }
            Ok::<_, io::Error>(())
        });
        ToolImage::open(&digest, tree.unwrap()).unwrap()
    }

    async fn check_file(config: &Config, image: &ToolImage, program: &str) -> Result<(), SandboxError> {
        let hidden = [PathBuf::from("/workspace")];
        check_in_box(config, Some(image), Path::new(program), &hidden).await
    }

    #[tokio::test]
    async fn a_program_runs_only_with_the_content_that_the_config_names() {
        let directory = tempfile::tempdir().unwrap();
        let helm = directory.path().join("helm");
        std::fs::write(&helm, "helm 3").unwrap();
        let config = config("helm", b"helm 3", None);

        assert!(check(&config, &helm).await.is_ok());
        std::fs::write(&helm, "helm 4").unwrap();
        let refused = check(&config, &helm).await.unwrap_err().to_string();

        assert!(refused.contains("helm` has the digest `sha256:") && refused.contains("`programs`"), "{refused}");
        let other = directory.path().join("kubectl");
        std::fs::write(&other, "any").unwrap();
        assert!(check(&config, &other).await.is_ok(), "a name that the config does not have");
    }

    #[tokio::test]
    async fn the_terraform_of_the_config_is_checked_under_any_file_name() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("terraform_1.11.4");
        std::fs::write(&path, "another").unwrap();
        let config = config("terraform", b"terraform", Some(path.clone()));

        assert!(check(&config, &path).await.is_err());
        assert!(pinned(&config)[0].state.as_ref().unwrap_err().contains("terraform_1.11.4"));
    }

    #[tokio::test]
    async fn in_an_image_the_image_has_the_program_whatever_the_machine_has_at_that_path() {
        let directory = tempfile::tempdir().unwrap();
        let on_machine = directory.path().join("helm");
        std::fs::write(&on_machine, "helm 3").unwrap();
        let config = config("helm", b"helm 3", None);
        let path = on_machine.to_str().unwrap();
        let inside = path.trim_start_matches('/');
        let link = format!("-> {path}");
        let state_dir = directory.path();

        let other = check_file(&config, &image(state_dir, &[(inside, "helm 4")]), path).await.unwrap_err().to_string();
        let link = image(state_dir, &[("usr/bin/helm", link.as_str())]);
        let link = check_file(&config, &link, "/usr/bin/helm").await.unwrap_err().to_string();
        let hidden = image(state_dir, &[("workspace/bin/helm", "helm 3")]);
        let hidden = check_file(&config, &hidden, "/workspace/bin/helm").await.unwrap_err().to_string();

        assert!(other.contains(&format!("`{path}` in image `sha256:")) && other.contains("has the digest"), "{other}");
        assert!(link.contains("cannot be compared"), "{link}");
        assert!(hidden.contains("at `/workspace` a job has other files than the image"), "{hidden}");
        let named = [("usr/bin/helm", "-> /opt/helm-3"), ("opt/helm-3", "helm 3"), ("usr/bin/kubectl", "any")];
        let named = image(state_dir, &named);
        assert!(check_file(&config, &named, "/usr/bin/helm").await.is_ok());
        assert!(check_file(&config, &named, "/usr/bin/kubectl").await.is_ok(), "a name that the config does not have");
    }

    #[test]
    fn the_image_of_the_last_job_is_reported_too() {
        let directory = tempfile::tempdir().unwrap();
        let image = image(directory.path(), &[("usr/bin/no-such-program", "2"), ("usr/bin/sh", "any")]);
        std::fs::write(directory.path().join("tool-image"), image.digest().to_string()).unwrap();
        let found = |name: &str, content: &[u8]| {
            let config = Config { state_dir: directory.path().to_owned(), ..config(name, content, None) };
            pinned(&config).into_iter().map(|one| one.state).collect::<Vec<_>>()
        };

        let words = format!("`/usr/bin/no-such-program` in image `{}`", image.digest());
        assert_eq!(found("no-such-program", b"2"), [Ok::<_, String>(words.clone())]);
        assert!(found("no-such-program", b"1")[0].as_ref().unwrap_err().starts_with(&words));
        assert_eq!(found("sh", b"any").iter().map(Result::is_ok).collect::<Vec<_>>(), [false, true]);
    }

    #[test]
    fn a_program_that_is_not_there_is_reported() {
        let all = pinned(&config("no-such-program", b"", None));

        assert_eq!(all[0].state, Err("`no-such-program` is not on PATH".to_owned()));
    }
}
