//! The title and the description that an app config gives the install stack: texts for people, which are not in the
//! template.

use std::collections::BTreeMap;

use freehold_domain::inputs::known_inputs;
use freehold_domain::install::Install;
use freehold_protocol::TenantName;
use freehold_protocol::app_version::AppVersion;
use freehold_protocol::sealing::SealedValue;
use freehold_template::Limits;
use serde_json::Value;

use crate::stack::escape::{DESCRIPTION_CHARS, TITLE_CHARS, one_line};
use crate::stack::nuon_tree;

/// Returns the title and the description of the install's stack, each on one line; empty for an app that gives none. A
/// text is also empty when it cannot be rendered because it reads an answer that not everybody may know, or that the
/// customer gives only when they launch the stack.
pub(crate) fn title_and_description(tenant: &TenantName, install: &Install, version: &AppVersion) -> (String, String) {
    let Some(stack) = &version.stack else { return (String::new(), String::new()) };
    let tree = nuon_tree::tree(tenant, install, version, &open_answers(version, install), &BTreeMap::new());
    let rendered = |text: &str, most: usize| {
        let text = freehold_template::render(text, &tree, &Limits::default()).unwrap_or_default();
        one_line(&text, most)
    };
    (rendered(&stack.name, TITLE_CHARS), rendered(&stack.description, DESCRIPTION_CHARS))
}

/// Returns the vendor's values and the defaults of the inputs that are not sensitive and that the customer does not
/// answer.
fn open_answers(version: &AppVersion, install: &Install) -> BTreeMap<String, Value> {
    let given = known_inputs(version, &install.inputs);
    let open = version.inputs.iter().filter(|input| !input.customer && !input.sensitive);
    let answers = open.filter_map(|input| {
        let value = given.get(&input.name).or(input.default.as_ref())?;
        SealedValue::of(value).is_none().then(|| (input.name.clone(), value.clone()))
    });
    answers.collect()
}

#[cfg(test)]
mod tests {
    use freehold_domain::install::Serves;
    use freehold_protocol::Timestamp;
    use serde_json::json;

    use super::*;

    /// Returns the title and the description of a stack whose config has these texts.
    fn shown(name: &str, description: &str) -> (String, String) {
        let version: AppVersion = serde_json::from_value(json!({
            "format": 1,
            "app": "shop",
            "inputs": [
                { "name": "plan", "type": "string", "default": "small" },
                { "name": "domain", "type": "string", "customer": true, "default": "example.com" },
                { "name": "token", "type": "string", "sensitive": true, "default": "hunter2" },
            ],
            "stack": { "platform": "aws-cloudformation", "name": name, "description": description },
        }))
        .unwrap();
        let serves = Serves::App { app: "shop".parse().unwrap(), version: None };
        let (id, account) = ("globex".parse().unwrap(), "222222222222".parse().unwrap());
        let install = Install::new(id, serves, account, "eu-west-1".to_owned(), Timestamp::default());
        title_and_description(&"acme".parse().unwrap(), &install, &version)
    }

    #[test]
    fn the_texts_are_rendered_for_the_install() {
        let texts = shown("shop-{{.nuon.install.id}}", "The shop,\n size {{ .nuon.inputs.inputs.plan }}");

        assert_eq!(texts, ("shop-globex".to_owned(), "The shop, size small".to_owned()));
    }

    #[test]
    fn a_text_that_reads_what_is_not_open_is_left_out() {
        for input in ["domain", "token"] {
            let text = format!("{{{{ .nuon.inputs.inputs.{input} }}}}");

            assert_eq!(shown(&text, "The shop"), (String::new(), "The shop".to_owned()), "{input}");
        }
    }

    #[test]
    fn an_app_without_these_texts_has_none() {
        let version = AppVersion::empty("shop".parse().unwrap());
        let serves = Serves::App { app: version.app.clone(), version: None };
        let (id, account) = ("globex".parse().unwrap(), "222222222222".parse().unwrap());
        let install = Install::new(id, serves, account, "eu-west-1".to_owned(), Timestamp::default());

        let texts = title_and_description(&"acme".parse().unwrap(), &install, &version);

        assert_eq!(texts, (String::new(), String::new()));
    }
}
