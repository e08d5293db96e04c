//! The install stacks of real apps keep every rule of `freehold customer verify-template`, and are the same bytes each time.

#![cfg(test)]

use freehold_domain::contract::terms;
use freehold_permissions::compare_terms;
use freehold_protocol::app_version::AppVersion;
use freehold_protocol::canonical;
use freehold_protocol::limits::MAX_TERMS_BYTES;
use freehold_skips::skip;
use freehold_stackcheck::check;
use freehold_tests::stacks::{generated, real_apps, real_apps_are_here};

/// Whatever a real app asks for, the same again needs no new consent, and nothing at all is less.
fn accepted_terms_are_not_wider_than_themselves(version: &AppVersion) {
    let (all, nothing) = (terms(version), terms(&AppVersion::empty(version.app.clone())));

    let bytes = canonical::to_vec(&all).unwrap();

    assert!(bytes.len() < MAX_TERMS_BYTES / 4, "{}: {} bytes", version.app, bytes.len());
    assert!(compare_terms(&all, &serde_json::from_slice(&bytes).unwrap()).is_empty(), "{}", version.app);
    assert_eq!(compare_terms(&nothing, &all).widened.is_empty(), all.roles.is_empty() && all.actions.is_empty());
}

#[test]
fn the_stacks_of_real_apps_keep_every_rule() {
    if !real_apps_are_here() {
        return skip("no real app configs beside the project");
    }
    let (mut stacks, mut refused) = (0, Vec::new());

    for case in real_apps().unwrap() {
        accepted_terms_are_not_wider_than_themselves(&case.version);
        match case.rendered().unwrap() {
            Ok(text) => {
                assert_eq!(check(&text).unwrap(), [], "{}", case.name);
                stacks += 1;
            }
            Err(error) => refused.push(format!("{}: {error}", case.name)),
        }
    }

    println!("{stacks} stacks; refused: {refused:#?}");
    assert!(stacks >= 20, "{refused:#?}");
}

#[test]
fn the_stacks_of_generated_apps_keep_every_rule() {
    for number in 0..50 {
        let case = generated(1, number).unwrap();

        let text = case.rendered().unwrap().unwrap();

        assert_eq!(check(&text).unwrap(), [], "{}", case.name);
    }
}
