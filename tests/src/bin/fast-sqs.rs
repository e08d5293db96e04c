//! The in-memory SQS as a program: prints its address, then serves until it is ended.

use clap::Parser;
use freehold_tests::fast_sqs::FastSqs;

/// An SQS in memory for measurements; any queue that is named exists. A GET answers the request counts and resets them.
#[derive(Debug, Parser)]
struct Arguments {
    /// Where to listen; port 0 picks a free one.
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: String,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?.block_on(async {
        let server = FastSqs::start(&arguments.listen).await?;
        println!("fast sqs at {}", server.url());
        std::future::pending::<()>().await;
        Ok(())
    })
}
