//! The install stacks of real apps keep every rule of `freehold install verify-template`, and are the same bytes each time.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use freehold_app::render_stack::{Place, template};
use freehold_appconfig::{Fetched, Loaded, load_files};
use freehold_contract::compare_terms;
use freehold_domain::contract::terms;
use freehold_domain::install::{Install, Serves};
use freehold_protocol::app_version::AppVersion;
use freehold_protocol::limits::MAX_TERMS_BYTES;
use freehold_protocol::{Timestamp, canonical};
use freehold_stackcheck::check;
use freehold_tests::harness::cloud::skip;

/// Returns the files of an app, with one in `src`, which the collection leaves out.
fn files(root: &Path, dir: &Path, into: &mut BTreeMap<String, Vec<u8>>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(root, &path, into);
        } else {
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            into.insert(name, std::fs::read(&path).unwrap());
        }
    }
}

/// Loads an app with any text behind its addresses and in the files that the collection leaves out.
fn load(app: &str, mut files: BTreeMap<String, Vec<u8>>) -> Loaded {
    let mut fetched = Fetched::new();
    for _ in 0..100 {
        match load_files(app, &files, &fetched) {
            Ok(loaded) if loaded.addresses.is_empty() => return loaded,
            Ok(loaded) => fetched.extend(loaded.addresses.into_iter().map(|address| (address, "a: 1".to_owned()))),
            Err(found) => {
                let left_out = |message: &str| {
                    let path = message.strip_prefix('`')?.strip_suffix("` cannot be read: folder `src` is not here")?;
                    Some(path.trim_start_matches("./").to_owned())
                };
                let added: Vec<String> = found.iter().filter_map(|one| left_out(&one.message)).collect();
                assert!(!added.is_empty(), "{app}: {found}");
                files.extend(added.into_iter().map(|path| (path, b"x\n".to_vec())));
            }
        }
    }
    panic!("{app} is never whole");
}

fn install(version: &AppVersion) -> Install {
    Install {
        id: "globex".parse().unwrap(),
        account: "222222222222".parse().unwrap(),
        region: "eu-west-1".to_owned(),
        serves: Serves::App { app: version.app.clone(), version: None },
        created_at: Timestamp::from_millis(0),
        enrolment_key: key(),
        inputs: BTreeMap::new(),
        answers: BTreeMap::new(),
        accepted_contract: None,
        orders_queue_url: None,
        runner: None,
        retired: BTreeSet::new(),
        live: None,
        next_serial: 1,
        disabled: None,
    }
}

fn key() -> freehold_protocol::envelope::PublicKey {
    ed25519_dalek::SigningKey::from_bytes(&[1; 32]).verifying_key().into()
}

fn place() -> Place {
    Place {
        tenant: "acme".parse().unwrap(),
        account: "111111111111".parse().unwrap(),
        region: "eu-west-1".to_owned(),
        orders_queue_url: "https://sqs.eu-west-1.amazonaws.com/111111111111/fh-acme-globex.fifo".to_owned(),
        reports_queue_url: "https://sqs.eu-west-1.amazonaws.com/111111111111/fh-acme-reports".to_owned(),
        root_key: key(),
        runner: None,
    }
}

/// Whatever a real app asks for, the same again needs no new consent, and nothing at all is less.
fn what_is_agreed_to_is_no_wider_than_itself(version: &AppVersion) {
    let (all, nothing) = (terms(version), terms(&AppVersion::empty(version.app.clone())));

    let bytes = canonical::to_vec(&all).unwrap();

    assert!(bytes.len() < MAX_TERMS_BYTES / 4, "{}: {} bytes", version.app, bytes.len());
    assert!(compare_terms(&all, &serde_json::from_slice(&bytes).unwrap()).is_empty(), "{}", version.app);
    assert_eq!(compare_terms(&nothing, &all).widened.is_empty(), all.roles.is_empty() && all.actions.is_empty());
}

#[test]
fn the_stacks_of_real_apps_keep_every_rule() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/appconfigs");
    let Ok(apps) = std::fs::read_dir(&root) else {
        skip("real_stacks", "no real app configs beside the project").unwrap();
        return;
    };
    let (mut stacks, mut refused) = (0, Vec::new());
    for app in apps {
        let dir = app.unwrap().path();
        if !dir.is_dir() {
            continue;
        }
        let name = dir.file_name().unwrap().to_str().unwrap();
        let mut found = BTreeMap::new();
        files(&dir, &dir, &mut found);
        let version = load(name, found).version;
        let digest = version.digest().unwrap();
        what_is_agreed_to_is_no_wider_than_itself(&version);

        match template(&place(), &install(&version), &digest, &version) {
            Ok(text) => {
                assert_eq!(check(&text).unwrap(), [], "{name}");
                assert_eq!(template(&place(), &install(&version), &digest, &version).unwrap(), text, "{name}");
                stacks += 1;
            }
            Err(error) => refused.push(format!("{name}: {error}")),
        }
    }
    println!("{stacks} stacks; refused: {refused:#?}");
    assert!(stacks >= 20, "{refused:#?}");
}
