//! Lambda function that receives the messages of the grants queue and responds to grant requests.

use aws_lambda_events::event::sqs::SqsEvent;
use freehold_app::artifact::grant_artifact::GrantArtifact;
use freehold_aws::queue::SqsOrders;
use freehold_functions::batch::{self, Handled};
use freehold_functions::init_logs;
use freehold_functions::settings::Settings;
use lambda_runtime::{Error, LambdaEvent, service_fn};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    init_logs();
    let settings = Settings::read()?;
    let grant = GrantArtifact {
        tenant: settings.tenant.clone(),
        store: settings.store()?,
        registry: settings.registry()?,
        objects: settings.objects()?,
        orders: std::sync::Arc::new(SqsOrders::new(&settings.sdk)),
        signer: settings.signer(&GrantArtifact::SIGNS)?,
        clock: settings.clock(),
    };
    let queue = settings.source_queue()?;
    let (grant, queue) = (&grant, &queue);
    lambda_runtime::run(service_fn(|event: LambdaEvent<SqsEvent>| async move {
        let answer =
            batch::each(event.payload, "could not answer a request for a grant", (queue, None), |message| async move {
                grant.answer(&batch::parse(&message.body)?).await.map(|()| Handled::Done)
            });
        Ok::<_, Error>(answer.await)
    }))
    .await
}
