//! Reads the keys of an install's runners from a copy of the audit records, which lie in the customer's account.

use std::path::Path;

use freehold_protocol::envelope::PublicKey;

use crate::error::{Error, Result, ResultExt};
use crate::file::COPY_OF_AUDIT;

/// Returns the ids of the keys in `directory`, which has a file `KEY.pub` for each runner key.
pub(super) fn keys(directory: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for entry in crate::file::entries(directory, COPY_OF_AUDIT)? {
        let path = entry.path();
        if path.extension().is_some_and(|extension| extension == "pub") {
            let text = std::fs::read_to_string(&path).doing(format!("read `{}`", path.display()))?;
            let key: PublicKey = text.trim().parse().map_err(|error| {
                Error::invalid(format!("`{}` is not a runner's key: {error}", path.display())).or(COPY_OF_AUDIT)
            })?;
            found.push(key.key_id().to_string());
        }
    }
    if found.is_empty() {
        return Err(
            Error::invalid(format!("`{}` has no file with a runner's key", directory.display())).or(COPY_OF_AUDIT)
        );
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=";

    #[test]
    fn the_keys_beside_the_records_are_read_and_a_folder_without_one_is_refused() {
        let folder = tempfile::tempdir().unwrap();

        let none = keys(folder.path()).unwrap_err().to_string();
        std::fs::create_dir(folder.path().join("21fe31dfa154a261626bf854046fd227")).unwrap();
        std::fs::write(folder.path().join("21fe31dfa154a261626bf854046fd227.pub"), format!("{KEY}\n")).unwrap();
        let found = keys(folder.path()).unwrap();
        std::fs::write(folder.path().join("x.pub"), "none").unwrap();

        assert!(none.contains("has no file with a runner's key"), "{none}");
        assert_eq!(found, [KEY.parse::<PublicKey>().unwrap().key_id().to_string()]);
        assert!(keys(folder.path()).unwrap_err().to_string().contains("x.pub` is not a runner's key"));
    }
}
