//! A later licence changes the parts whose templates read it, and no others.

use super::*;

fn of_component(references: Value, licence: Option<u64>) -> Digest {
    let mut web = component("web", &[], &[]);
    web["references"] = references;
    let web: Component = serde_json::from_value(web).unwrap();
    fingerprint(&version(), &web, &Digest::of(b"web"), &BTreeMap::new(), &BTreeMap::new(), licence).unwrap()
}

#[test]
fn a_part_that_reads_the_licence_is_deployed_again_when_the_licence_changes() {
    let reads = |licence| of_component(json!([{ "to": "licence" }]), licence);
    let ignores = |licence| of_component(json!([{ "to": "install_stack", "name": "region" }]), licence);

    assert_eq!(reads(Some(2)), reads(Some(2)));
    assert!(reads(None) != reads(Some(1)) && reads(Some(1)) != reads(Some(2)));
    assert_eq!(ignores(None), ignores(Some(2)));
    assert_eq!(reads(None), of_component(json!([]), None));
}
