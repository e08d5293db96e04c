//! Two tenants in one account of a vendor, and two installs in one account of a customer, are apart whatever names they
//! have. Neither a name nor a wildcard of one covers a resource of the other.

use std::collections::BTreeSet;
use std::fs;

use ed25519_dalek::SigningKey;
use freehold_app::stack::render_stack::{Place, template};
use freehold_domain::install::{Install, Serves};
use freehold_protocol::app_version::AppVersion;
use freehold_protocol::envelope::PublicKey;
use freehold_protocol::{AccountId, Digest, InstallId, TenantName, Timestamp, names};
use proptest::prelude::*;
use serde_json::json;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
const VENDOR: &str = "111111111111";
const CUSTOMER: &str = "222222222222";

/// Names of few letters, so that one is often the beginning of another, or of two others together.
fn name<T: std::str::FromStr + std::fmt::Debug>() -> impl Strategy<Value = T> {
    prop::collection::vec(prop::sample::select(vec!["a", "b", "aa", "fh", "runner", "api"]), 1..4)
        .prop_map(|words| words.join("-"))
        .prop_filter_map("not a name", |text| text.parse().ok())
}

/// Names of tenants without `fh` and `fh-...`: the app of tenant `fh-acme` may take the names `fh-acme--globex--*`,
/// which the install stack `globex` of tenant `acme` has. So `infra/tenant.yaml` refuses these tenants, and
/// `verify-template`, `install launch` and `infra/install.guard` refuse their templates at a customer.
fn tenant() -> impl Strategy<Value = TenantName> {
    name().prop_filter("refused", |tenant: &TenantName| tenant.as_str().split('-').next() != Some("fh"))
}

/// Returns everything in `text` that begins with one of `starts`, after a colon, a slash or nothing, up to its end.
fn found(text: &str, starts: &[&str]) -> BTreeSet<String> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || "*?./:_-".contains(c);
    let mut found = BTreeSet::new();
    for word in text.split(|c| !is_name(c)) {
        let begins = std::iter::once(0).chain(word.match_indices([':', '/']).map(|(at, _)| at + 1));
        let named =
            begins.filter_map(|at| word.get(at..)).find(|rest| starts.iter().any(|start| rest.starts_with(start)));
        found.extend(named.map(|name| name.trim_end_matches([':', '.']).to_owned()));
    }
    found
}

/// Returns every name and pattern that the tenant stack, the policies over it and the policies of its queues have.
fn of_tenant(tenant: &TenantName) -> BTreeSet<String> {
    let read = |file: &str| fs::read_to_string(format!("{ROOT}/{file}")).unwrap();
    let mut text = read("infra/tenant.yaml").replace("${TenantName}", tenant.as_str());
    for file in ["infra/tenant-boundary.json", "infra/deploy-policy.json", "infra/deploy-people-policy.json"] {
        let policy = read(file).replace("%{TENANT}", tenant.as_str());
        text.push_str(&policy.replace("%{ACCOUNT}", VENDOR).replace("%{REGION}", "eu-west-1"));
    }
    text.push_str(&read("crates/aws/golden/queue-policies.json").replace("acme", tenant.as_str()));
    let mut all = found(&text, &["fh-", "freehold-"]);
    let account: AccountId = VENDOR.parse().unwrap();
    all.insert(names::tenant_bucket(tenant, &account, "eu-west-1"));
    all
}

/// Returns every name and pattern that an install stack has in the customer's account, and a name that its app may take.
fn of_install(tenant: &TenantName, id: &InstallId) -> BTreeSet<String> {
    let prefix = names::app_prefix(tenant, id);
    let text = stack(tenant, id).replace("${AWS::AccountId}", CUSTOMER).replace("${AWS::Region}", "eu-west-1");
    let mut all = found(&text, &["fh-", &prefix]);
    all.insert(format!("{prefix}role"));
    // The two queues are the vendor's.
    all.retain(|name| *name != names::orders_queue(tenant, id) && *name != names::tenant_part(tenant, "reports"));
    // The name of an install may begin with `fh-` too. By itself it is the value of a tag, and no resource's name.
    all.remove(id.as_str());
    all
}

fn stack(tenant: &TenantName, id: &InstallId) -> String {
    let key: PublicKey = SigningKey::from_bytes(&[0; 32]).verifying_key().into();
    let url = |name: String| format!("https://sqs.eu-west-1.amazonaws.com/{VENDOR}/{name}");
    let place = Place {
        tenant: tenant.clone(),
        account: VENDOR.parse().unwrap(),
        region: "eu-west-1".to_owned(),
        orders_queue_url: url(names::orders_queue(tenant, id)),
        reports_queue_url: url(names::tenant_part(tenant, "reports")),
        root_key: key.clone(),
        second_root_key: None,
        runner: None,
    };
    let version: AppVersion = serde_json::from_value(json!({
        "format": 1, "app": "shop",
        "inputs": [{ "name": "token", "type": "string", "sensitive": true, "customer": true }],
        "named_roles": [{ "name": "support", "enabled": true, "policies": [] }],
    }))
    .unwrap();
    let serves = Serves::App { app: version.app.clone(), version: None };
    let made = Timestamp::from_millis(0);
    let install = Install::new(id.clone(), serves, CUSTOMER.parse().unwrap(), "eu-west-1".to_owned(), made);
    template(&place, &install, &Digest::of(b""), &version).unwrap()
}

/// Returns whether a pattern of IAM covers `name`.
fn covers(pattern: &[u8], name: &[u8]) -> bool {
    match (pattern.split_first(), name.split_first()) {
        (None, None) => true,
        (Some((b'*', rest)), _) if covers(rest, name) => true,
        (Some((b'*', _)), Some((_, others))) => covers(pattern, others),
        (Some((b'?', rest)), Some((_, others))) => covers(rest, others),
        (Some((letter, rest)), Some((other, others))) => letter == other && covers(rest, others),
        _ => false,
    }
}

/// Returns the first pattern of `one` that covers a resource of `other`. A pattern of `other` stands for one of its resources.
fn clash(one: &BTreeSet<String>, other: &BTreeSet<String>) -> Option<String> {
    let resources: Vec<String> = other.iter().map(|name| name.replace('*', "x").replace('?', "y")).collect();
    let first = |pattern: &String| {
        let covered = resources.iter().find(|name| covers(pattern.as_bytes(), name.as_bytes()))?;
        Some(format!("`{pattern}` covers `{covered}`"))
    };
    one.iter().find_map(first)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn two_tenants_of_one_account_are_apart((one, other) in (tenant(), tenant())) {
        prop_assume!(one != other);

        let (one, other) = (of_tenant(&one), of_tenant(&other));

        prop_assert_eq!(clash(&one, &other), None);
        prop_assert_eq!(clash(&other, &one), None);
    }

    #[test]
    fn two_installs_in_one_account_are_apart(
        (tenant, vendor) in (tenant(), tenant()),
        is_same_vendor in any::<bool>(),
        (one, other) in (name::<InstallId>(), name::<InstallId>()),
    ) {
        let vendor = if is_same_vendor { tenant.clone() } else { vendor };
        prop_assume!((&tenant, &one) != (&vendor, &other));

        let (one, other) = (of_install(&tenant, &one), of_install(&vendor, &other));

        prop_assert_eq!(clash(&one, &other), None);
        prop_assert_eq!(clash(&other, &one), None);
    }
}

#[test]
fn names_and_wildcards_are_found_and_those_that_run_into_each_other_clash() {
    let installs = of_install(&"acme".parse().unwrap(), &"globex".parse().unwrap());
    let tenants = of_tenant(&"acme".parse().unwrap());
    let of = |text: &str| found(text, &["fh-"]);

    for name in ["fh-acme--globex--runner", "fh-acme/globex", "fh-acme--globex--222222222222", "acme--globex--*"] {
        assert!(installs.contains(name), "{name} is not in {installs:?}");
    }
    for name in ["fh-acme--*", "fh-acme--*.fifo", "fh-acme--*--runner", "fh-acme", "freehold-acme/*"] {
        assert!(tenants.contains(name), "{name} is not in {tenants:?}");
    }
    assert!(clash(&of("role/fh-acme-*"), &of("role/fh-acme-eu-api")).is_some());
    assert!(clash(&of("function:fh-acme--api"), &of("function:fh-acme--*")).is_none());
    assert!(clash(&of("fh-acme--*"), &of("fh-acme--api")).is_some());
}

/// What these tests conclude for some names holds for all, as long as this does.
#[test]
fn a_wildcard_comes_directly_after_two_dashes_or_a_path() {
    let (tenant, install) = ("acme".parse().unwrap(), "globex".parse().unwrap());

    for name in of_tenant(&tenant).union(&of_install(&tenant, &install)) {
        let before = name.split('*').take(name.matches('*').count());
        for before in before {
            assert!(before.ends_with("--") || before.ends_with(['/', ':']), "`{name}` has a wildcard within a name");
        }
    }
}
