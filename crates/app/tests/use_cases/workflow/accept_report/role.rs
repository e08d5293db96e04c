//! A runner is believed when AWS says that it has the role of its install. Nobody else is, whatever they know.

use freehold_app::Kind;
use freehold_app::testing::{Fault, prove};
use freehold_app::workflow::accept_report::{Accepted, Arrival};
use freehold_domain::install::Install;
use freehold_protocol::report::{CallerRequest, RoleProof};
use freehold_protocol::{Envelope, Timestamp};

use super::accept;
use crate::support::doubles::queue_url;
use crate::support::runner::Runner;
use crate::support::{World, globex};

/// A key that `globex` does not know, on a machine that has the role of the runner of `globex`.
fn machine(world: &World) -> Runner {
    Runner::new(&world.tenant, "globex", queue_url("globex"), 40)
}

async fn install(world: &World) -> Install {
    freehold_app::table::install(&*world.memory, &globex()).await.unwrap().value
}

async fn speaks(world: &World, runner: &Runner) -> bool {
    let key = runner.key.verifying_key().into();
    install(world).await.runner.is_some_and(|known| known.public_key == key)
}

/// Checks that `hello` is refused for ever with this reason, and changes nothing.
async fn refused(world: &World, hello: &str, why: &str) {
    let before = world.memory.rows();

    let error = accept(world, hello).await.unwrap_err();

    assert_eq!(error.kind, Kind::Invalid, "{why}: {}", error.message);
    assert!(error.message.contains(why), "{}", error.message);
    assert_eq!(world.memory.rows(), before, "{why}");
}

#[tokio::test]
async fn a_machine_with_the_role_of_the_install_becomes_its_runner() {
    let world = World::with_install().await;
    let new = machine(&world);

    accept(&world, &new.hello(world.now())).await.unwrap();

    assert!(speaks(&world, &new).await);
}

#[tokio::test]
async fn a_proof_of_another_account_role_or_install_makes_no_runner() {
    let world = World::with_install().await;
    let runner = "fh-acme--globex--runner";
    let vendor = "111111111111";

    for (account, role) in [
        (vendor, runner),
        (vendor, "fh-acme--accept-report"),
        ("222222222222", "fh-acme--globex--provision"),
        ("222222222222", "fh-acme--other--runner"),
        ("222222222222", "fh-initech--globex--runner"),
        ("222222222222", "OrganizationAccountAccessRole"),
    ] {
        let other = machine(&world).with_role(account, role);
        refused(&world, &other.hello(world.now()), "expected a session of role `fh-acme--globex--runner` in account")
            .await;
    }
}

#[tokio::test]
async fn a_proof_is_worth_nothing_beside_another_key() {
    let world = World::with_install().await;
    let (honest, thief) = (world.runners["globex"].clone(), machine(&world));
    let seen = prove(&honest.account, &honest.role, &honest.caller_request(), world.now());

    refused(&world, &thief.hello_with(Some(seen), world.now()), "SignatureDoesNotMatch").await;
}

#[tokio::test]
async fn a_changed_part_of_a_proof_makes_it_worth_nothing() {
    let world = World::with_install().await;
    let new = machine(&world);
    let now = world.now();
    let good = prove(&new.account, &new.role, &new.caller_request(), now);
    let elsewhere =
        CallerRequest::new("us-east-1", &new.tenant, &new.install, &new.key.verifying_key().into()).unwrap();
    let later = Timestamp::from_millis(now.as_millis() + 2_000);

    for (changed, why) in [
        (RoleProof { at: later, ..good.clone() }, "SignatureDoesNotMatch"),
        (prove(&new.account, &new.role, &elsewhere, now), "SignatureDoesNotMatch"),
        (RoleProof { session_token: "111111111111/admin/x".into(), ..good.clone() }, "SignatureDoesNotMatch"),
        (RoleProof { signature: "0".repeat(64), ..good.clone() }, "SignatureDoesNotMatch"),
        (RoleProof { signature: "0\r\nhost: x".into(), ..good.clone() }, "no valid signature"),
        (RoleProof { access_key_id: "A, SignedHeaders=host".into(), ..good }, "no valid access key id"),
    ] {
        refused(&world, &new.hello_with(Some(changed), now), why).await;
    }
    refused(&world, &new.hello_with(None, now), "does not prove the runner's role; update the runner").await;
}

#[tokio::test]
async fn a_hello_that_its_own_key_did_not_sign_is_refused() {
    let world = World::with_install().await;
    let (new, other) = (machine(&world), Runner::new(&world.tenant, "globex", queue_url("globex"), 41));
    let mut hello = Envelope::parse(new.hello(world.now()).as_bytes()).unwrap();
    hello.signatures = Envelope::parse(other.hello(world.now()).as_bytes()).unwrap().signatures;

    refused(&world, &hello.to_json().unwrap(), "not signed by key").await;
}

#[tokio::test]
async fn a_vendor_that_knows_all_that_its_account_knows_makes_no_runner() {
    let mut world = World::with_install().await;
    world.settle().await;
    let vendor = machine(&world);
    // Every signed message and every row of the vendor's account, and what the runner said just now.
    let honest = world.runners["globex"].clone();
    let heard = honest.hello(world.now());
    accept(&world, &heard).await.unwrap();
    let proof = prove(&honest.account, &honest.role, &honest.caller_request(), world.now());

    // The proof in a hello of the vendor's own key; the runner's hello signed by that key; its own roles.
    refused(&world, &vendor.hello_with(Some(proof), world.now()), "SignatureDoesNotMatch").await;
    let mut resealed = Envelope::parse(heard.as_bytes()).unwrap();
    resealed.signatures = Envelope::parse(vendor.hello(world.now()).as_bytes()).unwrap().signatures;
    refused(&world, &resealed.to_json().unwrap(), "not signed by key").await;
    for role in ["fh-acme--accept-report", "fh-acme--build-runner", "fh-acme--globex--runner"] {
        let own = vendor.clone().with_role("111111111111", role);
        refused(&world, &own.hello(world.now()), "expected a session of role").await;
    }
    // The same hello again changes nothing: it is of the runner that said it.
    accept(&world, &heard).await.unwrap();

    assert!(speaks(&world, &honest).await && !speaks(&world, &vendor).await);
}

#[tokio::test]
async fn while_sts_does_not_answer_a_hello_waits_and_is_never_dead() {
    let world = World::with_install().await;
    let new = machine(&world);
    let hello = new.hello(world.now());
    world.memory.faults.set(|what| (what == "caller").then_some(Fault::Before));

    let down = accept(&world, &hello).await.unwrap_err();
    world.memory.faults.set(|_| None);
    accept(&world, &hello).await.unwrap();

    assert_eq!(down.kind, Kind::Transient);
    assert!(speaks(&world, &new).await);
}

#[tokio::test]
async fn after_long_trouble_the_old_hello_is_dropped_and_the_next_one_counts() {
    let world = World::with_install().await;
    let new = machine(&world);
    let (old, sent) = (new.hello(world.now()), world.now());
    let rows = world.memory.rows();
    world.memory.advance_secs(3 * 24 * 3600);

    let days_later = world.accept_report().accept(&old, sent).await.unwrap();
    assert!(matches!(days_later, Accepted::Refused(reason) if reason.contains("too old")));
    assert_eq!(world.memory.rows(), rows);
    accept(&world, &new.hello(world.now())).await.unwrap();

    assert!(speaks(&world, &new).await);
}

#[tokio::test]
async fn a_hello_that_waited_on_its_machine_or_came_from_a_wrong_clock_is_dropped() {
    let world = World::with_install().await;
    let new = machine(&world);
    let away = |millis: i64| Timestamp::from_millis(world.now().as_millis().saturating_add_signed(millis * 1000));

    for (made, why) in [(away(-901), "too old"), (away(901), "is 901 s ahead")] {
        let arrival = Arrival::from(world.now());
        let answer = world.accept_report().accept(&new.hello(made), arrival).await.unwrap();
        assert!(matches!(&answer, Accepted::Refused(reason) if reason.contains(why)), "{answer:?}");
    }

    assert!(!speaks(&world, &new).await);
}
