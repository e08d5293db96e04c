//! A request of IAM's Query API, with its parameters in their order.

use std::collections::BTreeSet;

use url::form_urlencoded;

use crate::refusal::Refusal;

/// The version of the API. IAM has only this version.
const VERSION: &str = "2010-05-08";

/// The parameters of writes whose values are lists. Every other parameter has one value, and no dot in its name.
const LISTS: [&str; 4] = ["ClientIDList", "TagKeys", "Tags", "ThumbprintList"];

/// The action and the parameters of one request. A name occurs only once, so that every reader understands the same
/// request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Query {
    action: String,
    parameters: Vec<(String, String)>,
}

impl Query {
    /// Returns a request that the runner makes.
    pub(crate) fn new(action: &str, parameters: &[(&str, &str)]) -> Self {
        let parameters = parameters.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Self { action: action.to_owned(), parameters }
    }

    /// Parses the form in the body of a request.
    pub(crate) fn parse(body: &[u8]) -> Result<Self, Refusal> {
        let mut query = Self { action: String::new(), parameters: Vec::new() };
        let mut names = BTreeSet::new();
        let mut version = String::new();
        for (name, value) in form_urlencoded::parse(body) {
            if !names.insert(name.to_string()) {
                return Err(Refusal::Malformed(format!("parameter `{name}` is given twice; give it once")));
            }
            match name.as_ref() {
                "Action" => query.action = value.into_owned(),
                "Version" => version = value.into_owned(),
                _ => query.parameters.push((name.into_owned(), value.into_owned())),
            }
        }
        let is_name = !query.action.is_empty() && query.action.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if !is_name || version != VERSION {
            let reason = format!("the form must have one `Action`, and `Version={VERSION}`");
            return Err(Refusal::Malformed(reason));
        }
        Ok(query)
    }

    /// Returns the body to send.
    pub(crate) fn body(&self) -> String {
        let mut form = form_urlencoded::Serializer::new(String::new());
        form.append_pair("Action", &self.action).append_pair("Version", VERSION);
        form.extend_pairs(&self.parameters).finish()
    }

    pub(crate) fn action(&self) -> &str {
        &self.action
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.parameters.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Returns the value of a parameter that the request must have.
    pub(crate) fn required(&self, name: &str) -> Result<&str, Refusal> {
        let missing = || Refusal::Malformed(format!("`{}` needs the parameter `{name}`", self.action));
        self.get(name).filter(|value| !value.is_empty()).ok_or_else(missing)
    }

    /// Sets the value of a parameter.
    pub(crate) fn set(&mut self, name: &str, value: impl Into<String>) {
        let value = value.into();
        match self.parameters.iter_mut().find(|(known, _)| known == name) {
            Some((_, old)) => *old = value,
            None => self.parameters.push((name.to_owned(), value)),
        }
    }

    /// Returns the names of all parameters. For an element of a list, this is the name of the list.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.parameters.iter().map(|(name, _)| name.split_once('.').map_or(name.as_str(), |(list, _)| list))
    }

    /// Returns a parameter of a write whose name IAM could read differently: an element of something that is not a
    /// list, a list that is written as one value, or an element with another number than IAM's own clients write.
    pub(crate) fn unclear(&self) -> Option<&str> {
        let is_clear = |name: &str, value: &str| match *name.split('.').collect::<Vec<_>>().as_slice() {
            // Clients write an empty list as an empty value.
            [name] => value.is_empty() || !LISTS.contains(&name),
            ["Tags", "member", number, "Key" | "Value"] => is_number(number),
            [list, "member", number] => list != "Tags" && LISTS.contains(&list) && is_number(number),
            _ => false,
        };
        self.parameters.iter().find(|(name, value)| !is_clear(name, value)).map(|(name, _)| name.as_str())
    }

    /// Returns the tags in the request, as (key, value).
    pub(crate) fn tags(&self) -> Result<Vec<(String, String)>, Refusal> {
        let mut tags = Vec::new();
        for (name, key) in &self.parameters {
            let Some(rest) = name.strip_prefix("Tags.") else { continue };
            let number = rest.strip_prefix("member.").and_then(|rest| rest.split_once('.'));
            match number {
                Some((number, "Key")) if is_number(number) => {
                    let value = self.get(&format!("Tags.member.{number}.Value")).unwrap_or_default();
                    tags.push((key.clone(), value.to_owned()));
                }
                Some((number, "Value")) if is_number(number) => {}
                Some(_) | None => return Err(Refusal::Malformed(format!("parameter `{name}` is not part of a tag"))),
            }
        }
        Ok(tags)
    }

    /// Replaces the tags of the request by `tags`.
    pub(crate) fn set_tags(&mut self, tags: &[(String, String)]) {
        self.parameters.retain(|(name, _)| name != "Tags" && !name.starts_with("Tags."));
        for (number, (key, value)) in (1..).zip(tags) {
            self.parameters.push((format!("Tags.member.{number}.Key"), key.clone()));
            self.parameters.push((format!("Tags.member.{number}.Value"), value.clone()));
        }
    }

    /// Returns the values of the list `name`.
    pub(crate) fn list<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let of_list = move |known: &str| known.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'));
        self.parameters.iter().filter(move |(known, _)| of_list(known)).map(|(_, value)| value.as_str())
    }
}

/// Returns whether a text is the number of an element: `1` and `10`, but not `01`, which may be the same element.
fn is_number(text: &str) -> bool {
    !text.is_empty() && !text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_request_is_sent_as_it_was_read(values in proptest::collection::btree_map("[A-Z][a-zA-Z.0-9]{1,20}", ".*", 0..8)) {
            prop_assume!(!values.contains_key("Action") && !values.contains_key("Version"));
            let parameters: Vec<(&str, &str)> = values.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            let query = Query::new("GetRole", &parameters);

            prop_assert_eq!(Query::parse(query.body().as_bytes()).unwrap(), query);
        }

        #[test]
        fn no_body_makes_the_reader_panic(body in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Query::parse(&body);
        }
    }

    #[test]
    fn a_parameter_that_is_given_twice_is_refused() {
        let refused = Query::parse(b"Action=GetRole&Version=2010-05-08&RoleName=a&RoleName=b").unwrap_err();

        assert!(refused.to_string().contains("`RoleName` is given twice"), "{refused}");
    }

    #[test]
    fn another_version_or_no_action_is_refused() {
        for body in
            ["Action=GetRole&Version=2011-06-15", "Version=2010-05-08", "Action=Get-Role&Version=2010-05-08", ""]
        {
            assert!(Query::parse(body.as_bytes()).is_err(), "{body}");
        }
    }

    #[test]
    fn tags_are_replaced_and_numbered_anew() {
        let mut query = Query::new("TagRole", &[("Tags.member.7.Value", "core"), ("Tags.member.7.Key", "team")]);
        let mut tags = query.tags().unwrap();
        tags.push(("freehold:install".to_owned(), "globex".to_owned()));

        query.set_tags(&tags);

        assert_eq!(query.get("Tags.member.1.Key"), Some("team"));
        assert_eq!(query.get("Tags.member.2.Value"), Some("globex"));
        assert_eq!(query.get("Tags.member.7.Key"), None);
    }

    #[test]
    fn a_tag_that_cannot_be_read_is_refused() {
        for name in ["Tags.1.Key", "Tags.member.01.Key", "Tags.member.1.Key.x", "Tags.member..Key", "Tags.member.1"] {
            assert!(Query::new("TagRole", &[(name, "freehold:install")]).tags().is_err(), "{name}");
        }
    }

    #[test]
    fn a_parameter_that_iam_could_read_in_two_ways_is_found() {
        let clear = [
            ("RoleName", "a"),
            ("Tags", ""),
            ("TagKeys.member.1", "team"),
            ("Tags.member.10.Value", "x"),
            ("ThumbprintList.member.1", "x"),
        ];
        assert_eq!(Query::new("TagRole", &clear).unclear(), None);
        for name in [
            "PermissionsBoundary.member.1",
            "PolicyDocument.1",
            "RoleName.",
            "TagKeys.1",
            "TagKeys.member.01",
            "TagKeys",
            "Tags.member.1",
            "Tags.member.1.key",
            "ThumbprintList.entry.1",
        ] {
            assert_eq!(Query::new("TagRole", &[("RoleName", "a"), (name, "x")]).unclear(), Some(name));
        }
    }
}
