//! Creating installs: names cannot collide, even when two requests come at the same time.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use freehold_app::install::create_install::CreateInstall;
use freehold_app::{AppError, Kind, read};
use freehold_protocol::AccountId;
use freehold_protocol::api::{CreateInstallRequest, InstallView, SetLabelsRequest};
use freehold_protocol::app_version::AppVersion;
use serde_json::json;

use crate::support::doubles::{Meanwhile, Racing};
use crate::support::{World, app, globex, member};

async fn create(world: &World, request: &CreateInstallRequest) -> Result<(), AppError> {
    world.create_install().create(request, member()).await.map(|_| ())
}

fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

async fn shown(world: &World) -> InstallView {
    read::show_install(&world.versions(), &globex(), world.now()).await.unwrap()
}

/// Creates `second`, while `first` is created right before the commit.
async fn race(world: &World, first: &str, second: &str) -> Result<(), AppError> {
    let (installs, request) = (world.create_install(), world.creation(first));
    let memory = Arc::clone(&world.memory);
    let meanwhile: Meanwhile = Box::pin(async move {
        memory.advance_secs(1);
        installs.create(&request, member()).await.unwrap();
    });
    let store = Racing { memory: Arc::clone(&world.memory), meanwhile: Mutex::new(Some(meanwhile)) };
    let racing = CreateInstall { store: Arc::new(store), ..world.create_install() };
    racing.create(&world.creation(second), member()).await.map(|_| ())
}

#[test]
fn an_account_is_twelve_digits_or_nothing() {
    for bad in ["", "22222222222", "2222222222222", "22222222222a", "arn:aws:iam::222222222222:root"] {
        assert!(bad.parse::<AccountId>().is_err(), "{bad}");
    }
    assert!("222222222222".parse::<AccountId>().is_ok());
}

#[tokio::test]
async fn a_name_is_given_once() {
    let world = World::with_app().await;
    create(&world, &world.creation("globex")).await.unwrap();
    let before = world.memory.rows();

    let other = CreateInstallRequest { account: "333333333333".parse().unwrap(), ..world.creation("globex") };
    let error = create(&world, &other).await.unwrap_err();
    create(&world, &world.creation("globex")).await.unwrap();

    assert_eq!(error.kind, Kind::Conflict);
    assert_eq!(
        error.message,
        "install `globex` exists already, for app `demo` in account 222222222222, eu-west-1; choose another name"
    );
    assert_eq!(world.memory.rows(), before);
    assert_eq!(world.memory.started.lock().unwrap().len(), 2, "one build, one provisioning");
}

#[tokio::test]
async fn a_repeated_request_does_not_lose_other_inputs() {
    let world = World::with_app().await;
    create(&world, &world.creation("globex")).await.unwrap();
    let before = world.memory.rows();

    let other =
        CreateInstallRequest { inputs: [("greeting".to_owned(), json!("ho"))].into(), ..world.creation("globex") };
    let error = create(&world, &other).await.unwrap_err();

    assert_eq!(error.kind, Kind::Conflict);
    let expected =
        "install `globex` exists already, with other inputs; `freehold install inputs globex` shows and changes them";
    assert_eq!(error.message, expected);
    assert_eq!(world.memory.rows(), before);
}

#[tokio::test]
async fn a_repeated_request_does_not_set_labels_that_were_changed_since() {
    let world = World::with_app().await;
    let first = CreateInstallRequest { labels: labels(&[("env", "test")]), ..world.creation("globex") };
    create(&world, &first).await.unwrap();
    create(&world, &first).await.unwrap();
    let later = SetLabelsRequest { labels: [("env".to_owned(), Some("production".to_owned()))].into() };
    world.set_labels().set(&globex(), &later, member()).await.unwrap();
    let rows = world.memory.rows();

    let error = create(&world, &first).await.unwrap_err();
    create(&world, &world.creation("globex")).await.unwrap();

    assert_eq!(error.kind, Kind::Conflict);
    let expected =
        "install `globex` exists already, with other labels; `freehold install labels globex` shows and changes them";
    assert_eq!(error.message, expected);
    assert_eq!(world.memory.rows(), rows);
    assert_eq!(shown(&world).await.own_labels, labels(&[("env", "production")]));
}

#[tokio::test]
async fn an_install_has_the_default_labels_of_the_latest_version_below_its_own() {
    let world = World::with_app().await;
    let own = labels(&[("env", "production")]);
    let request = CreateInstallRequest { labels: own.clone(), ..world.creation("globex") };
    create(&world, &request).await.unwrap();
    let defaults = labels(&[("env", "test"), ("team", "shop")]);

    world.sync(&AppVersion { default_labels: defaults, ..app::document() }).await;
    let view = shown(&world).await;
    let list = read::list_installs(&*world.memory, None, world.now(), &|_| true).await.unwrap();
    world.sync(&app::document()).await;

    let listed = list.items.iter().find(|one| one.install == globex()).unwrap();
    assert_eq!(view.labels, labels(&[("env", "production"), ("team", "shop")]));
    assert_eq!((&listed.labels, &listed.own_labels), (&view.labels, &own));
    assert_eq!(shown(&world).await.labels, own);
}

#[tokio::test]
async fn names_that_begin_alike_are_refused_both_ways() {
    let world = World::with_app().await;
    create(&world, &world.creation("prod")).await.unwrap();
    create(&world, &world.creation("stage-eu")).await.unwrap();
    let before = world.memory.rows();

    for bad in ["prod-2", "product", "pro", "pr", "stage", "stage-eu-1"] {
        let error = create(&world, &world.creation(bad)).await.unwrap_err();

        assert_eq!(error.kind, Kind::Conflict, "{bad}");
        assert!(error.message.contains("begin alike"), "{}", error.message);
    }
    assert_eq!(world.memory.rows(), before);
}

#[tokio::test]
async fn names_that_begin_alike_are_refused_when_they_come_at_once() {
    for (first, second) in [("prod", "prod-2"), ("prod-2", "prod")] {
        let world = World::with_app().await;

        let error = race(&world, first, second).await.unwrap_err();

        assert_eq!(error.kind, Kind::Conflict, "{second} while {first}");
        let names: Vec<_> =
            world.memory.rows().into_iter().filter(|row| row.key.pk == "installs").map(|row| row.key.sk).collect();
        assert_eq!(names, [first]);
    }
}

#[tokio::test]
async fn the_same_request_twice_at_once_creates_one_install() {
    let world = World::with_app().await;

    race(&world, "globex", "globex").await.unwrap();

    assert_eq!(world.memory.started.lock().unwrap().len(), 2, "one build, one provisioning");
}

#[tokio::test]
async fn reserved_names_are_refused() {
    let world = World::with_app().await;
    for name in ["dead", "dispatch", "grants", "reports", "build"] {
        assert_eq!(create(&world, &world.creation(name)).await.unwrap_err().kind, Kind::Conflict, "{name}");
    }
}

#[tokio::test]
async fn a_request_that_makes_no_sense_is_refused_by_name() {
    let world = World::with_app().await;
    let good = world.creation("globex");
    let mut unknown_input = good.clone();
    unknown_input.inputs.insert("greting".into(), json!("x"));
    let mut wrong_type = good.clone();
    wrong_type.inputs.insert("days".into(), json!("many"));
    let cases = [
        (
            CreateInstallRequest { app: "demos".parse().unwrap(), ..good.clone() },
            Kind::NotFound,
            "app `demos` does not exist",
        ),
        (CreateInstallRequest { inputs: [].into(), ..good.clone() }, Kind::Invalid, "input `greeting` is required"),
        (unknown_input, Kind::Invalid, "did you mean `greeting`?"),
        (wrong_type, Kind::Invalid, "input `days` must be a number, found a text of 4 characters"),
        (
            CreateInstallRequest { labels: labels(&[("", "x")]), ..good.clone() },
            Kind::Invalid,
            "a label has an empty key; give it a key",
        ),
        (CreateInstallRequest { region: "Ireland".into(), ..good.clone() }, Kind::Invalid, "is not an AWS region"),
        (CreateInstallRequest { region: "eu-west".into(), ..good.clone() }, Kind::Invalid, "is not an AWS region"),
        (
            CreateInstallRequest { region: "eu-wst-1".into(), ..good.clone() },
            Kind::Invalid,
            "this version does not know region `eu-wst-1`; if AWS has it, pass `--unknown-region`; did you mean `eu-west-1`?",
        ),
        (CreateInstallRequest { region: String::new(), ..good }, Kind::Invalid, "is not an AWS region"),
    ];
    let before = world.memory.rows();

    for (request, kind, words) in cases {
        let error = create(&world, &request).await.unwrap_err();

        assert_eq!(error.kind, kind, "{error}");
        assert!(error.message.contains(words), "{error}");
    }
    assert_eq!(world.memory.rows(), before);
}

#[tokio::test]
async fn a_region_that_is_newer_than_this_release_is_taken_when_the_caller_says_so() {
    let world = World::with_app().await;
    let new = CreateInstallRequest { region: "eu-west-9".into(), ..world.creation("globex") };

    let error = create(&world, &new).await.unwrap_err();
    create(&world, &CreateInstallRequest { unknown_region: true, ..new }).await.unwrap();

    assert_eq!(error.kind, Kind::Invalid);
}
