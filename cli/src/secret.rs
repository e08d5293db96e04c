//! Random values, and enrolment secrets in files that only their owner may read.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::error::{Error, Result, ResultExt};

/// The minimum length of an enrolment secret, in bytes. The install stack requires the same length.
const SHORTEST: usize = 20;

/// Returns a new enrolment secret: 256 random bits in base64.
pub(crate) fn new_secret() -> Result<String> {
    let mut bytes = [0_u8; 32];
    fill(&mut bytes)?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

/// Returns 32 random hex digits.
pub(crate) fn random_hex() -> Result<String> {
    let mut bytes = [0_u8; 16];
    fill(&mut bytes)?;
    Ok(freehold_protocol::digest::hex(&bytes))
}

fn fill(bytes: &mut [u8]) -> Result<()> {
    getrandom::fill(bytes).map_err(|e| Error::internal(format!("cannot read random bytes from this machine: {e}")))
}

/// Returns the enrolment secret in the file `path`.
pub(crate) fn read(path: &Path) -> Result<String> {
    let text = std::fs::read_to_string(path).doing(format!("read the enrolment secret in `{}`", path.display()))?;
    let secret = text.trim();
    if secret.len() < SHORTEST || secret.contains(char::is_whitespace) {
        return Err(Error::invalid(format!(
            "`{}` does not hold an enrolment secret; expected one line of at least {SHORTEST} characters",
            path.display()
        )));
    }
    Ok(secret.to_owned())
}

/// Returns the secret in the file `path`; creates the file with a new secret when it does not exist.
pub(crate) fn read_or_create(path: &Path) -> Result<String> {
    let secret = new_secret()?;
    match write_new(path, &secret) {
        Ok(()) => Ok(secret),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => read(path),
        Err(error) => Err(error).doing(format!("write the enrolment secret to `{}`", path.display())),
    }
}

/// Writes `secret` to the file `path`. A file with other contents is replaced only with `force`.
pub(crate) fn create(path: &Path, secret: &str, force: bool) -> Result<()> {
    let doing = || format!("write the enrolment secret to `{}`", path.display());
    match write_new(path, secret) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        written => return written.doing(doing()),
    }
    if !force {
        return crate::file::may_create(path, &format!("{secret}\n"), false);
    }
    std::fs::remove_file(path).doing(format!("replace `{}`", path.display()))?;
    write_new(path, secret).doing(doing())
}

/// Writes a new file. Its permissions exclude all users but the owner from the beginning.
fn write_new(path: &Path, secret: &str) -> std::io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    writeln!(file, "{secret}")?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_made_once_and_read_by_its_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("globex.enrolment");

        let first = read_or_create(&path).unwrap();
        let second = read_or_create(&path).unwrap();

        assert_eq!(first, second);
        assert_eq!(first.len(), 43);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        }
    }

    #[test]
    fn a_file_with_something_else_is_replaced_only_when_that_is_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("build.enrolment");
        std::fs::write(&path, "mine\n").unwrap();

        let refused = create(&path, "secret", false).unwrap_err();

        assert_eq!(refused.kind().exit_code(), 4);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine\n");
        create(&path, "secret", true).unwrap();
        create(&path, "secret", false).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "secret\n");
    }

    #[test]
    fn a_file_without_a_secret_is_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("empty");
        std::fs::write(&path, "short\n").unwrap();

        let error = read(&path).unwrap_err();

        assert_eq!(error.kind().exit_code(), 2);
        assert!(error.to_string().contains("empty` does not hold an enrolment secret"), "{error}");
    }
}
