//! Lambda function that receives the messages of the reports queue and accepts the reports of runners.

use aws_lambda_events::event::sqs::SqsEvent;
use freehold_app::ports::SourceQueue;
use freehold_app::workflow::accept_report::{AcceptReport, Accepted, Arrival};
use freehold_app::workflow::admit_report::{AdmitReport, Admitted};
use freehold_app::{AppError, Kind};
use freehold_functions::batch::{self, Handled, Message};
use freehold_functions::init_logs;
use freehold_functions::settings::{Settings, variable, writer};
use lambda_runtime::{Error, LambdaEvent, service_fn};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    init_logs();
    let settings = Settings::read()?;
    let writer = writer();
    let accept = AcceptReport {
        tenant: settings.tenant.clone(),
        store: settings.store()?,
        outbox: settings.outbox()?,
        callbacks: settings.callbacks(),
        callers: settings.callers(),
        clock: settings.clock(),
        writer: writer.clone(),
    };
    let admit = AdmitReport::new(settings.store()?, settings.clock(), writer);
    let queue = settings.source_queue()?;
    let putter = variable("FREEHOLD_SWEEP_ROLE_ID")?;
    let (accept, admit, source) = (&accept, &admit, (&queue as &dyn SourceQueue, Some(putter.as_str())));
    lambda_runtime::run(service_fn(|event: LambdaEvent<SqsEvent>| async move {
        let answer =
            batch::each(event.payload, "could not accept a report", source, |message| handle(admit, accept, message));
        Ok::<_, Error>(answer.await)
    }))
    .await
}

/// Admits and accepts one report. A report that has waited makes room for another one when it needs no further try.
async fn handle(admit: &AdmitReport, accept: &AcceptReport, message: Message) -> Result<Handled, AppError> {
    let Message { body, sent_at, taken_at, sender, has_waited, charged } = message;
    let install = match admit.admit(sender.as_deref(), has_waited).await? {
        Admitted::Handle(install) => install,
        Admitted::Wait(waiting) => return Ok(Handled::Aside(waiting)),
        Admitted::Drop => return Ok(Handled::Done),
    };
    let arrival = Arrival { sent_at, taken_at, sender: sender.clone(), install };
    let handled = match accept.accept_or_drop(&body, arrival).await {
        Ok(Accepted::Aside(why)) => {
            let waiting = admit.set_aside(sender.as_deref(), has_waited, why).await?;
            return Ok(waiting.map_or(Handled::Done, Handled::Aside));
        }
        accepted => accepted.map(|_| Handled::Done),
    };
    let is_over = handled.as_ref().map_or_else(|error| error.kind == Kind::Invalid, |_| true);
    if has_waited && is_over {
        admit.note_handled(sender.as_deref(), charged.as_ref()).await;
    }
    handled
}
