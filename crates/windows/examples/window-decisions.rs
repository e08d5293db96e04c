//! Answers questions about windows for `tests/figures/windows`: reads one JSON object in each line, with the parameters
//! and the times in seconds, and writes for each time whether changes may start and when that changes.

use std::collections::BTreeMap;
use std::io::{BufRead as _, Write as _};

use freehold_protocol::Timestamp;
use freehold_windows::{Decision, Rules};
use serde_json::{Value, json};

fn main() {
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let question: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let parameters: BTreeMap<String, String> = serde_json::from_value(question["parameters"].clone()).unwrap();
        let rules = Rules::of_parameters(&parameters).unwrap();
        let times = question["times"].as_array().unwrap().iter().map(|secs| secs.as_u64().unwrap());
        let answers: Vec<Value> = times.map(|secs| answer(&rules, secs)).collect();
        writeln!(out, "{}", Value::from(answers)).unwrap();
    }
}

/// Returns the decision at a time: whether changes may start, and the second at which that changes.
fn answer(rules: &Rules, secs: u64) -> Value {
    let (open, until) = match rules.at(Timestamp::from_millis(secs * 1000)) {
        Decision::Open { until } => (true, until),
        Decision::Closed(closed) => (false, closed.until),
    };
    json!([open, until.map(|until| until.as_millis() / 1000)])
}
