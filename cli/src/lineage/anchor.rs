//! Reads the keys of an install's runners from a copy of the audit records, which are in the customer's account.

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
    fn the_keys_beside_the_records_are_read_and_a_directory_without_one_is_refused() {
        let directory = tempfile::tempdir().unwrap();

        let none = keys(directory.path()).unwrap_err().to_string();
        std::fs::create_dir(directory.path().join("21fe31dfa154a261626bf854046fd227")).unwrap();
        std::fs::write(directory.path().join("21fe31dfa154a261626bf854046fd227.pub"), format!("{KEY}\n")).unwrap();
        let found = keys(directory.path()).unwrap();
        std::fs::write(directory.path().join("x.pub"), "none").unwrap();

        assert!(none.contains("has no file with a runner's key"), "{none}");
        assert_eq!(found, [KEY.parse::<PublicKey>().unwrap().key_id().to_string()]);
        assert!(keys(directory.path()).unwrap_err().to_string().contains("x.pub` is not a runner's key"));
    }
}
