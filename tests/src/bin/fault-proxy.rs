//! The fault proxy as a program: prints its address and seed, then serves until it is ended.

use clap::Parser;
use freehold_tests::proxy::{Proxy, Rule, parse_rules};

/// Proxy between AWS clients and the local cloud that injects faults and counts calls.
///
/// A rule is `OPERATION PROBABILITY FAULT [by=KEY] [skip=N] [times=N] [stubborn]`, such as
/// `dynamodb.TransactWriteItems 0.1 drop-answer` or `* 0.1 any stubborn`. Faults: delay:MS, reorder, drop-request,
/// drop-answer, duplicate, throttle, error, conflict, truncate, black-hole:SECS, repeat-answer, any.
/// At /__proxy/: GET counts, POST reset, PUT faults?seed=N (rules as text).
#[derive(Debug, Parser)]
struct Arguments {
    /// The cloud behind it.
    #[arg(long, default_value = "http://127.0.0.1:4566")]
    upstream: String,
    /// Where to listen; port 0 picks a free one.
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: String,
    /// The seed of all draws; taken from the clock and printed when absent.
    #[arg(long)]
    seed: Option<u64>,
    /// Rules, with `;` between them; may be given more than once.
    #[arg(long, value_name = "RULES")]
    faults: Vec<String>,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let rules: Vec<Rule> =
        arguments.faults.iter().map(|text| parse_rules(text)).collect::<Result<Vec<_>, _>>()?.concat();
    let seed = arguments.seed.unwrap_or_else(|| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        now.map_or(1, |time| u64::from(time.subsec_nanos()))
    });
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?.block_on(async {
        let proxy = Proxy::start(&arguments.listen, &arguments.upstream, seed, rules).await?;
        println!("fault proxy at {} for {} (seed {seed})", proxy.url(), arguments.upstream);
        proxy.forever().await;
        Ok(())
    })
}
