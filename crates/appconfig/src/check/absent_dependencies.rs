//! Warns about components that need a component which new installs do not have.

use std::collections::BTreeMap;

use freehold_domain::toggles::{dependent_on_off, off};
use freehold_protocol::app_version::AppVersion;

use crate::kinds::Kind;
use crate::report::draft::Draft;
use crate::state::app::App;

/// Warns at each component that every new install has and that depends on a component with
/// `default_enabled = false`.
pub(crate) fn check(app: &mut App, version: &AppVersion) {
    let off = off(version, &BTreeMap::new());
    let on = version.components.iter().filter(|component| !off.contains(&component.name));
    let found: Vec<_> = on.filter_map(|component| dependent_on_off([component], &off)).collect();
    for one in found {
        let named = |name: &str| app.of(Kind::Component).find(|checked| checked.root.text("name") == Some(name));
        let Some(checked) = named(one.component.as_str()) else { continue };
        let message = format!(
            "component `{}` needs component `{}`, which new installs do not have (`default_enabled = false`)",
            one.component, one.off
        );
        let draft = Draft::warning(checked.place_of(&checked.root, "name"), message);
        let help = format!(
            "create installs with `--on {}`: without this option, `freehold install create` refuses the install",
            one.off
        );
        app.drafts.push(draft.help(help));
    }
}
