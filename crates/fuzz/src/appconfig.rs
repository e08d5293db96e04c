//! App configs: files in memory, read as a sync and as a check read them.

use std::collections::BTreeMap;

use freehold_appconfig::{Diagnostics, Fetched, check_files, load_files};
use freehold_protocol::canonical;

use crate::mutate::mutate;
use crate::seeds::{CONFIG_WORDS, FILES, PATHS};
use crate::{Draw, Target};

/// Broken app configs.
#[derive(Debug)]
pub struct Configs {
    texts: Vec<&'static str>,
}

impl Default for Configs {
    fn default() -> Self {
        Self { texts: FILES.iter().map(|(_, text)| *text).collect() }
    }
}

/// The bytes of files by their paths.
pub struct Config(BTreeMap<String, Vec<u8>>);

impl std::fmt::Debug for Config {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map().entries(self.0.iter().map(|(path, bytes)| (path, String::from_utf8_lossy(bytes)))).finish()
    }
}

impl Target for Configs {
    type Input = Config;

    fn input(&self, draw: &mut Draw) -> Config {
        // Most inputs are a part of the config, so that more of them are tried; some are the whole.
        let (kept, of) = if draw.one_in(8) { (1, 1) } else { (1, 4) };
        let mut files: BTreeMap<String, Vec<u8>> = FILES
            .iter()
            .filter(|_| draw.below(of) < kept)
            .map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec()))
            .collect();
        for _ in 0..=draw.below(3) {
            let (path, text) = *draw.pick(FILES);
            let mut bytes = files.get(path).cloned().unwrap_or_else(|| text.as_bytes().to_vec());
            mutate(draw, &mut bytes, CONFIG_WORDS, &self.texts);
            let path = if draw.one_in(6) { *draw.pick(PATHS) } else { path };
            files.insert(path.to_owned(), bytes);
        }
        Config(files)
    }

    fn feed(&self, Config(files): &Config) -> bool {
        match load_files("shop", files, &Fetched::new()) {
            Ok(loaded) => {
                hold(&loaded.warnings);
                assert!(canonical::to_vec(&loaded.version).is_ok(), "a version that has no bytes");
                let again = load_files("shop", files, &Fetched::new()).map(|again| again.version);
                assert_eq!(again.ok(), Some(loaded.version), "two readings of the same files differ");
                true
            }
            Err(found) => {
                assert!(found.has_errors(), "refused without an error");
                hold(&found);
                hold(&check_files("shop", files));
                false
            }
        }
    }
}

/// Every mistake has a place, and all of them can be shown.
fn hold(found: &Diagnostics) {
    assert!(found.iter().all(|one| one.line >= 1 && one.column >= 1 && !one.message.is_empty()), "{found:?}");
    assert_eq!(found.is_empty(), found.render(false).is_empty());
}
