//! Finds the commands of a shell script.

/// Words after which a command follows.
const BEFORE_A_COMMAND: [&str; 16] = [
    "{", "}", "if", "then", "else", "elif", "fi", "while", "until", "do", "done", "!", "exec", "sudo", "time", "nohup",
];

/// The maximum depth of nested commands.
const MAX_DEPTH: usize = 50;

/// The commands of a script and the functions that it defines.
#[derive(Debug, Default)]
pub(super) struct Script<'s> {
    /// The words of each command with their positions, as they are written. A variable that is set is a command of one
    /// word.
    pub(super) commands: Vec<Vec<(usize, &'s str)>>,
    pub(super) functions: Vec<&'s str>,
}

/// Reads the commands of `script`, also those in `$(...)`. Comments, quoted texts, here documents, arrays and patterns of
/// `case` are not commands.
pub(super) fn read(script: &str) -> Script<'_> {
    let mut reader = Reader { script, at: 0, depth: 0, found: Script::default(), here: Vec::new() };
    while reader.at < script.len() {
        reader.list(None);
        // The `)` has no `(`.
        reader.at += 1;
    }
    reader.found
}

/// A command that is being read.
#[derive(Default)]
struct Open<'s> {
    words: Vec<(usize, &'s str)>,
    /// Whether the text at this place is a pattern, for each `case` around it.
    cases: Vec<bool>,
}

impl Open<'_> {
    fn is_pattern(&self) -> bool {
        self.cases.last() == Some(&true)
    }

    fn set_pattern(&mut self, is_pattern: bool) {
        if let Some(last) = self.cases.last_mut() {
            *last = is_pattern;
        }
    }
}

struct Reader<'s> {
    script: &'s str,
    at: usize,
    depth: usize,
    found: Script<'s>,
    /// The last lines of the here documents that begin after this line.
    here: Vec<String>,
}

impl<'s> Reader<'s> {
    fn peek(&self) -> Option<u8> {
        self.script.as_bytes().get(self.at).copied()
    }

    fn rest(&self) -> &'s str {
        self.script.get(self.at..).unwrap_or_default()
    }

    /// Moves behind `text` if the script continues with it.
    fn takes(&mut self, text: &str) -> bool {
        let takes = self.script.as_bytes().get(self.at..).is_some_and(|rest| rest.starts_with(text.as_bytes()));
        self.at += if takes { text.len() } else { 0 };
        takes
    }

    /// Reads commands up to `end` or to a `)`, which stays unread.
    fn list(&mut self, end: Option<u8>) {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            self.at = self.script.len();
        }
        let mut open = Open::default();
        while let Some(byte) = self.peek() {
            match byte {
                b')' if open.is_pattern() => {
                    self.at += 1;
                    open.set_pattern(false);
                }
                _ if byte == b')' || Some(byte) == end => break,
                b' ' | b'\t' | b'\r' => self.at += 1,
                b'#' => self.at += self.rest().find('\n').unwrap_or(self.rest().len()),
                b'\\' if self.takes("\\\n") || self.takes("\\\r\n") => {}
                b'\n' | b';' | b'&' | b'|' => {
                    self.close(&mut open);
                    if self.rest().starts_with(";;") {
                        open.set_pattern(true);
                    }
                    self.at += 1;
                    if byte == b'\n' {
                        self.here_documents();
                    }
                }
                b'(' if open.is_pattern() => self.at += 1,
                b'(' => {
                    self.at += 1;
                    if let [(_, name)] = *open.words
                        && self.rest().trim_start_matches([' ', '\t']).starts_with(')')
                    {
                        self.found.functions.push(name);
                        open.words.clear();
                    }
                    self.close(&mut open);
                    self.list(None);
                    self.at += 1;
                }
                b'<' if self.rest().starts_with("<<") && !self.rest().starts_with("<<<") => self.here_document(),
                b'<' | b'>' if !self.rest().get(1..).is_some_and(|rest| rest.starts_with('(')) => {
                    self.at += self.rest().bytes().take_while(|byte| b"<>&|".contains(byte)).count();
                    while self.takes(" ") {}
                    self.word(end);
                }
                _ => {
                    let word = self.word(end);
                    self.add(word, &mut open);
                }
            }
        }
        self.close(&mut open);
        self.depth -= 1;
    }

    fn add(&mut self, word: (usize, &'s str), open: &mut Open<'s>) {
        let (text, is_first) = (word.1, open.words.is_empty());
        if text == "esac" && is_first && !open.cases.is_empty() {
            open.cases.pop();
        } else if open.is_pattern() || (is_first && BEFORE_A_COMMAND.contains(&text)) {
        } else if is_first && is_assignment(text) {
            self.found.commands.push(vec![word]);
        } else if text == "in" && open.words.first().is_some_and(|(_, first)| *first == "case") {
            open.words.clear();
            open.cases.push(true);
        } else {
            open.words.push(word);
        }
    }

    fn close(&mut self, open: &mut Open<'s>) {
        let words = std::mem::take(&mut open.words);
        if let [(_, "function"), (_, name), ..] = *words {
            self.found.functions.push(name);
        } else if !words.is_empty() {
            self.found.commands.push(words);
        }
    }

    /// Reads a word, with the commands inside of it.
    fn word(&mut self, end: Option<u8>) -> (usize, &'s str) {
        let start = self.at;
        while let Some(byte) = self.peek() {
            match byte {
                b'\\' => self.at += 2,
                b'\'' => {
                    self.at += 1;
                    self.skip_behind("'");
                }
                b'"' => self.quoted(),
                b'{' if self.takes("{{") => self.skip_behind("}}"),
                b'$' | b'<' | b'>' if self.rest().get(1..).is_some_and(|rest| rest.starts_with('(')) => {
                    self.substitution();
                }
                b'$' if self.takes("${") => self.skip_behind("}"),
                _ if Some(byte) == end => break,
                b'`' => self.backticks(),
                b'(' if self.script.get(start..self.at).is_some_and(|word| word.ends_with('=')) => {
                    self.skip_behind(")")
                }
                b' ' | b'\t' | b'\r' | b'\n' | b';' | b'&' | b'|' | b'(' | b')' | b'<' | b'>' => break,
                _ => self.at += 1,
            }
        }
        self.at = self.at.min(self.script.len());
        (start, self.script.get(start..self.at).unwrap_or_default())
    }

    fn quoted(&mut self) {
        self.at += 1;
        while let Some(byte) = self.peek() {
            match byte {
                b'"' => {
                    self.at += 1;
                    return;
                }
                b'\\' => self.at += 2,
                b'{' if self.takes("{{") => self.skip_behind("}}"),
                b'$' if self.rest().starts_with("$(") => self.substitution(),
                b'`' => self.backticks(),
                _ => self.at += 1,
            }
        }
    }

    /// Reads `$(...)`, `<(...)` or `>(...)`.
    fn substitution(&mut self) {
        self.at += 2;
        self.list(None);
        self.at += 1;
    }

    fn backticks(&mut self) {
        self.at += 1;
        self.list(Some(b'`'));
        self.at += 1;
    }

    fn skip_behind(&mut self, end: &str) {
        self.at += self.rest().find(end).map_or(self.rest().len(), |at| at + end.len());
    }

    fn here_document(&mut self) {
        self.at += 2;
        let _ = self.takes("-");
        while self.takes(" ") {}
        let (_, word) = self.word(None);
        self.here.push(word.replace(['\'', '"', '\\'], ""));
    }

    /// Moves behind the here documents that begin here.
    fn here_documents(&mut self) {
        for end in std::mem::take(&mut self.here) {
            while self.at < self.script.len() {
                let line = self.rest().split_inclusive('\n').next().unwrap_or_default();
                self.at += line.len();
                if line.trim() == end {
                    break;
                }
            }
        }
    }
}

/// Returns whether a word sets a variable, as in `NAME=value`.
fn is_assignment(word: &str) -> bool {
    let name = word.split_once('=').map_or("", |(name, _)| name.trim_end_matches('+'));
    !name.is_empty() && name.chars().all(|c| c == '_' || c.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The commands of a script, one a line.
    fn shown(script: &str) -> String {
        let line = |words: &Vec<(usize, &str)>| words.iter().map(|(_, text)| *text).collect::<Vec<_>>().join(" ");
        read(script).commands.iter().map(line).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn commands_are_found_where_the_shell_runs_them() {
        for (script, commands) in [
            ("a 1 | b 2 && c; d &", "a 1\nb 2\nc\nd"),
            ("if ! a; then b; else c; fi", "a\nb\nc"),
            ("X=1 Y='2 3' a", "X=1\nY='2 3'\na"),
            ("a \"$(b \"$(c)\")\" `d`", "c\nb \"$(c)\"\nd\na \"$(b \"$(c)\")\" `d`"),
            ("a <(b) > c 2>&1 <<< d", "b\na <(b) 2"),
            ("(a; b)", "a\nb"),
            ("a \\\n  b # c; d\n# e\nf#g", "a b\nf#g"),
            ("a 'b\nc' \"d; e\"\nf", "a 'b\nc' \"d; e\"\nf"),
            ("a <<E | b\nc\nE\nd <<-'F'\n\te\n\tF\ng", "a\nb\nd\ng"),
            ("X=(a\n b)\nc", "X=(a\n b)\nc"),
            ("case $x in a | b) c;; (d) case e in f) g;; esac;; h) i; esac; j", "c\ng\ni\nj"),
            ("for x in a b; do c; done", "for x in a b\nc"),
            ("{{ if .a }}\nb {{ .c | d }}\n{{ end }}", "{{ if .a }}\nb {{ .c | d }}\n{{ end }}"),
            ("a)\nb", "a\nb"),
            ("é $(ü", "ü\né $(ü"),
        ] {
            assert_eq!(shown(script), commands, "{script}");
        }
    }

    #[test]
    fn functions_are_named() {
        let script = read("a() { b; }\nc () (\n d\n)\nfunction e { f; }\n");

        assert_eq!(script.functions, ["a", "c", "e"]);
        assert_eq!(script.commands.iter().map(|words| words[0].1).collect::<Vec<_>>(), ["b", "d"]);
    }

    #[test]
    fn deep_nesting_ends() {
        for open in ["$(", "(", "\"$(", "`", "case a in b)"] {
            let _ = read(&open.repeat(100_000));
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_and_words_have_their_positions(script in "([a-cé \n\\\\'\"`$(){}|;&<>#=]|case a in|esac|<<a|\\$\\()*") {
            for (at, word) in read(&script).commands.iter().flatten() {
                prop_assert_eq!(&script[*at..at + word.len()], *word);
            }
        }
    }
}
