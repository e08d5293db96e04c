//! Answers questions about windows for `tests/figures/windows`: reads one JSON object in each line, with the parameters
//! and the times in seconds, and writes for each time whether changes may start and when that changes.

use std::collections::BTreeMap;
use std::error::Error;
use std::io::{BufRead as _, Write as _};

use freehold_protocol::Timestamp;
use freehold_windows::{Decision, Rules};
use serde_json::{Value, json};

fn main() -> Result<(), Box<dyn Error>> {
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let question: Value = serde_json::from_str(&line?)?;
        let part = |name: &str| question.get(name).cloned().unwrap_or_default();
        let parameters: BTreeMap<String, String> = serde_json::from_value(part("parameters"))?;
        let times: Vec<u64> = serde_json::from_value(part("times"))?;
        let rules = Rules::of_parameters(&parameters)?;
        let answers: Vec<Value> = times.into_iter().map(|secs| answer(&rules, secs)).collect();
        writeln!(out, "{}", Value::from(answers))?;
    }
    Ok(())
}

/// Returns the decision at a time: whether changes may start, and the second at which that changes.
fn answer(rules: &Rules, secs: u64) -> Value {
    let (open, until) = match rules.at(Timestamp::from_millis(secs * 1000)) {
        Decision::Open { until } => (true, until),
        Decision::Closed(closed) => (false, closed.until),
    };
    json!([open, until.map(|until| until.as_millis() / 1000)])
}
