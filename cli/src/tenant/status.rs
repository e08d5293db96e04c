//! `freehold tenant status`: the stack, the code of the functions, the depth of the queues.

use std::collections::BTreeMap;

use aws_config::SdkConfig;
use aws_sdk_sqs::types::QueueAttributeName;
use freehold_protocol::TenantName;
use serde::Serialize;

use super::Status;
use super::names::{FUNCTIONS, QUEUES, named};
use crate::api::tenant_stack;
use crate::context::Context;
use crate::error::{Result, ResultExt};
use crate::output::{Output, Table, bytes};

#[derive(Debug, Serialize)]
struct TenantStatus {
    tenant: TenantName,
    stack: String,
    state: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    reason: String,
    changed_at: String,
    outputs: BTreeMap<String, String>,
    functions: Vec<FunctionStatus>,
    queues: Vec<QueueStatus>,
}

#[derive(Debug, Serialize)]
struct FunctionStatus {
    function: String,
    state: String,
    architecture: String,
    code_size: u64,
    /// SHA-256 of the zip, base64, as Lambda reports it.
    code_sha256: String,
    modified_at: String,
}

#[derive(Debug, Serialize)]
struct QueueStatus {
    queue: String,
    waiting: u64,
    in_flight: u64,
}

impl Status {
    pub(super) async fn run(&self, context: &Context) -> Result<()> {
        let tenant = context.tenant(self.name.as_ref())?;
        let config = context.config().await?;
        let stack = tenant_stack(&config, &tenant).await?;
        let status = TenantStatus {
            functions: functions(&config, &tenant).await?,
            queues: queues(&config, &tenant).await?,
            tenant,
            stack: stack.name,
            state: stack.status.as_str().to_owned(),
            reason: stack.reason,
            changed_at: stack.changed_at,
            outputs: stack.outputs,
        };
        context.out.show(&status, |status| render(status, context.out))
    }
}

fn render(status: &TenantStatus, out: Output) -> String {
    let mut functions = Table::new(&["FUNCTION", "STATE", "PROCESSOR", "CODE", "SHA-256 (BASE64)"]);
    for one in &status.functions {
        let hash = one.code_sha256.chars().take(12).collect();
        functions.row([one.function.clone(), one.state.clone(), one.architecture.clone(), bytes(one.code_size), hash]);
    }
    let mut queues = Table::new(&["QUEUE", "WAITING", "IN FLIGHT"]);
    for one in &status.queues {
        queues.row([one.queue.clone(), one.waiting.to_string(), one.in_flight.to_string()]);
    }
    let mut outputs = Table::new(&["OUTPUT", "VALUE"]);
    for (key, value) in &status.outputs {
        outputs.row([key.clone(), value.clone()]);
    }
    let reason = if status.reason.is_empty() { String::new() } else { format!(" ({})", status.reason) };
    format!(
        "stack {}  {}{reason}  since {}\n\n{}\n\n{}\n\n{}",
        status.stack,
        out.state(&status.state),
        status.changed_at,
        out.table(&outputs),
        out.table(&functions),
        out.table(&queues)
    )
}

async fn functions(config: &SdkConfig, tenant: &TenantName) -> Result<Vec<FunctionStatus>> {
    let client = aws_sdk_lambda::Client::new(config);
    let mut all = Vec::with_capacity(FUNCTIONS.len());
    for function in FUNCTIONS {
        let name = named(tenant, function);
        let found = client.get_function_configuration().function_name(&name).send().await;
        if found.as_ref().is_err_and(|e| e.as_service_error().is_some_and(|e| e.is_resource_not_found_exception())) {
            all.push(FunctionStatus {
                function: name,
                state: "absent".to_owned(),
                architecture: String::new(),
                code_size: 0,
                code_sha256: String::new(),
                modified_at: String::new(),
            });
            continue;
        }
        let found = found.doing(format!("look up function `{name}`"))?;
        all.push(FunctionStatus {
            function: name,
            state: found.state().map(|state| state.as_str().to_lowercase()).unwrap_or_default(),
            architecture: found.architectures().first().map(|a| a.as_str().to_owned()).unwrap_or_default(),
            code_size: u64::try_from(found.code_size()).unwrap_or_default(),
            code_sha256: found.code_sha256().unwrap_or_default().to_owned(),
            modified_at: found.last_modified().unwrap_or_default().to_owned(),
        });
    }
    Ok(all)
}

async fn queues(config: &SdkConfig, tenant: &TenantName) -> Result<Vec<QueueStatus>> {
    let client = aws_sdk_sqs::Client::new(config);
    let mut all = Vec::with_capacity(QUEUES.len());
    for queue in QUEUES {
        let name = named(tenant, queue);
        let url = match client.get_queue_url().queue_name(&name).send().await {
            Ok(found) => found.queue_url().unwrap_or_default().to_owned(),
            Err(error) if error.as_service_error().is_some_and(|e| e.is_queue_does_not_exist()) => {
                continue;
            }
            Err(error) => return Err(error).doing(format!("look up queue `{name}`")),
        };
        let (waiting, in_flight) = (
            QueueAttributeName::ApproximateNumberOfMessages,
            QueueAttributeName::ApproximateNumberOfMessagesNotVisible,
        );
        let ask = client.get_queue_attributes().queue_url(url);
        let ask = ask.attribute_names(waiting.clone()).attribute_names(in_flight.clone());
        let found = ask.send().await.doing(format!("read queue `{name}`"))?;
        let count = |name: &QueueAttributeName| {
            found.attributes().and_then(|all| all.get(name)).and_then(|text| text.parse().ok()).unwrap_or_default()
        };
        all.push(QueueStatus { queue: name, waiting: count(&waiting), in_flight: count(&in_flight) });
    }
    Ok(all)
}
