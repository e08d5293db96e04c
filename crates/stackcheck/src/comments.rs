//! Leaves the comments of a template out, for a request that has room for the template alone.

use saphyr_parser::{Event, Parser};

/// Returns `template` without its comment lines and empty lines. Lines of a text are kept, a script's comments among them.
/// A template that cannot be read is returned as it is.
pub fn without_comments(template: &str) -> String {
    let Some(texts) = lines_of_texts(template) else { return template.to_owned() };
    let is_kept = |number: usize, line: &str| {
        let line = line.trim_start();
        !(line.is_empty() || line.starts_with('#'))
            || texts.iter().any(|(first, last)| (*first..=*last).contains(&number))
    };
    let kept = template.lines().enumerate().filter(|(at, line)| is_kept(at + 1, line));
    kept.map(|(_, line)| format!("{line}\n")).collect()
}

/// Returns the first and the last line of each text that has more than one.
fn lines_of_texts(template: &str) -> Option<Vec<(usize, usize)>> {
    let mut texts = Vec::new();
    for read in Parser::new_from_str(template) {
        let (event, span) = read.ok()?;
        if matches!(event, Event::Scalar(..)) && span.start.line() < span.end.line() {
            texts.push((span.start.line(), span.end.line()));
        }
    }
    Some(texts)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOLDEN: [&str; 2] =
        [include_str!("../../app/golden/install.yaml"), include_str!("../../app/golden/install-with-inputs.yaml")];

    fn events(template: &str) -> Vec<String> {
        Parser::new_from_str(template).map(|read| format!("{:?}", read.unwrap().0)).collect()
    }

    #[test]
    fn the_template_says_the_same_in_fewer_bytes() {
        for template in GOLDEN {
            let short = without_comments(template);

            assert_eq!(events(&short), events(template));
            assert!(short.len() + 2000 < template.len(), "{} of {}", short.len(), template.len());
        }
    }

    #[test]
    fn comments_and_empty_lines_of_a_script_stay() {
        let template = "a: |\n  #!/bin/sh\n\n  # why\n  run\n# gone\n\nb: 1 # stays\n";

        let short = without_comments(template);

        assert!(short.starts_with("a: |\n  #!/bin/sh\n\n  # why\n  run\n"), "{short}");
        assert_eq!(events(&short), events(template));
    }

    #[test]
    fn what_is_no_yaml_stays_as_it_is() {
        assert_eq!(without_comments("# a\n\t[ }"), "# a\n\t[ }");
    }
}
