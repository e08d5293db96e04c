//! Lambda function that receives the messages of the reports queue and accepts the reports of runners.

use aws_lambda_events::event::sqs::SqsEvent;
use freehold_app::ports::SourceQueue;
use freehold_app::workflow::accept_report::{AcceptReport, Accepted, Arrival};
use freehold_app::workflow::admit_report::{AdmitReport, Admitted};
use freehold_functions::batch::{self, Handled, Message};
use freehold_functions::init_logs;
use freehold_functions::settings::{Settings, variable};
use lambda_runtime::{Error, LambdaEvent, service_fn};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    init_logs();
    let settings = Settings::read()?;
    let accept = AcceptReport {
        tenant: settings.tenant.clone(),
        store: settings.store()?,
        outbox: settings.outbox()?,
        callbacks: settings.callbacks(),
        callers: settings.callers(),
        clock: settings.clock(),
    };
    let admit = AdmitReport::new(settings.store()?, settings.clock());
    let queue = settings.source_queue()?;
    let putter = variable("FREEHOLD_SWEEP_ROLE_ID")?;
    let (accept, admit, source) = (&accept, &admit, (&queue as &dyn SourceQueue, Some(putter.as_str())));
    lambda_runtime::run(service_fn(|event: LambdaEvent<SqsEvent>| async move {
        let answer = batch::each(event.payload, "could not accept a report", source, |message| async move {
            let install = match admit.admit(message.sender.as_deref()).await? {
                Admitted::Handle(install) => install,
                Admitted::Wait(why) => return Ok(Handled::Aside(why)),
                Admitted::Drop => return Ok(Handled::Done),
            };
            let Message { body, sent_at, taken_at, sender } = message;
            let arrival = Arrival { sent_at, taken_at, sender, install };
            match accept.accept_or_drop(&body, arrival).await? {
                Accepted::Taken | Accepted::Refused(_) => Ok(Handled::Done),
                Accepted::Aside(why) => Ok(Handled::Aside(why)),
            }
        });
        Ok::<_, Error>(answer.await)
    }))
    .await
}
