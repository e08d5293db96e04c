//! Lambda function that serves the console to browsers.

use aws_lambda_events::event::apigw::ApiGatewayV2httpRequest;
use freehold_functions::console::Console;
use freehold_functions::init_logs;
use freehold_functions::settings::Settings;
use lambda_runtime::{Error, LambdaEvent, service_fn};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    init_logs();
    let console = Console::new(&Settings::read()?)?;
    let console = &console;
    lambda_runtime::run(service_fn(|event: LambdaEvent<ApiGatewayV2httpRequest>| async move {
        Ok::<_, Error>(console.answer(event.payload).await)
    }))
    .await
}
