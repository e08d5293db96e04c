//! `freehold install create`: creates an install and its enrolment secret.

use std::path::PathBuf;

use freehold_protocol::api::{CreateInstallRequest, InstallCreated, TenantView};
use freehold_protocol::envelope::enrolment_key;

use super::{Create, toggles};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::inputs::by_name;

impl Create {
    pub(super) async fn run(&self, context: &Context) -> Result<()> {
        if self.install.as_str() == "build" {
            return Err(Error::invalid("`build` is the name of the build runner; choose another name for the install"));
        }
        let inputs = by_name(&self.inputs)?;
        let api = context.api().await?;
        let tenant: TenantView = api.get(&["v1", "tenant"]).await?;
        let path = self.secret_file.clone().unwrap_or_else(|| PathBuf::from(format!("{}.enrolment", self.install)));
        // The secret is stored before the request: it cannot be recovered if it is lost after its key was registered.
        let secret = crate::secret::read_or_create(&path)?;
        let body = CreateInstallRequest {
            install: self.install.clone(),
            app: self.app.clone(),
            account: self.account.clone(),
            region: self.region.clone(),
            unknown_region: self.unknown_region,
            inputs,
            toggles: toggles::by_name(&self.on, &self.off)?,
            enrolment_key: enrolment_key(&tenant.tenant, &self.install, &secret).verifying_key().into(),
        };
        let created: InstallCreated = api.post(&["v1", "installs"], &body).await?;
        context.out.show(&created, |created| {
            let (install, file) = (&self.install, path.display());
            // The same request again gets the same answer; an install that already works needs no secret and no
            // template.
            if created.install.version.is_some() {
                return format!(
                    "install `{install}` exists already ({}); nothing was changed\nnext: freehold install show {install}",
                    created.install.state
                );
            }
            format!(
                "install `{install}` is created ({}); {} continues when its runner announces itself\nenrolment secret in `{file}`: give it to the customer, and to nobody else\nnext: freehold install stack {install} -o {install}.yaml",
                created.install.state, created.workflow
            )
        })
    }
}
