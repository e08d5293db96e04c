//! Limits of a text of policies, checked before it is parsed: trees of expressions are built and dropped by recursion.

use std::iter::Peekable;
use std::str::CharIndices;

use crate::mistake::Mistake;

/// The maximum length of one policy without its comments, in bytes.
const MAX_POLICY_BYTES: usize = 4 * 1024;
/// The maximum depth of parentheses, brackets and braces in each other.
const MAX_DEPTH: usize = 32;

/// Returns the first place at which a policy is too long or too deep.
pub(crate) fn excess(text: &str) -> Option<Mistake> {
    let mut letters = text.char_indices().peekable();
    let (mut depth, mut bytes) = (0_usize, 0_usize);
    while let Some((offset, letter)) = letters.next() {
        match letter {
            '/' if letters.next_if(|(_, next)| *next == '/').is_some() => {
                while letters.next_if(|(_, next)| *next != '\n').is_some() {}
                continue;
            }
            '"' => bytes += string_bytes(&mut letters),
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            ';' => {
                bytes = 0;
                continue;
            }
            _ => {}
        }
        bytes += letter.len_utf8();
        let problem = match (depth > MAX_DEPTH, bytes > MAX_POLICY_BYTES) {
            (true, _) => format!("more than {MAX_DEPTH} parentheses are in each other; write a simpler condition"),
            (false, true) => {
                format!("the policy is longer than {MAX_POLICY_BYTES} bytes; split it into several policies")
            }
            (false, false) => continue,
        };
        return Some(Mistake::at(text, offset, None, problem));
    }
    None
}

/// Reads to the end of a string, and returns its length in bytes without the first quote.
fn string_bytes(letters: &mut Peekable<CharIndices<'_>>) -> usize {
    let (mut bytes, mut is_escaped) = (0, false);
    for (_, letter) in letters {
        bytes += letter.len_utf8();
        match letter {
            '"' if !is_escaped => break,
            '\\' => is_escaped = !is_escaped,
            _ => is_escaped = false,
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> Option<String> {
        excess(text).map(|mistake| mistake.to_string())
    }

    #[test]
    fn parentheses_in_each_other_are_limited() {
        let nested = |depth| "(".repeat(depth) + &")".repeat(depth);

        assert_eq!(message(&nested(MAX_DEPTH)), None);
        assert_eq!(message(&"{[]}".repeat(1000)), None);
        assert_eq!(
            message(&format!("\n{}", nested(MAX_DEPTH + 1))).unwrap(),
            "line 2, column 33: more than 32 parentheses are in each other; write a simpler condition"
        );
    }

    #[test]
    fn the_length_of_a_policy_is_limited_without_its_comments() {
        let long = "x".repeat(MAX_POLICY_BYTES);

        assert_eq!(message(&format!("{};{long}", &long[1..])), None);
        assert_eq!(message(&format!("// {long} ( [\n{}", &long[1..])), None);
        for text in [format!("{long}y"), format!("\"{long}\""), format!("{long}// z\nx")] {
            let found = message(&text).unwrap();
            assert!(found.ends_with("the policy is longer than 4096 bytes; split it into several policies"), "{found}");
        }
    }

    #[test]
    fn what_is_in_a_string_is_not_nested_and_begins_no_comment() {
        let parentheses = "(".repeat(MAX_DEPTH + 1);

        assert_eq!(message(&format!("\"\\\"{parentheses}\\\\\" //")), None);
        assert!(message(&format!("\"//\" {parentheses}")).is_some());
        assert!(message(&format!("\"\\\\\" {parentheses}")).is_some());
    }
}
