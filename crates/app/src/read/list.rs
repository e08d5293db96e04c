//! Lists that are read page by page, and their page tokens. A token is the sort key of the row after which the next
//! page begins.

use freehold_protocol::{
    AppName, BuildId, ComponentName, InstallId, JobId, MemberName, ReleaseName, RunId, Shape, WorkflowId,
};

use crate::AppError;

/// A list that the API returns in pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum List {
    Apps,
    Versions,
    Builds,
    Releases,
    Installs,
    /// The components of an install that are deployed.
    Components,
    Workflows,
    /// The runs of runbooks.
    Runs,
    Logs,
    /// The uses of an artifact, in its lineage.
    Uses,
    /// The members of the tenant.
    Members,
}

/// The maximum number of a token's characters that an error message quotes.
const SHOWN_CHARS: usize = 80;

impl List {
    /// All lists that the API returns in pages.
    pub const ALL: [Self; 11] = [
        Self::Apps,
        Self::Versions,
        Self::Builds,
        Self::Releases,
        Self::Installs,
        Self::Components,
        Self::Workflows,
        Self::Runs,
        Self::Logs,
        Self::Uses,
        Self::Members,
    ];

    /// Returns the sort key after which a page begins; `None` for the first page, which an empty token also requests.
    ///
    /// # Errors
    /// Invalid for a token that cannot be a sort key of this list. The table would refuse such a key, or begin at a
    /// wrong row.
    pub fn place(self, token: Option<&str>) -> Result<Option<&str>, AppError> {
        let token = token.filter(|token| !token.is_empty());
        match token {
            Some(token) if !self.has(token) => {
                let shown: String = token.chars().take(SHOWN_CHARS).collect();
                Err(AppError::invalid(format!(
                    "`after` is `{shown}`, which is not a place in this list; pass the `next` or `cursor` of the \
                     previous page, or leave `after` out to begin at the start"
                )))
            }
            token => Ok(token),
        }
    }

    /// Returns the prefix of the sort keys of the list's rows.
    pub const fn prefix(self) -> &'static str {
        match self.parts() {
            [(prefix, _), ..] => prefix,
            [] => "",
        }
    }

    /// Returns the regular expression of the list's tokens, without anchors.
    pub fn pattern(self) -> String {
        self.parts()
            .iter()
            .map(|(before, shape)| format!("{}{}", before.replace('.', r"\."), shape.pattern()))
            .collect()
    }

    /// Returns how the sort key of a row of the list is built: for each value in the key, the fixed text before the value,
    /// and the shape of the value.
    const fn parts(self) -> &'static [(&'static str, Shape)] {
        match self {
            Self::Apps => &[("", AppName::SHAPE)],
            Self::Versions => &[("number#", Shape::Digits { min: 20, max: 20 })],
            Self::Builds => &[("build#", BuildId::SHAPE)],
            Self::Releases => &[("release#", ReleaseName::SHAPE)],
            Self::Installs => &[("", InstallId::SHAPE)],
            Self::Components => &[("component#", ComponentName::SHAPE)],
            Self::Workflows => &[("workflow#", Shape::Digits { min: 20, max: 20 }), ("#", WorkflowId::SHAPE)],
            Self::Runs => &[("run#", Shape::Digits { min: 20, max: 20 }), ("#", RunId::SHAPE)],
            // The numbers are padded with zeros. They are the dispatch number (32 bits), the receive count (32 bits)
            // and the report's sequence number (64 bits).
            Self::Logs => &[
                ("log#", Shape::Digits { min: 4, max: 10 }),
                (".", Shape::Digits { min: 6, max: 10 }),
                ("#", Shape::Digits { min: 8, max: 20 }),
            ],
            Self::Uses => &[
                ("use#", InstallId::SHAPE),
                ("#", ComponentName::SHAPE),
                ("#", JobId::SHAPE),
                ("#", Shape::Digits { min: 1, max: 10 }),
                (".", Shape::Digits { min: 1, max: 10 }),
            ],
            Self::Members => &[("", MemberName::SHAPE)],
        }
    }

    fn has(self, token: &str) -> bool {
        let parts = self.parts();
        let mut rest = token;
        for (at, (before, shape)) in parts.iter().enumerate() {
            let Some(after) = rest.strip_prefix(before) else { return false };
            let end = parts.get(at + 1).and_then(|(next, _)| after.find(next)).unwrap_or(after.len());
            let (part, left) = after.split_at(end);
            if !shape.accepts(part) {
                return false;
            }
            rest = left;
        }
        rest.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use freehold_protocol::Timestamp;
    use freehold_protocol::report::Fence;

    use super::*;
    use crate::table::{
        LogRecord, Record as _, RunEntry, VersionEntry, WorkflowEntry, app_key, build_key, deployed_key,
        install_entry_key, release_key,
    };

    #[test]
    fn the_sort_keys_of_the_rows_are_places_in_their_lists() {
        let (app, install) = ("demo".parse::<AppName>().unwrap(), "globex".parse::<InstallId>().unwrap());
        let build = "bld_0123456789abcdef0123".parse().unwrap();
        let created_at = Timestamp::from_millis(1);
        let version = freehold_protocol::Digest::of(b"version");
        let version = VersionEntry { app: app.clone(), version, number: 1, created_at, components: 1 };
        let workflow = WorkflowId::derive("globex", "deploy");
        let entry = WorkflowEntry { workflow, install: install.clone(), created_at: Timestamp::from_millis(1) };
        let run = RunEntry { run: RunId::derive(&install, "fix"), install: install.clone(), created_at };
        let fence = Fence { dispatch: u32::MAX, receive: 1 };
        let job = "job_0123456789abcdef0123".parse().unwrap();
        let log = LogRecord { job, fence, seq: u64::MAX, text: String::new() };

        for (list, key) in [
            (List::Apps, app_key(&app)),
            (List::Versions, version.key()),
            (List::Builds, build_key(&app, &build)),
            (List::Releases, release_key(&app, &"2026.11".parse().unwrap())),
            (List::Installs, install_entry_key(&install)),
            (List::Components, deployed_key(&install, &"web".parse().unwrap())),
            (List::Workflows, entry.key()),
            (List::Runs, run.key()),
            (List::Logs, log.key()),
        ] {
            assert_eq!(list.place(Some(&key.sk)).unwrap(), Some(key.sk.as_str()), "{list:?}");
        }
    }

    #[test]
    fn a_token_of_the_list_is_a_place_and_none_or_an_empty_one_is_the_start() {
        let token = "workflow#18446742309852551615#wf_0123456789abcdef0123";

        assert_eq!(List::Workflows.place(Some(token)).unwrap(), Some(token));
        assert_eq!(List::Workflows.place(None).unwrap(), None);
        assert_eq!(List::Workflows.place(Some("")).unwrap(), None);
    }

    #[test]
    fn a_token_that_is_not_ours_is_refused_with_the_way_out() {
        let error = List::Workflows.place(Some("garbage")).unwrap_err();

        assert_eq!(error.kind, crate::Kind::Invalid);
        assert_eq!(
            error.message,
            "`after` is `garbage`, which is not a place in this list; pass the `next` or `cursor` of the previous \
             page, or leave `after` out to begin at the start"
        );
    }

    #[test]
    fn no_list_takes_garbage_or_more_than_a_token() {
        for list in List::ALL {
            for token in ["garbage!", "workflow#1#2", "log#0001.000001#x", "use#globex#api", "état", "\u{0}"] {
                assert!(list.place(Some(token)).is_err(), "{list:?} {token:?}");
            }
            assert!(list.place(Some(&"9".repeat(5000))).is_err(), "{list:?}");
        }
    }
}
