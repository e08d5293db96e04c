//! The configuration that tells an editor which schema belongs to which file.

use std::fmt::Write as _;

use super::kind::schema_kinds;

/// Returns the text of a `.taplo.toml` for the root of an app's directory, with its schemas in `schemas/`.
pub fn taplo_config() -> String {
    let mut text = String::from(
        "# Which schema belongs to which file: for editors that use taplo, and for `taplo check`.\n\
         # Written by `freehold app schema`; a `#:schema` line at the top of a file takes precedence.\n",
    );
    for kind in schema_kinds() {
        let files: Vec<String> = kind.files().iter().map(|glob| format!("\"{glob}\"")).collect();
        if !files.is_empty() {
            // INVARIANT: writing to a string does not fail.
            let _ = write!(
                text,
                "\n[[rule]]\nname = \"{kind}\"\ninclude = [{}]\n\n[rule.schema]\npath = \"schemas/{kind}.json\"\n",
                files.join(", ")
            );
        }
    }
    text
}
