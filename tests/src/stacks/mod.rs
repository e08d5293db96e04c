//! Install stacks of whole sets of apps, as `freehold install stack` renders them.

mod generated_apps;
mod real_apps;

use anyhow::ensure;
use freehold_app::AppError;
use freehold_app::stack::render_stack::{Place, RunnerProgram, template};
use freehold_domain::install::{Install, Serves};
use freehold_protocol::Timestamp;
use freehold_protocol::app_version::AppVersion;
use freehold_protocol::envelope::PublicKey;

pub use generated_apps::generated;
pub use real_apps::{real_apps, real_apps_are_here};

/// Somebody's app at a customer of theirs.
pub struct Case {
    pub name: String,
    pub version: AppVersion,
    pub place: Place,
    pub install: Install,
}

impl Case {
    /// Returns one whose vendor is in `region` and publishes `runner`; the customer is in `eu-west-1`.
    pub fn new(name: String, version: AppVersion, region: &str, runner: Option<RunnerProgram>) -> anyhow::Result<Self> {
        let install = install(&version)?;
        Ok(Self { name, version, place: place(region, runner)?, install })
    }

    /// Returns its template, which was rendered twice, or why there is none.
    ///
    /// # Errors
    /// When the bytes of the second time are others, or the version has no digest.
    pub fn rendered(&self) -> anyhow::Result<Result<String, AppError>> {
        let digest = self.version.digest()?;
        let render = || template(&self.place, &self.install, &digest, &self.version);
        let first = render();
        ensure!(first.as_deref().ok() == render().as_deref().ok(), "{}: another template the second time", self.name);
        Ok(first)
    }
}

fn install(version: &AppVersion) -> anyhow::Result<Install> {
    let serves = Serves::App { app: version.app.clone(), version: None };
    let (id, account) = ("globex".parse()?, "222222222222".parse()?);
    Ok(Install::new(id, serves, account, "eu-west-1".to_owned(), Timestamp::from_millis(0)))
}

fn place(region: &str, runner: Option<RunnerProgram>) -> anyhow::Result<Place> {
    let queue = format!("https://sqs.{region}.amazonaws.com/111111111111/fh-acme--");
    Ok(Place {
        tenant: "acme".parse()?,
        account: "111111111111".parse()?,
        region: region.to_owned(),
        orders_queue_url: format!("{queue}globex.fifo"),
        reports_queue_url: format!("{queue}reports"),
        root_key: key(),
        second_root_key: None,
        runner,
    })
}

fn key() -> PublicKey {
    ed25519_dalek::SigningKey::from_bytes(&[1; 32]).verifying_key().into()
}
