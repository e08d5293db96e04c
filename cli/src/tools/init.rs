//! `freehold tools init`: writes a list to start from, and the component of its image.

use serde_json::json;

use super::{Init, LIST};
use crate::context::Context;
use crate::error::{Result, ResultExt};
use crate::file;

const DEFAULT: &str = include_str!("default-tools.toml");
const COMPONENT: &str = "# The image that jobs run their programs in; `freehold tools build` makes it.\nname = \"tools\"\ntype = \
                         \"container_image\"\n\n[oci_layout]\npath = \"./tools/image\"\n";

impl Init {
    pub(super) fn run(&self, context: &Context) -> Result<()> {
        let files = [(self.app.join("tools").join(LIST), DEFAULT), (self.app.join("components/tools.toml"), COMPONENT)];
        for (path, text) in &files {
            if let Some(folder) = path.parent() {
                std::fs::create_dir_all(folder).doing(format!("make `{}`", folder.display()))?;
            }
            file::may_create(path, text, false)?;
        }
        files.iter().try_for_each(|(path, text)| file::create(path, text, false))?;
        let tools = self.app.join("tools");
        let (tools, runner) = (tools.display(), self.app.join("runner.toml"));
        let paths: Vec<_> = files.iter().map(|(path, _)| path).collect();
        context.out.show(&json!({ "files": paths }), |_| {
            let written: Vec<String> = files.iter().map(|(path, _)| format!("  {}", path.display())).collect();
            format!(
                "wrote:\n{}\n\nnext:\n  choose the versions in `{tools}/{LIST}`\n  freehold tools pin {tools}    fetches, and \
                 writes the checksums\n  freehold tools build {tools}  makes the image\n  write `tool_image = \"tools\"` into `{}`",
                written.join("\n"),
                runner.display()
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::list::List;

    #[test]
    fn the_default_list_is_valid_and_names_no_checksum_that_nobody_compared() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join(LIST), DEFAULT).unwrap();

        let list = List::read(directory.path()).unwrap();

        for platform in ["linux/amd64", "linux/arm64"] {
            let names: Vec<&str> = list.of(platform).map(|item| item.name.as_str()).collect();
            for wanted in ["base", "terraform", "helm", "kubectl"] {
                assert!(names.contains(&wanted), "{platform}: {wanted}");
            }
        }
        assert!(list.item.iter().all(|item| item.sha256.is_empty()));
    }
}
