//! `freehold install inputs`: shows and changes the inputs of an install.

use freehold_client::calls;
use freehold_protocol::api::{InputView, InstallInputs, SetInputsRequest};

use super::Inputs;
use crate::context::Context;
use crate::error::Result;
use crate::inputs::by_name;
use crate::inputs::sealing::seal_inputs;
use crate::job::plain;
use crate::output::{Output, Table};

impl Inputs {
    pub(super) async fn run(&self, context: &Context) -> Result<()> {
        let api = context.api().await?;
        let answer: InstallInputs = if self.inputs.is_empty() {
            api.send(calls::show_inputs(&self.install)).await?
        } else {
            let inputs = seal_inputs(&api, &self.install, by_name(&self.inputs)?, None).await?;
            api.send(calls::set_inputs(&self.install, &SetInputsRequest { inputs })).await?
        };
        let changed = !self.inputs.is_empty();
        context.out.show(&answer, |answer| {
            let text = render(&answer.inputs, context.out);
            let install = &self.install;
            if changed { format!("{text}\n\nnext: freehold deploy {install}") } else { text }
        })
    }
}

fn render(inputs: &[InputView], out: Output) -> String {
    let mut table = Table::new(&["INPUT", "VALUE", "FROM", "TYPE", "PARAMETER"]);
    for one in inputs {
        table.row([
            one.name.clone(),
            one.value.as_ref().map(plain).unwrap_or_default(),
            one.from.describe().to_owned(),
            one.kind.as_str().to_owned(),
            one.parameter.clone().unwrap_or_default(),
        ]);
    }
    let mut text = out.table(&table);
    for problem in inputs.iter().filter_map(|one| one.problem.as_ref()) {
        text.push_str(&format!("\n{problem}"));
    }
    text
}
