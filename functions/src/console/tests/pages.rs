//! Every page as the examples make it: usable without a mouse, a colour or a script, and small.

use std::collections::BTreeSet;

use serde_json::Value;

use super::document::{Element, dangers, elements};
use super::examples::{PAGES, all, caller, examples, made};

const LARGEST_PAGE: usize = 50_000;
/// The largest page with full lists, of which the API returns 50 items at once.
const LARGEST_FULL_PAGE: usize = 100_000;
const ITEMS: usize = 50;

fn count(elements: &[Element], name: &str) -> usize {
    elements.iter().filter(|element| element.name == name && !element.around.contains(&"svg".to_owned())).count()
}

#[test]
fn every_page_has_a_title_one_heading_and_its_landmarks() {
    for (name, page) in all() {
        let elements = elements(&page);

        for (element, wanted) in [("title", 1), ("h1", 1), ("main", 1), ("header", 1), ("html", 1)] {
            assert_eq!(count(&elements, element), wanted, "`{element}` of page `{name}`");
        }
        assert!(!page.contains("<title> ·") && !page.contains("<h1></h1>"), "page `{name}` has an empty title");
        assert!(page.starts_with("<!DOCTYPE html><html lang=\"en\">"), "page `{name}`");
    }
}

#[test]
fn every_field_has_a_label_and_every_id_is_there_once() {
    for (name, page) in all() {
        let elements = elements(&page);
        let labels: BTreeSet<&str> = elements.iter().filter_map(|element| element.get("for")).collect();
        let ids: Vec<&str> = elements.iter().filter_map(|element| element.get("id")).collect();

        for field in &elements {
            let is_field = ["input", "select", "textarea"].contains(&field.name.as_str());
            if is_field && field.get("type") != Some("hidden") {
                let is_inside = field.around.contains(&"label".to_owned());
                let has_label = field.get("id").is_some_and(|id| labels.contains(id));
                assert!(is_inside || has_label, "{field:?} of page `{name}` has no label");
            }
        }
        assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len(), "ids of page `{name}`: {ids:?}");
    }
}

#[test]
fn no_page_has_inline_code_or_an_address_of_another_host() {
    for (name, page) in all() {
        assert_eq!(dangers(&elements(&page)), Vec::<String>::new(), "page `{name}`");
        assert!(page.len() < LARGEST_PAGE, "page `{name}` has {} bytes", page.len());
    }
}

/// Repeats the items of each list of an answer, up to a full page.
fn filled(mut answer: Value) -> Value {
    for name in ["items", "components"] {
        if let Some(items) = answer.get_mut(name).and_then(Value::as_array_mut) {
            *items = items.iter().cycle().take(if items.is_empty() { 0 } else { ITEMS }).cloned().collect();
        }
    }
    answer
}

#[test]
fn a_page_with_full_lists_stays_small() {
    let mut full = 0;
    for (name, names, make) in PAGES {
        let of: Vec<Value> = examples(names).into_iter().map(filled).collect();
        let page = made(make, &caller(), &of).unwrap();

        assert!(page.len() < LARGEST_FULL_PAGE, "page `{name}` has {} bytes", page.len());
        full += usize::from(page.matches("<tr>").count() > ITEMS);
    }
    assert!(full > 5, "only {full} pages have a full list");
}

#[test]
fn every_form_is_sent_once_and_belongs_to_the_session() {
    let mut forms = 0;
    for (name, page) in all() {
        let mut keys = BTreeSet::new();
        for form in page.split("<form ").skip(1) {
            forms += 1;
            let form = form.split("</form>").next().unwrap();

            assert!(form.starts_with("method=\"post\" action=\"/"), "page `{name}`: {form}");
            assert!(form.contains("name=\"csrf\" value=\"form-token\""), "page `{name}`: {form}");
            let key = form.split("name=\"key\" value=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
            assert!(key.starts_with("page-1-") && keys.insert(key), "page `{name}`: {key}");
        }
    }
    assert!(forms > 25, "only {forms} forms were found");
}

#[test]
fn what_removes_something_asks_for_a_confirmation() {
    for (name, act) in [
        ("member", "Remove"),
        ("job with a plan", "Reject"),
        ("install", "Deploy a release"),
        ("policies", "Replace"),
        ("account", "Sign out everywhere"),
    ] {
        let page = all().into_iter().find(|(other, _)| *other == name).unwrap().1;

        assert!(page.contains(&format!("<summary>{act}…</summary>")), "page `{name}`: {page}");
    }
}

#[test]
fn only_a_plan_that_waits_for_the_vendor_can_be_approved() {
    let make = PAGES.iter().find(|(name, ..)| *name == "job with a plan").unwrap().2;
    let page = |sides: &[&str]| {
        let mut of = examples(&["ApproveJob", "LogPage"]);
        of[0]["plan"]["waits_for"] = Value::from(sides.to_vec());
        made(make, &caller(), &of).unwrap()
    };
    let has_form = |page: &str| page.contains("/approve\"");

    assert!(has_form(&page(&["vendor"])) && has_form(&page(&["vendor", "customer"])));
    assert!(!has_form(&page(&["customer"])) && !has_form(&page(&[])));
    let notice = "The plan is approved.";
    assert!(page(&[]).contains(notice) && !page(&["customer"]).contains(notice));
}
