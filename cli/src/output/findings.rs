//! Wraps the sentences of findings in files for the terminal. The excerpts of files stay as they are, because the marks below
//! their lines are aligned with them.

use console::strip_ansi_codes;

use super::terminal::Stream;

/// The beginnings of the lines with sentences.
const SENTENCES: [&str; 3] = ["error: ", "warning: ", "= help: "];

/// Returns `text` with its sentences wrapped to the width of `stream`.
pub(super) fn fitted(text: &str, stream: Stream) -> String {
    let line = |line: &str| {
        let plain = strip_ansi_codes(line).into_owned();
        let indent = plain.len() - plain.trim_start().len();
        match SENTENCES.iter().find(|beginning| plain.trim_start().starts_with(**beginning)) {
            Some(beginning) => hung(line, indent + beginning.len(), stream),
            None => line.to_owned(),
        }
    };
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

/// Returns a line as wrapped lines, of which all but the first are indented by `indent` columns.
fn hung(line: &str, indent: usize, stream: Stream) -> String {
    let Some(width) = stream.width.filter(|width| *width > indent * 2) else { return line.to_owned() };
    let (spaces, text) = line.split_at(line.len() - line.trim_start().len());
    let wrapped = Stream { width: Some(width - indent), ..stream }.wrapped(text);
    format!("{spaces}{}", wrapped.replace('\n', &format!("\n{}", " ".repeat(indent))))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
error: component `queue` deploys stack `globex-queue`, and role `provision` does not allow it
 --> components/queue.toml:1:1
  |
1 | a line of the file that is longer than the terminal is wide stays as it is
  | ^
  |
  = help: add the permission to the policies of the role, or choose another role";

    #[test]
    fn sentences_are_wrapped_and_excerpts_are_not() {
        let narrow = Stream { colours: false, width: Some(50) };

        insta::assert_snapshot!(fitted(TEXT, narrow), @r"
        error: component `queue` deploys stack
               `globex-queue`, and role `provision` does
               not allow it
         --> components/queue.toml:1:1
          |
        1 | a line of the file that is longer than the terminal is wide stays as it is
          | ^
          |
          = help: add the permission to the
                  policies of the role, or choose another
                  role
        ");
        assert_eq!(fitted(TEXT, Stream { width: None, ..narrow }), TEXT);
    }
}
