//! Lambda function that receives the messages of the reports queue and accepts the reports of runners.

use aws_lambda_events::event::sqs::SqsEvent;
use freehold_app::workflow::accept_report::{AcceptReport, Accepted, Arrival};
use freehold_functions::batch::{self, Handled};
use freehold_functions::init_logs;
use freehold_functions::settings::Settings;
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
    let queue = settings.source_queue()?;
    let (accept, queue) = (&accept, &queue);
    lambda_runtime::run(service_fn(|event: LambdaEvent<SqsEvent>| async move {
        let answer = batch::each(event.payload, "could not accept a report", queue, |message| async move {
            let arrival = Arrival { sent_at: message.sent_at, taken_at: message.taken_at, sender: message.sender };
            match accept.accept(&message.body, arrival).await? {
                Accepted::Taken | Accepted::Refused(_) => Ok(Handled::Done),
                Accepted::Aside(why) => Ok(Handled::Aside(why)),
            }
        });
        Ok::<_, Error>(answer.await)
    }))
    .await
}
