//! Lambda function that serves the HTTP API, `/v1`.

use aws_lambda_events::event::apigw::ApiGatewayV2httpRequest;
use freehold_app::subject;
use freehold_functions::api::{Api, Ports};
use freehold_functions::init_logs;
use freehold_functions::settings::Settings;
use lambda_runtime::{Error, LambdaEvent, service_fn};
use tracing::Instrument as _;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    init_logs();
    let api = Api::new(Ports::of(&Settings::read()?)?)?;
    let api = &api;
    lambda_runtime::run(service_fn(|event: LambdaEvent<ApiGatewayV2httpRequest>| async move {
        Ok::<_, Error>(api.answer(event.payload).instrument(subject::span()).await)
    }))
    .await
}
