//! Lambda function that receives the messages of the dispatch queue: signs orders and cancels, and sends them to
//! runners.

use std::sync::atomic::{AtomicBool, Ordering};

use aws_lambda_events::event::sqs::SqsEvent;
use freehold_app::workflow::dispatch_job::DispatchJob;
use freehold_aws::queue::SqsOrders;
use freehold_functions::batch::{self, Handled};
use freehold_functions::init_logs;
use freehold_functions::settings::{Settings, variable, writer};
use lambda_runtime::{Error, LambdaEvent, service_fn};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    init_logs();
    let settings = Settings::read()?;
    let store = settings.store()?;
    let versions = settings.versions(&store)?;
    let dispatch = DispatchJob {
        tenant: settings.tenant.clone(),
        repository: variable("FREEHOLD_REPOSITORY")?,
        store,
        versions,
        orders: std::sync::Arc::new(SqsOrders::new(&settings.sdk)),
        signer: settings.signer(&DispatchJob::SIGNS)?,
        build_machine: settings.build_machine(),
        clock: settings.clock(),
        writer: writer(),
    };
    let queue = settings.source_queue()?;
    let (dispatch, queue) = (&dispatch, &queue);
    lambda_runtime::run(service_fn(|event: LambdaEvent<SqsEvent>| async move {
        let builds = &AtomicBool::new(false);
        let answer = batch::each(
            event.payload,
            "could not handle a message of the dispatch queue",
            (queue, None),
            |message| async move {
                let is_build = dispatch.perform(&batch::parse(&message.body)?).await?;
                builds.fetch_or(is_build, Ordering::Relaxed);
                Ok(Handled::Done)
            },
        );
        let answer = answer.await;
        if builds.load(Ordering::Relaxed) {
            dispatch.wake_builder().await;
        }
        Ok::<_, Error>(answer)
    }))
    .await
}
