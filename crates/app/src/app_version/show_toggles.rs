//! Shows the toggleable components of an install's app, and which of them the install leaves out.

use freehold_domain::install::Install;
use freehold_domain::toggles::is_on;
use freehold_protocol::api::{InstallToggles, ToggleView, ToggledBy};

use crate::AppError;
use crate::app_version::install_release::followed;
use crate::app_version::versions::Versions;
use crate::table;

/// Returns the toggleable components of the version that the install follows, with their state in the install.
///
/// # Errors
/// Invalid for an install without an app, the errors of [`Versions::load`], or the store's errors.
pub async fn show_toggles(versions: &Versions, install: &Install) -> Result<InstallToggles, AppError> {
    let app = install.require_app()?;
    let version = followed(versions, app, &install.follows).await?.version;
    let deployed = table::deployed(&*versions.store, &install.id).await?;
    let toggleable = version.document.components.iter().filter(|component| component.settings.toggle.is_some());
    let toggles = toggleable.map(|component| ToggleView {
        component: component.name.clone(),
        on: is_on(component, &install.toggles),
        from: if install.toggles.contains_key(&component.name) { ToggledBy::Vendor } else { ToggledBy::Default },
        deployed: deployed.contains_key(&component.name),
    });
    let toggles = toggles.collect();
    Ok(InstallToggles { install: install.id.clone(), app: app.clone(), version: version.version, toggles })
}
