//! The code of the functions: finds it, detects its processor, and verifies that Lambda has exactly this code.

use std::io::Read;
use std::path::{Path, PathBuf};

use aws_config::SdkConfig;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use freehold_protocol::{Digest, TenantName};
use sha2::Digest as _;

use super::Architecture;
use super::names::{FUNCTIONS, named};
use crate::error::{Error, Result, ResultExt};

const FUNCTIONS_COUNT: usize = FUNCTIONS.len();

/// The advice on how to get a directory with the code of the functions.
pub(super) const WAY_OUT: &str = "unpack a release, or run `make dist` in a clone of Freehold, which writes \
    target/dist/ARCH/functions (`make package`, without the programs: target/lambda/ARCH; `infra/package --local`: \
    target/lambda/local), and pass that directory as `--functions DIR`";

/// The zip file with the code of one function.
#[derive(Debug)]
pub(super) struct Code {
    pub(super) function: &'static str,
    pub(super) bytes: Vec<u8>,
    /// The digest of the zip file.
    pub(super) digest: Digest,
}

impl Code {
    /// Returns the key of the zip in the deploy bucket.
    pub(super) fn key(&self) -> String {
        format!("functions/{}.zip", self.digest.hex())
    }
}

/// Returns the code of every function from `dir`.
pub(super) fn find(dir: &Path) -> Result<Vec<Code>> {
    let paths: Vec<(&'static str, Option<PathBuf>)> = FUNCTIONS.map(|name| (name, path_of(dir, name))).into();
    let missing: Vec<&str> = paths.iter().filter(|(_, path)| path.is_none()).map(|(name, _)| *name).collect();
    if !missing.is_empty() {
        let what = match missing.len() {
            _ if !dir.is_dir() => "is not a directory".to_owned(),
            FUNCTIONS_COUNT => "has no code of any function".to_owned(),
            _ => format!("has no code for {}", missing.join(", ")),
        };
        return Err(Error::invalid(format!("`{}` {what}", dir.display())).or(WAY_OUT));
    }
    paths.into_iter().filter_map(|(function, path)| Some(read(function, &path?))).collect()
}

/// Returns whether `dir` has the code of a function.
pub(super) fn has_any(dir: &Path) -> bool {
    FUNCTIONS.iter().any(|name| path_of(dir, name).is_some())
}

fn path_of(dir: &Path, name: &str) -> Option<PathBuf> {
    let candidates = [dir.join(format!("{name}.zip")), dir.join(name).join("bootstrap.zip")];
    candidates.into_iter().find(|path| path.is_file())
}

fn read(function: &'static str, path: &Path) -> Result<Code> {
    let bytes = std::fs::read(path).doing(format!("read `{}`", path.display()))?;
    if !bytes.starts_with(b"PK\x03\x04") {
        return Err(Error::invalid(format!("`{}` is not a zip file; build the functions again", path.display())));
    }
    Ok(Code { function, digest: Digest::of(&bytes), bytes })
}

/// Returns the processor of all functions: `wanted`, or else the processor that the code was built for.
pub(super) fn architecture(code: &[Code], wanted: Option<Architecture>) -> Result<Architecture> {
    let mut agreed = wanted;
    for one in code {
        match (agreed, built_for(&one.bytes)) {
            (Some(agreed), Some(found)) if agreed != found => {
                if code.iter().all(|one| built_for(&one.bytes) == Some(found)) {
                    let (found, wanted) = (found.as_str(), agreed.as_str());
                    return Err(Error::invalid(format!("the functions were built for {found}, not for {wanted}"))
                        .or(format!("leave `--architecture` out, or build the functions for {wanted}")));
                }
                return Err(Error::invalid(format!(
                    "function `{}` was built for {}, not for {}; build all functions for one processor",
                    one.function,
                    found.as_str(),
                    agreed.as_str()
                )));
            }
            (None, found) => agreed = found,
            (Some(_), _) => {}
        }
    }
    agreed.ok_or_else(|| {
        Error::invalid("the processor cannot be read from the code; pass `--architecture arm64` or `x86_64`")
    })
}

/// Returns the processor for which the first file of a zip was built, if that file is an ELF program. Reads the zip's
/// local header (APPNOTE.TXT 4.3.7) and the field `e_machine` (ELF specification).
fn built_for(zip: &[u8]) -> Option<Architecture> {
    let word = |at: usize| Some(usize::from(u16::from_le_bytes(zip.get(at..at + 2)?.try_into().ok()?)));
    let data = zip.get(30 + word(26)? + word(28)?..)?;
    let mut head = [0_u8; 20];
    match word(8)? {
        0 => head.copy_from_slice(data.get(..20)?),
        8 => flate2::read::DeflateDecoder::new(data).read_exact(&mut head).ok()?,
        _ => return None,
    }
    match (head.starts_with(b"\x7fELF"), u16::from_le_bytes([head[18], head[19]])) {
        (true, 183) => Some(Architecture::Arm64),
        (true, 62) => Some(Architecture::X86_64),
        _ => None,
    }
}

/// Checks that Lambda has exactly this code: the same size and the same SHA-256.
pub(super) async fn verify(config: &SdkConfig, tenant: &TenantName, code: &[Code]) -> Result<()> {
    let client = aws_sdk_lambda::Client::new(config);
    for one in code {
        let name = named(tenant, one.function);
        let found = client.get_function_configuration().function_name(&name).send().await;
        let found = found.doing(format!("look up function `{name}`"))?;
        let size = i64::try_from(one.bytes.len()).unwrap_or(i64::MAX);
        let hash = BASE64.encode(sha2::Sha256::digest(&one.bytes));
        if found.code_size() != size || found.code_sha256() != Some(hash.as_str()) {
            return Err(Error::failed(format!(
                "function `{name}` has other code than the deployed code ({} bytes, SHA-256 {}, expected {size} bytes, \
                 {hash}); deploy again",
                found.code_size(),
                found.code_sha256().unwrap_or("unknown")
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn elf(machine: u16) -> Vec<u8> {
        let mut bytes = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x02\0".to_vec();
        bytes.extend(machine.to_le_bytes());
        bytes.extend([0; 64]);
        bytes
    }

    fn zip(content: &[u8], deflate: bool) -> Vec<u8> {
        let mut bytes = b"PK\x03\x04\x14\0\0\0".to_vec();
        bytes.extend(if deflate { 8_u16 } else { 0 }.to_le_bytes());
        bytes.extend([0; 16]);
        bytes.extend(9_u16.to_le_bytes());
        bytes.extend(2_u16.to_le_bytes());
        bytes.extend(b"bootstrap\0\0");
        if deflate {
            let mut encoder = flate2::write::DeflateEncoder::new(&mut bytes, flate2::Compression::default());
            encoder.write_all(content).unwrap();
            encoder.finish().unwrap();
        } else {
            bytes.extend(content);
        }
        bytes
    }

    #[test]
    fn the_processor_is_read_from_stored_and_deflated_code() {
        assert_eq!(built_for(&zip(&elf(183), true)), Some(Architecture::Arm64));
        assert_eq!(built_for(&zip(&elf(62), false)), Some(Architecture::X86_64));
        assert_eq!(built_for(&zip(b"#!/bin/sh\nexec something\n", true)), None);
        assert_eq!(built_for(b"PK\x03\x04"), None);
    }

    #[test]
    fn code_for_another_processor_than_wanted_is_refused() {
        let code = [Code { function: FUNCTIONS[0], digest: Digest::of(b""), bytes: zip(&elf(62), true) }];

        let error = architecture(&code, Some(Architecture::Arm64)).unwrap_err();

        assert_eq!(
            error.to_string(),
            "the functions were built for x86_64, not for arm64; leave `--architecture` out, or build the functions for arm64"
        );
        assert_eq!(architecture(&code, None).unwrap(), Architecture::X86_64);
        let other = Code { function: FUNCTIONS[1], digest: Digest::of(b""), bytes: zip(&elf(183), true) };
        let mixed = architecture(&code.into_iter().chain([other]).collect::<Vec<_>>(), None).unwrap_err().to_string();
        assert!(
            mixed.ends_with("was built for arm64, not for x86_64; build all functions for one processor"),
            "{mixed}"
        );
    }

    #[test]
    fn both_layouts_are_found_and_all_missing_functions_are_named() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("api.zip"), zip(b"", false)).unwrap();
        std::fs::create_dir(directory.path().join("sweep")).unwrap();
        std::fs::write(directory.path().join("sweep/bootstrap.zip"), zip(b"", false)).unwrap();

        let message = find(directory.path()).unwrap_err().to_string();

        assert!(
            message.contains(
                "register-install, plan-workflow, dispatch-job, accept-report, grant-artifact, finish-workflow, \
                 prune-artifacts, console;"
            ),
            "{message}"
        );
        assert!(message.contains("; unpack a release"), "{message}");
    }

    #[test]
    fn a_directory_without_any_code_does_not_list_all_functions() {
        let directory = tempfile::tempdir().unwrap();

        let empty = find(directory.path()).unwrap_err().to_string();
        let absent = find(&directory.path().join("no")).unwrap_err().to_string();

        assert!(empty.contains("` has no code of any function; unpack a release"), "{empty}");
        assert!(absent.contains("no` is not a directory; unpack a release"), "{absent}");
    }
}
