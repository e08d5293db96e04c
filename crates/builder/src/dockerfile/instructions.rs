//! Splits a Dockerfile into its instructions, by the rules of BuildKit's parser (`frontend/dockerfile/parser`): comments
//! and empty lines are left out, continued lines are joined, and the contents of here-documents are skipped.

/// The instructions that a here-document may follow.
const WITH_DOCUMENTS: [&str; 3] = ["RUN", "COPY", "ADD"];

/// Returns the instructions of a Dockerfile, each as one text.
///
/// # Errors
/// Fails if a here-document has no line that ends it.
pub(super) fn instructions(text: &str) -> Result<Vec<String>, String> {
    let escape = if escape_is_backtick(text) { '`' } else { '\\' };
    let mut lines = text.lines().map(|line| line.trim_end_matches('\r'));
    let mut all = Vec::new();
    let mut current = String::new();
    while let Some(line) = lines.next() {
        if line.trim_start().is_empty() || line.trim_start().starts_with('#') {
            continue;
        }
        let line = line.trim_end();
        let part = line.strip_suffix(escape);
        current.push_str(part.unwrap_or(line));
        if part.is_none() {
            skip_documents(&current, &mut lines)?;
            all.push(std::mem::take(&mut current));
        }
    }
    skip_documents(&current, &mut lines)?;
    all.push(current);
    Ok(all)
}

/// Returns whether the comments at the top contain the directive that makes the backtick the escape character.
fn escape_is_backtick(text: &str) -> bool {
    let top = text.lines().map_while(|line| line.trim().strip_prefix('#'));
    let mut words = top.map(|line| line.replace(' ', "").to_ascii_lowercase());
    words.any(|line| line == "escape=`")
}

/// Skips the lines of the here-documents that `instruction` announces. They follow the instruction in the same order.
fn skip_documents<'t>(instruction: &str, lines: &mut impl Iterator<Item = &'t str>) -> Result<(), String> {
    for HereDocument { end, tabs } in here_documents(instruction) {
        if !lines.any(|line| if tabs { line.trim_start_matches('\t') == end } else { line == end }) {
            return Err(format!(
                "here-document `{end}` of the Dockerfile never ends; write `{end}` alone on the line after its contents"
            ));
        }
    }
    Ok(())
}

/// A here-document that an instruction announces with `<<WORD` or `<<-WORD`.
struct HereDocument {
    /// The line that ends it.
    end: String,
    /// Whether tabs before the line that ends it are ignored.
    tabs: bool,
}

fn here_documents(instruction: &str) -> Vec<HereDocument> {
    let mut names = instruction.split_whitespace().skip_while(|name| name.eq_ignore_ascii_case("ONBUILD"));
    let name = names.next().unwrap_or_default();
    if !WITH_DOCUMENTS.iter().any(|known| name.eq_ignore_ascii_case(known)) {
        return Vec::new();
    }
    words(instruction).iter().filter_map(here_document).collect()
}

/// Returns the here-document that `word` announces: a number or nothing, `<<` or `<<-`, and a name without `<`.
fn here_document(word: &Word) -> Option<HereDocument> {
    let (written, name) = (after_marker(&word.written)?, after_marker(&word.plain)?);
    let tabs = written.starts_with('-');
    let end = name.strip_prefix('-').filter(|_| tabs).unwrap_or(name);
    (!written.contains('<') && !end.is_empty()).then(|| HereDocument { end: end.to_owned(), tabs })
}

fn after_marker(word: &str) -> Option<&str> {
    word.trim_start_matches(|c: char| c.is_ascii_digit()).strip_prefix("<<")
}

/// A word of an instruction.
#[derive(Default)]
struct Word {
    written: String,
    /// The word without its quotes and escape characters.
    plain: String,
}

/// Splits an instruction into words as a shell does. An instruction with an open quote has no words, because BuildKit
/// finds no here-document in it.
fn words(instruction: &str) -> Vec<Word> {
    let (mut all, mut word, mut quote) = (Vec::new(), Word::default(), None);
    let mut chars = instruction.chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (None, c) if c.is_whitespace() => all.push(std::mem::take(&mut word)),
            (None, '"' | '\'') => {
                quote = Some(c);
                word.written.push(c);
            }
            (Some(open), c) if open == c => {
                quote = None;
                word.written.push(c);
            }
            (None | Some('"'), '\\') => {
                let next = chars.next();
                // Between double quotes, a backslash before any other character is an ordinary backslash.
                let is_kept = quote.is_some() && !matches!(next, Some('"' | '$' | '\\'));
                word.written.extend([c].into_iter().chain(next));
                word.plain.extend(is_kept.then_some(c).into_iter().chain(next));
            }
            (_, c) => {
                word.written.push(c);
                word.plain.push(c);
            }
        }
    }
    all.push(word);
    if quote.is_some() { Vec::new() } else { all }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ends(instruction: &str) -> Vec<String> {
        here_documents(instruction).into_iter().map(|document| document.end).collect()
    }

    #[test]
    fn here_documents_are_announced_as_buildkit_reads_them() {
        for (instruction, expected) in [
            ("RUN cat <<EOF > /x", vec!["EOF"]),
            ("run <<-'a b' cat", vec!["a b"]),
            ("RUN 3<<\"E\"OF <<-B x", vec!["EOF", "B"]),
            ("COPY <<a <<b /to/", vec!["a", "b"]),
            ("ADD --chown=1 <<\\EOF /x", vec!["EOF"]),
            ("ONBUILD RUN <<EOF", vec!["EOF"]),
            ("RUN cat <<$X", vec!["$X"]),
            ("RUN cat <<\"-EOF\"", vec!["-EOF"]),
        ] {
            assert_eq!(ends(instruction), expected, "{instruction}");
        }
    }

    #[test]
    fn other_uses_of_the_signs_announce_nothing() {
        for instruction in [
            "RUN cat <<< text",
            "RUN echo $((1<<2))",
            "RUN echo 1 << 2",
            "RUN echo '<<EOF' \"a <<EOF\" \\<<EOF",
            "RUN [\"sh\", \"-c\", \"cat <<EOF\"]",
            "RUN cat <<\"\"",
            "RUN echo it's <<EOF",
            "ENV A <<EOF",
            "LABEL a=b <<EOF",
            "CMD <<EOF",
        ] {
            assert_eq!(ends(instruction), Vec::<String>::new(), "{instruction}");
        }
    }

    #[test]
    fn contents_are_skipped_until_the_line_that_ends_them() {
        let text = "RUN <<A <<-B cat \\\n  # why\n  && x\nfrom a \\\n A\n\tA\nA\nB b\n\t\tB\nUSER 1\r\nRUN cat <<EOF\r\nFROM x\r\nEOF\r\nFR\\\nOM y\n";

        let found = instructions(text).unwrap();

        assert_eq!(found, ["RUN <<A <<-B cat   && x", "USER 1", "RUN cat <<EOF", "FROM y", ""]);
    }

    #[test]
    fn a_here_document_that_never_ends_is_an_error() {
        for text in [
            "RUN <<EOF\nFROM x\n EOF\n",
            "RUN <<EOF\n\tEOF\n",
            "RUN <<EOF",
            "RUN <<EOF \\\n",
            "COPY <<A <<EOF /x\nEOF\nA\n",
        ] {
            let error = instructions(text).unwrap_err();

            assert!(error.starts_with("here-document `EOF` of the Dockerfile never ends"), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn no_content_of_a_here_document_is_an_instruction(
            contents in proptest::collection::vec("(FROM|from|RUN <<X|COPY --from=a|\t)?[ -~]{0,12}\\\\?", 0..8),
            marker in proptest::sample::select(vec!["<<END", "<<-END", "<<'END'", "<<\"END\"", "<<E\"N\"D", "0<<END"]),
        ) {
            let contents: String = contents.iter().filter(|line| line.trim() != "END").map(|line| format!("{line}\n")).collect();

            let found = instructions(&format!("FROM a\nRUN cat {marker} > /x\n{contents}END\nUSER b\n"));

            prop_assert_eq!(found.unwrap(), ["FROM a", &format!("RUN cat {marker} > /x"), "USER b", ""]);
        }

        #[test]
        fn any_text_is_read(text in "([ -~]|\n|\t|<<|\\\\\n|RUN <<A\n){0,40}") {
            let _: Result<Vec<String>, String> = instructions(&text);
        }
    }
}
