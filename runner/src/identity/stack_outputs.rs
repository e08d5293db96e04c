//! The outputs of the customer's stack that an app can use: as values in templates, and as variables of the sandbox's
//! module. They are read here, in the customer's account; the vendor need not know them.

use std::collections::BTreeMap;

use freehold_protocol::names;
use freehold_protocol::order::{Mode, Order};
use serde_json::{Value, json};

use crate::config::{Config, Role};

/// The modes whose role ARNs are outputs, each with the first part of the output's name.
const MODES: [(Mode, &str); 3] =
    [(Mode::Provision, "provision"), (Mode::Maintenance, "maintenance"), (Mode::Deprovision, "deprovision")];

/// Adds the outputs of the stack to `.nuon.install_stack.outputs` of `tree`.
pub fn add(tree: &mut Value, config: &Config) {
    if config.role != Role::Install {
        return;
    }
    let Some(nuon) = tree.get_mut("nuon").and_then(Value::as_object_mut) else { return };
    let stack = nuon.entry("install_stack").or_insert_with(|| json!({}));
    let outputs = stack.as_object_mut().map(|stack| stack.entry("outputs").or_insert_with(|| json!({})));
    if let Some(outputs) = outputs.and_then(Value::as_object_mut) {
        outputs.extend(plain(config).map(|(key, text)| (key, Value::from(text))));
        outputs.insert("break_glass_role_arns".to_owned(), named_roles(config, true));
        outputs.insert("custom_role_arns".to_owned(), named_roles(config, false));
    }
}

/// Returns the outputs that are texts: the network of the stack, and the ARNs of the modes' roles.
fn plain(config: &Config) -> impl Iterator<Item = (String, String)> {
    let network = config.outputs.iter().map(|(key, text)| (key.clone(), text.clone()));
    let role = |(mode, name)| Some((format!("{name}_iam_role_arn"), config.modes.role(mode)?.to_owned()));
    network.chain(MODES.into_iter().filter_map(role))
}

/// Returns the ARNs of the roles that the app itself defines, by role key.
fn named_roles(config: &Config, break_glass: bool) -> Value {
    let of_kind = config.roles.iter().filter(|(key, _)| key.is_break_glass() == break_glass);
    Value::Object(of_kind.map(|(key, arn)| (key.to_string(), Value::from(arn.as_str()))).collect())
}

/// Returns variables for the sandbox's module, as environment variables of Terraform (`TF_VAR_...`). Terraform ignores
/// those that the module does not declare, and prefers values that the app config sets ("Variable Definition
/// Precedence").
pub fn sandbox_variables(order: &Order, config: &Config) -> BTreeMap<String, String> {
    let (tenant, install) = (order.tenant.as_str(), order.install.as_str());
    let app = order.context.pointer("/nuon/app/name").and_then(Value::as_str).unwrap_or_default();
    let tags = json!({ names::TENANT_TAG: tenant, names::APP_TAG: app, names::INSTALL_TAG: install });
    let fixed = [
        ("nuon_id", install.to_owned()),
        ("region", config.region.clone()),
        ("tags", tags.to_string()),
        // Freehold does not provide a public domain. `.internal` is for private names, and `.invalid` never resolves
        // (RFC 6761).
        ("internal_root_domain", format!("{install}.{tenant}.internal")),
        ("public_root_domain", format!("{install}.{tenant}.invalid")),
    ];
    let fixed = fixed.map(|(name, text)| (name.to_owned(), text));
    fixed.into_iter().chain(plain(config)).map(|(name, text)| (format!("TF_VAR_{name}"), text)).collect()
}

/// Returns what to do when a template reads `output` and the stack lacks this output, or a part of it that the template
/// reads.
pub fn way_out(output: &str) -> String {
    let is_of_mode = MODES.iter().any(|(_, name)| output.strip_suffix("_iam_role_arn") == Some(*name));
    match output {
        "vpc_id" | "runner_subnet" | "public_subnets" | "private_subnets" => format!(
            "the install stack has no `{output}`: launch its current template, which makes a network or takes yours \
             (`VpcId`, `PublicSubnetIds`, `PrivateSubnetIds`), and start the runner with its outputs"
        ),
        "break_glass_role_arns" | "custom_role_arns" => format!(
            "`{output}` is a map of this runner's roles by name: correct the name, or launch the current template of the \
             install stack and start the runner with its outputs"
        ),
        _ if is_of_mode => {
            "this runner's config has no role for that mode: launch the current template of the install \
                            stack, and start the runner with its outputs"
                .to_owned()
        }
        _ => format!(
            "no install stack has an output `{output}`; make it an input of the app, or give another value with the \
             template function `default`"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::order;

    fn config() -> Config {
        let text = r#"
tenant = "acme"
install = "globex-prod"
region = "eu-west-1"
orders_queue_url = "https://sqs.eu-west-1.amazonaws.com/111111111111/fh-acme--globex-prod.fifo"
reports_queue_url = "https://sqs.eu-west-1.amazonaws.com/111111111111/fh-acme--reports"
tenant_key = "11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="
state_dir = "/var/lib/freehold"
[modes]
provision = "arn:aws:iam::222222222222:role/fh-acme--globex-prod--provision"
[roles]
break-glass = "arn:aws:iam::222222222222:role/fh-acme--globex-prod--break-glass"
[outputs]
vpc_id = "vpc-0a1b"
"#;
        Config::parse(text, "runner.toml", Role::Install).unwrap()
    }

    #[test]
    fn templates_read_the_network_and_the_roles_of_the_stack_beside_what_the_vendor_knows() {
        let mut tree = json!({ "nuon": { "install_stack": { "outputs": { "region": "eu-west-1" } } } });

        add(&mut tree, &config());

        assert_eq!(
            tree["nuon"]["install_stack"]["outputs"],
            json!({
                "region": "eu-west-1",
                "vpc_id": "vpc-0a1b",
                "provision_iam_role_arn": "arn:aws:iam::222222222222:role/fh-acme--globex-prod--provision",
                "break_glass_role_arns": {
                    "break-glass": "arn:aws:iam::222222222222:role/fh-acme--globex-prod--break-glass",
                },
                "custom_role_arns": {},
            })
        );
    }

    #[test]
    fn a_sandbox_gets_what_the_runner_knows_of_its_install() {
        let order = Order { context: json!({ "nuon": { "app": { "name": "shop" } } }), ..order(1, 7) };

        let variables = sandbox_variables(&order, &config());

        let names: Vec<_> = variables.keys().map(|name| name.trim_start_matches("TF_VAR_")).collect();
        assert_eq!(
            names,
            [
                "internal_root_domain",
                "nuon_id",
                "provision_iam_role_arn",
                "public_root_domain",
                "region",
                "tags",
                "vpc_id"
            ]
        );
        assert_eq!(
            variables["TF_VAR_tags"],
            r#"{"freehold:tenant":"acme","freehold:app":"shop","freehold:install":"globex-prod"}"#
        );
        assert_eq!(variables["TF_VAR_internal_root_domain"], "globex-prod.acme.internal");
    }

    #[test]
    fn the_way_out_fits_what_is_missing() {
        for (output, start) in [
            ("vpc_id", "the install stack has no `vpc_id`: launch"),
            ("custom_role_arns", "`custom_role_arns` is a map of this runner's roles by name: "),
            ("break_glass_role_arns", "`break_glass_role_arns` is a map of this runner's roles by name: "),
            ("maintenance_iam_role_arn", "this runner's config has no role for that mode: launch"),
            ("zone", "no install stack has an output `zone`; make it an input"),
            ("other_iam_role_arn", "no install stack has an output `other_iam_role_arn`; "),
        ] {
            assert!(way_out(output).starts_with(start), "{}", way_out(output));
        }
    }
}
