//! Product code prints no debug text: a person would read Rust's names of types, or an SDK's whole answer with its headers.

use super::modules::product;

/// The lines that may format debug text, each with its file.
const EXCEPTIONS: [(&str, &str); 6] = [
    // They are the debug text of a type of ours.
    ("crates/oci/src/source.rs", r#"Self::Repository(repository) => write!(f, "Repository({repository:?})"),"#),
    ("crates/sealing/src/sealed_box.rs", r#"write!(f, "OpeningKey of {:?}", self.sealing_key())"#),
    // A list of texts is always JSON.
    (
        "crates/permissions/src/terms/probes.rs",
        r#"let words = serde_json::to_string(command).unwrap_or_else(|_| format!("{command:?}"));"#,
    ),
    // The name of an operation is that of its variant.
    ("functions/src/api/authorize.rs", r#"for letter in format!("{self:?}").chars() {"#),
    ("functions/src/api/openapi.rs", r#"let operation = format!("{:?}", route.operation);"#),
    ("functions/src/api/openapi.rs", r#""operationId": format!("{:?}", route.operation),"#),
];

#[test]
fn product_code_prints_no_debug_text() {
    let mut unneeded = EXCEPTIONS.to_vec();
    let mut wrong = Vec::new();
    for (file, text) in product() {
        for line in text.lines().map(str::trim).filter(|line| formats_debug_text(line)) {
            match unneeded.iter().position(|exception| *exception == (file.as_str(), line)) {
                Some(at) => {
                    unneeded.remove(at);
                }
                None => wrong.push(format!("{file} prints debug text; print the value or the chain of causes: {line}")),
            }
        }
    }
    wrong.extend(unneeded.iter().map(|(file, line)| format!("{file} needs no exception any more for: {line}")));

    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn debug_text_is_found_in_texts_and_in_fields_of_logs() {
    for line in [
        "format!(\"{error:?}\")",
        "format!(\"{name}: {:#?}\", error)",
        "warn!(?error, \"it failed\")",
        "warn!(job.id = %id, ?error)",
        "warn!(cause = ?error)",
        "?error,",
        "DisplayErrorContext(&error).to_string()",
    ] {
        assert!(formats_debug_text(line), "{line}");
    }
    for line in [
        "// as {error:?} prints it",
        "format!(\"{error}: {count:>5}\")",
        "fn f<T: ?Sized>(a: &T)",
        "first()?.second(third()?)",
        "if a { b: c? }",
        "// (?error",
    ] {
        assert!(!formats_debug_text(line), "{line}");
    }
}

/// Returns whether a line of code formats debug text, gives it to a log, or prints all that an SDK knows of an error.
fn formats_debug_text(line: &str) -> bool {
    let mut formats = line.split('{').skip(1).filter_map(|rest| rest.split_once('}'));
    let is_debug = |(inside, _): (&str, &str)| inside.contains(':') && inside.ends_with('?');
    let on_the_line = ["(?", ", ?", "= ?"].into_iter().flat_map(|mark| line.split(mark).skip(1));
    let mut behind_marks = on_the_line.chain(line.strip_prefix('?'));
    let is_name = |rest: &str| rest.starts_with(|c: char| c.is_ascii_lowercase());
    !line.starts_with("//")
        && (formats.any(is_debug) || behind_marks.any(is_name) || line.contains("DisplayErrorContext"))
}
