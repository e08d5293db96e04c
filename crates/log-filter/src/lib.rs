//! Reads the environment variable `RUST_LOG`, the filter of log events.

use tracing_subscriber::filter::Targets;

/// A filter of log events.
#[derive(Debug)]
pub struct LogFilter {
    pub targets: Targets,
    /// The parts of the text that cannot be read. They are not part of `targets`.
    pub unreadable: Vec<String>,
}

impl LogFilter {
    /// Reads a text such as `info,aws_config=warn`. Empty parts do not count: without this rule, the parser of
    /// [`Targets`] would read an empty part as the level `error` for all targets. A text without a part that can be read
    /// stands for `default`.
    pub fn read(text: &str, default: Targets) -> Self {
        let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
        let (readable, unreadable): (Vec<&str>, Vec<&str>) = parts.partition(|part| part.parse::<Targets>().is_ok());
        let targets = readable.join(",").parse().ok().filter(|_| !readable.is_empty()).unwrap_or(default);
        Self { targets, unreadable: unreadable.into_iter().map(str::to_owned).collect() }
    }

    /// Logs the parts that cannot be read. The logs must have been started.
    pub fn report(unreadable: &[String]) {
        for part in unreadable {
            tracing::error!(
                "Part `{part}` of `RUST_LOG` cannot be read and has no effect; write a level such as `info`, or a target \
                 with its level such as `aws_config=warn`, and commas between the parts"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use tracing_subscriber::filter::LevelFilter;

    use super::*;

    fn read(text: &str) -> (Targets, Vec<String>) {
        let LogFilter { targets, unreadable } = LogFilter::read(text, default());
        (targets, unreadable)
    }

    fn default() -> Targets {
        Targets::new().with_default(LevelFilter::INFO).with_target("aws_config", LevelFilter::WARN)
    }

    #[test]
    fn empty_parts_and_spaces_do_not_count() {
        let debug = Targets::new().with_default(LevelFilter::DEBUG);
        let both = Targets::new().with_default(LevelFilter::INFO).with_target("hyper", LevelFilter::TRACE);

        for text in ["debug", "debug,", ",debug", " debug , ,"] {
            assert_eq!(read(text), (debug.clone(), vec![]), "{text}");
        }
        assert_eq!(read("info, hyper=trace,"), (both, vec![]));
        for text in ["", ",", " "] {
            assert_eq!(read(text), (default(), vec![]), "{text}");
        }
    }

    #[test]
    fn a_part_that_cannot_be_read_is_named_and_the_others_count() {
        let warn = Targets::new().with_default(LevelFilter::WARN);

        assert_eq!(read("warn,hyper=loud,a=b=c"), (warn, vec!["hyper=loud".to_owned(), "a=b=c".to_owned()]));
        assert_eq!(read("hyper=loud"), (default(), vec!["hyper=loud".to_owned()]));
    }
}
