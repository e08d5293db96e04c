//! `freehold tenant status`: shows the stack, the code of the functions, the depth of the queues, and the build runner's
//! machine.

use std::collections::BTreeMap;

use aws_config::SdkConfig;
use aws_sdk_sqs::types::QueueAttributeName;
use freehold_protocol::TenantName;
use serde::Serialize;

use super::Status;
use super::build_machine::{BuildMachine, State};
use super::names::{FUNCTIONS, QUEUES, named};
use crate::api::tenant_stack;
use crate::context::Context;
use crate::error::{Result, ResultExt};
use crate::output::{Output, Table, bytes, plural};

/// The maximum number of reports queues that are shown. Each queue serves about 450 customers, and its status needs two
/// calls.
const SHOWN_REPORTS_QUEUES: u32 = 100;

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
    #[serde(skip_serializing_if = "Option::is_none")]
    build_machine: Option<BuildMachine>,
}

#[derive(Debug, Serialize)]
struct FunctionStatus {
    function: String,
    state: String,
    architecture: String,
    code_size: u64,
    /// The SHA-256 of the zip file in base64, as Lambda returns it.
    code_sha256: String,
    modified_at: String,
}

#[derive(Debug, Serialize)]
struct QueueStatus {
    queue: String,
    waiting: u64,
    in_flight: u64,
    /// A description of the messages in the queue.
    holds: &'static str,
    /// The advice for messages that wait in the queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    advice: Option<String>,
}

/// Returns a description of the messages in a queue. `queue` is the queue's name without the tenant's prefix.
fn holds(queue: &str) -> &'static str {
    match queue {
        "reports" => "reports of runners",
        _ if queue.starts_with("reports--") => "reports of runners",
        "dispatch" => "orders to be signed",
        "grants" => "requests for artifacts",
        "build.fifo" => "orders for the build runner",
        "dead" => "messages that a function refused",
        "dead.fifo" => "orders that runners received 200 times and never completed",
        "dead--notifications" => "notifications that a subscriber did not take",
        _ => "",
    }
}

/// Returns advice if messages wait in a queue that should be empty. `machine` is the state of the build runner's machine,
/// if the stack has one.
fn advice(queue: &str, name: &str, waiting: u64, machine: Option<State>) -> Option<String> {
    let count = plural(usize::try_from(waiting).unwrap_or(usize::MAX), "message");
    match queue {
        _ if waiting == 0 => None,
        "dead" => Some(format!(
            "`{name}` holds {count} that a function refused; the attribute `freehold-reason` of each message contains \
             the reason, and so do the logs of accept-report, dispatch-job and grant-artifact. Messages without a \
             reason return to their queues by themselves; after that, `aws sqs purge-queue` deletes the refused messages. \
             While the queue is too long for one run of `sweep`, `freehold install forget` does not end"
        )),
        "dead.fifo" => Some(format!(
            "`{name}` holds {count}: orders that runners received 200 times and did not complete, for example because a runner \
             crashed each time. Their jobs end as lost; `freehold workflow list INSTALL` shows their workflows. Orders expire, so \
             `aws sqs purge-queue` deletes nothing that is needed"
        )),
        "dead--notifications" => Some(format!(
            "`{name}` holds {count}: notifications that a subscriber did not take; `freehold subscription list` shows the \
             subscribers. Nobody sends them again, and `aws sqs purge-queue` deletes them"
        )),
        "build.fifo" if matches!(machine, Some(State::Starting | State::Up)) => None,
        "build.fifo" if machine.is_some() => Some(format!(
            "`{name}` holds {count}, but no machine is requested for the build runner; the function `sweep` requests a \
             machine within two minutes; if this fails, the log of `sweep` contains the reason"
        )),
        "build.fifo" => Some(format!(
            "`{name}` holds {count} that no build runner takes; see `freehold tenant build-runner --help`"
        )),
        _ => None,
    }
}

impl Status {
    pub(super) async fn run(&self, context: &Context) -> Result<()> {
        let tenant = context.tenant(self.name.as_ref())?;
        let config = context.config().await?;
        let stack = tenant_stack(&config, &tenant).await?;
        let build_machine = match stack.outputs.get("BuildGroupName") {
            Some(group) => Some(BuildMachine::find(&config, group).await?),
            None => None,
        };
        let status = TenantStatus {
            functions: functions(&config, &tenant).await?,
            queues: queues(&config, &tenant, build_machine.as_ref().map(|machine| machine.state)).await?,
            build_machine,
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
    let mut queues = Table::new(&["QUEUE", "WAITING", "IN FLIGHT", "HOLDS"]);
    for one in &status.queues {
        queues.row([one.queue.clone(), one.waiting.to_string(), one.in_flight.to_string(), one.holds.to_owned()]);
    }
    let advice: Vec<&str> = status.queues.iter().filter_map(|one| one.advice.as_deref()).collect();
    let advice = if advice.is_empty() { String::new() } else { format!("\n\n{}", advice.join("\n")) };
    let mut outputs = Table::new(&["OUTPUT", "VALUE"]);
    for (key, value) in &status.outputs {
        outputs.row([key.clone(), value.clone()]);
    }
    let reason = if status.reason.is_empty() { String::new() } else { format!(" ({})", status.reason) };
    let machine = status.build_machine.as_ref().map(|machine| format!("\n\n{}", machine.line())).unwrap_or_default();
    format!(
        "stack {}  {}{reason}  since {}\n\n{}\n\n{}\n\n{}{machine}{advice}",
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

async fn queues(config: &SdkConfig, tenant: &TenantName, machine: Option<State>) -> Result<Vec<QueueStatus>> {
    let client = aws_sdk_sqs::Client::new(config);
    let mut all = Vec::with_capacity(QUEUES.len());
    for name in QUEUES {
        all.extend(queue(&client, tenant, name, machine).await?);
    }
    let later = async |number| queue(&client, tenant, &format!("reports--{number}"), machine).await;
    all.extend(later_reports_queues(later).await?);
    Ok(all)
}

/// Returns the reports queues after the first one, which have consecutive numbers. `ask` returns the status of the
/// queue with this number, or `None` if the queue does not exist.
async fn later_reports_queues(
    mut ask: impl AsyncFnMut(u32) -> Result<Option<QueueStatus>>,
) -> Result<Vec<QueueStatus>> {
    let mut all = Vec::new();
    for number in 2..=SHOWN_REPORTS_QUEUES {
        let Some(found) = ask(number).await? else { return Ok(all) };
        all.push(found);
    }
    if let Some(last) = all.last_mut() {
        let note = format!("`{}` is the last reports queue that is shown; later ones may exist", last.queue);
        last.advice = Some(last.advice.take().map_or_else(|| note.clone(), |advice| format!("{advice}\n{note}")));
    }
    Ok(all)
}

/// Returns the status of a queue of the tenant; `None` if it does not exist.
async fn queue(
    client: &aws_sdk_sqs::Client,
    tenant: &TenantName,
    queue: &str,
    machine: Option<State>,
) -> Result<Option<QueueStatus>> {
    let name = named(tenant, queue);
    let url = match client.get_queue_url().queue_name(&name).send().await {
        Ok(found) => found.queue_url().unwrap_or_default().to_owned(),
        Err(error) if error.as_service_error().is_some_and(|e| e.is_queue_does_not_exist()) => return Ok(None),
        Err(error) => return Err(error).doing(format!("look up queue `{name}`")),
    };
    let (waiting, in_flight) =
        (QueueAttributeName::ApproximateNumberOfMessages, QueueAttributeName::ApproximateNumberOfMessagesNotVisible);
    let ask = client.get_queue_attributes().queue_url(url);
    let ask = ask.attribute_names(waiting.clone()).attribute_names(in_flight.clone());
    let found = ask.send().await.doing(format!("read queue `{name}`"))?;
    let count = |name: &QueueAttributeName| {
        found.attributes().and_then(|all| all.get(name)).and_then(|text| text.parse().ok()).unwrap_or_default()
    };
    let waiting = count(&waiting);
    let advice = advice(queue, &name, waiting, machine);
    Ok(Some(QueueStatus { queue: name, waiting, in_flight: count(&in_flight), holds: holds(queue), advice }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_queue_says_what_it_holds() {
        for queue in QUEUES.into_iter().chain(["reports--2"]) {
            assert!(!holds(queue).is_empty(), "{queue}");
        }
    }

    #[tokio::test]
    async fn the_reports_queues_are_shown_up_to_the_first_that_is_absent_or_the_hundredth() {
        let exists = |queue: String| QueueStatus { queue, waiting: 0, in_flight: 0, holds: "", advice: None };
        for (there, expected) in [(1, 0), (12, 11), (99, 98), (100, 99), (u32::MAX, 99)] {
            let mut asked = 0;
            let found = later_reports_queues(async |number| {
                asked += 1;
                Ok((number <= there).then(|| exists(format!("reports--{number}"))))
            })
            .await
            .unwrap();

            assert_eq!((found.len(), asked), (expected, (expected + 1).min(99)), "{there}");
            let cut = "`reports--100` is the last reports queue that is shown; later ones may exist";
            let noted: Vec<_> = found.iter().filter_map(|one| one.advice.as_deref()).collect();
            assert_eq!(noted, if there < 100 { vec![] } else { vec![cut] });
        }
    }

    #[test]
    fn messages_where_none_should_wait_come_with_a_way_out() {
        let hint = advice("dead", "fh-acme--dead", 1, None).unwrap();

        assert!(hint.starts_with("`fh-acme--dead` holds 1 message that a function refused"), "{hint}");
        assert!(hint.contains("freehold-reason") && hint.contains("purge-queue"), "{hint}");
        assert!(hint.ends_with("one run of `sweep`, `freehold install forget` does not end"), "{hint}");
        assert!(advice("dead.fifo", "fh-acme--dead.fifo", 2, None).unwrap().contains("holds 2 messages"));
        let unsent = advice("dead--notifications", "fh-acme--dead--notifications", 1, None).unwrap();
        assert!(unsent.contains("`freehold subscription list`"), "{unsent}");
        assert_eq!(advice("dead", "fh-acme--dead", 0, None), None);
        assert_eq!(advice("reports", "fh-acme--reports", 7, None), None);
    }

    #[test]
    fn orders_that_wait_for_a_machine_that_starts_need_no_advice() {
        let advice_for = |machine| advice("build.fifo", "fh-acme--build.fifo", 1, machine);

        assert!(advice_for(None).unwrap().contains("that no build runner takes"));
        assert!(advice_for(Some(State::Asleep)).unwrap().contains("`sweep` requests a machine"));
        assert_eq!((advice_for(Some(State::Starting)), advice_for(Some(State::Up))), (None, None));
    }
}
