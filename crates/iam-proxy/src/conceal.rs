//! Changes IAM's responses so that a job sees the resources as it requested them: without the install's boundary and
//! tags, and with the paths of the job's requests.

use std::collections::BTreeSet;

use crate::answer::Answer;
use crate::install::{Install, SHOWN_BOUNDARY};
use crate::xml::Element;

/// Returns the response in the form for the job. An error, or a response that is not XML, is returned unchanged.
pub(crate) fn conceal(answer: Answer, install: &Install) -> Answer {
    if !answer.is_success() {
        return answer;
    }
    let Some(mut tree) = answer.tree() else { return answer };
    in_element(&mut tree, install);
    match tree.document() {
        Some(body) => Answer { body: body.into(), ..answer },
        None => answer,
    }
}

fn in_element(element: &mut Element, install: &Install) {
    match element.value("Path") {
        Some(real) => {
            if let Some(path) = install.shown_path(&name(element), &real) {
                in_own(element, &path, install);
            }
        }
        // The element is a list of tags or an identity provider, which have no path.
        None => without_tags(element, install),
    }
    element.children_mut().for_each(|child| in_element(child, install));
}

/// Changes an element that describes a resource of the install.
fn in_own(element: &mut Element, shown_path: &str, install: &Install) {
    if let Some(path) = element.child_mut("Path") {
        path.set_text(shown_path);
    }
    if !has_tag(element, SHOWN_BOUNDARY) {
        let own = |boundary: &Element| boundary.value("PermissionsBoundaryArn").as_ref() == Some(&install.boundary);
        element.retain(|child| !(child.is("PermissionsBoundary") && own(child)));
    }
    without_tags(element, install);
    // IAM's response has no list of tags for a resource without tags, so an empty list is removed.
    element.retain(|child| !(child.is("Tags") && child.children().next().is_none()));
}

/// Returns the name of a role, a policy or an instance profile.
pub(crate) fn name(resource: &Element) -> String {
    let names = ["RoleName", "PolicyName", "InstanceProfileName"];
    names.iter().find_map(|name| resource.value(name)).unwrap_or_default()
}

/// Returns whether a resource has a tag with this key.
pub(crate) fn has_tag(resource: &Element, key: &str) -> bool {
    tags(resource).any(|(own, _)| own == key)
}

/// Returns the tags of a resource, as (key, value).
pub(crate) fn tags(resource: &Element) -> impl Iterator<Item = (String, String)> {
    let members = resource.child("Tags").into_iter().flat_map(Element::children);
    members.filter_map(|tag| Some((tag.value("Key")?, tag.value("Value").unwrap_or_default())))
}

fn without_tags(element: &mut Element, install: &Install) {
    let keys: BTreeSet<String> = tags(element).map(|(key, _)| key).collect();
    if let Some(tags) = element.child_mut("Tags") {
        let text = |tag: &Element, name: &str| tag.value(name).unwrap_or_default();
        tags.retain(|tag| !install.hides_tag(&text(tag, "Key"), &text(tag, "Value"), &keys));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::install::sample;

    fn read(body: &str) -> String {
        let answer = conceal(Answer { status: 200, body: body.to_owned().into() }, &sample());
        String::from_utf8_lossy(&answer.body).replace("<?xml version=\"1.0\" encoding=\"UTF-8\"?>", "")
    }

    fn tag(key: &str, value: &str) -> String {
        format!("<member><Key>{key}</Key><Value>{value}</Value></member>")
    }

    fn boundary(arn: &str) -> String {
        format!(
            "<PermissionsBoundary><PermissionsBoundaryType>Policy</PermissionsBoundaryType>\
             <PermissionsBoundaryArn>{arn}</PermissionsBoundaryArn></PermissionsBoundary>"
        )
    }

    fn role(path: &str, rest: &str) -> String {
        format!(
            "<GetRoleResponse><Role><Path>{path}</Path><Arn>arn:aws:iam::222222222222:role{path}a</Arn>{rest}</Role></GetRoleResponse>"
        )
    }

    const OWN: &str = "/freehold/acme--globex/";

    #[test]
    fn a_role_of_the_install_shows_what_was_asked_for_and_its_true_name() {
        let own = [tag("freehold:install", "globex"), tag("team", "core"), tag("freehold:tenant", "acme")].concat();

        let xml = read(&role(OWN, &format!("{}<Tags>{own}</Tags>", boundary(&sample().boundary))));

        let expected = format!(
            "<GetRoleResponse><Role><Path>/</Path><Arn>arn:aws:iam::222222222222:role{OWN}a</Arn><Tags>{}</Tags></Role></GetRoleResponse>",
            tag("team", "core")
        );
        assert_eq!(xml, expected);
    }

    #[test]
    fn a_role_whose_only_tags_are_ours_has_no_list_of_tags() {
        let xml = read(&role(&format!("{OWN}ci/"), &format!("<Tags>{}</Tags>", tag("freehold:install", "globex"))));

        assert!(xml.contains("<Path>/ci/</Path>") && !xml.contains("Tags"), "{xml}");
    }

    #[test]
    fn a_tag_of_ours_that_a_job_asked_for_is_shown() {
        let ours = [tag("freehold:install", "globex"), tag("freehold:tenant", "acme")].concat();
        let note = tag("freehold:asked:freehold:install", "true");

        let xml = read(&role(OWN, &format!("<Tags>{ours}{note}</Tags>")));
        let list = read(&format!("<R><Tags>{note}{ours}</Tags></R>"));

        let shown = format!("<Tags>{}</Tags>", tag("freehold:install", "globex"));
        assert!(xml.contains(&shown), "{xml}");
        assert_eq!(list, format!("<R>{shown}</R>"));
    }

    #[test]
    fn an_owner_is_hidden_when_the_runner_added_it_and_no_job_asked_for_it() {
        let owner = tag("freehold:owner", "acme--globex");
        let added = tag("freehold:added:freehold:owner", "true");
        let asked = tag("freehold:asked:freehold:owner", "true");
        let others = tag("freehold:owner", "initech--globex");

        for (tags, shown) in [
            ([owner.clone(), added.clone()].concat(), ""),
            ([owner.clone(), added.clone(), asked].concat(), owner.as_str()),
            (owner.clone(), owner.as_str()),
            ([others.clone(), added].concat(), others.as_str()),
        ] {
            assert_eq!(read(&format!("<R><Tags>{tags}</Tags></R>")), format!("<R><Tags>{shown}</Tags></R>"));
        }
    }

    #[test]
    fn a_boundary_that_the_module_asked_for_is_shown() {
        let xml =
            read(&role(OWN, &format!("{}<Tags>{}</Tags>", boundary(&sample().boundary), tag(SHOWN_BOUNDARY, "true"))));

        assert!(xml.contains("PermissionsBoundaryArn") && !xml.contains(SHOWN_BOUNDARY), "{xml}");
    }

    #[test]
    fn a_name_with_the_installs_prefix_is_its_own_under_any_path() {
        let named = "<Role><RoleName>acme--globex--a</RoleName><Path>/team/</Path>";

        let xml = read(&format!("{named}{}</Role>", boundary(&sample().boundary)));

        assert_eq!(xml, format!("{named}</Role>"));
    }

    #[test]
    fn what_is_not_the_installs_is_shown_as_it_is() {
        let others =
            role("/", &format!("{}<Tags>{}</Tags>", boundary(&sample().boundary), tag("freehold:install", "globex")));

        assert_eq!(read(&others), others);
    }

    #[test]
    fn a_list_of_tags_stays_a_list_when_it_gets_empty() {
        let list = format!("<R><Tags>{}</Tags><IsTruncated>true</IsTruncated></R>", tag("freehold:tenant", "acme"));

        assert_eq!(read(&list), "<R><Tags></Tags><IsTruncated>true</IsTruncated></R>");
    }

    #[test]
    fn an_error_is_passed_on_byte_by_byte() {
        let error = Answer { status: 409, body: "<ErrorResponse/>\n<!-- -->".into() };

        assert_eq!(conceal(error.clone(), &sample()), error);
    }

    proptest! {
        #[test]
        fn nothing_of_ours_is_read_and_nothing_else_is_lost(own in 0..3_usize, others in proptest::collection::btree_map("[a-z]{1,8}", "[a-z]{0,8}", 0..4)) {
            let ours: String = sample().tags.iter().take(own).map(|(key, value)| tag(key, value)).collect();
            let theirs: String = others.iter().map(|(key, value)| tag(key, value)).collect();

            let xml = read(&role(OWN, &format!("<Tags>{ours}{theirs}</Tags>{}", boundary(&sample().boundary))));

            let kept = if others.is_empty() { String::new() } else { format!("<Tags>{theirs}</Tags>") };
            let after = xml.split_once("</Arn>").unwrap().1.to_owned();
            prop_assert_eq!(after, format!("{kept}</Role></GetRoleResponse>"));
        }
    }
}
