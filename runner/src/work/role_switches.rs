//! The customer's switches of the install's roles, as the parameters of the install stack have them.

use std::collections::BTreeMap;

use aws_smithy_types::DateTime;
use aws_smithy_types::date_time::Format;
use freehold_protocol::order::Mode;
use freehold_protocol::{RoleKey, Timestamp};

use crate::config::Config;

/// The parameter with the time at which the permissions of all break-glass roles end.
const BREAK_GLASS_UNTIL: &str = "BreakGlassUntil";

/// Returns the roles of the install of `config`, each with whether it is switched on at `now`. A role without a switch
/// among `parameters` is left out.
pub fn role_switches(
    parameters: &BTreeMap<String, String>,
    config: &Config,
    now: Timestamp,
) -> BTreeMap<RoleKey, bool> {
    let modes = [Mode::Provision, Mode::Maintenance, Mode::Deprovision].into_iter();
    let modes = modes.filter_map(|mode| mode.as_str().parse::<RoleKey>().ok());
    let roles = modes.chain(config.roles.keys().cloned());
    roles.filter_map(|role| is_on(parameters, &role, now).map(|is_on| (role, is_on))).collect()
}

/// Returns whether the customer lets the runner assume the role; `None` if the stack has no switch for it. A break-glass
/// role has permissions only until the time that the customer has set.
fn is_on(parameters: &BTreeMap<String, String>, role: &RoleKey, now: Timestamp) -> Option<bool> {
    let is_on = parameters.get(&role.switch())? == "true";
    Some(is_on && (!role.is_break_glass() || end_of_break_glass(parameters).is_some_and(|end| now < end)))
}

fn end_of_break_glass(parameters: &BTreeMap<String, String>) -> Option<Timestamp> {
    let end = DateTime::from_str(parameters.get(BREAK_GLASS_UNTIL)?, Format::DateTime).ok()?;
    Some(Timestamp::from_millis(u64::try_from(end.to_millis().ok()?).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Role;
    use crate::testing::config;

    /// 2026-11-30T18:00:00Z.
    const END: Timestamp = Timestamp::from_millis(1_796_061_600_000);

    /// The switches of an install that has a break-glass role and a custom role.
    fn switches(parameters: &[(&str, &str)], now: Timestamp) -> Vec<(String, bool)> {
        let roles =
            ["break-glass", "custom-support"].map(|key| (key.parse::<RoleKey>().unwrap(), format!("arn of {key}")));
        let config = Config { roles: roles.into(), ..config("/state", Role::Install) };
        let parameters = parameters.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
        let switches = role_switches(&parameters, &config, now);
        switches.into_iter().map(|(role, is_on)| (role.to_string(), is_on)).collect()
    }

    #[test]
    fn each_role_with_a_switch_is_named_and_other_switches_are_not() {
        let all = switches(
            &[
                ("EnableProvision", "true"),
                ("EnableDeprovision", "false"),
                ("EnableCustomSupport", "true"),
                ("EnableCustomOther", "true"),
                ("EnableRunner", "true"),
                ("EnableAppRoles", "false"),
            ],
            END,
        );

        let expected = [("custom-support", true), ("deprovision", false), ("provision", true)];
        assert_eq!(all, expected.map(|(role, is_on)| (role.to_owned(), is_on)));
    }

    #[test]
    fn break_glass_is_on_until_the_time_that_the_customer_sets() {
        let is_on = |switch: &str, until: &str, now: Timestamp| {
            let all = switches(&[("EnableBreakGlass", switch), ("BreakGlassUntil", until)], now);
            all == [("break-glass".to_owned(), true)]
        };
        let before = Timestamp::from_millis(END.as_millis() - 1);

        assert!(is_on("true", "2026-11-30T18:00:00Z", before));
        assert!(!is_on("true", "2026-11-30T18:00:00Z", END));
        assert!(!is_on("false", "2026-11-30T18:00:00Z", before));
        assert!(!is_on("true", "1970-01-01T00:00:00Z", before));
        assert!(!is_on("true", "tomorrow", before));
        assert_eq!(switches(&[("EnableBreakGlass", "true")], before), [("break-glass".to_owned(), false)]);
    }
}
