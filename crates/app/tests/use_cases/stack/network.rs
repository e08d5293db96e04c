//! The install stack of an app with a sandbox: it makes a network for the app, or takes the customer's. The checks in
//! `tests/infra` and `tests/stacks` read its golden file.

use freehold_app::stack::render_stack::template;
use freehold_domain::install::Install;
use freehold_protocol::Digest;
use serde_json::json;

use super::plain_stack::{ACME, app, install, place};

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/golden/install-with-network.yaml");

fn rendered(region: &str) -> String {
    let mut version = app();
    let sandbox = json!({ "tool": "terraform", "version": "1.11.3" });
    version.sandbox =
        Some(serde_json::from_value(json!({ "tool": sandbox, "source": { "from": "version" } })).unwrap());
    let place = place(ACME, "eu-west-1");
    let install = Install { region: region.to_owned(), ..install(ACME) };
    template(&place, &install, &Digest::of(b""), &version).unwrap()
}

#[test]
fn the_golden_file_is_what_the_renderer_makes() {
    let stack = rendered("eu-west-1");

    if std::env::var_os("FREEHOLD_UPDATE").is_some() {
        std::fs::write(GOLDEN, &stack).unwrap();
    }
    let golden = std::fs::read_to_string(GOLDEN).unwrap_or_default();
    assert!(stack == golden, "the golden stack is out of date; run `FREEHOLD_UPDATE=1 cargo test -p freehold-app`");
}

#[test]
fn a_region_with_two_zones_gets_subnets_in_both() {
    let subnets = |stack: &str| stack.matches("\n    Type: AWS::EC2::Subnet\n").count();

    // Public and private ones, and that of the runner.
    assert_eq!((subnets(&rendered("eu-west-1")), subnets(&rendered("us-west-1"))), (7, 5));
}
