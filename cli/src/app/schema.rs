//! `freehold app schema`: prints or writes JSON Schemas of config files, for editors.

use std::path::{Path, PathBuf};

use freehold_appconfig::SchemaKind;
use freehold_appconfig::schema;
use freehold_appconfig::schema_kinds;
use freehold_appconfig::schemas;
use freehold_appconfig::taplo_config;
use serde_json::{Value, json};

use super::Schema;
use super::check::checked_dir;
use crate::context::Context;
use crate::error::{Error, Result, ResultExt};
use crate::file;
use crate::output::{Table, plural, print_json};

impl Schema {
    pub(super) fn run(&self, context: &Context) -> Result<()> {
        match (&self.dir, self.kind) {
            (Some(dir), _) => write_all(context, dir, self.force),
            (None, Some(kind)) => {
                print_json(&pretty(&schema(kind))?);
                Ok(())
            }
            (None, None) => list(context),
        }
    }
}

fn list(context: &Context) -> Result<()> {
    let kinds: Vec<SchemaKind> = schema_kinds().collect();
    let value: Vec<Value> =
        kinds.iter().map(|kind| json!({ "kind": kind.name(), "title": kind.title(), "files": kind.files() })).collect();
    context.out.show(&value, |_| {
        let mut table = Table::new(&["KIND", "DESCRIPTION", "FILES"]);
        for kind in kinds {
            table.row([kind.name().to_owned(), kind.title(), kind.files().join(", ")]);
        }
        context.out.table(&table)
    })
}

/// Writes every schema, and the `.taplo.toml` that tells editors the schema of each file.
fn write_all(context: &Context, dir: &Path, force: bool) -> Result<()> {
    if dir.symlink_metadata().is_ok() {
        checked_dir(dir)?;
    }
    let directory = dir.join("schemas");
    std::fs::create_dir_all(&directory).doing(format!("make `{}`", directory.display()))?;
    let files: Vec<(PathBuf, String)> = schemas()
        .map(|(name, schema)| Ok((directory.join(format!("{name}.json")), format!("{}\n", pretty(&schema)?))))
        .collect::<Result<_>>()?;
    file::create_all(&files, force)?;
    let mut written: Vec<PathBuf> = files.into_iter().map(|(path, _)| path).collect();
    let path = dir.join(".taplo.toml");
    let known = std::fs::read_to_string(&path).ok();
    // A `.taplo.toml` that the vendor wrote is not replaced.
    let own = known.as_ref().is_some_and(|text| !text.contains(WRITER));
    if !own {
        file::replace(&path, &taplo_config())?;
        written.push(path.clone());
    }
    let value = json!({ "dir": dir, "written": written, "kept": own.then(|| path.clone()) });
    context.out.show(&value, |_| {
        let schemas = schema_kinds().count();
        let config = if own {
            format!(
                "`{}` is your own file and was not changed; to see the one that Freehold writes, run `freehold app \
                 schema --dir` with a new directory",
                path.display()
            )
        } else {
            format!("and `{}`, from which editors that use taplo learn the schema of each file", path.display())
        };
        format!("wrote {} to `{}`\n{config}", plural(schemas, "schema"), directory.display())
    })
}

/// The text in a generated `.taplo.toml` that identifies it as generated.
const WRITER: &str = "freehold app schema";

fn pretty(schema: &Value) -> Result<String> {
    serde_json::to_string_pretty(schema).map_err(|e| Error::internal(format!("cannot print JSON: {e}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_editors_configuration_names_what_wrote_it() {
        assert!(taplo_config().contains(WRITER));
    }
}
