//! Fuzzes app configs: files in memory, read for a sync or for a check.

use std::collections::BTreeMap;

use freehold_appconfig::Diagnostics;
use freehold_appconfig::Fetched;
use freehold_appconfig::check_files;
use freehold_appconfig::load_files;
use freehold_protocol::canonical;

use crate::mutate::mutate;
use crate::seeds::{CONFIG_WORDS, FILES, OTHER_PATHS};
use crate::{Draw, Target};

/// Broken app configs.
#[derive(Debug)]
pub struct Configs {
    texts: Vec<&'static str>,
    /// The paths that a file may get instead of its own.
    paths: Vec<&'static str>,
}

impl Default for Configs {
    fn default() -> Self {
        let own = FILES.iter().map(|(path, _)| *path);
        // Without the components `own-*`: more paths would change the inputs that known seeds make.
        let configs = own.filter(|path| path.ends_with(".toml") && !path.starts_with("components/own-"));
        Self {
            texts: FILES.iter().map(|(_, text)| *text).collect(),
            paths: configs.chain(OTHER_PATHS.iter().copied()).collect(),
        }
    }
}

/// A config, and how it is read.
pub struct Config {
    /// The bytes of files by their paths.
    files: BTreeMap<String, Vec<u8>>,
    /// Whether it is read for a sync, and not for a check.
    sync: bool,
    /// Whether mistakes are rendered with excerpts, which takes longer than finding them.
    shown: bool,
}

impl std::fmt::Debug for Config {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "sync: {}, shown: {}", self.sync, self.shown)?;
        f.debug_map().entries(self.files.iter().map(|(path, bytes)| (path, String::from_utf8_lossy(bytes)))).finish()
    }
}

impl Target for Configs {
    type Input = Config;

    fn input(&self, draw: &mut Draw) -> Config {
        // Most inputs are a part of the config, so that more of them can be tried. Some are the whole config with few
        // changes, so that the last steps are tried too.
        let whole = draw.one_in(6);
        let mut files: BTreeMap<String, Vec<u8>> = FILES
            .iter()
            .filter(|_| whole || draw.one_in(4))
            .map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec()))
            .collect();
        for _ in 0..=(if whole { 0 } else { draw.below(3) }) {
            let (path, text) = *draw.pick(FILES);
            let mut bytes = files.get(path).cloned().unwrap_or_else(|| text.as_bytes().to_vec());
            mutate(draw, &mut bytes, if whole { 1 } else { 4 }, CONFIG_WORDS, &self.texts);
            let path = if draw.one_in(6) { *draw.pick(&self.paths) } else { path };
            files.insert(path.to_owned(), bytes);
        }
        Config { files, sync: !draw.one_in(3), shown: draw.one_in(4) }
    }

    fn feed(&self, Config { files, sync, shown }: &Config) -> bool {
        if !sync {
            let found = check_files("shop", files);
            hold(&found, *shown);
            return !found.has_errors();
        }
        match load_files("shop", files, &Fetched::new()) {
            Ok(loaded) => {
                hold(&loaded.warnings, *shown);
                assert!(canonical::to_vec(&loaded.version).is_ok(), "a version that has no bytes");
                let again = load_files("shop", files, &Fetched::new()).map(|again| again.version);
                assert_eq!(again.ok(), Some(loaded.version), "two readings of the same files differ");
                true
            }
            Err(found) => {
                assert!(found.has_errors(), "refused without an error");
                hold(&found, *shown);
                false
            }
        }
    }
}

/// Checks that every mistake has a place, and that all of them can be rendered.
fn hold(found: &Diagnostics, shown: bool) {
    assert!(found.iter().all(|one| one.line >= 1 && one.column >= 1 && !one.message.is_empty()), "{found:?}");
    if shown {
        assert_eq!(found.is_empty(), found.render(false).is_empty());
    }
}
