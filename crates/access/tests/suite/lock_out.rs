//! Whether somebody can still change the policies.

use freehold_access::{Policies, Principal, Who};

use super::{iam, person, ready_made};

const OWNERS_ALONE: &str = "@id(\"owners\") permit (principal in Freehold::Group::\"owner\", action, resource);";

#[test]
fn the_ready_made_policies_need_no_member() {
    assert!(ready_made().somebody_administers(&[]));
}

#[test]
fn without_a_policy_about_iam_an_owner_has_to_be_a_member() {
    let policies = Policies::parse(OWNERS_ALONE).unwrap();
    let mut role = iam();
    role.groups.insert("owner".parse().unwrap());

    assert!(!policies.somebody_administers(&[]));
    assert!(!policies.somebody_administers(&[person(&["operator"]), iam()]));
    assert!(policies.somebody_administers(&[person(&["operator"]), person(&["owner"])]));
    assert!(policies.somebody_administers(&[role]));
}

#[test]
fn an_owner_who_is_limited_or_forbidden_does_not_count() {
    let mut limited = person(&["owner"]);
    limited.apps.insert("web".parse().unwrap());
    let limits = Policies::ready_made()
        .replace("@id(\"iam-principals-of-the-account\")\npermit (principal is Freehold::Iam, action, resource);", "");
    let forbidden = "@id(\"never\") forbid (principal, action == Freehold::Action::\"set_policies\", resource);";

    assert!(!Policies::parse(&limits).unwrap().somebody_administers(&[limited]));
    assert!(Policies::parse(&limits).unwrap().somebody_administers(&[person(&["owner"])]));
    let never = Policies::parse(&format!("{OWNERS_ALONE}\n{forbidden}")).unwrap();
    assert!(!never.somebody_administers(&[person(&["owner"])]));
}

#[test]
fn a_policy_about_one_role_counts_only_if_the_role_is_a_member() {
    let policies = Policies::parse(
        "@id(\"admin\") permit (principal is Freehold::Iam, action, resource)\n\
         when { principal.arn like \"*:role/admin\" };",
    )
    .unwrap();
    let admin = Principal::without_groups(Who::Iam { arn: "arn:aws:iam::111122223333:role/admin".to_owned() });

    assert!(!policies.somebody_administers(&[]));
    assert!(policies.somebody_administers(&[admin]));
}
