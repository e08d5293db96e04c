//! `freehold install create`: creates an install.

use freehold_client::calls;
use freehold_protocol::api::{CreateInstallRequest, InstallCreated};

use super::{Create, labels, release, toggles};
use crate::context::Context;
use crate::error::Result;
use crate::inputs::sealing::refuse_sensitive;
use crate::inputs::{by_name, refuse_reserved};

impl Create {
    pub(super) async fn run(&self, context: &Context) -> Result<()> {
        refuse_reserved(&self.install)?;
        let inputs = by_name(&self.inputs)?;
        let labels = labels::by_key(&self.labels)?;
        let api = context.api().await?;
        refuse_sensitive(&api, &self.app, &self.install, &inputs).await?;
        let body = CreateInstallRequest {
            install: self.install.clone(),
            app: self.app.clone(),
            account: self.account.clone(),
            region: self.region.clone(),
            unknown_region: self.unknown_region,
            inputs,
            toggles: toggles::by_name(&self.on, &self.off)?,
            approval_option: self.approval_option.option(),
            release: release::of_new(self.pin.as_ref(), self.channel.as_ref()),
            labels,
        };
        let created: InstallCreated = api.send(calls::create_install(&body)).await?;
        labels::check_created(&created.install, &body.labels)?;
        context.out.show(&created, |created| {
            let install = &self.install;
            // A repeated request gets the same response. An install with a version has been deployed already, so the
            // customer does not need the template.
            if created.install.version.is_some() {
                return format!(
                    "install `{install}` exists already ({}); nothing was changed\nnext: freehold install show {install}",
                    created.install.state
                );
            }
            format!(
                "install `{install}` is created ({}); workflow {} continues when the install's runner announces itself\nnext: freehold install stack {install} -o {install}.yaml",
                created.install.state, created.workflow
            )
        })
    }
}
