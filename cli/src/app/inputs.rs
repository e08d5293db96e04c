//! `freehold app inputs`: shows the inputs of an app, or the JSON Schema of their values.

use clap::Args;
use freehold_client::calls;
use freehold_protocol::AppName;
use freehold_protocol::api::InputsSchema;
use serde_json::Value;

use super::VersionName;
use super::version::or_latest;
use crate::context::Context;
use crate::error::Result;
use crate::job::plain;
use crate::output::{Output, Table};

/// Show the inputs of an app: who sets each, its type and its default.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  freehold app inputs my-app
  freehold app inputs my-app --json > inputs.schema.json    the JSON Schema of the values")]
pub(crate) struct Inputs {
    /// Name of the app.
    app: AppName,
    /// The version: its number, its digest or the beginning of its digest; the latest version when absent.
    #[arg(long, value_name = "VERSION")]
    version: Option<VersionName>,
}

impl Inputs {
    pub(super) async fn run(&self, context: &Context) -> Result<()> {
        let api = context.api().await?;
        let version = or_latest(&api, &self.app, self.version.as_ref()).await?;
        let answer: InputsSchema = api.send(calls::show_inputs_schema(&self.app, &version)).await?;
        context.out.show(&answer.schema, |schema| render(schema, context.out))
    }
}

fn render(schema: &Value, out: Output) -> String {
    let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let mut table = Table::new(&["INPUT", "TYPE", "ANSWERED BY", "DEFAULT", "DESCRIPTION"]);
    for (name, one) in schema["properties"].as_object().into_iter().flatten() {
        let text = |key: &str| one[key].as_str().unwrap_or_default().to_owned();
        let default = match one.get("default") {
            Some(default) => plain(default),
            None if required.contains(&name.as_str()) => "(required)".to_owned(),
            None => String::new(),
        };
        let secret = if one["x-freehold-sensitive"] == true { ", sensitive" } else { "" };
        let internal = if one["x-freehold-internal"] == true { ", internal" } else { "" };
        let kind = format!("{}{secret}{internal}", text("x-freehold-type"));
        table.row([name.clone(), kind, text("x-freehold-source"), default, text("description").replace('\n', " ")]);
    }
    out.table(&table)
}

#[cfg(test)]
mod tests {
    use freehold_protocol::app_version::{Input, inputs_schema};
    use serde_json::json;

    use super::*;

    #[test]
    fn a_table_tells_who_answers_what() {
        let inputs: Vec<Input> = serde_json::from_value(json!([
            { "name": "days", "type": "number", "default": "7", "description": "how long logs\nare kept" },
            { "name": "domain", "type": "string", "required": true, "customer": true },
            { "name": "token", "type": "string", "sensitive": true, "customer": true, "default": "hunter2" },
            { "name": "zone", "type": "string", "internal": true },
        ]))
        .unwrap();

        let text = render(&inputs_schema(&inputs, &[]), Output::of_process(false));

        let lines: Vec<String> =
            text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        assert_eq!(
            lines,
            [
                "INPUT TYPE ANSWERED BY DEFAULT DESCRIPTION",
                "days number vendor 7 how long logs are kept",
                "domain string customer (required)",
                "token string, sensitive customer",
                "zone string, internal vendor",
            ]
        );
    }
}
