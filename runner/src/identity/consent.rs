//! Decides whether the customer has agreed to the contract of an order. The runner does not trust a statement that the
//! customer agreed. It compares the accepted terms with those of the order on its own.

use freehold_permissions::{OrderedCommands, TermsDiff, compare_terms_for, terms_for_removal};
use freehold_protocol::Digest;
use freehold_protocol::contract::{OrderTerms, Terms, TermsError};
use freehold_protocol::order::{Order, SecretCopy, Work};
use freehold_protocol::report::{Block, Outcome};

use crate::config::{Config, Role};
use crate::identity::released_program;

/// The reason why an order's contract is not accepted.
#[derive(Debug, thiserror::Error)]
enum NotAccepted {
    #[error("the order does not name the contract of its release")]
    Unsaid,
    #[error(
        "the release has the contract `{asked}`, and the order does not contain the difference from the accepted \
        contract"
    )]
    Unknown { asked: Digest },
    #[error("the release has the contract `{asked}`, and the terms that came with the order are not valid: {error}")]
    Unproven { asked: Digest, error: TermsError },
    #[error("the release has the contract `{asked}`, which allows more: {}", .diff.summary())]
    Widened { asked: Digest, diff: TermsDiff },
}

/// A value of the customer that an order reads although the order's terms do not name it.
#[derive(Debug, thiserror::Error)]
enum NotInTerms {
    #[error("secret `{0}`")]
    Secret(String),
    #[error("the customer's sensitive input `{0}`")]
    Input(String),
    #[error("a copy of secret `{secret}` in Kubernetes secret `{name}` of namespace `{namespace}`")]
    Copy { secret: String, namespace: String, name: String },
}

/// Returns the outcome of an order that does more than its terms permit: it reads another secret or another sensitive
/// input of the customer, or copies a secret to another place. Returns `None` for any other order. The runner has
/// compared the terms with the accepted terms, and reads these values itself, so it refuses the order.
///
/// A removal may also read the values that only the accepted terms name, because its own terms can leave them out. An
/// upgrade of the runner may read no value, because it belongs to no release of the app.
pub fn unnamed_value(config: &Config, order: &Order) -> Option<Outcome> {
    // Terms without their document count as terms that name no value: with only the digest, the order could read any
    // value.
    let terms = match (&order.work, order.terms.as_deref()) {
        (Work::Upgrade(_), _) => Vec::new(),
        (Work::Remove(_), Some(terms)) => terms_for_removal(terms, config.accepted_contract.as_ref()),
        (_, Some(terms)) => terms.asked().ok().flatten().into_iter().collect(),
        (_, None) => return None,
    };
    let value = not_in_terms(order, &terms)?;
    let reason = reason_for(order, &value, terms.is_empty());
    Some(Outcome::Blocked { block: Block::ContractNotAccepted, reason })
}

fn reason_for(order: &Order, value: &NotInTerms, without_terms: bool) -> String {
    if matches!(order.work, Work::Upgrade(_)) {
        return format!(
            "the order upgrades the runner and reads {value}, but an upgrade reads no value of the customer; report it \
             to the vendor"
        );
    }
    if without_terms {
        return format!(
            "the order reads {value}, but does not contain the contract that must name this value, because the order is \
             too large; ask the vendor to shorten the component's values or outputs"
        );
    }
    if matches!(order.work, Work::Remove(_)) {
        return format!(
            "the order of a removal reads {value}, which is neither in the contract of the order nor in the accepted \
             contract; report it to the vendor, and ask the vendor to update the control plane if it is older than the \
             runner"
        );
    }
    format!(
        "the order reads {value}, which is not in the contract of the order; report it to the vendor, and update the \
         runner if it is older than the vendor's control plane"
    )
}

fn not_in_terms(order: &Order, terms: &[Terms]) -> Option<NotInTerms> {
    let secret = order.secrets.iter().find(|secret| !terms.iter().any(|terms| terms.names_secret(&secret.name)));
    if let Some(secret) = secret {
        return Some(NotInTerms::Secret(secret.name.clone()));
    }
    let is_agreed = |input: &str| terms.iter().any(|terms| terms.names_sensitive_input(input));
    let input = order.sensitive_inputs.iter().find(|input| input.customer && !is_agreed(&input.name));
    if let Some(input) = input {
        return Some(NotInTerms::Input(input.name.clone()));
    }
    let Work::CopySecrets(work) = &order.work else { return None };
    let place = |secret: &str| terms.iter().find_map(|terms| terms.secrets.get(secret))?.kubernetes.as_ref();
    let is_place = |copy: &&SecretCopy| {
        place(&copy.secret).is_some_and(|place| place.namespace == copy.namespace && place.name == copy.name)
    };
    let copy = work.copies.iter().find(|copy| !is_place(copy))?;
    let SecretCopy { secret, namespace, name } = copy.clone();
    Some(NotInTerms::Copy { secret, namespace, name })
}

/// Returns the outcome of an order if the customer has not agreed to the contract of its release, otherwise `None`.
/// Without `accepted_contract` in the config, every contract is accepted. An upgrade of the runner does not belong to a
/// release of the app. The customer agrees to it by naming the key that signs releases of Freehold.
pub fn refusal(config: &Config, order: &Order) -> Option<Outcome> {
    if let Work::Upgrade(work) = &order.work {
        return released_program::refusal(config, order, work);
    }
    let accepted = config.accepted_contract.as_ref().filter(|_| config.role == Role::Install)?;
    let why = check(accepted, order.terms.as_deref(), commands_of(order)).err()?;
    let install = &config.install;
    let reason = format!(
        "this install's customer agreed to the contract `{accepted}`. {why}. To see all differences: `freehold \
         contract diff {install}`. To agree: launch the template that `freehold install stack {install}` writes, with \
         `--accept-contract`. A runner that has a config file then needs `freehold install runner-config {install} \
         --force` and a restart"
    );
    Some(Outcome::Blocked { block: Block::ContractNotAccepted, reason })
}

/// Returns the commands of the app that the order runs.
const fn commands_of(order: &Order) -> OrderedCommands<'_> {
    if let Work::Action(work) = &order.work {
        OrderedCommands::OfAction(&work.action)
    } else if let Work::Health(work) = &order.work {
        OrderedCommands::OfHealth(&work.component)
    } else {
        OrderedCommands::None
    }
}

fn check(accepted: &Digest, terms: Option<&OrderTerms>, commands: OrderedCommands<'_>) -> Result<(), NotAccepted> {
    let terms = terms.ok_or(NotAccepted::Unsaid)?;
    if terms.digest == *accepted {
        return Ok(());
    }
    let asked = terms.digest.clone();
    let Some(change) = &terms.change else { return Err(NotAccepted::Unknown { asked }) };
    let opened = change.accepted.open(accepted).and_then(|was| Ok((was, change.asked.open(&asked)?)));
    let (was, is) = match opened {
        Ok(both) => both,
        Err(error) => return Err(NotAccepted::Unproven { asked, error }),
    };
    let diff = compare_terms_for(&was, &is, commands);
    if diff.widened.is_empty() { Ok(()) } else { Err(NotAccepted::Widened { asked, diff }) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use freehold_protocol::canonical;
    use freehold_protocol::contract::{PackedTerms, TermsChange};
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::{config, order, upgrade_to};

    fn terms(hosts: &[&str]) -> Value {
        json!({ "format": 1, "app": "demo", "roles": [], "hosts": hosts, "actions": [] })
    }

    fn digest(terms: &Value) -> Digest {
        canonical::digest(terms).unwrap()
    }

    fn packed(terms: &Value) -> PackedTerms {
        PackedTerms::of(&canonical::to_vec(terms).unwrap()).unwrap()
    }

    /// What becomes of an order that asks for `asked` and brings `documents`, where `accepted` was agreed to.
    fn refused(accepted: &Value, asked: &Value, documents: Option<(&Value, &Value)>) -> Option<String> {
        let change =
            documents.map(|(accepted, asked)| TermsChange { accepted: packed(accepted), asked: packed(asked) });
        refused_without_documents(accepted, Some(OrderTerms { digest: digest(asked), change, document: None }))
    }

    fn refused_without_documents(accepted: &Value, terms: Option<OrderTerms>) -> Option<String> {
        let config = Config { accepted_contract: Some(digest(accepted)), ..config("/state", Role::Install) };
        let order = Order { terms: terms.map(Box::new), ..order(1, 7) };
        match refusal(&config, &order)? {
            Outcome::Blocked { block: Block::ContractNotAccepted, reason } => Some(reason),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_accepted_terms_and_narrower_ones_that_are_proven_are_followed() {
        let (wide, narrow) = (terms(&["a.example", "b.example"]), terms(&["a.example"]));

        assert_eq!(refused(&wide, &wide, None), None);
        assert_eq!(refused(&wide, &narrow, Some((&wide, &narrow))), None);
    }

    #[test]
    fn a_widening_is_refused_with_the_difference_and_the_way_out() {
        let (narrow, wide) = (terms(&["a.example"]), terms(&["a.example", "b.example"]));

        let reason = refused(&narrow, &wide, Some((&narrow, &wide))).unwrap();

        let expected = format!(
            "this install's customer agreed to the contract `{}`. the release has the contract `{}`, which allows \
             more: host `b.example` is contacted. To see all differences: `freehold contract diff globex-prod`. To \
             agree: launch the template that `freehold install stack globex-prod` writes, with `--accept-contract`. A \
             runner that has a config file then needs `freehold install runner-config globex-prod --force` and a restart",
            digest(&narrow),
            digest(&wide)
        );
        assert_eq!(reason, expected);
    }

    #[test]
    fn another_command_of_a_probe_stops_the_check_of_its_component_and_no_other_order() {
        let of = |word: &str| {
            let mut terms = terms(&[]);
            terms["probes"] = json!([{ "component": "web", "command": ["check", word] }]);
            terms
        };
        let (accepted, asked) = (of("-a"), of("-b"));
        let change = TermsChange { accepted: packed(&accepted), asked: packed(&asked) };
        let ordered = OrderTerms { digest: digest(&asked), change: Some(change), document: None };
        let config = Config { accepted_contract: Some(digest(&accepted)), ..config("/state", Role::Install) };
        let refused = |work: Option<Value>| {
            let mut order = Order { terms: Some(Box::new(ordered.clone())), ..order(1, 7) };
            if let Some(work) = work {
                order.work = serde_json::from_value(work).unwrap();
            }
            refusal(&config, &order)
        };
        let health = |component: &str| {
            Some(
                json!({ "kind": "health", "component": component, "asks": { "of": "nothing" }, "hold_secs": 0, "limit_secs": 0 }),
            )
        };

        assert_eq!((refused(None), refused(health("db"))), (None, None));
        let Some(Outcome::Blocked { block: Block::ContractNotAccepted, reason }) = refused(health("web")) else {
            panic!("followed")
        };
        assert!(reason.contains("the health check of component `web` runs command `[\"check\",\"-b\"]`"), "{reason}");
    }

    #[test]
    fn what_the_order_does_not_prove_is_refused() {
        let (narrow, wide) = (terms(&["a.example"]), terms(&["a.example", "b.example"]));
        let mut strange = narrow.clone();
        strange["tunnels"] = json!([]);

        let cases = [
            (refused_without_documents(&narrow, None), "does not name the contract"),
            (refused(&narrow, &wide, None), "the order does not contain the difference"),
            // Documents of other terms than the digests name.
            (refused(&narrow, &wide, Some((&wide, &wide))), "are not valid: terms have the digest"),
            (refused(&narrow, &wide, Some((&narrow, &narrow))), "are not valid: terms have the digest"),
            (refused(&narrow, &strange, Some((&narrow, &strange))), "unknown field `tunnels`"),
        ];

        for (reason, part) in cases {
            assert!(reason.as_ref().is_some_and(|reason| reason.contains(part)), "{part}: {reason:?}");
        }
    }

    fn unnamed(order: &Order) -> Option<Outcome> {
        unnamed_value(&config("/state", Role::Install), order)
    }

    /// Returns an order whose terms have the secrets and the customer's inputs of `terms`.
    fn reading(more: &Value, work: Option<Value>) -> Order {
        let mut terms = terms(&[]);
        terms["customer_inputs"] = json!({ "token": { "sensitive": true }, "domain": {} });
        terms["secrets"] = json!({ "license": { "kubernetes": { "namespace": "shop", "name": "license" } } });
        let document = Some(packed(&terms));
        let mut order = order(1, 7);
        order.terms = Some(Box::new(OrderTerms { digest: digest(&terms), change: None, document }));
        order.secrets = serde_json::from_value(more["secrets"].clone()).unwrap_or_default();
        order.sensitive_inputs = serde_json::from_value(more["inputs"].clone()).unwrap_or_default();
        if let Some(work) = work {
            order.work = serde_json::from_value(work).unwrap();
        }
        order
    }

    #[test]
    fn an_order_reads_only_the_values_that_its_terms_name() {
        let input = |name: &str, customer: bool| json!([{ "name": name, "type": "string", "sensitive": true, "customer": customer }]);
        let copy = |name: &str| {
            let copies = json!([{ "secret": "license", "namespace": "shop", "name": name }]);
            Some(json!({ "kind": "copy_secrets", "copies": copies }))
        };
        let license = json!({ "secrets": [{ "name": "license" }] });
        for (more, work) in [
            (json!({}), None),
            (license.clone(), None),
            (license.clone(), copy("license")),
            (json!({ "inputs": input("token", true) }), None),
            (json!({ "inputs": input("vendors", false) }), None),
        ] {
            assert_eq!(unnamed(&reading(&more, work)), None, "{more}");
        }

        for (more, work, says) in [
            (json!({ "secrets": [{ "name": "other" }] }), None, "reads secret `other`, which is not in the contract"),
            (json!({ "inputs": input("other", true) }), None, "reads the customer's sensitive input `other`, which"),
            // The customer agreed to an answer that the vendor sees, and to no secret of this name.
            (json!({ "inputs": input("domain", true) }), None, "reads the customer's sensitive input `domain`, which"),
            (
                license,
                copy("elsewhere"),
                "reads a copy of secret `license` in Kubernetes secret `elsewhere` of namespace `shop`, which",
            ),
        ] {
            let outcome = unnamed(&reading(&more, work));

            let Some(Outcome::Blocked { block: Block::ContractNotAccepted, reason }) = outcome else {
                panic!("{more}: {outcome:?}")
            };
            assert!(reason.contains(says) && !reason.contains("  "), "{reason}");
        }
    }

    #[test]
    fn an_order_without_the_document_of_its_terms_reads_no_value_of_the_customers() {
        let license = json!({ "secrets": [{ "name": "license" }] });
        let without = |more: &Value| {
            let mut order = reading(more, None);
            order.terms.as_mut().unwrap().document = None;
            unnamed(&order)
        };

        assert_eq!(without(&json!({})), None);
        let Some(Outcome::Blocked { block: Block::ContractNotAccepted, reason }) = without(&license) else {
            panic!("{:?}", without(&license))
        };
        assert!(reason.starts_with("the order reads secret `license`, but does not contain the contract"), "{reason}");
    }

    /// Returns the order of a deploy and that of the removal of the same component. The orders read the secrets and the
    /// customer's sensitive inputs `read`, their terms name `asked`, and the accepted terms name `accepted`.
    fn both_orders(read: &BTreeSet<&str>, asked: &BTreeSet<&str>, accepted: &BTreeSet<&str>) -> [Order; 2] {
        let (accepted, asked) = (naming(accepted), naming(asked));
        let change = Some(TermsChange { accepted: packed(&accepted), asked: packed(&asked) });
        let secrets: Vec<Value> = read.iter().map(|name| json!({ "name": name })).collect();
        let input = |name: &&str| json!({ "name": name, "type": "string", "sensitive": true, "customer": true });
        let inputs: Vec<Value> = read.iter().map(input).collect();
        let artifact = json!({ "digest": Digest::of(b"artifact"), "media_type": "m", "manifests": [], "blobs": [] });
        let deploy = json!({ "kind": "pulumi", "component": "web", "artifact": artifact });
        [deploy.clone(), json!({ "kind": "remove", "what": deploy })].map(|work| {
            let mut order = order(1, 7);
            order.terms = Some(Box::new(OrderTerms { digest: digest(&asked), change: change.clone(), document: None }));
            order.secrets = serde_json::from_value(json!(secrets)).unwrap();
            order.sensitive_inputs = serde_json::from_value(json!(inputs)).unwrap();
            order.work = serde_json::from_value(work).unwrap();
            order
        })
    }

    /// Returns terms with a secret and a sensitive input of the customer of each name.
    fn naming(names: &BTreeSet<&str>) -> Value {
        let mut terms = terms(&[]);
        terms["secrets"] = names.iter().map(|name| ((*name).to_owned(), json!({}))).collect();
        terms["customer_inputs"] =
            names.iter().map(|name| ((*name).to_owned(), json!({ "sensitive": true }))).collect();
        terms
    }

    fn agreeing_to(accepted: &BTreeSet<&str>) -> Config {
        Config { accepted_contract: Some(digest(&naming(accepted))), ..config("/state", Role::Install) }
    }

    #[test]
    fn a_removal_reads_every_value_that_the_customer_agreed_to_and_no_other() {
        let names = ["license", "password", "token"];
        let of_bits = |bits: usize| names.iter().enumerate().filter(move |(at, _)| (bits >> at) & 1 == 1);
        let all: Vec<BTreeSet<&str>> = (0..8).map(|bits| of_bits(bits).map(|(_, name)| *name).collect()).collect();
        let mut followed = 0;

        for accepted in &all {
            let config = agreeing_to(accepted);
            for asked in all.iter().filter(|asked| asked.is_subset(accepted)) {
                for read in &all {
                    let [deploy, removal] = both_orders(read, asked, accepted);

                    assert_eq!(refusal(&config, &removal), None);
                    let why = || format!("{read:?} {asked:?} {accepted:?}");
                    assert_eq!(unnamed_value(&config, &deploy).is_none(), read.is_subset(asked), "{}", why());
                    assert_eq!(unnamed_value(&config, &removal).is_none(), read.is_subset(accepted), "{}", why());
                    followed += usize::from(read.is_subset(accepted));
                }
            }
        }

        assert!(followed > 50, "{followed} removals were followed");
    }

    #[test]
    fn a_lying_removal_is_refused_with_its_reason() {
        let (read, accepted) = (BTreeSet::from(["password"]), BTreeSet::from(["license"]));
        let [_, mut secret] = both_orders(&read, &BTreeSet::new(), &accepted);
        let mut input = secret.clone();
        (secret.sensitive_inputs, input.secrets) = (Vec::new(), Vec::new());
        let mut forged = secret.clone();
        let naming_more = packed(&naming(&read));
        forged.terms.as_mut().unwrap().change.as_mut().unwrap().accepted = naming_more;

        for (order, value) in [
            (secret, "secret `password`"),
            (input, "the customer's sensitive input `password`"),
            // The terms in the place of the accepted terms have another digest.
            (forged, "secret `password`"),
        ] {
            let outcome = unnamed_value(&agreeing_to(&accepted), &order);

            let Some(Outcome::Blocked { block: Block::ContractNotAccepted, reason }) = outcome else {
                panic!("{outcome:?}")
            };
            let expected = format!(
                "the order of a removal reads {value}, which is neither in the contract of the order nor in the \
                 accepted contract; report it to the vendor, and ask the vendor to update the control plane if it is \
                 older than the runner"
            );
            assert_eq!(reason, expected);
        }
    }

    #[test]
    fn an_upgrade_of_the_runner_reads_no_value_whatever_terms_its_order_has() {
        let upgrade = json!(Work::Upgrade(upgrade_to(&Digest::of(b"new"), 7)));
        let license = json!({ "secrets": [{ "name": "license" }] });
        let with_terms = reading(&license, Some(upgrade.clone()));
        let mut without_terms = with_terms.clone();
        without_terms.terms = None;

        assert_eq!(unnamed(&reading(&json!({}), Some(upgrade))), None);
        for order in [with_terms, without_terms] {
            let Some(Outcome::Blocked { block: Block::ContractNotAccepted, reason }) = unnamed(&order) else {
                panic!("{order:?}")
            };
            assert!(reason.starts_with("the order upgrades the runner and reads secret `license`, but"), "{reason}");
        }
    }

    #[test]
    fn nothing_is_asked_of_a_build_nor_where_no_consent_was_written_down() {
        let order = order(1, 7);
        let builds = Config { accepted_contract: Some(Digest::of(b"x")), ..config("/state", Role::Build) };

        assert_eq!(refusal(&builds, &order), None);
        assert_eq!(refusal(&config("/state", Role::Install), &order), None);
    }
}
