//! The page about access shows policies that can be used, and lists every action.

use freehold_access::{Group, Policies, actions};

const PAGE: &str = include_str!("../../../../docs/access.md");

/// Returns the blocks of Cedar in the page.
fn blocks() -> Vec<&'static str> {
    PAGE.split("```cedar\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect()
}

#[test]
fn every_policy_of_the_page_is_valid() {
    let blocks = blocks();

    assert!(blocks.len() > 5, "found only {} blocks", blocks.len());
    for block in blocks {
        assert_eq!(Policies::parse(block).err(), None, "{block}");
    }
}

#[test]
fn the_three_people_of_the_page_have_the_policies_of_a_new_tenant() {
    let (_, people) = PAGE.split_once("\n## Three people\n").unwrap();
    let people = people.split("\n## ").next().unwrap();

    let policies: Vec<&str> = blocks().into_iter().filter(|block| people.contains(*block)).collect();

    assert_eq!(policies.len(), 3);
    for block in policies {
        for policy in block.trim().split("\n\n") {
            assert!(Policies::ready_made().contains(policy), "not in ready_made.cedar:\n{policy}");
        }
    }
}

#[test]
fn the_page_lists_every_action_and_every_group() {
    let missing: Vec<&str> =
        actions().iter().map(|action| action.name).filter(|name| !PAGE.contains(&format!("`{name}`"))).collect();

    assert!(missing.is_empty(), "docs/access.md does not list {missing:?}");
    for group in Group::READY_MADE {
        assert!(PAGE.contains(&format!("| `{group}` |")), "docs/access.md does not list group {group}");
    }
}
