//! Decides whether the customer permits the program with which an order would replace the runner's program. The
//! customer's install stack names the key that signs releases; the vendor's order alone permits nothing.

use freehold_protocol::order::{Mode, Order, UpgradeRunner};
use freehold_protocol::report::{Block, Outcome};

use crate::config::Config;
use crate::upgrade::programs::Released;

/// Returns the outcome of an order for a program that the customer does not permit, otherwise `None`.
pub(super) fn refusal(config: &Config, order: &Order, work: &UpgradeRunner) -> Option<Outcome> {
    let reason = unlike_an_upgrade(order).or_else(|| not_permitted(config, work))?;
    Some(Outcome::Blocked { block: Block::Policy, reason })
}

/// Returns what is wrong with the mode, role or group of an order. The switch of another mode would hold the order, and
/// with another group it could run beside another upgrade.
fn unlike_an_upgrade(order: &Order) -> Option<String> {
    let (mode, group) = (order.mode, order.group.thing());
    let is_right = mode == Mode::Maintenance && group == order.work.changes() && order.role.is_none();
    (!is_right).then(|| {
        format!(
            "the order to replace the runner has mode `{}`, role `{}` and group `{}`; it must have mode \
             `maintenance`, no role and group `runner`; report it to the vendor",
            mode.as_str(),
            order.role.as_ref().map(ToString::to_string).unwrap_or_default(),
            order.group
        )
    })
}

fn not_permitted(config: &Config, work: &UpgradeRunner) -> Option<String> {
    Some(match &config.release_key {
        None => {
            let install = &config.install;
            format!(
                "the customer of install `{install}` permits no order to replace the runner: the install stack names no \
                 release key. To permit programs of signed releases: launch the stack with the public key of the \
                 releases as `RunnerReleaseKey`; otherwise launch the template of the new runner"
            )
        }
        Some(key) => {
            let why = Released::of(work).permitted_by(key).err()?;
            format!(
                "the program does not belong to a release that the customer permits: {why}; order a program of a release that the customer's `RunnerReleaseKey` signed"
            )
        }
    })
}

#[cfg(test)]
mod tests {
    use freehold_protocol::Digest;
    use freehold_protocol::order::Work;

    use super::*;
    use crate::config::Role;
    use crate::testing::{config, order, release_key, upgrade_to};

    fn ordered(signed: u8) -> (Order, UpgradeRunner) {
        let work = upgrade_to(&Digest::of(b"new"), signed);
        let (group, mode) = ("runner".parse().unwrap(), Mode::Maintenance);
        (Order { group, mode, work: Work::Upgrade(work.clone()), ..order(1, 1) }, work)
    }

    fn refused(named: Option<u8>, (order, work): &(Order, UpgradeRunner)) -> Option<String> {
        let config = Config {
            release_key: named.map(|seed| release_key(seed).verifying_key().into()),
            ..config("/state", Role::Install)
        };
        match refusal(&config, order, work)? {
            Outcome::Blocked { block: Block::Policy, reason } => Some(reason),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn only_a_program_of_a_release_by_the_customers_key_is_permitted() {
        assert_eq!(refused(Some(7), &ordered(7)), None);
        assert!(refused(None, &ordered(7)).unwrap().contains("permits no order to replace the runner"));
        assert!(refused(Some(7), &ordered(8)).unwrap().contains("not signed by the release key"));
    }

    #[test]
    fn an_upgrade_in_another_mode_or_group_is_refused_although_its_program_is_permitted() {
        let (order, work) = ordered(7);
        let provision = Order { mode: Mode::Provision, ..order.clone() };
        let elsewhere = Order { group: "comp-api".parse().unwrap(), ..order.clone() };
        let under_a_role = Order { role: Some("custom-support".parse().unwrap()), ..order.clone() };
        let another = Order { group: "runner.2".parse().unwrap(), ..order };

        for wrong in [provision, elsewhere, under_a_role] {
            let reason = refused(Some(7), &(wrong, work.clone())).unwrap();
            assert!(reason.contains("must have mode `maintenance`, no role and group `runner`"), "{reason}");
        }
        assert_eq!(refused(Some(7), &(another, work)), None);
    }
}
