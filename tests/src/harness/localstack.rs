//! LocalStack in a container, where Docker and the image are at hand.

use std::process::Stdio;

use testcontainers_modules::localstack::LocalStack as Image;
use testcontainers_modules::testcontainers::core::IntoContainerPort as _;
use testcontainers_modules::testcontainers::runners::AsyncRunner as _;
use testcontainers_modules::testcontainers::{ContainerAsync, ImageExt as _};
use tokio::process::Command;

use super::cloud::{Capability, Started};
use super::emulator::Emulator;

/// The last tag that asks for no account; `localstack/docker-compose.yml` names the same one.
const TAG: &str = "4.14.0";

/// A running container.
#[derive(Debug)]
struct LocalStack {
    endpoint: String,
    /// Removed when it is dropped.
    _container: ContainerAsync<Image>,
}

/// Starts the container; its image must be there, since a test downloads nothing.
///
/// # Errors
/// When it should start and does not.
pub(super) async fn start() -> anyhow::Result<Started> {
    let image = format!("localstack/localstack:{TAG}");
    let look = Command::new("docker").args(["image", "inspect", &image]).stdin(Stdio::null()).output().await;
    match look {
        Err(_) => return Ok(Started::Skip("there is no `docker` on PATH".to_owned())),
        Ok(output) if !output.status.success() => {
            return Ok(Started::Skip(format!("Docker does not run or lacks the image; `docker pull {image}`")));
        }
        Ok(_) => {}
    }
    let container = Image::default().with_tag(TAG).start().await?;
    let endpoint = format!("http://127.0.0.1:{}", container.get_host_port_ipv4(4566.tcp()).await?);
    Ok(Started::Cloud(Box::new(LocalStack { endpoint, _container: container })))
}

impl Emulator for LocalStack {
    fn name(&self) -> String {
        format!("LocalStack {TAG}")
    }

    fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// The community edition has no ECR, no API Gateway v2 and enforces no policies.
    fn capabilities(&self) -> &[Capability] {
        &[Capability::AnyAccount, Capability::EmptyAccounts, Capability::Tables]
    }
}
