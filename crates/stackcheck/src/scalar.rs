//! Decides whether a scalar without quotes is a text to every YAML reader. CloudFormation reads YAML 1.1.

/// Words that YAML 1.1 reads as a Boolean or as null (<https://yaml.org/type/bool.html>,
/// <https://yaml.org/type/null.html>).
const WORDS: [&str; 10] = ["", "~", "false", "n", "no", "null", "off", "on", "true", "y"];

/// Returns whether every YAML reader reads a scalar without quotes as a text. Returns false if a reader may read it as
/// a Boolean, null, a number or a date.
pub(crate) fn is_text(plain: &str) -> bool {
    let word = plain.to_ascii_lowercase();
    let is_word = WORDS.contains(&word.as_str()) || word == "yes";
    // The check covers numbers in every notation (0x1f, 0o17, 1_000, 1:30, 1e3, .inf) and dates (2026-11-30), with or
    // without a time.
    let begins = word.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.'));
    let numeric = begins && word.chars().all(|c| c.is_ascii_hexdigit() || "xo_:.+-einftz ".contains(c));
    !is_word && !numeric
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scalar_that_may_be_a_number_a_date_or_a_truth_value_is_not_a_text() {
        for plain in [
            "",
            "~",
            "null",
            "No",
            "off",
            "Y",
            "TRUE",
            "yes",
            "1",
            "-1",
            "1_000",
            "0x1F",
            "0o17",
            "1:30",
            "1e3",
            ".5",
            "-.inf",
            ".nan",
            "2012-10-17",
            "2026-11-30T18:00:00Z",
            "2026-11-30 18:00:00",
        ] {
            assert!(!is_text(plain), "{plain}");
        }
        for plain in ["a", "10.128.0.0/26", "eu-west-1", "^x$", "AWS::IAM::Role", "nothing", "1.2.3.4/0", "t4g.small"] {
            assert!(is_text(plain), "{plain}");
        }
    }
}
