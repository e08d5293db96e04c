//! `freehold install toggles`: shows the toggleable components of an install, and switches them on or off.

use std::collections::BTreeMap;

use freehold_client::calls;
use freehold_protocol::ComponentName;
use freehold_protocol::api::{InstallToggles, SetTogglesRequest, ToggleView};

use super::Toggles;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::output::{Output, Table};

impl Toggles {
    pub(super) async fn run(&self, context: &Context) -> Result<()> {
        let toggles = self.choices()?;
        let api = context.api().await?;
        let changed = !toggles.is_empty();
        let answer: InstallToggles = if changed {
            api.send(calls::set_toggles(&self.install, &SetTogglesRequest { toggles })).await?
        } else {
            api.send(calls::show_toggles(&self.install)).await?
        };
        context.out.show(&answer, |answer| {
            let text = render(answer, context.out);
            if changed { format!("{text}\n\nnext: freehold deploy {}", self.install) } else { text }
        })
    }

    /// Returns the choice for each component that the arguments name. A component that is named twice is an error.
    fn choices(&self) -> Result<BTreeMap<ComponentName, Option<bool>>> {
        let chosen = [(&self.on, Some(true)), (&self.off, Some(false)), (&self.default, None)];
        let mut all = BTreeMap::new();
        for (name, choice) in chosen.iter().flat_map(|(names, choice)| names.iter().map(move |name| (name, *choice))) {
            if all.insert(name.clone(), choice).is_some() {
                return Err(Error::invalid(format!("component `{name}` is given twice; give it once")));
            }
        }
        Ok(all)
    }
}

/// Returns the components to switch by name. A component that is switched both on and off is an error.
pub(super) fn by_name(on: &[ComponentName], off: &[ComponentName]) -> Result<BTreeMap<ComponentName, bool>> {
    let mut all: BTreeMap<ComponentName, bool> = on.iter().map(|name| (name.clone(), true)).collect();
    for name in off {
        if all.insert(name.clone(), false) == Some(true) {
            return Err(Error::invalid(format!("component `{name}` is given twice; give it once")));
        }
    }
    Ok(all)
}

fn render(answer: &InstallToggles, out: Output) -> String {
    if answer.toggles.is_empty() {
        return format!(
            "app `{}` has no component with `toggleable = true`: every install has all components",
            answer.app
        );
    }
    let mut table = Table::new(&["COMPONENT", "STATE", "FROM", "NOW"]);
    for one in &answer.toggles {
        let state = if one.on { "on" } else { "off" };
        table.row([one.component.to_string(), state.to_owned(), one.from.describe().to_owned(), now(one).to_owned()]);
    }
    out.table(&table)
}

const fn now(one: &ToggleView) -> &'static str {
    match (one.on, one.deployed) {
        (true, true) => "deployed",
        (true, false) => "the next deploy deploys it",
        (false, true) => "deployed; the next deploy removes it",
        (false, false) => "not deployed",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<ComponentName> {
        names.iter().map(|name| name.parse().unwrap()).collect()
    }

    #[test]
    fn a_component_is_switched_one_way_only() {
        let toggles = |on: &[&str], off: &[&str], default: &[&str]| {
            let install = "globex".parse().unwrap();
            let (on, off, default) = (names(on), names(off), names(default));
            Toggles { install, on, off, default }.choices().map_err(|error| error.to_string())
        };

        let all = toggles(&["a"], &["b"], &["c"]).unwrap();
        assert_eq!(all.into_values().collect::<Vec<_>>(), [Some(true), Some(false), None]);
        assert_eq!(toggles(&["a"], &[], &["a"]).unwrap_err(), "component `a` is given twice; give it once");
        assert!(by_name(&names(&["a"]), &names(&["a"])).is_err());
        assert_eq!(by_name(&names(&["a"]), &names(&["b", "b"])).unwrap().len(), 2);
    }
}
