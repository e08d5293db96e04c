//! Messages that were changed, or that a key signed which may not, are named by their link.

use super::*;

/// Returns the envelope with one bit of its payload turned.
fn bent(envelope: &Envelope) -> Envelope {
    let mut value = serde_json::to_value(envelope).unwrap();
    let payload = value["payload"].as_str().unwrap();
    // Inside a string of the payload: it stays JSON.
    let raw = String::from_utf8(freehold_protocol::envelope::decode_base64(payload).unwrap()).unwrap();
    let bent = raw.replacen("acme", "bcme", 1);
    assert_ne!(raw, bent);
    value["payload"] = json!(base64(&bent));
    serde_json::from_value(value).unwrap()
}

fn base64(text: &str) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(text)
}

#[test]
fn a_changed_byte_of_any_signed_message_is_named_by_its_link() {
    fn bend(envelope: &mut Option<Envelope>) {
        *envelope = envelope.as_ref().map(bent);
    }
    let changes: [Change; 7] = [
        |l| {
            let provenance = l.builds[0].provenance.as_mut().unwrap();
            provenance.statement = bent(&provenance.statement);
        },
        |l| bend(&mut l.builds[0].proof.order),
        |l| bend(&mut l.builds[0].proof.hello),
        |l| bend(&mut l.builds[0].proof.report),
        |l| bend(&mut l.uses[0].proof.order),
        |l| bend(&mut l.uses[0].proof.hello),
        |l| bend(&mut l.uses[0].proof.report),
    ];

    let found: Vec<String> = changes.into_iter().map(first_broken).collect();

    insta::assert_snapshot!(found.join("\n"), @r"
    statement: provenance of artifact `sha256:05b3abf2579a5eb66403cd78be557fd860633a1fe2103c7642030defe32c657f` failed verification: signature of key `34750f98bd59fcfc946da45aaabe933b` does not match the message
    build order: the order failed verification: signature of key `6a3803d5f059902a1c6dafbc9ba47292` does not match the message
    build runner key: the announcement of the runner's key failed verification: signature of key `506ef1879d748ce0713b0dd01da32ad2` does not match the message
    build report: the report failed verification: signature of key `506ef1879d748ce0713b0dd01da32ad2` does not match the message
    order: the order failed verification: signature of key `6a3803d5f059902a1c6dafbc9ba47292` does not match the message
    runner key: the announcement of the runner's key failed verification: signature of key `7300c0ae1429cd153252736a781b78f4` does not match the message
    deploy report: the report failed verification: signature of key `7300c0ae1429cd153252736a781b78f4` does not match the message
    ");
}

#[test]
fn messages_that_are_signed_but_say_something_else_are_named_by_their_link() {
    let order = |work: Work, context: Value| Some(ordered(&customer().order(work, context)));
    let report = |outcome: Outcome| Some(Envelope::seal(&customer().finished(outcome), &[&customer().runner]).unwrap());
    let other = Artifact { digest: Digest::of(b"another"), ..artifact(&statement(&builder())) };
    let stripped = Artifact { provenance: None, ..artifact(&statement(&builder())) };
    let image = |artifact: Artifact| Work::ContainerImage(SyncImage { component: component(), artifact });
    let elsewhere = [("image".to_owned(), json!({ "digest": Digest::of(b"another") }))].into();

    let found = [
        first_broken(|l| l.uses[0].proof.order = order(image(other), context())),
        first_broken(|l| l.uses[0].proof.order = order(image(stripped), context())),
        first_broken(|l| l.uses[0].proof.order = order(build_work(), context())),
        first_broken(|l| l.uses[0].proof.order = order(deploy_work(), json!({}))),
        first_broken(|l| l.uses[0].proof.order = l.builds[0].proof.order.clone()),
        first_broken(|l| l.uses[0].proof.report = report(Outcome::Cancelled)),
        first_broken(|l| {
            l.uses[0].proof.report =
                report(Outcome::Succeeded { outputs: elsewhere, sensitive: Default::default(), artifact: None })
        }),
        first_broken(|l| l.uses[0].proof.report = l.uses[0].proof.hello.clone()),
        first_broken(|l| {
            l.builds[0].proof.report =
                Some(Envelope::seal(&builder().finished(success()), &[&builder().runner]).unwrap())
        }),
        first_broken(|l| l.builds[0].proof.order = order(deploy_work(), context())),
    ];

    insta::assert_snapshot!(found.join("\n"), @r"
    sync: the artifact of the order is `sha256:ae448ac86c4e8e4dec645729708ef41873ae79c6dff84eff73360989487f08e5`, expected `sha256:05b3abf2579a5eb66403cd78be557fd860633a1fe2103c7642030defe32c657f`
    sync: artifact `sha256:05b3abf2579a5eb66403cd78be557fd860633a1fe2103c7642030defe32c657f` has no provenance; build its component again
    sync: the artifact in the order is missing
    order: the app of the order is ``, expected `shop`
    order: the install of the order is `build`, expected `globex`
    deploy report: the outcome of the report is `no success`, expected `success`
    deploy report: the digest in the install's registry is `sha256:ae448ac86c4e8e4dec645729708ef41873ae79c6dff84eff73360989487f08e5`, expected `sha256:05b3abf2579a5eb66403cd78be557fd860633a1fe2103c7642030defe32c657f`
    deploy report: the report is `not about a job`, expected `the end of a job`
    build report: the artifact in the report is missing
    build order: the install of the order is `globex`, expected `build`
    ");
}

#[test]
fn keys_that_may_not_speak_are_refused() {
    let place = customer();
    let order = place.order(deploy_work(), context());
    let (late, later) = (place.at.plus_secs(5000), place.at.plus_secs(9000));
    let thief = Place { runner: key(66), ..customer() };
    let foreign = Envelope::seal(&place.hello(), &[&thief.runner]).unwrap();
    let stolen = thief.proof(&order, &thief.finished(success()));

    let found = [
        // A delegate that the root key did not certify, that expired, that came too late, and none.
        first_broken(|l| l.uses[0].proof.order = Some(delegated(&order, AT, later, 9))),
        first_broken(|l| l.uses[0].proof.order = Some(delegated(&order, AT, AT.plus_secs(60), 1))),
        first_broken(|l| l.uses[0].proof.order = Some(delegated(&order, late, later, 1))),
        first_broken(|l| l.uses[0].proof.order = Some(Envelope::seal(&order, &[&key(2)]).unwrap())),
        // A delegate that may sign everything but orders.
        first_broken(|l| l.uses[0].proof.order = Some(certified(&order, (AT, later), 1, but_orders()))),
        // An announcement that another key signed, and a report of another key.
        first_broken(|l| l.uses[0].proof.hello = Some(foreign)),
        first_broken(|l| l.uses[0].proof.report = stolen.report),
        // A statement that a delegate signed, and one of somebody else.
        first_broken(|l| {
            let forged = Envelope::seal(&statement(&builder()), &[&key(2)]).unwrap();
            l.builds[0].provenance.as_mut().unwrap().statement = forged;
        }),
    ];

    insta::assert_snapshot!(found.join("\n"), @r"
    order: the order failed verification: message is not signed by key `34750f98bd59fcfc946da45aaabe933b`
    order: the order failed verification: certificate of delegate key `6a3803d5f059902a1c6dafbc9ba47292` is not valid at this time
    order: the certificate of the order's key (1795258600000 ms) is later than the expiry of the order (1795257800000 ms)
    order: the order failed verification: message carries no certificate that the tenant's root key signed
    order: the order failed verification: delegate key `6a3803d5f059902a1c6dafbc9ba47292` may not sign orders: its certificate is for cancels, notices, grants, contracts, receipts, licences
    runner key: the announcement of the runner's key failed verification: message is not signed by key `7300c0ae1429cd153252736a781b78f4`
    deploy report: the report failed verification: message is not signed by key `7300c0ae1429cd153252736a781b78f4`
    statement: provenance of artifact `sha256:05b3abf2579a5eb66403cd78be557fd860633a1fe2103c7642030defe32c657f` failed verification: message is not signed by key `34750f98bd59fcfc946da45aaabe933b`
    ");
}

fn but_orders() -> KeyUses {
    KeyUse::ALL.into_iter().filter(|one| *one != KeyUse::Orders).collect()
}
