//! `freehold install upgrade-runner`: replaces the runner of an install by the runner of a signed release.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use freehold_client::calls;
use freehold_protocol::api::{InstallView, SourceUpload, UpgradeRunnerRequest, UploadSourceRequest, WorkflowStarted};
use freehold_protocol::limits::MAX_SOURCE_BYTES;
use freehold_protocol::order::SignedSums;
use freehold_protocol::order::upgrade::{RUNNER_PROGRAM, listed};
use freehold_protocol::{AppName, Digest};

use super::UpgradeRunner;
use crate::api::{Api, follow};
use crate::context::Context;
use crate::error::{Error, Result, ResultExt as _};

const WAY_OUT: &str = "pass the directory that `make dist KEY=FILE` wrote, or that the release was unpacked into";

impl UpgradeRunner {
    pub(super) async fn run(&self, context: &Context) -> Result<()> {
        let (program, release) = self.release_program()?;
        let archive = packed(&program).doing("pack the runner")?;
        let request = UpgradeRunnerRequest {
            version: self.to.clone().unwrap_or_else(|| env!("CARGO_PKG_VERSION").to_owned()),
            program: Digest::of(&program),
            archive: Digest::of(&archive),
            archive_size: archive.len() as u64,
            release,
            health_secs: self.health_secs,
            now: self.now,
        };
        let api = context.api().await?;
        let install: InstallView = api.send(calls::show_install(&self.install)).await?;
        let app = install.app.ok_or_else(|| {
            Error::invalid(format!("`{}` is the build runner, which this command cannot upgrade", self.install))
                .or("name an install of an app")
        })?;
        upload(&api, &app, &request, &archive).await?;
        let started: WorkflowStarted = api.send(calls::upgrade_runner(&self.install, &request)).await?;
        let subject = format!("upgrade of the runner of `{}` to {}", self.install, request.version);
        follow(&api, context.out, &started.workflow, &subject, !self.no_wait).await
    }

    /// Returns the program and the checksums of its release.
    fn release_program(&self) -> Result<(Vec<u8>, SignedSums)> {
        let read = |path: &Path| crate::file::read(path, WAY_OUT);
        let path = format!("{}/{RUNNER_PROGRAM}", self.arch.as_str());
        let program = crate::file::read_at_most(&self.release.join(&path), MAX_SOURCE_BYTES, WAY_OUT)?;
        let sums = self.release.join("SHA256SUMS");
        let text = crate::file::read_text(&sums, WAY_OUT)?;
        let signature = read(&self.release.join("SHA256SUMS.sig"))?;
        let digest = Digest::of(&program);
        if !listed(&text).any(|line| line == (digest.hex(), path.as_str())) {
            let (shown, hex) = (sums.display(), digest.hex());
            return Err(Error::invalid(format!("`{shown}` does not list `{path}` with its SHA-256 {hex}")).or(WAY_OUT));
        }
        Ok((program, SignedSums { sums: text, signature: STANDARD.encode(signature) }))
    }
}

/// Returns a gzipped tar that contains only the program. The same program gives the same bytes.
fn packed(program: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut tar = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::default()));
    let mut header = tar::Header::new_gnu();
    header.set_size(program.len() as u64);
    header.set_mode(0o755);
    header.set_mtime(0);
    tar.append_data(&mut header, RUNNER_PROGRAM, program)?;
    tar.into_inner()?.finish()
}

async fn upload(api: &Api, app: &AppName, request: &UpgradeRunnerRequest, archive: &[u8]) -> Result<()> {
    let ask = UploadSourceRequest { digest: request.archive.clone(), size: request.archive_size };
    let part: String = request.archive.hex().chars().take(16).collect();
    let place: SourceUpload = api.send_part(calls::upload_source(app, &ask), &part).await?;
    api.upload(&place.url, archive).await.map_err(|error| error.within("the program of the runner"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tenant::Architecture;

    fn upgrade(release: &Path) -> UpgradeRunner {
        UpgradeRunner {
            install: "globex".parse().unwrap(),
            release: release.to_owned(),
            arch: Architecture::Arm64,
            to: None,
            health_secs: 180,
            no_wait: true,
            now: false,
        }
    }

    #[test]
    fn a_program_is_sent_with_the_checksums_that_list_it_and_no_other_is() {
        let place = tempfile::tempdir().unwrap();
        std::fs::create_dir(place.path().join("arm64")).unwrap();
        std::fs::write(place.path().join("arm64/freehold-runner"), "runner").unwrap();
        let sums = format!("{}  arm64/freehold-runner\n", Digest::of(b"runner").hex());
        std::fs::write(place.path().join("SHA256SUMS"), &sums).unwrap();
        std::fs::write(place.path().join("SHA256SUMS.sig"), [1, 2, 3]).unwrap();

        let (program, release) = upgrade(place.path()).release_program().unwrap();
        std::fs::write(place.path().join("arm64/freehold-runner"), "another").unwrap();
        let refused = upgrade(place.path()).release_program().unwrap_err().to_string();

        assert_eq!((program.as_slice(), release.sums), (b"runner".as_slice(), sums));
        assert_eq!(release.signature, "AQID");
        assert!(refused.contains("does not list `arm64/freehold-runner` with its SHA-256"), "{refused}");
    }

    #[test]
    fn the_same_program_is_packed_into_the_same_bytes() {
        let (first, second) = (packed(b"runner").unwrap(), packed(b"runner").unwrap());

        let mut tar = tar::Archive::new(flate2::read::GzDecoder::new(first.as_slice()));
        let names: Vec<_> = tar.entries().unwrap().map(|one| one.unwrap().path().unwrap().into_owned()).collect();
        assert_eq!(first, second);
        assert_eq!(names, [Path::new(RUNNER_PROGRAM)]);
    }
}
