//! Writes the values of metrics to standard output in CloudWatch's embedded metric format: one JSON line from which
//! CloudWatch takes the values, without a call and without a permission. The line is a log line too.
//!
//! The format: <https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html>

use std::collections::BTreeMap;
use std::fmt;
use std::io::Write as _;

use freehold_app::metrics::{self, Metric, parse_values};
use freehold_app::ports::Clock as _;
use freehold_aws::config::SystemClock;
use freehold_protocol::Timestamp;
use serde_json::{Map, Value, json};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::{Context, Layer};

/// The namespace of the metrics of all tenants of an account.
const NAMESPACE: &str = "Freehold";

/// Writes a line for each event that records values.
pub(crate) struct EmbeddedMetrics {
    tenant: String,
    /// Whether each install has metrics of its own, which CloudWatch bills one by one.
    by_install: bool,
    write: fn(&str),
}

impl EmbeddedMetrics {
    pub(crate) fn of(tenant: String, by_install: bool) -> Self {
        Self { tenant, by_install, write: print }
    }

    /// Returns the filter that passes all values and nothing else, whatever the level of the logs is.
    pub(crate) fn filter() -> Targets {
        Targets::new().with_target(metrics::TARGET, LevelFilter::INFO)
    }

    /// Returns the line of the values of one event, with its newline.
    fn line(&self, recorded: &Recorded, now: Timestamp) -> String {
        let mut sets = vec![vec!["tenant"]];
        if recorded.names.contains_key("app") {
            sets.push(vec!["tenant", "app"]);
        }
        if self.by_install && ["app", "install"].iter().all(|name| recorded.names.contains_key(name)) {
            sets.push(vec!["tenant", "app", "install"]);
        }
        let definition =
            |(metric, _): &(Metric, u64)| json!({ "Name": metric.as_str(), "Unit": metric.unit().as_str() });
        let definitions: Vec<Value> = recorded.values.iter().map(definition).collect();
        let directive = json!({ "Namespace": NAMESPACE, "Dimensions": sets, "Metrics": definitions });
        let mut line = Map::new();
        line.insert("_aws".to_owned(), json!({ "Timestamp": now.as_millis(), "CloudWatchMetrics": [directive] }));
        line.insert("tenant".to_owned(), Value::from(self.tenant.as_str()));
        line.extend(recorded.names.iter().map(|(name, value)| ((*name).to_owned(), Value::from(value.as_str()))));
        line.extend(recorded.values.iter().map(|(metric, value)| (metric.as_str().to_owned(), Value::from(*value))));
        // A newline in a text is escaped, so the only newline is the last character.
        format!("{}\n", Value::Object(line))
    }
}

impl<S: Subscriber> Layer<S> for EmbeddedMetrics {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut recorded = Recorded::default();
        event.record(&mut recorded);
        if !recorded.values.is_empty() {
            (self.write)(&self.line(&recorded, SystemClock.now()));
        }
    }
}

/// The fields of one event that records values.
#[derive(Debug, Default)]
struct Recorded {
    values: Vec<(Metric, u64)>,
    /// What the values are about, such as `install`.
    names: BTreeMap<&'static str, String>,
}

impl Visit for Recorded {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "values" => self.values = parse_values(value),
            name => {
                self.names.insert(name, value.to_owned());
            }
        }
    }

    // All fields of these events are texts.
    fn record_debug(&mut self, _: &Field, _: &dyn fmt::Debug) {}
}

/// Writes a line to standard output. If this fails, no log line can say so.
fn print(line: &str) {
    let _ = std::io::stdout().lock().write_all(line.as_bytes());
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use freehold_app::metrics::{About, record};
    use proptest::prelude::*;
    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;

    /// The schema of AWS's page of the format, without its titles and examples. The page names 30 as the maximum of
    /// dimensions in its text.
    const SCHEMA: &str = include_str!("embedded_metric_format.json");

    thread_local! {
        static WRITTEN: RefCell<String> = const { RefCell::new(String::new()) };
    }

    fn keep(line: &str) {
        WRITTEN.with_borrow_mut(|written| written.push_str(line));
    }

    /// Returns what is written while `work` records values, when the logs show no level.
    fn written(by_install: bool, work: impl FnOnce()) -> String {
        let layer = EmbeddedMetrics { write: keep, ..EmbeddedMetrics::of("acme".into(), by_install) };
        let logs = tracing_subscriber::fmt::layer().with_writer(std::io::sink).with_filter(LevelFilter::OFF);
        let all = tracing_subscriber::registry().with(logs).with(layer.with_filter(EmbeddedMetrics::filter()));
        tracing::subscriber::with_default(all, work);
        WRITTEN.take()
    }

    fn recorded(names: &[(&'static str, &str)], values: &[(Metric, u64)]) -> Recorded {
        let names = names.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        Recorded { values: values.to_vec(), names }
    }

    fn checked(line: &str) -> Value {
        let schema = serde_json::from_str(SCHEMA).unwrap();
        let document: Value = serde_json::from_str(line).unwrap();
        let validator = jsonschema::validator_for(&schema).unwrap();
        let errors: Vec<String> = validator.iter_errors(&document).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{errors:?}: {line}");
        // The schema cannot express that each reference names a member at the top.
        let directive = &document["_aws"]["CloudWatchMetrics"][0];
        for name in directive["Dimensions"].as_array().unwrap().iter().flat_map(|set| set.as_array().unwrap()) {
            assert!(document[name.as_str().unwrap()].is_string(), "{name}: {line}");
        }
        for metric in directive["Metrics"].as_array().unwrap() {
            assert!(document[metric["Name"].as_str().unwrap()].is_u64(), "{metric}: {line}");
        }
        document
    }

    #[test]
    fn values_are_one_line_whatever_the_logs_show() {
        let (app, install) = ("shop".parse().unwrap(), "globex".parse().unwrap());
        let about = About { app: Some(&app), install: Some(&install), ..About::default() };

        let text = written(false, || {
            tracing::error!("this is not a metric");
            record(&[(Metric::JobsSucceeded, 1), (Metric::JobDuration, 5300)], about);
        });

        let [line] = &text.lines().collect::<Vec<_>>()[..] else { panic!("{text}") };
        let line = checked(line);
        let directive = &line["_aws"]["CloudWatchMetrics"][0];
        assert_eq!(directive["Dimensions"], json!([["tenant"], ["tenant", "app"]]));
        assert_eq!(directive["Metrics"][1], json!({ "Name": "JobDuration", "Unit": "Milliseconds" }));
        assert_eq!((&line["JobsSucceeded"], &line["JobDuration"]), (&json!(1), &json!(5300)));
        assert_eq!(
            (&line["tenant"], &line["app"], &line["install"]),
            (&json!("acme"), &json!("shop"), &json!("globex"))
        );
    }

    #[test]
    fn an_install_is_a_dimension_only_when_this_is_switched_on_and_its_app_is_known() {
        let dimensions = |by_install, names: &[(&'static str, &str)]| {
            let recorded = recorded(names, &[(Metric::JobsFailed, 1)]);
            let line = EmbeddedMetrics::of("acme".into(), by_install).line(&recorded, Timestamp::from_millis(1));
            checked(&line)["_aws"]["CloudWatchMetrics"][0]["Dimensions"].clone()
        };
        let both = [("app", "shop"), ("install", "globex"), ("job", "job_1")];

        assert_eq!(dimensions(false, &both), json!([["tenant"], ["tenant", "app"]]));
        assert_eq!(dimensions(true, &both), json!([["tenant"], ["tenant", "app"], ["tenant", "app", "install"]]));
        assert_eq!(dimensions(true, &both[1..]), json!([["tenant"]]));
    }

    proptest! {
        #[test]
        fn every_line_is_one_document_of_the_format(
            app in any::<String>(),
            install in "\\PC*|[\\r\\n\u{2028}\u{85}\"\\\\]{1,9}",
            many in 1..=Metric::ALL.len(),
            value in any::<u64>(),
            millis in any::<u64>(),
        ) {
            let values: Vec<_> = Metric::ALL[..many].iter().map(|metric| (*metric, value)).collect();
            let recorded = recorded(&[("app", &app), ("install", &install)], &values);

            let text = EmbeddedMetrics::of("acme".into(), true).line(&recorded, Timestamp::from_millis(millis));

            prop_assert_eq!(text.matches(['\n', '\r']).count(), 1);
            prop_assert!(text.ends_with('\n'));
            let line = checked(&text);
            prop_assert_eq!((line["app"].as_str(), line["install"].as_str()), (Some(&*app), Some(&*install)));
        }
    }
}
